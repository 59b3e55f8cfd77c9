"""The small files of a release: tables as CSV, citation, licence, changelog and the environment that built it."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ipu_results._util.resources import CHECKOUT
from ipu_results._util.text import FORMULA, format_json, mark_formula, unmark_formula
from ipu_results.errors import ReleaseError
from ipu_results.release.files import CITATION

MAX_BLOCK = 2**31 - 1  # bytes; pyarrow reads no row that is longer than a block
FORMULA_START = f"^{FORMULA.pattern}"
DISTRIBUTION = "ipu-results"
REPOSITORY_FILES = (CITATION, "LICENSE-DATA", "CHANGELOG.md")
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def write_csv(table: pa.Table, file: Path | BinaryIO) -> None:
    r"""Write UTF-8 with a line break after each row; a null is empty, an empty text is `""`, figures are exact.

    A text that a spreadsheet takes for a formula has an apostrophe in front.
    """
    csv.write_csv(_map_texts(table, mark_formula), file, csv.WriteOptions(quoting_style="needed"))


def read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    """Read what `write_csv` wrote, in the given types. Raises pyarrow.ArrowException for anything else."""
    if not schema.names:
        return schema.empty_table()
    rows = csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=min(max(path.stat().st_size, 1), MAX_BLOCK)),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true"],
            false_values=["false"],
        ),
    )
    return _map_texts(rows, unmark_formula)


def count_formulas(table: pa.Table) -> int:
    """Return how many texts `write_csv` marks."""
    texts = (column for column in table.columns if pa.types.is_string(column.type))
    return sum(
        text != mark_formula(text) for column in texts for text in column.filter(_may_be_formula(column)).to_pylist()
    )


def _may_be_formula(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.match_substring_regex(texts, FORMULA_START), False)


def _map_texts(table: pa.Table, function: Callable[[str], str]) -> pa.Table:
    """Apply a function to the texts that may begin a formula, marked or not."""
    for at, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        if indices := pc.indices_nonzero(_may_be_formula(table.column(at))).to_pylist():
            texts = table.column(at).to_pylist()
            for index in indices:
                texts[index] = function(texts[index])
            table = table.set_column(at, field, pa.array(texts, field.type))
    return table


def format_texts(release_version: str, published_on: str) -> dict[str, str]:
    """Return citation, licence of the data and changelog by file name.

    Raises ReleaseError without the files of the repository: a wheel cannot publish.
    """
    return {
        CITATION: _format_citation(release_version, published_on),
        "LICENSE": _read_repository_file("LICENSE-DATA"),
        "CHANGELOG.md": _read_repository_file("CHANGELOG.md"),
    }


def _format_citation(release_version: str, published_on: str) -> str:
    """Return CITATION.cff of the repository with the version and date of the release."""
    text = _read_repository_file(CITATION)
    for name, value in (("version", release_version), ("date-released", published_on)):
        text = re.sub(rf"(?m)^{name}:.*$", f"{name}: {value}", text)
    return text


def _read_repository_file(name: str) -> str:
    try:
        return (CHECKOUT / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ReleaseError(f"cannot be read, publish from a clone: {error.strerror}", place=name) from error


def format_environment() -> str:
    """Return Python, the kind of system and the installed packages as JSON; nothing that names a machine or user."""
    environment = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: _get_version(name) for name in (DISTRIBUTION, *_list_requirements())},
    }
    return format_json(environment) + "\n"


def _list_requirements() -> list[str]:
    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        requirements = ["duckdb", "pandas", "pyarrow"]
    matches = (REQUIREMENT_NAME.match(line) for line in requirements if "extra ==" not in line)
    return sorted(match[0] for match in matches if match)


def _get_version(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None
