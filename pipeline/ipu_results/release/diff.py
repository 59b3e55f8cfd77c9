"""Compare two releases or warehouses: tables, definitions, columns, rows and cells.

Counts are exact, examples are listed up to a limit. Rows are matched by primary key in one full
outer join per table, so a million rows take seconds. A file with the same bytes on both sides is
not read. A snapshot is what a folder holds without its rows.
"""

from __future__ import annotations

import filecmp
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ipu_results.errors import UnreadableReleaseError, WarehouseError
from ipu_results.kit.sql import get_first_line
from ipu_results.kit.text import escape_unprintable
from ipu_results.record.store.files import DATABASE
from ipu_results.record.store.query import open_parquet
from ipu_results.release import files
from ipu_results.release.files import PACKAGE, RELEASE, quote_identifier, read_json
from ipu_results.schema import SQL, TABLES, VIEWS, quote
from ipu_results.schema.frames import ARROW

GLOB = re.compile(r"[*?\[]")
SQL_TYPES = {ARROW[kind]: SQL[kind] for kind in ARROW}
NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
KNOWN_TABLES = {table.sql_name: table for table in TABLES}


@dataclass(frozen=True, slots=True)
class SnapshotColumn:
    """A column of a Parquet file; `type` as SQL names it."""

    type: str
    unit: str | None
    description: str | None
    is_number: bool


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """A Parquet file; `key` is empty if neither the schema nor datapackage.json names a primary
    key.
    """

    name: str
    path: Path
    rows: int
    columns: Mapping[str, SnapshotColumn]
    key: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The table as a FROM clause of DuckDB names it, whatever characters the path has."""
        path = GLOB.sub(lambda match: f"[{match[0]}]", str(self.path))
        return f"read_parquet({quote(path)}, hive_partitioning = false)"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The tables of a folder; `metadata` is release.json and `views` the digests of definitions,
    empty if missing.
    """

    path: Path
    tables: Mapping[str, SnapshotTable]
    metadata: Mapping[str, Any]
    views: Mapping[str, str]

    @property
    def name(self) -> str:
        """The version, or the name of a folder without one; safe to print."""
        return escape_unprintable(str(self.metadata.get("version") or self.path.resolve().name))

    @property
    def title(self) -> str:
        """The path with the version, safe to print."""
        version = self.metadata.get("version")
        return escape_unprintable(f"{self.path} ({version})" if version else str(self.path))


def read_snapshot(folder: Path) -> Snapshot:
    """Read a release or a warehouse, without the files of views, since they follow from the tables.

    Raises UnreadableReleaseError if it holds no table or a damaged one.
    """
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    metadata = read_json(folder / RELEASE)
    views = {view.sql_name for view in VIEWS} | set(metadata.get("view_files") or ())
    paths = {
        name: path
        for file, path in sorted(files.list_files(folder).items())
        if file.endswith(".parquet") and (name := files.read_sql_name(file)) not in views
    }
    if not paths:
        raise UnreadableReleaseError(
            "is neither a release nor a warehouse: no Parquet file", place=str(folder)
        )
    keys = _read_package_keys(folder)
    tables = {name: _read_table(name, path, keys) for name, path in paths.items()}
    return Snapshot(folder, tables, metadata, files.read_definitions(folder / DATABASE))


def read_columns(schema: pa.Schema) -> dict[str, SnapshotColumn]:
    """Return the columns of a Parquet file by name, with unit and description from the field
    metadata.
    """
    columns = {}
    for entry in schema:
        texts = {
            key.decode(): value.decode(errors="replace")
            for key, value in (entry.metadata or {}).items()
        }
        is_number = any(check(entry.type) for check in NUMBERS)
        sql_type = SQL_TYPES.get(entry.type, str(entry.type))
        columns[entry.name] = SnapshotColumn(
            sql_type, texts.get("unit"), texts.get("description"), is_number
        )
    return columns


def _read_table(name: str, path: Path, keys: Mapping[str, tuple[str, ...]]) -> SnapshotTable:
    try:
        with open_parquet(path) as file:
            schema = file.schema_arrow
            rows = file.metadata.num_rows
    except WarehouseError as error:
        raise UnreadableReleaseError(error.message, place=str(path)) from error
    key = KNOWN_TABLES[name].key if name in KNOWN_TABLES else keys.get(name, ())
    return SnapshotTable(name, path, rows, read_columns(schema), key)


def _read_package_keys(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the primary keys that datapackage.json names, by table; none if it is malformed."""
    try:
        resources = read_json(folder / PACKAGE)["resources"]
        return {
            files.read_sql_name(resource["path"]): tuple(map(str, resource["schema"]["primaryKey"]))
            for resource in resources
            if "primaryKey" in resource.get("schema", {})
        }
    except (LookupError, TypeError, AttributeError):
        return {}


LIMIT = 100
PRESENT = "_row_is_present"  # marks the sides of a row of the join; no column is called so

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
    """What differs in a table; `cells` counts, by column, cells of common rows: filled, emptied and
    changed.
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
        return not (
            any(self.rows) or self.columns_added or self.columns_removed or self.columns_changed
        )

    @property
    def all_cells(self) -> ChangeCounts:
        return _add_up(self.cells.values())

    @property
    def figures(self) -> ChangeCounts:
        """The cells that hold numbers."""
        return _add_up(
            counts for name, counts in self.cells.items() if self.new.columns[name].is_number
        )


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
    for folder in (old, new):
        files.finish_interrupted_publish(folder)
    before = read_snapshot(old)
    after = read_snapshot(new)
    common = [name for name in before.tables if name in after.tables]
    with duckdb.connect() as connection:
        tables = []
        for name in common:
            progress("compare", name)
            tables.append(_diff_table(connection, before.tables[name], after.tables[name], limit))
    different = tuple(table for table in tables if not table.is_empty)
    return ReleaseDiff(
        before,
        after,
        added=tuple(table for name, table in after.tables.items() if name not in before.tables),
        removed=tuple(table for name, table in before.tables.items() if name not in after.tables),
        tables=different,
        same_tables=len(tables) - len(different),
        views=tuple(
            name for name, digest in after.views.items() if before.views.get(name, digest) != digest
        ),
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
            added_rows=query.list_rows("new", tuple(new.columns), limit) if rows.added else (),
            removed_rows=query.list_rows("old", tuple(old.columns), limit) if rows.removed else (),
            changed_cells=query.list_changed_cells(tuple(cells), limit),
        )
    except (OSError, duckdb.Error) as error:
        raise UnreadableReleaseError(
            f"cannot be compared: {get_first_line(error)}", place=str(new.path)
        ) from error


def _match_rows(
    connection: duckdb.DuckDBPyConnection, old: SnapshotTable, new: SnapshotTable
) -> TableDiffQuery:
    """Choose the primary key of the new side, else of the old one, whose columns both sides have."""
    for key in (new.key, old.key):
        if key and all(name in table.columns for name in key for table in (old, new)):
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
        names = [name for name in self._common if name not in self.key]
        common = f"old.{PRESENT} AND new.{PRESENT}"
        conditions = [f"old.{PRESENT} IS NULL", f"new.{PRESENT} IS NULL", common]
        conditions += [f"{common} AND {self._differs(name)}" for name in names]
        left, right = (
            f"(SELECT *, true AS {PRESENT} FROM {table.sql})" for table in (self.old, self.new)
        )
        tables = f"{left} old FULL OUTER JOIN {right} new ON {self._on}"
        added, removed, matched, *differing = self._count(conditions, tables)
        if (matched + removed, matched + added) != (self.old.rows, self.new.rows):
            message = f"two rows have the same key ({', '.join(self.key)})"
            raise UnreadableReleaseError(message, place=str(self.new.path))
        names = [name for name, count in zip(names, differing, strict=True) if count]
        if not names:
            return ChangeCounts(added, removed), {}
        conditions = ["true"]
        for name in names:
            old, new = (f"{side}.{quote_identifier(name)} IS NULL" for side in ("old", "new"))
            conditions += [f"{old} AND NOT {new}", f"{new} AND NOT {old}"]
            conditions.append(f"NOT ({old} OR {new}) AND {self._differs(name)}")
        changed, *cells = self._count(conditions, self._select_changed(names))
        by_column = {
            name: ChangeCounts(*cells[3 * at : 3 * at + 3]) for at, name in enumerate(names)
        }
        return ChangeCounts(added, removed, changed), by_column

    def _count(self, conditions: Iterable[str], tables: str) -> list[int]:
        """Count the rows of a FROM clause that meet each of the conditions, in one query."""
        counts = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)
        (row,) = self.connection.execute(f"SELECT {counts} FROM {tables}").fetchall()
        return list(row)

    def list_changed_cells(self, names: Sequence[str], limit: int) -> list[CellChange]:
        """Return the first cells that differ in these columns, figures before texts, each in the
        order of the keys.
        """
        cells: list[CellChange] = []
        for is_number in (True, False):
            chosen = [name for name in names if self.new.columns[name].is_number == is_number]
            cells += self._list_cells(chosen, limit - len(cells)) if chosen else []
        return cells

    def _list_cells(self, names: Sequence[str], limit: int) -> list[CellChange]:
        columns = [f"new.{quote_identifier(name)}" for name in self.key]
        for name in names:
            columns += [
                self._differs(name),
                *(f"{side}.{quote_identifier(name)}" for side in ("old", "new")),
            ]
        changed = f"{self._select_changed(names)} ORDER BY {self._order('new')} LIMIT {limit}"
        cells = []
        for row in self.connection.execute(
            f"SELECT {', '.join(columns)} FROM {changed}"
        ).fetchall():
            key = dict(zip(self.key, row, strict=False))
            values = row[len(self.key) :]
            triples = zip(names, values[::3], values[1::3], values[2::3], strict=True)
            cells += [
                CellChange(key, name, old, new) for name, differs, old, new in triples if differs
            ]
        return cells[:limit]

    def list_rows(self, side: str, names: Sequence[str], limit: int) -> list[Row]:
        """Return the first rows that only one side, `old` or `new`, has, in the order of the keys."""
        columns = ", ".join(f"{side}.{quote_identifier(name)}" for name in names)
        tables = [f"{self.old.sql} old", f"{self.new.sql} new"]
        left, right = tables if side == "old" else reversed(tables)
        sql = (
            f"SELECT {columns} FROM {left} ANTI JOIN {right} ON {self._on}"
            f" ORDER BY {self._order(side)} LIMIT {limit}"
        )
        return [
            dict(zip(names, row, strict=True)) for row in self.connection.execute(sql).fetchall()
        ]

    def compare_columns(self) -> Iterator[ColumnChange]:
        """Yield each type, unit and description that differs in a common column."""
        for name in self._common:
            for what in ("type", "unit", "description"):
                old, new = (getattr(table.columns[name], what) for table in (self.old, self.new))
                if old != new:
                    yield ColumnChange(name, what, old, new)

    @property
    def _common(self) -> list[str]:
        return [name for name in self.old.columns if name in self.new.columns]

    @property
    def _on(self) -> str:
        return " AND ".join(self._compare(name, "IS NOT DISTINCT FROM") for name in self.key)

    def _select_changed(self, names: Sequence[str]) -> str:
        """Return the FROM clause of the common rows in which one of these columns differs."""
        condition = " OR ".join(map(self._differs, names))
        return f"{self.old.sql} old JOIN {self.new.sql} new ON {self._on} WHERE {condition}"

    def _order(self, side: str) -> str:
        return ", ".join(f"{side}.{quote_identifier(name)}" for name in self.key)

    def _differs(self, name: str) -> str:
        return self._compare(name, "IS DISTINCT FROM")

    def _compare(self, name: str, operator: str) -> str:
        """Compare numbers as numbers, and values of other types that differ as text."""
        old = self.old.columns[name]
        new = self.new.columns[name]
        values = [f"{side}.{quote_identifier(name)}" for side in ("old", "new")]
        if old.type != new.type and not (old.is_number and new.is_number):
            values = [f"CAST({value} AS VARCHAR)" for value in values]
        return f"({values[0]} {operator} {values[1]})"


def _add_up(counts: Iterable[ChangeCounts]) -> ChangeCounts:
    """Return the sums of added, removed and changed."""
    return ChangeCounts(*map(sum, zip(NO_CHANGES, *counts, strict=True)))
