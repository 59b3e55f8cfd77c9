"""The ledger apart from a build: claims documents of a folder, over the tables of a warehouse."""

from __future__ import annotations

import csv
import runpy
import shutil
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from conftest import RAW
from ipu_results.build import Limits, read_source
from ipu_results.recompute.evaluate import claim_frames
from ipu_results.schema import TABLES
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.sources.catalogue import load_catalogue

OWN = ("claims", "recomputations", "contradictions", "build")
BLOG = "graphcore-mk2-blog-2020-12-09.csv"
CHARTS = "graphcore-mk2-charts-sdk-1.4.csv"
PAGE = "graphcore-performance-2023-07-04.csv"
CONTRADICTIONS = "contradictions.csv"
seal = runpy.run_path(str(RAW / "claims" / "seal.py"))["seal"]


def tables_of(warehouse: Path) -> dict[str, pd.DataFrame]:
    """The tables that recomputations read."""
    names = [one.name for one in TABLES if one.name not in OWN]
    return {name: pq.read_table(warehouse / f"{name}.parquet").to_pandas() for name in names}


def ledger_of(raw: Path, frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of the ledger from the claims documents of `raw`."""
    documents = [one for one in load_catalogue(raw) if one.reader in ("claims", "contradictions")]
    sources = [read_source(one, load_vocabulary(), Limits(), lambda *_: None) for one in documents]
    texts = {source.document.document_id: source.recomputations for source in sources}
    return claim_frames([source.normalised for source in sources], texts, frames)


def claims_folder(target: Path) -> Path:
    """A copy of the claims alone."""
    shutil.copytree(RAW / "claims", target / "claims", ignore=shutil.ignore_patterns("__pycache__"))
    return target


def rows_of(raw: Path, file: str) -> list[dict[str, str]]:
    with (raw / "claims" / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def rewrite(raw: Path, file: str, rows: list[dict[str, str]]) -> None:
    """Replace the rows of a claims file."""
    with (raw / "claims" / file).open("w", encoding="utf-8", newline="") as lines:
        out = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    seal(raw / "claims")


def change(raw: Path, file: str, name: str, **values: str) -> None:
    """Change cells of one claim or contradiction."""
    rows = rows_of(raw, file)
    key = next(iter(rows[0]))
    [row] = [row for row in rows if row[key] == name]
    row.update(values)
    rewrite(raw, file, rows)


def rewrite_sql(raw: Path, name: str, text: str | bytes) -> None:
    """Replace a recomputation."""
    data = text.encode() if isinstance(text, str) else text
    (raw / "claims" / "sql" / f"{name}.sql").write_bytes(data)
    seal(raw / "claims")
