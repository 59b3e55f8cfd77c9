"""Pages with one construct each that hides, moves or alters a figure; `hostile.toml` says what a
browser shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from random import Random

import msgspec

from benchmarks.documents import browser
from benchmarks.documents.html import MARKUPS, ORDINARY, write_page
from benchmarks.documents.judge import Trial, read_and_judge
from benchmarks.documents.mutations import Draft, mark_unreadable
from benchmarks.documents.tables import Table, draw_tables


class Construct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a page has that hides, moves or alters a figure; each text is a template."""

    cell: str
    """The markup of a figure: {0} is the figure, {1} a random digit."""
    head: str = ""
    near: str = ""
    after: str = ""
    markup: dict[str, str] = {}
    """Parts of the markup of the table, see `html.Markup`."""
    seen: bool = False
    """Whether a browser shows the figure as it is printed."""
    unknowable: str = ""
    """Why a written page does not say what it shows, if so."""


CONSTRUCTS = msgspec.toml.decode(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"), type=dict[str, Construct]
)
MAX_ROWS = 4
STRIDE = 11  # has no common divisor with the number of constructs
DECOY = re.compile(r'<tr class="q">.*?</tr>', re.S)
"""A row that a browser hides: that before it with other figures."""
FIRST_DIGIT = re.compile(r"(?<=<td>)\d(?=[\d,.]*</td>)")


def build_page(name: str, seed: int) -> tuple[bytes, list[Table]]:
    """Return a page in which some figures have a construct, and the tables that a browser shows."""
    construct = CONSTRUCTS[name]
    random = Random(seed)
    rows = random.randint(1, MAX_ROWS)
    tables = draw_tables(random, paper=False, rows=rows)
    # by a rule or a text for all of the figures
    changes_all = not construct.seen and construct.cell == "{0}"
    for table in tables:
        for row in table.rows:
            places = [place for place, cell in enumerate(row) if cell.value is not None]
            for place in places if changes_all else random.sample(places, 1):
                markup = construct.cell.format(row[place].text, random.randint(1, 9))
                cell = replace(row[place], markup=markup)
                row[place] = cell if construct.seen else mark_unreadable(cell)
    page = write_page(Draft(tables), replace(MARKUPS["plain"], **construct.markup))
    page = page.replace("</head>", construct.head.format() + "</head>", 1)
    page = DECOY.sub(_change_digits, page)
    page = page.replace("<table", f"{construct.near.format()}<table")
    page = page.replace("</body>", f"{construct.after.format()}</body>")
    return page.encode(), tables


def _change_digits(row: re.Match[str]) -> str:
    """Return a hidden row with other figures than that before it."""
    return FIRST_DIGIT.sub(lambda digit: str(int(digit[0]) % 9 + 1), row[0])


def run_hostile(count: int) -> Iterator[Trial]:
    """Read and judge this many pages, each construct in turn, of all kinds also if they are few; by
    what a browser shows, too, if there is one.
    """
    names = [name for name, construct in CONSTRUCTS.items() if not construct.unknowable]
    made = []
    for number in range(count):
        name = names[STRIDE * number % len(names)]
        made.append((name, *build_page(name, number)))
    shown: Iterable[list[browser.ShownTable] | None] = repeat(None)
    if browser.is_installed():
        shown = browser.render(data.decode() for _, data, _ in made)
    for (name, data, tables), seen in zip(made, shown, strict=False):
        visible = tables if seen is None else browser.mark_unseen(tables, seen)
        yield Trial("html, hostile", name, data, visible, read_and_judge(data, visible))


def run_ordinary(count: int) -> Iterator[Trial]:
    """Read and judge this many ordinary pages, each kind in turn."""
    names = list(ORDINARY)
    for number in range(count):
        name = names[number % len(names)]
        random = Random(number)
        tables = draw_tables(random, paper=False, rows=random.randint(1, MAX_ROWS))
        data = write_page(Draft(tables), ORDINARY[name]).encode()
        yield Trial("html, ordinary", name, data, tables, read_and_judge(data, tables))


def find_contradicted(count: int) -> list[str]:
    """Return the constructs, of this many, whose figures a browser does not show although
    `hostile.toml` says that they are seen.
    """
    seen_names = [name for name, construct in CONSTRUCTS.items() if construct.seen]
    count = min(count, len(seen_names))
    names = [seen_names[STRIDE * number % len(seen_names)] for number in range(count)]
    made = [build_page(name, 0) for name in names]
    shown = browser.render(data.decode() for data, _ in made)
    contradicted = []
    for name, (_, tables), seen in zip(names, made, shown, strict=True):
        if browser.mark_unseen(tables, seen) != tables:
            contradicted.append(name)
    return contradicted
