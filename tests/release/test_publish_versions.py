"""Which version a change needs, and rows that vanish."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import CorrectionsError, ReleaseError, UnreadableReleaseError
from ipu_results.record.store import query
from ipu_results.record.store.files import DATABASE
from ipu_results.release import ReleaseDecision, diff_releases, verify_release
from ipu_results.release.diff_report import format_diff_html, format_diff_json, format_diff_text
from ipu_results.release.files import hash_sql, write_checksums
from ipu_results.release.version import (
    Version,
    VersionChange,
    apply_corrections,
    assert_allowed,
    decide_release,
    get_lowest_version,
    list_changes,
    load_corrections,
    parse_version,
)
from ipu_results.schema import View

from tests.conftest import read_files, run_cli
from tests.release.release_support import (
    PUBLISHED_ON,
    Change,
    Row,
    alter_warehouse,
    publish_release,
    read_record,
)

# whole releases are made
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_verification")]


def get_next_version(old: Path, new: Path) -> str:
    return str(get_lowest_version(Version(1, 2, 3), list_changes(diff_releases(old, new))))


def change_first(**values: Any) -> Change:
    return lambda rows: [{**rows[0], **values}, *rows[1:]]


def add(**values: Any) -> Change:
    return lambda rows: [*rows, {**rows[0], **values}]


def drop_last(rows: list[Row]) -> list[Row]:
    return rows[:-1]


def change_dictionary(table: str, **values: str) -> Change:
    return lambda rows: [
        (
            {**row, **values}
            if (row["table_name"], row["column_name"]) == (table, "throughput")
            else row
        )
        for row in rows
    ]


NEW_FLAG = add(rule="R99")
ROW_CHANGES: dict[str, tuple[dict[str, Change], str]] = {
    "nothing": ({}, "1.2.4"),
    "description": ({"columns": change_dictionary("results", description="Other.")}, "1.2.4"),
    "reworded note of a document": (
        {"documents": change_first(note="Other.", licence="CC0")},
        "1.2.4",
    ),
    "reworded message of a flag": ({"flags": change_first(message="Other.")}, "1.2.4"),
    "moved locator": ({"cells": change_first(locator="line 99")}, "1.2.4"),
    "new row": ({"flags": NEW_FLAG}, "1.3.0"),
    "new row of a known document": (
        {"documents": change_first(sha256="0" * 64), "results": add(result_id="0" * 16)},
        "1.3.0",
    ),
    "changed figure of a changed document": (
        {"documents": change_first(sha256="0" * 64), "results": change_first(throughput=1.5)},
        "2.0.0",
    ),
    "new column of a view": ({"columns": add(table_name="inference", column_name="new")}, "1.3.0"),
    "changed figure": ({"results": change_first(throughput=1.5)}, "2.0.0"),
    "changed cell": ({"cells": change_first(raw_text="?")}, "2.0.0"),
    "unit of a view": ({"columns": change_dictionary("inference", unit="item/min")}, "2.0.0"),
    "removed row": ({"flags": drop_last}, "2.0.0"),
}


@pytest.mark.parametrize("kind", ROW_CHANGES)
def test_each_change_of_rows_has_its_version(kind: str, small: Path, tmp_path: Path) -> None:
    changes, expected = ROW_CHANGES[kind]
    assert get_next_version(small, alter_warehouse(small, tmp_path / "new", **changes)) == expected


def change_field(table: pa.Table, kind: pa.DataType | None = None, **metadata: str) -> pa.Table:
    at = table.schema.get_field_index("gmacs_per_item")
    field = table.schema.field(at)
    field = field.with_metadata(
        {**field.metadata, **{name.encode(): text.encode() for name, text in metadata.items()}}
    )
    return table.cast(table.schema.set(at, field.with_type(kind or field.type)))


COLUMN_CHANGES: dict[str, tuple[Any, str]] = {
    "removed column": (lambda table: table.drop_columns(["item_note"]), "2.0.0"),
    "new column": (
        lambda table: table.append_column("more", pa.nulls(table.num_rows, pa.string())),
        "1.3.0",
    ),
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
    fewer = Path(shutil.copytree(small, tmp_path / "fewer"))
    (fewer / "flags.parquet").unlink()
    assert get_next_version(small, fewer) == "2.0.0"
    assert get_next_version(fewer, small) == "1.3.0"


@pytest.mark.parametrize(
    "text",
    ["1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.3-rc1", "1.2.x", "", "1.2.3\n", "-1.2.3", "١.٢.٣"],
)
def test_malformed_version_is_refused(text: str) -> None:
    with pytest.raises(ReleaseError, match="is not a version such as"):
        parse_version(text)


@given(st.tuples(*[st.integers(0, 99)] * 3), st.lists(st.sampled_from(["patch", "minor", "major"])))
def test_lowest_version_is_above_the_previous(
    numbers: tuple[int, int, int], levels: list[str]
) -> None:
    previous = Version(*numbers)
    changes = [VersionChange(level, level) for level in levels]
    lowest = get_lowest_version(previous, changes)
    assert lowest > previous
    assert parse_version(str(lowest)) == lowest
    assert_allowed(lowest, lowest, previous, changes)
    with pytest.raises(ReleaseError, match="too low"):
        assert_allowed(previous, lowest, previous, changes)


@pytest.fixture
def out(small_release: Path, tmp_path: Path) -> Path:
    """Return a release in the place of the next one."""
    return Path(shutil.copytree(small_release, tmp_path / "out"))


def decide(
    new: Path,
    out: Path,
    previous: Path | None = None,
    version: str | None = None,
    corrections: Path | None = None,
) -> ReleaseDecision:
    """Decide on a release of a warehouse without publishing it."""
    return decide_release(
        new,
        out,
        previous,
        None if version is None else parse_version(version),
        corrections,
        PUBLISHED_ON,
    )


def test_version_of_the_repository_is_default_and_a_lower_one_is_refused(
    small: Path, small_release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = alter_warehouse(
        small, tmp_path / "new", results=change_first(throughput=1.5), flags=NEW_FLAG
    )
    options = (
        "publish",
        "--warehouse",
        new,
        "--previous",
        small_release,
        "--out",
        tmp_path / "out",
    )
    low = run_cli(*options, "--version", "1.9.0")
    assert low.returncode == 1
    too_low = (
        "version 1.9.0 is too low after 1.0.0, it must be at least 2.0.0: results.throughput: 1"
        " cell changed; flags: 1 row new"
    )
    assert low.stderr == f"error: {too_low}\n"
    monkeypatch.setattr("ipu_results.kit.files.read_version", lambda: "1.9.0")
    low = run_cli(*options)
    assert low.returncode == 1
    assert low.stderr == f"error: pyproject.toml: {too_low}. Raise it there and run: make docs\n"
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr("ipu_results.kit.files.read_version", lambda: "2.1.0")
    result = run_cli(*options)
    assert result.returncode == 0, result.stderr
    assert ": version 2.1.0, " in result.stdout
    record = read_record(tmp_path / "out")
    versions = (record["version"], record["least_version"], record["previous"]["version"])
    assert versions == ("2.1.0", "2.0.0", "1.0.0")
    again = run_cli("publish", "--warehouse", new, "--out", tmp_path / "out")
    assert again.returncode == 0, again.stderr
    assert read_record(tmp_path / "out") == record, "the same tables again"
    assert {"level": "major", "what": "results.throughput: 1 cell changed"} in record["changes"]


def test_release_in_the_target_is_the_previous_one(small: Path, out: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="flags: 1 rows vanished"):
        decide(alter_warehouse(small, tmp_path / "fewer", flags=drop_last), out)
    more = alter_warehouse(small, tmp_path / "more", flags=NEW_FLAG)
    with pytest.raises(
        ReleaseError, match=r"version 0\.9\.0 is too low after 1\.0\.0, it must be at least 1\.1\.0"
    ):
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
        return [
            f"{sql} WHERE 1 < 2" if sql.startswith("CREATE VIEW inference") else sql
            for sql in sql_view(view)
        ]

    monkeypatch.setattr(query, "sql_view", change)
    assert str(publish_release(small, out).decision.version) == "2.0.0"
    diff = diff_releases(small_release, out)
    assert (diff.views, diff.is_empty) == (("inference",), False)
    assert "~ the definition of inference" in format_diff_text(diff).splitlines()
    assert '"definitions_changed": [\n  "inference"\n ]' in format_diff_json(diff)
    assert "<td>inference</td>" in format_diff_html(diff)


@pytest.mark.parametrize(
    ("sql", "other", "same"),
    [
        ("SELECT a, b", "SELECT\n  a,b", True),
        ("SELECT a, b", "SELECT a, c", False),
        ("SELECT 'a b'", "SELECT 'a  b'", False),
        ('SELECT "a b"', 'SELECT "a  b"', False),
        ("SELECT source, '\"a\"'", 'SELECT "source", \'"a"\'', True),
    ],
)
def test_digest_of_sql_ignores_blanks_and_needless_quotes(sql: str, other: str, same: bool) -> None:
    assert (hash_sql(sql) == hash_sql(other)) is same


def test_same_tables_make_the_same_release_again(small: Path, out: Path, tmp_path: Path) -> None:
    fewer, flag = alter_warehouse(small, tmp_path / "fewer", flags=drop_last), read_last_flag(small)
    publish_release(fewer, out, corrections=write_corrections(tmp_path, ONE_FLAG.format(**flag)))
    first = read_files(out)
    assert str(publish_release(fewer, out).decision.version) == "2.0.0"
    assert {name for name in first if first[name] != (out / name).read_bytes()} <= {
        DATABASE,
        "SHA256SUMS",
    }
    with pytest.raises(
        ReleaseError,
        match=r"too low after 2\.0\.0, it must be at least 2\.0\.1: each release needs",
    ):
        decide(fewer, out, version="1.9.9")
    assert str(decide(fewer, out, previous=out).version) == "2.0.1"


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


def test_unsound_previous_release_is_refused(
    small: Path, small_release: Path, out: Path, tmp_path: Path
) -> None:
    for name in (DATABASE, "flags.csv"):
        (out / name).write_bytes(b"none")
        with pytest.raises(ReleaseError, match=rf"is damaged: {name}: sha256 differs"):
            decide(small, tmp_path / "new", previous=out)
        shutil.copyfile(small_release / name, out / name)
    with pytest.raises(ReleaseError, match="is not a release"):
        decide(small, tmp_path / "new", previous=small)
    with pytest.raises(UnreadableReleaseError, match="none: no such folder"):
        decide(small, tmp_path / "new", previous=tmp_path / "none")
    with pytest.raises(ReleaseError, match="'' is not a version"):
        publish_release(small, tmp_path / "none", version="")


ONE_FLAG = """
[[correction]]
table = "flags"
key = {{ rule = "{rule}", result_id = "{result_id}", column_name = "{column_name}" }}
reason = "The rule was | wrong <b>here</b>."
expect = "gone"
"""


def read_last_flag(warehouse: Path) -> Row:
    return dict(pq.read_table(warehouse / "flags.parquet").to_pylist()[-1])


@pytest.fixture
def fewer(small: Path, tmp_path: Path) -> Path:
    """Return a warehouse without the last flag."""
    return alter_warehouse(small, tmp_path / "fewer", flags=drop_last)


def write_corrections(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "corrections.toml"
    path.write_text(text, encoding="utf-8")
    return path


def count_applied(old: Path, new: Path, file: Path) -> list[int]:
    applied, _ = apply_corrections(file, diff_releases(old, new))
    return [record["rows"] for record in applied]


def test_removed_row_needs_a_reason_that_is_published(
    fewer: Path, small: Path, small_release: Path, tmp_path: Path
) -> None:
    flag, out = read_last_flag(small), tmp_path / "out"
    with pytest.raises(
        ReleaseError,
        match=f"flags: 1 rows vanished, such as rule = {flag['rule']}, .*--corrections",
    ):
        decide(fewer, out, small_release)
    unused = '[[correction]]\ntable = "flags"\nkey = { rule = "R99" }\nreason = "r"\n'
    file = write_corrections(tmp_path, ONE_FLAG.format(**flag) + unused)
    options = (
        "--previous",
        small_release,
        "--out",
        out,
        "--corrections",
        file,
        "--version",
        "2.0.0",
    )
    result = run_cli("publish", "--warehouse", fewer, *options)
    assert result.returncode == 0, result.stderr
    assert "correction 2 names no removed row of flags" in result.stderr
    assert verify_release(out) == []
    record = read_record(out)
    (correction,) = record["corrections"]
    assert record["version"] == "2.0.0"
    assert correction["key"] == {name: flag[name] for name in ("rule", "result_id", "column_name")}
    assert (correction["table"], correction["rows"]) == ("flags", 1)
    assert correction["reason"] == "The rule was | wrong <b>here</b>."
    assert r"The rule was \| wrong &lt;b&gt;here&lt;/b&gt;." in (out / "README.md").read_text(
        "utf-8"
    )


def test_part_of_a_key_names_many_rows_and_their_number_is_checked(
    small: Path, tmp_path: Path
) -> None:
    rows = pq.read_table(small / "flags.parquet").to_pylist()
    rule = rows[0]["rule"]
    count = sum(row["rule"] == rule for row in rows)
    new = alter_warehouse(
        small, tmp_path / "new", flags=lambda rows: [row for row in rows if row["rule"] != rule]
    )
    entry = f'[[correction]]\ntable = "flags"\nkey = {{ rule = "{rule}" }}\nreason = "Withdrawn."\n'
    assert count_applied(
        small, new, write_corrections(tmp_path, f"{entry}rows = {count}\n{entry}")
    ) == [count, count]
    with pytest.raises(
        CorrectionsError, match=f"correction 1: {count} rows of flags vanished, not 99"
    ):
        count_applied(small, new, write_corrections(tmp_path, f"{entry}rows = 99\n"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            'table = "flags"\nkey = { rule = "%s" }',
            r"expects rows of flags to be gone, but \d are present",
        ),
        ('table = "cells"\nkey = { cell_number = "x" }', "Conversion Error"),
        ('table = "flag"\nkey = { rule = "R14" }', "table flag is in neither release"),
    ],
)
def test_expectation_that_does_not_hold_is_refused(
    entry: str, message: str, small: Path, tmp_path: Path
) -> None:
    entry = f'[[correction]]\nreason = "r"\n{entry.replace("%s", read_last_flag(small)["rule"])}\n'
    assert count_applied(small, small, write_corrections(tmp_path, entry)) == []
    with pytest.raises(CorrectionsError, match=rf"corrections\.toml, correction 1: {message}"):
        count_applied(small, small, write_corrections(tmp_path, f'{entry}expect = "gone"\n'))


def test_entry_without_a_key_names_a_removed_table_and_no_single_rows(
    fewer: Path, small: Path, tmp_path: Path
) -> None:
    table = write_corrections(tmp_path, '[[correction]]\ntable = "flags"\nreason = "Moved."\n')
    with pytest.raises(ReleaseError, match="flags: 1 rows vanished"):
        count_applied(small, fewer, table)
    (fewer / "flags.parquet").unlink()
    assert count_applied(small, fewer, table) == [
        pq.read_metadata(small / "flags.parquet").num_rows
    ]
    with pytest.raises(ReleaseError, match="table flags vanished without a correction"):
        count_applied(small, fewer, write_corrections(tmp_path, ""))


ENTRY = '[[correction]]\ntable = "flags"\nreason = "r"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[correction]\n", "cannot be read: Expected"),
        ("x = 1\n", "cannot be read: Invalid enum value 'x'"),
        ('[[correction]]\ntable = "flags"\n', "correction 1: .*missing required field `reason`"),
        ('[[correction]]\ntable = "flags"\nreason = " "\n', r"correction 1: .*`\$.reason`"),
        (f"{ENTRY}key = {{ rule = [1] }}\n", "correction 1: rule is not a text, number or date"),
        (
            f'{ENTRY}key = {{ message = "m" }}\n',
            "correction 1: message is not a key column of flags",
        ),
        (f'{ENTRY}expect = "x"\n', "correction 1: Invalid enum value 'x'"),
    ],
)
def test_malformed_corrections_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CorrectionsError, match=rf"corrections\.toml(: |, ){message}"):
        load_corrections(write_corrections(tmp_path, text))


def test_corrections_without_a_file_or_a_previous_release_are_refused(
    small: Path, small_release: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        CorrectionsError, match=r"corrections\.toml: there is no previous release to correct"
    ):
        decide(small, tmp_path / "none", corrections=write_corrections(tmp_path, ""))
    with pytest.raises(CorrectionsError, match=r"none\.toml: cannot be read"):
        decide(small, tmp_path / "none", small_release, corrections=tmp_path / "none.toml")


def test_record_of_a_release_describes_the_changes(small: Path, tmp_path: Path) -> None:
    out, records = tmp_path / "release", tmp_path / "releases"
    publish_release(small, out, record=records)
    first = read_record(records, "1.0.0.json")
    assert (first["previous"], first["figures_changed"]) == (None, [])
    assert first["summary"][0].startswith("First release: 12 results, ")
    changes = {"results": change_first(throughput=1.5), "flags": NEW_FLAG}
    publish_release(alter_warehouse(small, tmp_path / "new", **changes), out, record=records)
    second = read_record(records, "2.0.0.json")
    assert (second["previous"], second["level"]) == ("1.0.0", "major")
    assert second["summary"] == ["1 figure changed.", "Rows of flags: 1 new."]
    [figure] = second["figures_changed"]
    assert (figure["column"], figure["new"], figure["table"]) == ("throughput", 1.5, "results")
    publish_release(tmp_path / "new", out, record=records)
    assert sorted(path.name for path in records.iterdir()) == ["1.0.0.json", "2.0.0.json"]
    assert read_record(records, "2.0.0.json") == second
