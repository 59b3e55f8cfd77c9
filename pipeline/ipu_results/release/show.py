"""A difference for a reader: lines for the eye, JSON for a program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from ipu_results._util.text import format_json, to_json_value, escape_unprintable
from ipu_results.release.difference import Counted, Difference, Row, TableDifference
from ipu_results.release.side import SideTable
from ipu_results.release.version import changes, least, parse

WIDTH = 100


def as_text(difference: Difference, limit: int) -> str:
    return "\n".join(map(escape_unprintable, _lines(difference, limit)))


def _lines(difference: Difference, limit: int) -> Iterator[str]:
    yield f"old: {difference.old.name}"
    yield f"new: {difference.new.name}"
    if difference.is_empty:
        yield f"no difference in {difference.same} tables"
        return
    yield from (f"- table {one.name}, {one.rows:,} rows" for one in difference.removed)
    yield from (f"+ table {one.name}, {one.rows:,} rows" for one in difference.added)
    yield from (f"~ the definition of {name}" for name in difference.views)
    for table in difference.tables:
        yield ""
        yield from _table_lines(table, limit)
    yield ""
    yield f"{len(difference.tables)} tables differ, {difference.same} do not; least change: {level(difference)}"


def _table_lines(table: TableDifference, limit: int) -> Iterator[str]:
    yield f"{table.name}: rows {counted(table.rows)}; cells {counted(table.all_cells)}; " + (
        f"figures {counted(table.figures)}"
    )
    yield from (f"  - column {name}" for name in table.columns_removed)
    yield from (f"  + column {name}" for name in table.columns_added)
    for name, what, old, new in table.columns_changed:
        yield f"  ~ column {name}: {what} {shown(old)} -> {shown(new)}"
    yield from (f"  ~ {name}: {counted(cells)} cells" for name, cells in table.cells.items())
    yield from _listed("-", [keyed(row, table.old) for row in table.removed_rows], table.rows.removed, limit)
    yield from _listed("+", [keyed(row, table.new) for row in table.added_rows], table.rows.added, limit)
    cells = [f"{told(key)}: {name} {shown(old)} -> {shown(new)}" for key, name, old, new in table.changed_cells]
    yield from _listed("~", cells, sum(table.all_cells), limit)


def _listed(mark: str, lines: Sequence[str], count: int, limit: int) -> Iterator[str]:
    yield from (f"  {mark} {line}" for line in lines[:limit])
    if count > min(limit, len(lines)):
        yield f"  {mark} and {count - min(limit, len(lines)):,} more"


def counted(found: Counted) -> str:
    return f"+{found.added:,} -{found.removed:,} ~{found.changed:,}"


def keyed(row: Row, table: SideTable) -> str:
    """A row by its key, or whole where the table has none."""
    return told({name: row[name] for name in table.key if name in row} or row)


def told(key: Row) -> str:
    return ", ".join(f"{name} = {shown(value)}" for name, value in key.items())


def shown(value: Any) -> str:
    """One line, cut where it is long; what is not printed in a terminal is escaped."""
    if value is None:
        return "NULL"
    safe = escape_unprintable(str(_plain(value)))
    return safe if len(safe) <= WIDTH else f"{safe[:WIDTH]}…"


def _plain(value: Any) -> Any:
    """What JSON can hold, and what is not finite as text: NaN is no null."""
    if isinstance(value, float) and not isfinite(value):
        return json.dumps(value)
    return to_json_value(value)


def _plain_row(row: Row) -> Row:
    return {name: _plain(value) for name, value in row.items()}


def level(difference: Difference) -> str:
    """Which part of the version the change raises."""
    raised = least(parse("1.1.1"), changes(difference))
    return "major" if raised.major > 1 else "minor" if raised.minor > 1 else "patch"


def as_record(difference: Difference, limit: int) -> str:
    """Counts are exact; rows and cells are listed up to the limit."""
    record = {
        "old": _side(difference, "old"),
        "new": _side(difference, "new"),
        "identical": difference.is_empty,
        "level": level(difference),
        "limit": limit,
        "tables_added": [{"table": one.name, "rows": one.rows} for one in difference.added],
        "tables_removed": [{"table": one.name, "rows": one.rows} for one in difference.removed],
        "tables_same": difference.same,
        "definitions_changed": list(difference.views),
        "tables_changed": [_table_record(table) for table in difference.tables],
    }
    return format_json(record)


def _side(difference: Difference, which: str) -> dict[str, Any]:
    side = getattr(difference, which)
    return {"path": str(side.path), "version": side.told.get("version"), "build_id": side.told.get("build_id")}


def _table_record(table: TableDifference) -> dict[str, Any]:
    return {
        "table": table.name,
        "rows": table.rows._asdict() | {"old": table.old.rows, "new": table.new.rows},
        "columns_added": list(table.columns_added),
        "columns_removed": list(table.columns_removed),
        "columns_changed": [change._asdict() for change in table.columns_changed],
        "cells": table.all_cells._asdict(),
        "figures": table.figures._asdict(),
        "cells_by_column": {name: cells._asdict() for name, cells in table.cells.items()},
        "added_rows": list(map(_plain_row, table.added_rows)),
        "removed_rows": list(map(_plain_row, table.removed_rows)),
        "changed_cells": [_plain_row(cell._asdict()) | {"key": _plain_row(cell.key)} for cell in table.changed_cells],
    }
