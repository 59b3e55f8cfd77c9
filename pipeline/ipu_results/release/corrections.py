"""The corrections file: rows that are gone on purpose, each with the reason that the release publishes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb

from ipu_results.errors import CorrectionsError, ReleaseError
from ipu_results.release.compare import removed_keys
from ipu_results.release.database import name_of
from ipu_results.release.difference import Difference, Row
from ipu_results.release.names import DERIVED, DICTIONARY, RELEASE
from ipu_results.release.side import KNOWN, Side
from ipu_results._util.sql import get_first_line

KEYS = {"table", "key", "reason", "expect", "rows"}
GONE = "gone"


@dataclass(frozen=True, slots=True)
class Correction:
    """Rows of a table with these values in key columns; no key stands for a whole table that is gone.

    `file` names where it is told. `gone` asserts that no such row is in the new dataset, `rows` how many rows vanished.
    """

    file: str
    number: int
    table: str
    key: Mapping[str, Any]
    reason: str
    gone: bool = False
    rows: int | None = None

    @property
    def place(self) -> str:
        return f"{self.file}, correction {self.number}"

    def fits(self, table: str, key: Row) -> bool:
        return table == self.table and all(key.get(name) == value for name, value in self.key.items())


@dataclass(frozen=True, slots=True)
class Applied:
    correction: Correction
    rows: int

    def record(self) -> dict[str, Any]:
        """As release.json holds it."""
        key = {
            name: value.isoformat() if isinstance(value, date) else value for name, value in self.correction.key.items()
        }
        return {"table": self.correction.table, "key": key, "rows": self.rows, "reason": self.correction.reason}

    @classmethod
    def read(cls, number: int, record: Mapping[str, Any]) -> Applied:
        """From release.json."""
        told = Correction(RELEASE, number, record["table"], dict(record["key"]), record["reason"])
        return cls(told, record["rows"])


def load(path: Path) -> list[Correction]:
    """Raises CorrectionsError for a file that is not there, or an entry that is incomplete."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CorrectionsError(f"cannot be read: {error}", place=str(path)) from error
    entries = told.pop("correction", [])
    if told or not isinstance(entries, list):
        raise CorrectionsError("holds something else than [[correction]] entries", place=str(path))
    return [_correction(path, number, entry) for number, entry in enumerate(entries, 1)]


def _correction(path: Path, number: int, entry: Any) -> Correction:
    place = f"{path}, correction {number}"
    if not isinstance(entry, dict) or (unknown := sorted(entry.keys() - KEYS)):
        raise CorrectionsError(f"has unknown {', '.join(unknown) if isinstance(entry, dict) else 'shape'}", place=place)
    table, reason, key = entry.get("table"), entry.get("reason"), entry.get("key", {})
    if not (isinstance(table, str) and isinstance(reason, str) and reason.strip()):
        raise CorrectionsError("lacks a table or a reason", place=place)
    allowed = (str, int, float, bool, date, datetime)
    if not isinstance(key, dict) or not all(isinstance(value, allowed) for value in key.values()):
        raise CorrectionsError("has a key that is no table of columns and values", place=place)
    if table in KNOWN and (wrong := sorted(key.keys() - set(KNOWN[table].key))):
        raise CorrectionsError(f"{wrong[0]} is no key column of {table}", place=place)
    if entry.get("expect", GONE) != GONE or type(entry.get("rows", 0)) is not int:
        raise CorrectionsError(f'has an expect that is not "{GONE}", or rows that are no number', place=place)
    return Correction(str(path), number, table, key, reason.strip(), "expect" in entry, entry.get("rows"))


def apply(corrections: Sequence[Correction], difference: Difference) -> list[Applied]:
    """The corrections that name rows which vanished; a row counts for each that names it.

    Raises ReleaseError where a row vanished that none names, CorrectionsError where a guard does not hold.
    """
    counts = {correction.number: 0 for correction in corrections}
    whole_tables = {table.name: table.rows for table in difference.removed}
    for table, key in _vanished(difference):
        named = [one.number for one in corrections if _names(one, table, key, whole_tables)]
        if not named:
            raise ReleaseError(_unnamed(difference, table, key))
        for number in named:
            counts[number] += whole_tables.get(table, 1)
    for correction in corrections:
        _assert_guards(correction, counts[correction.number], difference)
    return [Applied(one, counts[one.number]) for one in corrections if counts[one.number]]


def _vanished(difference: Difference) -> Iterator[tuple[str, Row]]:
    """Table and key of each row that is gone; a table that is gone stands once, with no key."""
    yield from ((table.name, {}) for table in difference.removed)
    for table in difference.tables:
        if table.rows.removed and table.name not in (DERIVED, DICTIONARY):
            yield from ((table.name, key) for key in removed_keys(table))


def _names(one: Correction, table: str, key: Row, whole_tables: Mapping[str, int]) -> bool:
    """Without a key a correction names a table that is gone, and never single rows."""
    return one.fits(table, key) and bool(one.key) is not (table in whole_tables)


def _unnamed(difference: Difference, table: str, key: Row) -> str:
    gone = sum(one.rows.removed for one in difference.tables if one.name == table)
    what = f"{table}: {gone:,} rows vanished" if key else f"table {table} vanished"
    told = ", ".join(f"{name} = {value}" for name, value in key.items())
    return f"{what}{f', such as {told},' if key else ''} and no correction names a reason (--corrections FILE)"


def _assert_guards(correction: Correction, count: int, difference: Difference) -> None:
    place = correction.place
    if correction.rows is not None and correction.rows != count:
        raise CorrectionsError(f"{count} rows of {correction.table} vanished, not {correction.rows}", place=place)
    if correction.gone and not {correction.table} & (difference.old.tables.keys() | difference.new.tables.keys()):
        raise CorrectionsError(f"names a table {correction.table} that was never there", place=place)
    if correction.gone and (left := _left(correction, difference.new)):
        raise CorrectionsError(f"says that rows of {correction.table} are gone, and {left} are there", place=place)


def _left(correction: Correction, new: Side) -> int:
    table = new.tables.get(correction.table)
    if table is None:
        return 0
    where = " AND ".join(f"{name_of(name)} = ?" for name in correction.key) or "true"
    try:
        with duckdb.connect() as connection:
            query = f"SELECT count(*) FROM {table.sql} WHERE {where}"
            return int(connection.execute(query, list(correction.key.values())).fetchall()[0][0])
    except duckdb.Error as error:
        raise CorrectionsError(get_first_line(error), place=correction.place) from error
