"""What differs between two folders of Parquet files, against a model in Python, and how it is shown."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import run_cli
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.cli.common import _one_line
from ipu_results.errors import UnreadableReleaseError
from ipu_results.release import compare, read_side
from ipu_results.release.difference import Counted, Difference
from ipu_results.release.show import as_record, as_text
from release_support import altered

Row = dict[str, Any]
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("number", pa.float64()), ("text", pa.string())])
PACKAGE = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": ["a", "b"]}}]}


def folder(where: Path, rows: list[Row], schema: pa.Schema = SCHEMA, package: object = PACKAGE) -> Path:
    """A folder with one table that this code does not know, whose key datapackage.json tells."""
    where.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), where / "things.parquet")
    (where / "datapackage.json").write_text(json.dumps(package), encoding="utf-8")
    return where


def difference(old: Path, new: Path, limit: int = 1000) -> Difference:
    return compare(read_side(old), read_side(new), limit)


# against a model

KEYS = st.tuples(st.integers(0, 5) | st.none(), st.sampled_from(["", "x", "ü", "'"]) | st.none())
VALUES = st.fixed_dictionaries(
    {
        "number": st.none() | st.sampled_from([0.0, 1.5, float("inf"), 1e300]),
        "text": st.none() | st.sampled_from(["", "t", "<b>"]),
    }
)
ROWS = st.dictionaries(KEYS, VALUES, max_size=8)


def listed(rows: Mapping[tuple[Any, Any], Row]) -> list[Row]:
    return [{"a": a, "b": b, **values} for (a, b), values in rows.items()]


def kind(old: Any, new: Any) -> str:
    return "added" if old is None else "removed" if new is None else "changed"


@settings(max_examples=25, database=None)
@given(ROWS, ROWS)
def test_it_says_what_a_model_says(old: dict[Any, Row], new: dict[Any, Row]) -> None:
    with tempfile.TemporaryDirectory() as where:
        sides = folder(Path(where) / "old", listed(old)), folder(Path(where) / "new", listed(new))
        found, back = difference(*sides), difference(*reversed(sides))
        assert difference(sides[0], sides[0]).is_empty
    cells = {
        (key, name, kind(old[key][name], new[key][name]))
        for key in old.keys() & new.keys()
        for name in ("number", "text")
        if old[key][name] != new[key][name]
    }
    if not cells and old.keys() == new.keys():
        assert found.is_empty
        return
    (one,), (mirrored,) = found.tables, back.tables
    assert {(row["a"], row["b"]) for row in one.added_rows} == new.keys() - old.keys()
    assert {(row["a"], row["b"]) for row in one.removed_rows} == old.keys() - new.keys()
    assert one.rows == (len(new.keys() - old.keys()), len(old.keys() - new.keys()), len({key for key, *_ in cells}))
    shown = {((key["a"], key["b"]), name, kind(before, after)) for key, name, before, after in one.changed_cells}
    assert shown == cells
    for name, counted in one.cells.items():
        assert counted == tuple(sum(cell[1:] == (name, what) for cell in cells) for what in Counted._fields)
    assert mirrored.rows == (one.rows.removed, one.rows.added, one.rows.changed)
    assert mirrored.figures == (one.figures.removed, one.figures.added, one.figures.changed)
    assert list(mirrored.added_rows) == list(one.removed_rows)


# shapes

ROW = {"a": 1, "b": "x", "number": 1.0, "text": "t"}


def test_columns_that_come_go_and_change(tmp_path: Path) -> None:
    unit = pa.field("number", pa.float64(), metadata={"unit": "ms"})
    changed = pa.schema([("a", pa.int64()), ("b", pa.string()), unit, ("more", pa.string())])
    old = folder(tmp_path / "old", [ROW])
    new = folder(tmp_path / "new", [{"a": 1, "b": "x", "number": 1.0}], changed)
    (one,) = difference(old, new).tables
    assert (one.columns_added, one.columns_removed) == (("more",), ("text",))
    assert one.columns_changed == (("number", "unit", None, "ms"),)
    assert one.rows == (0, 0, 0)


@pytest.mark.parametrize(("kind", "changed"), [(pa.int32(), 0), (pa.float32(), 0), (pa.string(), 1)])
def test_values_of_another_type_compare_as_figures_or_as_text(kind: pa.DataType, changed: int, tmp_path: Path) -> None:
    schema = SCHEMA.set(2, pa.field("number", kind))
    new = folder(tmp_path / "new", [{**ROW, "number": "1" if kind == pa.string() else 1}], schema)
    (one,) = difference(folder(tmp_path / "old", [ROW]), new).tables
    assert one.columns_changed[0][:2] == ("number", "type")
    assert one.rows == (0, 0, changed)


def test_tables_that_come_and_go(tmp_path: Path) -> None:
    old, new = folder(tmp_path / "old", [ROW]), folder(tmp_path / "new", [ROW])
    (new / "things.parquet").rename(new / "others.parquet")
    found = difference(old, new)
    assert [one.name for one in found.added] == ["others"]
    assert [one.name for one in found.removed] == ["things"]


def test_any_name_of_a_folder_and_of_a_column(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ('we "ird', pa.string()), ("select", pa.string()), ("there", pa.int64())])
    package = {"resources": [{"path": "things.parquet", "schema": {"primaryKey": "a"}}]}
    old = folder(tmp_path / "a*[1]?'x=1", [{"a": 1, 'we "ird': "x"}], schema, package)
    new = folder(tmp_path / "a*[1]?'x=2", [{"a": 1, 'we "ird': "y"}], schema, package)
    (one,) = difference(old, new).tables
    assert one.changed_cells == [({"a": 1}, 'we "ird', "x", "y")]


# what cannot be compared


def test_what_is_neither_release_nor_warehouse(tmp_path: Path) -> None:
    good = folder(tmp_path / "good", [ROW])
    (tmp_path / "empty").mkdir()
    twins = folder(tmp_path / "twins", [], pa.schema([("a", pa.int64()), ("A", pa.int64())]))
    damaged = folder(tmp_path / "damaged", [ROW])
    (damaged / "things.parquet").write_bytes(b"PAR1 none")
    torn = folder(tmp_path / "torn", [{**ROW, "text": "t" * 5000, "a": at} for at in range(500)])
    data = (torn / "things.parquet").read_bytes()
    (torn / "things.parquet").write_bytes(data[:100] + bytes(len(data) // 2 - 100) + data[len(data) // 2 :])
    keyless = folder(tmp_path / "keyless", [ROW], package={"resources": [1, {"schema": 2}, {"schema": {}}]})
    twice = folder(tmp_path / "twice", [ROW, ROW])
    no_json = folder(tmp_path / "no_json", [ROW])
    (no_json / "datapackage.json").write_text("[" * 100_000)
    for bad, said in (
        (tmp_path / "none", "no such folder"),
        (twins, "two columns of one name"),
        (tmp_path / "empty", "neither a release nor a warehouse"),
        (damaged, "cannot be read"),
        (torn, "cannot be compared"),
        (twice, "two rows share a key"),
        (no_json, "is no JSON"),
    ):
        done = run_cli("diff", good, bad)
        assert done.returncode == 1
        assert re.fullmatch(rf"error: .*{said}.*\n", done.stderr), done.stderr
    other = folder(tmp_path / "other", [{**ROW, "a": 2}], package={})
    with pytest.raises(UnreadableReleaseError, match="nothing tells a key"):
        difference(keyless, other)


# how it is shown

SCRIPT = "<script>alert('x')</script>"


@pytest.fixture
def sides(small_release: Path, small: Path, tmp_path: Path) -> tuple[Path, Path]:
    def changed(rows: list[Row]) -> list[Row]:
        return [{**row, "variant": SCRIPT, "throughput": 2 * (row["throughput"] or 1)} for row in rows]

    new = altered(small, tmp_path / "new", results=changed, flags=lambda rows: [*rows[1:], {**rows[0], "rule": "R99"}])
    return small_release, new


def test_text_caps_long_lists_and_counts_all(sides: tuple[Path, Path]) -> None:
    done = run_cli("diff", *sides, "--limit", 3)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"old: {sides[0]} (1.0.0)")
    assert "flags: rows +1 -1 ~0; cells +0 -0 ~0; figures +0 -0 ~0" in lines
    assert any(line.startswith("results: rows +0 -0 ~12; ") for line in lines)
    assert "  ~ and 21 more" in lines
    assert lines[-1].endswith("least change: major")


def test_json_has_exact_counts_and_rows_up_to_the_limit(sides: tuple[Path, Path]) -> None:
    told = json.loads(run_cli("diff", *sides, "--format", "json", "--limit", 5).stdout)
    found = {one["table"]: one for one in told["tables_changed"]}
    assert (told["level"], told["identical"], told["old"]["version"]) == ("major", False, "1.0.0")
    assert found.keys() == {"results", "flags", "build"}
    assert found["results"]["rows"] == {"added": 0, "removed": 0, "changed": 12, "old": 12, "new": 12}
    assert len(found["results"]["changed_cells"]) == 5
    assert sum(sum(cells.values()) for cells in found["results"]["cells_by_column"].values()) == 24
    assert found["flags"]["added_rows"][0]["rule"] == "R99"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick"}


def test_the_page_is_one_file_and_escaped(sides: tuple[Path, Path]) -> None:
    page = run_cli("diff", *sides, "--format", "html").stdout
    parser = Tags()
    parser.feed(page)
    known = "html head meta title style body h1 h2 p table thead tbody tr th td"
    assert parser.found <= set(known.split(" "))
    assert "&lt;script&gt;alert(&#x27;x&#x27;)" in page


@pytest.mark.parametrize("output", ["text", "json", "html"])
def test_nothing_to_tell_is_told(output: str, small: Path, small_release: Path) -> None:
    done = run_cli("diff", small, small_release, "--format", output)
    assert done.returncode == 0
    if output == "json":
        assert json.loads(done.stdout)["identical"] is True
    else:
        assert "o difference in 21 tables" in done.stdout


def test_control_characters_of_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    evil = "1.0.0\n\x1b[31mOK"
    old = folder(tmp_path / "old", [ROW])
    (old / "release.json").write_text(json.dumps({"version": evil}))
    named = SCHEMA.append(pa.field(f"more{evil}", pa.string()))
    new = folder(tmp_path / "new", [{**ROW, "text": "u", "a": 2}, ROW], named)
    (new / "things.parquet").rename(new / f"th\x1bings{evil}.parquet")
    for sides in ((old, new), (old, folder(tmp_path / "same", [ROW], named))):
        shown = as_text(difference(*sides), 10)
        assert "\x1b" not in shown
        assert shown.startswith(rf"old: {old} (1.0.0\n\x1b[31mOK)")
        assert r"1.0.0\n\x1b[31mOK" in shown.split("new: ")[1]
    with pytest.raises(UnreadableReleaseError) as caught:
        difference(old, folder(tmp_path / f"twice{evil}", [ROW, ROW]))
    assert "\x1b" not in _one_line(caught.value)


def test_what_is_not_finite_is_no_null(tmp_path: Path) -> None:
    values = {1: float("nan"), 2: float("inf"), 3: float("-inf")}
    old = folder(tmp_path / "old", [{**ROW, "a": a, "number": value} for a, value in values.items()])
    new = folder(tmp_path / "new", [{**ROW, "a": a, "number": None} for a in values])
    found = difference(old, new)
    lines = as_text(found, 10).splitlines()
    assert [line.rpartition("number ")[2] for line in lines if "-> NULL" in line] == [
        f"{text} -> NULL" for text in ("NaN", "Infinity", "-Infinity")
    ]
    (told,) = json.loads(as_record(found, 10))["tables_changed"]
    assert [(cell["old"], cell["new"]) for cell in told["changed_cells"]] == [
        ("NaN", None),
        ("Infinity", None),
        ("-Infinity", None),
    ]
    other = folder(tmp_path / "other", [{**ROW, "a": 9, "number": float("nan")}])
    (told,) = json.loads(as_record(difference(old, other), 10))["tables_changed"]
    assert told["added_rows"][0]["number"] == told["removed_rows"][0]["number"] == "NaN"


def test_a_version_that_is_no_json_is_one_line(tmp_path: Path) -> None:
    bad = folder(tmp_path / "bad", [ROW])
    (bad / "release.json").write_text('{"version": NaN}')
    with pytest.raises(UnreadableReleaseError, match=r"release\.json: is no JSON: NaN is none"):
        read_side(bad)


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    old, new = (folder(tmp_path / text, [{**ROW, "text": f"\x1b[2J\u202e{text}"}]) for text in ("old", "new"))
    shown = run_cli("diff", old, new).stdout
    assert r"\x1b[2J\u202eold -> \x1b[2J\u202enew" in shown
