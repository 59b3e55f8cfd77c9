"""Check the schema of a release: nullability, keys, descriptions and metadata in Parquet and DuckDB.

The table `columns` has every description and unit, and datapackage.json the keys and the required columns. Both
formats must agree with them, whichever version of the code made the release.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from ipu_results._util.text import escape_unprintable
from ipu_results.release import database
from ipu_results.release.datapackage import read_required, read_table_schema
from ipu_results.release.files import PACKAGE, RELEASE
from ipu_results.release.problems import Problem
from ipu_results.schema.generate import format_description
from ipu_results.store.files import BUILD_ID, DATABASE, get_parquet_name

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
    for kind, name in database.list_extras(connection):
        yield Problem(DATABASE, f"has the {kind} {escape_unprintable(name)}, which publish does not write")
    comments = database.list_comments(connection)
    for name, expected in _list_comments(dictionary).items():
        if comments.get(name) != expected:
            yield Problem(DATABASE, f"comment of {name} differs from the data dictionary")
    constraints = database.list_constraints(connection)
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
