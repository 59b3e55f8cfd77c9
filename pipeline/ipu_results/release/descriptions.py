"""What datapackage.json and croissant.json tell of the tables of a release, against the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ipu_results.release import croissant, datapackage
from ipu_results.release.names import CROISSANT, PACKAGE, table_files
from ipu_results.release.problem import Problem, Problems
from ipu_results.schema.generate import SQL

PACKAGE_TYPES = {name: SQL[kind] for kind, name in datapackage.TYPES.items()}
CROISSANT_TYPES = {SQL[kind]: name for kind, name in croissant.TYPES.items()}

Columns = list[tuple[str, str, str | None]]
Told = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """Columns, keys and links by table, size and sha256 by file; only of what could be read.

    A link goes from a column to the table and column that it references.
    """

    tables: frozenset[str]
    columns: Mapping[str, Columns]
    keys: Mapping[str, list[str]]
    links: Mapping[str, Mapping[str, tuple[str, str]]]
    files: Mapping[str, tuple[int, str]]


def package_problems(told: Told, found: Found) -> Problems:
    yield from _lacking(PACKAGE, told, (*datapackage.HEAD, "created", "sources"))
    resources = {one["path"]: one for one in told["resources"]}
    yield from _all_described(PACKAGE, found, resources)
    for path, resource in resources.items():
        (name, _, suffix), schema = path.rpartition("."), resource["schema"]
        if resource["name"] != datapackage.resource_name(name, suffix):
            yield Problem(PACKAGE, f"calls {path} {resource['name']}")
        size, sha256 = found.files.get(path, (None, None))
        if path in found.files and (size, f"sha256:{sha256}") != (resource["bytes"], resource["hash"]):
            yield Problem(PACKAGE, f"tells other bytes or another hash of {path}")
        if name in found.columns and found.columns[name] != _fields(schema):
            yield Problem(PACKAGE, f"tells other columns of {path} than there are")
        if name in found.keys and found.keys[name] != schema.get("primaryKey"):
            yield Problem(PACKAGE, f"tells another key of {path} than there is")
        if name in found.keys and schema.get("foreignKeys", []) != _foreign_keys(found.links.get(name, {}), suffix):
            yield Problem(PACKAGE, f"tells other foreign keys of {path} than there are")


def croissant_problems(told: Told, found: Found) -> Problems:
    yield from _lacking(CROISSANT, told, croissant.HEAD)
    files = {one["contentUrl"]: one for one in told["distribution"]}
    yield from _all_described(CROISSANT, found, files)
    for name, file in files.items():
        if name in found.files and found.files[name][1] != file["sha256"]:
            yield Problem(CROISSANT, f"tells another sha256 of {name}")
    sets = {one["name"]: one for one in told["recordSet"]}
    for name in sorted(sets.keys() ^ found.tables):
        yield Problem(CROISSANT, f"has a record set {name} too {'few' if name in found.tables else 'many'}")
    for name in sorted(sets.keys() & found.columns.keys()):
        if not _are_fields(name, sets[name]["field"], found.columns[name]):
            yield Problem(CROISSANT, f"tells other columns of {name} than there are")
        key = [{"@id": f"{name}/{column}"} for column in found.keys.get(name, ())]
        if name in found.keys and key != sets[name].get("key"):
            yield Problem(CROISSANT, f"tells another key of {name} than there is")
        links = {one["name"]: one["references"] for one in sets[name]["field"] if "references" in one}
        wanted = {column: croissant.reference(*target) for column, target in found.links.get(name, {}).items()}
        if name in found.keys and links != wanted:
            yield Problem(CROISSANT, f"tells other references of {name} than there are")


def _foreign_keys(links: Mapping[str, tuple[str, str]], suffix: str) -> list[dict[str, Any]]:
    return [datapackage.link(column, *target, suffix) for column, target in links.items()]


def _fields(schema: Told) -> Columns:
    return [(one["name"], PACKAGE_TYPES.get(one["type"], one["type"]), one.get("unit")) for one in schema["fields"]]


def _are_fields(table: str, told: list[Told], columns: Columns) -> bool:
    fields = [{key: one.get(key) for key in ("name", "dataType", "source")} for one in told]
    expected = [
        {"name": name, "dataType": CROISSANT_TYPES.get(kind), "source": croissant.source(table, name)}
        for name, kind, _ in columns
    ]
    units = [croissant.unit_told(unit) for *_, unit in columns]
    return fields == expected and all(map(str.endswith, [one["description"] for one in told], units))


def _lacking(place: str, told: Told, wanted: tuple[str, ...] | Told) -> Problems:
    yield from (Problem(place, f"lacks {key}") for key in wanted if key not in told)


def _all_described(place: str, found: Found, told: Told) -> Problems:
    wanted = table_files(found.tables)
    yield from (Problem(place, f"says nothing of {name}") for name in sorted(wanted - told.keys()))
    yield from (Problem(place, f"describes {name}, which is no table") for name in sorted(told.keys() - wanted))
