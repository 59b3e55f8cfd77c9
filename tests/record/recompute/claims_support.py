"""Claims evaluated without a build: the claims documents of a folder, over the tables of a
warehouse.
"""

from __future__ import annotations

import csv
import runpy
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.parquet as pq
from ipu_results.kit.sql import open_engine
from ipu_results.record.recompute.evaluate import evaluate_claims
from ipu_results.record.recompute.run import RECOMPUTING
from ipu_results.schema import TABLES, table

from tests.conftest import RAW, load_documents
from tests.release.release_support import locate_table

COMPUTED = (
    "claims",
    "claim_conditions",
    "recomputations",
    "contradictions",
    "recomputation_inputs",
    "build",
)
BLOG = "graphcore-mk2-blog-2020-12-09.csv"
CHARTS = "graphcore-mk2-charts-sdk-1.4.csv"
PAGE = "graphcore-performance-2023-07-04.csv"
CONTRADICTIONS = "contradictions.csv"
CONDITIONS = "conditions.csv"
update_checksums = runpy.run_path(str(RAW / "claims" / "update_checksums.py"))["update_checksums"]

NAMES = tuple(table.name for table in TABLES if table.name not in COMPUTED)
"""The tables that recomputations read."""


@contextmanager
def open_tables(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with the tables that recomputations read, attached as `warehouse`."""
    tables = {}
    for name in NAMES:
        tables[table(name).sql_name] = pq.read_table(locate_table(warehouse, name))
    with open_engine(tables) as engine:
        yield engine


def evaluate(raw: Path, engine: duckdb.DuckDBPyConnection) -> dict[str, pd.DataFrame]:
    """Evaluate the claims documents of `raw` over the tables of `open_tables`."""
    try:
        return evaluate_claims(engine, load_documents(raw), NAMES)
    finally:  # a refused claim leaves it
        engine.execute(f"DETACH DATABASE IF EXISTS {RECOMPUTING}")


def copy_claims(target: Path, *files: str) -> Path:
    """Copy the claims, or only some of their documents, with all recomputations."""
    shutil.copytree(RAW / "claims", target / "claims", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (target / "claims").glob("*.csv") if files else ():
        if path.name not in files:
            path.unlink()
            path.with_name(f"{path.name}.toml").unlink()
    return target


def change_row(raw: Path, file: str, name: str, **values: str) -> None:
    """Change cells of one claim, contradiction or condition."""
    path = raw / "claims" / file
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    [row] = [row for row in rows if name in next(iter(row.items()))]
    row.update(values)
    with path.open("w", encoding="utf-8", newline="") as lines:
        out = csv.DictWriter(lines, list(row), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    update_checksums(raw / "claims")


def write_sql(raw: Path, name: str, sql: bytes) -> None:
    """Replace a recomputation."""
    (raw / "claims" / "sql" / f"{name}.sql").write_bytes(sql)
    update_checksums(raw / "claims")
