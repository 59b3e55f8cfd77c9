"""The record of a local run becomes one row of text, or one error that names the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, UnrecognisedDocumentError
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.dispatch import read_document
from ipu_results.record.read.records import read_sweep_record

from tests.record.read.reading_support import WORDS, assert_read_or_refused
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
    assert (cells["versions"], cells["notes"]) == (
        '{"a": "1", "b": "2"}',
        '["auto took the CPU: no IPU is here"]',
    )
    assert row.cell_locators == tuple(f"$.{name}" for name in NAMES)
    assert table.cell_locator(row, NAMES.index("started_at")) == "$.started_at"


def test_kind_is_guessed_and_order_of_keys_and_blanks_do_not_matter() -> None:
    value = record()
    for data in (
        json.dumps(value),
        json.dumps(dict(reversed(value.items()))),
        json.dumps(value, indent=3),
    ):
        assert read_sweep_record(data.encode(), LAYOUTS) == read(value)
        assert read_document(data.encode(), WORDS.table_headers) == read(value)
        assert read_document(data.encode(), WORDS.table_headers, "sweep-record") == read(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 0}, "contains unknown field `seed`"),
        ({"backend": " "}, "- at `$.backend`"),
        ({"environment": []}, "Expected `object`, got `array` - at `$.environment`"),
        ({"notes": ["one", 2]}, "Expected `str`, got `int` - at `$.notes[1]`"),
        ({"plan": {"seed": float("nan")}}, "NaN is not a number"),
        ({"device": "\ud800"}, "$.device: has a number beyond doubles or a lone surrogate"),
        ({"setup": {"\udfff": 1}}, "$.setup: has a number beyond doubles or a lone surrogate"),
    ],
)
def test_value_of_another_type_is_named(change: dict[str, Any], message: str) -> None:
    assert failure(json.dumps(record(**change)).encode()).endswith(message)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            b', "notes": ["auto took the CPU: no IPU is here"]',
            b"",
            "missing required field `notes`",
        ),
        (b'"seed": 0,', b'"seed": 0', "Expecting ',' delimiter: line 1 column 4"),
        (b'"seed": 0,', b'"seed": 1e999,', "$.plan: has a number beyond doubles"),
        (b'"seed": 0,', b'"seed": %s,' % (b"9" * 5000), "Exceeds the limit"),
        (b'"seed": 0,', b'"seed": %s0%s,' % (b"[" * 200_000, b"]" * 200_000), "recursion"),
        (b'"device"', b'"backend"', "key 'backend' occurs twice in one object"),
        (b'here"]}', b'here"]}{}', "Extra data"),
    ],
)
def test_broken_record_is_one_line(old: bytes, new: bytes, message: str) -> None:
    data = json.dumps(record()).encode()
    assert data.count(old) == 1
    line = failure(data.replace(old, new))
    assert message in line
    assert "\n" not in line


@pytest.mark.parametrize(
    "data", [b"[]", b'["run_id"]', b'"run_id"', b"{}", b"null", b"7", b'{"a": 1}']
)
def test_other_json_is_not_recognised(data: bytes) -> None:
    with pytest.raises(UnrecognisedDocumentError, match=r"^\$: is not the record of a sweep"):
        read_sweep_record(data, LAYOUTS)


@given(st.data())
def test_any_bytes_are_read_or_refused(data: st.DataObject) -> None:
    good = json.dumps(record()).encode()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(good))] * 2)))
    broken = good[:start] + data.draw(st.binary(max_size=9)) + good[end:]
    assert_read_or_refused(read_sweep_record, broken, LAYOUTS)
