"""The ledger apart from a build: claims documents of a folder, over the tables of a warehouse."""

from __future__ import annotations

import csv
import hashlib
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
from conftest import RAW, reseal

from pipeline.catalogue import load_catalogue
from pipeline.check.claims import claim_frames
from pipeline.ingest import Limits, read_source
from pipeline.vocabulary import vocabulary
from schema import TABLES

OWN = ("claims", "recomputations", "contradictions", "build")
BLOG = "claims/graphcore-mk2-blog-2020-12-09.csv"
CHARTS = "claims/graphcore-mk2-charts-sdk-1.4.csv"
BOTH = "claims/contradictions.csv"


def tables_of(warehouse: Path) -> dict[str, pd.DataFrame]:
    """The tables that recomputations read."""
    return {
        one.name: pq.read_table(warehouse / f"{one.name}.parquet").to_pandas() for one in TABLES if one.name not in OWN
    }


def ledger_of(raw: Path, frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of the ledger from the claims documents of `raw`."""
    documents = [one for one in load_catalogue(raw) if one.reader in ("claims", "contradictions")]
    sources = [read_source(one, vocabulary(), Limits(), lambda *_: None) for one in documents]
    return claim_frames([source.normalised for source in sources], frames)


def rows_of(raw: Path, file: str) -> list[dict[str, str]]:
    with (raw / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def rewrite(raw: Path, file: str, rows: list[dict[str, str]]) -> None:
    """Replace the rows of a claims file, and seal it with their count."""
    with (raw / file).open("w", encoding="utf-8", newline="") as lines:
        out = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    reseal(raw, file)
    sidecar = raw / f"{file}.toml"
    text = re.sub(r"rows = \d+", f"rows = {len(rows)}", sidecar.read_text(encoding="utf-8"))
    sidecar.write_text(text, encoding="utf-8")


def change(raw: Path, file: str, claim_id: str, **values: str) -> None:
    """Change cells of one claim or contradiction."""
    rows = rows_of(raw, file)
    key = next(iter(rows[0]))
    [row] = [row for row in rows if row[key] == claim_id]
    row.update(values)
    rewrite(raw, file, rows)


def rewrite_sql(raw: Path, name: str, text: str) -> None:
    """Replace a recomputation, and seal it in every sidecar that names it."""
    path = raw / "claims" / "sql" / f"{name}.sql"
    old = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(text, encoding="utf-8")
    new = hashlib.sha256(path.read_bytes()).hexdigest()
    for sidecar in (raw / "claims").glob("*.toml"):
        sidecar.write_text(sidecar.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def claims_folder(target: Path) -> Path:
    """A copy of the claims alone."""
    shutil.copytree(RAW / "claims", target / "claims", ignore=shutil.ignore_patterns("__pycache__"))
    return target
