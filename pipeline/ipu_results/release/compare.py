"""What differs between two sides: tables, views, columns, rows and cells, counted exactly and shown up to a limit.

Rows are paired by primary key in one full outer join per table, so a million rows take seconds. A file of the same
bytes on both sides is not read.
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterator

import duckdb

from ipu_results.errors import UnreadableReleaseError
from ipu_results.release.difference import ColumnChange, Counted, Difference, Row, TableDifference
from ipu_results.release.pair import Pair
from ipu_results.release.side import Side, SideTable
from ipu_results._util.sql import get_first_line

LIMIT = 100


def compare(old: Side, new: Side, limit: int = LIMIT) -> Difference:
    """All that differs, up to `limit` rows and cells of each kind and table shown.

    Raises UnreadableReleaseError for a damaged file and for a table whose key is unknown or not unique.
    """
    both = [name for name in old.tables if name in new.tables]
    with duckdb.connect() as connection:
        found = [_compared(connection, old.tables[name], new.tables[name], limit) for name in both]
    different = tuple(one for one in found if not one.is_empty)
    added = tuple(table for name, table in new.tables.items() if name not in old.tables)
    removed = tuple(table for name, table in old.tables.items() if name not in new.tables)
    views = tuple(name for name, digest in new.views.items() if old.views.get(name, digest) != digest)
    return Difference(old, new, added, removed, different, len(found) - len(different), views)


def removed_keys(difference: TableDifference) -> list[Row]:
    """The keys of all rows that only the old side has."""
    pair = _paired(difference.old, difference.new)
    with duckdb.connect() as connection:
        return pair.alone(connection, "old", pair.key)


def _compared(connection: duckdb.DuckDBPyConnection, old: SideTable, new: SideTable, limit: int) -> TableDifference:
    try:
        if filecmp.cmp(old.path, new.path, shallow=False):
            return TableDifference(old, new)
        return _difference(connection, _paired(old, new), limit)
    except (OSError, duckdb.Error) as error:
        raise UnreadableReleaseError(f"cannot be compared: {get_first_line(error)}", place=str(new.path)) from error


def _difference(connection: duckdb.DuckDBPyConnection, pair: Pair, limit: int) -> TableDifference:
    old, new = pair.old, pair.new
    added, removed, paired, differing = pair.counts(connection)
    if (paired + removed, paired + added) != (old.rows, new.rows):
        raise UnreadableReleaseError(f"two rows share a key ({', '.join(pair.key)})", place=str(new.path))
    changed, cells = pair.cells(connection, differing) if differing else (0, {})
    return TableDifference(
        old,
        new,
        Counted(added, removed, changed),
        tuple(name for name in new.columns if name not in old.columns),
        tuple(name for name in old.columns if name not in new.columns),
        tuple(_column_changes(pair)),
        cells,
        pair.alone(connection, "new", tuple(new.columns), limit) if added else (),
        pair.alone(connection, "old", tuple(old.columns), limit) if removed else (),
        pair.changed(connection, differing, limit) if differing else (),
    )


def _column_changes(pair: Pair) -> Iterator[ColumnChange]:
    for name in pair.common:
        for what in ("type", "unit", "description"):
            before, after = (getattr(table.columns[name], what) for table in (pair.old, pair.new))
            if before != after:
                yield ColumnChange(name, what, before, after)


def _paired(old: SideTable, new: SideTable) -> Pair:
    """Both by the first key told that both have the columns of."""
    for key in (new.key, old.key):
        if key and all(name in table.columns for name in key for table in (old, new)):
            return Pair(old, new, key)
    raise UnreadableReleaseError("nothing tells a key of this table that both sides have", place=str(new.path))
