"""Read the figures of a file in one of the known forms. This version knows the CSV template only."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

from ipu_results._util.files import open_regular_file
from ipu_results._util.limits import MAX_BUNDLE_FILE
from ipu_results.errors import SubmissionError
from ipu_results.submission.template import COLUMNS

NAMES = ("csv-template",)


@dataclass(frozen=True)
class ReadFile:
    """The figures of one file, each a row of the template with its texts as the file writes them."""

    adapter: str
    figures: list[dict[str, str]]
    environment: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def read_figures(path: Path) -> ReadFile:
    """Read a file of a known form. Raises SubmissionError that names file and place."""
    try:
        with open_regular_file(path) as file:
            data = file.read(MAX_BUNDLE_FILE + 1)
    except OSError as error:
        raise SubmissionError(f"cannot be read: {error.strerror}", document=path.name) from error
    if len(data) > MAX_BUNDLE_FILE:
        raise SubmissionError(f"is larger than {MAX_BUNDLE_FILE:,} bytes", document=path.name)
    try:
        header, *lines = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)) or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise SubmissionError(f"is not CSV in UTF-8: {error}", document=path.name) from error
    if tuple(header) != COLUMNS:
        raise SubmissionError(f"is none of {', '.join(NAMES)}", document=path.name, place="line 1")
    if wrong := next((number for number, cells in enumerate(lines, 2) if len(cells) != len(COLUMNS)), None):
        raise SubmissionError(f"has not {len(COLUMNS)} cells", document=path.name, place=f"line {wrong}")
    return ReadFile(NAMES[0], [dict(zip(COLUMNS, cells, strict=True)) for cells in lines])
