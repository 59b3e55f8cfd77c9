"""Remark on the rows of a statement that may not be ranked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from ipu_results.errors import QueryError
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_count
from ipu_results.schema import TABLES, VIEWS, Table, View, quote
from ipu_results.schema.usable import USABLE, describe_unusable
from ipu_results.serve.facts import CITABLE
from ipu_results.serve.footnotes import is_id

# the column that rows are ordered by, or of which the extreme is selected
RANKED = re.compile(r"(?:\border\s+by|\b(?:arg_)?(?:max|min)\s*\()\s*([^,)]+)", re.IGNORECASE)
FIGURE = re.compile(
    r"throughput|latency|minutes|efficiency|power|energy|time_to|quality|value|ratio|share|per_",
    re.IGNORECASE,
)


def remark_on_answer(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
) -> list[str]:
    """Say how many rows of a ranking are not usable; nothing where the statement asks for that."""
    if not _is_ranking(sql, names) or re.search(rf"\b{USABLE}\b", sql):
        return []
    columns = [position for position, name in enumerate(names) if is_id(name)]
    ids = {str(row[position]) for row in rows for position in columns}
    try:
        if not ids:
            return _remark_on_relations(connection, sql)
        listed = ", ".join(map(quote, sorted(ids)))
        found = run_query(connection, f"FROM ({CITABLE}) WHERE result_id IN ({listed})").to_pylist()
    except QueryError:  # a statement that reads no results: they were not opened
        return []
    by_id = {row["result_id"]: row for row in found}
    named = [[by_id[row[at]] for at in columns if row[at] in by_id] for row in rows]
    return remark_on_rows(named)


def _is_ranking(sql: str, names: Sequence[str]) -> bool:
    """Return whether a statement orders by a figure, or selects an extreme."""
    for ranked in RANKED.findall(sql):
        word = ranked.split()[0]
        is_number = word.isdigit() and 0 < int(word) <= len(names)
        if FIGURE.search(names[int(word) - 1] if is_number else ranked):
            return True
    return False


def remark_on_rows(named: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """Say how many rows are not usable; `named` are the results that each row names."""
    first = [min(row, key=lambda result: result[USABLE]) for row in named if row]
    words = describe_unusable(first)
    return [words] if words else []


def _remark_on_relations(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """Say how many rows of what a statement reads are not usable: its answer names none of them."""
    words = set(re.findall(r"\w+", sql))
    relations: tuple[Table | View, ...] = (*TABLES, *VIEWS)
    remarks = []
    for relation in relations:
        source = getattr(relation, "source", relation.sql_name)
        has_column = any(column.name == USABLE for column in relation.columns)
        if relation.name not in words or not has_column:
            continue
        counts = (
            f"SELECT count(*) AS rows, count(*) FILTER (NOT {USABLE}) AS unusable FROM {source}"
        )
        [count] = run_query(connection, counts).to_pylist()
        if count["unusable"]:
            remarks.append(
                f"{count['unusable']:,} of {format_count(count['rows'], 'row')} of {relation.name} are"
                f" not usable, and the statement does not leave them out: add WHERE {USABLE}"
            )
    return remarks
