"""Verify a release: every byte, rows in three formats, files of views, schemas, descriptors, and
what this code writes.

Files are opened only if all checksums are right, so that no reader meets a damaged file. What this
code wrote is written again and its bytes are compared (`texts`), if nothing else is wrong. All else
is checked in releases of other code, too. The table `columns` has every description and unit, and
datapackage.json the keys and the required columns: Parquet and DuckDB must agree with both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ipu_results.errors import UnreadableReleaseError
from ipu_results.ground.text import escape_unprintable
from ipu_results.release import files
from ipu_results.release.descriptors import (
    check_croissant,
    check_package,
    read_required,
    read_table_schema,
)
from ipu_results.release.diff import read_columns
from ipu_results.release.files import (
    BUILD_TABLE,
    CHECKSUMS,
    CITATION,
    CROISSANT,
    DICTIONARY_TABLE,
    ENVIRONMENT,
    PACKAGE,
    RELEASE,
    SIGNATURE,
    Problem,
    quote_identifier,
    quote_sql_name,
    read_json,
)
from ipu_results.release.texts import (
    check_definitions,
    check_environment,
    check_texts,
    has_own_duckdb,
    is_own_code,
    list_unchecked,
)
from ipu_results.release.version import check_record
from ipu_results.schema import (
    DETAIL,
    FILE_VIEWS,
    MAIN,
    SQL,
    Column,
    Table,
    format_description,
    qualify,
)
from ipu_results.schema.frames import PANDAS_METADATA, file_schema
from ipu_results.store.files import (
    BUILD_ID,
    DATABASE,
    digest_rows,
    get_csv_name,
    get_parquet_name,
)
from ipu_results.store.query import read_parquet, read_view
from ipu_results.store.tables import put_telling_rows_first, read_csv

CITATION_LINE = re.compile(r"(?m)^(version|date-released): (.*)$")
DATE_LENGTH = len("2026-01-31")
DESCRIPTION, PANDAS = "description", PANDAS_METADATA.decode()
TABLE_METADATA = {DESCRIPTION, PANDAS, BUILD_ID}
KINDS: dict[str, Any] = {name: kind for kind, name in SQL.items()}
# As Arrow calls them: of these, what pandas reads decides whether a null stays one. Of others it
# differs by version.
NULLABLE_TYPES = ("int64", "bool")

Record = Mapping[str, Any]


class Relation(NamedTuple):
    """A table, view or macro in the table `columns`, and its columns as (name, type, unit,
    description).
    """

    kind: str
    description: str
    columns: list[tuple[str, str, str | None, str]]


@dataclass(frozen=True, slots=True)
class ReleaseContents:
    """What a release holds: its descriptors, the rows of Parquet by table and view, and the open
    DuckDB file.
    """

    folder: Path
    release: Record
    package: Record
    croissant: Record
    tables: Mapping[str, pa.Table]
    connection: duckdb.DuckDBPyConnection

    def read_dictionary(self) -> dict[str, Relation]:
        """Return the relations that the table `columns` describes."""
        relations: dict[str, Relation] = {}
        for row in self.tables[DICTIONARY_TABLE].to_pylist():
            name = qualify(row["schema_name"], row["table_name"])
            if not row["column_name"]:
                relations[name] = Relation(row["type"], row["description"], [])
            elif name in relations:
                column = (row["column_name"], row["type"], row["unit"], row["description"])
                relations[name].columns.append(column)
        return relations

    def define_tables(self) -> dict[str, Table]:
        """Return each table as its Parquet file defines the columns, and the DuckDB file the keys."""
        constraints = files.list_constraints(self.connection)
        tables = {}
        for name, rows in self.tables.items():
            keys = [
                columns for kind, columns, *_ in constraints.get(name, ()) if kind == "PRIMARY KEY"
            ]
            links = {
                columns[0]: f"{target}.{target_columns[0]}"
                for kind, columns, target, target_columns in constraints.get(name, ())
                if kind == "FOREIGN KEY"
            }
            columns = tuple(
                Column(
                    column,
                    KINDS.get(it.type, it.type),
                    it.description or "",
                    it.unit,
                    references=links.get(column),
                )
                for column, it in read_columns(rows.schema).items()
            )
            schema, _, plain_name = name.rpartition(".")
            key = keys[0] if keys else ()
            tables[name] = Table(plain_name, "", columns, key, schema=schema or MAIN)
        return tables


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
    release, package, croissant = (
        read_json(folder / name) for name in (RELEASE, PACKAGE, CROISSANT)
    )
    if release["format"] != files.FORMAT:
        raise UnreadableReleaseError(
            f"has format {release['format']}, only {files.FORMAT} is supported"
        )
    counts = _get_counts(release)
    problems = [
        *_check_versions(folder, release, package, croissant),
        *_check_names(folder, counts.keys()),
    ]
    names = [
        name
        for name in counts
        if all((folder / file).exists() for file in files.list_table_files([name]))
    ]
    tables = {name: read_parquet(folder / get_parquet_name(name)) for name in names}
    with files.open_database(folder / DATABASE) as connection:
        contents = ReleaseContents(folder, release, package, croissant, tables, connection)
        checks: Sequence[tuple[str, Callable[[ReleaseContents], Iterator[Problem]]]] = (
            (RELEASE, lambda it: _name(RELEASE, check_record(it.release))),
            (ENVIRONMENT, lambda it: check_environment(it.folder)),
            *((name, partial(_check_rows, name=name)) for name in tables),
            (RELEASE, _check_view_files),
            (BUILD_TABLE, _check_build),
            (DICTIONARY_TABLE, _check_dictionary),
            (DICTIONARY_TABLE, _check_schemas),
            (DICTIONARY_TABLE, _check_catalog),
            (
                PACKAGE,
                lambda it: _name(PACKAGE, check_package(it.package, it.define_tables(), it.folder)),
            ),
            (
                CROISSANT,
                lambda it: _name(
                    CROISSANT, check_croissant(it.croissant, it.define_tables(), it.folder)
                ),
            ),
        )
        for place, check in checks:
            progress("verify", "views" if check is _check_view_files else place)
            problems += files.collect(place, check(contents))
        if not problems and is_own_code(release):
            progress("verify", "texts and definitions")
            dictionary = tables[DICTIONARY_TABLE]
            problems += files.collect(
                DATABASE, check_definitions(folder, release, dictionary, connection)
            )
            problems += files.collect(RELEASE, check_texts(folder, release, tables, connection))
    yield from problems


def _get_counts(release: Record) -> Mapping[str, Record]:
    """Return row count and digest by table and view file."""
    return {**release["tables"], **release["view_files"]}


def _check_versions(
    folder: Path, release: Record, package: Record, croissant: Record
) -> Iterator[Problem]:
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


def _check_names(folder: Path, tables: Iterable[str]) -> Iterator[Problem]:
    """Yield missing files of tables, and files that are neither those of a table nor known texts."""
    expected, names = files.list_table_files(tables), {*files.list_files(folder)}
    present = {name for name in names if Path(name).suffix in files.SUFFIXES}
    yield from (Problem(name, "is missing") for name in sorted(expected - present))
    for name in sorted(present - expected):
        yield Problem(name, f"belongs to a table that {RELEASE} does not list")
    for name in sorted(names - present - files.REQUIRED - {CHECKSUMS, SIGNATURE}):
        yield Problem(escape_unprintable(name), "does not belong to a release")


def _check_rows(contents: ReleaseContents, name: str) -> Iterator[Problem]:
    """Check the rows of a table in Parquet, CSV and DuckDB against their count and digest."""
    rows, release, parquet, csv = (
        contents.tables[name],
        contents.release,
        get_parquet_name(name),
        get_csv_name(name),
    )
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
    relations = contents.read_dictionary()
    for name in sorted(contents.release["view_files"].keys() & contents.tables.keys()):
        rows = contents.tables[name]
        if name in own:
            is_same = _have_same_rows(rows, read_view(contents.connection, own[name]))
        else:
            source = quote_sql_name(name) + ("()" if relations[name].kind == "macro" else "")
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
    rows, release = contents.tables[BUILD_TABLE].to_pylist(), contents.release
    for name in list_build_differences(rows, release["tables"], release["build_id"]):
        yield Problem(
            get_parquet_name(BUILD_TABLE),
            f"row count or build id of {name} differs from {RELEASE}",
        )


def _check_dictionary(contents: ReleaseContents) -> Iterator[Problem]:
    """Check the table `columns` against release.json, the Parquet files and the DuckDB file."""
    relations, release = contents.read_dictionary(), contents.release
    kinds = {
        name: "table" if relation.kind == "table" else "view"
        for name, relation in relations.items()
    }
    listed = dict.fromkeys(release["tables"], "table") | dict.fromkeys(release["views"], "view")
    for name in _list_differences(kinds, listed):
        message = (
            f"lists {name} as {kinds.get(name, 'missing')}, {RELEASE} as"
            f" {listed.get(name, 'missing')}"
        )
        yield Problem(get_parquet_name(DICTIONARY_TABLE), message)
    for name, rows in contents.tables.items():
        stated = [(column, it.type, it.unit) for column, it in read_columns(rows.schema).items()]
        if name not in relations or stated != [column[:3] for column in relations[name].columns]:
            yield Problem(get_parquet_name(name), "columns differ from the data dictionary")
    for name in _list_differences(files.hash_definitions(contents.connection), release["views"]):
        yield Problem(DATABASE, f"definition of {name} differs from {RELEASE}")
    typed = {
        name: [column[:2] for column in relation.columns] for name, relation in relations.items()
    }
    for name in _list_differences(files.list_columns(contents.connection), typed):
        yield Problem(DATABASE, f"columns of {name} differ from the data dictionary")


def _check_schemas(contents: ReleaseContents) -> Iterator[Problem]:
    """Yield what the Parquet files state wrongly about their tables and columns."""
    relations = contents.read_dictionary()
    for name, rows in contents.tables.items():
        relation, required = relations[name], read_required(contents.package, get_csv_name(name))
        columns = (
            Column(column, KINDS[kind], text, unit, required=column in required)
            for column, kind, unit, text in relation.columns
        )
        expected = file_schema(Table(name, relation.description, tuple(columns), ()))
        yield from _name(get_parquet_name(name), _compare_schemas(rows.schema, expected))


def _compare_schemas(schema: pa.Schema, expected: pa.Schema) -> Iterator[str]:
    for field in expected:
        stated = schema.field(field.name)
        if stated.metadata != field.metadata:
            yield f"metadata of {field.name} differ from the data dictionary"
        if stated.nullable is not field.nullable:
            yield f"nullability of {field.name} differs from {PACKAGE}"
    names = {key.decode() for key in schema.metadata or {}}
    if names != TABLE_METADATA:
        others = ", ".join(sorted(names ^ TABLE_METADATA))
        yield f"has other metadata than {', '.join(sorted(TABLE_METADATA))}: {others}"
    if (schema.metadata or {}).get(DESCRIPTION.encode()) != expected.metadata[DESCRIPTION.encode()]:
        yield "description of the table differs from the data dictionary"
    if _read_pandas_types(schema) != _read_pandas_types(expected):
        yield "metadata for pandas differ from the columns"


def _read_pandas_types(schema: pa.Schema) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return what the metadata tell pandas of the index and of each column."""
    stated = json.loads((schema.metadata or {}).get(PANDAS_METADATA, b"{}"))
    columns = []
    for it in stated.get("columns", ()):
        numpy_type = it["numpy_type"] if it["pandas_type"] in NULLABLE_TYPES else ""
        columns.append((it["name"], it["field_name"], it["pandas_type"], numpy_type))
    return stated.get("index_columns"), columns


def _check_catalog(contents: ReleaseContents) -> Iterator[Problem]:
    """Yield what the DuckDB file has beyond its tables and views, and constraints and comments that
    are wrong.
    """
    for kind, name in contents.connection.execute(files.EXTRAS).fetchall():
        yield Problem(
            DATABASE, f"has the {kind} {escape_unprintable(name)}, which publish does not write"
        )
    comments = dict(contents.connection.execute(files.COMMENTS).fetchall())
    for relation, (kind, description, columns) in contents.read_dictionary().items():
        expected = {relation: description}
        if kind != "macro":  # columns of macros have no comments, those of views no unit
            for name, _, unit, text in columns:
                expected[f"{relation}.{name}"] = format_description(
                    text, unit if kind == "table" else None
                )
        for name, text in expected.items():
            if comments.get(name) != text:
                yield Problem(DATABASE, f"comment of {name} differs from the data dictionary")
    constraints = files.list_constraints(contents.connection)
    for name in contents.release["tables"]:
        if constraints.pop(name, []) != _list_constraints(contents.package, name):
            yield Problem(DATABASE, f"keys or required columns of {name} differ from {PACKAGE}")
    for name in sorted(constraints):
        yield Problem(DATABASE, f"has constraints of {name}, which {RELEASE} does not list")


def _list_constraints(package: Record, table: str) -> list[tuple[Any, ...]]:
    """Return the constraints that datapackage.json states, as `files.list_constraints` does."""
    schema = read_table_schema(package, get_csv_name(table))
    constraints: list[tuple[Any, ...]] = [("PRIMARY KEY", tuple(schema["primaryKey"]), "", ())]
    constraints += [
        ("NOT NULL", (name,), "", ()) for name in read_required(package, get_csv_name(table))
    ]
    # DuckDB has no foreign keys from one schema to another
    links = () if table.startswith(f"{DETAIL}.") else schema.get("foreignKeys", ())
    for link in links:
        target = link["reference"]
        constraints.append(
            ("FOREIGN KEY", tuple(link["fields"]), target["resource"], tuple(target["fields"]))
        )
    return sorted(constraints)


def _name(path: str, messages: Iterable[str]) -> Iterator[Problem]:
    return (Problem(path, message) for message in messages)
