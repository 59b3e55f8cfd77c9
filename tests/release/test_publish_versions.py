"""Which version a change needs, and rows that vanish."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ipu_results.errors import CorrectionsError, ReleaseError, UnreadableReleaseError
from ipu_results.record.store import query
from ipu_results.release import ReleaseDecision, ReleaseRequest, diff_releases, verify_release
from ipu_results.release.corrections import apply_corrections
from ipu_results.release.decision import decide_release
from ipu_results.release.diff_report import format_diff_html, format_diff_json, format_diff_text
from ipu_results.release.files import write_checksums
from ipu_results.release.version import (
    Version,
    get_lowest_version,
    list_changes,
)
from ipu_results.schema import View

from tests.conftest import run_cli
from tests.release.release_support import (
    PUBLISHED_ON,
    alter_warehouse,
    locate_table,
    publish_release,
    read_record,
    read_rows,
)

# whole releases are made
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_verification")]


def get_next_version(old: Path, new: Path) -> str:
    return str(get_lowest_version(Version(1, 2, 3), list_changes(diff_releases(old, new))))


# One table of a warehouse, changed


Edit = Callable[[pa.Table], pa.Table]


def set_first(**values: object) -> Edit:
    """Return a change of values of the first row."""

    def change(table: pa.Table) -> pa.Table:
        first, *others = table.to_pylist()
        return pa.Table.from_pylist([{**first, **values}, *others], schema=table.schema)

    return change


def describe_throughput(relation: str, **values: str) -> Edit:
    """Return a change of what the dictionary says of the throughput of a table or view."""

    def change(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        [row] = [
            row
            for row in rows
            if row["table_name"] == relation and row["column_name"] == "throughput"
        ]
        row.update(values)
        return pa.Table.from_pylist(rows, schema=table.schema)

    return change


def set_field(kind: pa.DataType | None = None, **metadata: str) -> Edit:
    """Return a change of the type or the metadata of a column."""

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("gmacs_per_item")
        field = table.schema.field(at)
        stated = {name.encode(): text.encode() for name, text in metadata.items()}
        field = field.with_metadata(field.metadata | stated)
        return table.cast(table.schema.set(at, field.with_type(kind or field.type)))

    return change


def add_column(table: pa.Table) -> pa.Table:
    return table.append_column("more", table["item_note"])


def drop_column(table: pa.Table) -> pa.Table:
    return table.drop_columns(["item_note"])


def drop_row(table: pa.Table) -> pa.Table:
    return table.slice(1)


def leave(table: pa.Table) -> pa.Table:
    return table


VERSIONS: dict[str, tuple[str, Edit, str]] = {
    "nothing": ("models", leave, "1.2.4"),
    "licence of a document": ("documents", set_first(note="Other.", licence="CC0"), "1.2.4"),
    "message of a flag": ("flags", set_first(message="Other."), "1.2.4"),
    "moved locator": ("cells", set_first(locator="line 99"), "1.2.4"),
    "derived count": ("rank_resolution", set_first(tied_groups=99), "1.3.0"),
    "figure": ("results", set_first(throughput=1.5), "2.0.0"),
    "printed text": ("cells", set_first(raw_text="?"), "2.0.0"),
    "description": ("columns", describe_throughput("results", description="Other."), "1.2.4"),
    "unit of a view": ("columns", describe_throughput("inference", unit="item/min"), "2.0.0"),
    "removed row": ("flags", drop_row, "2.0.0"),
    "removed column": ("models", drop_column, "2.0.0"),
    "new column": ("models", add_column, "1.3.0"),
    "type of a column": ("models", set_field(pa.float32()), "2.0.0"),
    "unit of a column": ("models", set_field(unit="MMAC"), "2.0.0"),
    "description of a column": ("models", set_field(description="Other."), "1.2.4"),
}


@pytest.mark.parametrize("kind", VERSIONS)
def test_each_change_of_a_table_has_its_version(kind: str, small: Path, tmp_path: Path) -> None:
    name, edit, expected = VERSIONS[kind]
    new = Path(shutil.copytree(small, tmp_path / "new"))
    path = locate_table(new, name)
    pq.write_table(edit(pq.read_table(path)), path)
    assert get_next_version(small, new) == expected


def test_new_rows_have_their_version(small: Path, more: Path) -> None:
    assert get_next_version(small, more) == "1.3.0"


def test_new_and_removed_tables_have_their_versions(small: Path, tmp_path: Path) -> None:
    without = Path(shutil.copytree(small, tmp_path / "without"))
    (without / "flags.parquet").unlink()
    assert get_next_version(small, without) == "2.0.0"
    assert get_next_version(without, small) == "1.3.0"


@pytest.fixture
def out(small_release: Path, tmp_path: Path) -> Path:
    """Return a release in the place of the next one."""
    return Path(shutil.copytree(small_release, tmp_path / "out"))


@pytest.fixture
def fewer(small: Path, tmp_path: Path) -> Path:
    """Return a warehouse without the last flag."""
    return alter_warehouse(small, tmp_path / "fewer", flags=read_rows(small, "flags")[:-1])


@pytest.fixture
def more(small: Path, tmp_path: Path) -> Path:
    """Return a warehouse with another flag."""
    flags = read_rows(small, "flags")
    return alter_warehouse(small, tmp_path / "more", flags=[*flags, {**flags[0], "rule": "R99"}])


@pytest.fixture
def changed(small: Path, tmp_path: Path) -> Path:
    """Return a warehouse with another figure and another flag."""
    first, *results = read_rows(small, "results")
    flags = read_rows(small, "flags")
    return alter_warehouse(
        small,
        tmp_path / "changed",
        results=[{**first, "throughput": 1.5}, *results],
        flags=[*flags, {**flags[0], "rule": "R99"}],
    )


def decide(new: Path, out: Path, **options: Any) -> ReleaseDecision:
    """Decide on a release of a warehouse without publishing it."""
    return decide_release(new, ReleaseRequest(new, out, PUBLISHED_ON, **options))


def test_version_of_the_repository_is_default_and_a_lower_one_is_refused(
    changed: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    options = ("publish", "--warehouse", changed, "--previous", small_release, "--out", out)
    too_low = (
        "version 1.9.0 is too low after 1.0.0, it must be at least 2.0.0: results.throughput: 1"
        " cell changed; flags: 1 row new"
    )
    low = run_cli(*options, "--version", "1.9.0")
    assert low.returncode == 1
    assert low.stderr == f"error: {too_low}\n"
    monkeypatch.setattr("ipu_results.kit.files.read_version", lambda: "1.9.0")
    low = run_cli(*options)
    assert low.returncode == 1
    message = f"error: pyproject.toml: {too_low}. Raise it there and run: make docs\n"
    assert low.stderr == message
    assert not out.exists()
    monkeypatch.setattr("ipu_results.kit.files.read_version", lambda: "2.1.0")
    result = run_cli(*options)
    assert result.returncode == 0, result.stderr
    record = read_record(out)
    assert record["version"] == "2.1.0"
    assert record["least_version"] == "2.0.0"
    assert record["previous"]["version"] == "1.0.0"
    assert {"level": "major", "what": "results.throughput: 1 cell changed"} in record["changes"]
    again = run_cli("publish", "--warehouse", changed, "--out", out)
    assert again.returncode == 0, again.stderr
    assert read_record(out) == record, "the same tables again"


def test_release_in_the_target_is_the_previous_one(
    small: Path, more: Path, out: Path, tmp_path: Path
) -> None:
    assert str(decide(more, out).version) == "1.1.0"
    assert str(decide(more, tmp_path / "none").version) == "1.0.0"
    assert str(decide(small, out).version) == "1.0.0"
    assert str(decide(small, out, previous=out).version) == "1.0.1"


def test_changed_definition_is_major_and_reported(
    small: Path, small_release: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql_view = query.sql_view

    def change(view: View) -> list[str]:
        statements = sql_view(view)
        if view.name == "inference":
            statements[0] += " WHERE 1 < 2"
        return statements

    monkeypatch.setattr(query, "sql_view", change)
    assert str(publish_release(small, out).decision.version) == "2.0.0"
    diff = diff_releases(small_release, out)
    assert diff.views == ("inference",)
    assert not diff.is_empty
    assert "~ the definition of inference" in format_diff_text(diff).splitlines()
    assert '"definitions_changed": [\n  "inference"\n ]' in format_diff_json(diff)
    assert "<td>inference</td>" in format_diff_html(diff)


def test_same_tables_need_no_other_version(small: Path, out: Path) -> None:
    too_low = r"too low after 1\.0\.0, it must be at least 1\.0\.1: each release needs"
    with pytest.raises(ReleaseError, match=too_low):
        decide(small, out, version="0.9.9")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"version": "next"}', "'next' is not a version"),
        ('{"version": "1.0.0"}', "is not as publish writes it"),
    ],
)
def test_malformed_record_of_the_previous_release_is_named(
    record: str, message: str, small: Path, out: Path
) -> None:
    (out / "release.json").write_text(record)
    write_checksums(out)
    with pytest.raises(ReleaseError, match=rf"out/release\.json: {message}"):
        decide(small, out)


def test_unsound_previous_release_is_refused(small: Path, out: Path, tmp_path: Path) -> None:
    (out / "flags.csv").write_bytes(b"none")
    with pytest.raises(ReleaseError, match=r"is damaged: flags\.csv: sha256 differs"):
        decide(small, tmp_path / "new", previous=out)
    with pytest.raises(ReleaseError, match="is not a release"):
        decide(small, tmp_path / "new", previous=small)
    with pytest.raises(UnreadableReleaseError, match="none: no such folder"):
        decide(small, tmp_path / "new", previous=tmp_path / "none")
    with pytest.raises(ReleaseError, match="'' is not a version"):
        decide(small, tmp_path / "none", version="")


REASON = "The rule was | wrong <b>here</b>."
FLAG_KEY = ("rule", "result_id", "column_name")
ENTRY = '[[correction]]\ntable = "flags"\nreason = "r"\n'


def describe_flag(warehouse: Path) -> str:
    """Return a correction for the last flag."""
    flag = read_rows(warehouse, "flags")[-1]
    key = ", ".join(f'{name} = "{flag[name]}"' for name in FLAG_KEY)
    return f'[[correction]]\ntable = "flags"\nkey = {{ {key} }}\nreason = "{REASON}"\nexpect = "gone"\n'


def write_corrections(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "corrections.toml"
    path.write_text(text, encoding="utf-8")
    return path


def count_applied(old: Path, new: Path, file: Path) -> list[int]:
    matched = apply_corrections(file, diff_releases(old, new))
    return [record["rows"] for record in matched.records]


def test_removed_row_needs_a_reason_that_is_published(
    fewer: Path, small: Path, small_release: Path, tmp_path: Path
) -> None:
    flag = read_rows(small, "flags")[-1]
    out = tmp_path / "out"
    vanished = f"flags: 1 rows vanished, such as rule = {flag['rule']}, .*--corrections"
    with pytest.raises(ReleaseError, match=vanished):
        decide(fewer, out, previous=small_release)
    unused = f'{ENTRY}key = {{ rule = "R99" }}\n'
    file = write_corrections(tmp_path, describe_flag(small) + unused)
    options = ("--previous", small_release, "--out", out, "--corrections", file)
    result = run_cli("publish", "--warehouse", fewer, *options, "--version", "2.0.0")
    assert result.returncode == 0, result.stderr
    assert "correction 2 names no removed row of flags" in result.stderr
    assert verify_release(out) == []
    (correction,) = read_record(out)["corrections"]
    assert correction["key"] == {name: flag[name] for name in FLAG_KEY}
    assert correction["table"] == "flags"
    assert correction["rows"] == 1
    assert correction["reason"] == REASON
    card = (out / "README.md").read_text("utf-8")
    assert r"The rule was \| wrong &lt;b&gt;here&lt;/b&gt;." in card


def test_part_of_a_key_names_many_rows_and_their_number_is_checked(
    small: Path, tmp_path: Path
) -> None:
    flags = read_rows(small, "flags")
    rule = flags[0]["rule"]
    others = [row for row in flags if row["rule"] != rule]
    count = len(flags) - len(others)
    new = alter_warehouse(small, tmp_path / "new", flags=others)
    entry = f'{ENTRY}key = {{ rule = "{rule}" }}\n'
    twice = write_corrections(tmp_path, f"{entry}rows = {count}\n{entry}")
    assert count_applied(small, new, twice) == [count, count]
    wrong = write_corrections(tmp_path, f"{entry}rows = 99\n")
    message = f"correction 1: {count} rows of flags vanished, not 99"
    with pytest.raises(CorrectionsError, match=message):
        count_applied(small, new, wrong)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('table = "flags"\n', r"expects rows of flags to be gone, but \d+ are present"),
        ('table = "cells"\nkey = { cell_number = "x" }', "Conversion Error"),
        ('table = "flag"\nkey = { rule = "R14" }', "table flag is in neither release"),
    ],
)
def test_expectation_that_does_not_hold_is_refused(
    entry: str, message: str, small: Path, tmp_path: Path
) -> None:
    entry = f'[[correction]]\nreason = "r"\n{entry}\n'
    assert count_applied(small, small, write_corrections(tmp_path, entry)) == []
    with pytest.raises(CorrectionsError, match=rf"corrections\.toml, correction 1: {message}"):
        count_applied(small, small, write_corrections(tmp_path, f'{entry}expect = "gone"\n'))


def test_entry_without_a_key_names_a_removed_table_and_no_single_rows(
    fewer: Path, small: Path, tmp_path: Path
) -> None:
    table = write_corrections(tmp_path, ENTRY)
    with pytest.raises(ReleaseError, match="flags: 1 rows vanished"):
        count_applied(small, fewer, table)
    (fewer / "flags.parquet").unlink()
    assert count_applied(small, fewer, table) == [len(read_rows(small, "flags"))]
    with pytest.raises(ReleaseError, match="table flags vanished without a correction"):
        count_applied(small, fewer, write_corrections(tmp_path, ""))


def test_corrections_without_a_file_or_a_previous_release_are_refused(
    small: Path, small_release: Path, tmp_path: Path
) -> None:
    out = tmp_path / "none"
    missing = r"corrections\.toml: there is no previous release to correct"
    with pytest.raises(CorrectionsError, match=missing):
        decide(small, out, corrections=write_corrections(tmp_path, ""))
    with pytest.raises(CorrectionsError, match=r"none\.toml: cannot be read"):
        decide(small, out, previous=small_release, corrections=tmp_path / "none.toml")


def test_record_of_a_release_describes_the_changes(
    small: Path, changed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "release"
    records = tmp_path / "releases"
    publish_release(small, out, record=records)
    first = read_record(records, "1.0.0.json")
    assert first["previous"] is None
    assert first["figures_changed"] == []
    assert first["summary"][0].startswith("First release: 12 results, ")
    publish_release(changed, out, record=records)
    second = read_record(records, "2.0.0.json")
    assert second["previous"] == "1.0.0"
    assert second["level"] == "major"
    assert second["summary"] == ["1 figure changed.", "Rows of flags: 1 new."]
    [figure] = second["figures_changed"]
    assert figure["column"] == "throughput"
    assert figure["new"] == 1.5
    assert figure["table"] == "results"
    publish_release(changed, out, record=records)
    assert sorted(path.name for path in records.iterdir()) == ["1.0.0.json", "2.0.0.json"]
    assert read_record(records, "2.0.0.json") == second
