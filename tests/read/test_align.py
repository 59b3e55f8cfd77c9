"""Cutting a run of cells into rows: which rows are trusted, and for how long it may take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.read.document import contains_row
from ipu_results.read.page_text import RowSpan, align

from tests.read.reading_support import GPT2, LAYOUTS, OGB, RESNET, TGN, TRAINING, WORDS, cell_of

FIELDS = [WORDS.header_of("performance-page", "bow_training").field_of(name) for name in TRAINING]
THREE = [*GPT2, *RESNET, *GPT2]
ROW = st.tuples(*(cell_of(field, "bow") for field in FIELDS)).map(list)
MISREAD = [*GPT2[:7], "4,4O7", "l2"]
SHIFTED = [*RESNET[1:], RESNET[0]]
"""A cell is lost in one row and one too many in the next: both rows are as long as they should be.
"""


def readable(cells: list[str]) -> list[list[str]]:
    return [cells[span.start : span.stop] for span in align(cells, FIELDS) if span.readable]


SPANS = {
    "no cells": ([], []),
    "whole rows": (THREE, [(0, 9, True), (9, 18, True), (18, 27, True)]),
    "a lost cell costs its row alone": (
        THREE[:12] + THREE[13:],
        [(0, 9, True), (9, 17, False), (17, 26, True)],
    ),
    "a cell too many costs the rows that may own it": (
        [*GPT2, *RESNET, "Alien", *GPT2, *RESNET],
        [(0, 9, True), (9, 28, False), (28, 37, True)],
    ),
    "one cell of the wrong shape stays in its row": (
        [*RESNET, *MISREAD[:8], GPT2[8], *RESNET],
        [(0, 9, True), (9, 18, True), (18, 27, True)],
    ),
    "two cells of the wrong shape cost the row alone": (
        [*RESNET, *MISREAD, *RESNET],
        [(0, 9, True), (9, 18, False), (18, 27, True)],
    ),
    "a shifted row costs its neighbours": (
        [*GPT2, *SHIFTED, *GPT2, *GPT2],
        [(0, 27, False), (27, 36, True)],
    ),
    "two cells lost in one place may have taken more from the next rows": (
        THREE[:12] + THREE[14:],
        [(0, 25, False)],
    ),
}


@pytest.mark.parametrize(("cells", "spans"), SPANS.values(), ids=SPANS)
def test_rows_are_trusted_only_if_no_other_cut_is_as_good(
    cells: list[str], spans: list[tuple[int, int, bool]]
) -> None:
    assert align(cells, FIELDS) == [RowSpan(*span) for span in spans]


def test_rows_of_two_cuts_that_are_as_good_are_unreadable() -> None:
    fields = [WORDS.header_of("performance-page", "ogb_lsc").field_of(name) for name in OGB]
    row = "WikiKG90Mv2|TransE (256)|Bow Pod16|SDK 3.0|Poplar|1,260,000|11h 50m|0.2562 MRR|First".split(
        "|"
    )
    # The last three cells of the first row may be the first three of the second, which are lost.
    assert align([*row, *row[3:]], fields) == [RowSpan(0, 15, False)]


CELLS = st.lists(ROW, min_size=1, max_size=6).map(
    lambda rows: [cell for row in rows for cell in row]
)


@given(CELLS | st.lists(st.text(max_size=6), max_size=60), st.sets(st.integers(0, 53), max_size=4))
def test_spans_cover_every_cell_in_order(cells: list[str], lost: set[int]) -> None:
    cells = [cell for place, cell in enumerate(cells) if place not in lost]
    spans = align(cells, FIELDS)
    assert [span.start for span in spans] == [0, *(span.stop for span in spans)][: len(spans)]
    assert [span.stop for span in spans][-1:] == ([len(cells)] if cells else [])
    assert all(span.stop - span.start == len(FIELDS) for span in spans if span.readable)


@given(st.lists(ROW, min_size=1, max_size=6), st.data())
def test_one_or_two_lost_cells_never_make_a_wrong_row(
    rows: list[list[str]], data: st.DataObject
) -> None:
    cells = [cell for row in rows for cell in row]
    places = data.draw(st.sets(st.integers(0, len(cells) - 1), min_size=1, max_size=2))
    left = [cell for place, cell in enumerate(cells) if place not in places]
    assert [row for row in readable(left) if row not in rows] == []
    assert any(not span.readable for span in align(left, FIELDS)) or not left


@pytest.mark.parametrize("cells", [[""] * 20_000, [*GPT2 * 2000, "1"], [*TGN, ""] * 2000])
def test_many_ambiguous_cells_are_cut_in_linear_time(cells: list[str]) -> None:
    assert sum(span.stop - span.start for span in align(cells, FIELDS)) == len(cells)


def test_row_is_recognised_without_its_header() -> None:
    assert all(contains_row(["x", *row, "1"], LAYOUTS) for row in (GPT2, RESNET, TGN))
    for cells in ([], GPT2[:-1], ["GPT2"] * 20, ["1", "2.5"], TRAINING * 2):
        assert not contains_row(cells, WORDS.table_headers)
