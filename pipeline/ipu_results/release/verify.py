"""Verify a release: every byte, rows in three formats, files of views, and what this code writes.

Files are opened only if all checksums are right, so that no reader meets a damaged file. What this
code wrote is written again and compared (`texts`), if nothing else is wrong. In a release of other
code that is left out, and `list_limitations` says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.errors import UnreadableReleaseError
from ipu_results.kit.text import escape_unprintable
from ipu_results.record.store.files import (
    BUILD_ID,
    DATABASE,
    digest_rows,
    get_csv_name,
    get_parquet_name,
)
from ipu_results.record.store.query import read_parquet, read_view
from ipu_results.record.store.tables import put_telling_rows_first, read_csv
from ipu_results.release import files
from ipu_results.release.files import (
    BUILD_TABLE,
    CHECKSUMS,
    CITATION,
    CROISSANT,
    PACKAGE,
    RELEASE,
    SIGNATURE,
    Problem,
    quote_identifier,
    quote_sql_name,
    read_json,
)
from ipu_results.release.texts import (
    check_catalog,
    check_schemas,
    check_texts,
    has_own_duckdb,
    is_own_code,
    list_unchecked,
)
from ipu_results.release.version import check_record
from ipu_results.schema import FILE_VIEWS

CITATION_LINE = re.compile(r"(?m)^(version|date-released): (.*)$")
DATE_LENGTH = len("2026-01-31")

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReleaseContents:
    """What a release holds: release.json, the rows of Parquet by table and view, and the open
    DuckDB file.
    """

    folder: Path
    release: Record
    tables: Mapping[str, pa.Table]
    connection: duckdb.DuckDBPyConnection


def verify_release(folder: Path, progress: files.Progress = lambda *_: None) -> list[Problem]:
    """List everything that is wrong with a release, nothing if it is sound; contents only if all
    bytes are right.

    `progress` is called with a step and the file or table that it checks. Raises
    UnreadableReleaseError if there is no such folder. What cannot be found is in
    `list_limitations`.
    """
    progress("verify", "checksums")
    return files.check_files(folder) or files.collect(RELEASE, _check_contents(folder, progress))


def list_limitations(folder: Path) -> list[str]:
    """Describe what a verification of this release could not find, one line each."""
    return list_unchecked(folder, read_json(folder / RELEASE))


def list_build_differences(
    rows: Iterable[Record], tables: Mapping[str, Record], build_id: str
) -> list[str]:
    """Return the tables for which the table `build` states another row count or build id."""
    stated = {row["table_name"]: (row["row_count"], row["build_id"]) for row in rows}
    expected = {
        name.rpartition(".")[2]: (table["rows"], build_id)
        for name, table in tables.items()
        if name != BUILD_TABLE
    }
    return _list_differences(stated, expected)


def _list_differences(mapping: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the keys that only one mapping has, or whose values differ."""
    return sorted(
        name for name in mapping.keys() | other.keys() if mapping.get(name) != other.get(name)
    )


def _check_contents(folder: Path, progress: files.Progress) -> Iterator[Problem]:
    """Check everything behind the bytes; each part is reported even if another cannot be read."""
    release = read_json(folder / RELEASE)
    if release["format"] != files.FORMAT:
        raise UnreadableReleaseError(
            f"has format {release['format']}, only {files.FORMAT} is supported"
        )
    counts = _get_counts(release)
    problems = [*_check_versions(folder, release), *_check_names(folder, counts.keys())]
    names = [
        name
        for name in counts
        if files.IS_NAME.fullmatch(name)
        and all((folder / file).exists() for file in files.list_table_files([name]))
    ]
    tables = {name: read_parquet(folder / get_parquet_name(name)) for name in names}
    with files.open_database(folder / DATABASE) as connection:
        contents = ReleaseContents(folder, release, tables, connection)
        checks: Sequence[tuple[str, Callable[[ReleaseContents], Iterator[Problem]]]] = (
            (RELEASE, _check_record),
            *((name, partial(_check_rows, name=name)) for name in tables),
            (RELEASE, _check_view_files),
            (BUILD_TABLE, _check_build),
            (DATABASE, _check_definitions),
        )
        for place, check in checks:
            progress("verify", "views" if check is _check_view_files else place)
            problems += files.collect(place, check(contents))
        if not problems and is_own_code(release):
            progress("verify", "texts and definitions")
            problems += files.collect(RELEASE, check_schemas(tables))
            problems += files.collect(RELEASE, check_texts(folder, release, tables, connection))
            if has_own_duckdb(folder):
                problems += files.collect(DATABASE, check_catalog(connection))
    yield from problems


def _check_record(contents: ReleaseContents) -> Iterator[Problem]:
    return (Problem(RELEASE, message) for message in check_record(contents.release))


def _check_definitions(contents: ReleaseContents) -> Iterator[Problem]:
    """Check the views of the DuckDB file against release.json."""
    stated = files.hash_definitions(contents.connection)
    for name in _list_differences(stated, contents.release["views"]):
        yield Problem(DATABASE, f"definition of {name} differs from {RELEASE}")


def _get_counts(release: Record) -> Mapping[str, Record]:
    """Return row count and digest by table and view file."""
    return {**release["tables"], **release["view_files"]}


def _check_versions(folder: Path, release: Record) -> Iterator[Problem]:
    """Check version and date in every file that states them."""
    package, croissant = (read_json(folder / name) for name in (PACKAGE, CROISSANT))
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


def _check_names(folder: Path, tables: Iterable[str]) -> Iterator[Problem]:
    """Yield missing files of tables, and files that are neither those of a table nor known texts."""
    expected = files.list_table_files(tables)
    names = {*files.list_files(folder)}
    present = {name for name in names if Path(name).suffix in files.SUFFIXES}
    yield from (Problem(name, "is missing") for name in sorted(expected - present))
    for name in sorted(present - expected):
        yield Problem(name, f"belongs to a table that {RELEASE} does not list")
    for name in sorted(names - present - files.REQUIRED - {CHECKSUMS, SIGNATURE}):
        yield Problem(escape_unprintable(name), "does not belong to a release")


def _check_rows(contents: ReleaseContents, name: str) -> Iterator[Problem]:
    """Check the rows of a table in Parquet, CSV and DuckDB against their count and digest."""
    rows = contents.tables[name]
    release = contents.release
    parquet = get_parquet_name(name)
    csv = get_csv_name(name)
    stated = _get_counts(release)[name]
    if (rows.schema.metadata or {}).get(BUILD_ID.encode()) != release["build_id"].encode():
        yield Problem(parquet, f"build id differs from {RELEASE}")
    if (rows.num_rows, digest_rows(rows)) != (stated["rows"], stated["rows_sha256"]):
        yield Problem(parquet, f"rows differ from {RELEASE}")
    printed = read_csv(contents.folder / csv, rows.schema)
    if not _have_same_rows(put_telling_rows_first(rows), printed):
        yield Problem(csv, f"rows differ from {parquet}")
    if name in release["tables"] and not _have_same_rows(
        rows, _select(contents, name, quote_sql_name(name))
    ):
        yield Problem(DATABASE, f"rows of {name} differ from {parquet}")


def _select(contents: ReleaseContents, name: str, source: str) -> pa.Table:
    """Return the rows of a relation of the DuckDB file, with the columns of its Parquet file."""
    names = ", ".join(map(quote_identifier, contents.tables[name].column_names))
    return contents.connection.sql(f"SELECT {names} FROM {source}").to_arrow_table()


def _check_view_files(contents: ReleaseContents) -> Iterator[Problem]:
    """Evaluate each view of the DuckDB file and compare its Parquet file, with the order of rows if
    this code made it.

    Another DuckDB may add up figures in another order, so then nothing is compared.
    """
    if not has_own_duckdb(contents.folder):
        return
    own = {view.sql_name: view for view in FILE_VIEWS} if is_own_code(contents.release) else {}
    macros = files.list_macros(contents.connection)
    for name in sorted(contents.release["view_files"].keys() & contents.tables.keys()):
        rows = contents.tables[name]
        if name in own:
            is_same = _have_same_rows(rows, read_view(contents.connection, own[name]))
        else:
            source = quote_sql_name(name) + ("()" if name in macros else "")
            is_same = digest_rows(rows) == digest_rows(
                _select(contents, name, source).cast(rows.schema)
            )
        if not is_same:
            yield Problem(
                get_parquet_name(name), f"rows differ from those of the view in {DATABASE}"
            )


def _have_same_rows(table: pa.Table, other: pa.Table) -> bool:
    """Compare columns and rows, in their order."""
    if table.column_names != other.column_names or table.num_rows != other.num_rows:
        return False
    bare = table.replace_schema_metadata()
    schema = pa.schema([field.remove_metadata().with_nullable(True) for field in bare.schema])
    return bool(bare.cast(schema).equals(other.replace_schema_metadata().cast(schema)))


def _check_build(contents: ReleaseContents) -> Iterator[Problem]:
    """Check the table `build` against release.json."""
    rows = contents.tables[BUILD_TABLE].to_pylist()
    release = contents.release
    for name in list_build_differences(rows, release["tables"], release["build_id"]):
        yield Problem(
            get_parquet_name(BUILD_TABLE),
            f"row count or build id of {name} differs from {RELEASE}",
        )
