"""Verify a release: every byte against its checksums, rows in three formats, and files of views.

Files are opened only if all checksums are right, so that no reader meets a damaged file. Whether
the checksums are those that were announced, only their root tells: `list_limitations` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.errors import UnreadableReleaseError
from ipu_results.kit.files import hash_file
from ipu_results.record.store.files import (
    BUILD_ID,
    DATABASE,
    digest_rows,
    get_csv_name,
    get_parquet_name,
)
from ipu_results.record.store.query import read_parquet
from ipu_results.record.store.tables import put_telling_rows_first, read_csv
from ipu_results.release import files
from ipu_results.release.database import (
    hash_definitions,
    list_macros,
    open_database,
    quote_identifier,
    quote_sql_name,
)
from ipu_results.release.files import (
    BUILD_TABLE,
    CHECKSUMS,
    CITATION,
    CROISSANT,
    ENVIRONMENT,
    PACKAGE,
    RELEASE,
    SIGNATURE,
    Counts,
    ReleaseRecord,
    get_counts,
    read_json,
    read_release,
)
from ipu_results.release.problems import Problem, check_files, collect
from ipu_results.release.version import check_record

CITATION_LINE = re.compile(r"(?m)^(version|date-released): (.*)$")
DATE_LENGTH = len("2026-01-31")  # of the time that a Data Package states


@dataclass(frozen=True, slots=True)
class ReleaseContents:
    """What a release holds: release.json, the rows of Parquet by table and view, and the open
    DuckDB file.
    """

    folder: Path
    release: ReleaseRecord
    tables: Mapping[str, pa.Table]
    connection: duckdb.DuckDBPyConnection


def verify_release(
    folder: Path, progress: files.Progress = lambda *_: None, root: str | None = None
) -> list[Problem]:
    """List everything that is wrong with a release, nothing if it is sound; contents only if all
    bytes are right.

    `root` is the sha256 of SHA256SUMS that was announced with the release: with it, no byte can
    have changed since. `progress` is called with a step and the file or table that it checks.
    Raises UnreadableReleaseError if there is no such folder. What cannot be found is in
    `list_limitations`.
    """
    progress("verify", "checksums")
    problems = check_files(folder, root)
    if problems:
        return problems
    return collect(RELEASE, _check_contents(folder, progress))


def list_limitations(folder: Path, root: str | None = None) -> list[str]:
    """Describe what `verify_release` with this root could not find, one line each."""
    lines = []
    if root is None:
        found = hash_file(folder / CHECKSUMS)
        lines.append(
            "not checked: whether someone rewrote the whole release; compare the announced sha256"
            f" of {CHECKSUMS} with --root, here it is {found}"
        )
    written_by = _read_duckdb_version(folder)
    if written_by != duckdb.__version__:
        lines.append(
            f"not checked: DuckDB {written_by} wrote this release,"
            f" {duckdb.__version__} is here, so the files of views were not compared"
        )
    if (folder / SIGNATURE).exists():
        lines.append(f"not checked: {SIGNATURE}; check it with: ssh-keygen -Y verify")
    return lines


def _read_duckdb_version(folder: Path) -> Any:
    return read_json(folder / ENVIRONMENT).get("packages", {}).get("duckdb")


def list_build_differences(
    build: Iterable[Mapping[str, Any]], counts: Counts, build_id: str
) -> list[str]:
    """Return the tables for which the rows of `build` state another row count or build id."""
    stated = {}
    for row in build:
        stated[row["table_name"]] = (row["row_count"], row["build_id"])
    expected = {}
    for name, count in counts.items():
        # the table cannot count itself
        if name != BUILD_TABLE:
            name_without_schema = name.rpartition(".")[2]
            expected[name_without_schema] = (count["rows"], build_id)
    return _list_differences(stated, expected)


def _list_differences(mapping: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """Return the keys that only one mapping has, or whose values differ."""
    names = sorted(mapping.keys() | other.keys())
    return [name for name in names if mapping.get(name) != other.get(name)]


def _check_contents(folder: Path, progress: files.Progress) -> Iterator[Problem]:
    """Check everything behind the bytes; each part is reported even if another cannot be read."""
    release = read_release(folder)
    # another format may have other keys, so nothing else is read
    if release["format"] != files.FORMAT:
        message = f"has format {release['format']}, only {files.FORMAT} is supported"
        raise UnreadableReleaseError(message)
    yield from _check_versions(folder, release)
    names = get_counts(release).keys()
    yield from _check_names(folder, names)
    present = files.list_files(folder)
    tables = {}
    for name in names:
        # release.json may name any path, so only files that the folder lists are opened
        is_present = files.list_table_files([name]) <= present.keys()
        if is_present:
            tables[name] = read_parquet(folder / get_parquet_name(name))
    with open_database(folder / DATABASE) as connection:
        contents = ReleaseContents(folder, release, tables, connection)
        progress("verify", RELEASE)
        wrong = (Problem(RELEASE, message) for message in check_record(release))
        yield from collect(RELEASE, wrong)
        for name in tables:
            progress("verify", name)
            yield from collect(name, _check_rows(contents, name))
        progress("verify", "views")
        yield from collect(RELEASE, _check_view_files(contents))
        progress("verify", BUILD_TABLE)
        yield from collect(BUILD_TABLE, _check_build(contents))
        progress("verify", DATABASE)
        yield from collect(DATABASE, _check_definitions(contents))


def _check_definitions(contents: ReleaseContents) -> Iterator[Problem]:
    """Check the views of the DuckDB file against release.json."""
    stated = hash_definitions(contents.connection)
    for name in _list_differences(stated, contents.release["views"]):
        yield Problem(DATABASE, f"definition of {name} differs from {RELEASE}")


def _check_versions(folder: Path, release: ReleaseRecord) -> Iterator[Problem]:
    """Check version and date in every file that states them."""
    package = read_json(folder / PACKAGE)
    created = str(package.get("created"))[:DATE_LENGTH]
    yield from _compare_version(release, PACKAGE, package.get("version"), created)
    croissant = read_json(folder / CROISSANT)
    published_on = croissant.get("datePublished")
    yield from _compare_version(release, CROISSANT, croissant.get("version"), published_on)
    # the two lines that `publish` writes; no reader of YAML is needed for them
    text = (folder / CITATION).read_text(encoding="utf-8")
    citation = dict(CITATION_LINE.findall(text))
    released_on = citation.get("date-released")
    yield from _compare_version(release, CITATION, citation.get("version"), released_on)


def _compare_version(
    release: ReleaseRecord, name: str, version: object, published_on: object
) -> Iterator[Problem]:
    if version != release["version"]:
        yield Problem(name, f"has version {version}, {RELEASE} has {release['version']}")
    if published_on != release["published_on"]:
        yield Problem(name, f"has date {published_on}, {RELEASE} has {release['published_on']}")


def _check_names(folder: Path, tables: Iterable[str]) -> Iterator[Problem]:
    """Yield the files that are missing for these tables, and those that no release has."""
    expected = files.list_table_files(tables)
    present = set(files.list_files(folder))
    for name in sorted(expected - present):
        yield Problem(name, "is missing")
    belonging = expected | files.REQUIRED | {CHECKSUMS, SIGNATURE}
    for name in sorted(present - belonging):
        if name.endswith(files.SUFFIXES):
            yield Problem(name, f"belongs to a table that {RELEASE} does not list")
        else:
            yield Problem(name, "does not belong to a release")


def _check_rows(contents: ReleaseContents, name: str) -> Iterator[Problem]:
    """Check the rows of a table in Parquet, CSV and DuckDB against their count and digest."""
    rows = contents.tables[name]
    release = contents.release
    stated = get_counts(release)[name]
    parquet = get_parquet_name(name)
    csv = get_csv_name(name)
    metadata = rows.schema.metadata or {}
    build_id = metadata.get(BUILD_ID.encode())
    if build_id != release["build_id"].encode():
        yield Problem(parquet, f"build id differs from {RELEASE}")
    if stated != {"rows": rows.num_rows, "rows_sha256": digest_rows(rows)}:
        yield Problem(parquet, f"rows differ from {RELEASE}")
    printed = read_csv(contents.folder / csv, rows.schema)
    # in a CSV file the rows that tell most come first
    if not _have_same_rows(put_telling_rows_first(rows), printed):
        yield Problem(csv, f"rows differ from {parquet}")
    # the DuckDB file stores tables; the rows of a view are compared in `_check_view_files`
    if name in release["tables"]:
        stored = _select_rows(contents, name)
        if not _have_same_rows(rows, stored):
            yield Problem(DATABASE, f"rows of {name} differ from {parquet}")


def _select_rows(contents: ReleaseContents, name: str, arguments: str = "") -> pa.Table:
    """Return the rows of a relation of the DuckDB file, with the columns of its Parquet file.

    A macro needs `arguments`: `()`.
    """
    columns = ", ".join(map(quote_identifier, contents.tables[name].column_names))
    source = quote_sql_name(name) + arguments
    return contents.connection.sql(f"SELECT {columns} FROM {source}").to_arrow_table()


def _check_view_files(contents: ReleaseContents) -> Iterator[Problem]:
    """Evaluate each view of the DuckDB file and compare the rows of its Parquet file, in any order."""
    # another version of DuckDB may add up figures in another order
    if _read_duckdb_version(contents.folder) != duckdb.__version__:
        return
    macros = list_macros(contents.connection)
    for name, rows in contents.tables.items():
        if name not in contents.release["view_files"]:
            continue
        arguments = "()" if name in macros else ""
        evaluated = _select_rows(contents, name, arguments)
        if digest_rows(rows) != digest_rows(evaluated.cast(rows.schema)):
            message = f"rows differ from those of the view in {DATABASE}"
            yield Problem(get_parquet_name(name), message)


def _have_same_rows(table: pa.Table, other: pa.Table) -> bool:
    """Compare columns and rows, in their order."""
    if table.column_names != other.column_names or table.num_rows != other.num_rows:
        return False
    # Parquet alone keeps descriptions, and which columns have no nulls
    fields = [field.remove_metadata().with_nullable(True) for field in table.schema]
    schema = pa.schema(fields)
    return bool(table.cast(schema).equals(other.cast(schema)))


def _check_build(contents: ReleaseContents) -> Iterator[Problem]:
    """Check the table `build` against release.json."""
    build = contents.tables[BUILD_TABLE].to_pylist()
    release = contents.release
    for name in list_build_differences(build, release["tables"], release["build_id"]):
        message = f"row count or build id of {name} differs from {RELEASE}"
        yield Problem(get_parquet_name(BUILD_TABLE), message)
