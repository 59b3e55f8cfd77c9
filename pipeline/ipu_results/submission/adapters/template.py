"""Read the CSV template: one line per figure, columns of `independent_results`."""

from __future__ import annotations

import csv
import io

from ipu_results.ground.text import describe_unknown_columns
from ipu_results.submission.adapters.files import Draft, ReadFile, SubmittedFile
from ipu_results.submission.template import COLUMNS

NAME = "csv-template"
MAX_NAMED = 10  # unknown columns that an error names
REQUIRED = ("metric", "value")


def is_readable(file: SubmittedFile) -> bool:
    """Return whether the first line names the columns that every template has."""
    names = [name.strip() for name in file.text.lstrip().partition("\n")[0].split(",")]
    return set(REQUIRED) <= set(names)


def read_template(file: SubmittedFile) -> ReadFile:
    """Read each line as a figure; columns may be missing, their cells stay blank. Raises SubmissionError."""
    reader = csv.reader(io.StringIO(file.text, newline=""), strict=True)
    draft = Draft(file)
    names: list[str] = []
    try:
        for cells in reader:
            line = f"line {reader.line_num}"
            if not any(map(str.strip, cells)):
                continue
            if not names:
                names = _read_header(file, cells, line)
                continue
            if len(cells) != len(names):
                file.fail(f"has {len(cells)} cells, the header {len(names)}", line)
            row = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
            if names[-1] == "value":
                file.require_line_end(reader.line_num, line)
            _add_line(draft, row, line)
    except csv.Error as error:
        file.fail(f"is not CSV: {error}", f"line {reader.line_num}")
    return draft.finish(NAME)


def _read_header(file: SubmittedFile, cells: list[str], line: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if unknown := [name for name in names if name not in COLUMNS][:MAX_NAMED]:
        file.fail(describe_unknown_columns(unknown, COLUMNS), line)
    if repeated := next((name for name in names if names.count(name) > 1), None):
        file.fail(f"column {repeated!r} occurs twice", line)
    if missing := [name for name in REQUIRED if name not in names]:
        file.fail(f"the column {missing[0]} is missing", line)
    return names


def _add_line(draft: Draft, row: dict[str, str], line: str) -> None:
    for name in REQUIRED:
        if not row[name]:
            draft.file.fail(f"{name} is blank", line)
    place = row.get("place", "")
    facts = {name: cell for name, cell in row.items() if name not in ("metric", "unit", "value", "place")}
    draft.add(facts, row["metric"], row.get("unit", ""), row["value"], f"{line}{f': {place}' if place else ''}")
