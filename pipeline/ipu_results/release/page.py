"""A difference as one HTML page that needs no other file; every text from data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ipu_results.release.difference import Difference, TableDifference
from ipu_results.release.show import counted, keyed, level, shown, told

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #8886; padding: .25rem .75rem; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
"""
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>What changed</h1>
"""


def as_page(difference: Difference, limit: int) -> str:
    title = escape(f"{difference.old.name} → {difference.new.name}")
    parts = [HEAD.format(title=title, style=STYLE), f"<p>{title}. Least change: {level(difference)}.</p>"]
    if difference.is_empty:
        parts.append(f"<p>No difference in {difference.same} tables.</p>")
    parts.append(_table(("table", "what", "rows"), _whole_tables(difference)))
    parts.append(_table(("definition changed",), ((name,) for name in difference.views)))
    parts.append(_table(("table", "rows", "cells", "figures"), map(_counts, difference.tables)))
    parts += ["\n".join(_section(table, limit)) for table in difference.tables]
    return "\n".join([*(part for part in parts if part), "</body>\n</html>"])


def _whole_tables(difference: Difference) -> Iterator[Sequence[str]]:
    yield from ((one.name, "removed", f"{one.rows:,}") for one in difference.removed)
    yield from ((one.name, "added", f"{one.rows:,}") for one in difference.added)


def _counts(table: TableDifference) -> Sequence[str]:
    return (table.name, *map(counted, (table.rows, table.all_cells, table.figures)))


def _section(table: TableDifference, limit: int) -> Iterator[str]:
    yield f"<h2>{escape(table.name)}</h2>"
    columns = [(name, "removed", "", "") for name in table.columns_removed]
    columns += [(name, "added", "", "") for name in table.columns_added]
    columns += [(name, what, shown(old), shown(new)) for name, what, old, new in table.columns_changed]
    yield _table(("column", "what", "old", "new"), columns)
    yield _table(("column", "cells"), ((name, counted(cells)) for name, cells in table.cells.items()))
    rows = [("removed", keyed(row, table.old)) for row in table.removed_rows[:limit]]
    rows += [("added", keyed(row, table.new)) for row in table.added_rows[:limit]]
    yield _table(("row", "key"), rows)
    yield _more(table.rows.added + table.rows.removed - len(rows), "rows")
    cells = [(told(key), name, shown(old), shown(new)) for key, name, old, new in table.changed_cells[:limit]]
    yield _table(("key", "column", "old", "new"), cells)
    yield _more(sum(table.all_cells) - len(cells), "cells")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Nothing where there is no row."""
    body = "\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>\n{body}\n</tbody></table>" if body else ""


def _more(count: int, what: str) -> str:
    return f"<p>And {count:,} more {what}.</p>" if count else ""
