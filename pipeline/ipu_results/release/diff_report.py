"""Format a diff of two releases: as text, as JSON, and as one HTML page that needs no other file.

The figures that changed come first, each named as a person would name its row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import isfinite
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ipu_results.kit.text import escape_unprintable, format_count, format_json, to_json_value
from ipu_results.release.database import quote_identifier
from ipu_results.release.diff import CellChange, ChangeCounts, ReleaseDiff, Row, TableDiff
from ipu_results.release.files import BUILD_TABLE
from ipu_results.release.snapshot import Snapshot, SnapshotTable
from ipu_results.release.version import get_level, list_changes

RESULTS = "results"
RESULT_ID = "result_id"
POSITION = "_position"  # of a row in the list of rows that get a name
MAX_WIDTH = 100  # of a value, in characters
TEMPLATE = Path(__file__).with_name("templates") / "diff.html"


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
    """Return the tables that differ: results first, then those with changed figures, and `build`
    never.
    """
    tables = [table for table in diff.tables if table.name != BUILD_TABLE]
    # false is sorted before true, and what is equal keeps its order
    tables.sort(key=lambda table: table.figure_count == 0)
    tables.sort(key=lambda table: table.name != RESULTS)
    return tables


def count_all_figures(diff: ReleaseDiff) -> int:
    """Return how many figures of the data differ in rows of both sides."""
    return sum(table.figure_count for table in list_reported_tables(diff))


def list_figure_changes(diff: ReleaseDiff) -> list[FigureChange]:
    """Return the changed figures of all tables, results first, as far as the diff lists cells."""
    changes = []
    for table in list_reported_tables(diff):
        cells = table.list_changed(are_figures=True)
        names = name_rows(diff, table.new, [cell.key for cell in cells])
        for name, cell in zip(names, cells, strict=True):
            unit = table.new.columns[cell.column].unit
            change = FigureChange(name, table.name, cell.key, cell.column, unit, cell.old, cell.new)
            changes.append(change)
    return changes


def name_rows(diff: ReleaseDiff, table: SnapshotTable, keys: Sequence[Row]) -> list[str]:
    """Return a name for each row, by its key: the label that the schema gives it, or that of its
    result, or the key.
    """
    if not keys:
        return []
    if table.label:
        return _read_labels(table, keys)
    names = []
    results = diff.new.tables.get(RESULTS)
    belong_to_results = RESULT_ID in keys[0] and table.name != RESULTS
    if results is None or not belong_to_results:
        for key in keys:
            names.append(_join(f"{name} {value}" for name, value in key.items()))
        return names
    result_keys = [{RESULT_ID: key[RESULT_ID]} for key in keys]
    result_names = name_rows(diff, results, result_keys)
    for result_name, key in zip(result_names, keys, strict=True):
        # the rest of the key tells rows of one result apart
        rest = [value for name, value in key.items() if name != RESULT_ID]
        names.append(_join([result_name, *rest]))
    return names


def _read_labels(table: SnapshotTable, keys: Sequence[Row]) -> list[str]:
    """Return the label of each row by its key, else the key."""
    positions = pa.array(range(len(keys)))
    listed = pa.Table.from_pylist(keys).append_column(POSITION, positions)
    columns = ", ".join(f"named.{quote_identifier(name)}" for name in table.label)
    conditions = []
    for name in keys[0]:
        column = quote_identifier(name)
        conditions.append(f"named.{column} IS NOT DISTINCT FROM listed.{column}")
    query = (
        f"SELECT {POSITION}, {columns} FROM listed JOIN {table.sql} named"
        f" ON {' AND '.join(conditions)}"
    )
    with duckdb.connect() as connection:
        connection.register("listed", listed)
        rows = connection.execute(query).fetchall()
    # a row that is gone, or whose label is empty, keeps its key as a name
    names = [_join(key.values()) for key in keys]
    for position, *values in rows:
        label = _join(values)
        if label:
            names[position] = label
    return names


def _join(values: Iterable[Any]) -> str:
    return ", ".join(str(value) for value in values if value is not None)


def format_diff_text(diff: ReleaseDiff) -> str:
    """Return lines for a terminal."""
    return "\n".join(map(escape_unprintable, _list_lines(diff)))


def _list_lines(diff: ReleaseDiff) -> Iterator[str]:
    yield f"old: {diff.old.title}"
    yield f"new: {diff.new.title}"
    if diff.is_empty:
        yield f"no difference in {diff.same_tables} tables"
        return
    changes = list_figure_changes(diff)
    count = count_all_figures(diff)
    end = ":" if changes else ""
    yield f"{format_count(count, 'figure')} changed{end}"
    for change in changes:
        yield f"  {_format_name(change)}: {_format_figure(change)}"
    # with a limit of 0 no figure is listed, and no line says how many are not
    if changes and count > len(changes):
        yield f"  and {count - len(changes):,} more"
    for table in diff.removed:
        yield f"- table {table.name}, {table.rows:,} rows"
    for table in diff.added:
        yield f"+ table {table.name}, {table.rows:,} rows"
    for name in diff.views:
        yield f"~ the definition of {name}"
    tables = list_reported_tables(diff)
    for changed in tables:
        yield ""
        yield from _list_table_lines(changed)
    level = get_level(list_changes(diff))
    yield ""
    yield f"{len(tables)} tables differ, {diff.same_tables} do not; version change needed: {level}"


def _format_name(change: FigureChange) -> str:
    return f"{change.name} ({change.table})"


def _format_figure(change: FigureChange) -> str:
    unit = f" {change.unit}" if change.unit else ""
    return f"{change.column} {_format_value(change.old)} -> {_format_value(change.new)}{unit}"


def _list_table_lines(table: TableDiff) -> Iterator[str]:
    rows, cells, figures = _format_table_counts(table)
    yield f"{table.name}: rows {rows}; cells {cells}; figures {figures}"
    for name in table.columns_removed:
        yield f"  - column {name}"
    for name in table.columns_added:
        yield f"  + column {name}"
    for name, what, old, new in table.columns_changed:
        yield f"  ~ column {name}: {what} {_format_value(old)} -> {_format_value(new)}"
    for name, counts in table.cells.items():
        yield f"  ~ {name}: {_format_counts(counts)} cells"
    for row in table.removed_rows:
        yield f"  - {_format_row(row, table.old)}"
    yield from _format_rest("-", table.rows.removed - len(table.removed_rows))
    for row in table.added_rows:
        yield f"  + {_format_row(row, table.new)}"
    yield from _format_rest("+", table.rows.added - len(table.added_rows))
    # the figures are in front of all tables
    others = table.list_changed(are_figures=False)
    for cell in others:
        key, name, old, new = _format_cell(cell)
        yield f"  ~ {key}: {name} {old} -> {new}"
    yield from _format_rest("~", table.other_count - len(others))


def _format_rest(mark: str, count: int) -> Iterator[str]:
    if count > 0:
        yield f"  {mark} and {count:,} more"


def _format_table_counts(table: TableDiff) -> list[str]:
    counts = (table.rows, table.all_cells, table.figures)
    return list(map(_format_counts, counts))


def _format_counts(counts: ChangeCounts) -> str:
    return f"+{counts.added:,} -{counts.removed:,} ~{counts.changed:,}"


def _format_row(row: Row, table: SnapshotTable) -> str:
    """Return the key of a row, or all of it if the table has none."""
    key = {name: row[name] for name in table.key if name in row}
    return _format_key(key or row)


def _format_key(key: Row) -> str:
    return ", ".join(f"{name} = {_format_value(value)}" for name, value in key.items())


def _format_cell(cell: CellChange) -> tuple[str, str, str, str]:
    """Return key, column, old and new value."""
    return _format_key(cell.key), cell.column, _format_value(cell.old), _format_value(cell.new)


def _format_value(value: Any) -> str:
    """Return a value on one line, shortened if it is long, with unprintable characters escaped."""
    if value is None:
        return "NULL"
    text = escape_unprintable(str(_to_json(value)))
    return text if len(text) <= MAX_WIDTH else f"{text[:MAX_WIDTH]}…"


def format_diff_json(diff: ReleaseDiff) -> str:
    """Return JSON with exact counts, and rows and cells as far as the diff lists them."""
    record = {
        "old": _describe_snapshot(diff.old),
        "new": _describe_snapshot(diff.new),
        "identical": diff.is_empty,
        "level": get_level(list_changes(diff)),
        "limit": diff.limit,
        "tables_added": list(map(_describe_whole_table, diff.added)),
        "tables_removed": list(map(_describe_whole_table, diff.removed)),
        "tables_same": diff.same_tables,
        "figures_changed": list_figure_changes(diff),
        "definitions_changed": diff.views,
        "tables_changed": [_describe_table(table) for table in list_reported_tables(diff)],
    }
    return format_json(_to_json(record))


def _describe_snapshot(snapshot: Snapshot) -> Row:
    metadata = snapshot.metadata
    return {
        "path": str(snapshot.path),
        "version": metadata.get("version"),
        "build_id": metadata.get("build_id"),
    }


def _describe_whole_table(table: SnapshotTable) -> Row:
    return {"table": table.name, "rows": table.rows}


def _describe_table(table: TableDiff) -> Row:
    return {
        "table": table.name,
        "rows": table.rows._asdict() | {"old": table.old.rows, "new": table.new.rows},
        "columns_added": table.columns_added,
        "columns_removed": table.columns_removed,
        "columns_changed": table.columns_changed,
        "cells": table.all_cells,
        "figures": table.figures,
        "cells_by_column": table.cells,
        "added_rows": table.added_rows,
        "removed_rows": table.removed_rows,
        "changed_cells": table.changed_cells,
    }


def _to_json(value: Any) -> Any:
    """Return what JSON can hold: of a NamedTuple an object, of NaN and infinities a text, so that
    they are not taken for nulls.
    """
    if hasattr(value, "_asdict"):
        return _to_json(value._asdict())
    if isinstance(value, dict):
        return {name: _to_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(_to_json, value))
    # of which `to_json_value` makes a null
    if isinstance(value, float) and not isfinite(value):
        return json.dumps(value)
    return to_json_value(value)


def format_diff_html(diff: ReleaseDiff) -> str:
    """Return an HTML page; every text that comes from data is escaped."""
    title = escape(f"{diff.old.name} → {diff.new.name}")
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    # a table without rows is an empty part
    parts = [part for part in _list_html_parts(diff, title) if part]
    return template.substitute(title=title, body="\n".join(parts)).rstrip("\n")


def _list_html_parts(diff: ReleaseDiff, title: str) -> Iterator[str]:
    yield f"<p>{title}. Version change needed: {get_level(list_changes(diff))}.</p>"
    if diff.is_empty:
        yield f"<p>No difference in {diff.same_tables} tables.</p>"
    changes = list_figure_changes(diff)
    count = count_all_figures(diff)
    yield f"<p>{format_count(count, 'figure')} changed.</p>"
    figures = [(_format_name(change), _format_figure(change)) for change in changes]
    yield _format_html_table(("row", "figure"), figures)
    yield _format_remainder(count - len(changes), "figures")
    tables = []
    for table in diff.removed:
        tables.append((table.name, "removed", f"{table.rows:,}"))
    for table in diff.added:
        tables.append((table.name, "added", f"{table.rows:,}"))
    yield _format_html_table(("table", "what", "rows"), tables)
    yield _format_html_table(("definition changed",), [(name,) for name in diff.views])
    reported = list_reported_tables(diff)
    counts = [(changed.name, *_format_table_counts(changed)) for changed in reported]
    yield _format_html_table(("table", "rows", "cells", "figures"), counts)
    for changed in reported:
        # as one part, in which an empty one of its own leaves an empty line
        yield "\n".join(_list_html_parts_of(changed))


def _list_html_parts_of(table: TableDiff) -> Iterator[str]:
    yield f"<h2>{escape(table.name)}</h2>"
    columns = []
    for name in table.columns_removed:
        columns.append((name, "removed", "", ""))
    for name in table.columns_added:
        columns.append((name, "added", "", ""))
    for name, what, old, new in table.columns_changed:
        columns.append((name, what, _format_value(old), _format_value(new)))
    yield _format_html_table(("column", "what", "old", "new"), columns)
    cells = [(name, _format_counts(counts)) for name, counts in table.cells.items()]
    yield _format_html_table(("column", "cells"), cells)
    rows = []
    for row in table.removed_rows:
        rows.append(("removed", _format_row(row, table.old)))
    for row in table.added_rows:
        rows.append(("added", _format_row(row, table.new)))
    yield _format_html_table(("row", "key"), rows)
    differing = table.rows.added + table.rows.removed
    yield _format_remainder(differing - len(rows), "rows")
    others = list(map(_format_cell, table.list_changed(are_figures=False)))
    yield _format_html_table(("key", "column", "old", "new"), others)
    yield _format_remainder(table.other_count - len(others), "other cells")


def _format_html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, or nothing if it has no rows."""
    if not rows:
        return ""
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    lines = [f"<table><thead><tr>{names}</tr></thead><tbody>"]
    for row in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    lines.append("</tbody></table>")
    return "\n".join(lines)


def _format_remainder(count: int, what: str) -> str:
    return f"<p>And {count:,} more {what}.</p>" if count else ""
