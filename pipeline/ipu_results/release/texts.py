"""The small files of a release: tables as CSV, the citation, the licence, the environment that built it."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from ipu_results._util.resources import CHECKOUT as ROOT
from ipu_results.errors import ReleaseError
from ipu_results._util.text import format_json

LARGEST_BLOCK = 2**31 - 1  # bytes; a row must not be longer than a block
DISTRIBUTION = "ipu-results"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def write_csv(arrow: pa.Table, path: Path) -> None:
    """UTF-8, a line break after each row; nulls are empty and empty texts are `\"\"`; figures as short as they are."""
    csv.write_csv(arrow, path, csv.WriteOptions(quoting_style="needed"))


def read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    """What `write_csv` wrote, in these types. Raises pyarrow.ArrowException for anything else."""
    if not schema.names:
        return schema.empty_table()
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=min(max(path.stat().st_size, 1), LARGEST_BLOCK)),
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


def citation(version: str, published_on: date) -> str:
    """CITATION.cff of the repository with the version and day of the release."""
    text = _of_repository("CITATION.cff")
    for name, value in (("version", version), ("date-released", published_on.isoformat())):
        text, count = re.subn(rf"(?m)^{name}:.*$", f"{name}: {value}", text)
        if count != 1:
            raise ReleaseError(f"has no one line {name}", place="CITATION.cff")
    return text


def licence() -> str:
    """The licence of the data."""
    return _of_repository("LICENSE-DATA")


def changelog() -> str | None:
    path = ROOT / "CHANGELOG.md"
    return path.read_text(encoding="utf-8") if path.exists() else None


def environment() -> str:
    """Python, the kind of system and the packages that the build stands on; no name of a machine or a user."""
    told = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in (DISTRIBUTION, *_required())},
    }
    return format_json(told) + "\n"


def _required() -> Sequence[str]:
    try:
        told = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return ("duckdb", "pandas", "pyarrow")
    found = (NAME.match(line) for line in told if "extra ==" not in line)
    return sorted(name[0] for name in found if name)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _of_repository(name: str) -> str:
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ReleaseError(f"cannot be read, publish from a clone: {error.strerror}", place=name) from error
