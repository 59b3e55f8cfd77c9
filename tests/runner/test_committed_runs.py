"""The committed local runs: every figure follows again from the raw stamps, and each is what its
record says.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median

import msgspec
import pyarrow.parquet as pq
import pytest
from ipu_results.runner.estimate import Block, compute_interval
from ipu_results.runner.record import STAMPS

from tests.conftest import RAW, Query
from tests.runner.runner_support import read_blocks, read_points, read_record

RUNS = sorted(path.parent for path in RAW.glob("runs/[!.]*/record.json"))
EXPECTED = {
    ("onnxruntime", "fp32", "fp32"),
    ("onnxruntime", "fp16", "fp16"),
    ("openvino", None, "fp32"),
    ("openvino", "fp32", "fp32"),
    ("openvino", "int8", "int8"),
    ("emulator", None, "fp16"),
}

# Since Python 3.12 `sum` of floats is more exact, so that the last bit depends on the interpreter
# of the run.
approx = partial(pytest.approx, rel=1e-12)


def load_blocks(run: Path) -> list[Block]:
    stamps: dict[int, list[list[list[int]]]] = {}
    for row in pq.read_table(run / "stamps.parquet").to_pylist():
        sessions = stamps.setdefault(row["block"], [])
        if row["session"] == len(sessions):
            sessions.append([])
        sessions[row["session"]].append([row[name] for name in STAMPS])
    lines = read_blocks(run)
    for line in lines:
        line["stamps"] = stamps[line["block"]]
    return msgspec.convert(lines, list[Block])


def test_committed_runs_are_complete() -> None:
    runs = set()
    for run in RUNS:
        record = read_record(run)
        for row in read_points(run):
            runs.add((record["backend"], record["setup"]["precision"], row["compute_precision"]))
    assert runs >= EXPECTED


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_each_figure_follows_from_the_raw_stamps(run: Path) -> None:
    blocks = load_blocks(run)
    for block, line in zip(blocks, read_blocks(run), strict=True):
        assert block.window.throughput == approx(line["throughput"])
        assert block.iterations == line["iterations"]
    for row in read_points(run):
        size = int(row["batch_size"])
        own = [block for block in blocks if block.batch_size == size]
        rounds = [block.window.throughput for block in own if block.kind == "amortised"]
        isolated = [median(block.latencies_ms) for block in own if block.kind == "isolated"]
        assert float(row["throughput"]) == approx(median(rounds))
        assert float(row["latency_ms"]) == approx(1000 * size / median(rounds))
        assert float(row["latency_isolated_ms"]) == median(isolated)
        if row["origin"] == "emulated":
            assert row["iterations"] == row["infer_ms"] == row["load_s"] == ""
        else:
            assert int(row["iterations"]) == sum(block.iterations for block in own)
            interval = compute_interval(rounds)
            assert interval is not None
            assert float(row["latency_ms_low"]) == approx(1000 * size / interval.high)
            assert float(row["latency_ms_high"]) == approx(1000 * size / interval.low)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_record_names_no_path_and_no_host(run: Path) -> None:
    text = (run / "record.json").read_text(encoding="utf-8")
    assert not any(word in text for word in ("/root", "/home", "/tmp", "/work", "hostname"))


def test_measured_and_emulated_rows_are_marked(query: Query) -> None:
    columns = "origin, platform, calibration_id IS NOT NULL, framework"
    rows = query(f"SELECT DISTINCT {columns} FROM detail.local_runs")
    assert ("emulated", "C2", True, "emulator") in rows
    assert all(calibrated is (origin == "emulated") for origin, _, calibrated, _ in rows)
    foreign = "SELECT 1 FROM results WHERE run_id IS NOT NULL AND publisher <> 'local'"
    assert query(foreign) == []


def test_every_point_of_a_run_is_a_result(query: Query) -> None:
    lines = sum(len(read_points(run)) for run in RUNS)
    points = "SELECT count(*) FROM detail.run_points JOIN results USING (result_id)"
    assert query(points) == [(lines,)]
    assert query("SELECT count(*) FROM runs") == [(len(RUNS),)]
