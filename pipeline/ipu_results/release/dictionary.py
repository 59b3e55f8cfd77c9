"""DICTIONARY.md: every table, view and macro of a release with every column and its unit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ipu_results._util.markdown import format_code, format_markdown_table, escape_markdown
from ipu_results.release.facts import Facts
from ipu_results.release.side import KNOWN

HEAD = """# Data dictionary, version {version}

Every table, view and macro of this release with its columns. Tables are there as Parquet, as CSV and in
`ipu_results.duckdb`; views and macros in the DuckDB file alone. The same lines stand in the table `columns`. An empty
unit means a text, a count without one, or a figure whose unit stands in a column beside it.
"""
KINDS = {"table": "Table", "view": "View", "macro": "Macro"}


def page(facts: Facts) -> str:
    parts = [HEAD.format(version=facts.version)]
    for name, rows in groupby(facts.found["columns"], key=lambda row: row[0]):
        first, *columns = rows
        parts.append(_section(facts, name, first, columns))
    return "\n".join(parts)


def _section(facts: Facts, name: str, first: Sequence[Any], columns: Sequence[Sequence[Any]]) -> str:
    kind, description = first[2], first[4]
    rows = f", {facts.tables[name]['rows']:,} rows" if name in facts.tables else ""
    told = [f"## {KINDS.get(kind, kind)} `{name}`{rows}\n", f"{escape_markdown(description)}\n"]
    if known := KNOWN.get(name):
        told.append(f"Key: {', '.join(map(format_code, known.key))}.\n")
        links = [f"`{one.name}` → `{one.references}`" for one in known.columns if one.references]
        told += [f"References: {', '.join(links)}.\n"] if links else []
    told.append(format_markdown_table(("column", "type", "unit", "what it holds"), ((format_code(row[1]), *row[2:]) for row in columns)))
    return "\n".join(told)
