"""The same counts and sums of a release in every reader."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from ipu_results.release.database import DEFINITIONS, sql_digest
from ipu_results.schema import TABLES
from ipu_results.store.files import DATABASE

NAMES = [table.name for table in TABLES]
FIGURES = ("throughput", "latency_ms", "power_w", "time_to_train_s")

Read = tuple[dict[str, int], dict[str, float]]


@pytest.fixture(scope="module")
def expected(release: Path) -> Read:
    """By the DuckDB file and the current DuckDB."""
    with duckdb.connect(str(release / DATABASE), read_only=True) as connection:
        return asked(connection.execute)


def asked(execute) -> Read:  # type: ignore[no-untyped-def]
    counts = {name: execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in NAMES}
    sums = {name: execute(f"SELECT sum({name}) FROM results").fetchall()[0][0] for name in FIGURES}
    return counts, sums


def assert_same(found: Read, expected: Read) -> None:
    assert found[0] == expected[0]
    assert found[1] == pytest.approx(expected[1], rel=1e-12)


def test_the_counts_are_those_of_the_release(release: Path, expected: Read) -> None:
    told = json.loads((release / "release.json").read_text(encoding="utf-8"))["tables"]
    assert {name: counted["rows"] for name, counted in told.items()} == expected[0]


OLD = """
import duckdb, json, sys
assert duckdb.__version__ == '1.2.2', duckdb.__version__
folder, names, figures = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
c = duckdb.connect()
c.execute(f"ATTACH '{folder}/ipu_results.duckdb' AS ipu (READ_ONLY)")
for source in ('ipu.{}', "read_parquet('" + folder + "/{}.parquet')"):
    one = lambda sql: c.execute(sql).fetchall()[0][0]
    counts = {name: one(f"SELECT count(*) FROM {source.format(name)}") for name in names}
    sums = {name: one(f"SELECT sum({name}) FROM {source.format('results')}") for name in figures}
    print(json.dumps([counts, sums]))
"""


def test_duckdb_1_2_2(release: Path, old_duckdb: Path, expected: Read) -> None:
    command = [sys.executable, "-c", OLD, str(release), " ".join(NAMES), " ".join(FIGURES)]
    env = {"PYTHONPATH": str(old_duckdb), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    for line in done.stdout.splitlines():
        assert_same(tuple(json.loads(line)), expected)


OLD_DEFINITIONS = """
import duckdb, json, sys
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    print(json.dumps(connection.execute(sys.argv[2]).fetchall()))
"""


def test_definitions_have_the_same_digest_by_duckdb_1_2_2(release: Path, old_duckdb: Path) -> None:
    command = [sys.executable, "-c", OLD_DEFINITIONS, str(release / DATABASE), DEFINITIONS]
    env = {"PYTHONPATH": str(old_duckdb), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    told = json.loads((release / "release.json").read_text(encoding="utf-8"))["views"]
    assert {name: sql_digest(sql) for name, sql in json.loads(done.stdout)} == told


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_pandas(suffix: str, release: Path, expected: Read) -> None:
    read = pd.read_parquet if suffix == "parquet" else pd.read_csv
    frames = {name: read(release / f"{name}.{suffix}") for name in NAMES}
    sums = {name: float(frames["results"][name].sum()) for name in FIGURES}
    assert_same(({name: len(frame) for name, frame in frames.items()}, sums), expected)


def test_pyarrow(release: Path, expected: Read) -> None:
    tables = {name: pq.read_table(release / f"{name}.parquet") for name in NAMES}
    sums = {name: pc.sum(tables["results"].column(name)).as_py() for name in FIGURES}
    assert_same(({name: table.num_rows for name, table in tables.items()}, sums), expected)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_polars(suffix: str, release: Path, expected: Read) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")

    def read(name: str):  # type: ignore[no-untyped-def]
        path = release / f"{name}.{suffix}"
        return polars.read_parquet(path) if suffix == "parquet" else polars.read_csv(path, infer_schema_length=None)

    frames = {name: read(name) for name in NAMES}
    sums = {name: frames["results"][name].sum() for name in FIGURES}
    assert_same(({name: frame.height for name, frame in frames.items()}, sums), expected)


LINE = re.compile(r"(?m)^\| ([\w-]+) \| `(.+?)`")


def test_the_lines_of_the_card_load_it(release: Path, expected: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = dict(LINE.findall((release / "README.md").read_text(encoding="utf-8").split("## How to load it")[1]))
    monkeypatch.chdir(release)
    with duckdb.connect() as connection:
        assert len(connection.execute(lines["DuckDB"]).fetchall()) == 5
    count = expected[0]["results"]
    assert len(eval(lines["pandas"], {"pd": pd})) == count
    assert len(eval(lines["pyarrow"], {"pq": pq})) == count
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert len(eval(lines["polars"], {"pl": polars})) == count
