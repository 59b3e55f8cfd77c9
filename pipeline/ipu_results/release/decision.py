"""Decide on the version of a release that is published, by what differs from the previous one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, cast

from ipu_results.errors import CorrectionsError, ReleaseError
from ipu_results.release.corrections import apply_corrections
from ipu_results.release.diff import diff_releases
from ipu_results.release.files import RELEASE, ReleaseRecord
from ipu_results.release.problems import check_files
from ipu_results.release.version import (
    LEVELS,
    Version,
    VersionChange,
    get_lowest_version,
    list_changes,
    parse_version,
)

FIRST = Version(1, 0, 0)
REPOSITORY_VERSION = "pyproject.toml"
MAX_LISTED = 3  # changes in the message that refuses a version


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """What to publish, and where to.

    Without a `version` it is `default_version`, and without both the lowest that the change allows.
    Without `previous` the release in `out` is the previous one. `corrections` is a TOML file;
    `wait_s` is how long to wait for another process that publishes there. `record` is a folder for
    `<version>.json`, which says what changed; none is written if the tables did not change.
    """

    warehouse: Path
    out: Path
    published_on: date
    version: str | None = None
    previous: Path | None = None
    corrections: Path | None = None
    wait_s: float = 60.0
    record: Path | None = None
    default_version: str | None = None


def get_stated_version(request: ReleaseRequest) -> Version | None:
    """Return the version that was asked for, else that of the repository.

    Raises ReleaseError if it is malformed.
    """
    if request.version is not None:
        return parse_version(request.version, "--version")
    if request.default_version is not None:
        return parse_version(request.default_version, REPOSITORY_VERSION)
    return None


def get_old_release(request: ReleaseRequest) -> Path | None:
    """Return the release that the new one is compared with."""
    if request.previous is not None:
        return request.previous
    if (request.out / RELEASE).exists():
        return request.out
    return None


@dataclass(frozen=True, slots=True)
class ReleaseDecision:
    """The version of a release, the lowest one allowed, what changed, and which corrections apply.

    `corrections` are entries of release.json; `unused` has a message for each correction that names
    no removed row.
    """

    version: Version
    lowest: str | None = None
    previous: dict[str, str] | None = None
    changes: Sequence[VersionChange] = ()
    corrections: list[dict[str, Any]] = field(default_factory=list)
    unused: Sequence[str] = ()


def decide_release(new: Path, request: ReleaseRequest) -> ReleaseDecision:
    """Compare a new release with the previous one, and decide on version and corrections.

    Raises ReleaseError if the version is too low, the date is before that of the previous release,
    or rows vanished; CorrectionsError for a wrong corrections file.
    """
    stated = get_stated_version(request)
    previous = get_old_release(request)
    if previous is None:
        if request.corrections:
            message = "there is no previous release to correct; name one with --previous"
            raise CorrectionsError(message, place=str(request.corrections))
        # nobody reads a release yet, so that every version is high enough
        return ReleaseDecision(stated or FIRST)
    if previous.is_dir() and not (previous / RELEASE).exists():
        raise ReleaseError(f"is not a release: it has no {RELEASE}", place=str(previous))
    problems = check_files(previous)
    if problems:
        raise ReleaseError(f"is damaged: {problems[0].line}", place=str(previous))
    diff = diff_releases(previous, new, limit=0)  # what is counted is enough
    record = cast(ReleaseRecord, diff.old.metadata)  # release.json as the diff has read it
    before = parse_version(str(record.get("version")), str(previous / RELEASE))
    _assert_not_earlier(request.published_on, record, previous)
    matched = apply_corrections(request.corrections, diff)
    is_in_place = request.previous is None
    keeps_version = stated is None or stated == before
    if is_in_place and keeps_version and diff.is_empty:
        # the same tables are published again, which needs no new version
        return _repeat_decision(previous, record, before, matched.unused)
    changes = list_changes(diff)
    lowest = get_lowest_version(before, changes)
    version = stated or lowest
    if version < lowest:
        message = (
            f"version {version} is too low after {before}, it must be at least {lowest}:"
            f" {_join_reasons(changes)}"
        )
        if request.version is not None:
            raise ReleaseError(message)
        advice = "Raise it there and run: make docs"
        raise ReleaseError(f"{message}. {advice}", place=REPOSITORY_VERSION)
    return ReleaseDecision(
        version,
        lowest=str(lowest),
        previous={"version": str(before), "build_id": record.get("build_id")},
        changes=changes,
        corrections=matched.records,
        unused=matched.unused,
    )


def _assert_not_earlier(published_on: date, record: ReleaseRecord, previous: Path) -> None:
    """Raise ReleaseError for a date before that of the previous release."""
    stated = record.get("published_on")
    try:
        before = date.fromisoformat(str(stated))
    except ValueError as error:
        message = f"is not as publish writes it: published_on {stated!r} is not a date"
        raise ReleaseError(message, place=str(previous / RELEASE)) from error
    if published_on < before:
        raise ReleaseError(
            f"date {published_on} is before {before}, the date of the previous release"
            f" {record['version']}; give that date or a later one with --date"
        )


def _repeat_decision(
    previous: Path, record: ReleaseRecord, version: Version, unused: Sequence[str]
) -> ReleaseDecision:
    """Return the decision of a release that is published once more, with the same tables and in its
    own place.
    """
    try:
        return ReleaseDecision(
            version,
            lowest=record["least_version"],
            previous=record["previous"],
            changes=[VersionChange(**change) for change in record["changes"]],
            corrections=list(record["corrections"]),
            unused=unused,
        )
    except (LookupError, TypeError) as error:
        raise ReleaseError("is not as publish writes it", place=str(previous / RELEASE)) from error


def _join_reasons(changes: Iterable[VersionChange]) -> str:
    """Return the changes that raise the version most, and how many there are besides."""
    ordered = sorted(changes, key=lambda change: LEVELS.index(change.level), reverse=True)
    if not ordered:
        return "each release needs a version of its own"
    reasons = "; ".join(change.what for change in ordered[:MAX_LISTED])
    if len(ordered) > MAX_LISTED:
        reasons += f"; and {len(ordered) - MAX_LISTED} more"
    return reasons
