"""List the figures that changed between two releases, each named as a person would name its row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ipu_results.release.diff import ReleaseDiff, Row, TableDiff
from ipu_results.release.files import BUILD_TABLE, quote_identifier
from ipu_results.release.snapshot import KNOWN_TABLES, SnapshotTable
from ipu_results.release.version import get_change_level

RESULTS, RESULT_ID = "results", "result_id"
POSITION = "_position"


class FigureChange(NamedTuple):
    """A figure that differs in a row of both sides; `name` names the row, `key` is its primary key."""

    name: str
    table: str
    key: Row
    column: str
    unit: str | None
    old: Any
    new: Any


def list_reported_tables(diff: ReleaseDiff) -> list[TableDiff]:
    """Return the tables that differ: results first, then those with changed figures, and `build` never."""
    tables = [table for table in diff.tables if table.name != BUILD_TABLE]
    return sorted(tables, key=lambda table: (table.name != RESULTS, not count_figures(table)))


def is_figure(table: TableDiff, column: str) -> bool:
    """Return whether a column holds figures of the data: numbers that are neither metadata nor derived counts."""
    return table.new.columns[column].is_number and get_change_level(table.name, column) == "major"


def count_figures(table: TableDiff) -> int:
    """Return how many figures differ in rows of both sides."""
    return sum(sum(counts) for column, counts in table.cells.items() if is_figure(table, column))


def list_figure_changes(diff: ReleaseDiff) -> list[FigureChange]:
    """Return the changed figures of all tables, results first, as far as the diff lists cells."""
    changes = []
    for table in list_reported_tables(diff):
        cells = [cell for cell in table.changed_cells if is_figure(table, cell.column)]
        for cell, name in zip(cells, name_rows(diff, table.new, [cell.key for cell in cells]), strict=True):
            unit = table.new.columns[cell.column].unit
            changes.append(FigureChange(name, table.name, cell.key, cell.column, unit, cell.old, cell.new))
    return changes


def name_rows(diff: ReleaseDiff, table: SnapshotTable, keys: Sequence[Row]) -> list[str]:
    """Return a name for each row, by its key: the label that the schema gives it, or that of its result, or the key."""
    if not keys:
        return []
    label = _get_label(table)
    results = diff.new.tables.get(RESULTS)
    if not label and results and RESULT_ID in keys[0] and table.name != RESULTS:
        names = name_rows(diff, results, [{RESULT_ID: key[RESULT_ID]} for key in keys])
        rest = [{name: value for name, value in key.items() if name != RESULT_ID} for key in keys]
        return [_join([name, *key.values()]) for name, key in zip(names, rest, strict=True)]
    if not label:
        return [_join(f"{name} {value}" for name, value in key.items()) for key in keys]
    listed = pa.Table.from_pylist([{**key, POSITION: at} for at, key in enumerate(keys)])
    on = " AND ".join(
        f"named.{quote_identifier(name)} IS NOT DISTINCT FROM listed.{quote_identifier(name)}" for name in keys[0]
    )
    columns = ", ".join(f"named.{quote_identifier(name)}" for name in label)
    with duckdb.connect() as connection:
        connection.register("listed", listed)
        rows = connection.execute(f"SELECT {POSITION}, {columns} FROM listed JOIN {table.sql} named ON {on}").fetchall()
    labels = {at: _join(values) for at, *values in rows}
    return [labels.get(at) or _join(key.values()) for at, key in enumerate(keys)]


def _get_label(table: SnapshotTable) -> tuple[str, ...]:
    known = KNOWN_TABLES.get(table.name)
    return tuple(name for name in (known.label if known else ()) if name in table.columns)


def _join(values: Iterable[Any]) -> str:
    return ", ".join(str(value) for value in values if value is not None)
