"""Name the files of a release, and write and read their checksums."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import NamedTuple

from ipu_results._util.files import hash_file

FORMAT = 1
RELEASE = "release.json"
PACKAGE = "datapackage.json"
CROISSANT = "croissant.json"
CITATION = "CITATION.cff"
ENVIRONMENT = "environment.json"
CHECKSUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"  # the only file that SHA256SUMS does not list
SUFFIXES = (".parquet", ".csv")
BUILD_TABLE = "build"  # derived from the other tables
DICTIONARY_TABLE = "columns"
CHECKSUM_LINE = re.compile(r"(?m)^([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_.-]*)$")

Columns = list[tuple[str, str, str | None]]  # name, SQL type, unit


def list_table_files(tables: Iterable[str]) -> set[str]:
    """Return the names of the files that hold these tables."""
    return {f"{name}{suffix}" for name in tables for suffix in SUFFIXES}


class Inventory(NamedTuple):
    """The tables of a release, to check its descriptors against.

    `keys` are primary keys by table; `links` are foreign keys: by table and column the referenced table and column.
    `files` is size in bytes and sha256 by file name.
    """

    tables: Set[str]
    columns: Mapping[str, Columns]
    keys: Mapping[str, list[str]]
    links: Mapping[str, Mapping[str, tuple[str, str]]]
    files: Mapping[str, tuple[int, str]]

    def compare_files(self, described: Set[str]) -> Iterator[str]:
        """Yield a message for each table file that a descriptor lacks or that it should not describe."""
        expected = list_table_files(self.tables)
        yield from (f"does not describe {name}" for name in sorted(expected - described))
        yield from (f"describes {name}, which is not a file of a table" for name in sorted(described - expected))


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS with every other file of the folder but its signature, sorted, as `sha256sum -c` reads it."""
    digests = {path.name: hash_file(path) for path in folder.iterdir() if path.name not in (CHECKSUMS, SIGNATURE)}
    (folder / CHECKSUMS).write_bytes(_format_checksums(digests))


def read_checksums(path: Path) -> tuple[dict[str, str], bool]:
    """Return the digests by file name, and whether every byte is as `write_checksums` writes it."""
    data = path.read_bytes()
    digests = {name: digest for digest, name in CHECKSUM_LINE.findall(data.decode("utf-8", errors="replace"))}
    return digests, data == _format_checksums(digests)


def _format_checksums(digests: Mapping[str, str]) -> bytes:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()
