"""Write the descriptors of a release, which describe the same tables, columns and links
in two standards.

datapackage.json is a Frictionless Data Package 2.0, with a `unit` on each field that has one. CSV
files are tables. Parquet files and the DuckDB file are resources without a schema, since they bring
their own. croissant.json has the records of the Parquet files in Croissant 1.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ipu_results.kit.files import hash_file
from ipu_results.kit.text import format_json
from ipu_results.record.store.files import DATABASE, get_csv_name, get_parquet_name
from ipu_results.release.files import ReleaseRecord
from ipu_results.schema import FILE_VIEWS, TABLES, Column, Table, describe_column

Record = dict[str, Any]

TITLE = "ipu-results: the verified record of what AI accelerators were said and measured to do"
AUTHORS = "The ipu-results authors"
LICENCE = {
    "name": "CC-BY-4.0",
    "path": "https://creativecommons.org/licenses/by/4.0/",
    "title": "CC BY 4.0",
}
KEYWORDS = ["Graphcore", "IPU", "benchmark", "MLPerf"]
PROFILE = "https://datapackage.org/profiles/2.0/{}.json"
# as the specification prints it
CONTEXT = Path(__file__).with_name("templates") / "croissant_context.json"
PACKAGE_TYPES = {
    "text": "string",
    "integer": "integer",
    "double": "number",
    "date": "date",
    "timestamp": "datetime",
    "boolean": "boolean",
}
CROISSANT_TYPES = {
    "text": "sc:Text",
    "integer": "cr:Int64",
    "double": "cr:Float64",
    "date": "sc:Date",
    "timestamp": "sc:DateTime",
    "boolean": "sc:Boolean",
}
TIMESTAMP = "%Y-%m-%d %H:%M:%S.%f"  # as CSV files print it
PACKAGE_MEDIA = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "duckdb": "application/vnd.duckdb",
}
# mlcroissant reads Parquet under its older media type alone
CROISSANT_MEDIA = {"parquet": "application/x-parquet", "csv": "text/csv"}
PACKAGE_HEAD: Record = {
    "$schema": PROFILE.format("datapackage"),
    "name": "ipu-results",
    "title": TITLE,
    "licenses": [LICENCE],
    "contributors": [{"title": AUTHORS, "roles": ["creator"]}],
    "keywords": [*KEYWORDS, "performance", "provenance"],
}
CROISSANT_HEAD: Record = {
    "@context": json.loads(CONTEXT.read_text(encoding="utf-8")),
    "@type": "sc:Dataset",
    "conformsTo": "http://mlcommons.org/croissant/1.1",
    "name": "ipu-results",
    "description": f"{TITLE}. Each figure with the place where it was printed.",
    "license": LICENCE["path"],
    "creator": {"@type": "sc:Organization", "name": AUTHORS},
    "keywords": KEYWORDS,
}
DATABASE_TEXT = "The same tables, and the views and macros. Its sha256 is in SHA256SUMS."
FILE_TABLES = list(TABLES) + [view.file_table for view in FILE_VIEWS]


def format_package(release: ReleaseRecord, sources: Iterable[tuple[str, str]], folder: Path) -> str:
    """Return datapackage.json for the files of a folder that hold data; `sources` are titles and
    addresses.

    The DuckDB file is without size and hash: its bytes differ in each build, and SHA256SUMS has
    them.
    """
    resources = [_describe_csv(table, folder) for table in FILE_TABLES]
    for table in FILE_TABLES:
        file = get_parquet_name(table.sql_name)
        about = f"The rows of {get_csv_name(table.sql_name)}."
        resources.append(_describe_file(file, about) | _measure_file(folder / file))
    resources.append(_describe_file(DATABASE, DATABASE_TEXT))
    package = {
        **PACKAGE_HEAD,
        "version": release["version"],
        "created": f"{release['published_on']}T00:00:00Z",
        "sources": [{"title": title, "path": url} for title, url in sources],
        "resources": resources,
    }
    return format_json(package) + "\n"


def _describe_csv(table: Table, folder: Path) -> Record:
    file = get_csv_name(table.sql_name)
    resource = _describe_file(file, table.description)
    resource["name"] = table.sql_name
    resource["type"] = "table"
    resource |= _measure_file(folder / file)
    resource["encoding"] = "utf-8"
    resource["schema"] = _describe_schema(table)
    return resource


def _describe_file(file: str, about: str) -> Record:
    suffix = file.rpartition(".")[2]
    return {
        "$schema": PROFILE.format("dataresource"),
        "name": file.replace("/", "."),
        "type": "file",
        "path": file,
        "description": about,
        "format": suffix,
        "mediatype": PACKAGE_MEDIA[suffix],
    }


def _measure_file(path: Path) -> Record:
    return {"bytes": path.stat().st_size, "hash": f"sha256:{hash_file(path)}"}


def _describe_schema(table: Table) -> Record:
    schema: Record = {
        "$schema": PROFILE.format("tableschema"),
        "fields": list(map(_describe_column, table.columns)),
    }
    if table.key:
        schema["primaryKey"] = list(table.key)
    links = []
    for column in table.columns:
        if column.references:
            target, key = column.references.split(".")
            reference = {"resource": target, "fields": [key]}
            links.append({"fields": [column.name], "reference": reference})
    if links:
        schema["foreignKeys"] = links
    return schema


def _describe_column(column: Column) -> Record:
    field: Record = {
        "name": column.name,
        "type": PACKAGE_TYPES[column.kind],
        "description": column.description,
    }
    if column.kind == "timestamp":
        field["format"] = TIMESTAMP
    if column.kind == "text" and column.required:
        # in such a column an empty text is a value, and not a missing one
        field["missingValues"] = []
    if column.unit:
        field["unit"] = column.unit
    # None where a column demands nothing
    constraints = {
        "required": column.required or None,
        "minimum": column.low,
        "exclusiveMinimum": column.above,
        "maximum": column.high,
        "enum": column.choices or None,
        "pattern": column.pattern,
    }
    stated = {name: value for name, value in constraints.items() if value is not None}
    if stated:
        field["constraints"] = stated
    return field


def format_croissant(release: ReleaseRecord, folder: Path) -> str:
    """Return croissant.json for the tables in a folder."""
    names = [get_parquet_name(table.sql_name) for table in FILE_TABLES]
    names += [get_csv_name(table.sql_name) for table in FILE_TABLES]
    files = []
    for name in names:
        path = folder / name
        suffix = name.rpartition(".")[2]
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name.replace("/", "."),
                "contentUrl": name,
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": CROISSANT_MEDIA[suffix],
                "sha256": hash_file(path),
            }
        )
    dataset = {
        **CROISSANT_HEAD,
        "version": release["version"],
        "datePublished": release["published_on"],
        "citeAs": (
            f"{AUTHORS}. ipu-results, version {release['version']}, {release['published_on']}."
        ),
        "distribution": files,
        "recordSet": list(map(_describe_records, FILE_TABLES)),
    }
    return format_json(dataset) + "\n"


def _describe_records(table: Table) -> Record:
    records: Record = {
        "@type": "cr:RecordSet",
        "@id": table.sql_name,
        "name": table.sql_name,
        "description": table.description,
    }
    if table.key:
        records["key"] = [{"@id": f"{table.sql_name}/{column}"} for column in table.key]
    records["field"] = [_describe_field(table.sql_name, column) for column in table.columns]
    return records


def _describe_field(table: str, column: Column) -> Record:
    """Describe a column. The unit is the end of the description: Croissant has no property for it.

    Keys of other tables are in datapackage.json alone: where one is stated here, mlcroissant joins
    the other table, and its record set then has the rows of the join.
    """
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column.name}",
        "name": column.name,
        "description": describe_column(column),
        "dataType": CROISSANT_TYPES[column.kind],
        "source": {
            "fileObject": {"@id": get_parquet_name(table)},
            "extract": {"column": column.name},
        },
    }
