"""Read and apply the corrections file: rows that were removed on purpose, each with the reason that is published."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import duckdb
import msgspec

from ipu_results.errors import CorrectionsError, ReleaseError
from ipu_results.ground.sql import get_first_line
from ipu_results.release.diff import ReleaseDiff, Row, list_removed_keys
from ipu_results.release.files import BUILD_TABLE, DICTIONARY_TABLE, quote_identifier
from ipu_results.release.snapshot import KNOWN_TABLES

KEY_TYPES = (str, int, float, date)  # bool and datetime are subtypes


class Correction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Removed rows of a table that have these values in key columns; without a key, the whole table.

    `expect` asserts that no such row is in the new dataset, `rows` how many were removed.
    """

    table: str
    reason: Annotated[str, msgspec.Meta(pattern=r"\S")]
    key: dict[str, Any] = {}
    expect: Literal["gone"] | None = None
    rows: int | None = None

    def covers(self, table: str, key: Row, is_whole_table: bool) -> bool:
        """Return whether it names this row; without a key it names a removed table and never single rows."""
        matches = table == self.table and all(key.get(name) == value for name, value in self.key.items())
        return matches and bool(self.key) is not is_whole_table

    def to_record(self, rows: int) -> dict[str, Any]:
        """Return the entry of release.json; `rows` is how many removed rows it names."""
        key = {name: value.isoformat() if isinstance(value, date) else value for name, value in self.key.items()}
        return {"table": self.table, "key": key, "rows": rows, "reason": self.reason.strip()}


def load_corrections(path: Path) -> list[Correction]:
    """Read a corrections file. Raises CorrectionsError if it is unreadable or an entry is malformed."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = msgspec.convert(content, dict[Literal["correction"], list[Any]]).get("correction", [])
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise CorrectionsError(f"cannot be read: {error}", place=str(path)) from error
    return [_read_entry(f"{path}, correction {number}", entry) for number, entry in enumerate(entries, 1)]


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


def apply_corrections(path: Path | None, diff: ReleaseDiff) -> tuple[list[dict[str, Any]], list[str]]:
    """Match the removed rows with the entries of a corrections file; a row counts for each entry that names it.

    Returns the entries of release.json, and a message for each correction that names nothing. Raises ReleaseError for
    a removed row that none names, CorrectionsError for a malformed file and where `expect` or `rows` do not hold.
    """
    corrections = load_corrections(path) if path else []
    counts = [0] * len(corrections)
    whole_tables = {table.name: table.rows for table in diff.removed}
    for table, key in _list_removed(diff):
        matches = [at for at, entry in enumerate(corrections) if entry.covers(table, key, table in whole_tables)]
        if not matches:
            raise ReleaseError(_explain_missing(diff, table, key))
        for at in matches:
            counts[at] += whole_tables.get(table, 1)
    records, unused = [], []
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
        if table.rows.removed and table.name not in (BUILD_TABLE, DICTIONARY_TABLE):
            yield from ((table.name, key) for key in list_removed_keys(table))


def _explain_missing(diff: ReleaseDiff, table: str, key: Row) -> str:
    count = sum(entry.rows.removed for entry in diff.tables if entry.name == table)
    example = ", ".join(f"{name} = {value}" for name, value in key.items())
    what = f"{table}: {count:,} rows vanished, such as {example}," if key else f"table {table} vanished"
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
