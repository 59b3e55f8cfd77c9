"""Which version a change needs: major for what breaks a reader, minor for what is new, patch for words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ipu_results.errors import ReleaseError
from ipu_results.release.difference import Difference, TableDifference
from ipu_results.release.names import DERIVED, DICTIONARY

FIRST = "1.0.0"
LEVELS = ("patch", "minor", "major")
NUMBER = r"(0|[1-9][0-9]{0,8})"
LARGEST = 999_999_999
PATTERN = re.compile(rf"{NUMBER}\.{NUMBER}\.{NUMBER}")
TOLD = 3


class Change(NamedTuple):
    level: str
    what: str


class Version(NamedTuple):
    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


def parse(text: str, place: str | None = None) -> Version:
    """Raises ReleaseError for anything but MAJOR.MINOR.PATCH, each of nine digits at most."""
    if not (found := PATTERN.fullmatch(text)):
        raise ReleaseError(f"{text!r} is no version such as 1.2.3", place=place)
    return Version(*map(int, found.groups()))


def least(previous: Version, changes: Iterable[Change]) -> Version:
    """The lowest version that these changes allow; the patch goes up also where nothing changed.

    Raises ReleaseError where a number would have more than nine digits.
    """
    level = max((LEVELS.index(change.level) for change in changes), default=0)
    found = {
        "major": Version(previous.major + 1, 0, 0),
        "minor": Version(previous.major, previous.minor + 1, 0),
        "patch": Version(previous.major, previous.minor, previous.patch + 1),
    }[LEVELS[level]]
    if max(found) > LARGEST:
        raise ReleaseError(f"no {LEVELS[level]} version is left after {previous}")
    return found


def assert_allowed(asked: Version, lowest: Version, previous: Version, changes: Iterable[Change]) -> None:
    """Raises ReleaseError that names what changed where a version is too low."""
    if asked >= lowest:
        return
    ordered = sorted(changes, key=lambda change: -LEVELS.index(change.level))
    told = "; ".join(change.what for change in ordered[:TOLD]) or "a release needs a version of its own"
    more = f"; and {len(ordered) - TOLD} more" if len(ordered) > TOLD else ""
    raise ReleaseError(f"version {asked} is too low after {previous}, it must be at least {lowest}: {told}{more}")


def changes(difference: Difference) -> list[Change]:
    """What changed, table by table. `build` is derived from the others and left out."""
    found = [Change("major", f"table {table.name} is gone") for table in difference.removed]
    found += [Change("major", f"the definition of {name} changed") for name in difference.views]
    found += [Change("minor", f"table {table.name} is new") for table in difference.added]
    for table in difference.tables:
        if table.name != DERIVED:
            found += _in_table(table)
    return found


def _in_table(table: TableDifference) -> Iterator[Change]:
    yield from _in_columns(table)
    if table.rows.removed:
        yield Change("major", f"{table.name}: {_many(table.rows.removed, 'row')} gone")
    if table.rows.added:
        yield Change("minor", f"{table.name}: {_many(table.rows.added, 'row')} new")
    for name, cells in table.cells.items():
        level = "patch" if (table.name, name) == (DICTIONARY, "description") else "major"
        yield Change(level, f"{table.name}.{name}: {_many(sum(cells), 'cell')} changed")


def _in_columns(table: TableDifference) -> Iterator[Change]:
    for name in table.columns_removed:
        yield Change("major", f"column {table.name}.{name} is gone")
    for name in table.columns_added:
        yield Change("minor", f"column {table.name}.{name} is new")
    for name, what, old, new in table.columns_changed:
        if what == "description":
            yield Change("patch", f"column {table.name}.{name} is described anew")
        else:
            yield Change("major", f"column {table.name}.{name}: {what} {new or 'none'} was {old or 'none'}")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
