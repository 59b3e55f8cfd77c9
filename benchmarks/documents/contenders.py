"""Read generated documents with other programs: pandas.read_html and pdfplumber."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation

import pandas as pd
import pdfplumber
from ipu_results.record.read.text import clean
from ipu_results.schema.vocabulary import normalise_header

from benchmarks.documents.judge import EXACT, REPORTED, SILENT, Verdict
from benchmarks.documents.tables import UNREADABLE, Cell, Table

Grid = Sequence[Sequence[str]]
GridReader = Callable[[bytes], Iterable[Grid]]


def judge_grids(read: GridReader, data: bytes, tables: Sequence[Table]) -> Verdict:
    """Judge a program that returns grids of text: leniently, because a user would find the columns
    by their names.

    A document is exact if each printed table has a grid with its names in one row, and its rows
    below, with no others that look like rows. An error, or no grid at all, is a report.
    """
    grids = []
    try:
        with warnings.catch_warnings(action="ignore"):
            for grid in read(data):
                grids.append([list(map(clean, row)) for row in grid])
    except Exception as error:  # whatever the program raises tells its user that something is wrong
        return Verdict(REPORTED, f"{type(error).__name__}: {error}"[:200])
    if not any(grids):
        return Verdict(REPORTED, "no table")
    for table in tables:
        if not any(_matches(grid, table) for grid in grids):
            return Verdict(SILENT, f"{table.header.table} is in no grid")
    return Verdict(EXACT)


def _matches(grid: Grid, table: Table) -> bool:
    names = list(map(normalise_header, table.columns))
    for start, row in enumerate(grid):
        header = list(map(normalise_header, row))
        if set(names) <= set(header):
            places = [header.index(name) for name in names]
            return _has_rows(grid[start + 1 :], places, table)
    return False


def _has_rows(below: Grid, places: Sequence[int], table: Table) -> bool:
    """Check whether the rows of a table are below its header, and no others up to the next one."""
    names = set(map(normalise_header, table.columns))
    rows = []
    for row in below:
        if not names.isdisjoint(map(normalise_header, row)):
            break
        if any(row):
            rows.append([row[place] for place in places])
    printed = table.rows
    if len(rows) < len(printed):
        return False
    for row in rows[len(printed) :]:
        if all(row) and len(set(row)) > 1:  # a row of one text is a note
            return False
    return all(all(map(_equals, row, cells)) for row, cells in zip(rows, printed, strict=False))


def _equals(text: str, cell: Cell) -> bool:
    if cell.metric == UNREADABLE:
        # the text as printed lets the user see that it is not a figure
        return text == clean(cell.printed)
    if cell.value is None:
        return text == clean(cell.text) or (text in ("", "nan") and not cell.text)
    if re.search("[a-z]", cell.text) and not cell.metric:
        return text == clean(cell.text)  # a duration
    figure = text.removesuffix(cell.metric).strip()
    try:
        return Decimal(figure.replace(",", "")) == cell.value
    except InvalidOperation:
        return False


def read_with_pandas(data: bytes) -> Iterable[Grid]:
    """Return header and rows of each frame.

    The marks of thousands and decimals are those of the pandas defaults.
    """
    for frame in pd.read_html(io.BytesIO(data), flavor="lxml"):
        grid = [[str(name[-1] if isinstance(name, tuple) else name) for name in frame.columns]]
        for row in frame.values.tolist():
            grid.append(["" if pd.isna(cell) else str(cell) for cell in row])
        yield grid


def read_with_pdfplumber(strategy: str) -> GridReader:
    def read(data: bytes) -> Iterable[Grid]:
        settings = {"vertical_strategy": strategy, "horizontal_strategy": strategy}
        with pdfplumber.open(io.BytesIO(data)) as document:
            for page in document.pages:
                for grid in page.extract_tables(settings):
                    yield [[cell or "" for cell in row] for row in grid]

    return read


CONTENDERS: dict[str, dict[str, GridReader]] = {
    "html": {"pandas.read_html": read_with_pandas},
    "pdf": {
        "pdfplumber, lines": read_with_pdfplumber("lines"),
        "pdfplumber, text": read_with_pdfplumber("text"),
    },
}
