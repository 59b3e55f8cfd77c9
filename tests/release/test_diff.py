"""What differs between two folders of Parquet files, against a model in Python, and how it is
reported.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import UnreadableReleaseError
from ipu_results.release import ChangeCounts, diff_releases
from ipu_results.release.diff_report import format_diff_json, format_diff_text
from ipu_results.release.version import ChangeKind, list_changes

from tests.conftest import run_cli
from tests.release.release_support import Row, alter_warehouse

SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.string()), ("number", pa.float64()), ("text", pa.string())]
)
PACKAGE = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": ["a", "b"]}}]}
ROW = {"a": 1, "b": "x", "number": 1.0, "text": "t"}


def write_folder(
    where: Path, rows: list[Row], schema: pa.Schema = SCHEMA, package: object = PACKAGE
) -> Path:
    """Write a folder with one table that the schema does not know, whose key is in
    datapackage.json.
    """
    where.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), where / "things.parquet")
    (where / "datapackage.json").write_text(json.dumps(package), encoding="utf-8")
    return where


# Against a model

KEYS = st.tuples(st.integers(0, 5) | st.none(), st.sampled_from(["", "x", "ü", "'"]) | st.none())
VALUES = st.fixed_dictionaries(
    {
        "number": st.none() | st.sampled_from([0.0, 1.5, float("inf"), 1e300]),
        "text": st.none() | st.sampled_from(["", "t", "<b>"]),
    }
)
ROWS = st.dictionaries(KEYS, VALUES, max_size=8)


def list_rows(rows: Mapping[tuple[Any, Any], Row]) -> list[Row]:
    return [{"a": a, "b": b, **values} for (a, b), values in rows.items()]


def get_kind(old: Any, new: Any) -> str:
    return "added" if old is None else "removed" if new is None else "changed"


@pytest.mark.slow
@settings(max_examples=25, database=None)
@given(ROWS, ROWS)
def test_diff_agrees_with_a_model(old: dict[Any, Row], new: dict[Any, Row]) -> None:
    with tempfile.TemporaryDirectory() as where:
        folders = [
            write_folder(Path(where) / name, list_rows(rows))
            for name, rows in (("old", old), ("new", new))
        ]
        diff, reverse = diff_releases(*folders), diff_releases(*reversed(folders))
        assert diff_releases(folders[0], folders[0]).is_empty
    cells = {
        (key, name, get_kind(old[key][name], new[key][name]))
        for key in old.keys() & new.keys()
        for name in ("number", "text")
        if old[key][name] != new[key][name]
    }
    if not cells and old.keys() == new.keys():
        assert diff.is_empty
        return
    (table,), (reverse_table,) = diff.tables, reverse.tables
    assert {(row["a"], row["b"]) for row in table.added_rows} == new.keys() - old.keys()
    assert {(row["a"], row["b"]) for row in table.removed_rows} == old.keys() - new.keys()
    assert table.rows == (
        len(new.keys() - old.keys()),
        len(old.keys() - new.keys()),
        len({key for key, *_ in cells}),
    )
    listed = {
        ((key["a"], key["b"]), name, get_kind(before, after))
        for key, name, before, after in table.changed_cells
    }
    assert listed == cells
    for name, counts in table.cells.items():
        assert counts == tuple(
            sum(cell[1:] == (name, kind) for cell in cells) for kind in ChangeCounts._fields
        )
    assert reverse_table.rows == (table.rows.removed, table.rows.added, table.rows.changed)
    assert reverse_table.figures == (
        table.figures.removed,
        table.figures.added,
        table.figures.changed,
    )
    assert list(reverse_table.added_rows) == list(table.removed_rows)


# Columns, tables and names


def test_rows_and_cells_are_matched_by_key(tmp_path: Path) -> None:
    old = write_folder(tmp_path / "old", [ROW, {**ROW, "a": None}, {**ROW, "a": 2}])
    new = write_folder(
        tmp_path / "new",
        [{**ROW, "number": None, "text": "u"}, {**ROW, "a": None}, {**ROW, "a": 3}],
    )
    (table,) = diff_releases(old, new).tables
    assert (table.rows, table.all_cells, table.figures) == ((1, 1, 1), (0, 1, 1), (0, 1, 0))
    assert table.changed_cells == [
        ({"a": 1, "b": "x"}, "number", 1.0, None),
        ({"a": 1, "b": "x"}, "text", "t", "u"),
    ]


def test_new_removed_and_changed_columns(tmp_path: Path) -> None:
    unit = pa.field("number", pa.float64(), metadata={"unit": "ms"})
    changed = pa.schema([("a", pa.int64()), ("b", pa.string()), unit, ("more", pa.string())])
    old = write_folder(tmp_path / "old", [ROW])
    new = write_folder(tmp_path / "new", [{"a": 1, "b": "x", "number": 1.0}], changed)
    (table,) = diff_releases(old, new).tables
    assert (table.columns_added, table.columns_removed) == (("more",), ("text",))
    assert table.columns_changed == (("number", "unit", None, "ms"),)
    assert table.rows == (0, 0, 0)


@pytest.mark.parametrize(
    ("kind", "changed"), [(pa.int32(), 0), (pa.float32(), 0), (pa.string(), 1)]
)
def test_values_of_another_type_compare_as_numbers_or_text(
    kind: pa.DataType, changed: int, tmp_path: Path
) -> None:
    schema = SCHEMA.set(2, pa.field("number", kind))
    new = write_folder(
        tmp_path / "new", [{**ROW, "number": "1" if kind == pa.string() else 1}], schema
    )
    (table,) = diff_releases(write_folder(tmp_path / "old", [ROW]), new).tables
    assert table.columns_changed[0][:2] == ("number", "type")
    assert table.rows == (0, 0, changed)


def test_any_name_of_a_folder_and_of_a_column(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("a", pa.int64()),
            ('we "ird', pa.string()),
            ("select", pa.string()),
            ("there", pa.int64()),
        ]
    )
    package = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": ["a"]}}]}
    old = write_folder(tmp_path / "a*[1]?'x=1", [{"a": 1, 'we "ird': "x"}], schema, package)
    new = write_folder(tmp_path / "a*[1]?'x=2", [{"a": 1, 'we "ird': "y"}], schema, package)
    (table,) = diff_releases(old, new).tables
    assert table.changed_cells == [({"a": 1}, 'we "ird', "x", "y")]


def test_folders_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    good = write_folder(tmp_path / "good", [ROW])
    (tmp_path / "empty").mkdir()
    damaged = write_folder(tmp_path / "damaged", [ROW])
    (damaged / "things.parquet").write_bytes(b"PAR1 none")
    torn = write_folder(
        tmp_path / "torn", [{**ROW, "text": "t" * 5000, "a": at} for at in range(500)]
    )
    data = (torn / "things.parquet").read_bytes()
    (torn / "things.parquet").write_bytes(
        data[:100] + bytes(len(data) // 2 - 100) + data[len(data) // 2 :]
    )
    no_json, no_number = (
        write_folder(tmp_path / "no_json", [ROW]),
        write_folder(tmp_path / "no_number", [ROW]),
    )
    (no_json / "datapackage.json").write_text("[" * 100_000)
    (no_number / "release.json").write_text('{"version": NaN}')
    keyless = write_folder(
        tmp_path / "keyless",
        [{**ROW, "a": 2}],
        package={"resources": [1, {"schema": 2}, {"schema": {}}]},
    )
    for folder, message in (
        (tmp_path / "none", "no such folder"),
        (tmp_path / "empty", "neither a release nor a warehouse"),
        (damaged, "cannot be read"),
        (torn, "cannot be compared"),
        (write_folder(tmp_path / "twice", [ROW, ROW]), "two rows have the same key"),
        (no_json, "is not a JSON object"),
        (no_number, "release.json: is not a JSON object"),
    ):
        with pytest.raises(UnreadableReleaseError, match=message):
            diff_releases(good, folder)
    with pytest.raises(UnreadableReleaseError, match="no primary key in common; cannot match rows"):
        diff_releases(keyless, write_folder(tmp_path / "other", [ROW], package={}))
    result = run_cli("diff", good, tmp_path / "none")
    assert (result.returncode, result.stderr) == (
        1,
        f"error: {tmp_path / 'none'}: no such folder\n",
    )


# Reports

SCRIPT = "<script>alert('x')</script>"


@pytest.fixture
def folders(small: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Return a folder of version 1.0.0, and a warehouse with 24 changed cells and another flag."""
    old = Path(shutil.copytree(small, tmp_path / "old"))
    (old / "release.json").write_text('{"version": "1.0.0"}', encoding="utf-8")

    def change(rows: list[Row]) -> list[Row]:
        return [
            {**row, "variant": SCRIPT, "throughput": 2 * (row["throughput"] or 1)} for row in rows
        ]

    def replace(rows: list[Row]) -> list[Row]:
        return [*rows[1:], {**rows[0], "rule": "R99"}]

    return old, alter_warehouse(small, tmp_path / "new", results=change, flags=replace)


def test_report_leads_with_the_changed_figures_and_names_their_rows(
    small: Path, tmp_path: Path
) -> None:
    def change(rows: list[Row]) -> list[Row]:
        return [{**rows[0], "throughput": 17.5}, *rows[1:]]

    def reword(rows: list[Row]) -> list[Row]:
        return [{**row, "note": f"{row['note']} Reworded."} for row in rows]

    changes = {
        "results": change,
        "cells": lambda rows: [{**rows[0], "value": 17.5}, *rows[1:]],
        "documents": reword,
    }
    new = alter_warehouse(small, tmp_path / "new", **changes)
    diff = diff_releases(small, new, limit=3)
    rows = pq.read_table(small / "results.parquet").to_pylist()
    row = rows[0]
    cited = pq.read_table(small / "cells.parquet").to_pylist()[0]["result_id"]
    (cited_row,) = (row for row in rows if row["result_id"] == cited)
    _, _, count, figure, cell, *_ = format_diff_text(diff).splitlines()
    assert count == "2 figures changed:"
    assert figure.startswith(f"  {row['publisher']}, {row['model']}, ")
    assert figure.endswith(f"(results): throughput {row['throughput']} -> 17.5 item/s")
    assert cell.startswith(f"  {cited_row['publisher']}, {cited_row['model']}, ")
    assert cell.endswith(" -> 17.5")
    record = json.loads(format_diff_json(diff))
    assert [table["table"] for table in record["tables_changed"]] == [
        "results",
        "cells",
        "documents",
    ]
    assert record["figures_changed"][0]["key"] == {"result_id": row["result_id"]}


@pytest.mark.slow
def test_text_lists_up_to_the_limit_and_counts_everything(folders: tuple[Path, Path]) -> None:
    result = run_cli("diff", *folders, "--limit", 3)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"old: {folders[0]} (1.0.0)")
    assert "flags: rows +1 -1 ~0; cells +0 -0 ~0; figures +0 -0 ~0" in lines
    assert any(line.startswith("results: rows +0 -0 ~12; ") for line in lines)
    assert "12 figures changed:" in lines
    assert "  and 9 more" in lines
    assert "  ~ and 12 more" in lines
    assert lines[-1].endswith("version change needed: major")


def test_json_lists_up_to_the_limit_and_counts_everything(folders: tuple[Path, Path]) -> None:
    record = json.loads(run_cli("diff", *folders, "--format", "json", "--limit", 5).stdout)
    tables = {table["table"]: table for table in record["tables_changed"]}
    assert record.keys() == {
        *("old", "new", "identical", "level", "limit", "figures_changed", "definitions_changed"),
        *("tables_added", "tables_removed", "tables_same", "tables_changed"),
    }
    assert (record["level"], record["identical"], record["limit"]) == ("major", False, 5)
    assert record["old"]["version"] == "1.0.0"
    assert list(tables) == ["results", "flags"]
    assert {change["column"] for change in record["figures_changed"]} == {"throughput"}
    assert tables["results"]["rows"] == {
        "added": 0,
        "removed": 0,
        "changed": 12,
        "old": 12,
        "new": 12,
    }
    assert len(tables["results"]["changed_cells"]) == 5
    assert sum(sum(cells.values()) for cells in tables["results"]["cells_by_column"].values()) == 24
    assert tables["flags"]["added_rows"][0]["rule"] == "R99"


class TagCollector(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick"}


def test_html_is_one_file_and_escaped(folders: tuple[Path, Path]) -> None:
    page = run_cli("diff", *folders, "--format", "html").stdout
    parser = TagCollector()
    parser.feed(page)
    assert parser.tags <= set(
        "html head meta title style body h1 h2 p table thead tbody tr th td".split()
    )
    assert "&lt;script&gt;alert(&#x27;x&#x27;)" in page
    assert "<title>1.0.0 → new</title>" in page
    assert str(folders[1].parent) not in page
    assert page.endswith("</html>\n")


@pytest.mark.slow
@pytest.mark.parametrize("output", ["text", "json", "html"])
def test_release_is_identical_to_its_warehouse(
    output: str, small: Path, small_release: Path
) -> None:
    result = run_cli("diff", small, small_release, "--format", output)
    assert result.returncode == 0
    if output == "json":
        assert json.loads(result.stdout)["identical"] is True
    else:
        assert re.search(r"[Nn]o difference in 38 tables", result.stdout)


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    evil = "1.0.0\n\x1b[31mOK"
    old = write_folder(tmp_path / "old", [ROW])
    (old / "release.json").write_text(json.dumps({"version": evil}))
    named = SCHEMA.append(pa.field(f"more{evil}", pa.string()))
    new = write_folder(tmp_path / "new", [{**ROW, "text": "u", "a": 2}, ROW], named)
    (new / "things.parquet").rename(new / f"th\x1bings{evil}.parquet")
    for other in (
        new,
        write_folder(tmp_path / "same", [{**ROW, "text": f"\x1b[2J\u202e{evil}"}], named),
    ):
        text = format_diff_text(diff_releases(old, other))
        assert "\x1b" not in text
        assert text.startswith(rf"old: {old} (1.0.0\n\x1b[31mOK)")
        assert r"1.0.0\n\x1b[31mOK" in text.split("new: ")[1]
    assert r"t -> \x1b[2J\u202e1.0.0" in text
    result = run_cli("diff", old, write_folder(tmp_path / f"twice{evil}", [ROW, ROW]))
    assert result.returncode == 1
    assert "\x1b" not in result.stderr


def test_infinite_values_are_not_nulls(tmp_path: Path) -> None:
    values = {1: float("nan"), 2: float("inf"), 3: float("-inf")}
    old = write_folder(
        tmp_path / "old", [{**ROW, "a": a, "number": value} for a, value in values.items()]
    )
    new = write_folder(tmp_path / "new", [{**ROW, "a": a, "number": None} for a in values])
    diff = diff_releases(old, new)
    texts = ["NaN", "Infinity", "-Infinity"]
    lines = format_diff_text(diff).splitlines()
    assert [line.rpartition("number ")[2] for line in lines if "-> NULL" in line] == [
        f"{text} -> NULL" for text in texts
    ]
    (table,) = json.loads(format_diff_json(diff))["tables_changed"]
    assert [(cell["old"], cell["new"]) for cell in table["changed_cells"]] == [
        (text, None) for text in texts
    ]
    other = write_folder(tmp_path / "rows", [{**ROW, "a": 9, "number": float("nan")}])
    (table,) = json.loads(format_diff_json(diff_releases(old, other)))["tables_changed"]
    assert table["added_rows"][0]["number"] == table["removed_rows"][0]["number"] == "NaN"


def test_every_kind_of_change_is_listed_with_its_level() -> None:
    rows, none = SimpleNamespace(removed=1, added=2), SimpleNamespace(removed=0, added=0)
    redefined = [("latency_ms", "type", "DOUBLE", "BIGINT"), ("item", "description", "a", "b")]
    results = SimpleNamespace(
        name="results", columns_removed=["a"], columns_added=["b"], columns_changed=redefined
    )
    results.rows, results.cells = rows, {"throughput": [1]}
    others = [
        SimpleNamespace(
            name=name,
            columns_removed=(),
            columns_added=(),
            columns_changed=(),
            rows=none,
            cells={column: [1]},
        )
        for name, column in (("detail.rank_resolution", "tied_groups"), ("documents", "title"))
    ]
    diff: Any = SimpleNamespace(
        removed=[others[0]], added=[others[1]], views=["latest"], tables=[results, *others]
    )
    listed = list_changes(diff)
    assert len(listed) == len(ChangeKind)
    for level, template in (kind.value for kind in ChangeKind):
        pattern = re.sub(r"\{\w+\}", "[^:]+", template)
        assert [
            change
            for change in listed
            if change.level == level and re.fullmatch(pattern, change.what)
        ], template
