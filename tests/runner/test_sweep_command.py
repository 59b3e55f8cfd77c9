"""`ipu-results sweep` on a real device. What it prints is in the golden files."""

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

from tests.conftest import ROOT, run_cli
from tests.runner.runner_support import (
    build_tiny_model,
    read_blocks,
    read_points,
    read_record,
    wait_for,
    write_images,
    write_tiny_model,
)

QUICK = ("sweep", "--backend", "onnxruntime", "--quick")


def test_help_lists_the_keys_of_set() -> None:
    keys = re.findall(r"^ +([\w.]+)=\S", run_cli("sweep", "--help").stdout, re.M)
    assert keys == [*SETTINGS, "options.NAME"]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--batch-sizes", "two"], 2, "--batch-sizes"),
        (["--backend", "popart"], 1, "PopART is not installed"),
        (["--resume", "--set", "rounds=3"], 2, "not with --set"),
    ],
)
def test_impossible_sweep_is_one_clear_line(
    tmp_path: Path, args: list[str], code: int, message: str
) -> None:
    done = run_cli("sweep", *args, "--out", tmp_path / "runs")
    assert done.returncode == code
    assert message in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_quick_sweep_of_the_real_network(tmp_path: Path) -> None:
    out = tmp_path / "raw" / "runs"
    done = run_cli(*QUICK, "--batch-sizes", "2", "--format", "json", "--out", out)
    assert done.returncode == 0, done.stderr
    (point,) = json.loads(done.stdout)
    assert (point["batch_size"], point["origin"], point["top1"]) == (2, "measured", 1.0)
    assert point["cosine"] > 0.999999
    (run,) = out.iterdir()
    model = read_record(run)["model"]
    assert (model["name"], model["weights"]) == ("resnext101-32x4d", "random-he-seed0")
    (row,) = read_points(run)
    assert float(row["throughput"]) == point["throughput"]
    assert pq.read_table(run / "stamps.parquet").num_rows == int(row["iterations"])


@pytest.mark.slow
def test_model_that_is_not_fp32_has_no_reference_and_suspect_rows_are_strict(
    tmp_path: Path,
) -> None:
    """Its own outputs would always agree with themselves."""
    half = tmp_path / "half.onnx"
    onnx.save(convert_float_to_float16(build_tiny_model(), keep_io_types=True), half)
    images = write_images(tmp_path / "images")
    args = (*QUICK, "--model", half, "--images", images, "--batch-sizes", "2", "--set", "rounds=1")
    done = run_cli(*args, "--format", "json", "--out", tmp_path / "runs", "--strict")
    assert done.returncode == 3, done.stderr
    (point,) = json.loads(done.stdout)
    assert "only 1 round" in point["suspect"]
    assert (point["model_precision"], point["cosine"], point["top1"]) == ("fp16", None, None)
    refused = run_cli(*args, "--precision", "fp32", "--out", tmp_path / "refused")
    assert refused.returncode == 1
    assert "is fp16 already and cannot be converted to fp32" in refused.stderr


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
def test_interrupted_sweep_is_resumed_with_its_blocks(tmp_path: Path, how: signal.Signals) -> None:
    out = tmp_path / "runs"
    model = write_tiny_model(tmp_path / "tiny.onnx")
    images = write_images(tmp_path / "images")
    command = [sys.executable, "-m", "ipu_results", *QUICK, "--batch-sizes", "2,4"]
    command += ["--set", "rounds=1", "--model", str(model), "--images", str(images)]
    with subprocess.Popen(
        [*command, "--out", str(out)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert wait_for(lambda: bool(read_finished_blocks(out)), 60)
        process.send_signal(how)
        _, stderr = process.communicate()
    (folder,) = out.glob("*.unfinished")
    run_id = folder.name.removesuffix(".unfinished")
    if how == signal.SIGINT:
        assert process.returncode == 1
        assert f"interrupted; finished blocks are kept; go on with: --resume {run_id}" in stderr
    kept = [block["started_at"] for block in read_finished_blocks(out)]
    done = run_cli("sweep", "--resume", "--out", out)
    assert done.returncode == 0, done.stderr
    blocks = [block["started_at"] for block in read_blocks(out / run_id)]
    assert len(blocks) > len(kept) >= 1
    assert blocks[: len(kept)] == kept
    assert [path.name for path in out.iterdir()] == [run_id]
