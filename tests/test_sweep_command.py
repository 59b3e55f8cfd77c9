"""`ipu-results sweep` as a user meets it."""

from __future__ import annotations

import csv
import json
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, Done, run_cli, run_process
from ipu_results.runner.companions import VARIABLE
from onnxruntime.transformers.float16 import convert_float_to_float16
from runner_support import pictures, tiny_model

SHORT = ("--batch-sizes", "2,4", "--rounds", "2")


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests' sweeps run beside these and would be warned of."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "locks"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return tiny_model(tmp_path / "tiny.onnx")


@pytest.fixture
def images(tmp_path: Path) -> tuple[str, Path]:
    """Pictures to feed: those that a sweep makes for itself take seconds."""
    return "--images", pictures(tmp_path / "pictures")


def _null(out: Path, *more: object) -> Done:
    return run_cli("sweep", "--backend", "null", *SHORT, "--out", out, *more)


def _finished(out: Path) -> list[Path]:
    return sorted(path for path in out.iterdir() if path.is_dir() and "." not in path.name)


def _rows(run: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((run / "points.csv").read_text(encoding="utf-8").splitlines()))


def test_a_quick_sweep_of_the_real_network(tmp_path: Path) -> None:
    out = tmp_path / "raw" / "runs"
    done = run_process(
        "sweep", "--backend", "onnxruntime", "--quick", "--batch-sizes", "2", "--format", "json", "--out", out
    )
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)
    assert [point["batch_size"] for point in points] == [2]
    for point in points:
        assert point["origin"] == "measured"
        assert point["compute_precision"] == "fp32"
        assert point["cosine"] > 0.999999
        assert point["top1"] == 1.0
        assert point["throughput"] == pytest.approx(1000 * point["batch_size"] / point["latency_ms"])
        assert point["published_platform"] == "C2"
        assert 0 < point["throughput_ratio"] < 1
        assert any(one.startswith("compute precision: fp32 / ") for one in point["differs"])
    (run,) = _finished(out)
    record = json.loads((run / "record.json").read_text(encoding="utf-8"))
    assert record["model"]["name"] == "resnext101-32x4d"
    assert record["model"]["weights"] == "random-he-seed0"
    assert str(tmp_path) not in (run / "record.json").read_text(encoding="utf-8")
    rows = _rows(run)
    assert [float(row["throughput"]) for row in rows] == [point["throughput"] for point in points]
    stamps = pq.read_table(run / "stamps.parquet")
    assert stamps.num_rows == sum(int(row["iterations"]) for row in rows)
    assert f"appended: {run}" in done.stderr


def test_nothing_is_asked_without_a_terminal(tmp_path: Path, model: Path, images: tuple[str, Path]) -> None:
    out = tmp_path / "runs"
    asked = ("--backend", "emulator", "--model", model, "--batch-sizes", "2", *images)
    done = run_cli("sweep", *asked, "--out", out)
    assert done.returncode == 0
    assert "Ingest it now" not in done.stdout + done.stderr
    assert f"`ipu-results ingest --raw {tmp_path}`" in done.stderr
    assert "ipu-results ingest" not in _null(tmp_path / "null" / "runs").stderr


def test_progress_and_findings_go_to_stderr(tmp_path: Path) -> None:
    done = _null(tmp_path / "runs", "--format", "json")
    assert [point["batch_size"] for point in json.loads(done.stdout)] == [2, 4]
    assert re.search(r"^round 1: 0 of 6 blocks measured, about \d+ s left$", done.stderr, re.M)


def test_a_suspect_row_fails_a_strict_sweep_and_no_other(tmp_path: Path) -> None:
    assert _null(tmp_path / "a").returncode == 0
    strict = _null(tmp_path / "b", "--strict")
    assert strict.returncode == 3
    assert "only 2 rounds" in strict.stdout
    quiet = run_cli("sweep", "--backend", "null", "--batch-sizes", "2", "--rounds", "6", "--out", tmp_path, "--strict")
    assert quiet.returncode == 0


def test_a_simulated_run_is_not_appended_to_the_documents() -> None:
    done = run_cli("sweep", "--backend", "null")
    assert done.returncode == 2
    assert "a simulated run is no result" in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (["--backend", "null", "--batch-sizes", "3"], 1, "batch 3 cannot be dealt evenly to 2 sessions"),
        (["--backend", "null", "--batch-sizes", "two"], 2, "no list of batch sizes"),
        (["--backend", "null", "--option", "noise"], 1, "'noise' is no option NAME=JSON"),
        (["--backend", "null", "--option", "speed=1"], 1, "the null device has no option 'speed'"),
        (["--backend", "onnxruntime", "--device", "cuda:0"], 1, "CUDAExecutionProvider"),
        (["--backend", "onnxruntime", "--device", "tpu"], 1, "is no device of onnxruntime, which has: cpu"),
        (["--backend", "popart"], 1, "PopART is not installed"),
        (["--backend", "emulator", "--precision", "int8"], 1, "emulator: c2: does not compute in int8"),
        (["--backend", "onnxruntime", "--model", "absent.onnx"], 1, "absent.onnx: is no file"),
        (["--backend", "onnxruntime", "--images", "absent"], 1, "absent: is no folder of images"),
        (["--plot", "sweep.gif"], 2, "neither .svg nor .png"),
        (["--device", "cuda:1"], 1, "cuda:1: is a device of which backend? --backend names it"),
        (
            ["--resume", "20260101-000000-x", "--dry-run"],
            2,
            "as the run was begun: not with --dry-run",
        ),
        (["--resume", "20260101-000000-x", "--rounds", "3"], 2, "not with --rounds"),
        (["--backend", "emulator", "--rounds", "3"], 2, "an emulated sweep has one round"),
        (["--rounds", "0"], 2, "--rounds"),
        (["--resume"], 1, "no run was interrupted here"),
        (["--resume", "20260101-000000-x"], 1, "is no unfinished run"),
    ],
)
def test_what_cannot_be_run_is_one_clear_line(tmp_path: Path, args: list[str], code: int, told: str) -> None:
    out = tmp_path / "runs"
    done = run_cli("sweep", *args, "--out", out)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists() or list(out.iterdir()) == []


def test_devices_are_listed_with_the_reason_against_them() -> None:
    done = run_cli("sweep", "--list-devices")
    assert done.returncode == 0
    assert re.search(r"^popart +ipu .*PopART is not installed", done.stdout, re.M)
    assert re.search(r"^onnxruntime +cpu .*can be used$", done.stdout, re.M)
    assert re.search(r"^emulator +c2 +emulated +C2 +can be used$", done.stdout, re.M)


def test_a_dry_run_says_what_would_run_and_runs_nothing(tmp_path: Path) -> None:
    done = run_cli("sweep", "--dry-run", "--out", tmp_path / "runs")
    assert done.returncode == 0
    assert done.stdout.count("neither an IPU nor a GPU is here") == 2
    assert done.stdout.index("emulator c2") < done.stdout.index("onnxruntime cpu")
    assert not (tmp_path / "runs").exists()


def test_a_plot_of_an_emulated_sweep(tmp_path: Path, model: Path, images: tuple[str, Path]) -> None:
    pytest.importorskip("vl_convert")
    out = tmp_path / "runs"
    files = [tmp_path / "sweep.svg", tmp_path / "sweep.png"]
    plots = [word for file in files for word in ("--plot", file)]
    asked = ("--backend", "emulator", "--model", model, "--batch-sizes", "2", *images)
    done = run_cli("sweep", *asked, "--out", out, *plots)
    assert done.returncode == 0, done.stderr
    assert "emulated, not measured" in done.stdout
    assert files[0].read_text(encoding="utf-8").startswith("<svg")
    assert files[1].read_bytes().startswith(b"\x89PNG")


def _start(out: Path, model: Path, *args: object, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ipu_results", "sweep", "--backend", "onnxruntime", "--model", str(model)]
    command += ["--batch-sizes", "2,4", "--quick", "--out", str(out), *map(str, args)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
    return subprocess.Popen(command, cwd=ROOT, **pipes)


def _journal(out: Path) -> Path:
    (path,) = out.glob("*.unfinished/journal.jsonl")
    return path


def _wait_for_blocks(out: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any(path.read_text(encoding="utf-8").count('"step": "block"') >= count for path in _journals(out)):
            return
        time.sleep(0.05)
    raise AssertionError("no block was measured")


def _journals(out: Path) -> list[Path]:
    return list(out.glob("*.unfinished/journal.jsonl"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_sweep_goes_on_with_its_blocks(
    tmp_path: Path, model: Path, images: tuple[str, Path], how: signal.Signals
) -> None:
    out = tmp_path / "runs"
    process = _start(out, model, *images, "--rounds", 1)
    _wait_for_blocks(out, 1)
    process.send_signal(how)
    _, told = process.communicate(timeout=60)
    run_id = _journal(out).parent.name.removesuffix(".unfinished")
    if how == signal.SIGINT:
        assert process.returncode == 1
        assert f"interrupted; finished blocks are kept; go on with: --resume {run_id}" in told
    whole = _journal(out).read_bytes().rpartition(b"\n")[0].splitlines()
    kept = [json.loads(line)["block"] for line in whole if b'"step": "block"' in line]
    done = run_cli("sweep", "--resume", "--out", out, "--no-ingest")
    assert done.returncode == 0, done.stderr
    blocks = [json.loads(line) for line in (out / run_id / "blocks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(blocks) > len(kept) >= 1
    assert [one["started_at"] for one in blocks[: len(kept)]] == [one["started_at"] for one in kept]
    assert [path.name for path in out.iterdir()] == [run_id]


def test_two_sweeps_at_once_warn_each_other(tmp_path: Path, model: Path, images: tuple[str, Path]) -> None:
    outs = [tmp_path / "a", tmp_path / "b"]
    processes = [_start(out, model, *images) for out in outs]
    told = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    for said, other in zip(told, outs[::-1], strict=True):
        assert f"warning: another sweep runs on this machine: {_finished(other)[0].name}" in said
    for out in outs:
        assert all("another sweep ran beside" in row["suspect"] for row in _rows(_finished(out)[0]))


def test_a_full_disk_stops_it_cleanly(tmp_path: Path, model: Path, images: tuple[str, Path]) -> None:
    """The journal's limit of size stands for the disk's."""
    out = tmp_path / "runs"

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    process = _start(out, model, *images, preexec_fn=limited)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Traceback" not in told
    if _journals(out):
        assert _journal(out).read_bytes().endswith(b"\n")


def test_an_emulated_sweep_takes_the_precision_that_it_has(
    tmp_path: Path, model: Path, images: tuple[str, Path]
) -> None:
    out = tmp_path / "runs"
    asked = ("--backend", "emulator", "--precision", "fp16", "--model", model, *images, "--batch-sizes", "2")
    done = run_cli("sweep", *asked, "--format", "json", "--out", out)
    assert done.returncode == 0, done.stderr
    (point,) = json.loads(done.stdout)
    assert (point["origin"], point["compute_precision"], point["model_precision"]) == ("emulated", "fp16", "fp32")


def test_a_model_that_is_not_fp32_is_held_against_nothing(
    tmp_path: Path, model: Path, images: tuple[str, Path]
) -> None:
    """Its own outputs would always agree with themselves."""
    halved = tmp_path / "half.onnx"
    onnx.save(convert_float_to_float16(onnx.load(model), keep_io_types=True), halved)
    asked = ("--backend", "onnxruntime", "--model", halved, "--batch-sizes", "2", "--quick", "--rounds", "1")
    asked += ("--format", "json", *images)
    done = run_cli("sweep", *asked, "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    (point,) = json.loads(done.stdout)
    assert (point["model_precision"], point["cosine"], point["top1"]) == ("fp16", None, None)
    refused = run_cli("sweep", *asked, "--precision", "fp32", "--out", tmp_path / "refused")
    assert refused.returncode == 1
    assert "is fp16 already and cannot be made fp32" in refused.stderr
