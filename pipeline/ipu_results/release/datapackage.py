"""Write and check datapackage.json: a Frictionless Data Package 2.0, with a `unit` on each field that has one.

CSV files are tables. Parquet files and the DuckDB file are resources without a schema, since they bring their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ipu_results.ground.files import hash_file
from ipu_results.ground.text import format_json
from ipu_results.release.files import Columns, Inventory, ReleaseStats
from ipu_results.schema import FILE_VIEWS, SQL, TABLES, Column, Kind, Table
from ipu_results.store.files import DATABASE, get_parquet_name

PROFILE = "https://datapackage.org/profiles/2.0/{}.json"
LICENCE = {"name": "CC-BY-4.0", "path": "https://creativecommons.org/licenses/by/4.0/", "title": "CC BY 4.0"}
TYPES: dict[Kind, str] = {
    "text": "string",
    "integer": "integer",
    "double": "number",
    "date": "date",
    "timestamp": "datetime",
    "boolean": "boolean",
}
SQL_TYPES = {name: SQL[kind] for kind, name in TYPES.items()}
PARQUET_TYPE, DUCKDB_TYPE = "application/vnd.apache.parquet", "application/vnd.duckdb"
TIMESTAMP = "%Y-%m-%d %H:%M:%S.%f"
TITLE = "ipu-results: the open, verified record of Graphcore IPU performance"

HEAD: dict[str, Any] = {
    "$schema": PROFILE.format("datapackage"),
    "name": "ipu-results",
    "title": TITLE,
    "licenses": [LICENCE],
    "contributors": [{"title": "The ipu-results authors", "roles": ["creator"]}],
    "keywords": ["Graphcore", "IPU", "benchmark", "MLPerf", "performance", "provenance"],
}
DUCKDB: dict[str, Any] = {
    "$schema": PROFILE.format("dataresource"),
    "name": DATABASE,
    "type": "file",
    "path": DATABASE,
    "description": "The same tables with keys, and the views and macros. Its sha256 is in SHA256SUMS.",
    "format": "duckdb",
    "mediatype": DUCKDB_TYPE,
}


def format_package(release: Mapping[str, Any], stats: ReleaseStats, folder: Path) -> str:
    """Return the descriptor of the files of a folder that hold data.

    The DuckDB file is without size and hash: its bytes differ in each build, and SHA256SUMS has them.
    """
    tables = [*TABLES, *(view.file_table for view in FILE_VIEWS)]
    sources = [{"title": title, "path": url} for _, title, _, _, url in stats["licences"] if url]
    package = {
        **HEAD,
        "version": release["version"],
        "created": f"{release['published_on']}T00:00:00Z",
        "sources": sources,
        "resources": [
            *(_describe_table(table, folder / f"{table.name}.csv") for table in tables),
            *(_describe_parquet(table, folder / get_parquet_name(table.name)) for table in tables),
            DUCKDB,
        ],
    }
    return format_json(package) + "\n"


def check_package(package: Mapping[str, Any], inventory: Inventory) -> Iterator[str]:
    """Yield what a descriptor states wrongly about the tables. Raises LookupError or TypeError if it is malformed."""
    yield from (f"lacks {key}" for key in (*HEAD, "created", "sources") if key not in package)
    resources = {resource["path"]: resource for resource in package["resources"]}
    yield from inventory.compare_files(resources.keys() - {DATABASE})
    for path, resource in resources.items():
        name, _, suffix = path.rpartition(".")
        if name not in inventory.tables:
            continue
        size, sha256 = inventory.files[path]
        if resource["name"] != (name if suffix == "csv" else path):
            yield f"name of {path} is wrong"
        if (resource["type"] == "table") != ("schema" in resource):  # of earlier releases Parquet is a table, too
            yield f"type of {path} is wrong"
        if (resource["bytes"], resource["hash"]) != (size, f"sha256:{sha256}"):
            yield f"size or hash of {path} is wrong"
        if suffix == "csv":
            yield from _check_schema(path, resource["schema"], inventory, name)


def _check_schema(path: str, schema: Mapping[str, Any], inventory: Inventory, name: str) -> Iterator[str]:
    links = inventory.links.get(name, {})
    for what, stated, expected in (
        ("columns", _read_fields(schema), inventory.columns[name]),
        ("primary key", schema.get("primaryKey"), inventory.keys.get(name)),
        ("foreign keys", schema.get("foreignKeys", []), [_describe_link(*link) for link in links.items()]),
    ):
        if stated != expected:
            yield f"{what} of {path} is wrong"


def read_required(package: Mapping[str, Any], path: str) -> set[str]:
    """Return the columns of a file that are stated as required."""
    fields = read_table_schema(package, path)["fields"]
    return {field["name"] for field in fields if field.get("constraints", {}).get("required")}


def read_table_schema(package: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the schema of a file. Raises LookupError if it is not described."""
    schema: Mapping[str, Any] = next((it["schema"] for it in package["resources"] if it["path"] == path), {})
    if not schema:
        raise LookupError(f"no schema of {path}")
    return schema


def _read_fields(schema: Mapping[str, Any]) -> Columns:
    fields = schema["fields"]
    return [(field["name"], SQL_TYPES.get(field["type"], field["type"]), field.get("unit")) for field in fields]


def _describe_link(column: str, target: Sequence[str]) -> dict[str, Any]:
    """Return a foreign key of one column; the target is a table and its column."""
    table, key = target
    return {"fields": [column], "reference": {"resource": table, "fields": [key]}}


def _describe_table(table: Table, path: Path) -> dict[str, Any]:
    head = {"$schema": PROFILE.format("dataresource"), "name": table.name, "type": "table", "path": path.name}
    text = {"description": table.description, "format": "csv", "mediatype": "text/csv"}
    return {**head, **text, **_measure_file(path), "encoding": "utf-8", "schema": _describe_schema(table)}


def _describe_parquet(table: Table, path: Path) -> dict[str, Any]:
    head = {"$schema": PROFILE.format("dataresource"), "name": path.name, "type": "file", "path": path.name}
    text = {"description": f"The rows of {table.name}.csv.", "format": "parquet", "mediatype": PARQUET_TYPE}
    return {**head, **text, **_measure_file(path)}


def _measure_file(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "hash": f"sha256:{hash_file(path)}"}


def _describe_schema(table: Table) -> dict[str, Any]:
    targets = {column.name: column.references.split(".") for column in table.columns if column.references}
    links = [_describe_link(*link) for link in targets.items()]
    schema = {"$schema": PROFILE.format("tableschema"), "fields": [_describe_field(column) for column in table.columns]}
    keys: dict[str, Any] = {"primaryKey": list(table.key)} if table.key else {}
    return schema | keys | ({"foreignKeys": links} if links else {})


def _describe_field(column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {"name": column.name, "type": TYPES[column.kind], "description": column.description}
    if column.kind == "timestamp":
        field["format"] = TIMESTAMP
    if column.kind == "text" and column.required:
        field["missingValues"] = []  # an empty text is a value there
    if column.unit:
        field["unit"] = column.unit
    constraints = {
        "required": True if column.required else None,
        "minimum": column.low,
        "exclusiveMinimum": column.above,
        "maximum": column.high,
        "enum": list(column.choices) if column.choices else None,
        "pattern": column.pattern,
    }
    stated = {name: value for name, value in constraints.items() if value is not None}
    return field | ({"constraints": stated} if stated else {})
