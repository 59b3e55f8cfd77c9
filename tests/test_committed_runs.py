"""The committed local runs: every figure follows again from the raw stamps beside it, and each is what it says."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
import pytest
from conftest import RAW, Ask
from ipu_results.runner.blocks import Block, Stamps
from ipu_results.runner.estimate import interval

RUNS = sorted(path for path in (RAW / "runs").iterdir() if path.is_dir())
STAMPS = ["start_ns", "loaded_ns", "preprocessed_ns", "inferred_ns", "retrieved_ns"]
WANTED = {
    ("onnxruntime", "fp32", "fp32"),
    ("openvino", None, "fp32"),
    ("openvino", "fp32", "fp32"),
    ("openvino", "int8", "int8"),
    ("emulator", None, "fp16"),
}


def _rows(run: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((run / "points.csv").read_text(encoding="utf-8").splitlines()))


def _stamps(run: Path) -> dict[int, list[list[Stamps]]]:
    """By block and session."""
    found: dict[int, list[list[Stamps]]] = {}
    for row in pq.read_table(run / "stamps.parquet").to_pylist():
        sessions = found.setdefault(row["block"], [])
        if row["session"] == len(sessions):
            sessions.append([])
        start, loaded, ready, inferred, retrieved = (row[name] for name in STAMPS)
        sessions[row["session"]].append((start, loaded, ready, inferred, retrieved))
    return found


def _blocks(run: Path) -> list[Block]:
    stamps = _stamps(run)
    lines = (run / "blocks.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Block(
            told["block"],
            told["round"],
            told["batch_size"],
            told["kind"],
            told["started_at"],
            tuple(tuple(session) for session in stamps[told["block"]]),
        )
        for told in map(json.loads, lines)
    ]


def test_the_runs_are_those_that_were_to_be_made() -> None:
    found = set()
    for run in RUNS:
        record = json.loads((run / "record.json").read_text(encoding="utf-8"))
        found |= {(record["backend"], record["setup"]["precision"], row["compute_precision"]) for row in _rows(run)}
    assert found >= WANTED


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_each_figure_follows_from_the_raw_stamps(run: Path) -> None:
    blocks = _blocks(run)
    for row in _rows(run):
        own = [block for block in blocks if block.batch_size == int(row["batch_size"])]
        rounds = [block.window.throughput for block in own if block.kind == "amortised"]
        isolated = [median(block.latencies_ms) for block in own if block.kind == "isolated"]
        assert float(row["throughput"]) == median(rounds)
        assert float(row["latency_ms"]) == 1000 * int(row["batch_size"]) / median(rounds)
        assert float(row["latency_isolated_ms"]) == median(isolated)
        if row["origin"] == "emulated":
            assert row["iterations"] == row["infer_ms"] == row["load_s"] == ""
        else:
            assert int(row["iterations"]) == sum(block.iterations for block in own)
            low, high, _ = interval(rounds)
            assert low is not None
            assert high is not None
            assert float(row["latency_ms_high"]) == 1000 * int(row["batch_size"]) / low
            assert float(row["latency_ms_low"]) == 1000 * int(row["batch_size"]) / high


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_no_record_names_a_path_or_a_host(run: Path) -> None:
    text = (run / "record.json").read_text(encoding="utf-8")
    assert not any(word in text for word in ("/root", "/home", "/tmp", "/work", "hostname"))


def test_measured_and_emulated_rows_are_told_apart(ask: Ask) -> None:
    found = ask("SELECT DISTINCT origin, platform, calibration_id IS NOT NULL, framework FROM local_runs ORDER BY ALL")
    assert ("emulated", "C2", True, "emulator") in found
    assert all(row[2] is (row[0] == "emulated") for row in found)
    assert ask("SELECT count(*) FROM results WHERE run_id IS NOT NULL AND publisher <> 'local'") == [(0,)]


def test_every_point_of_a_run_is_a_result(ask: Ask) -> None:
    lines = sum(len(_rows(run)) for run in RUNS)
    assert ask("SELECT count(*) FROM run_points JOIN results USING (result_id)") == [(lines,)]
    assert ask("SELECT count(*) FROM runs") == [(len(RUNS),)]
