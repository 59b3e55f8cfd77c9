"""`ipu-results predict` as a user runs it, and as a design tool: free shapes, sweeps, profiles."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from ipu_results.emulator import split
from ipu_results.emulator.network import load_network
from ipu_results.emulator.prediction import predict
from ipu_results.emulator.settings import select_protocol
from ipu_results.emulator.sweep import Sweep, parse_sweeps, run_sweep
from ipu_results.emulator.target import Target, load_calibration, load_target, read_toml
from ipu_results.emulator.training import KEYS
from ipu_results.errors import InconsistentModelError

from tests.cases import read_cases
from tests.conftest import run_cli
from tests.emulator.model_support import image, model, predict_json

CONTRACT = "batch_size micro_batch_size throughput latency_ms latency_ms_low latency_ms_high"
CONTRACT += " device_ms protocol_ms power_w memory_verdict"


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
        assert list(record)[:10] == CONTRACT.split()
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
    points = predict(resnext, load_target("c2"), [2, 12, 18, 48])
    verdicts = [point.memory_verdict for point in points]
    assert verdicts == ["FITS", "UNCERTAIN", "DOES-NOT-FIT", "DOES-NOT-FIT"]
    assert points[-1].throughput > 0
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


TEXT = model(
    "(int64[N,L] ids) => (float[N,L,8] y)",
    "e = Gather(w, ids) y = MatMul(e, v)",
    {"w": (9, 4), "v": (4, 8)},
)
SMALL = image("h = Conv<pads=[1,1,1,1]>(x, w) y = Relu(h)", {"w": (8, 4, 3, 3)})


@pytest.fixture
def text(tmp_path: Path) -> Path:
    onnx.save(TEXT, tmp_path / "text.onnx")
    return tmp_path / "text.onnx"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    onnx.save(SMALL, tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


REFUSED = read_cases(__file__, "refused.toml")


# Free dimensions


@pytest.mark.parametrize("shape", ["ids=N,32", "ids=1,32", "ids=-1,32", "L=32"])
def test_shape_sizes_all_but_the_batch(text: Path, shape: str) -> None:
    args = ("--target", "c2", "--model", text, "--batch-sizes", "4", "--layers")
    layers = predict_json(*args, "--shape", shape)
    assert [layer["macs"] for layer in layers] == [0, 2 * 32 * 4 * 8]  # two images a chip


# Sweeps


SWEEPS = ("--sweep", "tiles=100,1472", "--sweep", "clock=1e9,1.33e9")


def test_sweep_predicts_every_combination_as_set_does(small: Path, tmp_path: Path) -> None:
    common = ("--target", "m2000", "--model", small, "--batch-sizes", "4")
    out = tmp_path / "designs.csv"
    done = run_cli("predict", *common, *SWEEPS, "--out", out)
    assert (done.returncode, done.stdout) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["settings"] for row in rows] == [
        "tiles=100, clock=1e9",
        "tiles=100, clock=1.33e9",
        "tiles=1472, clock=1e9",
        "tiles=1472, clock=1.33e9",
    ]
    (single,) = predict_json(*common, "--set", "tiles=100", "--set", "clock=1e9")
    assert float(rows[0]["latency_ms"]) == single["latency_ms"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["designs.csv", "small.onnx"]


def make_sweep(*pairs: str) -> Sweep:
    target = load_target("m2000")
    protocol = select_protocol(None, target)
    return Sweep(load_network(SMALL), target, protocol, [4], parse_sweeps(pairs))


def test_failed_sweep_names_the_design_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, machine: Target, *__: object) -> list[Any]:
        if machine["clock"] == 2e9:
            raise InconsistentModelError("cannot be")
        return []

    monkeypatch.setattr("ipu_results.emulator.sweep.predict", refuse)
    with pytest.raises(InconsistentModelError, match=r"^design clock=2e9, tiles=9: cannot be$"):
        run_sweep(make_sweep("clock=1e9,2e9,3e9", "tiles=9"), tmp_path / "designs.csv")
    assert not list(tmp_path.iterdir())


def test_sweep_is_written_to_no_file_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(InconsistentModelError, match=r"is not a \.csv file"):
        run_sweep(make_sweep("clock=1e9"), tmp_path / "designs.parquet")
    assert not list(tmp_path.iterdir())


def test_designs_that_differ_in_the_clock_share_their_plans() -> None:
    split.search_splits.cache_clear()
    sweep = make_sweep("clock=1e9,2e9", "tiles=100,1472")
    for design in sweep.designs:
        sweep.predict_design(design)
    assert split.search_splits.cache_info().currsize == 2


def test_search_is_given_the_constants_that_it_reads_and_no_other() -> None:
    searched = load_target("m2000").searched
    assert {"tiles", "sram", "amp1.worker_more"} <= searched.constants.keys()
    assert not {"clock", "host.link", "elementwise.add"} & searched.constants.keys()


@pytest.fixture
def models(text: Path, small: Path, tmp_path: Path) -> dict[str, str]:
    """Return the models that `refused.toml` names."""
    onnx.save(image("h = Relu(x) y = NonZero(h)"), tmp_path / "odd.onnx")
    return {"{text}": str(text), "{small}": str(small), "{odd}": str(tmp_path / "odd.onnx")}


@pytest.mark.parametrize(("kind", "status"), [("usage", 2), ("error", 1)])
def test_what_is_refused_predicts_nothing_and_says_why(
    kind: str, status: int, models: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    machine = tmp_path / "machine.toml"
    models["{machine}"] = str(machine)
    machine.touch()
    before = sorted(tmp_path.iterdir())
    for case in REFUSED[kind]:
        args = [models.get(word, word) for word in case["args"]]
        machine.write_text(case.get("machine", ""), encoding="utf-8")
        done = run_cli("predict", *args)
        assert (done.returncode, done.stdout) == (status, ""), case
        assert case["says"] in done.stderr, case
        assert status == 2 or done.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


# Profiles


def test_profile_of_operators_adds_up() -> None:
    args = ("--target", "c2", "--model", "resnet50", "--batch-sizes", "4")
    (record,) = predict_json(*args)
    layers = predict_json(*args, "--layers")
    target = load_target("c2")
    macs = load_network("resnet50")(2).macs
    assert sum(layer["macs"] for layer in layers) == macs
    # the share of peak, by hand: 8 units × 16 channels ÷ 4 cycles = 32 multiply-accumulates a cycle
    # on 1216 tiles
    peak = 32 * 1216 * 1.6e9
    first = layers[0]
    assert first["peak_share"] == pytest.approx(first["macs"] / (first["us"] / 1e6) / peak)
    for layer in layers:
        assert (layer["peak_share"] is None) == (layer["macs"] == 0)
    # idle power for the time on both chips, and the energy of their multiply-accumulates
    energy = target["power.idle"] * record["device_ms"] / 1000 + target["power.mac"] * macs * 2
    assert sum(layer["energy_j"] for layer in layers) == pytest.approx(energy)
    assert max(layer["tile_bytes"] for layer in layers) <= target["sram"]


def test_times_of_layers_add_up_with_another_superstep() -> None:
    args = ("--target", "c2", "--model", "resnet50", "--batch-sizes", "4")
    changed = (*args, "--set", "superstep.cycles=1200")
    (record,) = predict_json(*changed)
    layers = predict_json(*changed, "--layers")
    cycles = 0
    for layer in layers:
        cycles += layer["compute_cycles"] + layer["reduce_cycles"] + layer["exchange_cycles"]
        cycles += layer["supersteps"] * 1200
    us = sum(layer["us"] for layer in layers)
    assert us == pytest.approx(1e6 * cycles / 1.6e9)
    assert us / 1000 == pytest.approx(record["device_ms"])


def test_memory_of_an_operator_by_hand(small: Path) -> None:
    args = ("--target", "m2000", "--model", small, "--batch-sizes", "4", "--layers")
    conv, relu = predict_json(*args)
    # 4·8·8 elements of input and 8·8·8 of output, 2 bytes each; the activation overwrites its
    # source
    assert (conv["live_bytes"], relu["live_bytes"]) == (2 * (256 + 512), 2 * 512)
    assert relu["energy_j"] is None
    # 8·8·8 results and 8·4·3·3 weights are spread over the tiles, the code of each superstep is on
    # every tile
    code = load_target("m2000")["memory.superstep"] * (conv["supersteps"] + relu["supersteps"])
    assert relu["tile_bytes"] == pytest.approx(2 * (512 + 288) / 1472 + code)
    conv, relu = predict_json(*args, "--set", "io_tiles=1372")
    code = load_target("m2000")["memory.superstep"] * (conv["supersteps"] + relu["supersteps"])
    assert relu["tile_bytes"] == pytest.approx(2 * (512 + 288) / 100 + code)
