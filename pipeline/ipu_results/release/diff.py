"""Compare two releases or warehouses: tables, definitions, columns, rows and cells.

Counts are exact, examples are listed up to a limit. Rows are matched by primary key in one full
outer join per table, so a million rows take seconds. A file with the same bytes on both sides is
not read.
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from ipu_results.errors import UnreadableReleaseError
from ipu_results.kit.sql import get_first_line
from ipu_results.release import files
from ipu_results.release.database import quote_identifier
from ipu_results.release.replacing import finish_interrupted_publish
from ipu_results.release.snapshot import Snapshot, SnapshotTable, read_snapshot

LIMIT = 100
# A column that the join has twice: null on a side that has no such row. No table has a column of
# this name.
PRESENT = "_row_is_present"

Row = dict[str, Any]


class ChangeCounts(NamedTuple):
    """Rows or cells that are only new, only old, and different on the two sides."""

    added: int = 0
    removed: int = 0
    changed: int = 0


NO_CHANGES = ChangeCounts()


class ColumnChange(NamedTuple):
    """A column with another type, unit or description, which `what` names."""

    column: str
    what: str
    old: str | None
    new: str | None


class CellChange(NamedTuple):
    """A cell that differs in a row of both sides; `key` is the primary key of the row."""

    key: Row
    column: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class TableDiff:
    """What differs in a table of both sides.

    `rows` counts rows that are new, gone, and changed in a cell. `cells` has, by column, how many
    cells of common rows were filled, emptied and changed.
    """

    old: SnapshotTable
    new: SnapshotTable
    rows: ChangeCounts = NO_CHANGES
    columns_added: tuple[str, ...] = ()
    columns_removed: tuple[str, ...] = ()
    columns_changed: tuple[ColumnChange, ...] = ()
    cells: Mapping[str, ChangeCounts] = field(default_factory=dict)
    added_rows: Sequence[Row] = ()
    removed_rows: Sequence[Row] = ()
    changed_cells: Sequence[CellChange] = ()

    @property
    def name(self) -> str:
        return self.new.name

    @property
    def is_empty(self) -> bool:
        has_other_columns = self.columns_added or self.columns_removed or self.columns_changed
        # a cell that differs makes its row a changed one
        return not has_other_columns and self.rows == NO_CHANGES

    @property
    def all_cells(self) -> ChangeCounts:
        return _add_up(self.cells.values())

    @property
    def figures(self) -> ChangeCounts:
        """The cells that hold numbers of any kind, so more than `figure_count` counts."""
        numbers = []
        for name, counts in self.cells.items():
            if self.new.columns[name].is_number:
                numbers.append(counts)
        return _add_up(numbers)

    @property
    def figure_count(self) -> int:
        """How many figures of the data differ in rows of both sides: no metadata and no derived
        counts.
        """
        total = 0
        for name, counts in self.cells.items():
            if self.new.columns[name].is_figure:
                total += sum(counts)
        return total

    @property
    def other_count(self) -> int:
        """How many other cells differ in rows of both sides."""
        return sum(self.all_cells) - self.figure_count

    def list_changed(self, *, are_figures: bool) -> list[CellChange]:
        """Return the figures of the data among the cells that are listed, or the others."""
        columns = self.new.columns
        return [
            cell for cell in self.changed_cells if columns[cell.column].is_figure == are_figures
        ]


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """What differs between two folders.

    `added` and `removed` are whole tables, `tables` those of both sides that differ, `same_tables`
    how many do not. `views` are the views and macros of both sides whose definition differs.
    `limit` is how many added rows, removed rows and changed cells are listed of each table.
    """

    old: Snapshot
    new: Snapshot
    added: tuple[SnapshotTable, ...]
    removed: tuple[SnapshotTable, ...]
    tables: tuple[TableDiff, ...]
    same_tables: int
    views: tuple[str, ...]
    limit: int

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.removed or self.tables or self.views)


def diff_releases(
    old: Path, new: Path, limit: int = LIMIT, progress: files.Progress = lambda *_: None
) -> ReleaseDiff:
    """Compare two folders, each a release or a warehouse. `progress` is called with each table.

    Raises UnreadableReleaseError for a damaged file, and for a table whose primary key is unknown
    or not unique.
    """
    # a publish that was killed may have left nothing in the place of either
    finish_interrupted_publish(old)
    finish_interrupted_publish(new)
    before = read_snapshot(old)
    after = read_snapshot(new)
    added = []
    for name, table in after.tables.items():
        if name not in before.tables:
            added.append(table)
    removed = []
    different = []
    same = 0
    with duckdb.connect() as connection:
        for name, table in before.tables.items():
            if name not in after.tables:
                removed.append(table)
                continue
            progress("compare", name)
            changed = _diff_table(connection, table, after.tables[name], limit)
            if changed.is_empty:
                same += 1
            else:
                different.append(changed)
    views = []
    for name in before.views.keys() & after.views.keys():
        if before.views[name] != after.views[name]:
            views.append(name)
    return ReleaseDiff(
        before,
        after,
        added=tuple(added),
        removed=tuple(removed),
        tables=tuple(different),
        same_tables=same,
        views=tuple(sorted(views)),
        limit=limit,
    )


def list_removed_keys(table: TableDiff) -> list[Row]:
    """Return the keys of all rows that only the old side has."""
    with duckdb.connect() as connection:
        query = _match_rows(connection, table.old, table.new)
        return query.list_rows("old", query.key, table.rows.removed)


def _diff_table(
    connection: duckdb.DuckDBPyConnection, old: SnapshotTable, new: SnapshotTable, limit: int
) -> TableDiff:
    try:
        # most tables are the same, and then nothing is read of them
        if filecmp.cmp(old.path, new.path, shallow=False):
            return TableDiff(old, new)
        query = _match_rows(connection, old, new)
        rows, cells = query.count()
        return TableDiff(
            old,
            new,
            rows,
            columns_added=tuple(name for name in new.columns if name not in old.columns),
            columns_removed=tuple(name for name in old.columns if name not in new.columns),
            columns_changed=tuple(query.compare_columns()),
            cells=cells,
            # with a limit of 0 DuckDB reads no rows
            added_rows=query.list_rows("new", new.columns, min(limit, rows.added)),
            removed_rows=query.list_rows("old", old.columns, min(limit, rows.removed)),
            changed_cells=query.list_changed_cells(list(cells), limit),
        )
    except (OSError, duckdb.Error) as error:
        message = f"cannot be compared: {get_first_line(error)}"
        raise UnreadableReleaseError(message, place=str(new.path)) from error


def _match_rows(
    connection: duckdb.DuckDBPyConnection, old: SnapshotTable, new: SnapshotTable
) -> TableDiffQuery:
    """Choose the primary key of the new side, else of the old one, whose columns both sides have."""
    common = old.columns.keys() & new.columns.keys()
    # an older release may name another key, or none
    for key in (new.key, old.key):
        if key and common.issuperset(key):
            return TableDiffQuery(connection, old, new, key)
    raise UnreadableReleaseError("no primary key in common; cannot match rows", place=str(new.path))


@dataclass(frozen=True, slots=True)
class TableDiffQuery:
    """The SQL that compares a table of two folders, matching rows by the columns of `key`."""

    connection: duckdb.DuckDBPyConnection
    old: SnapshotTable
    new: SnapshotTable
    key: tuple[str, ...]

    def count(self) -> tuple[ChangeCounts, dict[str, ChangeCounts]]:
        """Count rows, and the cells of common rows by column, without columns in which nothing
        differs.

        Raises UnreadableReleaseError if two rows share a key.
        """
        compared = [name for name in self._common if name not in self.key]
        is_added = f"old.{PRESENT} IS NULL"
        is_removed = f"new.{PRESENT} IS NULL"
        is_in_both = f"old.{PRESENT} AND new.{PRESENT}"
        conditions = [is_added, is_removed, is_in_both]
        for name in compared:
            conditions.append(f"{is_in_both} AND {self._differs(name)}")
        counts = _count_each(conditions)
        old = f"(SELECT *, true AS {PRESENT} FROM {self.old.sql}) old"
        new = f"(SELECT *, true AS {PRESENT} FROM {self.new.sql}) new"
        [row] = self._fetch(f"SELECT {counts} FROM {old} FULL OUTER JOIN {new} ON {self._on}")
        added, removed, matched, *differing = row
        # a key that two rows share matches more often than there are rows
        is_unique = matched + removed == self.old.rows and matched + added == self.new.rows
        if not is_unique:
            message = f"two rows have the same key ({', '.join(self.key)})"
            raise UnreadableReleaseError(message, place=str(self.new.path))
        names = [name for name, count in zip(compared, differing, strict=True) if count]
        changed, cells = self._count_cells(names)
        return ChangeCounts(added, removed, changed), cells

    def _count_cells(self, names: Sequence[str]) -> tuple[int, dict[str, ChangeCounts]]:
        """Count the common rows that differ in these columns, and their cells by column.

        In one statement with `count`, for all columns, it would take twice as long on the record.
        """
        columns = ["count(*)"]
        for name in names:
            was_empty = f"{_name('old', name)} IS NULL"
            is_empty = f"{_name('new', name)} IS NULL"
            filled = f"{was_empty} AND NOT {is_empty}"
            emptied = f"{is_empty} AND NOT {was_empty}"
            changed = f"NOT {was_empty} AND NOT {is_empty} AND {self._differs(name)}"
            # a list of three counts
            columns.append(f"[{_count_each([filled, emptied, changed])}]")
        [row] = self._fetch(f"SELECT {', '.join(columns)} FROM {self._join_changed(names)}")
        row_count, *counts_by_column = row
        cells = {}
        for name, counts in zip(names, counts_by_column, strict=True):
            cells[name] = ChangeCounts(*counts)
        return row_count, cells

    def _join_changed(self, names: Iterable[str]) -> str:
        """Return what follows FROM for the common rows in which one of these columns differs."""
        # without columns no row differs
        condition = " OR ".join(["false", *map(self._differs, names)])
        return f"{self.old.sql} old JOIN {self.new.sql} new ON {self._on} WHERE {condition}"

    def list_changed_cells(self, names: Sequence[str], limit: int) -> list[CellChange]:
        """Return the first cells that differ in these columns, figures before texts, each in the
        order of the keys.
        """
        figures = []
        texts = []
        for name in names:
            if self.new.columns[name].is_number:
                figures.append(name)
            else:
                texts.append(name)
        cells = self._list_cells(figures, limit)
        return cells + self._list_cells(texts, limit - len(cells))

    def _list_cells(self, names: Sequence[str], limit: int) -> list[CellChange]:
        columns = [_name("new", name) for name in self.key]
        for name in names:
            pair = f"struct_pack(old := {_name('old', name)}, new := {_name('new', name)})"
            columns.append(f"CASE WHEN {self._differs(name)} THEN {pair} END")
        rows = self._fetch(
            f"SELECT {', '.join(columns)} FROM {self._join_changed(names)}"
            f" ORDER BY {_name_all('new', self.key)} LIMIT {limit}"
        )
        width = len(self.key)
        cells = []
        for row in rows:
            key = dict(zip(self.key, row[:width], strict=True))
            for name, pair in zip(names, row[width:], strict=True):
                # null where it is another column of the row that differs
                if pair:
                    cells.append(CellChange(key, name, pair["old"], pair["new"]))
        return cells[:limit]

    def list_rows(self, side: str, names: Iterable[str], limit: int) -> list[Row]:
        """Return the first rows that only one side, `old` or `new`, has, in the order of the keys."""
        old = f"{self.old.sql} old"
        new = f"{self.new.sql} new"
        source = f"{old} ANTI JOIN {new}"
        if side == "new":
            source = f"{new} ANTI JOIN {old}"
        rows = self._fetch(
            f"SELECT {_name_all(side, names)} FROM {source} ON {self._on}"
            f" ORDER BY {_name_all(side, self.key)} LIMIT {limit}"
        )
        return [dict(zip(names, row, strict=True)) for row in rows]

    def compare_columns(self) -> Iterator[ColumnChange]:
        """Yield each type, unit and description that differs in a common column."""
        for name in self._common:
            for what in ("type", "unit", "description"):
                old = getattr(self.old.columns[name], what)
                new = getattr(self.new.columns[name], what)
                if old != new:
                    yield ColumnChange(name, what, old, new)

    @property
    def _common(self) -> list[str]:
        return [name for name in self.old.columns if name in self.new.columns]

    @property
    def _on(self) -> str:
        # a key may be null, and nulls are the same key
        return " AND ".join(self._compare(name, "IS NOT DISTINCT FROM") for name in self.key)

    def _differs(self, name: str) -> str:
        return self._compare(name, "IS DISTINCT FROM")

    def _compare(self, name: str, operator: str) -> str:
        """Compare a column of both sides; where its types differ and one is no number, as text."""
        old = self.old.columns[name]
        new = self.new.columns[name]
        left = _name("old", name)
        right = _name("new", name)
        are_numbers = old.is_number and new.is_number
        if old.type != new.type and not are_numbers:
            left = f"CAST({left} AS VARCHAR)"
            right = f"CAST({right} AS VARCHAR)"
        return f"({left} {operator} {right})"

    def _fetch(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()


def _count_each(conditions: Iterable[str]) -> str:
    """Return what counts the rows that meet each of the conditions."""
    return ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)


def _name(side: str, column: str) -> str:
    return f"{side}.{quote_identifier(column)}"


def _name_all(side: str, columns: Iterable[str]) -> str:
    return ", ".join(_name(side, column) for column in columns)


def _add_up(counts: Iterable[ChangeCounts]) -> ChangeCounts:
    """Return the sums of added, removed and changed."""
    added = 0
    removed = 0
    changed = 0
    for count in counts:
        added += count.added
        removed += count.removed
        changed += count.changed
    return ChangeCounts(added, removed, changed)
