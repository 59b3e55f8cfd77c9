"""Each script of the site's data by name, and the step that writes them all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from pipeline.files import write_whole
from pipeline.query import open_warehouse
from pipeline.site import charts, emulated, ledger, provenance, results, sql
from pipeline.site.script import script
from pipeline.write import parquet_name
from schema import TABLES

Made = Callable[[duckdb.DuckDBPyConnection], Any]

SCRIPTS: Mapping[str, Made] = {
    "provenance": provenance.data,
    "mlperf": provenance.logs,
    "claims": ledger.data,
    "charts": charts.data,
    "emulator": emulated.data,
    "sql": sql.data,
}


def build(release: Path, out: Path) -> list[Path]:
    """The files written: a script per view of the site, and the Parquet files of the release as they are.

    Raises WarehouseError for a folder that holds no whole release.
    """
    with open_warehouse(release) as connection:
        made = {name: script(name, make(connection)) for name, make in SCRIPTS.items()}
        made["results"] = script("results", results.data(connection, results.version(release)))
    written = [_write(out / f"{name}.js", text) for name, text in sorted(made.items())]
    return [*written, *(_copy(release / parquet_name(table.name), out / "parquet") for table in TABLES)]


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())
    return path


def _copy(path: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(path, folder / path.name))
