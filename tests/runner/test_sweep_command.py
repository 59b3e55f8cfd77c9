"""`ipu-results sweep` as a user meets it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pyarrow.parquet as pq
import pytest
from ipu_results.runner.config import SETTINGS
from onnxruntime.transformers.float16 import convert_float_to_float16

from tests.conftest import ROOT, Done, run_cli, run_process
from tests.runner.runner_support import (
    read_blocks,
    read_points,
    wait_for,
    write_images,
    write_tiny_model,
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    """Options for a small model and a few images: those that a sweep makes for itself take seconds."""
    folder = tmp_path_factory.mktemp("tiny")
    model, images = write_tiny_model(folder / "tiny.onnx"), write_images(folder / "images")
    return "--model", model, "--images", images


def emulate(tiny: tuple[object, ...], out: Path, *more: object) -> Done:
    return run_cli(
        "sweep", "--backend", "emulator", *tiny, "--batch-sizes", "2,4", "--out", out, *more
    )


def list_finished(out: Path) -> list[Path]:
    return sorted(path for path in out.iterdir() if path.is_dir() and "." not in path.name)


def test_emulated_sweep_prints_json_and_appends_a_run(
    tmp_path: Path, tiny: tuple[object, ...]
) -> None:
    """Without a terminal it does not prompt; findings and progress go to stderr."""
    out = tmp_path / "runs"
    done = emulate(tiny, out, "--precision", "fp16", "--format", "json", "--strict")
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)
    assert [point["batch_size"] for point in points] == [2, 4]
    for point in points:
        assert (point["origin"], point["compute_precision"], point["model_precision"]) == (
            "emulated",
            "fp16",
            "fp32",
        )
    (run,) = list_finished(out)
    assert f"appended: {run}" in done.stderr
    assert f"next: ipu-results compare {run}" in done.stderr
    assert re.search(r"^round 1: 0 of 4 blocks measured, about \d+ s left$", done.stderr, re.M)
    record = json.loads((run / "record.json").read_text(encoding="utf-8"))
    assert record["command_line"].startswith("ipu-results")


@pytest.mark.slow
def test_run_is_ingested_on_request(tmp_path: Path, tiny: tuple[object, ...]) -> None:
    warehouse = tmp_path / "warehouse"
    done = emulate(tiny, tmp_path / "raw" / "runs", "--ingest", "--warehouse", warehouse)
    assert done.returncode == 0, done.stderr
    assert f"2 results in {warehouse}, build " in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (
            ["--backend", "onnxruntime", "--batch-sizes", "3"],
            1,
            "batch 3 cannot be shared evenly by 2 sessions",
        ),
        (["--batch-sizes", "two"], 2, "--batch-sizes"),
        (
            ["--backend", "null"],
            2,
            ("'null' is not one of 'auto', 'popart', 'onnxruntime', 'openvino', 'emulator'"),
        ),
        (["--set", "sesions=2"], 2, "--set sesions=2 is not KEY=VALUE with a key of network,"),
        (
            ["--backend", "onnxruntime", "--device", "tpu"],
            1,
            "is not a device of onnxruntime, which has: cpu",
        ),
        (["--backend", "popart"], 1, "PopART is not installed"),
        (
            ["--backend", "onnxruntime", "--model", "absent.onnx"],
            1,
            "absent.onnx: is neither a file nor a built-in",
        ),
        (["--resume", "20260101-000000-x", "--dry-run"], 2, "the run's start: not with --dry-run"),
        (["--resume", "20260101-000000-x", "--power-command", "w"], 2, "not with --power-command"),
        (["--backend", "emulator", "--set", "rounds=3"], 2, "an emulated sweep has one round"),
        (["--resume", "--set", "rounds=3"], 2, "not with --set"),
        (["--resume", "--strict"], 1, "holds no interrupted run"),
        (["--resume", "20260101-000000-x"], 1, "is not an unfinished run"),
    ],
)
def test_impossible_sweep_is_one_clear_line(
    tmp_path: Path, args: list[str], code: int, message: str
) -> None:
    out = tmp_path / "runs"
    done = run_cli("sweep", *args, "--out", out)
    assert done.returncode == code
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not out.exists() or list(out.iterdir()) == []


def test_devices_are_listed_with_their_reasons() -> None:
    done = run_cli("sweep", "--list-devices")
    assert done.returncode == 0
    assert re.search(r"^popart +ipu .*PopART is not installed", done.stdout, re.M)
    assert re.search(r"^onnxruntime +cpu .*can be used$", done.stdout, re.M)
    assert re.search(r"^emulator +c2 +emulated +C2 +can be used$", done.stdout, re.M)


def test_dry_run_prints_the_plan_and_runs_nothing(tmp_path: Path) -> None:
    done = run_cli("sweep", "--dry-run", "--out", tmp_path / "runs")
    assert done.returncode == 0
    assert done.stdout.count("neither an IPU nor a GPU is here") == 2
    assert done.stdout.index("emulator c2") < done.stdout.index("onnxruntime cpu")
    assert not (tmp_path / "runs").exists()


def test_help_lists_the_keys_of_set() -> None:
    keys = re.findall(r"^ +([\w.]+)=\S", run_cli("sweep", "--help").stdout, re.M)
    assert keys == [*SETTINGS, "options.NAME"]


@pytest.mark.slow
def test_table_marks_emulated_figures_and_names_the_nearest_rows(
    tmp_path: Path, tiny: tuple[object, ...]
) -> None:
    done = emulate(tiny, tmp_path / "runs", "--set", "network=resnext101-32x4d")
    assert done.returncode == 0, done.stderr
    assert "emulated, not measured" in done.stdout
    row = r"^batch 4: .* × the nearest row published by another party \(Qwant, C2, batch 4, .*2063\.03"
    assert re.search(row, done.stdout, re.M)


# --- real sweeps


@pytest.mark.slow
def test_quick_sweep_of_the_real_network(tmp_path: Path) -> None:
    out = tmp_path / "raw" / "runs"
    done = run_process(
        "sweep",
        "--backend",
        "onnxruntime",
        "--quick",
        "--batch-sizes",
        "2",
        "--format",
        "json",
        "--out",
        out,
    )
    assert done.returncode == 0, done.stderr
    (point,) = json.loads(done.stdout)
    assert (point["batch_size"], point["origin"], point["compute_precision"]) == (
        2,
        "measured",
        "fp32",
    )
    assert point["cosine"] > 0.999999
    assert point["top1"] == 1.0
    assert point["throughput"] == pytest.approx(1000 * 2 / point["latency_ms"])
    (run,) = list_finished(out)
    text = (run / "record.json").read_text(encoding="utf-8")
    model = json.loads(text)["model"]
    assert (model["name"], model["weights"]) == ("resnext101-32x4d", "random-he-seed0")
    assert str(tmp_path) not in text
    (row,) = read_points(run)
    assert float(row["throughput"]) == point["throughput"]
    assert pq.read_table(run / "stamps.parquet").num_rows == int(row["iterations"])


@pytest.mark.slow
def test_model_that_is_not_fp32_has_no_reference_and_suspect_rows_are_strict(
    tmp_path: Path, tiny: tuple[object, ...]
) -> None:
    """Its own outputs would always agree with themselves."""
    _, model, *images = tiny
    half = tmp_path / "half.onnx"
    onnx.save(convert_float_to_float16(onnx.load(model), keep_io_types=True), half)
    args = (
        "--backend",
        "onnxruntime",
        "--model",
        half,
        "--batch-sizes",
        "2",
        "--quick",
        "--set",
        "rounds=1",
        *images,
    )
    done = run_cli("sweep", *args, "--format", "json", "--out", tmp_path / "runs", "--strict")
    assert done.returncode == 3, done.stderr
    (point,) = json.loads(done.stdout)
    assert "only 1 round" in point["suspect"]
    assert (point["model_precision"], point["cosine"], point["top1"]) == ("fp16", None, None)
    refused = run_cli("sweep", *args, "--precision", "fp32", "--out", tmp_path / "refused")
    assert refused.returncode == 1
    assert "is fp16 already and cannot be converted to fp32" in refused.stderr


def start_sweep(
    out: Path, tiny: tuple[object, ...], *args: object, **more: Any
) -> subprocess.Popen[str]:
    options = (
        *tiny,
        "--backend",
        "onnxruntime",
        "--batch-sizes",
        "2,4",
        "--quick",
        "--out",
        out,
        *args,
    )
    command = [sys.executable, "-m", "ipu_results", "sweep", *map(str, options)]
    pipes: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        **more,
    }
    return subprocess.Popen(command, cwd=ROOT, **pipes)


def read_finished_blocks(out: Path) -> list[Any]:
    """Read the blocks in the whole lines of a journal: the last line may still be written."""
    blocks = []
    for path in out.glob("*.unfinished/journal.jsonl"):
        whole, _, _ = path.read_bytes().rpartition(b"\n")
        steps = [json.loads(line) for line in whole.splitlines()]
        blocks += [step["block"] for step in steps if step["step"] == "block"]
    return blocks


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_sweep_is_resumed_with_its_blocks(
    tmp_path: Path, tiny: tuple[object, ...], how: signal.Signals
) -> None:
    out = tmp_path / "runs"
    process = start_sweep(out, tiny, "--set", "rounds=1")
    assert wait_for(lambda: bool(read_finished_blocks(out)), 60)
    process.send_signal(how)
    _, stderr = process.communicate(timeout=600)
    (folder,) = out.glob("*.unfinished")
    run_id = folder.name.removesuffix(".unfinished")
    if how == signal.SIGINT:
        assert process.returncode == 1
        assert f"interrupted; finished blocks are kept; go on with: --resume {run_id}" in stderr
    kept = read_finished_blocks(out)
    done = run_cli("sweep", "--resume", "--out", out)
    assert done.returncode == 0, done.stderr
    blocks = read_blocks(out / run_id)
    assert len(blocks) > len(kept) >= 1
    assert [block["started_at"] for block in blocks[: len(kept)]] == [
        block["started_at"] for block in kept
    ]
    assert [path.name for path in out.iterdir()] == [run_id]


def test_resumed_sweep_may_be_debugged(tmp_path: Path) -> None:
    done = run_cli("sweep", "--resume", "--debug", "--out", tmp_path)
    assert done.returncode == 1, "there is no run, and --debug is not wrong usage"
