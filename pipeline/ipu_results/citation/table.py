"""Make a publishable table of a query: figures as printed, columns with units, one footnote per source."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import count, product
from pathlib import Path
from typing import Any

from ipu_results._util.resources import DATASET
from ipu_results._util.sql import run_query
from ipu_results.citation.cite import format_footnote, group_by_source
from ipu_results.citation.escape import escape_html, escape_latex, escape_markdown_line
from ipu_results.citation.facts import (
    FIGURES,
    LABELS,
    MLPERF,
    CitedResult,
    Figure,
    load_results,
    mark_name,
)
from ipu_results.citation.version import read_dataset_version
from ipu_results.errors import QueryError
from ipu_results.schema import table
from ipu_results.store.query import open_warehouse, read_build_id, read_one_build

FORMATS = ("latex", "markdown", "html")
RESULT_ID = "result_id"
MAX_ROWS = 500
COMPUTED_MARK, DAGGER = "†", r"\textdagger{}"
COMPUTED = "Computed by the query or derived by ipu-results; not printed by the source."
MIXED = (
    "Rows of MLPerf® results are listed for information: MLCommons does not allow comparing them with other results."
)
PRINTED_AS = {"minutes": "time_to_train_s"}  # a derived column that repeats a printed cell, where the unit is a minute
MINUTES = ("min", "mins")
SECONDS = 60


@dataclass(frozen=True, slots=True)
class CitedTable:
    """A table ready to format: plain text throughout. `marks` holds the footnote of each row."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    marks: Sequence[str]
    footnotes: Sequence[tuple[str, str]]


def format_cited_table(sql: str, output: str, warehouse: Path = DATASET) -> str:
    """Run one read-only query and format its rows as `latex`, `markdown` or `html`.

    The query selects `result_id`, which is not shown: it leads to what the sources print. Raises QueryError without it,
    for a null in it, and for too many rows.
    """
    built = read_one_build(warehouse, lambda folder: _build_table(folder, sql))
    return {"latex": _format_latex, "markdown": _format_markdown, "html": _format_html}[output](built)


def _build_table(folder: Path, sql: str) -> CitedTable:
    with open_warehouse(folder) as connection:
        answer = run_query(connection, sql)
        names = answer.column_names
        if RESULT_ID not in names:
            raise QueryError("the query must select result_id: each row is cited by it")
        if names == [RESULT_ID]:
            raise QueryError("the query selects result_id alone: add the columns to print")
        if not 0 < answer.num_rows <= MAX_ROWS:
            raise QueryError(f"the query returns {answer.num_rows} rows; a table has 1 to {MAX_ROWS}")
        records = answer.to_pylist()
        if any(not isinstance(record[RESULT_ID], str) for record in records):
            raise QueryError("result_id is null in some row: a row without a result cannot be cited")
        results = {own.result_id: own for own in load_results(connection, [record[RESULT_ID] for record in records])}
        version = read_dataset_version(folder, read_build_id(folder))
    shown = [name for name in names if name != RESULT_ID]
    pairs = [(record, results[record[RESULT_ID]]) for record in records]
    columns = [_build_column(name, [(record[name], result) for record, result in pairs]) for name in shown]
    grouped = group_by_source(list(results.values()))
    letters = dict(zip(grouped, _list_letters(), strict=False))
    footnotes = [(letters[name], format_footnote(own, version, places=False)) for name, own in grouped.items()]
    if any(COMPUTED_MARK in header for header, _ in columns):
        footnotes.append((COMPUTED_MARK, COMPUTED))
    if 0 < sum(own.row["benchmark"] == MLPERF for own in results.values()) < len(results):
        footnotes.append(("", MIXED))
    return CitedTable(
        [header for header, _ in columns],
        list(zip(*(cells for _, cells in columns), strict=True)),
        [letters[result.source.document_id] for _, result in pairs],
        footnotes,
    )


def _list_letters() -> Any:
    return ("".join(letters) for size in count(1) for letters in product(string.ascii_lowercase, repeat=size))


def _build_column(name: str, pairs: Sequence[tuple[Any, CitedResult]]) -> tuple[str, list[str]]:
    """Return the header with its unit, and the cells; a unit that is not the same in all rows is in the cells."""
    figures = [_find_printed(name, value, result) for value, result in pairs]
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value, _ in pairs]
    units = {figure.unit for figure in figures if figure}
    shared = units.pop() if len(units) == 1 else None
    is_computed = any(number and figure is None for number, figure in zip(numbers, figures, strict=True))
    column = next((column for column in table("results").columns if column.name == name), None)
    if not any(figures) and column is not None and not column.is_derived and column.unit is None:
        is_computed = False  # row_number and the like are not figures
    unit = shared or (column.unit if column and not any(figures) else None)
    label = LABELS.get(name, name).replace("_", " ")
    header = f"{label}{f' ({unit})' if unit else ''}{COMPUTED_MARK if is_computed else ''}"
    cells = [
        _format_cell(value, figure, result, shared) for (value, result), figure in zip(pairs, figures, strict=True)
    ]
    return header, cells


def _find_printed(name: str, value: Any, result: CitedResult) -> Figure | None:
    """Return the printed figure behind a value of the query, None where the source prints none that equals it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if name in PRINTED_AS:
        if value != result.row[name]:
            return None
        own = next((figure for figure in result.figures if figure.column == PRINTED_AS[name]), None)
        return own if own and own.unit in MINUTES and own.value == value else None
    if name not in result.row or result.row[name] != value:
        return None
    return next((figure for figure in result.figures if figure.column == name), None)


def _format_cell(value: Any, figure: Figure | None, result: CitedResult, shared: str | None) -> str:
    if figure is not None:
        unit = f" {figure.unit}" if figure.unit and figure.unit != shared else ""
        is_figure = figure.column in FIGURES
        status = f" ({result.status})" if result.status and is_figure else ""
        return f"{figure.text}{unit}{status}"
    if value is None:
        return ""
    if isinstance(value, float):
        status = f" ({result.status})" if result.status else ""
        return f"{int(value) if value.is_integer() and abs(value) < 1e15 else repr(value)}{status}"
    return value.isoformat() if isinstance(value, (date, datetime)) else mark_name(str(value))


def _format_latex(built: CitedTable) -> str:
    lines = [
        r"\begin{table}",
        rf"\begin{{tabular}}{{{'l' * len(built.header)}}}",
        r"\hline",
        rf"{_join_latex(built.header)} \\",
        r"\hline",
    ]
    for row, mark in zip(built.rows, built.marks, strict=True):
        first, *rest = map(escape_latex, row)
        cells = " & ".join([rf"{first}\textsuperscript{{{mark}}}", *rest])
        lines.append(rf"{cells} \\")
    lines += [r"\hline", r"\end{tabular}", "", r"\footnotesize"]
    lines += [rf"{_format_latex_mark(mark)}{escape_latex(text)}\par" for mark, text in built.footnotes]
    return "\n".join([*lines, r"\end{table}"])


def _join_latex(texts: Sequence[str]) -> str:
    return " & ".join(escape_latex(text).replace(COMPUTED_MARK, DAGGER) for text in texts)


def _format_latex_mark(mark: str) -> str:
    return rf"\textsuperscript{{{mark.replace(COMPUTED_MARK, DAGGER)}}} " if mark else ""


def _format_markdown(built: CitedTable) -> str:
    lines = [_join_cells(built.header, escape_markdown_line), _join_cells(["---"] * len(built.header), str)]
    for row, mark in zip(built.rows, built.marks, strict=True):
        first, *rest = map(escape_markdown_line, row)
        lines.append(_join_cells([f"{first}<sup>{mark}</sup>", *rest], str))
    notes = [f"{f'<sup>{mark}</sup> ' if mark else ''}{escape_markdown_line(text)}" for mark, text in built.footnotes]
    return "\n".join([*lines, "", "\n\n".join(notes)])


def _join_cells(cells: Sequence[Any], escape: Callable[[Any], str]) -> str:
    return f"| {' | '.join(map(escape, cells))} |"


def _format_html(built: CitedTable) -> str:
    head = "".join(f"<th>{escape_html(text)}</th>" for text in built.header)
    lines = ["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for row, mark in zip(built.rows, built.marks, strict=True):
        first, *rest = map(escape_html, row)
        cells = "".join(f"<td>{cell}</td>" for cell in [f"{first}<sup>{mark}</sup>", *rest])
        lines.append(f"<tr>{cells}</tr>")
    notes = [f"<p>{f'<sup>{mark}</sup> ' if mark else ''}{escape_html(text)}</p>" for mark, text in built.footnotes]
    return "\n".join([*lines, "</tbody>", "</table>", *notes])
