"""Write and check croissant.json: the tables in Croissant 1.1, with records from the Parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ipu_results.ground.files import hash_file
from ipu_results.ground.text import format_json
from ipu_results.release.datapackage import LICENCE, TITLE
from ipu_results.release.files import Columns, Inventory
from ipu_results.schema import FILE_VIEWS, SQL, TABLES, Column, Kind, Table

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
FORMATS = {"parquet": "application/x-parquet", "csv": "text/csv"}
TYPES: dict[Kind, str] = {
    "text": "sc:Text",
    "integer": "cr:Int64",
    "double": "cr:Float64",
    "date": "sc:Date",
    "timestamp": "sc:DateTime",
    "boolean": "sc:Boolean",
}
CROISSANT_TYPES = {SQL[kind]: name for kind, name in TYPES.items()}
CONTEXT = Path(__file__).with_name("templates") / "croissant_context.json"  # as the specification prints it
HEAD: dict[str, Any] = {
    "@context": json.loads(CONTEXT.read_text(encoding="utf-8")),
    "@type": "sc:Dataset",
    "conformsTo": CONFORMS_TO,
    "name": "ipu-results",
    "description": f"{TITLE}. Each figure with the place where it was printed.",
    "license": LICENCE["path"],
    "creator": {"@type": "sc:Organization", "name": "The ipu-results authors"},
    "keywords": ["Graphcore", "IPU", "benchmark", "MLPerf"],
}


def format_croissant(release: Mapping[str, Any], folder: Path) -> str:
    """Return the description of the tables in a folder."""
    tables = [*TABLES, *(view.file_table for view in FILE_VIEWS)]
    dataset = {
        **HEAD,
        "version": release["version"],
        "datePublished": release["published_on"],
        "citeAs": f"The ipu-results authors. ipu-results, version {release['version']}, {release['published_on']}.",
        "distribution": [_describe_file(folder / f"{table.name}.{suffix}") for suffix in FORMATS for table in tables],
        "recordSet": [_describe_table(table) for table in tables],
    }
    return format_json(dataset) + "\n"


def check_croissant(dataset: Mapping[str, Any], inventory: Inventory) -> Iterator[str]:
    """Yield what a description states wrongly about the tables. Raises LookupError or TypeError if it is malformed."""
    yield from (f"lacks {key}" for key in HEAD if key not in dataset)
    files = {file["contentUrl"]: file["sha256"] for file in dataset["distribution"]}
    yield from inventory.compare_files(files.keys())
    for name in sorted(files.keys() & inventory.files.keys()):
        if files[name] != inventory.files[name][1]:
            yield f"sha256 of {name} is wrong"
    record_sets = {record_set["name"]: record_set for record_set in dataset["recordSet"]}
    for name in sorted(record_sets.keys() ^ inventory.tables):
        yield f"lacks the record set {name}" if name in inventory.tables else f"has an unknown record set {name}"
    for name in sorted(record_sets.keys() & inventory.tables):
        fields = record_sets[name]["field"]
        if not _are_fields(name, fields, inventory.columns[name]):
            yield f"columns of {name} are wrong"
        if record_sets[name].get("key", []) != _describe_key(name, inventory.keys.get(name, [])):
            yield f"key of {name} is wrong"
        targets = inventory.links.get(name, {})
        references = {field["name"]: field["references"] for field in fields if "references" in field}
        if references != {column: _describe_link(*target) for column, target in targets.items()}:
            yield f"references of {name} are wrong"


def _are_fields(table: str, fields: Sequence[Mapping[str, Any]], columns: Columns) -> bool:
    stated = [(field["name"], field.get("dataType"), field.get("source")) for field in fields]
    expected = [(name, CROISSANT_TYPES.get(kind), _describe_source(table, name)) for name, kind, _ in columns]
    units = zip(fields, columns, strict=False)
    return stated == expected and all(field["description"].endswith(_format_unit(unit)) for field, (*_, unit) in units)


def _describe_file(path: Path) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": FORMATS[path.suffix[1:]],
        "sha256": hash_file(path),
    }


def _describe_table(table: Table) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.description,
        **({"key": _describe_key(table.name, table.key)} if table.key else {}),
        "field": [_describe_field(table, column) for column in table.columns],
    }


def _describe_field(table: Table, column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": column.description + _format_unit(column.unit),
        "dataType": TYPES[column.kind],
        "source": _describe_source(table.name, column.name),
    }
    if column.references:
        field["references"] = _describe_link(*column.references.split("."))
    return field


def _format_unit(unit: str | None) -> str:
    """Return the unit as descriptions end with it: Croissant has no property for it."""
    return f" [{unit}]" if unit else ""


def _describe_key(table: str, key: Sequence[str]) -> list[dict[str, str]]:
    return [{"@id": f"{table}/{column}"} for column in key]


def _describe_link(table: str, column: str) -> dict[str, Any]:
    return {"field": {"@id": f"{table}/{column}"}}


def _describe_source(table: str, column: str) -> dict[str, Any]:
    return {"fileObject": {"@id": f"{table}.parquet"}, "extract": {"column": column}}
