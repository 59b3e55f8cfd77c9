"""The measurement of what `extract` reads of papers counts a figure only at its own place."""

from __future__ import annotations

import tomllib

import pytest

from benchmarks.papers import ROOT, compare, list_printed_rows, make_header, pick_figures
from tests.cases import every_case, read_cases

ENTRIES = tomllib.loads((ROOT / "benchmarks" / "papers.toml").read_text(encoding="utf-8"))["table"]


@pytest.mark.parametrize(
    "entry", ENTRIES, ids=lambda entry: f"{entry['document']}, {entry['number']}"
)
def test_every_column_of_an_entry_is_in_the_transcription(entry: dict[str, object]) -> None:
    printed = list_printed_rows(str(entry["document"]), str(entry["number"]))
    figures = entry["figures"]
    assert isinstance(figures, dict)
    assert {column for row in printed for column in row} == set(filter(None, figures.values()))
    assert make_header(entry).keys


@every_case(__file__, "extracted")
def test_only_rows_as_printed_and_in_their_order_count(
    rows: list[dict[str, str]], right: int, wrong_rows: int
) -> None:
    found = compare(rows, read_cases(__file__)["printed"])
    assert found.right == right
    assert found.wrong_rows == wrong_rows


def test_figures_are_taken_with_their_units_and_ranges_are_not() -> None:
    cells = ("Conv1", "6,341.", "0.165 µs", "7,261 .. 12,420", "", "31.1 TFlops/s")
    figures = pick_figures(("", "a", "b", "c", "d", "e"), cells)
    assert figures == {"a": "6,341", "b": "0.165", "e": "31.1"}
