"""The measurement of what `extract` reads of papers counts a figure only at its own place."""

from __future__ import annotations

import tomllib

import pytest

from benchmarks.papers import ROOT, compare, list_printed_rows, make_header, pick_figures

ENTRIES = tomllib.loads((ROOT / "benchmarks" / "papers.toml").read_text(encoding="utf-8"))["table"]
PRINTED = [{"IPU": "15.04", "V100": "6.26"}, {"IPU": "62.07"}, {"IPU": "15.04", "V100": "6.26"}]


@pytest.mark.parametrize(
    "entry", ENTRIES, ids=lambda entry: f"{entry['document']}, {entry['number']}"
)
def test_every_column_of_an_entry_is_in_the_transcription(entry: dict[str, object]) -> None:
    printed = list_printed_rows(str(entry["document"]), str(entry["number"]))
    figures = entry["figures"]
    assert isinstance(figures, dict)
    assert {column for row in printed for column in row} == set(filter(None, figures.values()))
    assert make_header(entry).keys


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        (PRINTED, (5, 0)),
        (PRINTED[1:], (3, 0)),
        ([{"IPU": "6.26", "V100": "15.04"}], (0, 1)),
        ([{"IPU": "62.07", "V100": "6.26"}], (0, 1)),
        ([{"IPU": "15.0", "V100": "6.26"}, PRINTED[1]], (1, 1)),
        ([PRINTED[1], PRINTED[2], PRINTED[1]], (3, 1)),
        ([{}, PRINTED[0]], (2, 0)),
    ],
)
def test_only_rows_as_printed_and_in_their_order_count(
    rows: list[dict[str, str]], counts: tuple[int, int]
) -> None:
    found = compare(rows, PRINTED)
    assert (found.right, found.wrong_rows) == counts


def test_figures_are_taken_with_their_units_and_ranges_are_not() -> None:
    cells = ("Conv1", "6,341.", "0.165 µs", "7,261 .. 12,420", "", "31.1 TFlops/s")
    assert pick_figures(("", "a", "b", "c", "d", "e"), cells) == {
        "a": "6,341",
        "b": "0.165",
        "e": "31.1",
    }
