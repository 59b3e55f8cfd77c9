"""Decide the version of a release: major if a change breaks a reader, minor for additions, patch for descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from ipu_results.errors import CorrectionsError, ReleaseError
from ipu_results.ground.text import format_count
from ipu_results.release.corrections import apply_corrections
from ipu_results.release.diff import ReleaseDiff, TableDiff, diff_releases
from ipu_results.release.files import BUILD_TABLE, RELEASE
from ipu_results.release.folder import check_files
from ipu_results.release.snapshot import KNOWN_TABLES

FIRST = "1.0.0"
REPOSITORY_VERSION = "pyproject.toml"
LEVELS = ("patch", "minor", "major")
NUMBER = r"(0|[1-9][0-9]{0,8})"
PATTERN = re.compile(rf"{NUMBER}\.{NUMBER}\.{NUMBER}")
MAX_LISTED = 3
RECORD_KEYS = {
    *("format", "name", "version", "published_on", "build_id", "generator", "previous", "least_version"),
    *("changes", "corrections", "tables", "views", "view_files"),
}


class VersionChange(NamedTuple):
    """A change between two releases and the level of the version that it raises."""

    level: str
    what: str


class Version(NamedTuple):
    """MAJOR.MINOR.PATCH."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


@dataclass(frozen=True, slots=True)
class ReleaseDecision:
    """The version of a release, the lowest one allowed, what changed, and which corrections apply.

    `corrections` are entries of release.json; `unused` has a message for each correction that names no removed row.
    """

    version: Version
    lowest: str | None = None
    previous: Mapping[str, Any] | None = None
    changes: Sequence[VersionChange] = ()
    corrections: Sequence[Mapping[str, Any]] = ()
    unused: Sequence[str] = ()


def parse_version(text: str, place: str | None = None) -> Version:
    """Parse MAJOR.MINOR.PATCH, each at most nine digits. Raises ReleaseError for anything else."""
    if not (match := PATTERN.fullmatch(text)):
        raise ReleaseError(f"{text!r} is not a version such as 1.2.3", place=place)
    return Version(*map(int, match.groups()))


def get_level(changes: Iterable[VersionChange]) -> str:
    """Return the highest level of the changes; patch if there are none."""
    return max((change.level for change in changes), key=LEVELS.index, default="patch")


def get_lowest_version(previous: Version, changes: Iterable[VersionChange]) -> Version:
    """Return the lowest version that these changes allow; the patch number goes up even if nothing changed."""
    return {
        "major": Version(previous.major + 1, 0, 0),
        "minor": Version(previous.major, previous.minor + 1, 0),
        "patch": Version(previous.major, previous.minor, previous.patch + 1),
    }[get_level(changes)]


def assert_allowed(
    version: Version,
    lowest: Version,
    previous: Version,
    changes: Iterable[VersionChange],
    *,
    is_of_repository: bool = False,
) -> None:
    """Raise ReleaseError that names the changes if the version is too low for them."""
    if version >= lowest:
        return
    ordered = sorted(changes, key=lambda change: -LEVELS.index(change.level))
    reasons = "; ".join(change.what for change in ordered[:MAX_LISTED]) or "each release needs a version of its own"
    more = f"; and {len(ordered) - MAX_LISTED} more" if len(ordered) > MAX_LISTED else ""
    message = f"version {version} is too low after {previous}, it must be at least {lowest}: {reasons}{more}"
    if is_of_repository:
        raise ReleaseError(f"{message}. Raise it there and run: make docs", place=REPOSITORY_VERSION)
    raise ReleaseError(message)


def check_record(release: Mapping[str, Any]) -> Iterator[str]:
    """Yield what release.json states of itself that `publish` would not: keys, date, version and its lowest one."""
    if unknown := sorted((release.keys() | {"generator", "view_files"}) ^ RECORD_KEYS):  # earlier releases lack these
        yield f"has other keys than publish writes: {', '.join(unknown)}"
    date.fromisoformat(release["published_on"])
    version, previous = parse_version(release["version"]), release["previous"]
    changes = [VersionChange(**change) for change in release["changes"]]
    if not re.fullmatch("[0-9a-f]{64}", release["build_id"]):
        yield "build_id is not a sha256"
    if previous is None:
        if changes or release["corrections"] or release["least_version"] is not None:
            yield "states changes without a previous release"
        return
    lowest = get_lowest_version(parse_version(previous["version"]), changes)
    if release["least_version"] != str(lowest) or version < lowest:
        yield f"version {version} does not follow {previous['version']} and these changes"


def list_changes(diff: ReleaseDiff) -> list[VersionChange]:
    """List what changed, without the table `build`, which is derived from the others."""
    changes = [VersionChange("major", f"table {table.name} is gone") for table in diff.removed]
    changes += [VersionChange("major", f"the definition of {name} changed") for name in diff.views]
    changes += [VersionChange("minor", f"table {table.name} is new") for table in diff.added]
    for table in diff.tables:
        if table.name != BUILD_TABLE:
            changes += [*_list_column_changes(table), *_list_row_changes(table)]
    return changes


def _list_column_changes(table: TableDiff) -> Iterator[VersionChange]:
    for name in table.columns_removed:
        yield VersionChange("major", f"column {table.name}.{name} is gone")
    for name in table.columns_added:
        yield VersionChange("minor", f"column {table.name}.{name} is new")
    for name, what, old, new in table.columns_changed:
        if what == "description":
            yield VersionChange("patch", f"column {table.name}.{name} has a new description")
        else:
            yield VersionChange("major", f"column {table.name}.{name}: {what} {new or 'none'} was {old or 'none'}")


def _list_row_changes(table: TableDiff) -> Iterator[VersionChange]:
    if table.rows.removed:
        yield VersionChange("major", f"{table.name}: {format_count(table.rows.removed, 'row')} gone")
    if table.rows.added:
        yield VersionChange("minor", f"{table.name}: {format_count(table.rows.added, 'row')} new")
    for name, cells in table.cells.items():
        yield VersionChange(
            get_change_level(table.name, name), f"{table.name}.{name}: {format_count(sum(cells), 'cell')} changed"
        )


def get_change_level(table_name: str, column_name: str) -> str:
    """Return the level that changed values of a column raise; major for a column that the schema does not have."""
    columns = KNOWN_TABLES[table_name].columns if table_name in KNOWN_TABLES else ()
    return next((column.change_level for column in columns if column.name == column_name), "major")


def decide_release(
    new: Path,
    out: Path,
    previous: Path | None,
    version: Version | None,
    corrections: Path | None,
    published_on: date,
    default: Version | None = None,
) -> ReleaseDecision:
    """Compare a new release with the previous one, by default the one in `out`, and decide on version and corrections.

    Without a `version` it is `default`, that of the repository, and without both the lowest that the change allows.
    Raises ReleaseError if the version is too low, the date is before that of the previous release, or rows vanished;
    CorrectionsError for a wrong corrections file.
    """
    is_update = previous is None
    if previous is None and (out / RELEASE).exists():
        previous = out
    if previous is None:
        if corrections:
            message = "there is no previous release to correct; name one with --previous"
            raise CorrectionsError(message, place=str(corrections))
        return ReleaseDecision(version or default or parse_version(FIRST))
    if previous.is_dir() and not (previous / RELEASE).exists():
        raise ReleaseError(f"is not a release: it has no {RELEASE}", place=str(previous))
    if problems := check_files(previous):
        raise ReleaseError(f"is damaged: {problems[0].line}", place=str(previous))
    diff = diff_releases(previous, new, limit=0)
    record = diff.old.metadata
    before = parse_version(str(record.get("version")), str(previous / RELEASE))
    _assert_not_earlier(published_on, record, previous)
    applied, unused = apply_corrections(corrections, diff)
    if is_update and diff.is_empty and (version or default) in (None, before):
        return _repeat_decision(previous, record, before, unused)
    changes = list_changes(diff)
    lowest = get_lowest_version(before, changes)
    if version is not None:
        assert_allowed(version, lowest, before, changes)
    elif default is not None:
        assert_allowed(default, lowest, before, changes, is_of_repository=True)
    origin = {"version": str(before), "build_id": record.get("build_id")}
    return ReleaseDecision(version or default or lowest, str(lowest), origin, changes, applied, unused)


def _assert_not_earlier(published_on: date, record: Mapping[str, Any], previous: Path) -> None:
    """Raise ReleaseError for a date before that of the previous release."""
    stated = record.get("published_on")
    try:
        before = date.fromisoformat(str(stated))
    except ValueError as error:
        message = f"is not as publish writes it: published_on {stated!r} is not a date"
        raise ReleaseError(message, place=str(previous / RELEASE)) from error
    if published_on < before:
        message = f"date {published_on} is before {before}, the date of the previous release {record.get('version')}"
        raise ReleaseError(f"{message}; give that date or a later one with --date")


def _repeat_decision(
    previous: Path, record: Mapping[str, Any], version: Version, unused: Sequence[str]
) -> ReleaseDecision:
    """Return the decision of a release that is published once more, with the same tables and in its own place."""
    try:
        changes = [VersionChange(**change) for change in record["changes"]]
        corrections = list(record["corrections"])
        return ReleaseDecision(version, record["least_version"], record["previous"], changes, corrections, unused)
    except (LookupError, TypeError) as error:
        raise ReleaseError("is not as publish writes it", place=str(previous / RELEASE)) from error
