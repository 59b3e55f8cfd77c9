"""Match rows that are gone with the entries of a corrections file, which give the reasons."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import duckdb
import msgspec

from ipu_results.errors import CorrectionsError, ReleaseError
from ipu_results.kit.sql import get_first_line
from ipu_results.kit.text import to_json_value
from ipu_results.release.database import quote_identifier
from ipu_results.release.diff import ReleaseDiff, Row, list_removed_keys
from ipu_results.release.files import BUILD_TABLE, DICTIONARY_TABLES
from ipu_results.release.snapshot import KNOWN_TABLES

# What TOML gives for a value of a key; bool and datetime are subtypes.
KEY_TYPES = (str, int, float, date)
# Their rows follow from other tables or from the schema, so that no one has to explain them.
DERIVED_TABLES = (BUILD_TABLE, *DICTIONARY_TABLES)


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

    def covers(self, removed: RemovedRows) -> bool:
        """Return whether it names these rows."""
        if self.table != removed.table:
            return False
        # without a key it names a removed table, and never single rows
        if not self.key:
            return not removed.key
        return self.key.items() <= removed.key.items()

    def to_record(self, rows: int) -> dict[str, Any]:
        """Return the entry of release.json; `rows` is how many removed rows it names."""
        return {
            "table": self.table,
            "key": to_json_value(self.key),
            "rows": rows,
            "reason": self.reason.strip(),
        }


class RemovedRows(NamedTuple):
    """A removed row, by its key, or all `rows` of a removed table, without a key."""

    table: str
    key: Row
    rows: int


class MatchedCorrections(NamedTuple):
    """The entries of release.json, and a message for each correction that names nothing."""

    records: list[dict[str, Any]]
    unused: list[str]


def load_corrections(path: Path) -> list[Correction]:
    """Read a corrections file.

    Raises CorrectionsError if it is unreadable or an entry is malformed.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        # the entries are converted below, each with its number
        parts = msgspec.convert(content, dict[Literal["correction"], list[Any]])
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise CorrectionsError(f"cannot be read: {error}", place=str(path)) from error
    corrections = []
    # each by itself, so that an error names the entry
    for number, entry in enumerate(parts.get("correction", []), 1):
        place = f"{path}, correction {number}"
        try:
            correction = msgspec.convert(entry, Correction)
        except msgspec.ValidationError as error:
            raise CorrectionsError(str(error), place=place) from error
        _check_key(correction, place)
        corrections.append(correction)
    return corrections


def _check_key(correction: Correction, place: str) -> None:
    """Raise CorrectionsError for a column that is no key, or a value that no key can have."""
    # a table that is gone may be unknown to the schema
    table = KNOWN_TABLES.get(correction.table)
    for name, value in correction.key.items():
        if table and name not in table.key:
            raise CorrectionsError(f"{name} is not a key column of {table.name}", place=place)
        if not isinstance(value, KEY_TYPES):
            raise CorrectionsError(f"{name} is not a text, number or date", place=place)


def apply_corrections(path: Path | None, diff: ReleaseDiff) -> MatchedCorrections:
    """Match the removed rows with the entries of a corrections file; a row counts for each entry
    that names it.

    Raises ReleaseError for a removed row that none names, CorrectionsError for a malformed file and
    where `expect` or `rows` do not hold.
    """
    corrections = load_corrections(path) if path else []
    counts = [0] * len(corrections)
    for removed in _list_removed(diff):
        has_reason = False
        for at, correction in enumerate(corrections):
            if correction.covers(removed):
                counts[at] += removed.rows
                has_reason = True
        if not has_reason:
            raise ReleaseError(_explain_missing(diff, removed))
    matched = MatchedCorrections([], [])
    for number, correction in enumerate(corrections, 1):
        count = counts[number - 1]
        message = _check_guards(correction, count, diff)
        if message:
            raise CorrectionsError(message, place=f"{path}, correction {number}")
        if count:
            matched.records.append(correction.to_record(count))
        else:
            message = f"correction {number} names no removed row of {correction.table}"
            matched.unused.append(message)
    return matched


def _list_removed(diff: ReleaseDiff) -> Iterator[RemovedRows]:
    for table in diff.removed:
        yield RemovedRows(table.name, {}, table.rows)
    for changed in diff.tables:
        if changed.rows.removed and changed.name not in DERIVED_TABLES:
            for key in list_removed_keys(changed):
                yield RemovedRows(changed.name, key, 1)


def _explain_missing(diff: ReleaseDiff, removed: RemovedRows) -> str:
    what = f"table {removed.table} vanished"
    if removed.key:
        [count] = [table.rows.removed for table in diff.tables if table.name == removed.table]
        example = ", ".join(f"{name} = {value}" for name, value in removed.key.items())
        what = f"{removed.table}: {count:,} rows vanished, such as {example},"
    return f"{what} without a correction that names the reason (--corrections FILE)"


def _check_guards(correction: Correction, count: int, diff: ReleaseDiff) -> str | None:
    """Return what is wrong if `rows` or `expect` do not hold."""
    table = correction.table
    if correction.rows not in (None, count):
        return f"{count} rows of {table} vanished, not {correction.rows}"
    if correction.expect is None:
        return None
    if table not in diff.new.tables:
        if table not in diff.old.tables:
            return f"table {table} is in neither release"
        return None
    conditions = ["true"]
    values = list(correction.key.values())
    for name in correction.key:
        conditions.append(f"{quote_identifier(name)} = ?")
    source = diff.new.tables[table].sql
    query = f"SELECT count(*) FROM {source} WHERE {' AND '.join(conditions)}"
    try:
        with duckdb.connect() as connection:
            [[present]] = connection.execute(query, values).fetchall()
    except duckdb.Error as error:
        return get_first_line(error)
    if present == 0:
        return None
    return f"expects rows of {table} to be gone, but {present} are present"
