"""Print the tables of one file, without building anything."""

from __future__ import annotations

from pathlib import Path

from ipu_results.errors import DocumentError
from ipu_results.ground.limits import MAX_BYTES, MAX_PAGES
from ipu_results.ground.text import format_csv, format_json
from ipu_results.read import ParsedDocument, ReadProblem, read_document
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.sources.catalogue import check_file_type, read_limited

MAX_RAW_CHARACTERS = 200


def extract(
    path: Path, kind: str | None = None, max_bytes: int = MAX_BYTES, max_pages: int = MAX_PAGES
) -> ParsedDocument:
    """Read one file. Without `kind`, guess it from headers and content.

    Raises a DocumentError that names the file.
    """
    data = read_limited(path, path.name, max_bytes)
    check_file_type(path.name, data, path.name)
    try:
        return read_document(data, load_vocabulary().table_headers, kind, max_bytes=max_bytes, max_pages=max_pages)
    except DocumentError as error:
        raise type(error)(error.message, document=path.name, place=error.place) from error


def format_tables(output: str, document: ParsedDocument) -> str:
    """Format the tables as one JSON list, or as one CSV block a table, with the table's name in its first column."""
    if output == "json":
        return format_json(
            [
                {
                    "table_name": table.name,
                    "columns": list(table.columns),
                    "rows": [list(row.cells) for row in table.rows],
                }
                for table in document.tables
            ]
        )
    return "\n\n".join(
        format_csv([("table_name", *table.columns), *((table.name, *row.cells) for row in table.rows)])
        for table in document.tables
    )


def format_problem(document: str, problem: ReadProblem) -> str:
    """Format one line that names the document, the place, and what could not be read there."""
    name = f"{problem.table_name}, row {problem.row_number}" if problem.row_number else problem.table_name
    place = ", ".join(part for part in (problem.locator, name) if part)
    cells = f" [{' | '.join(problem.raw)[:MAX_RAW_CHARACTERS]}]" if problem.raw else ""
    return f"{document}: {place}: {problem.message} ({problem.reason}){cells}"
