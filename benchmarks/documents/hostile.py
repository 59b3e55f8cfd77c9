"""Pages with one construct each that hides, moves or alters a figure; `hostile.toml` says what a browser shows."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.documents.html import MARKUPS, write_page, write_table
from benchmarks.documents.judge import Verdict, read_and_judge
from benchmarks.documents.mutations import Draft, mark_unreadable
from benchmarks.documents.tables import Table, draw_tables

CONSTRUCTS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
MAX_ROWS = 4


def build_page(construct: str, seed: int) -> tuple[bytes, list[Table]]:
    """Return a page in which some figures have a construct, and the tables that a browser shows."""
    entry, random = CONSTRUCTS[construct], Random(seed)
    tables = draw_tables(random, paper=False, rows=random.randint(1, MAX_ROWS), units_in_captions=False)
    changes_all = not entry.get("seen") and entry["cell"] == "{0}"  # by a rule or a text for all of the figures
    for number, table in enumerate(tables):
        rows = [list(row) for row in table.rows]
        for row in rows:
            places = [place for place, cell in enumerate(row) if cell.value is not None]
            for place in places if changes_all else random.sample(places, 1):
                markup = entry["cell"].format(row[place].text, random.randint(1, 9))
                row[place] = replace(row[place], markup=markup)
                row[place] = row[place] if entry.get("seen") else mark_unreadable(row[place])
        tables[number] = replace(table, rows=tuple(map(tuple, rows)))
    markup = MARKUPS["plain"]
    page = write_page(Draft(tables), [write_table(table, markup, {}) for table in tables], markup)
    page = page.replace("</head>", entry.get("head", "").format() + "</head>", 1)
    near = entry.get("near", "")
    return page.replace("<table", f"{near}<table").encode(), tables


def run_hostile(count: int) -> Iterator[tuple[str, Verdict]]:
    """Read and judge this many pages, each construct in turn."""
    names = list(CONSTRUCTS)
    for number in range(count):
        yield names[number % len(names)], read_and_judge(*build_page(names[number % len(names)], number))
