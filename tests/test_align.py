"""Cutting a run of cells into rows: what is trusted, what is not, and how long it may take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.read.align import RowSpan, align, contains_row

from tests.reading_support import GPT2, LAYOUTS, RESNET, TGN, TRAINING, WORDS, cell_of

FIELDS = [WORDS.layout("graphcore-performance", "bow_training").field_of(name) for name in TRAINING]
THREE = [*GPT2, *RESNET, *GPT2]
ROW = st.tuples(*(cell_of(field, "bow") for field in FIELDS)).map(list)


def spans(cells: list[str]) -> list[tuple[int, int, bool]]:
    return [tuple(span) for span in align(cells, FIELDS)]


def readable(cells: list[str]) -> list[list[str]]:
    return [cells[span.start : span.stop] for span in align(cells, FIELDS) if span.readable]


def test_nothing_gives_no_rows() -> None:
    assert align([], FIELDS) == []


def test_whole_rows() -> None:
    assert align(THREE, FIELDS) == [RowSpan(0, 9, True), RowSpan(9, 18, True), RowSpan(18, 27, True)]


def test_a_lost_cell_spoils_its_row_alone() -> None:
    assert spans(THREE[:12] + THREE[13:]) == [(0, 9, True), (9, 17, False), (17, 26, True)]


def test_a_cell_too_many_spoils_the_rows_that_may_own_it() -> None:
    assert spans([*GPT2, *RESNET, "Alien", *GPT2, *RESNET, *GPT2]) == [
        (0, 9, True),
        (9, 28, False),
        (28, 37, True),
        (37, 46, True),
    ]


def test_one_cell_of_the_wrong_shape_stays_in_its_row() -> None:
    odd = [*GPT2[:8], "4,4O7"]
    assert readable([*RESNET, *odd, *RESNET]) == [RESNET, odd, RESNET]


def test_two_cells_of_the_wrong_shape_spoil_the_row_alone() -> None:
    odd = [*GPT2[:7], "4,4O7", "l2"]
    assert spans([*RESNET, *odd, *RESNET]) == [(0, 9, True), (9, 18, False), (18, 27, True)]


def test_a_shifted_row_spoils_its_neighbours() -> None:
    """A cell lost in one row and one too many in the next: both rows are as long as they should be."""
    shifted = [*RESNET[1:], RESNET[0]]
    assert spans([*GPT2, *shifted, *GPT2, *GPT2]) == [(0, 27, False), (27, 36, True)]


def test_two_cells_lost_in_one_place_may_have_taken_more_from_the_rows_beside() -> None:
    assert spans(THREE[:12] + THREE[14:]) == [(0, 25, False)]


def test_cells_behind_the_last_row() -> None:
    assert [readable([*THREE, *RESNET, *GPT2[:count]])[:3] for count in (1, 5, 8)] == [[GPT2, RESNET, GPT2]] * 3
    assert all(not align([*THREE, *GPT2[:count]], FIELDS)[-1].readable for count in range(1, 9))


@given(st.lists(ROW, min_size=1, max_size=6), st.data())
def test_spans_cover_every_cell_in_order(rows: list[list[str]], data: st.DataObject) -> None:
    cells = [cell for row in rows for cell in row]
    for place in sorted(data.draw(st.sets(st.integers(0, len(cells) - 1), max_size=4)), reverse=True):
        del cells[place]
    told = align(cells, FIELDS)
    assert [span.start for span in told] == [0, *(span.stop for span in told)][: len(told)]
    assert [span.stop for span in told][-1:] == ([len(cells)] if cells else [])
    assert all(span.stop - span.start == len(FIELDS) for span in told if span.readable)


@given(st.lists(ROW, min_size=1, max_size=6), st.data())
def test_one_or_two_lost_cells_never_make_a_wrong_row(rows: list[list[str]], data: st.DataObject) -> None:
    cells = [cell for row in rows for cell in row]
    places = data.draw(st.sets(st.integers(0, len(cells) - 1), min_size=1, max_size=2))
    left = [cell for place, cell in enumerate(cells) if place not in places]
    assert [row for row in readable(left) if row not in rows] == []
    assert any(not span.readable for span in align(left, FIELDS)) or not left


@given(st.lists(st.text(max_size=6), max_size=60))
def test_any_cells_are_cut_without_an_exception(cells: list[str]) -> None:
    assert sum(span.stop - span.start for span in align(cells, FIELDS)) == len(cells)


@pytest.mark.parametrize("cells", [[""] * 20_000, ["1"] * 20_001, [*GPT2 * 2000, "1"], [*TGN, ""] * 2000])
def test_many_ambiguous_cells_are_cut_without_running_out_of_anything(cells: list[str]) -> None:
    assert sum(span.stop - span.start for span in align(cells, FIELDS)) == len(cells)


def test_a_row_is_recognised_without_its_header() -> None:
    assert all(contains_row(["x", *row, "1"], LAYOUTS) for row in (GPT2, RESNET, TGN))


@pytest.mark.parametrize("cells", [[], GPT2[:-1], ["GPT2"] * 20, ["1", "2.5"], TRAINING * 2])
def test_other_cells_are_no_row(cells: list[str]) -> None:
    assert not contains_row(cells, WORDS.layouts)
