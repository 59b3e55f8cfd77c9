"""Tables from CSV: the committed files, and how a damaged one is reported."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.records import read_csv
from ipu_results.schema.vocabulary import has_units

from tests.record.read.reading_support import (
    RESNET,
    TEXT,
    WORDS,
    assert_read,
    grids,
    problems,
    with_cell,
)

HISTORY = WORDS.headers_of("performance-csv")
HEADER = [*HISTORY[0].names[:8], "throughput (items/s)"]
ROW = [*RESNET[:3], "Pre-SDK2.5", *RESNET[4:6], "1,920", "16.16", "42029"]


def write_csv(*rows: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def read(data: bytes) -> ParsedDocument:
    return read_csv(data, HISTORY)


def test_line_ends_byte_order_mark_and_unusual_blanks() -> None:
    plain = write_csv(HEADER, ROW)
    blanks = write_csv(HEADER, [f"\u00a0\u200b {cell}\u2003" for cell in ROW])
    # the last line break is not needed after a whole row
    for data in (plain, plain[:-1], plain.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + blanks):
        assert_read(read(data), bow_training_history=[ROW])


def test_quoted_line_break_is_a_blank_and_a_row_of_another_width_a_problem() -> None:
    document = read(
        write_csv(HEADER, with_cell(ROW, 0, "ResNet-50\nv1.5"), ROW[:-1], [*ROW, "1"], ROW)
    )
    assert grids(document) == {"bow_training_history": [ROW, ROW]}
    assert [row.locator for row in document.tables[0].rows] == ["line 3", "line 6"]
    name = "bow_training_history"
    assert problems(document) == [f"{name} 2 row-width", f"{name} 3 row-width"]
    assert [problem.locator for problem in document.problems] == ["line 4", "line 5"]


def test_lost_or_renamed_header_name_is_a_problem() -> None:
    for header in (HEADER[1:], with_cell(HEADER, 5, "other")):
        assert problems(read(write_csv(header, ROW))) == ["unknown-header"]
    assert problems(read(write_csv(HEADER))) == ["bow_training_history no-rows"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (write_csv(HEADER, ROW, ROW)[:-40], "truncated"),
        # an open quote is not one long row
        (write_csv(HEADER, ROW) + b'"ResNet,\n' + write_csv(ROW), "line"),
    ],
)
def test_truncated_file_or_open_quote_is_damage(data: bytes, message: str) -> None:
    with pytest.raises(DamagedDocumentError, match=message):
        read(data)


@pytest.mark.parametrize("data", [b"a,b,c\n1,2,3\n", b"x" * 200_000 + b"\n", b'"\n', b",,,\n"])
def test_file_without_a_known_header_is_not_recognised(data: bytes) -> None:
    with pytest.raises(UnrecognisedDocumentError):
        read(data)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.just("m"), *[TEXT] * 8).map(list), min_size=1, max_size=5))
def test_any_cells_are_read_back(rows: list[list[str]]) -> None:
    header = HISTORY[0]
    fields = [header.field_of(name) for name in HEADER]
    assume(not any(has_units(row, fields) for row in rows))  # it is about the figures below it
    known = [ROW, *rows]
    document = read(write_csv(HEADER, *known))
    assert_read(document, bow_training_history=known)
