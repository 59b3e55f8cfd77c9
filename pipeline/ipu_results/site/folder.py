"""Each script of the site's data by name, and the step that writes them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb

from ipu_results._util.files import write_atomically
from ipu_results.errors import WarehouseError
from ipu_results.release import check
from ipu_results.release.names import RELEASE
from ipu_results.schema import TABLES
from ipu_results.site import charts, emulated, ledger, provenance, results, sql
from ipu_results.site.script import script
from ipu_results.store.files import get_parquet_name
from ipu_results.store.query import open_warehouse

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

    Raises WarehouseError for a folder that holds no whole release, and for a release that its own sums contradict.
    """
    _verify(release)
    with open_warehouse(release) as connection:
        made = {name: script(name, make(connection)) for name, make in SCRIPTS.items()}
        made["results"] = script("results", results.data(connection, results.version(release)))
    written = [_write(out / f"{name}.js", text.encode()) for name, text in sorted(made.items())]
    names = [get_parquet_name(table.name) for table in TABLES]
    return [*written, *(_write(out / "parquet" / name, (release / name).read_bytes()) for name in names)]


def _verify(release: Path) -> None:
    """The page's tables come from DuckDB's file and its SQL from Parquet, so a release must agree with its own sums.

    A warehouse that was never published has none.
    """
    if (release / RELEASE).exists() and (problems := check(release)):
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise WarehouseError(f"is no release as published: {problems[0].line}{more}", place=str(release))


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return path
