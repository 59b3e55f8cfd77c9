"""What the files of a release hold, against what the release says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.publish.database import definitions, opened
from pipeline.publish.problem import Problem, Problems, guarded
from pipeline.publish.side import PACKAGE, RELEASE, read_json, sql_type
from pipeline.publish.sums import SUMS, read_sums
from pipeline.publish.texts import read_csv
from pipeline.sql import first_line
from pipeline.write import DATABASE, parquet_name
from pipeline.write.digest import rows_digest
from schema.generate import SQL

CROISSANT, CITATION, DICTIONARY = "croissant.json", "CITATION.cff", "columns"
VERSIONED = re.compile(r"(?m)^version: (.*)$")
PACKAGE_TYPES = {
    "string": SQL["text"],
    "integer": SQL["integer"],
    "number": SQL["double"],
    "date": SQL["date"],
    "datetime": SQL["timestamp"],
    "boolean": SQL["boolean"],
}

Columns = list[tuple[str, str, str | None]]


@dataclass(frozen=True, slots=True)
class Contents:
    """A release whose descriptions have the right digests; files in `bad` are not opened.

    `digests` are those of SHA256SUMS, which hold for every file that is not in `bad`.
    """

    folder: Path
    bad: frozenset[str]
    digests: Mapping[str, str]
    version: str
    tables: Mapping[str, Mapping[str, Any]]
    views: Mapping[str, str]
    package: Mapping[str, Any]
    croissant: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path, bad: frozenset[str]) -> Contents:
        """Raises what `guarded` takes where release.json is not as `publish` writes it."""
        told, others = read_json(folder / RELEASE), (read_json(folder / name) for name in (PACKAGE, CROISSANT))
        digests = read_sums(folder / SUMS).digests
        return cls(folder, bad, digests, told["version"], dict(told["tables"]), dict(told["views"]), *others)

    def problems(self) -> Problems:
        yield from self._tables_listed()
        connection = None
        try:
            connection = self._connected()
        except duckdb.Error as error:
            yield Problem(DATABASE, f"cannot be opened: {first_line(error)}")
        with connection or nullcontext() as database:
            for name in self.tables:
                yield from guarded(name, lambda: self._rows(name, database))  # noqa: B023
            if database is not None:
                yield from guarded(DATABASE, lambda: self._definitions(database))
        yield from guarded(DICTIONARY, self._columns)
        yield from guarded(PACKAGE, self._package)
        yield from guarded(CROISSANT, self._croissant)
        yield from self._versions()

    def _is_sound(self, name: str) -> bool:
        return name not in self.bad and Path(name).name == name and (self.folder / name).is_file()

    def _tables_listed(self) -> Problems:
        """Each table of release.json stands in both formats, and no other does."""
        wanted = {f"{name}{suffix}" for name in self.tables for suffix in (".parquet", ".csv")}
        there = {path.name for path in self.folder.iterdir() if path.suffix in {".parquet", ".csv"}}
        yield from (Problem(name, "is missing") for name in sorted(wanted - there - self.bad))
        yield from (Problem(name, f"is of no table that {RELEASE} names") for name in sorted(there - wanted - self.bad))

    def _connected(self) -> duckdb.DuckDBPyConnection | None:
        if not self._is_sound(DATABASE):
            return None
        return opened(self.folder / DATABASE)

    def _rows(self, name: str, database: duckdb.DuckDBPyConnection | None) -> Problems:
        """The rows of one table in Parquet, CSV and DuckDB against their count and digest."""
        parquet, text, told = parquet_name(name), f"{name}.csv", self.tables[name]
        if not self._is_sound(parquet):
            return
        rows = pq.read_table(self.folder / parquet)
        if (rows.num_rows, rows_digest(rows)) != (told["rows"], told["rows_sha256"]):
            yield Problem(parquet, f"holds other rows than {RELEASE} says")
        if self._is_sound(text) and not _equal(rows, read_csv(self.folder / text, rows.schema)):
            yield Problem(text, f"holds other rows than {parquet}")
        if database is not None:
            names = ", ".join(f'"{column}"' for column in rows.column_names)
            if not _equal(rows, database.sql(f'SELECT {names} FROM "{name}"').to_arrow_table()):
                yield Problem(DATABASE, f"holds other rows of {name} than {parquet}")

    def _definitions(self, database: duckdb.DuckDBPyConnection) -> Problems:
        found = definitions(database)
        for name in sorted(found.keys() | self.views.keys()):
            if found.get(name) != self.views.get(name):
                yield Problem(DATABASE, f"defines {name} otherwise than {RELEASE} says")

    def _columns(self) -> Problems:
        """Name, type and unit of every column in Parquet, in the dictionary and in datapackage.json."""
        if not self._is_sound(parquet_name(DICTIONARY)):
            return
        told: dict[str, Columns] = {}
        for row in pq.read_table(self.folder / parquet_name(DICTIONARY)).to_pylist():
            if row["column_name"]:
                told.setdefault(row["table_name"], []).append((row["column_name"], row["type"], row["unit"]))
        described = {resource["path"]: _fields(resource) for resource in self.package["resources"]}
        for name in filter(lambda name: self._is_sound(parquet_name(name)), self.tables):
            found = _parquet_columns(self.folder / parquet_name(name))
            if found != told.get(name):
                yield Problem(parquet_name(name), "has other columns than the dictionary says")
            for path in (parquet_name(name), f"{name}.csv"):
                if found != described.get(path):
                    yield Problem(PACKAGE, f"tells other columns of {path} than there are")

    def _package(self) -> Problems:
        yield from self._all_described(PACKAGE, {resource["path"] for resource in self.package["resources"]})
        for resource in self.package["resources"]:
            path = self.folder / resource["path"]
            if self._is_sound(resource["path"]):
                found = (path.stat().st_size, f"sha256:{self.digests.get(path.name)}")
                if found != (resource["bytes"], resource["hash"]):
                    yield Problem(PACKAGE, f"tells other bytes or another hash of {path.name}")

    def _croissant(self) -> Problems:
        files = self.croissant["distribution"]
        yield from self._all_described(CROISSANT, {file["contentUrl"] for file in files})
        for file in files:
            name = file["contentUrl"]
            if self._is_sound(name) and self.digests.get(name) != file["sha256"]:
                yield Problem(CROISSANT, f"tells another sha256 of {name}")

    def _all_described(self, place: str, found: set[str]) -> Problems:
        wanted = {f"{name}{suffix}" for name in self.tables for suffix in (".parquet", ".csv")}
        yield from (Problem(place, f"says nothing of {name}") for name in sorted(wanted - found))
        yield from (Problem(place, f"describes {name}, which is no table") for name in sorted(found - wanted))

    def _versions(self) -> Problems:
        told = {PACKAGE: self.package.get("version"), CROISSANT: self.croissant.get("version")}
        if self._is_sound(CITATION):
            found = VERSIONED.search((self.folder / CITATION).read_text(encoding="utf-8"))
            told[CITATION] = found[1] if found else None
        for name, version in told.items():
            if version != self.version:
                yield Problem(name, f"is of version {version}, {RELEASE} of {self.version}")


def _equal(one: pa.Table, other: pa.Table) -> bool:
    """The same rows in any order; where the order is the same no sort is needed."""
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return False
    bare = one.replace_schema_metadata()
    return bool(bare.equals(other.cast(pa.schema([field.remove_metadata() for field in bare.schema])))) or (
        rows_digest(one) == rows_digest(other)
    )


def _parquet_columns(path: Path) -> Columns:
    fields = pq.read_schema(path)
    units = [(field.metadata or {}).get(b"unit") for field in fields]
    return [
        (field.name, sql_type(field.type), unit.decode() if unit else None)
        for field, unit in zip(fields, units, strict=True)
    ]


def _fields(resource: Mapping[str, Any]) -> Columns:
    return [
        (field["name"], PACKAGE_TYPES.get(field["type"], field["type"]), field.get("unit"))
        for field in resource["schema"]["fields"]
    ]
