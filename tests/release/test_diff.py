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
from ipu_results.release import ChangeCounts, diff_releases
from ipu_results.release.diff_report import format_diff_json, format_diff_text

from tests.conftest import run_cli
from tests.release.release_support import Row, alter_warehouse, read_rows

FIELDS = {"a": pa.int64(), "b": pa.string(), "number": pa.float64(), "text": pa.string()}
SCHEMA = pa.schema(FIELDS)
PACKAGE = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": ["a", "b"]}}]}
ROW: Row = {"a": 1, "b": "x", "number": 1.0, "text": "t"}


def write_folder(
    folder: Path, rows: list[Row], schema: pa.Schema = SCHEMA, package: object = PACKAGE
) -> Path:
    """Write a folder with one table that the schema does not know, whose key is in
    datapackage.json.
    """
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "things.parquet")
    (folder / "datapackage.json").write_text(json.dumps(package), encoding="utf-8")
    return folder


# Against a model

KEYS = st.tuples(st.integers(0, 5) | st.none(), st.sampled_from(["", "x", "ü", "'"]) | st.none())
VALUES = st.fixed_dictionaries(
    {
        "number": st.none() | st.sampled_from([0.0, 1.5, float("inf"), 1e300]),
        "text": st.none() | st.sampled_from(["", "t", "<b>"]),
    }
)
ROWS = st.dictionaries(KEYS, VALUES, max_size=8)


def get_kind(old: object, new: object) -> str:
    if old is None:
        return "added"
    return "removed" if new is None else "changed"


@pytest.mark.slow
@settings(max_examples=25, database=None)
@given(ROWS, ROWS)
def test_diff_agrees_with_a_model(old: dict[Any, Row], new: dict[Any, Row]) -> None:
    with tempfile.TemporaryDirectory() as where:
        folders = []
        for name, rows in (("old", old), ("new", new)):
            listed = [{"a": a, "b": b, **values} for (a, b), values in rows.items()]
            folders.append(write_folder(Path(where) / name, listed))
        diff = diff_releases(*folders)
    cells = set()
    for key in old.keys() & new.keys():
        for name in ("number", "text"):
            if old[key][name] != new[key][name]:
                cells.add((key, name, get_kind(old[key][name], new[key][name])))
    if not cells and old.keys() == new.keys():
        assert diff.is_empty
        return
    (table,) = diff.tables
    added = new.keys() - old.keys()
    removed = old.keys() - new.keys()
    assert {(row["a"], row["b"]) for row in table.added_rows} == added
    assert {(row["a"], row["b"]) for row in table.removed_rows} == removed
    assert table.rows == (len(added), len(removed), len({key for key, *_ in cells}))
    listed_cells = set()
    for key, name, before, after in table.changed_cells:
        listed_cells.add(((key["a"], key["b"]), name, get_kind(before, after)))
    assert listed_cells == cells
    for name, counts in table.cells.items():
        kinds = [kind for _, column, kind in cells if column == name]
        assert counts == tuple(map(kinds.count, ChangeCounts._fields))


# Columns, tables and names


def test_rows_and_cells_are_matched_by_key(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("rate", pa.float64()))
    first = {**ROW, "rate": 5.0}
    old = write_folder(tmp_path / "old", [first, {**ROW, "a": None}, {**ROW, "a": 2}], schema)
    changed = {**ROW, "number": None, "text": "u", "rate": 6.0}
    new = write_folder(tmp_path / "new", [changed, {**ROW, "a": None}, {**ROW, "a": 3}], schema)
    (table,) = diff_releases(old, new).tables
    assert table.rows == (1, 1, 1)
    assert table.all_cells == (0, 1, 2)
    assert table.figures == (0, 1, 1)
    assert table.changed_cells == [
        ({"a": 1, "b": "x"}, "number", 1.0, None),
        ({"a": 1, "b": "x"}, "rate", 5.0, 6.0),
        ({"a": 1, "b": "x"}, "text", "t", "u"),
    ]


def test_key_that_names_a_column_twice_shifts_no_cell(tmp_path: Path) -> None:
    package = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": ["a", "a"]}}]}
    old = write_folder(tmp_path / "old", [ROW], package=package)
    new = write_folder(tmp_path / "new", [{**ROW, "number": 2.0}], package=package)
    (table,) = diff_releases(old, new).tables
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
    schema = pa.schema({"a": pa.int64(), 'we "ird': pa.string(), "select": pa.string()})
    package = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": ["a"]}}]}
    folders = []
    for value in ("x", "y"):
        folder = tmp_path / f"a*[1]?'x={value}"
        folders.append(write_folder(folder, [{"a": 1, 'we "ird': value}], schema, package))
    (table,) = diff_releases(*folders).tables
    assert table.changed_cells == [({"a": 1}, 'we "ird', "x", "y")]


def test_folders_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    good = write_folder(tmp_path / "good", [ROW])

    def break_file(name: str, file: str, data: bytes) -> Path:
        rows = [{**ROW, "text": "t" * 5000, "a": at} for at in range(500)]
        folder = write_folder(tmp_path / name, rows)
        (folder / file).write_bytes(data or zero_middle(folder / file))
        return folder

    def zero_middle(path: Path) -> bytes:
        data = path.read_bytes()
        half = len(data) // 2
        return data[:100] + bytes(half - 100) + data[half:]

    (tmp_path / "empty").mkdir()
    for folder, message in (
        (tmp_path / "none", "no such folder"),
        (tmp_path / "empty", "neither a release nor a warehouse"),
        (break_file("damaged", "things.parquet", b"PAR1 none"), "cannot be read"),
        (break_file("torn", "things.parquet", b""), "cannot be compared"),
        (write_folder(tmp_path / "twice", [ROW, ROW]), "two rows have the same key"),
        (break_file("deep", "datapackage.json", b"[" * 100_000), "is not a JSON object"),
        (break_file("nan", "release.json", b'{"version": NaN}'), "release.json: is not a JSON"),
    ):
        with pytest.raises(UnreadableReleaseError, match=message):
            diff_releases(good, folder)
    malformed = {"resources": [1, {"schema": 2}, {"schema": {}}]}
    keyless = write_folder(tmp_path / "keyless", [{**ROW, "a": 2}], package=malformed)
    other = write_folder(tmp_path / "other", [ROW], package={})
    with pytest.raises(UnreadableReleaseError, match="no primary key in common; cannot match rows"):
        diff_releases(keyless, other)


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
    results = read_rows(small, "results")
    cells = read_rows(small, "cells")
    documents = read_rows(small, "documents")
    new = alter_warehouse(
        small,
        tmp_path / "new",
        results=[{**results[0], "throughput": 17.5}, *results[1:]],
        cells=[{**cells[0], "value": 17.5}, *cells[1:]],
        documents=[{**row, "note": f"{row['note']} Reworded."} for row in documents],
    )
    diff = diff_releases(small, new, limit=3)
    of_cell = next(row for row in results if row["result_id"] == cells[0]["result_id"])
    _, _, count, figure, cell, *_ = format_diff_text(diff).splitlines()
    assert count == "2 figures changed:"
    assert figure.startswith(f"  {results[0]['publisher']}, {results[0]['model']}, ")
    throughput = results[0]["throughput"]
    assert figure.endswith(f"(results): throughput {throughput} -> 17.5 item/s")
    assert cell.startswith(f"  {of_cell['publisher']}, {of_cell['model']}, ")
    assert cell.endswith(" -> 17.5")
    record = json.loads(format_diff_json(diff))
    names = [table["table"] for table in record["tables_changed"]]
    assert names == ["results", "cells", "documents"]
    assert record["figures_changed"][0]["key"] == {"result_id": results[0]["result_id"]}


@pytest.mark.slow
def test_text_lists_up_to_the_limit_and_counts_everything(folders: tuple[Path, Path]) -> None:
    result = run_cli("diff", *folders, "--limit", 3)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"old: {folders[0]} (1.0.0)")
    assert "flags: rows +1 -1 ~0; cells +0 -0 ~0; figures +0 -0 ~0" in lines
    assert any(line.startswith("results: rows +0 -0 ~12; ") for line in lines)
    assert {"12 figures changed:", "  and 9 more", "  ~ and 12 more"} <= set(lines)
    assert lines[-1].endswith("version change needed: major")


def test_json_lists_up_to_the_limit_and_counts_everything(folders: tuple[Path, Path]) -> None:
    record = json.loads(run_cli("diff", *folders, "--format", "json", "--limit", 5).stdout)
    results, flags = record["tables_changed"]
    assert record["level"] == "major"
    assert record["identical"] is False
    assert record["limit"] == 5
    assert record["old"]["version"] == "1.0.0"
    assert {change["column"] for change in record["figures_changed"]} == {"throughput"}
    assert results["rows"] == {"added": 0, "removed": 0, "changed": 12, "old": 12, "new": 12}
    assert len(results["changed_cells"]) == 5
    assert sum(sum(counts.values()) for counts in results["cells_by_column"].values()) == 24
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


def test_infinite_values_are_not_nulls(tmp_path: Path) -> None:
    texts = ["NaN", "Infinity", "-Infinity"]
    rows = [{**ROW, "a": at, "number": float(text)} for at, text in enumerate(texts)]
    old = write_folder(tmp_path / "old", rows)
    new = write_folder(tmp_path / "new", [{**row, "number": None} for row in rows])
    diff = diff_releases(old, new)
    lines = format_diff_text(diff)
    for text in texts:
        assert f"number {text} -> NULL" in lines
    (table,) = json.loads(format_diff_json(diff))["tables_changed"]
    cells = [(cell["old"], cell["new"]) for cell in table["changed_cells"]]
    assert cells == [(text, None) for text in texts]
