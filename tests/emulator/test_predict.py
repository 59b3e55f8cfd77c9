"""`ipu-results predict` as a user runs it."""

from __future__ import annotations

import json

from ipu_results.emulator.network import load_network
from ipu_results.emulator.prediction import predict
from ipu_results.emulator.target import load_calibration, load_target, read_toml
from ipu_results.emulator.training import KEYS

from tests.conftest import run_cli
from tests.emulator.model_support import predict_json


def test_sweep_of_the_paper() -> None:
    sweep = predict_json("--target", "c2")
    assert [record["batch_size"] for record in sweep] == [2, 4, 6, 8, 10, 12]
    labels = {
        "target": "c2",
        "model": "resnext101-32x4d",
        "protocol": "paper",
        "calibration_id": load_calibration().id,
        "origin": "emulated",
    }
    for record in sweep:
        assert record["micro_batch_size"] == record["batch_size"] / 2
        assert record["latency_ms_low"] <= record["latency_ms"] < record["latency_ms_high"]
        assert 184 < record["power_w"] < 300
        assert record.items() >= labels.items()


def test_table_ends_with_what_the_figures_are() -> None:
    done = run_cli("predict", "--target", "c2", "--batch-sizes", "2")
    last = done.stdout.splitlines()[-1]
    assert last.startswith("emulated, not measured: resnext101-32x4d on c2")
    for word in (load_calibration().id, "straight line", "± 10 %", "not validated"):
        assert word in last


def test_memory_verdicts() -> None:
    """The published sizes are tested with the published rows."""
    resnext = load_network("resnext101-32x4d")
    points = predict(resnext, load_target("c2"), [2, 12, 18])
    verdicts = [point.memory_verdict for point in points]
    assert verdicts == ["FITS", "UNCERTAIN", "DOES-NOT-FIT"]
    (wide,) = predict(load_network("resnext101-32x8d"), load_target("c2"), [2])
    assert wide.memory_verdict == "DOES-NOT-FIT"


def test_network_that_does_not_fit_is_reported_and_strict_exits_1() -> None:
    arguments = ("predict", "--target", "c2", "--batch-sizes", "2,24", "--format", "json")
    result, strict = run_cli(*arguments), run_cli(*arguments, "--strict")
    assert (result.returncode, strict.returncode) == (0, 1)
    first, last = json.loads(strict.stdout)
    assert first["memory_needed_bytes"] < first["memory_available_bytes"] == 256 * 1024
    assert last["memory_needed_bytes"] > last["memory_available_bytes"]
    [line] = strict.stderr.splitlines()
    assert "batch size 24 does not fit: it needs" in line
    assert f"which has 256 KiB; most for {last['memory_operator']}" in line


def test_help_names_protocols_and_keys() -> None:
    text = " ".join(run_cli("predict", "--help").stdout.split())
    assert f"Protocols: {', '.join(read_toml('protocols.toml')['protocols'])}." in text
    assert all(f" {key} " in text for key in KEYS)
