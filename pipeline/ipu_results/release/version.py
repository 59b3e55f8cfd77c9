"""Name each change between two releases, and the lowest version that the changes allow: major if
one breaks a reader, minor for additions, patch for descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from enum import Enum
from typing import NamedTuple

from ipu_results.errors import ReleaseError
from ipu_results.kit.text import format_count
from ipu_results.release.diff import ReleaseDiff, TableDiff
from ipu_results.release.files import BUILD_TABLE, ReleaseRecord

LEVELS = ("patch", "minor", "major")  # the lowest first
# Without zeros in front, so that one version has one spelling.
NUMBER = r"(0|[1-9][0-9]{0,8})"
PATTERN = re.compile(rf"{NUMBER}\.{NUMBER}\.{NUMBER}")
SHA256 = re.compile("[0-9a-f]{64}")


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


# By the level that the schema states of a column.
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


def parse_version(text: str, place: str | None = None) -> Version:
    """Parse MAJOR.MINOR.PATCH, each at most nine digits. Raises ReleaseError for anything else."""
    match = PATTERN.fullmatch(text)
    if match is None:
        raise ReleaseError(f"{text!r} is not a version such as 1.2.3", place=place)
    return Version(*map(int, match.groups()))


def get_level(changes: Iterable[VersionChange]) -> str:
    """Return the highest level of the changes; patch if there are none."""
    levels = [change.level for change in changes]
    return max(levels, key=LEVELS.index, default="patch")


def get_lowest_version(previous: Version, changes: Iterable[VersionChange]) -> Version:
    """Return the lowest version that these changes allow; the patch number goes up even if nothing
    changed.
    """
    level = get_level(changes)
    if level == "major":
        return Version(previous.major + 1, 0, 0)
    if level == "minor":
        return Version(previous.major, previous.minor + 1, 0)
    return Version(previous.major, previous.minor, previous.patch + 1)


def check_record(release: ReleaseRecord) -> Iterator[str]:
    """Yield what is wrong with keys, build id, changes and version of release.json.

    Raises ReleaseError for a malformed version and ValueError for a malformed date;
    `verify_release` reports both.
    """
    expected = ReleaseRecord.__annotations__.keys()
    # missing ones and additional ones
    wrong = sorted(release.keys() ^ expected)
    if wrong:
        yield f"has other keys than publish writes: {', '.join(wrong)}"
    # for its error alone
    date.fromisoformat(release["published_on"])
    version = parse_version(release["version"])
    previous = release["previous"]
    changes = [VersionChange(**change) for change in release["changes"]]
    if not SHA256.fullmatch(release["build_id"]):
        yield "build_id is not a sha256"
    if previous is None:
        # the first release has nothing to differ from
        if changes or release["corrections"] or release["least_version"] is not None:
            yield "states changes without a previous release"
        return
    lowest = get_lowest_version(parse_version(previous["version"]), changes)
    if release["least_version"] != str(lowest) or version < lowest:
        yield f"version {version} does not follow {previous['version']} and these changes"


def list_changes(diff: ReleaseDiff) -> list[VersionChange]:
    """List what changed, without the table `build`, which is derived from the others."""
    changes = []
    for removed in diff.removed:
        changes.append(ChangeKind.TABLE_REMOVED.describe(removed.name))
    for name in diff.views:
        changes.append(ChangeKind.DEFINITION_CHANGED.describe(name))
    for added in diff.added:
        changes.append(ChangeKind.TABLE_ADDED.describe(added.name))
    for table in diff.tables:
        # its rows state the build, which is another one each time
        if table.name != BUILD_TABLE:
            changes += _list_changes_of(table)
    return changes


def _list_changes_of(table: TableDiff) -> Iterator[VersionChange]:
    name = table.name
    for column in table.columns_removed:
        yield ChangeKind.COLUMN_REMOVED.describe(name, column=column)
    for column in table.columns_added:
        yield ChangeKind.COLUMN_ADDED.describe(name, column=column)
    for column, what, old, new in table.columns_changed:
        if what == "description":
            yield ChangeKind.COLUMN_REWORDED.describe(name, column=column)
        else:
            yield ChangeKind.COLUMN_REDEFINED.describe(
                name, column=column, what=what, old=old or "none", new=new or "none"
            )
    if table.rows.removed:
        count = format_count(table.rows.removed, "row")
        yield ChangeKind.ROWS_REMOVED.describe(name, count=count)
    if table.rows.added:
        count = format_count(table.rows.added, "row")
        yield ChangeKind.ROWS_ADDED.describe(name, count=count)
    for column, counts in table.cells.items():
        kind = CELL_KINDS[table.new.columns[column].level]
        count = format_count(sum(counts), "cell")
        yield kind.describe(name, column=column, count=count)
