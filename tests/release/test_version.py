"""The lowest version that changes allow, where no release needs to be made."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from ipu_results.errors import CorrectionsError, ReleaseError
from ipu_results.release.corrections import load_corrections
from ipu_results.release.database import hash_sql
from ipu_results.release.files import ReleaseRecord
from ipu_results.release.version import (
    VersionChange,
    check_record,
    get_lowest_version,
    parse_version,
)

PREVIOUS = parse_version("1.2.3")
MINOR = VersionChange("minor", "results: 1 row new")
RECORD: dict[str, Any] = {
    **dict.fromkeys(ReleaseRecord.__annotations__),
    "published_on": "2026-11-21",
    "build_id": "0" * 64,
    "previous": {"version": str(PREVIOUS)},
    "changes": [MINOR._asdict()],
    "corrections": [],
    "version": "1.3.0",
    "least_version": "1.3.0",
}


@pytest.mark.parametrize(
    ("levels", "lowest"),
    [((), "1.2.4"), (("patch", "minor"), "1.3.0"), (("major", "patch"), "2.0.0")],
)
def test_lowest_version_follows_the_highest_level(levels: tuple[str, ...], lowest: str) -> None:
    changes = [VersionChange(level, f"a {level} change") for level in levels]
    assert str(get_lowest_version(PREVIOUS, changes)) == lowest


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        ({}, True),
        ({"version": "1.3.1"}, True),
        ({"version": "1.2.9"}, False),
        ({"least_version": "1.2.4"}, False),
        ({"changes": []}, False),
    ],
)
def test_record_must_follow_the_previous_release(change: dict[str, Any], is_right: bool) -> None:
    problems = list(check_record(cast(ReleaseRecord, RECORD | change)))
    others = [text for text in problems if "does not follow 1.2.3 and these changes" not in text]
    assert others == []
    assert (problems == []) == is_right


@pytest.mark.parametrize(
    "text",
    ["1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.3-rc1", "1.2.x", "", "1.2.3\n", "-1.2.3", "١.٢.٣"],
)
def test_malformed_version_is_refused(text: str) -> None:
    with pytest.raises(ReleaseError, match="is not a version such as"):
        parse_version(text)


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
    path = tmp_path / "corrections.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CorrectionsError, match=rf"corrections\.toml(: |, ){message}"):
        load_corrections(path)
