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
    """Why rows of a table are gone: those with these values in key columns, or, without a key, the
    whole table.
    """

    table: str
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]
    key: dict[str, Any] = {}
    expect: Literal["gone"] | None = None
    """States that no such row is in the new dataset."""
    rows: int | None = None
    """States how many such rows were removed."""

    def covers(self, removed: RemovedRows) -> bool:
        """Return whether it names these rows."""
        if self.table != removed.table:
            return False
        if not self.key:
            # it names a removed table, and never single rows
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
        # each entry is read below, by itself, so that an error names it
        parts = msgspec.convert(content, dict[Literal["correction"], list[Any]])
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise CorrectionsError(f"cannot be read: {error}", place=str(path)) from error
    corrections = []
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
    all_removed = list(_list_removed(diff))
    for removed in all_removed:
        if not any(correction.covers(removed) for correction in corrections):
            raise ReleaseError(_explain_missing(diff, removed))
    matched = MatchedCorrections([], [])
    for number, correction in enumerate(corrections, 1):
        count = sum(removed.rows for removed in all_removed if correction.covers(removed))
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
    missing = "without a correction that names the reason (--corrections FILE)"
    if not removed.key:
        return f"table {removed.table} vanished {missing}"
    [table] = [table for table in diff.tables if table.name == removed.table]
    example = ", ".join(f"{name} = {value}" for name, value in removed.key.items())
    return f"{table.name}: {table.rows.removed:,} rows vanished, such as {example}, {missing}"


def _check_guards(correction: Correction, count: int, diff: ReleaseDiff) -> str | None:
    """Return what is wrong if `rows` or `expect` do not hold."""
    if correction.rows is not None and correction.rows != count:
        return f"{count} rows of {correction.table} vanished, not {correction.rows}"
    if correction.expect == "gone":
        return _check_gone(correction, diff)
    return None


def _check_gone(correction: Correction, diff: ReleaseDiff) -> str | None:
    """Return what is wrong if the new dataset has rows that the correction names."""
    table = correction.table
    if table not in diff.new.tables and table not in diff.old.tables:
        return f"table {table} is in neither release"
    if table not in diff.new.tables:
        # the table is gone, and its rows with it
        return None
    # without a key, every row
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
