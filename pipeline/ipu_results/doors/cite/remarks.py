"""Remark on the rows of a statement that may not be ranked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any, NamedTuple

from ipu_results.doors.cite.facts import open_citable
from ipu_results.doors.cite.footnotes import is_id, list_read
from ipu_results.errors import GateError
from ipu_results.kit.sql import Connection, run_query
from ipu_results.kit.statements import run_text
from ipu_results.kit.text import find_nearest_words, format_count
from ipu_results.schema import Table, View, quote
from ipu_results.schema.usable import USABLE, describe_unusable

# the column that rows are ordered by, or of which the extreme is selected
RANKED = re.compile(r"(?:\border\s+by|\b(?:arg_)?(?:max|min)\s*\()\s*([^,)]+)", re.IGNORECASE)
# a column that is compared with a text
COMPARED = re.compile(r"(\w+)\s*(=|I?LIKE)\s*'([^']+)'", re.IGNORECASE)
TEXT = re.compile(r"'[^']*'")
NAMES_USABLE = re.compile(rf"\b{USABLE}\b")
MAX_VALUES = 5
FIGURE = re.compile(
    r"throughput|latency|minutes|efficiency|power|energy|time_to|quality|value|ratio|share|per_",
    re.IGNORECASE,
)


def remark_on_answer(
    connection: Connection,
    sql: str,
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
) -> list[str]:
    """Say which values of an empty answer no row has, and how many rows of a ranking are not
    usable.

    Nothing is said of a ranking whose statement names the column.
    """
    # the maximum of no rows is one null, and their count 0
    if not any(map(any, rows)):
        return _remark_on_unknown_values(connection, sql)
    remarks = _remark_on_longer_names(connection, sql)
    if not _is_ranking(sql, names) or NAMES_USABLE.search(sql):
        return remarks
    id_columns = list(map(is_id, names))
    if not any(id_columns):
        return remarks + _remark_on_relations(connection, sql)
    ids_of_rows = [list(compress(row, id_columns)) for row in rows]
    try:
        with open_citable(connection) as session:
            citable = "FROM citable WHERE list_contains(flatten($ids), result_id)"
            found = run_text(session, "serve/citable.sql", citable, {"ids": ids_of_rows})
    except GateError:  # a statement that reads no results: they were not opened
        return remarks
    by_id = {row["result_id"]: row for row in found.to_pylist()}
    named = []
    for of_row in ids_of_rows:
        named.append([by_id[result_id] for result_id in of_row if result_id in by_id])
    return remarks + remark_on_rows(named)


def remark_on_unnamed(
    connection: Connection, sql: str, names: Sequence[str], said: Sequence[str]
) -> list[str]:
    """Say how many rows are not usable of what a statement reads that shows figures, and no id.

    Nothing is said of a statement that names the column, and nothing that is `said`.
    """
    if NAMES_USABLE.search(sql) or not any(map(FIGURE.search, names)):
        return []
    return [remark for remark in _remark_on_relations(connection, sql) if remark not in said]


class ComparedColumn(NamedTuple):
    """A column of a relation that a statement compares with a text."""

    relation: Table | View
    column: str
    operator: str
    text: str


def _remark_on_unknown_values(connection: Connection, sql: str) -> list[str]:
    """Say of each text that a column of a relation is compared with, and that no row of it fits,
    what the nearest values are.
    """
    remarks = []
    for relation, column, operator, text in _list_compared(sql):
        values = f"SELECT DISTINCT {column}::VARCHAR AS value FROM {relation.source}"
        fitting = f"SELECT 1 FROM ({values}) WHERE value {operator} {quote(text)} LIMIT 1"
        if run_query(connection, fitting).num_rows:
            continue
        known = run_query(connection, f"{values} WHERE value NOTNULL ORDER BY 1")
        names = known["value"].to_pylist()
        near = find_nearest_words(text.strip("%"), names)
        words = "the nearest: " if near else f"{len(names)} values, such as "
        listed = ", ".join(near or names[:MAX_VALUES])
        remarks.append(f"no row of {relation.name} has {column} {text!r}; {words}{listed}")
    return remarks


def _remark_on_longer_names(connection: Connection, sql: str) -> list[str]:
    """Say which chips a name leaves out that states no form or memory, such as A100."""
    remarks = []
    for relation, column, operator, text in _list_compared(sql):
        if (column, operator) != ("chip", "="):
            continue
        longer = f"WHERE starts_with(chip, {quote(f'{text}-')}) ORDER BY chip"
        others = run_query(connection, f"SELECT DISTINCT chip FROM {relation.source} {longer}")
        if others.num_rows:
            listed = ", ".join(others["chip"].to_pylist())
            remarks.append(f"chip = {text!r} finds none of {listed}")
    return remarks


def _list_compared(sql: str) -> Iterator[ComparedColumn]:
    """Yield the columns that a statement compares with a text."""
    for column, operator, text in COMPARED.findall(sql):
        for relation in list_read(sql):
            if column in relation.names:
                yield ComparedColumn(relation, column, operator, text)


def _is_ranking(sql: str, names: Sequence[str]) -> bool:
    """Return whether a statement orders by a figure, or selects an extreme."""
    for ranked in RANKED.findall(sql):
        column = ranked
        word = ranked.split()[0]
        if word.isdigit() and 0 < int(word) <= len(names):
            column = names[int(word) - 1]
        if FIGURE.search(column):
            return True
    return False


def remark_on_rows(named: Iterable[Collection[Mapping[str, Any]]]) -> list[str]:
    """Say how many rows are not usable; `named` are the results that each row names."""
    reasons = []
    for results in filter(None, named):
        # one that is not usable, if there is one: False is before True
        first = min(results, key=itemgetter(USABLE))
        reasons.append(first["unusable"])
    words = describe_unusable(reasons)
    return [words] if words else []


def _remark_on_relations(connection: Connection, sql: str) -> list[str]:
    """Say how many rows of what a statement reads are not usable: its answer names none of them."""
    remarks = []
    for relation in list_read(TEXT.sub("''", sql)):  # a text may be the name of a view
        if USABLE not in relation.names:
            continue
        counts = f"count(*) AS rows, count(*) FILTER (NOT {USABLE}) AS unusable"
        statement = f"SELECT {counts} FROM {relation.source}"
        [count] = run_query(connection, statement).to_pylist()
        if count["unusable"]:
            rows = format_count(count["rows"], "row")
            remarks.append(
                f"{count['unusable']:,} of {rows} of {relation.name} are not usable, and the"
                f" statement does not leave them out: add WHERE {USABLE}"
            )
    return remarks
