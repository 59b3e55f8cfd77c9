"""The record of a local run becomes one row of text, or one error that names the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.dispatch import read_document
from ipu_results.record.read.records import read_sweep_record

from tests.cases import every_case
from tests.record.read.reading_support import WORDS
from tests.runner.runs_support import record

LAYOUTS = WORDS.headers_of("sweep-record")
NAMES = LAYOUTS[0].names


def read(value: Any) -> ParsedDocument:
    return read_sweep_record(json.dumps(value).encode(), LAYOUTS)


def failure(data: bytes) -> str:
    with pytest.raises(DamagedDocumentError) as caught:
        read_sweep_record(data, LAYOUTS)
    return str(caught.value)


def test_record_is_one_row_with_a_place_for_each_cell() -> None:
    [table] = read(record(versions={"b": "2", "a": "1"})).tables
    [row] = table.rows
    cells = dict(zip(table.columns, row.cells, strict=True))
    assert (table.name, table.columns, row.number, row.locator) == ("runs", NAMES, 1, "$")
    assert (cells["started_at"], cells["device"]) == ("2026-11-21T13:45:01Z", "cpu")
    assert cells["versions"] == '{"a": "1", "b": "2"}'
    assert cells["notes"] == '["auto took the CPU: no IPU is here"]'
    assert table.cell_locator(row, NAMES.index("started_at")) == "$.started_at"


def test_kind_is_guessed_and_order_of_keys_and_blanks_do_not_matter() -> None:
    value = record()
    turned = dict(reversed(value.items()))
    data = json.dumps(turned, indent=3).encode()
    assert read_sweep_record(data, LAYOUTS) == read(value)
    assert read_document(data, WORDS.table_headers) == read(value)


@every_case(__file__, "change")
def test_value_of_another_type_is_named(change: dict[str, Any], message: str) -> None:
    assert failure(json.dumps(record(**change)).encode()).endswith(message)


@pytest.mark.parametrize("text", ["\ud800", {"\udfff": 1}])
def test_lone_surrogate_is_named(text: Any) -> None:
    data = json.dumps(record(setup={"a": text})).encode()
    assert failure(data) == "$.setup: has a number beyond doubles or a lone surrogate"


@every_case(__file__, "broken")
def test_broken_record_is_one_line(old: str, new: str, message: str) -> None:
    text = json.dumps(record())
    assert text.count(old) == 1
    line = failure(text.replace(old, new).encode())
    assert message in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("number", "message"),
    [("9" * 5000, "Exceeds the limit"), ("[" * 200_000 + "]" * 200_000, "recursion")],
)
def test_number_or_list_without_end_is_refused(number: str, message: str) -> None:
    assert message in failure(json.dumps(record()).replace(": 0,", f": {number},").encode())


@pytest.mark.parametrize("data", [b'["run_id"]', b'"run_id"', b"{}", b"null", b'{"a": 1}'])
def test_other_json_is_not_recognised(data: bytes) -> None:
    with pytest.raises(UnrecognisedDocumentError, match=r"^\$: is not the record of a sweep"):
        read_sweep_record(data, LAYOUTS)
