"""datapackage.json: a Frictionless Data Package of version 2, with a unit on each field that has one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ipu_results._util.text import format_json
from ipu_results.release.facts import Facts
from ipu_results.release.sums import digest
from ipu_results.schema import TABLES, Table
from ipu_results.schema.definitions import Column, Kind

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
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
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


def package(facts: Facts, folder: Path) -> str:
    """The descriptor of the tables in a folder; without the DuckDB file, whose bytes differ from build to build."""
    sources = [{"title": title, "path": url} for _, title, _, _, url in facts.found["licences"] if url]
    told = {
        **HEAD,
        "version": facts.version,
        "created": f"{facts.published_on.isoformat()}T00:00:00Z",
        "sources": sources,
        "resources": [_resource(table, folder, suffix) for suffix in FORMATS for table in TABLES],
    }
    return format_json(told) + "\n"


def resource_name(table: str, suffix: str) -> str:
    """CSV tables go by their own name, Parquet ones with the suffix."""
    return table if suffix == "csv" else f"{table}.{suffix}"


def link(column: str, target: str, key: str, suffix: str) -> dict[str, Any]:
    """A foreign key of one column."""
    return {"fields": [column], "reference": {"resource": resource_name(target, suffix), "fields": [key]}}


def _resource(table: Table, folder: Path, suffix: str) -> dict[str, Any]:
    path = folder / f"{table.name}.{suffix}"
    told: dict[str, Any] = {
        "$schema": PROFILE.format("dataresource"),
        "name": resource_name(table.name, suffix),
        "type": "table",
        "path": path.name,
        "description": table.description,
        "format": suffix,
        "mediatype": FORMATS[suffix],
        "bytes": path.stat().st_size,
        "hash": f"sha256:{digest(path)}",
    }
    return told | ({"encoding": "utf-8"} if suffix == "csv" else {}) | {"schema": _schema(table, suffix)}


def _schema(table: Table, suffix: str) -> dict[str, Any]:
    links = [
        link(column.name, target, key, suffix)
        for column in table.columns
        if column.references
        for target, key in [column.references.split(".")]
    ]
    told = {"$schema": PROFILE.format("tableschema"), "fields": [_field(column) for column in table.columns]}
    return told | {"primaryKey": list(table.key)} | ({"foreignKeys": links} if links else {})


def _field(column: Column) -> dict[str, Any]:
    told: dict[str, Any] = {"name": column.name, "type": TYPES[column.kind], "description": column.description}
    if column.kind == "timestamp":
        told["format"] = TIMESTAMP
    if column.kind == "text" and column.required:
        told["missingValues"] = []  # an empty text is a value there
    if column.unit:
        told["unit"] = column.unit
    constraints = {
        "required": True if column.required else None,
        "minimum": column.low,
        "exclusiveMinimum": column.above,
        "maximum": column.high,
        "enum": list(column.choices) if column.choices else None,
        "pattern": column.pattern,
    }
    found = {name: value for name, value in constraints.items() if value is not None}
    return told | ({"constraints": found} if found else {})
