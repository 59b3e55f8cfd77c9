"""Make a publishable table of a query: figures as printed, columns with units, one footnote per
source.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import count, product
from pathlib import Path
from typing import Any

from ipu_results.errors import QueryError
from ipu_results.ground.files import DATASET
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_float
from ipu_results.schema import TABLES, VIEWS, Table, View, table
from ipu_results.serve.cite import (
    escape_html,
    escape_latex,
    escape_markdown_line,
    format_footnote,
    group_by_source,
    read_dataset_version,
)
from ipu_results.serve.facts import (
    FIGURES,
    MLPERF,
    CitedResult,
    Figure,
    load_results,
    load_units,
    make_label,
    mark_name,
)
from ipu_results.store.query import open_warehouse, read_build_id, read_one_build

FORMATS = ("latex", "markdown", "html")
RESULT_ID = "result_id"
MAX_ROWS = 500
COMPUTED_MARK, DAGGER = "†", r"\textdagger{}"
COMPUTED = "Computed by the query or derived by ipu-results; not printed by the source."
MIXED = (
    "Rows of MLPerf® results are listed for information: MLCommons does not allow comparing them"
    " with other results."
)
PRINTED_AS = {
    "minutes": "time_to_train_s"
}  # a derived column that repeats a printed cell, where the unit is a minute
PAIRED = "figure"  # of a pair: whichever figure the two have in common
MINUTES = ("min", "mins")
SECONDS = 60


@dataclass(frozen=True, slots=True)
class CitedTable:
    """A table ready to format: plain text throughout.

    `marks` holds the footnote of each cell, "" for none.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    marks: Sequence[Sequence[str]]
    footnotes: Sequence[tuple[str, str]]


def format_cited_table(sql: str, output: str, warehouse: Path = DATASET) -> str:
    """Run one read-only query and format its rows as `latex`, `markdown` or `html`.

    The query selects `result_id`, which is not shown: it leads to what the sources print. A query
    of pairs selects the id of each side, such as `ipu_result_id` and `gpu_result_id`, and each
    column is cited by the id whose name begins like its own. Raises QueryError without an id, with
    one side's alone, for a row without a result, and for too many rows.
    """
    built = read_one_build(warehouse, lambda folder: _build_table(folder, sql))
    return {"latex": _format_latex, "markdown": _format_markdown, "html": _format_html}[output](
        built
    )


def _build_table(folder: Path, sql: str) -> CitedTable:
    with open_warehouse(folder) as connection:
        answer = run_query(connection, sql)
        names = answer.column_names
        ids = [name for name in names if is_id(name)]
        if not ids:
            raise QueryError("the query must select result_id: each row is cited by it")
        if ids == names:
            raise QueryError(
                f"the query selects {' and '.join(ids)} alone: add the columns to print"
            )
        _check_sides(sql, names, ids)
        if not 0 < answer.num_rows <= MAX_ROWS:
            raise QueryError(
                f"the query returns {answer.num_rows} rows; a table has 1 to {MAX_ROWS}"
            )
        records = answer.to_pylist()
        stated = [
            [record[name] for name in ids if isinstance(record[name], str)] for record in records
        ]
        if not all(stated):
            raise QueryError(
                f"{' and '.join(ids)} is null in some row: a row without a result cannot be cited"
            )
        results = {
            own.result_id: own
            for own in load_results(connection, [own for row in stated for own in row])
        }
        version = read_dataset_version(folder, read_build_id(folder))
    owners = {name: _find_owner(name, ids) for name in names if name not in ids}
    cited = {
        name: [None if owner is None else results.get(record[owner]) for record in records]
        for name, owner in owners.items()
    }
    columns = [
        _build_column(
            name if owner is None else name.removeprefix(owner.removesuffix(RESULT_ID)),
            [(record[name], result) for record, result in zip(records, cited[name], strict=True)],
            make_label(name),
        )
        for name, owner in owners.items()
    ]
    grouped = group_by_source(list(results.values()))
    words = (
        "".join(own) for size in count(1) for own in product(string.ascii_lowercase, repeat=size)
    )
    letters = dict(zip(grouped, words, strict=False))
    footnotes = [
        (letters[name], format_footnote(own, version, places=False))
        for name, own in grouped.items()
    ]
    if any(COMPUTED_MARK in header for header, _ in columns):
        footnotes.append((COMPUTED_MARK, COMPUTED))
    if 0 < sum(own.row["benchmark"] == MLPERF for own in results.values()) < len(results):
        footnotes.append(("", MIXED))
    return CitedTable(
        [header for header, _ in columns],
        list(zip(*(cells for _, cells in columns), strict=True)),
        _place_marks(ids, list(cited.values()), letters),
        footnotes,
    )


def is_id(name: str) -> bool:
    """Return whether a column leads to a result: `result_id`, or that of one side of a pair."""
    return name == RESULT_ID or name.endswith(f"_{RESULT_ID}")


def _check_sides(sql: str, names: Sequence[str], ids: Sequence[str]) -> None:
    """Check that a query of a view of pairs selects the id of each side: a figure is cited by its
    own source.
    """
    words = set(re.findall(r"\w+", sql.casefold()))
    is_renamed = re.search(rf'\w_{RESULT_ID}"?\s+(as\s+)?"?{RESULT_ID}\b', sql, re.IGNORECASE)
    known = {column.name for column in table("results").columns}
    relations: tuple[Table | View, ...] = (*TABLES, *VIEWS)
    for view in relations:
        sides = [column.name for column in view.columns if is_id(column.name)]
        own = {column.name for column in view.columns} - known
        missing = [name for name in sides if name not in ids]
        if len(sides) > 1 and view.name in words and missing and (is_renamed or own & set(names)):
            raise QueryError(
                f"{view.name} has figures of {' and '.join(sides)}: select {' and '.join(missing)}"
                f" under {'that name' if len(missing) == 1 else 'those names'}, so that each figure"
                " is cited by its own source"
            )


def _find_owner(name: str, ids: Sequence[str]) -> str | None:
    """Return the id that a column is cited by: the only one, else the one that the column's name
    begins like.
    """
    if len(ids) == 1:
        return ids[0]
    sides = (
        own for own in ids if own != RESULT_ID and name.startswith(own.removesuffix(RESULT_ID))
    )
    return next(sides, RESULT_ID if RESULT_ID in ids else None)


def _place_marks(
    ids: Sequence[str], cited: Sequence[Sequence[CitedResult | None]], letters: Mapping[str, str]
) -> list[list[str]]:
    """Place the footnote of a row at its first cell, and those of several results at each cell of
    one of them.
    """
    rows = [
        ["" if result is None else letters[result.source.document_id] for result in row]
        for row in zip(*cited, strict=True)
    ]
    return [[row[0], *("" for _ in row[1:])] for row in rows] if len(ids) == 1 else rows


def _build_column(
    name: str, pairs: Sequence[tuple[Any, CitedResult | None]], label: str
) -> tuple[str, list[str]]:
    """Return the header with its unit, and the cells; a unit that is not the same in all rows is in
    the cells.
    """
    figures = [
        None if result is None else _find_printed(name, value, result) for value, result in pairs
    ]
    numbers = [
        isinstance(value, (int, float)) and not isinstance(value, bool) for value, _ in pairs
    ]
    units = {figure.unit for figure in figures if figure}
    is_computed = any(
        number and figure is None for number, figure in zip(numbers, figures, strict=True)
    )
    shared = units.pop() if len(units) == 1 and not is_computed else None
    column = next((column for column in table("results").columns if column.name == name), None)
    if not any(figures) and column is not None and not column.is_derived and column.unit is None:
        is_computed = False  # row_number and the like are not figures
    own = column.unit if column else load_units().get(name)
    unit = shared or (own if not any(figures) else None)
    header = f"{label}{f' ({unit})' if unit else ''}{COMPUTED_MARK if is_computed else ''}"
    cells = [
        _format_cell(value, figure, result, shared, own if any(figures) else None)
        for (value, result), figure in zip(pairs, figures, strict=True)
    ]
    return header, cells


def _find_printed(name: str, value: Any, result: CitedResult) -> Figure | None:
    """Return the printed figure behind a value of the query, None where the source prints none that
    equals it.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if name in PRINTED_AS:
        if value != result.row[name]:
            return None
        own = next((figure for figure in result.figures if figure.column == PRINTED_AS[name]), None)
        return own if own and own.unit in MINUTES and own.value == value else None
    if name == PAIRED:
        return next(
            (
                figure
                for own in (*FIGURES, *PRINTED_AS)
                if (figure := _find_printed(own, value, result))
            ),
            None,
        )
    if name not in result.row or result.row[name] != value:
        return None
    return next((figure for figure in result.figures if figure.column == name), None)


def _format_cell(
    value: Any,
    figure: Figure | None,
    result: CitedResult | None,
    shared: str | None,
    unit_computed: str | None,
) -> str:
    status = f" ({result.status})" if result and result.status else ""
    if figure is not None:
        unit = f" {figure.unit}" if figure.unit and figure.unit != shared else ""
        return f"{figure.text}{unit}{status if figure.column in FIGURES else ''}"
    if value is None:
        return ""
    if isinstance(value, float):
        unit = f" {unit_computed}" if unit_computed else ""
        return f"{format_float(value)}{unit}{status}"
    return value.isoformat() if isinstance(value, (date, datetime)) else mark_name(str(value))


def _mark_rows(built: CitedTable, escape: Callable[[str], str], template: str) -> list[list[str]]:
    """Return the escaped cells of each row, those with a footnote followed by its mark."""
    return [
        [
            f"{escape(cell)}{template.format(mark) if mark else ''}"
            for cell, mark in zip(row, marks, strict=True)
        ]
        for row, marks in zip(built.rows, built.marks, strict=True)
    ]


def _format_latex(built: CitedTable) -> str:
    lines = [
        r"\begin{table}",
        rf"\begin{{tabular}}{{{'l' * len(built.header)}}}",
        r"\hline",
        (
            rf"{' & '.join(escape_latex(text).replace(COMPUTED_MARK, DAGGER) for text in built.header)} \\"
        ),
        r"\hline",
    ]
    for row in _mark_rows(built, escape_latex, r"\textsuperscript{{{}}}"):
        lines.append(rf"{' & '.join(row)} \\")
    lines += [r"\hline", r"\end{tabular}", "", r"\footnotesize"]
    for mark, text in built.footnotes:
        sign = rf"\textsuperscript{{{mark.replace(COMPUTED_MARK, DAGGER)}}} " if mark else ""
        lines.append(rf"{sign}{escape_latex(text)}\par")
    return "\n".join([*lines, r"\end{table}"])


def _format_markdown(built: CitedTable) -> str:
    lines = [
        _join_cells(built.header, escape_markdown_line),
        _join_cells(["---"] * len(built.header), str),
    ]
    lines += [
        _join_cells(row, str) for row in _mark_rows(built, escape_markdown_line, "<sup>{}</sup>")
    ]
    notes = [
        f"{f'<sup>{mark}</sup> ' if mark else ''}{escape_markdown_line(text)}"
        for mark, text in built.footnotes
    ]
    return "\n".join([*lines, "", "\n\n".join(notes)])


def _join_cells(cells: Sequence[Any], escape: Callable[[Any], str]) -> str:
    return f"| {' | '.join(map(escape, cells))} |"


def _format_html(built: CitedTable) -> str:
    head = "".join(f"<th>{escape_html(text)}</th>" for text in built.header)
    lines = ["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for row in _mark_rows(built, escape_html, "<sup>{}</sup>"):
        cells = "".join(f"<td>{cell}</td>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    notes = [
        f"<p>{f'<sup>{mark}</sup> ' if mark else ''}{escape_html(text)}</p>"
        for mark, text in built.footnotes
    ]
    return "\n".join([*lines, "</tbody>", "</table>", *notes])
