"""Cite the rows of a query: which source each row is from, with one footnote per source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ipu_results.doors.cite.citation import format_footnote, group_by_source, read_dataset_version
from ipu_results.doors.cite.facts import load_results
from ipu_results.errors import QueryError
from ipu_results.kit.sql import run_query
from ipu_results.record.store.query import open_warehouse, read_build_id, read_one_build
from ipu_results.schema import TABLES, VIEWS, Table, View, table

RESULT_ID = "result_id"
SOURCE = "source"  # the column that is added
MAX_ROWS = 500
MIXED = (
    "Rows of MLPerf® results are listed for information: MLCommons does not allow comparing them"
    " with other results."
)
AS_PRINTED = "Values are those of the query; ipu-results cite ID prints figures as the source does."


@dataclass(frozen=True, slots=True)
class CitedRows:
    """The rows of a query with a last column that names their sources, and the notes to print
    below.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str]


def cite_rows(sql: str, warehouse: Path, *, in_cells: bool) -> CitedRows:
    """Run one read-only query, and name the source of each row in a column more.

    The column has the number of a footnote. With `in_cells` it has the text of the footnote, for
    formats that have no room below the rows.

    The query selects `result_id`, or of pairs the id of each side, such as `ipu_result_id` and
    `gpu_result_id`. Raises QueryError without an id, with one side's alone, for a row without a
    result, and for too many rows.
    """
    return read_one_build(warehouse, lambda folder: _cite_rows(folder, sql, in_cells))


def _cite_rows(folder: Path, sql: str, in_cells: bool) -> CitedRows:
    with open_warehouse(folder) as connection:
        answer = run_query(connection, sql)
        names = _find_ids(sql, answer)
        ids: list[str] = []
        for sides in answer.select(names).to_pylist():
            ids += sides.values()
        if not all(isinstance(result_id, str) for result_id in ids):
            raise QueryError(
                f"{' and '.join(names)} is null in some row: a row without a result cannot be cited"
            )
        results = load_results(connection, ids)
        version = read_dataset_version(folder, read_build_id(folder))
    marks = {}
    below = []
    for number, cited in enumerate(group_by_source(results).values(), 1):
        mark = f"[{number}]"
        note = format_footnote(cited, version, places=False)
        if in_cells:
            mark = note
        else:
            below.append(f"{mark} {note}")
        for result in cited:
            # The words that must stand at each figure: emulated, or unverified.
            marks[result.result_id] = " ".join(filter(None, [mark, result.status]))
    rows = []
    for row in answer.to_pylist():
        sources = dict.fromkeys(marks[row[name]] for name in names)
        rows.append([*row.values(), " ".join(sources)])
    if len({result.is_score for result in results}) > 1:
        below.append(MIXED)
    below.append(AS_PRINTED)
    return CitedRows([*answer.column_names, SOURCE], rows, below)


def _find_ids(sql: str, answer: pa.Table) -> list[str]:
    """Return the columns that lead to results. Raises QueryError where rows cannot be cited."""
    names = answer.column_names
    ids = list(filter(is_id, names))
    if not ids:
        raise QueryError("the query must select result_id: each row is cited by it")
    if SOURCE in names:
        raise QueryError(f"two columns are called {SOURCE}; rename that of the query with AS")
    if not 0 < answer.num_rows <= MAX_ROWS:
        count = answer.num_rows
        raise QueryError(f"the query returns {count} rows; 1 to {MAX_ROWS} can be cited")
    _check_sides(sql, names, ids)
    return ids


def is_id(name: str) -> bool:
    """Return whether a column leads to a result: `result_id`, or that of one side of a pair."""
    return name == RESULT_ID or name.endswith(f"_{RESULT_ID}")


def list_read(sql: str) -> list[Table | View]:
    """Return the relations whose names a statement has."""
    words = set(re.findall(r"\w+", sql))
    relations: tuple[Table | View, ...] = (*TABLES, *VIEWS)
    return [relation for relation in relations if relation.name in words]


def _check_sides(sql: str, names: Sequence[str], ids: Sequence[str]) -> None:
    """Check that a query of a view of pairs selects the id of each side: a figure is cited by its
    own source.
    """
    is_renamed = re.search(rf'\w_{RESULT_ID}"?\s+(as\s+)?"?{RESULT_ID}\b', sql, re.IGNORECASE)
    # columns that a view of pairs has of its own: figures of both sides, not of one result
    own = set(names).difference(table("results").names)
    for view in list_read(sql.casefold()):
        sides = list(filter(is_id, view.names))
        missing = [name for name in sides if name not in ids]
        has_figures = not own.isdisjoint(view.names)
        if len(sides) > 1 and missing and (is_renamed or has_figures):
            under = "that name" if len(missing) == 1 else "those names"
            raise QueryError(
                f"{view.name} has figures of {' and '.join(sides)}: select {' and '.join(missing)}"
                f" under {under}, so that each figure is cited by its own source"
            )
