"""The lowest version that changes allow, where no release needs to be made."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
from ipu_results.errors import ReleaseError
from ipu_results.release import decision
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


def test_date_may_be_that_of_the_previous_release_and_not_before() -> None:
    record = cast(ReleaseRecord, RECORD)
    decision._assert_not_earlier(date(2026, 11, 21), record, Path("old"))
    with pytest.raises(ReleaseError, match="date 2026-11-20 is before 2026-11-21"):
        decision._assert_not_earlier(date(2026, 11, 20), record, Path("old"))


def test_release_without_its_list_of_corrections_is_not_repeated() -> None:
    record = cast(ReleaseRecord, {**RECORD, "corrections": None})
    with pytest.raises(ReleaseError, match="is not as publish writes it"):
        decision._repeat_decision(Path("old"), record, PREVIOUS, [])


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
