"""Read the figures of a file in one of three forms, as lines of the CSV template.

The forms are the template itself, the log of LoadGen and the log of MLPerf Training. What a file
does not state stays blank, and each figure keeps the digits of the file.
`docs/how-to/figures-of-other-tools.md` puts the figures of other tools into the template.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ipu_results.doors.submission.bundle import COLUMNS
from ipu_results.doors.submission.files import FileFigures, SubmittedFile, read_file
from ipu_results.doors.submission.mlperf import (
    is_loadgen_log,
    is_training_log,
    read_loadgen_log,
    read_training_log,
)
from ipu_results.kit.limits import MAX_SUBMITTED_ROWS
from ipu_results.kit.text import describe_unknown_columns

TEMPLATE = "csv-template"
NEEDED = ("metric", "value")  # columns that every template has
MAX_NAMED = 10  # unknown columns that an error names
UNKNOWN = (
    "has none of the forms that are read: the CSV template (model, task, platform, batch_size,"
    " metric, unit, value …), mlperf_log_detail.txt of LoadGen, or a log of MLPerf Training;"
    " docs/how-to/figures-of-other-tools.md puts the figures of other tools into the template"
)


def read_figures(path: Path) -> FileFigures:
    """Read the figures of one file, whose content says which form it has.

    Raises SubmissionError, naming the file and the place, for a file that cannot be read, that has
    none of the forms, or that has no figures.
    """
    file = read_file(path)
    if is_template(file):
        result = read_template(file)
    elif is_loadgen_log(file):
        result = read_loadgen_log(file)
    elif is_training_log(file):
        result = read_training_log(file)
    else:
        file.fail(UNKNOWN)
    if not result.figures:
        file.fail("holds no figure")
    return result


def is_template(file: SubmittedFile) -> bool:
    """Return whether the first line names the columns of the template."""
    header = file.text.lstrip().partition("\n")[0]
    names = {name.strip(' "\r') for name in header.split(",")}
    return names.issuperset(NEEDED)


def read_template(file: SubmittedFile) -> FileFigures:
    """Read each line as a figure; columns may be missing, and their cells stay blank.

    Raises SubmissionError for unknown columns, and for a line of another width. The check of the
    bundle finds what is wrong with a cell.
    """
    result = FileFigures(file, TEMPLATE)
    names: list[str] = []
    reader = csv.reader(io.StringIO(file.text, newline=""), strict=True)
    try:
        for cells in reader:
            place = f"line {reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = [name.strip() for name in cells]
                _check_header(file, names, place)
                continue
            if len(cells) != len(names):
                file.fail(f"has {len(cells)} cells, the header {len(names)}", place)
            if len(result.figures) == MAX_SUBMITTED_ROWS:
                file.fail(f"holds more than {MAX_SUBMITTED_ROWS:,} figures; hand in several files")
            row = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
            if row.get("place"):
                place = f"{place}: {row['place']}"
            result.add(row, place)
    except csv.Error as error:
        file.fail(f"is not CSV: {error}", f"line {reader.line_num}")
    if names[-1:] == ["value"] and not file.text.endswith(("\n", "\r")):
        file.fail("ends without a line end, so digits may be missing; if not, add one")
    return result


def _check_header(file: SubmittedFile, names: list[str], place: str) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        file.fail(describe_unknown_columns(unknown[:MAX_NAMED], COLUMNS), place)
    for name in names:
        if names.count(name) > 1:
            file.fail(f"column {name!r} occurs twice", place)
