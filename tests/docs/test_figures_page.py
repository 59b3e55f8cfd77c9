"""Every example of the page of figures is run."""

from __future__ import annotations

import re

import pytest
from ipu_results.record.normalise.decimal_mark import DecimalMark
from ipu_results.record.normalise.values import UnreadableCellError, parse_number
from ipu_results.record.read.text import clean_cell

from tests.docs.docs_support import REFERENCE

PAGE = (REFERENCE / "figures.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines()]
MARKED = [row for row in ROWS if len(row) == 5 and "`" in row[0]]
REFUSED = [text for row in ROWS if len(row) == 2 for text in re.findall("`([^`]+)`", row[1])]


def read(text: str, mark: DecimalMark) -> str:
    try:
        return str(parse_number(clean_cell(text), mark))
    except UnreadableCellError:
        return "–"


@pytest.mark.parametrize("row", MARKED)
def test_figure_with_either_mark(row: list[str]) -> None:
    text, *values = (cell.strip(" `") for cell in row)
    assert [read(text, mark) for mark in DecimalMark] == values


def test_footnotes() -> None:
    marks, others = PAGE.split("## Footnotes")[1].split(", and other raised")
    lifted = re.findall("`([^`]+)`", marks)
    assert lifted == ["*", "†", "‡", "§", "¶", "1"]
    for mark in (*lifted[:-1], "¹"):
        assert [clean_cell(f"{figure}{mark}") for figure in ("37112", "1.94")] == ["37112", "1.94"]
    raised = re.findall("`([^`]+)`", others)
    assert [clean_cell(figure) for figure in raised] == ["37,112", "1.94"]
    for figure in ("37112²", "1.94(1)", "1.94[1]"):
        assert [read(figure, mark) for mark in DecimalMark] == ["–"] * len(DecimalMark)


def test_quarantined_figures() -> None:
    assert len(MARKED) == 10
    assert len(REFUSED) > 30
    assert [text for text in REFUSED for mark in DecimalMark if read(text, mark) != "–"] == []
