"""Claims evaluated without a build: the claims documents of a folder, over the tables of a
warehouse.
"""

from __future__ import annotations

import csv
import runpy
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
from ipu_results.kit.sql import open_engine
from ipu_results.record.recompute.evaluate import evaluate_claims
from ipu_results.record.store.tables import build_arrow_tables
from ipu_results.schema import TABLES

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

# the tables of the last evaluation and their engine, which the next one is likely to need
OPENED: list[Any] = []

Row = dict[str, str]
Frames = Mapping[str, pd.DataFrame]


def read_frames(warehouse: Path) -> dict[str, pd.DataFrame]:
    """Return the tables that recomputations read."""
    names = [table.name for table in TABLES if table.name not in COMPUTED]
    return {name: pd.read_parquet(locate_table(warehouse, name)) for name in names}


def evaluate(raw: Path, frames: Frames) -> dict[str, pd.DataFrame]:
    """Evaluate the claims documents of `raw`."""
    documents = load_documents(raw)
    if not (OPENED and OPENED[0] is frames):
        OPENED[:] = frames, ExitStack()
        OPENED.append(OPENED[1].enter_context(open_engine(build_arrow_tables(frames))))
    engine = OPENED[2]
    engine.execute("DETACH DATABASE IF EXISTS recomputing")  # of a recomputation that failed
    return evaluate_claims(engine, documents, frames)


def copy_claims(target: Path, *files: str) -> Path:
    """Copy the claims, or only some of their documents, with all recomputations."""
    shutil.copytree(RAW / "claims", target / "claims", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (target / "claims").glob("*.csv") if files else ():
        if path.name not in files:
            path.unlink()
            path.with_name(f"{path.name}.toml").unlink()
    return target


def read_rows(raw: Path, file: str) -> list[Row]:
    with (raw / "claims" / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def write_rows(raw: Path, file: str, rows: list[Row]) -> None:
    with (raw / "claims" / file).open("w", encoding="utf-8", newline="") as lines:
        out = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    update_checksums(raw / "claims")


def change_row(raw: Path, file: str, name: str, **values: str) -> None:
    """Change cells of one claim or contradiction."""
    rows = read_rows(raw, file)
    key = next(iter(rows[0]))
    [row] = [row for row in rows if row[key] == name]
    row.update(values)
    write_rows(raw, file, rows)


def write_sql(raw: Path, name: str, text: str | bytes) -> None:
    """Replace a recomputation."""
    data = text.encode() if isinstance(text, str) else text
    (raw / "claims" / "sql" / f"{name}.sql").write_bytes(data)
    update_checksums(raw / "claims")
