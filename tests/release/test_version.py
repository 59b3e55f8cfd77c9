"""The lowest version that changes allow, where no release needs to be made."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from ipu_results.errors import ReleaseError
from ipu_results.release import version as deciding
from ipu_results.release.version import (
    RECORD_KEYS,
    VersionChange,
    assert_allowed,
    check_record,
    get_lowest_version,
    parse_version,
)

PREVIOUS = parse_version("1.2.3")
MINOR = VersionChange("minor", "results: 1 row new")
RECORD: dict[str, Any] = {
    **dict.fromkeys(RECORD_KEYS),
    **{"published_on": "2026-11-21", "build_id": "0" * 64, "previous": {"version": str(PREVIOUS)}},
    **{
        "changes": [MINOR._asdict()],
        "corrections": [],
        "version": "1.3.0",
        "least_version": "1.3.0",
    },
}


@pytest.mark.parametrize(
    ("levels", "lowest"), [("", "1.2.4"), ("patch minor", "1.3.0"), ("major patch", "2.0.0")]
)
def test_version_may_be_the_lowest_and_not_below(levels: str, lowest: str) -> None:
    changes = [VersionChange(level, f"a {level} change") for level in levels.split()]
    version = get_lowest_version(PREVIOUS, changes)
    assert str(version) == lowest
    assert_allowed(version, version, PREVIOUS, changes)
    with pytest.raises(
        ReleaseError,
        match=rf"version 1\.2\.3 is too low after 1\.2\.3, it must be at least {lowest}",
    ):
        assert_allowed(PREVIOUS, version, PREVIOUS, changes)


def test_date_may_be_that_of_the_previous_release_and_not_before() -> None:
    deciding._assert_not_earlier(date(2026, 11, 21), RECORD, Path("old"))
    with pytest.raises(ReleaseError, match="date 2026-11-20 is before 2026-11-21"):
        deciding._assert_not_earlier(date(2026, 11, 20), RECORD, Path("old"))


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
    problems = list(check_record(RECORD | change))
    assert [
        problem for problem in problems if "does not follow 1.2.3 and these changes" not in problem
    ] == []
    assert (problems == []) == is_right
