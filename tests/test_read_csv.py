"""Our own transcriptions in CSV: the carried ones, and what a damaged one is told to be."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, DocumentError, UnrecognisedDocumentError
from ipu_results.read.csv_table import read_csv
from ipu_results.read.document import ParsedDocument

from tests.reading_support import ROOT, TEXT, WORDS, grids, refusals

HISTORY = WORDS.layouts_of("page-history")
COMPARATORS = WORDS.layouts_of("comparators")
HEADER = [
    "model",
    "variant",
    "platform",
    "sdk_version",
    "framework",
    "dataset",
    "batch_size",
    "precision",
    "throughput (items/s)",
]
ROW = ["ResNet-50 v1.5", "", "Bow Pod16", "Pre-SDK2.5", "TensorFlow1", "ImageNet2012", "1,920", "16.16", "42029"]


def csv_of(*rows: list[str]) -> bytes:
    told = io.StringIO()
    csv.writer(told, lineterminator="\n").writerows(rows)
    return told.getvalue().encode()


def read(data: bytes) -> ParsedDocument:
    return read_csv(data, HISTORY)


@pytest.mark.parametrize(
    ("name", "count", "last"),
    [
        (
            "2022-03",
            17,
            "TGN|Temporal Graph Network|1x Bow IPU|Pre-SDK2.5|TensorFlow1|JODIE Wikipedia|200|16.16|190472",
        ),
        ("2022-h2", 19, None),
        ("2023-h1", 14, None),
    ],
)
def test_carried_page_histories(name: str, count: int, last: str | None) -> None:
    reading = read((ROOT / f"raw/graphcore/performance-{name}.csv").read_bytes())
    rows = grids(reading)["bow_training_history"]
    assert (len(rows), reading.problems, reading.tables[0].rows[0].locator) == (count, (), "line 2")
    assert last is None or len(last.split("|")) == len(rows[-1])


def test_first_row_of_the_first_history() -> None:
    reading = read((ROOT / "raw/graphcore/performance-2022-03.csv").read_bytes())
    assert list(reading.tables[0].columns) == HEADER
    assert grids(reading)["bow_training_history"][0] == ROW


def test_carried_comparators() -> None:
    reading = read_csv((ROOT / "raw/nvidia/a100-comparators.csv").read_bytes(), COMPARATORS)
    assert {name: len(rows) for name, rows in grids(reading).items()} == {"nvidia_a100": 284}
    assert grids(reading)["nvidia_a100"][0][3:] == [
        "2020-11-03",
        "1x A100-SXM4-40GB (DGX A100)",
        "ResNeXt101-32x4d",
        "training",
        "TF32+XLA",
        "128 (TF) / 256 (AMP) /GPU",
        "throughput img/s",
        "371",
    ]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_line_ends(ending: bytes) -> None:
    assert grids(read(csv_of(HEADER, ROW).replace(b"\n", ending))) == {"bow_training_history": [ROW]}


def test_a_mark_of_byte_order_and_unusual_blanks() -> None:
    data = b"\xef\xbb\xbf" + csv_of(HEADER, [f"\u00a0{cell}\u200b " for cell in ROW])
    assert grids(read(data)) == {"bow_training_history": [ROW]}


def test_a_quoted_line_break_is_a_blank_and_the_locator_counts_lines() -> None:
    reading = read(csv_of(HEADER, ["ResNet-50\nv1.5", *ROW[1:]], ROW))
    assert grids(reading) == {"bow_training_history": [ROW, ROW]}
    assert [row.locator for row in reading.tables[0].rows] == ["line 3", "line 4"]


@pytest.mark.parametrize("row", [ROW[:-1], [*ROW, "1"], ["x"]])
def test_a_row_too_short_or_too_long(row: list[str]) -> None:
    reading = read(csv_of(HEADER, ROW, row, ROW))
    assert grids(reading) == {"bow_training_history": [ROW, ROW]}
    assert [(p.row_number, p.reason, p.locator) for p in reading.problems] == [(2, "row-width", "line 3")]


@pytest.mark.parametrize("column", range(len(HEADER)))
def test_a_lost_or_renamed_header_name(column: int) -> None:
    for header in (HEADER[:column] + HEADER[column + 1 :], [*HEADER[:column], "other", *HEADER[column + 1 :]]):
        assert refusals(read(csv_of(header, ROW))) == [("", None, "unknown-header")]


def test_rows_under_a_misspelled_header_above_a_good_one_are_a_problem() -> None:
    reading = read(csv_of([*HEADER[:5], "data source", *HEADER[6:]], ROW, HEADER, ROW))
    assert grids(reading) == {"bow_training_history": [ROW]}
    assert refusals(reading) == [("", None, "unknown-header")]
    assert "'data source'" in reading.problems[0].message


@pytest.mark.parametrize("data", [csv_of(HEADER), csv_of(HEADER) + b"\n\n"])
def test_a_header_without_rows(data: bytes) -> None:
    assert refusals(read(data)) == [("bow_training_history", None, "no-rows")]


@pytest.mark.parametrize("size", [1, 3, 40])
def test_a_file_cut_off(size: int) -> None:
    with pytest.raises(DamagedDocumentError, match="truncated"):
        read(csv_of(HEADER, ROW, ROW)[:-size])


def test_an_open_quote_is_no_row_of_many_lines() -> None:
    with pytest.raises(DamagedDocumentError, match="line"):
        read(csv_of(HEADER, ROW) + b'"ResNet,\n' + csv_of(ROW))


@pytest.mark.parametrize(
    "data", [b"a,b,c\n1,2,3\n", b"x" * 200_000 + b"\n", b"a\rb\n", b'"\n', b"<html>\n", b",,,\n", b"\n1\n"]
)
def test_a_file_without_a_known_header(data: bytes) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read(data)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.just("m"), *[TEXT] * 8).map(list), min_size=1, max_size=5))
def test_any_cells_are_read_back(rows: list[list[str]]) -> None:
    reading = read(csv_of(HEADER, *rows))
    assert grids(reading) == {"bow_training_history": rows}
    assert reading.problems == ()


@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for document in (data, csv_of(HEADER, ROW) + data):
        try:
            reading = read(document)
        except DocumentError:
            continue
        assert reading.tables or reading.problems
