"""Which version a change needs, and rows that vanish."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ipu_results.errors import CorrectionsError, ReleaseError, UnreadableReleaseError
from ipu_results.record.store import query
from ipu_results.record.store.files import DATABASE
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

from tests.conftest import read_files, run_cli
from tests.release.release_support import (
    PUBLISHED_ON,
    Row,
    alter_warehouse,
    publish_release,
    read_record,
    read_rows,
)

# whole releases are made
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_verification")]


def get_next_version(old: Path, new: Path) -> str:
    return str(get_lowest_version(Version(1, 2, 3), list_changes(diff_releases(old, new))))


# By table: the values that its first row gets.
CELL_CHANGES: dict[str, tuple[dict[str, Row], str]] = {
    "nothing": ({}, "1.2.4"),
    "note of a document": ({"documents": {"note": "Other.", "licence": "CC0"}}, "1.2.4"),
    "message of a flag": ({"flags": {"message": "Other."}}, "1.2.4"),
    "moved locator": ({"cells": {"locator": "line 99"}}, "1.2.4"),
    "derived count": ({"rank_resolution": {"tied_groups": 99}}, "1.3.0"),
    "figure": ({"results": {"throughput": 1.5}}, "2.0.0"),
    "printed text": ({"cells": {"raw_text": "?"}}, "2.0.0"),
}


@pytest.mark.parametrize("kind", CELL_CHANGES)
def test_each_changed_cell_has_its_version(kind: str, small: Path, tmp_path: Path) -> None:
    changes, expected = CELL_CHANGES[kind]
    rows = {}
    for name, values in changes.items():
        first, *others = read_rows(small, name)
        rows[name] = [first | values, *others]
    assert get_next_version(small, alter_warehouse(small, tmp_path / "new", **rows)) == expected


@pytest.mark.parametrize(
    ("relation", "values", "expected"),
    [
        ("results", {"description": "Other."}, "1.2.4"),
        ("inference", {"unit": "item/min"}, "2.0.0"),
    ],
)
def test_each_change_of_the_dictionary_has_its_version(
    relation: str, values: Row, expected: str, small: Path, tmp_path: Path
) -> None:
    columns = read_rows(small, "columns")
    for row in columns:
        if (row["table_name"], row["column_name"]) == (relation, "throughput"):
            row.update(values)
    assert (
        get_next_version(small, alter_warehouse(small, tmp_path / "new", columns=columns))
        == expected
    )


def test_new_and_removed_rows_have_their_versions(small: Path, fewer: Path, more: Path) -> None:
    assert get_next_version(small, more) == "1.3.0"
    assert get_next_version(small, fewer) == "2.0.0"


def change_field(table: pa.Table, kind: pa.DataType | None = None, **metadata: str) -> pa.Table:
    at = table.schema.get_field_index("gmacs_per_item")
    field = table.schema.field(at)
    stated = {name.encode(): text.encode() for name, text in metadata.items()}
    field = field.with_metadata(field.metadata | stated)
    return table.cast(table.schema.set(at, field.with_type(kind or field.type)))


COLUMN_CHANGES: dict[str, tuple[Any, str]] = {
    "removed column": (lambda table: table.drop_columns(["item_note"]), "2.0.0"),
    "new column": (lambda table: table.append_column("more", table["item_note"]), "1.3.0"),
    "type": (lambda table: change_field(table, pa.float32()), "2.0.0"),
    "unit": (lambda table: change_field(table, unit="MMAC"), "2.0.0"),
    "description": (lambda table: change_field(table, description="Other."), "1.2.4"),
}


@pytest.mark.parametrize("kind", COLUMN_CHANGES)
def test_each_change_of_a_column_has_its_version(kind: str, small: Path, tmp_path: Path) -> None:
    change, expected = COLUMN_CHANGES[kind]
    path = Path(shutil.copytree(small, tmp_path / "new")) / "models.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    assert get_next_version(small, path.parent) == expected


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
    first, *others = read_rows(small, "results")
    results = [{**first, "throughput": 1.5}, *others]
    flags = read_rows(small, "flags")
    flags.append({**flags[0], "rule": "R99"})
    return alter_warehouse(small, tmp_path / "changed", results=results, flags=flags)


def decide(
    new: Path,
    out: Path,
    previous: Path | None = None,
    version: str | None = None,
    corrections: Path | None = None,
) -> ReleaseDecision:
    """Decide on a release of a warehouse without publishing it."""
    return decide_release(
        new, ReleaseRequest(new, out, PUBLISHED_ON, version, previous, corrections)
    )


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
    message = f"error: pyproject.toml: {too_low}. Raise it there and run: make docs\n"
    assert low.returncode == 1
    assert low.stderr == message
    assert not out.exists()
    monkeypatch.setattr("ipu_results.kit.files.read_version", lambda: "2.1.0")
    result = run_cli(*options)
    assert result.returncode == 0, result.stderr
    assert ": version 2.1.0, " in result.stdout
    record = read_record(out)
    versions = (record["version"], record["least_version"], record["previous"]["version"])
    assert versions == ("2.1.0", "2.0.0", "1.0.0")
    assert {"level": "major", "what": "results.throughput: 1 cell changed"} in record["changes"]
    again = run_cli("publish", "--warehouse", changed, "--out", out)
    assert again.returncode == 0, again.stderr
    assert read_record(out) == record, "the same tables again"


def test_release_in_the_target_is_the_previous_one(
    small: Path, fewer: Path, more: Path, out: Path, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match="flags: 1 rows vanished"):
        decide(fewer, out)
    too_low = r"version 0\.9\.0 is too low after 1\.0\.0, it must be at least 1\.1\.0"
    with pytest.raises(ReleaseError, match=too_low):
        decide(more, out, version="0.9.0")
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


def test_same_tables_make_the_same_release_again(
    small: Path, fewer: Path, out: Path, tmp_path: Path
) -> None:
    publish_release(fewer, out, corrections=write_corrections(tmp_path, describe_flag(small)))
    first = read_files(out)
    assert str(publish_release(fewer, out).decision.version) == "2.0.0"
    different = {name for name in first if first[name] != (out / name).read_bytes()}
    assert different <= {DATABASE, "SHA256SUMS"}
    too_low = r"too low after 2\.0\.0, it must be at least 2\.0\.1: each release needs"
    with pytest.raises(ReleaseError, match=too_low):
        decide(fewer, out, version="1.9.9")


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
        publish_release(small, tmp_path / "none", version="")


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
        decide(fewer, out, small_release)
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
    file = write_corrections(tmp_path, "")
    missing = r"corrections\.toml: there is no previous release to correct"
    with pytest.raises(CorrectionsError, match=missing):
        decide(small, tmp_path / "none", corrections=file)
    with pytest.raises(CorrectionsError, match=r"none\.toml: cannot be read"):
        decide(small, tmp_path / "none", small_release, corrections=tmp_path / "none.toml")


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
