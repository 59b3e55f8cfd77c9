"""Verify a release: every byte, rows in three formats, files of views, schemas, descriptors, and what this code writes.

Files are opened only if all checksums are right, so that no reader meets a damaged file. What this code would write is
compared only if it made the release and nothing else is wrong. The table `columns` has every description and unit, and
datapackage.json the keys and the required columns: Parquet and DuckDB must agree with both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results.errors import UnreadableReleaseError
from ipu_results.ground.text import escape_unprintable
from ipu_results.release import files
from ipu_results.release.croissant import check_croissant
from ipu_results.release.datapackage import check_package, read_required, read_table_schema
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
)
from ipu_results.release.folder import REQUIRED, Problem, check_files, collect
from ipu_results.release.snapshot import read_columns, read_json
from ipu_results.release.verify_texts import (
    check_definitions,
    check_environment,
    check_texts,
    has_own_duckdb,
    is_own_code,
    list_unchecked,
)
from ipu_results.release.version import check_record
from ipu_results.schema import FILE_VIEWS, format_description
from ipu_results.store.duckdb_file import read_view
from ipu_results.store.files import BUILD_ID, DATABASE, digest_rows, get_parquet_name
from ipu_results.store.tables import read_csv

DESCRIPTION, PANDAS = "description", "pandas"
TABLE_METADATA = {DESCRIPTION, PANDAS, BUILD_ID}
# What pandas reads a column as: the first for every type, the second where a null decides it.
PANDAS_TYPES = {
    "VARCHAR": "unicode",
    "BIGINT": "int64",
    "DOUBLE": "float64",
    "DATE": "date",
    "TIMESTAMP": "datetime",
    "BOOLEAN": "bool",
}
NULLABLE_TYPES = {"BIGINT": "Int64", "BOOLEAN": "boolean"}


class Relation(NamedTuple):
    """A table, view or macro in the table `columns`, and its columns as (name, type, unit, description)."""

    kind: str
    description: str
    columns: list[tuple[str, str, str | None, str]]


def read_dictionary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Relation]:
    """Return the relations that the rows of the table `columns` describe."""
    relations: dict[str, Relation] = {}
    for row in rows:
        if not row["column_name"]:
            relations[row["table_name"]] = Relation(row["type"], row["description"], [])
    for row in rows:
        if row["column_name"]:
            column = (row["column_name"], row["type"], row["unit"], row["description"])
            relations[row["table_name"]].columns.append(column)
    return relations


def check_schemas(
    schemas: Mapping[str, pa.Schema], dictionary: Mapping[str, Relation], package: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield what the Parquet files state wrongly about their tables and columns."""
    for name, schema in schemas.items():
        for message in _check_schema(schema, dictionary[name], read_required(package, f"{name}.csv")):
            yield Problem(get_parquet_name(name), message)


def _check_schema(schema: pa.Schema, relation: Relation, required: set[str]) -> Iterator[str]:
    for name, _, unit, description in relation.columns:
        field = schema.field(name)
        expected = {DESCRIPTION: description} | ({"unit": unit} if unit else {})
        if _decode(field.metadata) != expected:
            yield f"metadata of {name} differ from the data dictionary"
        if field.nullable is (name in required):
            yield f"nullability of {name} differs from {PACKAGE}"
    metadata = _decode(schema.metadata)
    if metadata.keys() != TABLE_METADATA:
        names = ", ".join(sorted(metadata.keys() ^ TABLE_METADATA))
        yield f"has other metadata than {', '.join(sorted(TABLE_METADATA))}: {names}"
    if metadata.get(DESCRIPTION) != relation.description:
        yield "description of the table differs from the data dictionary"
    if not _is_pandas_metadata(json.loads(metadata.get(PANDAS, "{}")), relation):
        yield "metadata for pandas differ from the columns"


def _is_pandas_metadata(stated: Mapping[str, Any], relation: Relation) -> bool:
    columns = [(column["name"], column["field_name"], column["pandas_type"]) for column in stated.get("columns", ())]
    numpy_types = {column["name"]: column["numpy_type"] for column in stated.get("columns", ())}
    return (
        stated.get("index_columns") == []
        and columns == [(name, name, PANDAS_TYPES.get(kind)) for name, kind, *_ in relation.columns]
        and all(NULLABLE_TYPES.get(kind, numpy_types[name]) == numpy_types[name] for name, kind, *_ in relation.columns)
    )


def _decode(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode(): value.decode(errors="replace") for key, value in (metadata or {}).items()}


def check_catalog(
    connection: duckdb.DuckDBPyConnection,
    dictionary: Mapping[str, Relation],
    release: Mapping[str, Any],
    package: Mapping[str, Any],
) -> Iterator[Problem]:
    """Yield what the DuckDB file has beyond its tables and views, and constraints and comments that are wrong."""
    for kind, name in files.list_extras(connection):
        yield Problem(DATABASE, f"has the {kind} {escape_unprintable(name)}, which publish does not write")
    comments = files.list_comments(connection)
    for name, expected in _list_comments(dictionary).items():
        if comments.get(name) != expected:
            yield Problem(DATABASE, f"comment of {name} differs from the data dictionary")
    constraints = files.list_constraints(connection)
    for name in release["tables"]:
        if constraints.pop(name, []) != _list_constraints(package, name):
            yield Problem(DATABASE, f"keys or required columns of {name} differ from {PACKAGE}")
    for name in sorted(constraints):
        yield Problem(DATABASE, f"has constraints of {name}, which {RELEASE} does not list")


def _list_comments(dictionary: Mapping[str, Relation]) -> dict[str, str]:
    """Return the comments that the dictionary gives; columns of macros have none, those of views no unit."""
    comments = {}
    for relation, (kind, description, columns) in dictionary.items():
        comments[relation] = description
        if kind != "macro":
            for name, _, unit, text in columns:
                comments[f"{relation}.{name}"] = format_description(text, unit if kind == "table" else None)
    return comments


def _list_constraints(package: Mapping[str, Any], table: str) -> list[tuple[Any, ...]]:
    """Return the constraints that datapackage.json states, as `database.list_constraints` does."""
    schema = read_table_schema(package, f"{table}.csv")
    constraints: list[tuple[Any, ...]] = [("PRIMARY KEY", tuple(schema["primaryKey"]), "", ())]
    constraints += [("NOT NULL", (name,), "", ()) for name in read_required(package, f"{table}.csv")]
    for link in schema.get("foreignKeys", ()):
        target = link["reference"]
        constraints.append(("FOREIGN KEY", tuple(link["fields"]), target["resource"], tuple(target["fields"])))
    return sorted(constraints)


CITATION_LINE = re.compile(r"(?m)^(version|date-released): (.*)$")
DATE_LENGTH = len("2026-01-31")

Record = Mapping[str, Any]
Tables = Mapping[str, pa.Table]


def verify_release(folder: Path) -> list[Problem]:
    """List everything that is wrong with a release, nothing if it is sound; contents only if all bytes are right.

    Raises UnreadableReleaseError if there is no such folder. What cannot be found is in `list_limitations`.
    """
    return check_files(folder) or collect(RELEASE, _check_contents(folder))


def list_limitations(folder: Path) -> list[str]:
    """Describe what a verification of this release could not find, one line each."""
    return list_unchecked(folder, read_json(folder / RELEASE))


def list_build_differences(rows: Iterable[Record], tables: Mapping[str, Record], build_id: str) -> list[str]:
    """Return the tables for which the table `build` states another row count, digest or build id."""
    stated = {row["table_name"]: (row["row_count"], row["rows_sha256"], row["build_id"]) for row in rows}
    expected = {name: (table["rows"], table["rows_sha256"], build_id) for name, table in tables.items()}
    expected.pop(BUILD_TABLE, None)
    return _list_differences(stated, expected)


def _list_differences(mapping: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the keys that only one mapping has, or whose values differ."""
    return sorted(name for name in mapping.keys() | other.keys() if mapping.get(name) != other.get(name))


def _check_contents(folder: Path) -> Iterator[Problem]:
    """Check everything behind the bytes; each part is reported even if another cannot be read."""
    release, package, croissant = (read_json(folder / name) for name in (RELEASE, PACKAGE, CROISSANT))
    if release["format"] != files.FORMAT:
        raise UnreadableReleaseError(f"has format {release['format']}, only {files.FORMAT} is supported")
    counts = _get_counts(release)
    expected = files.list_table_files(counts)
    present = {path.name for path in folder.iterdir() if path.suffix in files.SUFFIXES}
    problems = [*_check_versions(folder, release, package, croissant)]
    problems += [Problem(name, "is missing") for name in sorted(expected - present)]
    problems += [
        Problem(name, f"belongs to a table that {RELEASE} does not list") for name in sorted(present - expected)
    ]
    others = {path.name for path in folder.iterdir()} - present - REQUIRED - {CHECKSUMS, SIGNATURE}
    problems += [Problem(escape_unprintable(name), "does not belong to a release") for name in sorted(others)]
    names = [name for name in counts if files.list_table_files([name]) <= present]
    tables = {name: pq.read_table(folder / get_parquet_name(name)) for name in names}
    problems += collect(RELEASE, (Problem(RELEASE, message) for message in check_record(release)))
    problems += collect(ENVIRONMENT, check_environment(folder))
    with files.open_database(folder / DATABASE) as connection:
        for name, rows in tables.items():
            problems += collect(name, _check_rows(folder, name, rows, release, connection))
        problems += collect(RELEASE, _check_view_files(folder, tables, release, connection))
        problems += collect(BUILD_TABLE, _check_build(tables, release))
        problems += _check_descriptions(folder, tables, release, package, croissant, connection)
        if not problems and is_own_code(release):
            problems += collect(DATABASE, check_definitions(folder, release, tables[DICTIONARY_TABLE], connection))
            problems += collect(RELEASE, check_texts(folder, release, tables, connection))
    yield from problems


def _check_descriptions(
    folder: Path,
    tables: Tables,
    release: Record,
    package: Record,
    croissant: Record,
    connection: duckdb.DuckDBPyConnection,
) -> list[Problem]:
    """Check the data dictionary, schemas and descriptors against each other."""
    columns = {name: _list_columns(rows.schema) for name, rows in tables.items()}
    problems = collect(DICTIONARY_TABLE, _check_dictionary(tables, release, columns, connection))
    problems += collect(DICTIONARY_TABLE, _check_folder_schema(tables, release, package, connection))
    keys, links = files.list_primary_keys(connection), files.list_foreign_keys(connection)
    digests, _ = files.read_checksums(folder / CHECKSUMS)
    sizes = {name: ((folder / name).stat().st_size, digest) for name, digest in digests.items()}
    inventory = files.Inventory(columns.keys(), columns, keys, links, sizes)
    problems += collect(PACKAGE, (Problem(PACKAGE, message) for message in check_package(package, inventory)))
    problems += collect(CROISSANT, (Problem(CROISSANT, message) for message in check_croissant(croissant, inventory)))
    return problems


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


def _check_folder_schema(
    tables: Tables, release: Record, package: Record, connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    """Check nullability, keys, descriptions and metadata in Parquet and DuckDB."""
    dictionary = read_dictionary(tables[DICTIONARY_TABLE].to_pylist())
    yield from check_schemas({name: rows.schema for name, rows in tables.items()}, dictionary, package)
    yield from check_catalog(connection, dictionary, release, package)


def _check_rows(
    folder: Path, name: str, rows: pa.Table, release: Record, connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    """Check the rows of a table in Parquet, CSV and DuckDB against their count and digest."""
    parquet, csv, stated = get_parquet_name(name), f"{name}.csv", _get_counts(release)[name]
    if (rows.schema.metadata or {}).get(BUILD_ID.encode()) != release["build_id"].encode():
        yield Problem(parquet, f"build id differs from {RELEASE}")
    if (rows.num_rows, digest_rows(rows)) != (stated["rows"], stated["rows_sha256"]):
        yield Problem(parquet, f"rows differ from {RELEASE}")
    if not _have_same_rows(rows, read_csv(folder / csv, rows.schema)):
        yield Problem(csv, f"rows differ from {parquet}")
    if name not in release["tables"]:
        return
    names = ", ".join(map(files.quote_identifier, rows.column_names))
    copy = connection.sql(f"SELECT {names} FROM {files.quote_identifier(name)}").to_arrow_table()
    if not _have_same_rows(rows, copy):
        yield Problem(DATABASE, f"rows of {name} differ from {parquet}")


def _get_counts(release: Record) -> Mapping[str, Record]:
    """Return row count and digest by table and view file."""
    return {**release["tables"], **release.get("view_files", {})}


def _check_view_files(
    folder: Path, tables: Tables, release: Record, connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    """Evaluate each view of the DuckDB file and compare its Parquet file, with the order of rows if this code made it.

    Another DuckDB may add up figures in another order, so then nothing is compared.
    """
    if not has_own_duckdb(folder):
        return
    own = {view.name: view for view in FILE_VIEWS} if is_own_code(release) else {}
    macros = {row["table_name"] for row in tables[DICTIONARY_TABLE].to_pylist() if row["type"] == "macro"}
    for name in sorted(release.get("view_files", {}).keys() & tables.keys()):
        rows = tables[name]
        if name in own:
            is_same = _have_same_rows(rows, read_view(connection, own[name]))
        else:
            names = ", ".join(map(files.quote_identifier, rows.column_names))
            source = files.quote_identifier(name) + ("()" if name in macros else "")
            evaluated = connection.sql(f"SELECT {names} FROM {source}").to_arrow_table()
            is_same = digest_rows(rows) == digest_rows(evaluated.cast(rows.schema))
        if not is_same:
            yield Problem(get_parquet_name(name), f"rows differ from those of the view in {DATABASE}")


def _have_same_rows(table: pa.Table, other: pa.Table) -> bool:
    """Compare columns and rows, in their order."""
    if table.column_names != other.column_names or table.num_rows != other.num_rows:
        return False
    bare = table.replace_schema_metadata()
    schema = pa.schema([field.remove_metadata().with_nullable(True) for field in bare.schema])
    return bool(bare.cast(schema).equals(other.replace_schema_metadata().cast(schema)))


def _check_build(tables: Tables, release: Record) -> Iterator[Problem]:
    """Check the table `build` against release.json."""
    path = get_parquet_name(BUILD_TABLE)
    rows = tables[BUILD_TABLE].to_pylist()
    for name in list_build_differences(rows, _get_counts(release), release["build_id"]):
        yield Problem(path, f"row count, digest or build id of {name} differs from {RELEASE}")


def _check_dictionary(
    tables: Tables, release: Record, parquet: Mapping[str, files.Columns], connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    """Check the table `columns` against release.json, the Parquet files and the DuckDB file."""
    path = get_parquet_name(DICTIONARY_TABLE)
    described: dict[str, files.Columns] = {}
    kinds: dict[str, str] = {}
    for row in tables[DICTIONARY_TABLE].to_pylist():
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
    for name in _list_differences(files.hash_definitions(connection), release["views"]):
        yield Problem(DATABASE, f"definition of {name} differs from {RELEASE}")
    typed = {name: [(column, kind) for column, kind, _ in columns] for name, columns in described.items()}
    for name in _list_differences(files.list_columns(connection), typed):
        yield Problem(DATABASE, f"columns of {name} differ from the data dictionary")


def _list_columns(schema: pa.Schema) -> files.Columns:
    columns = read_columns(schema).values()
    return [(column.name, column.type, column.unit) for column in columns]
