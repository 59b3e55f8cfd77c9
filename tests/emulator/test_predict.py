"""`ipu-results predict` as a user runs it."""

from __future__ import annotations

import json
from typing import Any

from ipu_results.emulator.network import load_network
from ipu_results.emulator.prediction import Prediction, predict
from ipu_results.emulator.target import load_calibration, load_target, read_toml
from ipu_results.emulator.training import KEYS

from tests.conftest import run_cli

CONTRACT = [
    *(
        "batch_size",
        "micro_batch_size",
        "throughput",
        "latency_ms",
        "latency_ms_low",
        "latency_ms_high",
    ),
    *("device_ms", "protocol_ms", "power_w", "memory_verdict"),
]


def predict_json(*args: object) -> list[dict[str, Any]]:
    done = run_cli("predict", *args, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    records: list[dict[str, Any]] = json.loads(done.stdout)
    return records


def predict_points(model: str, machine: str, *batch_sizes: int) -> list[Prediction]:
    return predict(load_network(model), load_target(machine), batch_sizes)


def test_sweep_of_the_paper() -> None:
    sweep = predict_json("--target", "c2")
    assert [list(record)[:10] for record in sweep] == [CONTRACT] * 6
    assert [record["batch_size"] for record in sweep] == [2, 4, 6, 8, 10, 12]
    assert [record["micro_batch_size"] for record in sweep] == [1, 2, 3, 4, 5, 6]
    for record in sweep:
        assert record["latency_ms_low"] <= record["latency_ms"] < record["latency_ms_high"]
        assert 184 < record["power_w"] < 300
        assert record["memory_verdict"] != "DOES-NOT-FIT"
        labels = {name: record[name] for name in list(record)[10:15]}
        assert labels == {
            "target": "c2",
            "model": "resnext101-32x4d",
            "protocol": "paper",
            "calibration_id": load_calibration().id,
            "origin": "emulated",
        }


def test_table_ends_with_what_the_figures_are() -> None:
    last = run_cli("predict", "--target", "c2", "--batch-sizes", "2").stdout.splitlines()[-1]
    for word in (
        "emulated, not measured",
        load_calibration().id,
        "straight line",
        "± 10 %",
        "not validated",
    ):
        assert word in last
    last = run_cli(
        "predict", "--target", "m2000", "--batch-sizes", "4", "--model", "resnet50"
    ).stdout.splitlines()[-1]
    assert last.startswith("emulated, not measured: resnet50 on m2000")
    assert "straight line" not in last


def test_memory_verdicts() -> None:
    """The published sizes are tested with the published rows."""
    sweep = predict_points("resnext101-32x4d", "c2", 2, 12, 18, 48)
    assert [point.memory_verdict for point in sweep] == [
        "FITS",
        "UNCERTAIN",
        "DOES-NOT-FIT",
        "DOES-NOT-FIT",
    ]
    assert sweep[-1].throughput > 0
    assert [point.memory_verdict for point in predict_points("resnext101-32x8d", "c2", 2)] == [
        "DOES-NOT-FIT"
    ]
    assert [point.memory_verdict for point in predict_points("resnet50", "m2000", 4, 64)] == [
        "FITS",
        "FITS",
    ]


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
    assert "ipu-results predict --target c2" in text
    assert all(f" {key} " in text for key in KEYS)
