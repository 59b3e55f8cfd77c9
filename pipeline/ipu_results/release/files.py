"""Name the files of a release, and read those that are JSON and their checksums."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict, cast

import msgspec

from ipu_results.errors import UnreadableReleaseError
from ipu_results.kit.files import hash_file
from ipu_results.kit.sql import get_first_line
from ipu_results.record.store.files import DATABASE, get_csv_name, get_parquet_name
from ipu_results.schema import DETAIL

Progress = Callable[[str, str], None]  # called with a step and what it works on
FORMAT = 1
RELEASE = "release.json"
PACKAGE = "datapackage.json"
CROISSANT = "croissant.json"
CITATION = "CITATION.cff"
ENVIRONMENT = "environment.json"
CHECKSUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"  # the only file that SHA256SUMS does not list
CERTIFICATES = "certificates.jsonl"
CHECKERS = ("checker.py", "checker.mjs")  # they follow the certificates without this package
REQUIRED = {
    "README.md",
    "DICTIONARY.md",
    "LICENSE",
    "CHANGELOG.md",
    CITATION,
    RELEASE,
    PACKAGE,
    CROISSANT,
    ENVIRONMENT,
    DATABASE,
    CERTIFICATES,
    *CHECKERS,
}
SUFFIXES = (".parquet", ".csv")
BUILD_TABLE = "build"  # derived from the other tables
DICTIONARY_TABLES = ("relations", "columns")  # they follow from the schema
# A sha256, two blanks, and a name, before which there may be one folder.
CHECKSUM_LINE = re.compile(r"(?m)^([0-9a-f]{64})  ((?:[a-z]+/)?[A-Za-z0-9_][A-Za-z0-9_.-]*)$")


class RowCount(TypedDict):
    """How many rows a table or view has, and their digest."""

    rows: int
    rows_sha256: str


Counts = Mapping[str, RowCount]  # by table or view, as a statement names it


class ReleaseRecord(TypedDict):
    """What release.json holds; `views` has digests of definitions."""

    format: int
    name: str
    version: str
    published_on: str
    build_id: str
    previous: dict[str, str] | None
    least_version: str | None
    changes: list[dict[str, str]]
    corrections: list[dict[str, Any]]
    tables: dict[str, RowCount]
    views: dict[str, str]
    view_files: dict[str, RowCount]


def list_table_files(tables: Iterable[str]) -> set[str]:
    """Return the files that hold these tables, which are named as in a statement."""
    files = set()
    for name in tables:
        files.add(get_parquet_name(name))
        files.add(get_csv_name(name))
    return files


def get_sql_name(file: str) -> str:
    """Return how a statement names the table or view of a file: `detail/facts.csv` is that of
    `detail.facts`.
    """
    return file.rpartition(".")[0].replace("/", ".")


def list_files(folder: Path) -> dict[str, Path]:
    """Return what a release holds, by its path in it: the folder `detail` is looked into, no other."""
    found: dict[str, Path] = {}
    for path in folder.iterdir():
        # a link could lead out of the release
        if path.name == DETAIL and path.is_dir() and not path.is_symlink():
            for each in path.iterdir():
                found[f"{DETAIL}/{each.name}"] = each
        else:
            found[path.name] = path
    return found


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, empty without the file.

    Raises UnreadableReleaseError for anything else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        message = f"is not a JSON object: {get_first_line(error)}"
        raise UnreadableReleaseError(message, place=str(path)) from error


def read_release(folder: Path) -> ReleaseRecord:
    """Read release.json as `read_json` does; whether it has these keys and types is not checked."""
    return cast(ReleaseRecord, read_json(folder / RELEASE))


def get_counts(release: ReleaseRecord) -> dict[str, RowCount]:
    """Return row count and digest by table and view file."""
    return {**release["tables"], **release["view_files"]}


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS with every other file of the folder but its signature, sorted, as `sha256sum
    -c` reads it.
    """
    digests = {}
    for name, path in list_files(folder).items():
        if name not in (CHECKSUMS, SIGNATURE):
            digests[name] = hash_file(path)
    (folder / CHECKSUMS).write_bytes(_format_checksums(digests))


def read_checksums(path: Path) -> tuple[dict[str, str], bool]:
    """Return the digests by file name, and whether every byte is as `write_checksums` writes it."""
    data = path.read_bytes()
    digests = {}
    # anyone may have changed the file
    for digest, name in CHECKSUM_LINE.findall(data.decode("utf-8", errors="replace")):
        digests[name] = digest
    # not the same bytes if a line was not read, is there twice or in another place
    is_canonical = data == _format_checksums(digests)
    return digests, is_canonical


def _format_checksums(digests: Mapping[str, str]) -> bytes:
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    return "".join(lines).encode()
