"""Tables of one file as printed, without building anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ipu_results._util.limits import MAX_BYTES, MAX_PAGES
from ipu_results._util.text import format_csv, format_json
from ipu_results.errors import DocumentError
from ipu_results.read import ParsedDocument, ReadProblem, read_document
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.sources.catalogue import check_file_type, read_limited


def extract(
    path: Path, kind: str | None = None, max_bytes: int = MAX_BYTES, max_pages: int = MAX_PAGES
) -> ParsedDocument:
    """Read one file; the kind is guessed from its headers and content where it is not given.

    Raises a DocumentError that names the file.
    """
    data = read_limited(path, path.name, max_bytes)
    check_file_type(path.name, data, path.name)
    try:
        return read_document(data, load_vocabulary().layouts, kind, max_bytes=max_bytes, max_pages=max_pages)
    except DocumentError as error:
        raise type(error)(error.message, document=path.name, place=error.place) from error


def tables_as(output: str, reading: ParsedDocument) -> str:
    """The tables as one JSON list, or as one CSV block a table, each with the table's name in its first column."""
    if output == "json":
        return format_json(
            [_told(table.name, table.columns, [row.cells for row in table.rows]) for table in reading.tables]
        )
    return "\n\n".join(
        format_csv([("table_name", *table.columns), *((table.name, *row.cells) for row in table.rows)])
        for table in reading.tables
    )


def _told(name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {"table_name": name, "columns": list(columns), "rows": [list(row) for row in rows]}


def problem_line(document: str, problem: ReadProblem) -> str:
    """One line that names the document, the place, and what could not be read there."""
    name = f"{problem.table_name}, row {problem.row_number}" if problem.row_number else problem.table_name
    place = ", ".join(part for part in (problem.locator, name) if part)
    cells = f" [{' | '.join(problem.raw)[:200]}]" if problem.raw else ""
    return f"{document}: {place}: {problem.message} ({problem.reason}){cells}"
