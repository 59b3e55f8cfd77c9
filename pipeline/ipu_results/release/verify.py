"""Verify a release: first every byte, then the rows in three formats, then what the descriptors state.

Files are opened only if all checksums are right, so that no reader meets a damaged file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results._util.sql import get_first_line
from ipu_results._util.text import escape_unprintable
from ipu_results.errors import UnreadableReleaseError
from ipu_results.release import database, files
from ipu_results.release.croissant import check_croissant
from ipu_results.release.datapackage import check_package
from ipu_results.release.files import BUILD_TABLE, CHECKSUMS, CITATION, CROISSANT, DICTIONARY_TABLE, PACKAGE, RELEASE
from ipu_results.release.folder import finish_interrupted_publish
from ipu_results.release.snapshot import read_columns, read_json
from ipu_results.release.texts import read_csv
from ipu_results.store.digest import digest_rows
from ipu_results.store.files import BUILD_ID, DATABASE, get_parquet_name

PAGES = ("README.md", "DICTIONARY.md", "LICENSE", "environment.json")
REQUIRED = {RELEASE, PACKAGE, CROISSANT, CITATION, DATABASE, *PAGES}
CITATION_LINE = re.compile(r"(?m)^(version|date-released): (.*)$")
DATE_LENGTH = len("2026-01-31")

Record = Mapping[str, Any]


class Problem(NamedTuple):
    """Something wrong with a release, and the file or table that it was found in."""

    path: str
    message: str

    @property
    def line(self) -> str:
        """The problem as one line that is safe to print."""
        return escape_unprintable(f"{self.path}: {self.message}")


def verify_release(folder: Path) -> list[Problem]:
    """List everything that is wrong with a release, nothing if it is sound; contents only if all bytes are right.

    Raises UnreadableReleaseError if there is no such folder.
    """
    return check_files(folder) or _collect(RELEASE, _check_contents(folder))


def check_files(folder: Path) -> list[Problem]:
    """List missing, extra and changed files, by SHA256SUMS."""
    finish_interrupted_publish(folder)
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    return _collect(CHECKSUMS, _compare_checksums(folder))


def list_build_differences(rows: Iterable[Record], tables: Mapping[str, Record], build_id: str) -> list[str]:
    """Return the tables for which the table `build` states another row count, digest or build id."""
    stated = {row["table_name"]: (row["row_count"], row["rows_sha256"], row["build_id"]) for row in rows}
    expected = {name: (table["rows"], table["rows_sha256"], build_id) for name, table in tables.items()}
    expected.pop(BUILD_TABLE, None)
    return _list_differences(stated, expected)


def _list_differences(mapping: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the keys that only one mapping has, or whose values differ."""
    return sorted(name for name in mapping.keys() | other.keys() if mapping.get(name) != other.get(name))


def _collect(path: str, problems: Iterator[Problem]) -> list[Problem]:
    """Run checks; what cannot even be read is one more problem and ends them."""
    collected: list[Problem] = []
    try:
        collected.extend(problems)
    except UnreadableReleaseError as error:
        collected.append(Problem(Path(error.place).name if error.place else path, error.message))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException, duckdb.Error) as error:
        collected.append(Problem(path, f"cannot be checked: {type(error).__name__}: {get_first_line(error)}"))
    return collected


def _compare_checksums(folder: Path) -> Iterator[Problem]:
    path = folder / CHECKSUMS
    if not _is_plain_file(path):
        yield Problem(CHECKSUMS, "is not a plain file" if os.path.lexists(path) else "is missing")
        return
    digests, is_canonical = files.read_checksums(path)
    if not is_canonical:
        yield Problem(CHECKSUMS, "is not as publish writes it: one line a file, sorted, two blanks after the sha256")
    paths = {path.name: path for path in folder.iterdir() if path.name != CHECKSUMS}
    for name in sorted(REQUIRED - digests.keys()):
        yield Problem(name, f"is not listed in {CHECKSUMS}")
    for name, digest in digests.items():
        if name not in paths:
            yield Problem(name, "is missing")
        elif not _is_plain_file(paths[name]):
            yield Problem(name, "is not a plain file")
        elif files.hash_file(paths[name]) != digest:
            yield Problem(name, f"sha256 differs from {CHECKSUMS}")
    for name in sorted(paths.keys() - digests.keys()):
        yield Problem(escape_unprintable(name), "does not belong to the release")


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _check_contents(folder: Path) -> Iterator[Problem]:
    """Check everything behind the bytes; each part is reported even if another cannot be read."""
    release, package, croissant = (read_json(folder / name) for name in (RELEASE, PACKAGE, CROISSANT))
    if release["format"] != files.FORMAT:
        raise UnreadableReleaseError(f"has format {release['format']}, only {files.FORMAT} is supported")
    yield from _check_versions(folder, release, package, croissant)
    expected = files.list_table_files(release["tables"])
    present = {path.name for path in folder.iterdir() if path.suffix in files.SUFFIXES}
    yield from (Problem(name, "is missing") for name in sorted(expected - present))
    yield from (
        Problem(name, f"belongs to a table that {RELEASE} does not list") for name in sorted(present - expected)
    )
    tables = [name for name in release["tables"] if files.list_table_files([name]) <= present]
    with database.open_database(folder / DATABASE) as connection:
        for name in tables:
            yield from _collect(name, _check_rows(folder, name, release, connection))
        yield from _collect(BUILD_TABLE, _check_build(folder, release))
        columns = {name: _read_parquet_columns(folder / get_parquet_name(name)) for name in tables}
        yield from _collect(DICTIONARY_TABLE, _check_dictionary(folder, release, columns, connection))
        keys, links = database.list_primary_keys(connection), database.list_foreign_keys(connection)
    digests, _ = files.read_checksums(folder / CHECKSUMS)
    sizes = {name: ((folder / name).stat().st_size, digest) for name, digest in digests.items()}
    inventory = files.Inventory(columns.keys(), columns, keys, links, sizes)
    yield from _collect(PACKAGE, (Problem(PACKAGE, message) for message in check_package(package, inventory)))
    yield from _collect(CROISSANT, (Problem(CROISSANT, message) for message in check_croissant(croissant, inventory)))


def _check_versions(folder: Path, release: Record, package: Record, croissant: Record) -> Iterator[Problem]:
    """Check version and date in every file that states them."""
    citation = dict(CITATION_LINE.findall((folder / CITATION).read_text(encoding="utf-8")))
    expected = release["version"], release["published_on"]
    for name, *stated in (
        (PACKAGE, package.get("version"), str(package.get("created"))[:DATE_LENGTH]),
        (CROISSANT, croissant.get("version"), croissant.get("datePublished")),
        (CITATION, citation.get("version"), citation.get("date-released")),
    ):
        for what, value, other in zip(("version", "date"), stated, expected, strict=True):
            if value != other:
                yield Problem(name, f"has {what} {value}, {RELEASE} has {other}")


def _check_rows(folder: Path, name: str, release: Record, connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    """Check the rows of a table in Parquet, CSV and DuckDB against their count and digest."""
    parquet, csv, stated = get_parquet_name(name), f"{name}.csv", release["tables"][name]
    rows = pq.read_table(folder / parquet)
    if (rows.schema.metadata or {}).get(BUILD_ID.encode()) != release["build_id"].encode():
        yield Problem(parquet, f"build id differs from {RELEASE}")
    if (rows.num_rows, digest_rows(rows)) != (stated["rows"], stated["rows_sha256"]):
        yield Problem(parquet, f"rows differ from {RELEASE}")
    if not _have_same_rows(rows, read_csv(folder / csv, rows.schema)):
        yield Problem(csv, f"rows differ from {parquet}")
    names = ", ".join(map(database.quote_identifier, rows.column_names))
    copy = connection.sql(f"SELECT {names} FROM {database.quote_identifier(name)}").to_arrow_table()
    if not _have_same_rows(rows, copy):
        yield Problem(DATABASE, f"rows of {name} differ from {parquet}")


def _have_same_rows(table: pa.Table, other: pa.Table) -> bool:
    """Compare rows in any order; rows in the same order are compared without a digest."""
    if table.column_names != other.column_names or table.num_rows != other.num_rows:
        return False
    bare = table.replace_schema_metadata()
    schema = pa.schema([field.remove_metadata() for field in bare.schema])
    return bool(bare.equals(other.cast(schema))) or digest_rows(table) == digest_rows(other)


def _check_build(folder: Path, release: Record) -> Iterator[Problem]:
    """Check the table `build` against release.json."""
    path = get_parquet_name(BUILD_TABLE)
    rows = pq.read_table(folder / path).to_pylist()
    for name in list_build_differences(rows, release["tables"], release["build_id"]):
        yield Problem(path, f"row count, digest or build id of {name} differs from {RELEASE}")


def _check_dictionary(
    folder: Path, release: Record, parquet: Mapping[str, files.Columns], connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    """Check the table `columns` against release.json, the Parquet files and the DuckDB file."""
    path = get_parquet_name(DICTIONARY_TABLE)
    described: dict[str, files.Columns] = {}
    kinds: dict[str, str] = {}
    for row in pq.read_table(folder / path).to_pylist():
        if row["column_name"]:
            described.setdefault(row["table_name"], []).append((row["column_name"], row["type"], row["unit"]))
        else:
            kinds[row["table_name"]] = "table" if row["type"] == "table" else "view"
    listed = dict.fromkeys(release["tables"], "table") | dict.fromkeys(release["views"], "view")
    for name in _list_differences(kinds, listed):
        yield Problem(path, f"lists {name} as {kinds.get(name, 'missing')}, {RELEASE} as {listed.get(name, 'missing')}")
    for name in parquet:
        if parquet[name] != described.get(name):
            yield Problem(get_parquet_name(name), "columns differ from the data dictionary")
    for name in _list_differences(database.hash_definitions(connection), release["views"]):
        yield Problem(DATABASE, f"definition of {name} differs from {RELEASE}")
    typed = {name: [(column, kind) for column, kind, _ in columns] for name, columns in described.items()}
    for name in _list_differences(database.list_columns(connection), typed):
        yield Problem(DATABASE, f"columns of {name} differ from the data dictionary")


def _read_parquet_columns(path: Path) -> files.Columns:
    columns = read_columns(pq.read_schema(path)).values()
    return [(column.name, column.type, column.unit) for column in columns]
