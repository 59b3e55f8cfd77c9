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
import pyarrow.parquet as pq
import pytest
from ipu_results.record.store.files import DATABASE, get_csv_name, get_parquet_name
from ipu_results.release.database import DEFINITIONS, hash_sql
from ipu_results.release.files import get_counts, read_release
from ipu_results.schema import FILE_VIEWS, TABLES

from tests.release.release_support import link_release, read_record, replace_file

pytestmark = pytest.mark.slow  # a whole release, in every reader

CALLS = {view.sql_name: f"{view.sql_name}()" for view in FILE_VIEWS if view.parameters}
NAMES = [relation.sql_name for relation in (*TABLES, *FILE_VIEWS)]
PARQUET = {name: get_parquet_name(name) for name in NAMES}
CSV = {name: get_csv_name(name) for name in NAMES}
GUESSED_ROWS = 100  # that polars guesses types from
FIGURES = ("throughput", "latency_ms", "efficiency", "time_to_train_s")

Totals = tuple[dict[str, int], dict[str, float]]


@pytest.fixture(scope="module")
def expected(release: Path) -> Totals:
    """Read row counts by table and view and sums of figures from the DuckDB file with the current
    DuckDB.
    """
    with duckdb.connect(str(release / DATABASE), read_only=True) as connection:
        counts = {
            name: (
                connection.execute(f"SELECT count(*) FROM {CALLS.get(name, name)}").fetchall()[0][0]
            )
            for name in NAMES
        }
        sums = {
            name: connection.execute(f"SELECT sum({name}) FROM results").fetchall()[0][0]
            for name in FIGURES
        }
    return counts, sums


def assert_same(counts: dict[str, int], sums: dict[str, float], expected: Totals) -> None:
    assert counts == expected[0]
    assert sums == pytest.approx(expected[1], rel=1e-12)


def run_reader(code: str, folder: Path, *args: str) -> list[Any]:
    """Run Python with packages of another folder first, without network; return the JSON of each
    line it prints.
    """
    env = {
        "PYTHONPATH": str(folder),
        "PATH": os.environ["PATH"],
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
    }
    reader = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, env=env, check=False
    )
    assert reader.returncode == 0, reader.stderr[-2000:]
    return [json.loads(line) for line in reader.stdout.splitlines()]


READ_TOTALS = """
import duckdb, json, sys
folder, figures, definitions = sys.argv[1], sys.argv[2].split(), sys.argv[3]
c = duckdb.connect()
c.execute("SET enable_progress_bar = false")
c.execute(f"ATTACH '{folder}/ipu_results.duckdb' AS ipu (READ_ONLY)")
c.execute("USE ipu")
print(json.dumps(duckdb.__version__))
for sources in map(json.loads, sys.argv[4:]):
    rows = {name: c.execute(f"FROM {source}").fetchall() for name, source in sources.items()}
    sums = {}
    for name in figures:
        sums[name] = c.execute(f"SELECT sum({name}) FROM {sources['results']}").fetchall()[0][0]
    print(json.dumps([{name: len(found) for name, found in rows.items()}, sums]))
print(json.dumps(c.execute(definitions).fetchall()))
"""


@pytest.mark.parametrize("version", ["1.2.2", duckdb.__version__])
def test_oldest_and_newest_duckdb_read_every_relation_and_file(
    version: str, release: Path, old_duckdb: Path, expected: Totals
) -> None:
    folder = old_duckdb if version == "1.2.2" else Path()
    sources = [{name: CALLS.get(name, name) for name in NAMES}]
    for files in (PARQUET, CSV):
        sources.append({name: f"'{release / file}'" for name, file in files.items()})
    args = (str(release), " ".join(FIGURES), DEFINITIONS, *map(json.dumps, sources))
    used, *totals, definitions = run_reader(READ_TOTALS, folder, *args)
    assert used == version
    for total in totals:
        assert_same(*total, expected)
    if version == "1.2.2":  # the record has the texts that it shows
        assert {name: hash_sql(sql) for name, sql in definitions} == read_record(release)["views"]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_pandas_and_polars_read_the_same_rows(
    library: str, suffix: str, release: Path, expected: Totals
) -> None:
    read = getattr(pytest.importorskip(library), f"read_{suffix}")
    files = PARQUET if suffix == "parquet" else CSV
    # in parts, pandas takes an empty beginning of a column of texts for numbers, and warns
    whole = {"low_memory": False} if (library, suffix) == ("pandas", "csv") else {}
    frames = {name: read(release / file, **whole) for name, file in files.items()}
    # texts in polars where 100 cells are empty
    figures = {name: frames["results"][name].to_list() for name in FIGURES}
    sums = {name: sum(float(it) for it in own if not pd.isna(it)) for name, own in figures.items()}
    assert_same({name: len(frame) for name, frame in frames.items()}, sums, expected)


@pytest.mark.parametrize("name", NAMES)
def test_polars_defaults_read_the_figures_of_every_csv(name: str, release: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    rows = polars.read_parquet(release / PARQUET[name])
    guessed = polars.read_csv(release / CSV[name])
    for column in rows:
        if column.dtype.is_numeric() and column[:GUESSED_ROWS].null_count() < min(
            GUESSED_ROWS, rows.height
        ):
            assert sorted(guessed[column.name].drop_nulls()) == sorted(column.drop_nulls()), (
                column.name
            )


# Other readers

VALIDATE = """
import json, sys
from frictionless import validate
report = validate(sys.argv[1])
errors = [f"{task.name}: {error.message}" for task in report.tasks for error in task.errors]
print(json.dumps([report.valid, errors[:20], {task.name: task.type for task in report.tasks}]))
"""


def test_frictionless_accepts_every_file_of_data(
    release: Path, other_readers: Path, expected: Totals
) -> None:
    [[is_valid, errors, tasks]] = run_reader(
        VALIDATE, other_readers, str(release / "datapackage.json")
    )
    assert is_valid, errors
    assert tasks == {
        **dict.fromkeys(expected[0], "table"),
        **{file.replace("/", "."): "file" for file in PARQUET.values()},
        DATABASE: "file",
    }


def test_frictionless_finds_a_changed_byte(
    small_release: Path, other_readers: Path, tmp_path: Path
) -> None:
    folder = link_release(small_release, tmp_path / "release")
    replace_file(folder / "results.csv", (folder / "results.csv").read_bytes() + b"\n")
    [[is_valid, errors, _]] = run_reader(VALIDATE, other_readers, str(folder / "datapackage.json"))
    assert not is_valid
    assert any(
        "expected hash count" in error or "expected byte count" in error for error in errors
    ), errors


LOAD = """
import json, sys
import datasets
datasets.disable_progress_bars()
release, cache = sys.argv[1:]
load = lambda *name: datasets.load_dataset(release, *name, cache_dir=cache, split="train")
names = datasets.get_dataset_config_names(release)
rows = {name: load(name) for name in names}
print(json.dumps({name: len(table) for name, table in rows.items()}))
print(json.dumps({name: sum(it for it in load()[name] if it is not None) for name in ("throughput", "latency_ms")}))
"""


def test_datasets_loads_every_table_and_view_that_has_rows(
    release: Path, other_readers: Path, expected: Totals, tmp_path: Path
) -> None:
    counts, sums = run_reader(LOAD, other_readers, str(release), str(tmp_path))
    assert counts == {name: rows for name, rows in expected[0].items() if rows}
    assert sums == pytest.approx({name: expected[1][name] for name in sums}, rel=1e-9)


READ_RECORDS = """
import json, sys
import mlcroissant
dataset = mlcroissant.Dataset(sys.argv[1])
issues = dataset.metadata.ctx.issues
print(json.dumps([[*issues.errors, *issues.warnings], [it.id for it in dataset.metadata.record_sets]]))
print(json.dumps({name: [record[f"{name}/{column}"] for record in dataset.records(name)]
    for name, column in (item.rsplit(".", 1) for item in sys.argv[2:])}, default=bytes.decode))
"""


def test_mlcroissant_accepts_the_description_and_reads_record_sets_in_any_order(
    release: Path, other_readers: Path, expected: Totals
) -> None:
    read = [
        "detail.run_points.result_id",
        "models.model",
        "results.throughput",
        "inference.throughput",
        "flags.rule",
    ]
    path = str(release / "croissant.json")
    for order in (read, read[::-1]):
        [issues, names], records = run_reader(READ_RECORDS, other_readers, path, *order)
        assert issues == []
        assert names == list(expected[0])
        for name, column in (item.rsplit(".", 1) for item in read):
            rows = pq.read_table(release / PARQUET[name]).column(column).to_pylist()
            assert [None if pd.isna(value) else value for value in records[name]] == rows, name


COUNT_IN_SQLITE = """
import json, sys
import sqlite_utils
from sqlite_utils.cli import cli
database, files = sys.argv[1], json.loads(sys.argv[2])
for name, file in files.items():
    cli.main(["insert", database, name, file, "--csv", "--silent"], standalone_mode=False)
tables = sqlite_utils.Database(database)
print(json.dumps({name: tables[name].count for name in files}))
"""


def test_sqlite_utils_inserts_every_csv(
    small_release: Path, other_readers: Path, tmp_path: Path
) -> None:
    """Of a few results: it takes a minute for all."""
    stated = get_counts(read_release(small_release))
    rows = {name: count["rows"] for name, count in stated.items() if count["rows"]}
    files = {name: str(small_release / CSV[name]) for name in rows}
    database = str(tmp_path / "all.db")
    [counts] = run_reader(COUNT_IN_SQLITE, other_readers, database, json.dumps(files))
    assert counts == rows


def test_commands_of_the_card_load_the_release(
    release: Path, expected: Totals, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (release / "README.md").read_text(encoding="utf-8").split("## How to load it")[1]
    commands = dict(re.findall(r"(?m)^\| ([\w-]+) \| `(.+?)`", section))
    monkeypatch.chdir(release)
    with duckdb.connect() as connection:
        usable = connection.execute(commands["DuckDB"]).fetchall()
    count = expected[0]["results"]
    assert 0 < len(usable) < count
    assert len(eval(commands["pandas"], {"pd": pd})) == count
    assert len(eval(commands["pyarrow"], {"pq": pq})) == count
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert len(eval(commands["polars"], {"pl": polars})) == count
