"""Sweeps from their first step to a finished run: on simulated, emulated and real devices, and
interrupted ones.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from ipu_results.build import IngestConfig, ingest
from ipu_results.emulator.target import load_calibration
from ipu_results.runner.config import Visit
from ipu_results.runner.environment import VARIABLE, announce_sweep
from ipu_results.runner.record import MEASURED
from ipu_results.runner.sweep import SweepResult, run_task

from tests.conftest import query_rows
from tests.runner.runner_support import (
    CLASSES,
    SIDE,
    Recorder,
    cpu_task,
    emulator_task,
    null_task,
    read_blocks,
    read_record,
    read_stamps,
    sweep,
    write_images,
    write_tiny_model,
)

pytestmark = pytest.mark.slow  # sweeps are run

MODES = ("RGB", "broken", "L", "RGB", "CMYK", "RGB", "RGB")
FILES = set("record.json record.json.toml points.csv points.csv.toml".split())
FILES |= {"blocks.jsonl", "stamps.parquet"}

Ran = tuple[SweepResult, Recorder]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.onnx")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("images") / "images", MODES)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("raw")


@pytest.fixture(scope="module")
def on_cpu(raw: Path, model: Path, images: Path) -> Ran:
    """Sweep on the CPU by two sessions, of a folder where one image is broken."""
    recorder = Recorder()
    return run_task(cpu_task(model, images), raw / "runs", recorder), recorder


@pytest.fixture(scope="module")
def emulated(raw: Path, model: Path, images: Path) -> Ran:
    recorder = Recorder()
    return run_task(emulator_task(model, images), raw / "runs", recorder), recorder


# --- a simulated device, whose truth is known


@pytest.mark.parametrize("sessions", [1, 2])
def test_quiet_device_is_measured_exactly(tmp_path: Path, sessions: int) -> None:
    recorder = Recorder()
    task = null_task((2, 4, 6), sessions, options={"base_ms": 7, "per_item_ms": 11})
    run = run_task(task, tmp_path, recorder)
    assert [point["batch_size"] for point in run.points] == [2, 4, 6]
    times = "latency_ms latency_ms_low latency_ms_high latency_isolated_ms first_run_ms infer_ms"
    for point in run.points:
        truth_ms = 7 + 11 * point["batch_size"] / sessions
        assert point["throughput"] == pytest.approx(1000 * point["batch_size"] / truth_ms)
        for name in times.split():
            assert point[name] == pytest.approx(truth_ms)
        assert point["micro_batch_size"] == point["batch_size"] / sessions
        assert (point["origin"], point["backend"], point["sessions"]) == (
            "simulated",
            "null",
            sessions,
        )
        assert (point["preprocess_ms"], point["retrieve_ms"]) == (0, 0)
        for name in "suspect cosine top1 power_w".split():
            assert point[name] is None
    assert recorder.warnings == []


def test_every_visit_of_the_plan_is_a_block(tmp_path: Path) -> None:
    recorder = Recorder()
    task = null_task(least_rounds=3, most_rounds=3, budget_s=0.0)
    run = run_task(task, tmp_path, recorder)
    visits = [visit for number in range(3) for visit in task.plan.list_visits(number)]
    blocks = []
    for block in read_blocks(run.folder):
        blocks.append(Visit(block["round"], block["batch_size"], block["kind"]))
    assert recorder.visits == visits == blocks
    _, done, total, left_s = zip(*recorder.reports, strict=True)
    assert done == tuple(range(len(visits)))
    assert set(total) == {len(visits)}
    assert list(left_s) == sorted(left_s, reverse=True)


# --- an emulated device


def test_emulated_run_is_marked_as_such(emulated: Ran) -> None:
    run, recorder = emulated
    assert [point["batch_size"] for point in run.points] == [2, 4]
    for point in run.points:
        expected = {
            "origin": "emulated",
            "platform": "C2",
            "chip": "GC2",
            "chip_count": 2,
            "calibration_id": load_calibration().id,
            "compute_precision": "fp16",
            "model": "tiny",
            "pipeline": "serial",
            "power_scope": "board",
            "power_reason": "predicted, not measured",
            **dict.fromkeys(MEASURED),
            "probe_ms": None,
        }
        assert point.items() >= expected.items()
        assert point["latency_ms_low"] < point["latency_ms"] < point["latency_ms_high"]
        assert point["efficiency"] == pytest.approx(point["throughput"] / point["power_w"])
        images_per_s = 1000 * point["batch_size"] / point["latency_ms"]
        assert point["throughput"] == pytest.approx(images_per_s)
        assert point["cosine"] > 0.9999
    assert any("nothing is measured" in note for note in read_record(run.folder)["notes"])
    assert recorder.warnings[1:] == []


# --- a real device


def test_measured_run_agrees_with_the_reference(on_cpu: Ran) -> None:
    run, _ = on_cpu
    assert [point["batch_size"] for point in run.points] == [2, 4]
    for point in run.points:
        assert (point["cosine"], point["top1"]) == (pytest.approx(1, abs=1e-6), 1)
        expected = {
            "compute_precision": "fp32",
            "model_precision": "fp32",
            "origin": "measured",
            "framework": "ONNX Runtime",
            "provider": "CPUExecutionProvider",
            "pipeline": "overlap",
            "threads": 1,
            "sessions": 2,
            "model": "tiny",
            "calibration_id": None,
            "rounds": 2,
            "compile_s": None,  # ONNX Runtime compiles while it loads
        }
        assert point.items() >= expected.items()
        assert min(point[name] for name in ("load_s", "first_run_ms", "infer_ms", "latency_ms")) > 0
        assert point["warm_up_runs"] >= 2
        assert "only 2 rounds" in point["suspect"]


def test_blocks_hold_what_was_observed_and_other_sweeps_are_warned_of(
    tmp_path: Path, model: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "locks"))
    recorder = Recorder()
    with announce_sweep("20261121-134501-other"):
        run = run_task(cpu_task(model, images), tmp_path / "runs", recorder)
    for block in read_blocks(run.folder):
        assert len(block["probe_ms"]) == 2
        assert min(block["probe_ms"]) > 0
        assert 0 <= block["foreign_cpu"] <= 1
        assert block["others"] == 1
        start, end = block["window_ns"]
        assert block["throughput"] == pytest.approx(block["items"] / (end - start) * 1e9)
    (warning,) = (text for text in recorder.warnings if text.startswith("another sweep runs on"))
    assert "20261121-134501-other" in warning
    assert all("another sweep ran " in point["suspect"] for point in run.points)


def test_record_describes_the_run(on_cpu: Ran, model: Path) -> None:
    """A broken image is excluded with a warning; grey and CMYK ones are used like any other."""
    run, recorder = on_cpu
    record = read_record(run.folder)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    digests = dict.fromkeys(("weights", "sha256", "source_sha256"), digest)
    sizes = {"height": SIDE, "width": SIDE, "outputs": CLASSES}
    assert (record["run_id"], record["device"]) == (run.run_id, "cpu")
    assert record["model"] == {"name": "tiny", "precision": "fp32", **digests, **sizes}
    assert record["plan"]["batch_sizes"] == [2, 4]
    assert {"numpy", "onnx", "onnxruntime"} <= record["versions"].keys()
    assert record["started_at"] <= record["finished_at"]
    (warning,) = recorder.warnings
    assert warning.startswith("image left out: 1-broken.jpg: ")
    assert (record["images"]["source"], record["images"]["count"]) == ("folder", len(MODES) - 1)
    assert record["images"]["left_out"] == [warning.removeprefix("image left out: ")]


@pytest.mark.parametrize("which", ["on_cpu", "emulated"])
def test_sidecars_hold_the_checksums_of_the_files(
    which: str, request: pytest.FixtureRequest, model: Path
) -> None:
    run: SweepResult = request.getfixturevalue(which)[0]
    assert {path.name for path in run.folder.iterdir()} == FILES
    assert run.folder.name == run.run_id
    for name in ("record.json", "points.csv"):
        sidecar = tomllib.loads((run.folder / f"{name}.toml").read_text(encoding="utf-8"))
        for file, digest in {name: sidecar["sha256"], **sidecar.get("attachments", {})}.items():
            assert hashlib.sha256((run.folder / file).read_bytes()).hexdigest() == digest
    for file in FILES:
        data = (run.folder / file).read_bytes()
        assert str(model.parent).encode() not in data, "a path of this machine"


def test_measured_and_emulated_runs_are_ingested_and_simulated_ones_refused(
    raw: Path, on_cpu: Ran, emulated: Ran, tmp_path: Path
) -> None:
    simulated = sweep(null_task((2,)), raw / "runs")
    ingest(IngestConfig(raw=raw, warehouse=tmp_path / "warehouse"))
    sql = "SELECT run_id, batch_size, throughput, origin FROM detail.local_runs ORDER BY ALL"
    rows = query_rows(tmp_path / "warehouse", sql)
    expected = []
    for run, _ in sorted((on_cpu, emulated), key=lambda ran: ran[0].run_id):
        for point in run.points:
            throughput = pytest.approx(point["throughput"])
            expected.append((run.run_id, point["batch_size"], throughput, point["origin"]))
    assert rows == expected
    refused = query_rows(tmp_path / "warehouse", "SELECT DISTINCT document_id FROM quarantine")
    assert refused == [(f"sweep-{simulated.run_id}-points",)]


def test_serial_session_with_generated_images(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipu_results.runner.workload.GENERATED", 3)
    task = cpu_task(model, None, (1, 3), sessions=1)
    run = sweep(replace(task, plan=replace(task.plan, overlap=False)), tmp_path)
    assert [point["batch_size"] for point in run.points] == [1, 3]
    for point in run.points:
        assert point["pipeline"] == "serial"
        assert point["cosine"] == pytest.approx(1, abs=1e-6)
        assert point["preprocess_ms"] > 0
    images = read_record(run.folder)["images"]
    assert (images["source"], images["count"], images["left_out"]) == ("generated, seed 0", 3, [])
    assert all(loaded > start for _, _, _, start, loaded, *_ in read_stamps(run.folder)), (
        "files are read in the block itself"
    )
