"""croissant.json: the tables in Croissant 1.1, as mlcroissant reads it; records come from the Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ipu_results._util.text import format_json
from ipu_results.release.datapackage import LICENCE, TITLE
from ipu_results.release.facts import Facts
from ipu_results.release.sums import digest
from ipu_results.schema import TABLES, Table
from ipu_results.schema.definitions import Column, Kind

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
TERMS = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileProperty"),
    *("fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5"),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator"),
    *("source", "subField", "transform"),
)
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "description": {"@container": "@language"},
    "name": {"@container": "@language"},
    **{term: f"cr:{term}" for term in TERMS},
}
HEAD: dict[str, Any] = {
    "@context": CONTEXT,
    "@type": "sc:Dataset",
    "conformsTo": CONFORMS_TO,
    "name": "ipu-results",
    "description": f"{TITLE}. Each figure with the place where it was printed.",
    "license": LICENCE["path"],
    "creator": {"@type": "sc:Organization", "name": "The ipu-results authors"},
    "keywords": ["Graphcore", "IPU", "benchmark", "MLPerf"],
}


def metadata(facts: Facts, folder: Path) -> str:
    """The description of the tables in a folder."""
    told = {
        **HEAD,
        "version": facts.version,
        "datePublished": facts.published_on.isoformat(),
        "citeAs": f"The ipu-results authors. ipu-results, version {facts.version}, {facts.published_on}.",
        "distribution": [_file(folder / f"{table.name}.{suffix}") for suffix in FORMATS for table in TABLES],
        "recordSet": [_record_set(table) for table in TABLES],
    }
    return format_json(told) + "\n"


def _file(path: Path) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": FORMATS[path.suffix[1:]],
        "sha256": digest(path),
    }


def _record_set(table: Table) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.description,
        "key": [{"@id": f"{table.name}/{name}"} for name in table.key],
        "field": [_field(table, column) for column in table.columns],
    }


def _field(table: Table, column: Column) -> dict[str, Any]:
    told: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": column.description + unit_told(column.unit),
        "dataType": TYPES[column.kind],
        "source": source(table.name, column.name),
    }
    if column.references:
        told["references"] = reference(*column.references.split("."))
    return told


def unit_told(unit: str | None) -> str:
    """Croissant has no property for a unit; it stands at the end of the description."""
    return f" [{unit}]" if unit else ""


def reference(table: str, column: str) -> dict[str, Any]:
    return {"field": {"@id": f"{table}/{column}"}}


def source(table: str, column: str) -> dict[str, Any]:
    """Where the records of a field come from."""
    return {"fileObject": {"@id": f"{table}.parquet"}, "extract": {"column": column}}
