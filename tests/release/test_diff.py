"""What differs between two folders of Parquet files, against a model in Python, and how it is
reported.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import UnreadableReleaseError
from ipu_results.release import diff_releases
from ipu_results.release.diff import ReleaseDiff
from ipu_results.release.diff_report import format_diff_json, format_diff_text

from tests.conftest import run_cli
from tests.release.release_support import Row, alter_warehouse, read_rows

FIELDS = {"a": pa.int64(), "b": pa.string(), "number": pa.float64(), "text": pa.string()}
SCHEMA = pa.schema(FIELDS)
KEYED = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": ["a", "b"]}}]}
ROW: Row = {"a": 1, "b": "x", "number": 1.0, "text": "t"}


def write_folder(
    folder: Path,
    rows: list[Row],
    schema: pa.Schema = SCHEMA,
    described: object = KEYED,
) -> Path:
    """Write a folder with one table that the schema does not know, whose key is in
    datapackage.json.
    """
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "things.parquet")
    (folder / "datapackage.json").write_text(json.dumps(described), encoding="utf-8")
    return folder


def diff_rows(folder: Path, old: list[Row], new: list[Row], **options: Any) -> ReleaseDiff:
    """Return what differs between two folders of some rows."""
    before = write_folder(folder / "old", old, **options)
    return diff_releases(before, write_folder(folder / "new", new, **options))


# Against a model

KEYS = st.tuples(st.integers(0, 5) | st.none(), st.sampled_from(["", "x", "ü", "'"]) | st.none())
VALUES = st.fixed_dictionaries(
    {
        "number": st.none() | st.sampled_from([0.0, 1.5, float("inf"), 1e300]),
        "text": st.none() | st.sampled_from(["", "t", "<b>"]),
    }
)
ROWS = st.dictionaries(KEYS, VALUES, max_size=8)


def list_rows(values: dict[Any, Row]) -> list[Row]:
    return [{"a": a, "b": b, **row} for (a, b), row in values.items()]


@pytest.mark.slow
@settings(max_examples=25, database=None)
@given(ROWS, ROWS)
def test_diff_agrees_with_a_model(old: dict[Any, Row], new: dict[Any, Row]) -> None:
    with tempfile.TemporaryDirectory() as where:
        diff = diff_rows(Path(where), list_rows(old), list_rows(new))
    added = new.keys() - old.keys()
    removed = old.keys() - new.keys()
    cells = []
    for key in old.keys() & new.keys():
        for name in ("number", "text"):
            before = old[key][name]
            after = new[key][name]
            if before != after:
                cells.append((key, name, before, after))
    assert diff.is_empty == (not added and not removed and not cells)
    if diff.is_empty:
        return
    (table,) = diff.tables
    assert {(row["a"], row["b"]) for row in table.added_rows} == added
    assert {(row["a"], row["b"]) for row in table.removed_rows} == removed
    assert table.rows == (len(added), len(removed), len({key for key, *_ in cells}))
    listed = [((key["a"], key["b"]), *others) for key, *others in table.changed_cells]
    assert sorted(listed, key=repr) == sorted(cells, key=repr)
    for name, counts in table.cells.items():
        of_column = [(before, after) for _, column, before, after in cells if column == name]
        assert counts.added == sum(before is None for before, _ in of_column)
        assert counts.removed == sum(after is None for _, after in of_column)
        assert sum(counts) == len(of_column)


# Columns, tables and names


def test_figures_are_the_cells_of_numbers(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("rate", pa.float64()))
    old = {**ROW, "rate": 5.0}
    new = {**ROW, "number": None, "text": "u", "rate": 6.0}
    (table,) = diff_rows(tmp_path, [old], [new], schema=schema).tables
    assert table.all_cells == (0, 1, 2)
    assert table.figures == (0, 1, 1)
    assert table.changed_cells == [
        ({"a": 1, "b": "x"}, "number", 1.0, None),
        ({"a": 1, "b": "x"}, "rate", 5.0, 6.0),
        ({"a": 1, "b": "x"}, "text", "t", "u"),
    ]


def test_key_that_names_a_column_twice_shifts_no_cell(tmp_path: Path) -> None:
    twice = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": ["a", "a"]}}]}
    (table,) = diff_rows(tmp_path, [ROW], [{**ROW, "number": 2.0}], described=twice).tables
    assert table.changed_cells == [({"a": 1}, "number", 1.0, 2.0)]


def test_new_removed_and_changed_columns(tmp_path: Path) -> None:
    unit = pa.field("number", pa.float64(), metadata={"unit": "ms"})
    changed = pa.schema([*list(SCHEMA)[:2], unit, ("more", pa.string())])
    old = write_folder(tmp_path / "old", [ROW])
    new = write_folder(tmp_path / "new", [ROW], changed)
    (table,) = diff_releases(old, new).tables
    assert table.columns_added == ("more",)
    assert table.columns_removed == ("text",)
    assert table.columns_changed == (("number", "unit", None, "ms"),)
    assert table.rows == (0, 0, 0)


@pytest.mark.parametrize(
    ("kind", "value", "changed"),
    [(pa.int32(), 1, 0), (pa.float32(), 1, 0), (pa.string(), "1", 1)],
)
def test_values_of_another_type_compare_as_numbers_or_text(
    kind: pa.DataType, value: object, changed: int, tmp_path: Path
) -> None:
    old = write_folder(tmp_path / "old", [ROW])
    schema = pa.schema({**FIELDS, "number": kind})
    new = write_folder(tmp_path / "new", [{**ROW, "number": value}], schema)
    (table,) = diff_releases(old, new).tables
    assert table.columns_changed[0][:2] == ("number", "type")
    assert table.rows == (0, 0, changed)


def test_any_name_of_a_folder_and_of_a_column(tmp_path: Path) -> None:
    schema = pa.schema({"a": pa.int64(), "b": pa.string(), 'we "ird': pa.string()})
    folder = tmp_path / "a*[1]?'x=1"
    (table,) = diff_rows(folder, [{'we "ird': "x"}], [{'we "ird': "y"}], schema=schema).tables
    assert table.changed_cells == [({"a": None, "b": None}, 'we "ird', "x", "y")]


def zero_middle(path: Path) -> bytes:
    data = path.read_bytes()
    half = len(data) // 2
    return data[:100] + bytes(half - 100) + data[half:]


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("things.parquet", b"PAR1 none", "cannot be read"),
        ("things.parquet", None, "cannot be compared"),
        ("datapackage.json", b"[" * 100_000, "is not a JSON object"),
        ("release.json", b'{"version": NaN}', "release.json: is not a JSON"),
    ],
)
def test_damaged_folder_is_refused(
    tmp_path: Path, file: str, data: bytes | None, message: str
) -> None:
    rows = [{**ROW, "text": "t" * 5000, "a": at} for at in range(500)]
    good = write_folder(tmp_path / "good", [ROW])
    damaged = write_folder(tmp_path / "damaged", rows)
    (damaged / file).write_bytes(data or zero_middle(damaged / file))
    with pytest.raises(UnreadableReleaseError, match=message):
        diff_releases(good, damaged)


def test_folders_that_are_none_are_refused(tmp_path: Path) -> None:
    good = write_folder(tmp_path / "good", [ROW])
    with pytest.raises(UnreadableReleaseError, match="no such folder"):
        diff_releases(good, tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableReleaseError, match="neither a release nor a warehouse"):
        diff_releases(good, tmp_path / "empty")


def test_rows_that_cannot_be_matched_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReleaseError, match="two rows have the same key"):
        diff_rows(tmp_path / "twice", [ROW], [ROW, ROW])
    malformed = {"resources": [1, {"schema": 2}, {"schema": {}}]}
    with pytest.raises(UnreadableReleaseError, match="no primary key in common; cannot match rows"):
        diff_rows(tmp_path / "keyless", [ROW], [{**ROW, "a": 2}], described=malformed)


# Reports

SCRIPT = "<script>alert('x')</script>"


@pytest.fixture
def folders(small: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Return a folder of version 1.0.0, and a warehouse with 24 changed cells and another flag."""
    old = Path(shutil.copytree(small, tmp_path / "old"))
    (old / "release.json").write_text('{"version": "1.0.0"}', encoding="utf-8")
    results = [
        {**row, "variant": SCRIPT, "throughput": 2 * (row["throughput"] or 1)}
        for row in read_rows(small, "results")
    ]
    first, *others = read_rows(small, "flags")
    flags = [*others, {**first, "rule": "R99"}]
    return old, alter_warehouse(small, tmp_path / "new", results=results, flags=flags)


def test_report_leads_with_the_changed_figures_and_names_their_rows(
    small: Path, tmp_path: Path
) -> None:
    result, *results = read_rows(small, "results")
    cell, *cells = read_rows(small, "cells")
    new = alter_warehouse(
        small,
        tmp_path / "new",
        results=[{**result, "throughput": 17.5}, *results],
        cells=[{**cell, "value": 17.5}, *cells],
        documents=[{**row, "note": "Reworded."} for row in read_rows(small, "documents")],
    )
    diff = diff_releases(small, new, limit=3)
    of_cell = next(row for row in [result, *results] if row["result_id"] == cell["result_id"])
    _, _, count, *figures = format_diff_text(diff).splitlines()[:5]
    assert count == "2 figures changed:"
    for figure, row in zip(figures, (result, of_cell), strict=True):
        assert figure.startswith(f"  {row['publisher']}, {row['model']}, ")
    assert figures[0].endswith(f"(results): throughput {result['throughput']} -> 17.5 item/s")
    assert figures[1].endswith(" -> 17.5")
    record = json.loads(format_diff_json(diff))
    names = [table["table"] for table in record["tables_changed"]]
    assert names == ["results", "cells", "documents"]
    assert record["figures_changed"][0]["key"] == {"result_id": result["result_id"]}


def test_text_lists_up_to_the_limit_and_counts_everything(folders: tuple[Path, Path]) -> None:
    lines = run_cli("diff", *folders, "--limit", 3).stdout.splitlines()
    assert lines[0].startswith(f"old: {folders[0]} (1.0.0)")
    assert "flags: rows +1 -1 ~0; cells +0 -0 ~0; figures +0 -0 ~0" in lines
    assert {"12 figures changed:", "  and 9 more", "  ~ and 12 more"} <= set(lines)
    assert lines[-1].endswith("version change needed: major")


def test_json_lists_up_to_the_limit_and_counts_everything(folders: tuple[Path, Path]) -> None:
    record = json.loads(run_cli("diff", *folders, "--format", "json", "--limit", 5).stdout)
    assert record["level"] == "major"
    assert record["identical"] is False
    assert record["limit"] == 5
    assert record["old"]["version"] == "1.0.0"
    assert {change["column"] for change in record["figures_changed"]} == {"throughput"}
    results, flags = record["tables_changed"]
    assert results["rows"] == {"added": 0, "removed": 0, "changed": 12, "old": 12, "new": 12}
    assert len(results["changed_cells"]) == 5
    for column in ("variant", "throughput"):
        assert sum(results["cells_by_column"][column].values()) == 12
    assert flags["added_rows"][0]["rule"] == "R99"


def test_html_is_one_file_and_escaped(folders: tuple[Path, Path]) -> None:
    page = run_cli("diff", *folders, "--format", "html").stdout
    assert not re.search(r"<(script|img|link|iframe)|\s(src|href|on\w+)=", page)
    assert "&lt;script&gt;alert(&#x27;x&#x27;)" in page
    assert "<title>1.0.0 → new</title>" in page
    assert str(folders[1].parent) not in page
    assert page.endswith("</html>\n")


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    evil = "1.0.0\n\x1b[31mOK"
    old = write_folder(tmp_path / "old", [ROW])
    (old / "release.json").write_text(json.dumps({"version": evil}))
    named = SCHEMA.append(pa.field(f"more{evil}", pa.string()))
    new = write_folder(tmp_path / "new", [{**ROW, "text": f"\x1b[2J\u202e{evil}"}], named)
    shutil.copyfile(new / "things.parquet", new / f"th\x1bings{evil}.parquet")
    text = format_diff_text(diff_releases(old, new))
    assert "\x1b" not in text
    assert text.startswith(rf"old: {old} (1.0.0\n\x1b[31mOK)")
    assert r"t -> \x1b[2J\u202e1.0.0" in text
    assert r"th\x1bings1.0.0" in text
    result = run_cli("diff", old, write_folder(tmp_path / f"twice{evil}", [ROW, ROW]))
    assert result.returncode == 1
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_infinite_values_are_not_nulls(tmp_path: Path, text: str) -> None:
    diff = diff_rows(tmp_path, [{**ROW, "number": float(text)}], [{**ROW, "number": None}])
    assert f"number {text} -> NULL" in format_diff_text(diff)
    (table,) = json.loads(format_diff_json(diff))["tables_changed"]
    (cell,) = table["changed_cells"]
    assert cell["old"] == text
    assert cell["new"] is None
