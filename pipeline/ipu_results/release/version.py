"""Decide the version of a release: major if a change breaks a reader, minor for additions, patch
for descriptions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import duckdb
import msgspec

from ipu_results.errors import CorrectionsError, ReleaseError
from ipu_results.kit.sql import get_first_line
from ipu_results.kit.text import format_count
from ipu_results.release.diff import (
    KNOWN_TABLES,
    ReleaseDiff,
    Row,
    TableDiff,
    diff_releases,
    list_removed_keys,
)
from ipu_results.release.files import (
    BUILD_TABLE,
    DICTIONARY_TABLES,
    RELEASE,
    check_files,
    quote_identifier,
)

FIRST = "1.0.0"
REPOSITORY_VERSION = "pyproject.toml"
LEVELS = ("patch", "minor", "major")
NUMBER = r"(0|[1-9][0-9]{0,8})"
PATTERN = re.compile(rf"{NUMBER}\.{NUMBER}\.{NUMBER}")
MAX_LISTED = 3
RECORD_KEYS = {
    *(
        "format",
        "name",
        "version",
        "published_on",
        "build_id",
        "generator",
        "previous",
        "least_version",
    ),
    *("changes", "corrections", "tables", "views", "view_files"),
}


class VersionChange(NamedTuple):
    """A change between two releases and the level of the version that it raises, as release.json
    lists it.
    """

    level: str
    what: str


class ChangeKind(Enum):
    """A kind of change between two releases: the level of the version that it raises, and how it is
    worded.

    A value of a cell raises the level that the schema states of its column (`Column.change_level`).
    """

    TABLE_REMOVED = "major", "table {table} is gone"
    TABLE_ADDED = "minor", "table {table} is new"
    DEFINITION_CHANGED = "major", "the definition of {table} changed"
    COLUMN_REMOVED = "major", "column {table}.{column} is gone"
    COLUMN_ADDED = "minor", "column {table}.{column} is new"
    COLUMN_REDEFINED = "major", "column {table}.{column}: {what} {new} was {old}"
    COLUMN_REWORDED = "patch", "column {table}.{column} has a new description"
    ROWS_REMOVED = "major", "{table}: {count} gone"
    ROWS_ADDED = "minor", "{table}: {count} new"
    FIGURES_CHANGED = "major", "{table}.{column}: {count} changed"
    COUNTS_CHANGED = "minor", "{table}.{column}: {count} changed"
    METADATA_CHANGED = "patch", "{table}.{column}: {count} changed"

    def describe(self, table: str, **values: str) -> VersionChange:
        """Return a change of this kind, in words."""
        level, template = self.value
        return VersionChange(level, template.format(table=table, **values))


CELL_KINDS = {
    "major": ChangeKind.FIGURES_CHANGED,
    "minor": ChangeKind.COUNTS_CHANGED,
    "patch": ChangeKind.METADATA_CHANGED,
}


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

    `corrections` are entries of release.json; `unused` has a message for each correction that names
    no removed row.
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
    """Return the lowest version that these changes allow; the patch number goes up even if nothing
    changed.
    """
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
    reasons = (
        "; ".join(change.what for change in ordered[:MAX_LISTED])
        or "each release needs a version of its own"
    )
    more = f"; and {len(ordered) - MAX_LISTED} more" if len(ordered) > MAX_LISTED else ""
    message = (
        f"version {version} is too low after {previous}, it must be at least {lowest}:"
        f" {reasons}{more}"
    )
    if is_of_repository:
        raise ReleaseError(
            f"{message}. Raise it there and run: make docs", place=REPOSITORY_VERSION
        )
    raise ReleaseError(message)


def check_record(release: Mapping[str, Any]) -> Iterator[str]:
    """Yield what release.json states of itself that `publish` would not: keys, date, version and
    its lowest one.
    """
    if unknown := sorted(release.keys() ^ RECORD_KEYS):
        yield f"has other keys than publish writes: {', '.join(unknown)}"
    date.fromisoformat(release["published_on"])
    version = parse_version(release["version"])
    previous = release["previous"]
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
    changes = [ChangeKind.TABLE_REMOVED.describe(table.name) for table in diff.removed]
    changes += [ChangeKind.DEFINITION_CHANGED.describe(name) for name in diff.views]
    changes += [ChangeKind.TABLE_ADDED.describe(table.name) for table in diff.added]
    for table in diff.tables:
        changes += [] if table.name == BUILD_TABLE else _list_changes_of(table)
    return changes


def _list_changes_of(table: TableDiff) -> Iterator[VersionChange]:
    name = table.name
    yield from (
        ChangeKind.COLUMN_REMOVED.describe(name, column=column) for column in table.columns_removed
    )
    yield from (
        ChangeKind.COLUMN_ADDED.describe(name, column=column) for column in table.columns_added
    )
    for column, what, old, new in table.columns_changed:
        kind = ChangeKind.COLUMN_REWORDED if what == "description" else ChangeKind.COLUMN_REDEFINED
        yield kind.describe(name, column=column, what=what, old=old or "none", new=new or "none")
    for kind, count in (
        (ChangeKind.ROWS_REMOVED, table.rows.removed),
        (ChangeKind.ROWS_ADDED, table.rows.added),
    ):
        if count:
            yield kind.describe(name, count=format_count(count, "row"))
    for column, cells in table.cells.items():
        kind = CELL_KINDS[get_change_level(name, column)]
        yield kind.describe(name, column=column, count=format_count(sum(cells), "cell"))


def get_change_level(table_name: str, column_name: str) -> str:
    """Return the level that changed values of a column raise; major for a column that the schema
    does not have.
    """
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
    """Compare a new release with the previous one, by default the one in `out`, and decide on
    version and corrections.

    Without a `version` it is `default`, that of the repository, and without both the lowest that
    the change allows. Raises ReleaseError if the version is too low, the date is before that of the
    previous release, or rows vanished; CorrectionsError for a wrong corrections file.
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
    chosen = version or default or lowest
    assert_allowed(chosen, lowest, before, changes, is_of_repository=version is None)
    origin = {"version": str(before), "build_id": record.get("build_id")}
    return ReleaseDecision(chosen, str(lowest), origin, changes, applied, unused)


def _assert_not_earlier(published_on: date, record: Mapping[str, Any], previous: Path) -> None:
    """Raise ReleaseError for a date before that of the previous release."""
    stated = record.get("published_on")
    try:
        before = date.fromisoformat(str(stated))
    except ValueError as error:
        message = f"is not as publish writes it: published_on {stated!r} is not a date"
        raise ReleaseError(message, place=str(previous / RELEASE)) from error
    if published_on < before:
        message = (
            f"date {published_on} is before {before}, the date of the previous release"
            f" {record.get('version')}"
        )
        raise ReleaseError(f"{message}; give that date or a later one with --date")


def _repeat_decision(
    previous: Path, record: Mapping[str, Any], version: Version, unused: Sequence[str]
) -> ReleaseDecision:
    """Return the decision of a release that is published once more, with the same tables and in its
    own place.
    """
    try:
        changes = [VersionChange(**change) for change in record["changes"]]
        corrections = list(record["corrections"])
        return ReleaseDecision(
            version, record["least_version"], record["previous"], changes, corrections, unused
        )
    except (LookupError, TypeError) as error:
        raise ReleaseError("is not as publish writes it", place=str(previous / RELEASE)) from error


KEY_TYPES = (str, int, float, date)  # bool and datetime are subtypes


class Correction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Removed rows of a table that have these values in key columns; without a key, the whole
    table.

    `expect` asserts that no such row is in the new dataset, `rows` how many were removed.
    """

    table: str
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]
    key: dict[str, Any] = {}
    expect: Literal["gone"] | None = None
    rows: int | None = None

    def covers(self, table: str, key: Row, is_whole_table: bool) -> bool:
        """Return whether it names this row; without a key it names a removed table and never single
        rows.
        """
        matches = table == self.table and all(
            key.get(name) == value for name, value in self.key.items()
        )
        return matches and bool(self.key) is not is_whole_table

    def to_record(self, rows: int) -> dict[str, Any]:
        """Return the entry of release.json; `rows` is how many removed rows it names."""
        key = {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in self.key.items()
        }
        return {"table": self.table, "key": key, "rows": rows, "reason": self.reason.strip()}


def load_corrections(path: Path) -> list[Correction]:
    """Read a corrections file.

    Raises CorrectionsError if it is unreadable or an entry is malformed.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = msgspec.convert(content, dict[Literal["correction"], list[Any]]).get(
            "correction", []
        )
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise CorrectionsError(f"cannot be read: {error}", place=str(path)) from error
    return [
        _read_entry(f"{path}, correction {number}", entry)
        for number, entry in enumerate(entries, 1)
    ]


def _read_entry(place: str, entry: Any) -> Correction:
    try:
        correction = msgspec.convert(entry, Correction)
    except msgspec.ValidationError as error:
        raise CorrectionsError(str(error), place=place) from error
    table = KNOWN_TABLES.get(correction.table)
    for name, value in correction.key.items():
        if table and name not in table.key:
            raise CorrectionsError(f"{name} is not a key column of {table.name}", place=place)
        if not isinstance(value, KEY_TYPES):
            raise CorrectionsError(f"{name} is not a text, number or date", place=place)
    return correction


def apply_corrections(
    path: Path | None, diff: ReleaseDiff
) -> tuple[list[dict[str, Any]], list[str]]:
    """Match the removed rows with the entries of a corrections file; a row counts for each entry
    that names it.

    Returns the entries of release.json, and a message for each correction that names nothing.
    Raises ReleaseError for a removed row that none names, CorrectionsError for a malformed file and
    where `expect` or `rows` do not hold.
    """
    corrections = load_corrections(path) if path else []
    counts = [0] * len(corrections)
    whole_tables = {table.name: table.rows for table in diff.removed}
    for table, key in _list_removed(diff):
        matches = [
            at
            for at, entry in enumerate(corrections)
            if entry.covers(table, key, table in whole_tables)
        ]
        if not matches:
            raise ReleaseError(_explain_missing(diff, table, key))
        for at in matches:
            counts[at] += whole_tables.get(table, 1)
    records = []
    unused = []
    for number, (correction, count) in enumerate(zip(corrections, counts, strict=True), 1):
        if message := _check_guards(correction, count, diff):
            raise CorrectionsError(message, place=f"{path}, correction {number}")
        if count:
            records.append(correction.to_record(count))
        else:
            unused.append(f"correction {number} names no removed row of {correction.table}")
    return records, unused


def _list_removed(diff: ReleaseDiff) -> Iterator[tuple[str, Row]]:
    """Yield table and key of each removed row; a removed table once, without a key."""
    yield from ((table.name, {}) for table in diff.removed)
    for table in diff.tables:
        if table.rows.removed and table.name not in (BUILD_TABLE, *DICTIONARY_TABLES):
            yield from ((table.name, key) for key in list_removed_keys(table))


def _explain_missing(diff: ReleaseDiff, table: str, key: Row) -> str:
    count = sum(entry.rows.removed for entry in diff.tables if entry.name == table)
    example = ", ".join(f"{name} = {value}" for name, value in key.items())
    what = (
        f"{table}: {count:,} rows vanished, such as {example},"
        if key
        else f"table {table} vanished"
    )
    return f"{what} without a correction that names the reason (--corrections FILE)"


def _check_guards(correction: Correction, count: int, diff: ReleaseDiff) -> str | None:
    """Return what is wrong if `rows` or `expect` do not hold."""
    table = correction.table
    if correction.rows not in (None, count):
        return f"{count} rows of {table} vanished, not {correction.rows}"
    if correction.expect is None:
        return None
    if table not in diff.new.tables:
        return None if table in diff.old.tables else f"table {table} is in neither release"
    condition = " AND ".join(f"{quote_identifier(name)} = ?" for name in correction.key) or "true"
    query = f"SELECT count(*) FROM {diff.new.tables[table].sql} WHERE {condition}"
    try:
        with duckdb.connect() as connection:
            ((present,),) = connection.execute(query, list(correction.key.values())).fetchall()
    except duckdb.Error as error:
        return get_first_line(error)
    return f"expects rows of {table} to be gone, but {present} are present" if present else None
