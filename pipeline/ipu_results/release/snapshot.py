"""What a release or a warehouse holds without its rows: tables, columns, keys and definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ipu_results.errors import UnreadableReleaseError, WarehouseError
from ipu_results.kit.text import escape_unprintable
from ipu_results.record.store.files import DATABASE
from ipu_results.record.store.query import open_parquet
from ipu_results.release.database import read_definitions
from ipu_results.release.files import PACKAGE, RELEASE, get_sql_name, list_files, read_json
from ipu_results.schema import SQL, TABLES, VIEWS, quote
from ipu_results.schema.frames import ARROW

GLOB = re.compile(r"[*?\[]")  # what DuckDB takes for a pattern in a path
SQL_TYPES = {ARROW[kind]: SQL[kind] for kind in ARROW}
KNOWN_TABLES = {table.sql_name: table for table in TABLES}

LEVEL_OF_UNKNOWN = "major"  # of a column that the schema does not have
Keys = Mapping[str, tuple[str, ...]]  # the columns of the primary key, by table


@dataclass(frozen=True, slots=True)
class SnapshotColumn:
    """A column of a Parquet file.

    `type` is named as in SQL. `level` is the part of the version that a release must raise if a
    value in the column changed.
    """

    type: str
    unit: str | None
    description: str | None
    is_number: bool
    level: str

    @property
    def is_figure(self) -> bool:
        """Whether it holds figures of the data: numbers, but no metadata and no derived counts."""
        return self.is_number and self.level == "major"


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """A Parquet file.

    `key` is empty if neither the schema nor datapackage.json names a primary key, `label` if no
    columns of it name a row to a person.
    """

    name: str
    path: Path
    rows: int
    columns: Mapping[str, SnapshotColumn]
    key: tuple[str, ...]
    label: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The table as a FROM clause of DuckDB names it, whatever characters the path has."""
        # in brackets a sign stands for itself
        path = GLOB.sub(lambda sign: f"[{sign[0]}]", str(self.path))
        return f"read_parquet({quote(path)}, hive_partitioning = false)"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The tables of a folder; `metadata` is release.json and `views` the digests of definitions,
    empty if missing.
    """

    path: Path
    tables: Mapping[str, SnapshotTable]
    metadata: Mapping[str, Any]
    views: Mapping[str, str]

    @property
    def name(self) -> str:
        """The version, or the name of a folder without one; safe to print."""
        name = self.metadata.get("version") or self.path.resolve().name
        return escape_unprintable(str(name))

    @property
    def title(self) -> str:
        """The path with the version, safe to print."""
        title = str(self.path)
        if self.metadata.get("version"):
            title = f"{title} ({self.metadata['version']})"
        return escape_unprintable(title)


def read_snapshot(folder: Path) -> Snapshot:
    """Read a release or a warehouse, without the files of views, since they follow from the tables.

    Raises UnreadableReleaseError if it holds no table or a damaged one.
    """
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    metadata = read_json(folder / RELEASE)
    # a folder of another version may have views that this one does not know
    views = {view.sql_name for view in VIEWS}
    views.update(metadata.get("view_files") or ())
    paths = {}
    for file, path in sorted(list_files(folder).items()):
        name = get_sql_name(file)
        if file.endswith(".parquet") and name not in views:
            paths[name] = path
    if not paths:
        message = "is neither a release nor a warehouse: no Parquet file"
        raise UnreadableReleaseError(message, place=str(folder))
    keys = _read_package_keys(folder)
    tables = {}
    for name, path in paths.items():
        tables[name] = _read_table(name, path, keys)
    return Snapshot(folder, tables, metadata, read_definitions(folder / DATABASE))


def _read_table(name: str, path: Path, keys: Keys) -> SnapshotTable:
    known = KNOWN_TABLES.get(name)
    known_columns = known.columns if known else ()
    levels = {column.name: column.change_level for column in known_columns}
    columns = {}
    try:
        with open_parquet(path) as file:
            for field in file.schema_arrow:
                level = levels.get(field.name, LEVEL_OF_UNKNOWN)
                columns[field.name] = _read_column(field, level)
            rows = file.metadata.num_rows
    except WarehouseError as error:
        raise UnreadableReleaseError(error.message, place=str(path)) from error
    if known is None:
        return SnapshotTable(name, path, rows, columns, keys.get(name, ()), label=())
    # the schema may name a column that an older release does not have
    label = tuple(column for column in known.label if column in columns)
    return SnapshotTable(name, path, rows, columns, known.key, label)


def _read_column(field: pa.Field, level: str) -> SnapshotColumn:
    """Return a column of a Parquet file, with unit and description from its metadata."""
    texts = {}
    for name, value in (field.metadata or {}).items():
        # another writer may have put any bytes there
        texts[name.decode()] = value.decode(errors="replace")
    return SnapshotColumn(
        SQL_TYPES.get(field.type, str(field.type)),
        texts.get("unit"),
        texts.get("description"),
        is_number=_is_number(field.type),
        level=level,
    )


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _read_package_keys(folder: Path) -> Keys:
    """Return the primary keys that datapackage.json names, by table; none if it is malformed."""
    keys = {}
    try:
        for resource in read_json(folder / PACKAGE)["resources"]:
            schema = resource.get("schema", {})
            if "primaryKey" in schema:
                name = get_sql_name(resource["path"])
                keys[name] = tuple(map(str, schema["primaryKey"]))
    except (LookupError, TypeError, AttributeError):
        # `diff_releases` refuses a table without a key, and says so
        return {}
    return keys
