"""The same counts and sums of a release in every reader."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from ipu_results.release.database import DEFINITIONS, hash_sql
from ipu_results.schema import TABLES
from ipu_results.store.files import DATABASE
from release_support import read_record

NAMES = [table.name for table in TABLES]
FIGURES = ("throughput", "latency_ms", "power_w", "time_to_train_s")

Totals = tuple[dict[str, int], dict[str, float]]


@pytest.fixture(scope="module")
def expected(release: Path) -> Totals:
    """Read row counts by table and sums of figures from the DuckDB file with the current DuckDB."""
    with duckdb.connect(str(release / DATABASE), read_only=True) as connection:
        counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in NAMES}
        sums = {name: connection.execute(f"SELECT sum({name}) FROM results").fetchall()[0][0] for name in FIGURES}
    return counts, sums


def assert_same(counts: dict[str, int], sums: dict[str, float], expected: Totals) -> None:
    assert counts == expected[0]
    assert sums == pytest.approx(expected[1], rel=1e-12)


def test_release_record_states_the_counts(release: Path, expected: Totals) -> None:
    assert {name: table["rows"] for name, table in read_record(release)["tables"].items()} == expected[0]


READ_TOTALS = """
import duckdb, json, sys
assert duckdb.__version__ == '1.2.2', duckdb.__version__
folder, names, figures, definitions = sys.argv[1], sys.argv[2].split(), sys.argv[3].split(), sys.argv[4]
c = duckdb.connect()
c.execute(f"ATTACH '{folder}/ipu_results.duckdb' AS ipu (READ_ONLY)")
for source in ('ipu.{}', "read_parquet('" + folder + "/{}.parquet')"):
    scalar = lambda sql: c.execute(sql).fetchall()[0][0]
    counts = {name: scalar(f"SELECT count(*) FROM {source.format(name)}") for name in names}
    sums = {name: scalar(f"SELECT sum({name}) FROM {source.format('results')}") for name in figures}
    print(json.dumps([counts, sums]))
print(json.dumps(c.execute(definitions).fetchall()))
"""


@pytest.mark.slow
def test_duckdb_1_2_2_reads_the_same_rows_and_definitions(release: Path, old_duckdb: Path, expected: Totals) -> None:
    command = [sys.executable, "-c", READ_TOTALS, str(release), " ".join(NAMES), " ".join(FIGURES), DEFINITIONS]
    env = {"PYTHONPATH": str(old_duckdb), "PATH": os.environ["PATH"]}
    reader = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert reader.returncode == 0, reader.stderr[-500:]
    *totals, definitions = map(json.loads, reader.stdout.splitlines())
    for counts, sums in totals:
        assert_same(counts, sums, expected)
    assert {name: hash_sql(sql) for name, sql in definitions} == read_record(release)["views"]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_pandas_reads_the_same_rows(suffix: str, release: Path, expected: Totals) -> None:
    read = pd.read_parquet if suffix == "parquet" else pd.read_csv
    frames = {name: read(release / f"{name}.{suffix}") for name in NAMES}
    sums = {name: float(frames["results"][name].sum()) for name in FIGURES}
    assert_same({name: len(frame) for name, frame in frames.items()}, sums, expected)


def test_pyarrow_reads_the_same_rows(release: Path, expected: Totals) -> None:
    tables = {name: pq.read_table(release / f"{name}.parquet") for name in NAMES}
    sums = {name: pc.sum(tables["results"].column(name)).as_py() for name in FIGURES}
    assert_same({name: table.num_rows for name, table in tables.items()}, sums, expected)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_polars_reads_the_same_rows(suffix: str, release: Path, expected: Totals) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")

    def read(name: str) -> Any:
        path = release / f"{name}.{suffix}"
        return polars.read_parquet(path) if suffix == "parquet" else polars.read_csv(path, infer_schema_length=None)

    frames = {name: read(name) for name in NAMES}
    sums = {name: frames["results"][name].sum() for name in FIGURES}
    assert_same({name: frame.height for name, frame in frames.items()}, sums, expected)


def test_commands_of_the_card_load_the_release(
    release: Path, expected: Totals, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (release / "README.md").read_text(encoding="utf-8").split("## How to load it")[1]
    commands = dict(re.findall(r"(?m)^\| ([\w-]+) \| `(.+?)`", section))
    monkeypatch.chdir(release)
    with duckdb.connect() as connection:
        assert len(connection.execute(commands["DuckDB"]).fetchall()) == 5
    count = expected[0]["results"]
    assert len(eval(commands["pandas"], {"pd": pd})) == count
    assert len(eval(commands["pyarrow"], {"pq": pq})) == count
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert len(eval(commands["polars"], {"pl": polars})) == count
