"""Read what a release or a warehouse holds, without its rows: tables, columns, keys and definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results.errors import UnreadableReleaseError
from ipu_results.ground.sql import get_first_line
from ipu_results.ground.text import escape_unprintable
from ipu_results.release.files import PACKAGE, RELEASE, read_definitions
from ipu_results.schema import SQL, TABLES, VIEWS, quote
from ipu_results.schema.frames import ARROW
from ipu_results.store.files import DATABASE

SUFFIX = ".parquet"
GLOB = re.compile(r"[*?\[]")
SQL_TYPES = {ARROW[kind]: SQL[kind] for kind in ARROW}
NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
KNOWN_TABLES = {table.name: table for table in TABLES}


@dataclass(frozen=True, slots=True)
class SnapshotColumn:
    """A column of a Parquet file; `type` as SQL names it."""

    name: str
    type: str
    unit: str | None
    description: str | None
    is_number: bool


@dataclass(frozen=True, slots=True)
class SnapshotTable:
    """A Parquet file; `key` is empty if neither the schema nor datapackage.json names a primary key."""

    name: str
    path: Path
    rows: int
    columns: Mapping[str, SnapshotColumn]
    key: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The table as a FROM clause of DuckDB names it, whatever characters the path has."""
        path = GLOB.sub(lambda match: f"[{match[0]}]", str(self.path))
        return f"read_parquet({quote(path)}, hive_partitioning = false)"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The tables of a folder; `metadata` is release.json and `views` the digests of definitions, empty if missing."""

    path: Path
    tables: Mapping[str, SnapshotTable]
    metadata: Mapping[str, Any]
    views: Mapping[str, str]

    @property
    def name(self) -> str:
        """The version, or the name of a folder without one; safe to print."""
        return escape_unprintable(str(self.metadata.get("version") or self.path.resolve().name))

    @property
    def title(self) -> str:
        """The path with the version, safe to print."""
        version = self.metadata.get("version")
        return escape_unprintable(f"{self.path} ({version})" if version else str(self.path))


def read_snapshot(folder: Path) -> Snapshot:
    """Read a release or a warehouse, without the files of views, since they follow from the tables.

    Raises UnreadableReleaseError if it holds no table or a damaged one.
    """
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    metadata = read_json(folder / RELEASE)
    views = {view.name for view in VIEWS} | set(metadata.get("view_files") or ())
    paths = sorted(path for path in folder.glob(f"*{SUFFIX}") if path.stem not in views)
    if not paths:
        raise UnreadableReleaseError("is neither a release nor a warehouse: no Parquet file", place=str(folder))
    keys = _read_package_keys(folder)
    tables = {table.name: table for table in (_read_table(path, keys) for path in paths)}
    return Snapshot(folder, tables, metadata, read_definitions(folder / DATABASE))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, empty without the file. Raises UnreadableReleaseError for anything else."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableReleaseError(f"is not a JSON object: {get_first_line(error)}", place=str(path)) from error


def read_columns(schema: pa.Schema) -> dict[str, SnapshotColumn]:
    """Return the columns of a Parquet file by name, with unit and description from the field metadata."""
    columns = {}
    for field in schema:
        texts = {key.decode(): value.decode(errors="replace") for key, value in (field.metadata or {}).items()}
        sql_type, is_number = SQL_TYPES.get(field.type, str(field.type)), any(check(field.type) for check in NUMBERS)
        columns[field.name] = SnapshotColumn(
            field.name, sql_type, texts.get("unit"), texts.get("description"), is_number
        )
    return columns


def _read_table(path: Path, keys: Mapping[str, tuple[str, ...]]) -> SnapshotTable:
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise UnreadableReleaseError(f"cannot be read: {get_first_line(error)}", place=str(path)) from error
    name = path.name.removesuffix(SUFFIX)
    key = KNOWN_TABLES[name].key if name in KNOWN_TABLES else keys.get(name, ())
    return SnapshotTable(name, path, rows, read_columns(schema), key)


def _read_package_keys(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the primary keys that datapackage.json names, by table; none if it is malformed."""
    try:
        resources = read_json(folder / PACKAGE)["resources"]
        return {
            Path(resource["path"]).stem: tuple(map(str, resource["schema"]["primaryKey"]))
            for resource in resources
            if "primaryKey" in resource.get("schema", {})
        }
    except (LookupError, TypeError, AttributeError):
        return {}
