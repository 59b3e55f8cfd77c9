"""One side of a comparison: the Parquet files of a release or of a warehouse, their columns and their keys."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results.errors import UnreadableReleaseError
from ipu_results._util.text import escape_unprintable
from ipu_results.release.database import read_definitions
from ipu_results.release.names import PACKAGE, RELEASE
from ipu_results._util.sql import get_first_line
from ipu_results.store.files import DATABASE
from ipu_results.schema import TABLES
from ipu_results.schema.generate import ARROW, SQL, quote

SUFFIX = ".parquet"
GLOB = re.compile(r"[*?\[]")
TYPES = {ARROW[kind]: SQL[kind] for kind in ARROW}
KNOWN = {table.name: table for table in TABLES}


@dataclass(frozen=True, slots=True)
class SideColumn:
    name: str
    type: str
    unit: str | None
    description: str | None
    is_number: bool


@dataclass(frozen=True, slots=True)
class SideTable:
    """A Parquet file; `key` is empty where nothing says which columns no two rows share."""

    name: str
    path: Path
    rows: int
    columns: Mapping[str, SideColumn]
    key: tuple[str, ...]

    @property
    def sql(self) -> str:
        """What stands after FROM in DuckDB, whatever characters the path has."""
        path = GLOB.sub(lambda found: f"[{found[0]}]", str(self.path))
        return f"read_parquet({quote(path)}, hive_partitioning = false)"


@dataclass(frozen=True, slots=True)
class Side:
    """`told` is what release.json says, and empty for a warehouse.

    `views` has a digest for the definition of each view and macro, and is empty where there is no DuckDB file.
    """

    path: Path
    tables: Mapping[str, SideTable]
    told: Mapping[str, Any]
    views: Mapping[str, str]

    @property
    def name(self) -> str:
        version = self.told.get("version")
        return escape_unprintable(f"{self.path} ({version})" if version else str(self.path))


def read_side(folder: Path) -> Side:
    """The tables of a folder. Raises UnreadableReleaseError where it holds none or one is damaged."""
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise UnreadableReleaseError("is neither a release nor a warehouse: it holds no Parquet file", place=str(folder))
    keys = _package_keys(folder)
    tables = (_table(path, keys) for path in paths)
    return Side(
        folder,
        {table.name: table for table in tables},
        read_json(folder / RELEASE),
        read_definitions(folder / DATABASE),
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is no such file. Raises UnreadableReleaseError for anything else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refused)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableReleaseError(f"is no JSON: {get_first_line(error)}", place=str(path)) from error
    if not isinstance(found, dict):
        raise UnreadableReleaseError("is no JSON object", place=str(path))
    return found


def _refused(constant: str) -> None:
    """JSON has no NaN and no Infinity; Python reads them."""
    raise ValueError(f"{constant} is none")


def sql_type(arrow: pa.DataType) -> str:
    return TYPES.get(arrow, str(arrow))


def _table(path: Path, keys: Mapping[str, tuple[str, ...]]) -> SideTable:
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (OSError, pa.ArrowException) as error:
        raise UnreadableReleaseError(f"cannot be read: {get_first_line(error)}", place=str(path)) from error
    if len({column.lower() for column in schema.names}) < len(schema.names):
        raise UnreadableReleaseError("has two columns of one name", place=str(path))
    name = path.name.removesuffix(SUFFIX)
    key = KNOWN[name].key if name in KNOWN else keys.get(name, ())
    return SideTable(name, path, rows, {field.name: _column(field) for field in schema}, key)


def _column(field: pa.Field) -> SideColumn:
    told = {key.decode(): value.decode(errors="replace") for key, value in (field.metadata or {}).items()}
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)
    return SideColumn(field.name, sql_type(field.type), told.get("unit"), told.get("description"), is_number)


def _package_keys(folder: Path) -> dict[str, tuple[str, ...]]:
    """The primary keys that datapackage.json names, by table."""
    found: dict[str, tuple[str, ...]] = {}
    resources = read_json(folder / PACKAGE).get("resources")
    for resource in resources if isinstance(resources, list) else ():
        schema = resource.get("schema") if isinstance(resource, dict) else None
        key = schema.get("primaryKey") if isinstance(schema, dict) else None
        key = [key] if isinstance(key, str) else key
        if isinstance(key, list) and all(isinstance(name, str) for name in key):
            found[str(resource.get("path", "")).rpartition(".")[0]] = tuple(key)
    return found
