"""Pages with one construct each that hides, moves or alters a figure; `hostile.toml` says what a
browser shows.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.documents import browser
from benchmarks.documents.html import MARKUPS, ORDINARY, write_page
from benchmarks.documents.judge import Trial, read_and_judge
from benchmarks.documents.mutations import Draft, mark_unreadable
from benchmarks.documents.tables import Table, draw_tables

CONSTRUCTS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
UNKNOWABLE = frozenset(name for name, entry in CONSTRUCTS.items() if "unknowable" in entry)
"""Constructs of which a written page does not say what they show."""
MAX_ROWS = 4
STRIDE = 11  # has no common divisor with the number of constructs
DECOY = re.compile(r'<tr class="q">.*?</tr>', re.S)
"""A row that a browser hides: that before it with other figures."""
FIRST_DIGIT = re.compile(r"(?<=<td>)\d(?=[\d,.]*</td>)")


def build_page(construct: str, seed: int) -> tuple[bytes, list[Table]]:
    """Return a page in which some figures have a construct, and the tables that a browser shows."""
    entry, random = CONSTRUCTS[construct], Random(seed)
    tables = draw_tables(
        random, paper=False, rows=random.randint(1, MAX_ROWS), units_in_captions=False
    )
    # by a rule or a text for all of the figures
    changes_all = not entry.get("seen") and entry["cell"] == "{0}"
    for table in tables:
        for row in table.rows:
            places = [place for place, cell in enumerate(row) if cell.value is not None]
            for place in places if changes_all else random.sample(places, 1):
                markup = entry["cell"].format(row[place].text, random.randint(1, 9))
                row[place] = replace(row[place], markup=markup)
                row[place] = row[place] if entry.get("seen") else mark_unreadable(row[place])
    markup = replace(MARKUPS["plain"], **entry.get("markup", {}))
    page = write_page(Draft(tables), markup)
    page = page.replace("</head>", entry.get("head", "").format() + "</head>", 1)
    page = DECOY.sub(
        lambda row: FIRST_DIGIT.sub(lambda digit: str(int(digit[0]) % 9 + 1), row[0]), page
    )
    near, after = (entry.get(name, "").format() for name in ("near", "after"))
    return (
        page.replace("<table", f"{near}<table").replace("</body>", f"{after}</body>").encode(),
        tables,
    )


def run_hostile(count: int) -> Iterator[Trial]:
    """Read and judge this many pages, each construct in turn, of all kinds also if they are few; by
    what a browser shows, too, if there is one.
    """
    names = [name for name in CONSTRUCTS if name not in UNKNOWABLE]
    jobs = [(names[STRIDE * number % len(names)], number) for number in range(count)]
    pages = (build_page(*job)[0].decode() for job in jobs)
    shown = browser.render(pages) if browser.is_installed() else repeat(None)
    for (name, number), seen in zip(jobs, shown, strict=False):
        data, tables = build_page(name, number)
        if seen is not None:
            tables = browser.mark_unseen(tables, seen)
        yield Trial("html, hostile", name, data, tables, read_and_judge(data, tables))


def run_ordinary(count: int) -> Iterator[Trial]:
    """Read and judge this many ordinary pages, each kind in turn."""
    for number in range(count):
        name = [*ORDINARY][number % len(ORDINARY)]
        random = Random(number)
        rows = random.randint(1, MAX_ROWS)
        tables = draw_tables(random, paper=False, rows=rows, units_in_captions=False)
        data = write_page(Draft(tables), ORDINARY[name]).encode()
        yield Trial("html, ordinary", name, data, tables, read_and_judge(data, tables))


def find_contradicted() -> list[str]:
    """Return the constructs whose figures a browser does not show although `hostile.toml` says that
    they are seen.
    """
    pages = {name: build_page(name, 0) for name, entry in CONSTRUCTS.items() if entry.get("seen")}
    shown = browser.render(data.decode() for data, _ in pages.values())
    return [
        name
        for (name, (_, tables)), seen in zip(pages.items(), shown, strict=True)
        if browser.mark_unseen(tables, seen) != tables
    ]
