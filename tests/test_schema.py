"""One definition of a column is what every file says of it; and the gates refuse what they must."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import RAW, Ask, run_process
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.check.canary import CHANGES, GOOD
from ipu_results.check.gate import build_frame, check_gate, find_failures, to_arrow
from ipu_results.errors import GateError
from ipu_results.schema import TABLES, VIEWS, arrow_schema, dictionary_rows, frame_dtypes, table
from ipu_results.schema.pandera_model import pandera_model
from ipu_results.store.digest import digest_rows
from ipu_results.store.files import DATABASE
from ipu_results.store.query import open_warehouse

CONTRACT = [
    "result_id",
    "origin",
    "publisher",
    "document_id",
    "table_name",
    "row_number",
    "published_on",
    "run_id",
    "task",
    "benchmark",
    "division",
    "mlperf_id",
    "mlperf_round",
    "model",
    "variant",
    "dataset",
    "platform",
    "chip",
    "chip_count",
    "sdk_version",
    "framework",
    "precision",
    "activation_bits",
    "weight_bits",
    "compute_precision",
    "batch_size",
    "micro_batch_size",
    "throughput",
    "item",
    "latency_ms",
    "latency_ms_low",
    "latency_ms_high",
    "latency_kind",
    "suspect",
    "calibration_id",
    "power_scope",
    "efficiency",
    "power_w",
    "time_to_train_s",
    "time_to_result_s",
    "quality_metric",
    "quality_value",
    "quality_target",
]
LOCAL = {
    "origin": "measured",
    "run_id": "20261121-134501-onnxruntime-cpu-3fa2",
    "batch_size": 1,
    "throughput": 2.0,
    "latency_ms": 500.0,
    "latency_kind": "amortised",
    "power_w": 100.0,
    "power_scope": "wall",
    "efficiency": 0.02,
}
BAND = {"latency_ms_low": 490.0, "latency_ms_high": 510.0, "interval_confidence": 0.95}
NAMES = [described.name for described in TABLES]


def test_results_has_every_column_of_the_contract() -> None:
    assert [name for name in CONTRACT if name not in table("results").names] == []


@pytest.mark.parametrize("name", NAMES)
def test_pandera_arrow_and_frame_come_from_one_definition(name: str) -> None:
    described = table(name)
    model = pandera_model(described).to_schema()
    assert tuple(model.columns) == described.names == tuple(arrow_schema(described).names)
    assert tuple(frame_dtypes(described)) == described.names
    assert model.strict
    assert not model.coerce
    for column in described.columns:
        assert model.columns[column.name].nullable is not column.required
        assert arrow_schema(described).field(column.name).nullable is not column.required
        assert column.description.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_parquet_carries_units_descriptions_and_the_build(warehouse: Path, name: str) -> None:
    read = pq.read_schema(warehouse / f"{name}.parquet")
    expected = arrow_schema(table(name))
    assert read.remove_metadata().equals(expected.remove_metadata())
    for field, wanted in zip(read, expected, strict=True):
        assert field.metadata[b"description"] == wanted.metadata[b"description"]
        assert field.metadata.get(b"unit") == wanted.metadata.get(b"unit")
    assert len(read.metadata[b"build_id"]) == 64


def test_integers_with_gaps_stay_integers_in_pandas(warehouse: Path) -> None:
    read = pq.read_table(warehouse / "results.parquet")
    assert read.schema.field("micro_batch_size").type == pa.int64()
    assert read["micro_batch_size"].null_count > 0
    frame = pd.read_parquet(warehouse / "results.parquet")
    assert frame["batch_size"].dtype == "Int64"
    assert frame["batch_size"].max() == 71680
    assert pd.api.types.is_string_dtype(frame["model"])


@pytest.fixture(scope="module")
def database(warehouse: Path) -> Any:
    with open_warehouse(warehouse) as connection:
        yield connection


def test_parquet_and_duckdb_hold_the_same_rows(warehouse: Path, database: Any) -> None:
    for described in TABLES:
        stored = database.sql(f"SELECT * FROM {described.name}").to_arrow_table()
        assert digest_rows(stored) == digest_rows(pq.read_table(warehouse / f"{described.name}.parquet"))


def test_the_build_table_has_the_digest_of_every_table(warehouse: Path, database: Any) -> None:
    for row in pq.read_table(warehouse / "build.parquet").to_pylist():
        stored = database.sql(f"SELECT * FROM {row['table_name']}").to_arrow_table()
        assert (digest_rows(stored), stored.num_rows) == (row["rows_sha256"], row["row_count"])


def test_duckdb_has_keys_and_comments(database: Any) -> None:
    keys = database.sql("SELECT table_name, constraint_type FROM duckdb_constraints()").fetchall()
    assert {name for name, kind in keys if kind == "PRIMARY KEY"} == set(NAMES)
    foreign = {(name, column.name) for name in NAMES for column in table(name).columns if column.references}
    assert sum(kind == "FOREIGN KEY" for _, kind in keys) == len(foreign) == 27
    comments = database.sql(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    assert len(comments) > 150
    assert [row for row in comments if not row[2]] == []
    assert database.sql("SELECT count(*) FROM duckdb_views() WHERE NOT internal AND comment IS NULL").fetchall() == [
        (0,)
    ]


def test_the_dictionary_describes_every_column_that_there_is(ask: Ask, database: Any) -> None:
    there = set(
        database.sql("SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal").fetchall()
    )
    macros = {view.name for view in VIEWS if view.parameters}
    told = ask("SELECT table_name, column_name, type FROM columns WHERE column_name <> ''")
    assert {row for row in told if row[0] not in macros} == there
    names = {name for (name,) in ask("SELECT table_name FROM columns WHERE column_name = ''")}
    assert names == {*NAMES, *(view.name for view in VIEWS)}


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_has_the_columns_that_it_is_said_to_have(ask: Ask, view: Any) -> None:
    described = [(row["column_name"], row["type"]) for row in dictionary_rows(view)[1:]]
    assert [row[:2] for row in ask(f"DESCRIBE FROM {view.source}")] == described
    has_rows = view.name != "local_runs" or (RAW / "runs").exists()
    assert ask(f"SELECT count(*) > 0 FROM {view.source}") == [(has_rows,)]


def test_the_views_split_the_results(ask: Ask) -> None:
    mlperf = ask("SELECT count(*) FROM results WHERE benchmark = 'mlperf-training'")[0][0]
    counts = [ask(f"SELECT count(*) FROM {name}")[0][0] for name in ("inference", "training", "results")]
    assert counts[0] + counts[1] + mlperf == counts[2]
    assert mlperf == 11 + 262 + 8


def test_latest_leaves_out_what_a_newer_page_replaced(ask: Ask) -> None:
    row = "model = 'ResNet-50 v1.5' AND platform = 'Bow Pod16' AND framework = 'TensorFlow1' AND task = 'training'"
    assert ask(f"SELECT count(*) FROM results WHERE {row}") == [(3,)]
    assert ask(f"SELECT throughput, sdk_version FROM latest WHERE {row}") == [(44059.0, "3.0")]
    only_old = "SELECT throughput FROM latest WHERE model = 'ResNet-50 v1.5' AND platform = 'Bow Pod256'"
    assert ask(only_old) == [(456906.0,)]


def test_provenance_leads_from_every_figure_to_its_document(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM provenance") == ask("SELECT count(*) FROM cells WHERE value IS NOT NULL")
    row = "model = 'FastPitch' AND column_name = 'throughput'"
    found = ask(f"SELECT header, raw_text, locator, file FROM provenance WHERE {row}")
    place = "table 2, row 35, column 9 (Throughput (items/sec))"
    assert found == [("Throughput (items/sec)", "1,489,341", place, "graphcore/performance-2023-07-04.html")]


# gates


def test_a_good_row_passes_and_each_change_for_the_worse_is_refused() -> None:
    results = table("results")
    assert find_failures(results, build_frame(results, [GOOD])) == []
    check_gate(results, GOOD, CHANGES)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"throughput": math.inf}, "throughput-out-of-range"),
        ({"model": None}, "missing-model"),
        ({"task": "Training"}, "task-not-a-choice"),
        ({"result_id": "7"}, "result-id-malformed"),
        ({"throughput": None}, "no-figure"),
        ({"weight_bits": 32}, "precision-bits"),
        ({"origin": "measured"}, "origin-place"),
        ({"origin": "emulated", "run_id": "r", "document_id": None}, "emulated-marked"),
        ({"latency_ms": 2.0, "latency_ms_low": 3.0}, "latency-band"),
        ({"origin": "simulated", "run_id": "r"}, "origin-not-a-choice,origin-place"),
        ({"origin": "published", "run_id": "r"}, "origin-place"),
        (LOCAL | {"latency_kind": None}, "local-latency-kind"),
        (LOCAL | {"latency_ms": None}, "local-latency,local-latency-kind"),
        (LOCAL | {"latency_ms": 500.001}, "local-latency"),
        (LOCAL | {"batch_size": None}, "local-latency"),
        (LOCAL | {"latency_kind": "guessed"}, "latency-kind-not-a-choice"),
        (LOCAL | {"efficiency": 0.020001}, "local-efficiency"),
        (LOCAL | {"efficiency": None}, "local-efficiency"),
        (LOCAL | {"power_w": None}, "local-efficiency,local-power"),
        (LOCAL | {"power_scope": None}, "local-power"),
        (LOCAL | {"interval_confidence": 0.95}, "interval-measured"),
        (LOCAL | BAND | {"origin": "emulated", "calibration_id": "c"}, "interval-measured"),
        (LOCAL | {"interval_confidence": 95.0}, "interval-confidence-out-of-range,interval-measured"),
        ({"throughput": -1.0}, "throughput-out-of-range"),
        ({"throughput": 0.0}, "throughput-out-of-range"),
        ({"batch_size": 0}, "batch-size-out-of-range"),
    ],
)
def test_a_refusal_has_a_stable_reason_code(change: dict[str, Any], reason: str) -> None:
    results = table("results")
    found = {failure.reason for failure in find_failures(results, build_frame(results, [GOOD | change]))}
    assert found == set(reason.split(","))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"origin": "emulated", "calibration_id": "c"},
        {"latency_ms": 500.0001},
        {"latency_ms": 400.0, "latency_kind": "isolated"},
        {"efficiency": None, "power_w": None, "power_scope": None},
        BAND,
        {"batch_size": None, "latency_ms": None, "latency_kind": None},
    ],
)
def test_a_good_local_row_passes(change: dict[str, Any]) -> None:
    results = table("results")
    assert find_failures(results, build_frame(results, [GOOD | LOCAL | change])) == []


@pytest.mark.parametrize("change", [{"power_w": 100.0}, {"latency_ms": 9.0, "batch_size": 1}, {"efficiency": 9.0}])
def test_what_binds_local_rows_binds_no_published_one(change: dict[str, Any]) -> None:
    results = table("results")
    assert find_failures(results, build_frame(results, [GOOD | change])) == []


def test_two_rows_of_one_key_are_refused() -> None:
    results = table("results")
    assert {failure.reason for failure in find_failures(results, build_frame(results, [GOOD, GOOD]))} == {
        "repeated-key"
    }


@pytest.mark.parametrize("value", ["12", 1.5, True])
def test_a_value_of_another_type_is_never_coerced(value: object) -> None:
    with pytest.raises(GateError, match="batch_size"):
        build_frame(table("results"), [GOOD | {"batch_size": value}])


def test_arrow_refuses_a_null_where_a_value_is_required() -> None:
    results = table("results")
    with pytest.raises(GateError, match="model"):
        to_arrow(results, build_frame(results, [GOOD | {"model": None}]))


def test_a_gate_that_accepts_a_bad_row_is_not_trusted() -> None:
    with pytest.raises(GateError, match="missed: missing-chip"):
        check_gate(table("results"), GOOD, {**CHANGES, "missing-chip": {"chip": None}})
    with pytest.raises(GateError, match="does not refuse what it must"):
        check_gate(table("results"), GOOD | {"chip_count": 0}, CHANGES)


def test_switched_off_validation_stops_the_build(tmp_path: Path) -> None:
    env = {"PANDERA_VALIDATION_ENABLED": "False"}
    done = run_process("ingest", "--raw", RAW, "--warehouse", tmp_path / "warehouse", env=env)
    assert done.returncode == 1
    assert "is pandera off?" in done.stderr
    assert not (tmp_path / "warehouse" / "results.parquet").exists()


finite = st.floats(1e-9, 1e14, allow_nan=False)


@given(st.lists(st.fixed_dictionaries({"throughput": finite, "latency_ms": finite}), min_size=1, max_size=20))
def test_what_passes_the_gates_comes_back_unchanged(figures: list[dict[str, float]]) -> None:
    results = table("results")
    rows = [GOOD | {"result_id": f"{number:016x}"} | row for number, row in enumerate(figures)]
    frame = build_frame(results, rows)
    assert find_failures(results, frame) == []
    arrow = to_arrow(results, frame)
    assert [{key: row[key] for key in ("throughput", "latency_ms")} for row in arrow.to_pylist()] == figures


rows_of_text = st.lists(st.tuples(st.text(max_size=5), st.none() | st.integers(-5, 5)), max_size=10)


@given(rows_of_text, st.randoms())
def test_the_digest_is_of_the_rows_and_not_of_their_order(rows: list[tuple[str, int | None]], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = (
        pa.table({"a": pa.array([a for a, _ in some], pa.string()), "b": pa.array([b for _, b in some], pa.int64())})
        for some in (rows, shuffled)
    )
    assert digest_rows(one) == digest_rows(other)
    changed = [*rows, ("", None)]
    grown = pa.table(
        {"a": pa.array([a for a, _ in changed], pa.string()), "b": pa.array([b for _, b in changed], pa.int64())}
    )
    assert digest_rows(grown) != digest_rows(one)


def test_the_digest_tells_null_from_empty_and_one_column_from_another() -> None:
    tables = [
        pa.table({"a": ["x", ""], "b": ["", "y"]}),
        pa.table({"a": ["x", None], "b": ["", "y"]}),
        pa.table({"b": ["x", ""], "a": ["", "y"]}),
        pa.table({"a": ["", "x"], "b": ["x", "y"]}),
        pa.table({"a": ["x", "-"], "b": ["", "y"]}),
        pa.table({"a": ["x:1", ""], "b": ["", "y"]}),
    ]
    assert len({digest_rows(one) for one in tables}) == len(tables)


def test_every_line_of_the_dictionary_is_made_from_the_definitions() -> None:
    rows = [row for described in TABLES for row in dictionary_rows(described)]
    assert all(row["description"] for row in rows)
    assert {row["unit"] for row in rows if row["column_name"] == "latency_ms"} == {"ms"}


# an older DuckDB


def test_the_database_opens_in_duckdb_1_2_2(old_duckdb: Path, warehouse: Path, ask: Ask) -> None:
    code = (
        "import duckdb, sys; assert duckdb.__version__ == '1.2.2', duckdb.__version__; "
        "c = duckdb.connect(sys.argv[1], read_only=True); "
        "print(c.execute('SELECT count(*), sum(throughput) FROM results').fetchall(), "
        "c.execute('SELECT count(*) FROM inference').fetchall(), c.execute('SELECT count(*) FROM latest').fetchall())"
    )
    env = {"PYTHONPATH": str(old_duckdb)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(warehouse / DATABASE)], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    now = [
        ask(f"SELECT {what}")
        for what in ("count(*), sum(throughput) FROM results", "count(*) FROM inference", "count(*) FROM latest")
    ]
    assert done.stdout.strip() == " ".join(map(str, now))
