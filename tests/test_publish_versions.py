"""Which version a change needs, and rows that vanish."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import run_cli
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import CorrectionsError, ReleaseError, UnreadableReleaseError
from ipu_results.release import check, compare, read_side
from ipu_results.release.corrections import apply, load
from ipu_results.release.database import sql_digest
from ipu_results.release.difference import Difference
from ipu_results.release.page import as_page
from ipu_results.release.show import as_record, as_text
from ipu_results.release.sums import write_sums
from ipu_results.release.version import LARGEST, Change, Version, assert_allowed, changes, least, parse
from ipu_results.schema import View
from ipu_results.store import duckdb_file as duck
from ipu_results.store.files import DATABASE, get_parquet_name
from release_support import Rows, altered, released

Row = dict[str, Any]


def raised(difference: Difference) -> str:
    return str(least(Version(1, 2, 3), changes(difference)))


def first(**values: Any) -> Rows:
    """Values of the first row replaced."""
    return lambda rows: [{**rows[0], **values}, *rows[1:]]


def another(**values: Any) -> Rows:
    return lambda rows: [*rows, {**rows[0], **values}]


def without_last(rows: list[Row]) -> list[Row]:
    return rows[:-1]


def where(rows: list[Row], change: Mapping[str, Any], **found: Any) -> list[Row]:
    return [{**row, **change} if all(row[name] == value for name, value in found.items()) else row for row in rows]


def redescribed(rows: list[Row]) -> list[Row]:
    return where(rows, {"description": "Otherwise."}, table_name="results", column_name="throughput")


def retyped(rows: list[Row]) -> list[Row]:
    return where(rows, {"unit": "item/min"}, table_name="inference", column_name="throughput")


NEW_FLAG = another(rule="R99")
KINDS: dict[str, tuple[dict[str, Rows], str]] = {
    "nothing": ({}, "1.2.4"),
    "words": ({"columns": redescribed}, "1.2.4"),
    "a new row": ({"flags": NEW_FLAG}, "1.3.0"),
    "a new view column": ({"columns": another(table_name="inference", column_name="new")}, "1.3.0"),
    "a figure": ({"results": first(throughput=1.5)}, "2.0.0"),
    "an emptied figure": ({"results": first(throughput=None)}, "2.0.0"),
    "a text": ({"results": first(variant="another")}, "2.0.0"),
    "a cell": ({"cells": first(raw_text="?")}, "2.0.0"),
    "a unit of a view": ({"columns": retyped}, "2.0.0"),
    "a lost row": ({"flags": without_last}, "2.0.0"),
    "a new row and a figure": ({"flags": NEW_FLAG, "results": first(throughput=1.5)}, "2.0.0"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_change_has_its_least_version(kind: str, small: Path, tmp_path: Path) -> None:
    what, expected = KINDS[kind]
    new = altered(small, tmp_path / "new", **what)
    assert raised(compare(read_side(small), read_side(new))) == expected


def reshaped(small: Path, target: Path, change: Any) -> Path:
    """The warehouse with one Parquet file as `change` makes it."""
    target.mkdir()
    for path in small.glob("*.parquet"):
        (target / path.name).write_bytes(path.read_bytes())
    path = target / get_parquet_name("models")
    pq.write_table(change(pq.read_table(path)), path)
    return target


def with_field(table: pa.Table, **changes: Any) -> pa.Table:
    at = table.schema.get_field_index("gmacs_per_item")
    field = table.schema.field(at)
    metadata = {
        **field.metadata,
        **{name.encode(): value.encode() for name, value in changes.items() if name != "type"},
    }
    field = field.with_metadata(metadata).with_type(changes.get("type", field.type))
    return table.cast(table.schema.set(at, field))


SHAPES: dict[str, tuple[Any, str]] = {
    "a column less": (lambda table: table.drop_columns(["item_note"]), "2.0.0"),
    "a column more": (lambda table: table.append_column("more", pa.nulls(table.num_rows, pa.string())), "1.3.0"),
    "another type": (lambda table: with_field(table, type=pa.float32()), "2.0.0"),
    "another unit": (lambda table: with_field(table, unit="MMAC"), "2.0.0"),
    "another description": (lambda table: with_field(table, description="Otherwise."), "1.2.4"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_of_a_table_has_its_least_version(shape: str, small: Path, tmp_path: Path) -> None:
    change, expected = SHAPES[shape]
    old, new = read_side(small), read_side(reshaped(small, tmp_path / "new", change))
    assert raised(compare(old, new)) == expected


def test_a_table_more_or_less(small: Path, tmp_path: Path) -> None:
    fewer = reshaped(small, tmp_path / "fewer", lambda table: table)
    (fewer / "flags.parquet").unlink()
    assert raised(compare(read_side(small), read_side(fewer))) == "2.0.0"
    assert raised(compare(read_side(fewer), read_side(small))) == "1.3.0"


# numbers


@pytest.mark.parametrize(
    "text", ["1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.3-rc1", "1.2.x", "", "1.2.3\n", "-1.2.3", "١.٢.٣"]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ReleaseError, match="is no version such as"):
        parse(text)


@pytest.mark.parametrize(
    ("numbers", "level"), [((1, 2, LARGEST), "patch"), ((1, LARGEST, 3), "minor"), ((LARGEST, 2, 3), "major")]
)
def test_no_version_is_above_the_largest(numbers: tuple[int, int, int], level: str) -> None:
    previous = parse(str(Version(*numbers)))
    with pytest.raises(ReleaseError, match=f"no {level} version is left after {previous}"):
        least(previous, [Change(level, level)])


def test_a_previous_release_of_no_version_is_named(small: Path, standing: Path) -> None:
    (standing / "release.json").write_text('{"version": "next"}')
    write_sums(standing)
    with pytest.raises(ReleaseError, match=r"out/release\.json: 'next' is no version"):
        released(small, standing)


@given(st.tuples(*[st.integers(0, 99)] * 3), st.lists(st.sampled_from(["patch", "minor", "major"])))
def test_the_least_version_is_above_the_previous(numbers: tuple[int, int, int], levels: list[str]) -> None:
    previous = Version(*numbers)
    wanted = [Change(level, level) for level in levels]
    lowest = least(previous, wanted)
    assert lowest > previous
    assert parse(str(lowest)) == lowest
    assert_allowed(lowest, lowest, previous, wanted)
    with pytest.raises(ReleaseError, match="too low"):
        assert_allowed(previous, lowest, previous, wanted)


# the command


def test_the_least_version_is_taken_and_a_lower_one_refused(small: Path, small_release: Path, tmp_path: Path) -> None:
    new = altered(small, tmp_path / "new", results=first(throughput=1.5), flags=NEW_FLAG)
    asked = ("publish", "--warehouse", new, "--previous", small_release, "--out", tmp_path / "out")
    low = run_cli(*asked, "--version", "1.9.0")
    assert low.returncode == 1
    assert low.stderr == (
        "error: version 1.9.0 is too low after 1.0.0, it must be at least 2.0.0: results.throughput: 1 cell changed; "
        "flags: 1 row new\n"
    )
    assert not (tmp_path / "out").exists()
    done = run_cli(*asked)
    assert done.returncode == 0, done.stderr
    assert ": version 2.0.0, " in done.stdout
    found = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    assert (found["version"], found["least_version"], found["previous"]["version"]) == ("2.0.0", "2.0.0", "1.0.0")
    assert {"level": "major", "what": "results.throughput: 1 cell changed"} in found["changes"]


@pytest.fixture
def standing(small_release: Path, tmp_path: Path) -> Path:
    """A release in the place where the next one goes."""
    return Path(shutil.copytree(small_release, tmp_path / "out"))


def test_the_release_that_stands_there_is_the_measure(small: Path, standing: Path, tmp_path: Path) -> None:
    fewer = altered(small, tmp_path / "fewer", flags=without_last)
    with pytest.raises(ReleaseError, match="flags: 1 rows vanished"):
        released(fewer, standing)
    more = altered(small, tmp_path / "more", flags=NEW_FLAG)
    with pytest.raises(ReleaseError, match=r"version 0\.9\.0 is too low after 1\.0\.0, it must be at least 1\.1\.0"):
        released(more, standing, version="0.9.0")
    assert str(released(more, standing).decision.version) == "1.1.0"


def test_a_changed_definition_is_major_and_told(
    small: Path, small_release: Path, standing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = duck.sql_view

    def changed(view: View) -> list[str]:
        return [f"{sql} AND latency_ms > 1" if sql.startswith("CREATE VIEW inference") else sql for sql in made(view)]

    monkeypatch.setattr(duck, "sql_view", changed)
    with pytest.raises(ReleaseError, match=r"must be at least 2\.0\.0: the definition of inference changed"):
        released(small, standing, version="1.0.1")
    assert str(released(small, standing).decision.version) == "2.0.0"
    found = compare(read_side(small_release), read_side(standing))
    assert (found.views, found.is_empty) == (("inference",), False)
    assert "~ the definition of inference" in as_text(found, 0).splitlines()
    assert json.loads(as_record(found, 0))["definitions_changed"] == ["inference"]
    assert "<td>inference</td>" in as_page(found, 0)


@pytest.mark.parametrize(
    ("sql", "same"),
    [("SELECT\n  a,b", True), ("SELECT a, c", False), ("SELECT 'a  b'", False), ('SELECT "a  b"', False)],
)
def test_blanks_of_a_definition_count_in_quotes_alone(sql: str, same: bool) -> None:
    quoted = sql.replace("a  b", "a b")
    assert (sql_digest(sql) == sql_digest("SELECT a, b" if quoted == sql else quoted)) is same


def test_the_same_tables_make_the_same_release_again(small: Path, standing: Path, tmp_path: Path) -> None:
    whole = corrections(tmp_path, GONE.format(**pq.read_table(small / "flags.parquet").to_pylist()[-1]))
    fewer = altered(small, tmp_path / "fewer", flags=without_last)
    released(fewer, standing, corrections=whole)
    first = {path.name: path.read_bytes() for path in standing.iterdir()}
    assert str(released(fewer, standing).decision.version) == "2.0.0"
    assert {name for name in first if first[name] != (standing / name).read_bytes()} <= {DATABASE, "SHA256SUMS"}
    with pytest.raises(ReleaseError, match=r"too low after 2\.0\.0, it must be at least 2\.0\.1: a release needs"):
        released(fewer, standing, version="1.9.9")
    assert str(released(fewer, standing, previous=standing).decision.version) == "2.0.1"


def test_a_standing_release_that_tells_no_changes_is_one_line(small: Path, standing: Path) -> None:
    (standing / "release.json").write_text('{"version": "1.0.0"}')
    write_sums(standing)
    with pytest.raises(ReleaseError, match=r"out/release\.json: is not as publish writes it"):
        released(small, standing)


def test_corrections_of_no_release_are_refused(small: Path, tmp_path: Path) -> None:
    file = corrections(tmp_path, "")
    with pytest.raises(CorrectionsError, match=r"corrections\.toml: corrects nothing: there is no previous release"):
        released(small, tmp_path / "none", corrections=file)


def test_an_empty_version_is_none(small: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="'' is no version"):
        released(small, tmp_path / "none", version="")


def test_a_damaged_previous_release_is_no_measure(small: Path, small_release: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    for path in small_release.iterdir():
        (bad / path.name).write_bytes(path.read_bytes())
    (bad / "flags.csv").write_text("rule\n")
    with pytest.raises(ReleaseError, match=r"is damaged: flags\.csv: has another sha256"):
        released(small, tmp_path / "out", previous=bad)
    shutil.copyfile(small_release / "flags.csv", bad / "flags.csv")
    (bad / DATABASE).write_bytes(b"none")
    with pytest.raises(ReleaseError, match=r"is damaged: ipu_results\.duckdb: has another sha256"):
        released(small, tmp_path / "out", previous=bad)
    with pytest.raises(ReleaseError, match="is no release"):
        released(small, tmp_path / "out", previous=small)
    with pytest.raises(UnreadableReleaseError, match="none: no such folder"):
        released(small, tmp_path / "out", previous=tmp_path / "none")


# rows that vanish

GONE = """
[[correction]]
table = "flags"
key = {{ rule = "{rule}", result_id = "{result_id}", column_name = "{column_name}" }}
reason = "The rule was | wrong <b>here</b>."
expect = "gone"
"""


NO_NUMBER = '[[correction]]\ntable = "cells"\nkey = { cell_number = "x" }\nreason = "r"\nexpect = "gone"\n'


@pytest.fixture
def lost(small: Path, tmp_path: Path) -> tuple[Path, Row]:
    """A warehouse without the last flag, and that flag."""
    return altered(small, tmp_path / "lost", flags=without_last), pq.read_table(small / "flags.parquet").to_pylist()[-1]


def corrections(tmp_path: Path, text: str) -> Path:
    (tmp_path / "corrections.toml").write_text(text, encoding="utf-8")
    return tmp_path / "corrections.toml"


def test_a_row_that_vanished_needs_a_reason(lost: tuple[Path, Row], small_release: Path, tmp_path: Path) -> None:
    warehouse, flag = lost
    with pytest.raises(ReleaseError, match=f"flags: 1 rows vanished, such as rule = {flag['rule']}, .*--corrections"):
        released(warehouse, tmp_path / "out", previous=small_release)
    file = corrections(tmp_path, GONE.format(**flag))
    done = released(warehouse, tmp_path / "out", previous=small_release, corrections=file)
    assert str(done.decision.version) == "2.0.0"
    assert check(tmp_path / "out") == []
    (told,) = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))["corrections"]
    assert (told["table"], told["rows"], told["reason"]) == ("flags", 1, "The rule was | wrong <b>here</b>.")
    assert r"The rule was \| wrong &lt;b&gt;here&lt;/b&gt;." in (tmp_path / "out" / "README.md").read_text("utf-8")


def applied(old: Path, new: Path, file: Path) -> list[int]:
    return [one.rows for one in apply(load(file), compare(read_side(old), read_side(new)))]


def test_part_of_a_key_names_many_rows_and_their_number_guards(small: Path, tmp_path: Path) -> None:
    rows = pq.read_table(small / "flags.parquet").to_pylist()
    rule = rows[0]["rule"]
    count = sum(row["rule"] == rule for row in rows)
    new = altered(small, tmp_path / "new", flags=lambda rows: [row for row in rows if row["rule"] != rule])
    named = f'[[correction]]\ntable = "flags"\nkey = {{ rule = "{rule}" }}\nreason = "Withdrawn."\n'
    assert applied(small, new, corrections(tmp_path, named)) == [count]
    assert applied(small, new, corrections(tmp_path, f"{named}rows = {count}\n")) == [count]
    with pytest.raises(CorrectionsError, match=f"correction 1: {count} rows of flags vanished, not 99"):
        applied(small, new, corrections(tmp_path, f"{named}rows = 99\n"))


def test_the_guard_fails_where_the_row_is_still_there(small: Path, tmp_path: Path) -> None:
    flag = pq.read_table(small / "flags.parquet").to_pylist()[0]
    with pytest.raises(CorrectionsError, match="says that rows of flags are gone, and 1 are there"):
        applied(small, small, corrections(tmp_path, GONE.format(**flag)))
    with pytest.raises(CorrectionsError, match=r"corrections\.toml, correction 1: Conversion Error"):
        applied(small, small, corrections(tmp_path, NO_NUMBER))
    unguarded = GONE.format(**flag).replace('expect = "gone"', "")
    assert applied(small, small, corrections(tmp_path, unguarded)) == []


def test_a_guard_on_a_table_that_never_was_fails(small: Path, tmp_path: Path) -> None:
    misspelt = '[[correction]]\ntable = "flag"\nkey = { rule = "R14" }\nreason = "r"\nexpect = "gone"\n'
    with pytest.raises(CorrectionsError, match="correction 1: names a table flag that was never there"):
        applied(small, small, corrections(tmp_path, misspelt))


def test_a_row_that_two_entries_name_counts_for_both(lost: tuple[Path, Row], small: Path, tmp_path: Path) -> None:
    whole = f'[[correction]]\ntable = "flags"\nkey = {{ rule = "{lost[1]["rule"]}" }}\nreason = "r"\nrows = 1\n'
    assert applied(small, lost[0], corrections(tmp_path, GONE.format(**lost[1]) + whole)) == [1, 1]


def test_a_table_that_vanished_is_named_without_a_key(small: Path, tmp_path: Path) -> None:
    new = reshaped(small, tmp_path / "new", lambda table: table)
    (new / "flags.parquet").unlink()
    whole = corrections(tmp_path, '[[correction]]\ntable = "flags"\nreason = "Moved."\n')
    assert applied(small, new, whole) == [pq.read_metadata(small / "flags.parquet").num_rows]
    with pytest.raises(ReleaseError, match="table flags vanished and no correction names a reason"):
        applied(small, new, corrections(tmp_path, ""))


def test_without_a_key_no_single_row_is_named(lost: tuple[Path, Row], small: Path, tmp_path: Path) -> None:
    whole = corrections(tmp_path, '[[correction]]\ntable = "flags"\nreason = "Moved."\n')
    with pytest.raises(ReleaseError, match="flags: 1 rows vanished"):
        applied(small, lost[0], whole)


WRONG = {
    "[[correction]\n": "cannot be read",
    "x = 1\n": "holds something else",
    "correction = 1\n": "holds something else",
    "correction = [1]\n": "has unknown shape",
    '[[correction]]\ntable = "flags"\n': "lacks a table or a reason",
    '[[correction]]\ntable = "flags"\nreason = " "\n': "lacks a table or a reason",
    '[[correction]]\ntable = "flags"\nreason = "r"\nkeys = 1\n': "has unknown keys",
    '[[correction]]\ntable = "flags"\nreason = "r"\nkey = 1\n': "has a key that is no table",
    '[[correction]]\ntable = "flags"\nreason = "r"\nkey = { message = "m" }\n': "message is no key column of flags",
    '[[correction]]\ntable = "flags"\nreason = "r"\nexpect = "x"\n': "has an expect that is not",
    '[[correction]]\ntable = "flags"\nreason = "r"\nrows = true\n': "rows that are no number",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_corrections_file_is_one_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(CorrectionsError, match=WRONG[text]):
        load(corrections(tmp_path, text))


def test_an_absent_corrections_file_is_one_line(small: Path, small_release: Path, tmp_path: Path) -> None:
    asked = ("--warehouse", small, "--out", tmp_path / "out", "--previous", small_release)
    done = run_cli("publish", *asked, "--corrections", tmp_path / "none.toml")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "none.toml: cannot be read" in done.stderr
