"""`ipu-results predict` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from conftest import run_cli, run_process
from ipu_results.cli.emulator import BATCH_SIZES, TARGETS
from ipu_results.emulator import cache, records, target
from ipu_results.emulator.calibration import frozen
from ipu_results.emulator.memory import bytes_per_tile
from ipu_results.emulator.network import Network, network
from ipu_results.emulator.plot import PARTS, draw, parts
from ipu_results.emulator.prediction import Prediction, predict
from ipu_results.emulator.protocol import protocols
from ipu_results.emulator.target import load_target
from ipu_results.errors import InconsistentModelError
from model_support import image

CONTRACT = [
    "batch_size",
    "micro_batch_size",
    "throughput",
    "latency_ms",
    "latency_ms_low",
    "latency_ms_high",
    "device_ms",
    "protocol_ms",
    "power_w",
    "memory_verdict",
]
CONV = {"w": (8, 4, 3, 3)}


@pytest.fixture(autouse=True, scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One cache folder for all tests here, not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("plans")
        patch.setenv(cache.FOLDER, str(folder))
        yield folder


def predicted(*args: object) -> list[dict[str, Any]]:
    done = run_cli("predict", *args, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def points(model: str, machine: str, *batch_sizes: int) -> list[Prediction]:
    with cache.saved() as planner:
        return predict(network(model), load_target(machine), batch_sizes, planner=planner)


def refused(*args: object, status: int = 1) -> str:
    """The message, in one line where the data are wrong and not the usage."""
    done = run_cli("predict", *args)
    assert (done.returncode, done.stdout) == (status, "")
    assert status == 2 or len(done.stderr.splitlines()) == 1
    return str(done.stderr.rstrip("\n"))


def saved_model(path: Path, body: str, weights: dict[str, tuple[int, ...]] | None = None) -> Path:
    onnx.save(image(body, weights), path)
    return path


def test_the_sweep_of_the_paper() -> None:
    found = predicted("--target", "c2")
    assert [list(one)[:10] for one in found] == [CONTRACT] * 6
    assert [one["batch_size"] for one in found] == [2, 4, 6, 8, 10, 12]
    assert [one["micro_batch_size"] for one in found] == [1, 2, 3, 4, 5, 6]
    for one in found:
        assert one["latency_ms_low"] < one["latency_ms"] < one["latency_ms_high"]
        assert one["latency_ms"] == pytest.approx(one["device_ms"] + one["protocol_ms"])
        assert one["throughput"] == pytest.approx(1000 * one["batch_size"] / one["latency_ms"])
        assert one["compute_share"] + one["exchange_share"] + one["superstep_share"] == pytest.approx(1)
        assert 184 < one["power_w"] < 300
        assert one["memory_verdict"] != "DOES-NOT-FIT"


def test_every_record_says_that_it_is_emulated() -> None:
    (one,) = predicted("--target", "c2", "--batch-sizes", "4")
    told = {name: one[name] for name in list(one)[10:15]}
    assert told == {
        "target": "c2",
        "model": "resnext101-32x4d",
        "protocol": "paper",
        "calibration_id": frozen().id,
        "origin": "emulated",
    }


def test_defaults_of_the_other_machines() -> None:
    found = predicted("--target", "bow-2000", "--model", "efficientnet-b0")
    assert [one["batch_size"] for one in found] == [4, 8, 16, 32, 64]
    assert {(one["protocol"], one["power_w"]) for one in found} == {("tensorflow", None)}
    for one in found:
        assert one["latency_ms"] == pytest.approx(3 * (one["device_ms"] + one["protocol_ms"]))


def test_protocols_differ_in_the_host_path_alone() -> None:
    slow, fast = (
        predicted("--target", "m2000", "--batch-sizes", "4", "--model", "resnet50", "--protocol", name)[0]
        for name in ("lowest-latency", "tensorflow")
    )
    assert slow["device_ms"] == fast["device_ms"]
    assert slow["protocol_ms"] > fast["protocol_ms"]
    assert slow["latency_ms"] < fast["latency_ms"], "three batches are in flight"


def test_the_table_ends_with_what_the_figures_are() -> None:
    last = run_cli("predict", "--target", "c2", "--batch-sizes", "2").stdout.splitlines()[-1]
    for word in ("emulated, not measured", frozen().id, "straight line", "± 10 %", "not validated"):
        assert word in last
    last = run_cli("predict", "--target", "m2000", "--batch-sizes", "4", "--model", "resnet50").stdout.splitlines()[-1]
    assert last.startswith("emulated, not measured: resnet50 on m2000")
    assert "straight line" not in last


def test_csv_and_json_agree(tmp_path: Path) -> None:
    args = ("--target", "c2", "--batch-sizes", "2,12")
    done = run_cli("predict", *args, "--format", "csv", "--out", tmp_path / "a.csv")
    assert (done.returncode, done.stdout) == (0, "")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(encoding="utf-8"))))
    assert [float(row["latency_ms"]) for row in rows] == [one["latency_ms"] for one in predicted(*args)]
    assert list(rows[0]) == list(records.FIELDS)


def test_figures_are_given_for_what_does_not_fit() -> None:
    (one,) = predicted("--target", "c2", "--batch-sizes", "20")
    assert one["memory_verdict"] == "DOES-NOT-FIT"
    assert one["throughput"] > 0
    assert one["latency_ms_low"] < one["latency_ms"] < one["latency_ms_high"]


@pytest.mark.parametrize(
    ("model", "machine", "batch_sizes"),
    [
        ("resnext101-32x4d", "c2", (2, 4, 6, 8, 10, 12)),
        ("resnext101-32x4d", "m2000", (4, 16, 64)),
        ("resnext101-32x8d", "m2000", (4, 16, 64)),
        ("resnet50", "m2000", (4, 64, 256, 360)),
        ("resnet50", "bow-2000", (4, 256)),
        ("efficientnet-b0", "m2000", (4, 144, 196)),
        ("efficientnet-b0", "bow-2000", (4, 192)),
        ("efficientnet-b4", "m2000", (4, 16, 40)),
        ("efficientnet-b4", "bow-2000", (4, 48)),
        ("efficientnet-b7", "m2000", (4, 8)),
        ("bert-large", "m2000", (4, 8)),
    ],
)
def test_no_published_size_is_refused(model: str, machine: str, batch_sizes: tuple[int, ...]) -> None:
    assert "DOES-NOT-FIT" not in {one.memory_verdict for one in points(model, machine, *batch_sizes)}


def test_gc2_refuses_large_batches_and_the_wide_network() -> None:
    large = points("resnext101-32x4d", "c2", *range(20, 50, 2))
    wide = points("resnext101-32x8d", "c2", 2, 4, 8, 12, 20)
    assert {one.memory_verdict for one in (*large, *wide)} == {"DOES-NOT-FIT"}


def test_more_images_never_need_less_room_for_data() -> None:
    small, large = points("resnet50", "m2000", 64, 360)
    machine, programs = load_target("m2000"), network("resnet50")
    shares = [bytes_per_tile(programs(one.micro_batch_size), one.schedule, machine) for one in (small, large)]
    assert shares[0] < shares[1] < machine["sram"]


def test_layers_are_those_of_the_network_and_add_up() -> None:
    layers = predicted("--target", "c2", "--batch-sizes", "2,12", "--layers")
    (whole,) = predicted("--target", "c2", "--batch-sizes", "2")
    assert list(layers[0]) == list(records.LAYERS)
    assert sum(one["kind"] == "convolution" for one in layers) == 104
    assert {one["batch_size"] for one in layers} == {2}
    assert sum(one["us"] for one in layers) == pytest.approx(1000 * whole["device_ms"])
    assert {one["origin"] for one in layers} == {"emulated"}
    assert all((one["vertex"] is None) == (one["kind"] not in {"convolution", "gemm"}) for one in layers)
    told = run_cli("predict", "--target", "c2", "--batch-sizes", "2", "--layers").stdout.splitlines()
    assert len(told) == 2 + len(layers) + 1
    assert told[2].split()[0] == layers[0]["operator"] == "stem"
    assert told[-1].startswith("emulated, not measured")


def test_parts_of_the_plot_are_the_time_between_batches() -> None:
    for one in points("resnet50", "m2000", 4, 64):
        assert sum(parts(one).values()) == pytest.approx(1000 * one.batch_size / one.throughput)


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    svg, png = tmp_path / "a.svg", tmp_path / "a.PNG"
    for path in (svg, png):
        done = run_cli("predict", "--target", "c2", "--batch-sizes", "2,4", "--plot", path)
        assert done.returncode == 0, done.stderr
        assert "emulated" in done.stdout
    text = svg.read_text(encoding="utf-8")
    assert all(word in text for word in (*PARTS, "Emulated, not measured", frozen().id))
    assert png.read_bytes().startswith(b"\x89PNG")


def test_a_plot_without_the_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    line = refused("--target", "c2", "--batch-sizes", "2", "--plot", tmp_path / "a.svg")
    assert line == "error: altair is not installed; install it with: pip install 'ipu-results[plots]'"
    assert not list(tmp_path.iterdir())


def test_an_onnx_file(tmp_path: Path) -> None:
    path = saved_model(tmp_path / "tiny.onnx", "c = Conv <pads = [1, 1, 1, 1]> (x, w) y = Relu (c)", CONV)
    (one,) = predicted("--target", "m2000", "--batch-sizes", "8", "--model", path)
    assert (one["model"], one["micro_batch_size"], one["memory_verdict"]) == (str(path), 2, "FITS")


def test_unknown_model() -> None:
    line = refused("--target", "c2", "--model", "resnext102")
    assert line.startswith("error: resnext102: is no file and no built-in network: one of resnext101-32x4d, ")


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"no model\n" * 9)
    assert refused("--target", "c2", "--model", tmp_path / "a.onnx").endswith("a.onnx: is no ONNX model")
    (tmp_path / "b.onnx").write_bytes(b"")
    assert "is no ONNX model" in refused("--target", "c2", "--model", tmp_path / "b.onnx")
    assert "cannot be read" in refused("--target", "c2", "--model", tmp_path)


def test_a_batch_that_cannot_be_dealt() -> None:
    line = refused("--target", "m2000", "--batch-sizes", "4,6")
    assert line == "error: batch 6 cannot be dealt evenly to the 4 chips of m2000"


def test_unknown_protocol() -> None:
    assert refused("--target", "c2", "--protocol", "smoke").startswith("error: smoke: is no protocol: one of paper, ")
    assert refused("--target", "m2000", "--protocol", "paper") == "error: paper: is no protocol of m2000"


def test_an_unsupported_operator_is_named_with_its_node(tmp_path: Path) -> None:
    path = saved_model(tmp_path / "odd.onnx", "h = Relu (x) y = NonZero (h)")
    assert refused("--target", "c2", "--model", path) == f"error: {path}: NonZero y: NonZero is not supported"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--batch-sizes", "2"), "Missing option '--target'"),
        (("--target", "gc3"), "'gc3' is not one of"),
        (("--target", "c2", "--batch-sizes", "2;4"), "is no list of batch sizes such as 2,4,6"),
        (("--target", "c2", "--batch-sizes", "2,0"), "a batch size is from 1 to 100,000"),
        (("--target", "c2", "--batch-sizes", "2000000"), "a batch size is from 1 to 100,000"),
        (("--target", "c2", "--plot", "a.pdf"), "ends in neither .svg nor .png"),
    ],
)
def test_wrong_usage(args: tuple[str, ...], said: str) -> None:
    assert said in refused(*args, status=2)


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    line = refused("--target", "c2", "--batch-sizes", "2", "--out", tmp_path / "no" / "a.csv")
    assert "a.csv: cannot be written" in line


def test_the_help_names_what_there_is() -> None:
    told = " ".join(run_cli("predict", "--help").stdout.split())
    assert tuple(BATCH_SIZES) == TARGETS == target.TARGETS
    assert f"Protocols: {', '.join(protocols())}." in told
    assert "ipu-results predict --target c2" in told


def test_a_warm_sweep_is_quick() -> None:
    sizes = BATCH_SIZES["c2"]
    points("resnext101-32x4d", "c2", *sizes)
    spent = []
    for _ in range(5):
        started = time.perf_counter()
        points("resnext101-32x4d", "c2", *sizes)
        spent.append(time.perf_counter() - started)
    assert min(spent) < 0.03, "7 ms on an idle machine"


def test_a_fresh_process_reads_the_plans(plans: Path) -> None:
    points("resnet50", "c2", 2)
    before = {path: path.stat().st_mtime_ns for path in plans.glob("*.json")}
    done = run_process("predict", "--target", "c2", "--batch-sizes", "2", "--model", "resnet50", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in plans.glob("*.json")} == before, "nothing new was found"
    (here,) = predicted("--target", "c2", "--batch-sizes", "2", "--model", "resnet50")
    assert json.loads(done.stdout) == [here]


def test_a_network_of_one_batch_refuses_others() -> None:
    model = image("y = Relu (x)")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3
    assert isinstance(network(model), Network)
    with pytest.raises(InconsistentModelError, match="fixed at a batch of 3, not 1"):
        predict(network(model), load_target("c2"), [2])


def test_drawing_is_the_same_every_time() -> None:
    pytest.importorskip("vl_convert")
    found = points("resnet50", "m2000", 4)
    assert draw(found, "resnet50", ".svg") == draw(found, "resnet50", ".svg")
