"""What the files of a release hold, against what the release says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results.errors import UnreadableReleaseError
from ipu_results.release import database
from ipu_results.release.descriptions import Columns, Found, Told, croissant_problems, package_problems
from ipu_results.release.names import (
    CITATION,
    CROISSANT,
    DERIVED,
    DICTIONARY,
    FORMAT,
    PACKAGE,
    RELEASE,
    SUFFIXES,
    table_files,
)
from ipu_results.release.problem import Problem, Problems, guarded
from ipu_results.release.side import read_json, sql_type
from ipu_results.release.sums import SUMS, read_sums
from ipu_results.release.texts import read_csv
from ipu_results._util.sql import get_first_line
from ipu_results.store.files import BUILD_ID, DATABASE, get_parquet_name
from ipu_results.store.digest import digest_rows

CITED = re.compile(r"(?m)^(version|date-released): (.*)$")
DAY = len("2026-01-31")


@dataclass(frozen=True, slots=True)
class Contents:
    """A release whose descriptions have the right digests; files in `bad` are not opened.

    `digests` are those of SHA256SUMS, which hold for every file that is not in `bad`.
    """

    folder: Path
    bad: frozenset[str]
    digests: Mapping[str, str]
    version: str
    published_on: str
    build_id: str
    tables: Mapping[str, Told]
    views: Mapping[str, str]
    package: Told
    croissant: Told

    @classmethod
    def read(cls, folder: Path, bad: frozenset[str]) -> Contents:
        """Raises what `guarded` takes where release.json is not as `publish` writes it."""
        told, others = read_json(folder / RELEASE), (read_json(folder / name) for name in (PACKAGE, CROISSANT))
        if told["format"] != FORMAT:
            raise UnreadableReleaseError(f"is of format {told['format']}, and only {FORMAT} is known")
        words = told["version"], told["published_on"], told["build_id"]
        digests = read_sums(folder / SUMS).digests
        return cls(folder, bad, digests, *words, dict(told["tables"]), dict(told["views"]), *others)

    def problems(self) -> Problems:
        yield from self._tables_listed()
        connection = None
        try:
            if self._is_sound(DATABASE):
                connection = database.opened(self.folder / DATABASE)
        except duckdb.Error as error:
            yield Problem(DATABASE, f"cannot be opened: {get_first_line(error)}")
        with connection or nullcontext() as opened:
            for name in self.tables:
                yield from guarded(name, lambda: self._rows(name, opened))  # noqa: B023
            yield from guarded(get_parquet_name(DERIVED), self._build)
            yield from guarded(get_parquet_name(DICTIONARY), self._dictionary)
            if opened is not None:
                yield from guarded(DATABASE, lambda: self._database(opened))
            found = self._found(opened)
        yield from guarded(PACKAGE, lambda: package_problems(self.package, found))
        yield from guarded(CROISSANT, lambda: croissant_problems(self.croissant, found))
        yield from self._told_alike()

    def _is_sound(self, name: str) -> bool:
        return name not in self.bad and Path(name).name == name and (self.folder / name).is_file()

    def _tables_listed(self) -> Problems:
        """Each table of release.json stands in both formats, and no other does."""
        wanted = table_files(self.tables)
        there = {path.name for path in self.folder.iterdir() if path.suffix in SUFFIXES}
        yield from (Problem(name, "is missing") for name in sorted(wanted - there - self.bad))
        yield from (Problem(name, f"is of no table that {RELEASE} names") for name in sorted(there - wanted - self.bad))

    def _rows(self, name: str, opened: duckdb.DuckDBPyConnection | None) -> Problems:
        """The rows of one table in Parquet, CSV and DuckDB against their count and digest."""
        parquet, text, told = get_parquet_name(name), f"{name}.csv", self.tables[name]
        if not self._is_sound(parquet):
            return
        rows = pq.read_table(self.folder / parquet)
        if (rows.schema.metadata or {}).get(BUILD_ID.encode()) != self.build_id.encode():
            yield Problem(parquet, f"is of another build than {RELEASE} says")
        if (rows.num_rows, digest_rows(rows)) != (told["rows"], told["rows_sha256"]):
            yield Problem(parquet, f"holds other rows than {RELEASE} says")
        if self._is_sound(text) and not _equal(rows, read_csv(self.folder / text, rows.schema)):
            yield Problem(text, f"holds other rows than {parquet}")
        if opened is not None:
            names = ", ".join(map(database.name_of, rows.column_names))
            if not _equal(rows, opened.sql(f"SELECT {names} FROM {database.name_of(name)}").to_arrow_table()):
                yield Problem(DATABASE, f"holds other rows of {name} than {parquet}")

    def _build(self) -> Problems:
        if self._is_sound(get_parquet_name(DERIVED)):
            rows = pq.read_table(self.folder / get_parquet_name(DERIVED)).to_pylist()
            for name in unlike_build(rows, self.tables, self.build_id):
                yield Problem(get_parquet_name(DERIVED), f"tells other rows or another build of {name} than {RELEASE}")

    def _dictionary(self) -> Problems:
        """The table `columns` against release.json and the Parquet files."""
        if not self._is_sound(get_parquet_name(DICTIONARY)):
            return
        kinds, told = _read_dictionary(self.folder)
        tables = {name for name, kind in kinds.items() if kind == "table"}
        for name in sorted(tables ^ self.tables.keys()):
            yield Problem(get_parquet_name(DICTIONARY), f"{'has' if name in tables else 'lacks'} the table {name}")
        for name in sorted((kinds.keys() - tables) ^ self.views.keys()):
            yield Problem(get_parquet_name(DICTIONARY), f"{'has' if name in kinds else 'lacks'} the view {name}")
        for name, columns in self._columns().items():
            if columns != told.get(name):
                yield Problem(get_parquet_name(name), "has other columns than the dictionary says")

    def _database(self, opened: duckdb.DuckDBPyConnection) -> Problems:
        """Definitions and columns in the DuckDB file against release.json and the table `columns`."""
        definitions = database.definitions(opened)
        for name in sorted(definitions.keys() | self.views.keys()):
            if definitions.get(name) != self.views.get(name):
                yield Problem(DATABASE, f"defines {name} otherwise than {RELEASE} says")
        if not self._is_sound(get_parquet_name(DICTIONARY)):
            return
        columns, (_, told) = database.columns(opened), _read_dictionary(self.folder)
        for name in sorted(columns.keys() | told.keys()):
            if columns.get(name) != [(column, kind) for column, kind, _ in told.get(name, ())]:
                yield Problem(DATABASE, f"has other columns of {name} than the dictionary says")

    def _columns(self) -> dict[str, Columns]:
        """Those of the Parquet files."""
        sound = [name for name in self.tables if self._is_sound(get_parquet_name(name))]
        return {name: _parquet_columns(self.folder / get_parquet_name(name)) for name in sound}

    def _found(self, opened: duckdb.DuckDBPyConnection | None) -> Found:
        sizes = {name: (self.folder / name).stat().st_size for name in self.digests if self._is_sound(name)}
        files = {name: (size, self.digests[name]) for name, size in sizes.items()}
        keys = database.keys(opened) if opened else {}
        links = database.links(opened) if opened else {}
        return Found(frozenset(self.tables), self._columns(), keys, links, files)

    def _told_alike(self) -> Problems:
        """Version and day in every file that tells them."""
        told = {
            PACKAGE: (self.package.get("version"), str(self.package.get("created"))[:DAY]),
            CROISSANT: (self.croissant.get("version"), self.croissant.get("datePublished")),
        }
        if self._is_sound(CITATION):
            cited = dict(CITED.findall((self.folder / CITATION).read_text(encoding="utf-8")))
            told[CITATION] = (cited.get("version"), cited.get("date-released"))
        for name, (version, day) in told.items():
            if version != self.version:
                yield Problem(name, f"is of version {version}, {RELEASE} of {self.version}")
            if day != self.published_on:
                yield Problem(name, f"is of {day}, {RELEASE} of {self.published_on}")


def unlike_build(rows: Iterable[Told], tables: Mapping[str, Told], build_id: str) -> list[str]:
    """The tables of which the rows of `build` tell another count, digest or build id."""
    found = {row["table_name"]: (row["row_count"], row["rows_sha256"], row["build_id"]) for row in rows}
    wanted = {name: (one["rows"], one["rows_sha256"], build_id) for name, one in tables.items() if name != DERIVED}
    return sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))


def _equal(one: pa.Table, other: pa.Table) -> bool:
    """The same rows in any order; where the order is the same no sort is needed."""
    if one.column_names != other.column_names or one.num_rows != other.num_rows:
        return False
    bare = one.replace_schema_metadata()
    return bool(bare.equals(other.cast(pa.schema([field.remove_metadata() for field in bare.schema])))) or (
        digest_rows(one) == digest_rows(other)
    )


def _read_dictionary(folder: Path) -> tuple[dict[str, str], dict[str, Columns]]:
    """Kind and columns of each table, view and macro in the table `columns`."""
    kinds: dict[str, str] = {}
    told: dict[str, Columns] = {}
    for row in pq.read_table(folder / get_parquet_name(DICTIONARY)).to_pylist():
        if row["column_name"]:
            told.setdefault(row["table_name"], []).append((row["column_name"], row["type"], row["unit"]))
        else:
            kinds[row["table_name"]] = row["type"]
    return kinds, told


def _parquet_columns(path: Path) -> Columns:
    fields = pq.read_schema(path)
    units = [(field.metadata or {}).get(b"unit") for field in fields]
    return [
        (field.name, sql_type(field.type), unit.decode() if unit else None)
        for field, unit in zip(fields, units, strict=True)
    ]
