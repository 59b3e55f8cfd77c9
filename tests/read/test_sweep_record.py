"""The record of a local run becomes one row of text, or one error that names the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DamagedDocumentError, DocumentError, UnrecognisedDocumentError
from ipu_results.read import ParsedDocument
from ipu_results.read.dispatch import read_document
from ipu_results.read.records import read_sweep_record

from tests.read.reading_support import WORDS
from tests.runner.runs_support import record

LAYOUTS = WORDS.headers_of("sweep-record")
NAMES = LAYOUTS[0].names


def read(value: Any) -> ParsedDocument:
    return read_sweep_record(json.dumps(value).encode(), LAYOUTS)


def failure(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
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


def test_missing_and_unknown_keys_are_named() -> None:
    value = record(plan={"run_id": 0})  # a record is recognised by this key, wherever it is
    assert (
        failure({key: value[key] for key in value if key not in ("run_id", "notes")})
        == "$: lacks run_id, notes"
    )
    assert failure(record(seed=0)) == "$: has unknown 'seed'"
    assert failure(record(**{f"key{number}": 0 for number in range(99)})).endswith("'key4'")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run_id": 5}, "$.run_id: is not a string"),
        ({"device": None}, "$.device: is not a string"),
        ({"backend": " "}, "$.backend: is blank"),
        ({"command_line": ["ipu-results", "sweep"]}, "$.command_line: is not a string"),
        ({"command_line": "a\0b"}, "$.command_line: has a null character"),
        ({"environment": []}, "$.environment: is not an object"),
        ({"versions": {"numpy": 2}}, "$.versions['numpy']: is not a string"),
        ({"notes": "one"}, "$.notes: is not an array"),
        ({"notes": ["one", 2]}, "$.notes[1]: is not a string"),
        ({"plan": {"seed": float("nan")}}, "$: is not JSON: 'NaN is not a number'"),
        ({"device": "\ud800"}, "$.device: has a number beyond doubles or a lone surrogate"),
        ({"setup": {"\udfff": 1}}, "$.setup: has a number beyond doubles or a lone surrogate"),
    ],
)
def test_value_of_another_type_is_named(change: dict[str, Any], message: str) -> None:
    assert failure(record(**change)) == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"seed": 0,', b'"seed": 0', "line 1, column "),
        (b'"seed": 0,', b'"seed": 1e999,', "$.plan: has a number"),
        (b'"seed": 0,', b'"seed": %s,' % (b"9" * 5000), "$: is not JSON: "),
        (b'"seed": 0,', b'"seed": %s0%s,' % (b"[" * 200_000, b"]" * 200_000), "$: is not JSON: "),
        (b'"device"', b'"backend"', "$: is not JSON: \"key 'backend' occurs twice in one object\""),
        (b'here"]}', b"", "line 1, column "),
        (b'here"]}', b'here"]}{}', "line 1, column "),
    ],
)
def test_broken_json_is_one_line_with_its_place(old: bytes, new: bytes, message: str) -> None:
    data = json.dumps(record()).encode()
    assert data.count(old) == 1
    line = failure(data.replace(old, new))
    assert line.startswith(message)
    assert "\n" not in line


@pytest.mark.parametrize(
    "data", [b"[]", b'["run_id"]', b'"run_id"', b"{}", b"null", b"7", b'{"a": 1}']
)
def test_other_json_is_not_recognised(data: bytes) -> None:
    with pytest.raises(UnrecognisedDocumentError, match=r"^\$: is not the record of a sweep"):
        read_sweep_record(data, LAYOUTS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def assert_read_or_refused(data: bytes) -> None:
    try:
        [table] = read_sweep_record(data, LAYOUTS).tables
    except DocumentError as error:
        lines = str(error).splitlines()
    else:
        lines = [cell for row in table.rows for cell in row.cells if cell.encode()][:1]
    assert len(lines) == 1


@given(st.dictionaries(st.sampled_from([*NAMES, "more"]), VALUES, max_size=4))
def test_any_values_are_read_or_refused(changes: dict[str, Any]) -> None:
    assert_read_or_refused(json.dumps(record() | changes).encode())


@given(st.data())
def test_any_bytes_are_read_or_refused(data: st.DataObject) -> None:
    good = json.dumps(record()).encode()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(good))] * 2)))
    assert_read_or_refused(good[:start] + data.draw(st.binary(max_size=9)) + good[end:])
    assert_read_or_refused(data.draw(st.binary(max_size=60)) + b'"run_id"')
