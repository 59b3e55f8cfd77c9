"""The PopART backend against a fake (fakes/popart), in processes of their own: the order of imports
matters.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from ipu_results.runner.workload import compute_reference

from tests.runner.runner_support import CLASSES, build_tiny_model

pytestmark = pytest.mark.slow  # a process with onnx for each test

ROOT = Path(__file__).parents[2]
FAKES = ROOT / "tests" / "runner" / "fakes"
SIZE = 8
SDKS = ("2.2", "3.0")

PRELUDE = """
import json, sys
import numpy as np
from ipu_results.errors import BackendError
from ipu_results.runner.backends import popart as backend
from ipu_results.runner.backends import SessionSpec

def spec(**changes):
    own = {"device": "ipu", "model": "unused", "micro_batches": (1, 2)}
    options = {"static_models": MODELS, "batches_per_step": 1, "engine_cache": "", **changes.pop("options", {})}
    return SessionSpec(**{**own, **changes, "options": options})

def images(micro_batch, dtype="float16"):
    return np.random.default_rng(micro_batch).standard_normal((micro_batch, 3, SIZE, SIZE)).astype(dtype)

def refuse(do, *args):
    try:
        do(*args)
    except BackendError as error:
        return error.message
    return None
"""


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("static")
    made = {str(batch): build_tiny_model(SIZE, batch) for batch in (1, 2, 5)}
    made["symbolic"] = build_tiny_model(SIZE)
    made["inputs"] = build_tiny_model(SIZE, 1, inputs=2)
    made["opset"] = build_tiny_model(SIZE, 1)
    made["opset"].opset_import[0].version = 12
    made["ir"] = build_tiny_model(SIZE, 1)
    made["ir"].ir_version = 8
    paths = {}
    for name, model in made.items():
        paths[name] = str(folder / f"{name}.onnx")
        onnx.save(model, paths[name])
    return paths


def drive(
    script: str, models: dict[str, str], package: Path | str = FAKES, **environment: str
) -> dict[str, Any]:
    """Return what a script leaves as `result` in a process where `popart` is the fake, or another
    package.
    """
    variables = {key: value for key, value in os.environ.items() if not key.startswith("POP")}
    variables["PYTHONPATH"] = f"{package}{os.pathsep}{ROOT / 'pipeline'}"
    given = f"MODELS, SIZE = {models!r}, {SIZE}"
    whole = "\n".join((given, PRELUDE, script, "print('\\n' + json.dumps(result))"))
    command = [sys.executable, "-W", "error", "-c", whole]
    printed = subprocess.check_output(command, env={**variables, **environment}, text=True)
    return dict(json.loads(printed.splitlines()[-1]))


def reference(model: str, micro_batch: int) -> npt.NDArray[np.float32]:
    images = np.random.default_rng(micro_batch).standard_normal((micro_batch, 3, SIZE, SIZE))
    return compute_reference(Path(model), images.astype(np.float32))


@pytest.mark.parametrize("sdk", SDKS)
def test_outputs_are_those_of_the_network(models: dict[str, str], sdk: str) -> None:
    script = """
session = backend.open(spec())
outputs = {}
for micro_batch in (1, 2, 1):
    session.prepare(micro_batch, "amortised")
    first = session.run(images(micro_batch))
    kept = first.copy()
    session.run(images(micro_batch) + 1)
    assert (first == kept).all(), "a run changed the outputs of the one before"
    outputs[micro_batch] = first.tolist()
session.close()
session.close()
import popart
result = {"outputs": outputs, "dtype": session.dtype, "out": str(first.dtype), "left": popart.attached(),
        "facts": vars(session.facts)}
"""
    result = drive(script, models, POPART_FAKE_SDK=sdk)
    for micro_batch in (1, 2):
        outputs = np.array(result["outputs"][str(micro_batch)])
        expected = reference(models[str(micro_batch)], micro_batch)
        assert outputs.shape == (micro_batch, CLASSES)
        np.testing.assert_allclose(outputs, expected, atol=5e-3)
        assert np.abs(outputs - expected).max() > 0  # it was fp16
    assert (result["dtype"], result["out"], result["left"]) == ("float16", "float32", 0)
    facts = result["facts"]
    assert (facts["compute_precision"], facts["framework"]) == ("fp16", "PopART")
    assert (facts["chip"], facts["chip_count"]) == ("GC2", 1)
    assert facts["backend_version"] == f"{sdk}.0" == facts["versions"]["popart"]
    assert facts["versions"]["ipu-driver"] == "1.0.49"
    assert facts["compile_s"] > 0
    assert facts["load_s"] > 0


def test_step_of_several_batches_computes_each_of_them(models: dict[str, str]) -> None:
    script = """
session = backend.open(spec(options={"batches_per_step": 3}))
session.prepare(2, "amortised")
step = session.run(np.concatenate([images(2), images(2) + 1, images(2) - 1]))
result = {"steps": session.batches_per_step, "one": refuse(session.run, images(2)), "notes": session.facts.notes}
session.prepare(2, "isolated")
result["apart"] = [session.run(images(2) + shift).tolist() for shift in (0, 1, -1)]
result |= {"step": step.tolist(), "alone": session.batches_per_step}
result["none"] = refuse(backend.open, spec(options={"batches_per_step": 0}))
"""
    result = drive(script, models)
    assert (result["steps"], result["alone"]) == (3, 1)
    np.testing.assert_array_equal(np.array(result["step"]), np.concatenate(result["apart"]))
    assert not np.array_equal(result["apart"][0], result["apart"][1])
    assert "takes images as float16 (6, 3, 8, 8)" in result["one"]
    assert any(
        note.startswith("batches per step: 3 in a stream, 1 alone") for note in result["notes"]
    )
    assert result["none"] == "batches_per_step is a whole number from 1, not 0"


def test_engine_is_compiled_once_for_the_same_weights(
    models: dict[str, str], tmp_path: Path
) -> None:
    other = onnx.load(models["1"])
    for tensor in other.graph.initializer:
        tensor.raw_data = bytes(len(tensor.raw_data))
    onnx.save(other, tmp_path / "other.onnx")
    script = """
import os, popart
for model in (MODELS["1"], os.environ["OTHER"], MODELS["1"]):
    options = {"engine_cache": os.environ["CACHE"], "static_models": {"1": model}}
    session = backend.open(spec(micro_batches=(1,), options=options))
    session.close()
result = {"cached": popart._session.CACHED, "notes": session.facts.notes,
        "wrong": refuse(backend.open, spec(options={"engine_cache": False}))}
"""
    engines = tmp_path / "engines"
    result = drive(script, models, CACHE=str(engines), OTHER=str(tmp_path / "other.onnx"))
    assert result["cached"] == [False, False, True]
    assert any(f"was found in {engines}" in note for note in result["notes"])
    assert result["wrong"] == 'engine_cache is a folder, or "" for none, not False'


def test_images_are_of_the_type_shape_and_order_of_the_session(models: dict[str, str]) -> None:
    script = """
session = backend.open(spec())
turned = np.ascontiguousarray(images(1).transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2)
result = {"dtype": refuse(session.run, images(1, "float32")), "shape": refuse(session.run, images(2)),
        "order": refuse(session.run, turned), "good": refuse(session.run, np.ascontiguousarray(turned))}
session.close()
result["closed"] = refuse(session.run, images(1))
session = backend.open(spec(precision="fp32"))
result |= {"precision": session.facts.compute_precision, "outputs": session.run(images(1, "float32")).tolist(),
        "half": refuse(session.run, images(1))}
"""
    result = drive(script, models)
    assert result["dtype"].endswith("not float32 (1, 3, 8, 8), contiguous")
    assert result["shape"].endswith("not float16 (2, 3, 8, 8), contiguous")
    assert result["order"].endswith("not float16 (1, 3, 8, 8), not contiguous")
    assert result["good"] is None
    assert result["closed"] == "no micro-batch is prepared"
    assert result["precision"] == "fp32"
    np.testing.assert_allclose(result["outputs"], reference(models["1"], 1), rtol=1e-5, atol=1e-6)
    assert "float32 (1, 3, 8, 8)" in result["half"]


def test_precision_is_read_from_the_compiled_model(models: dict[str, str]) -> None:
    script = """
import popart
session = backend.open(spec())
before = session.run(images(1))
popart.GraphTransformer.convertFloatsToHalfs = lambda self: None
later = refuse(session.prepare, 2, "amortised")
session.prepare(1, "amortised")
result = {"later": later, "same": bool((session.run(images(1)) == before).all())}
session.close()
result |= {"message": refuse(backend.open, spec()), "left": popart.attached()}
"""
    result = drive(script, models)
    message = "the compiled model returns float32, so it does not compute in fp16"
    assert result == {"later": message, "same": True, "message": message, "left": 0}


@pytest.mark.parametrize("sdk", SDKS)
def test_busy_ipus_are_waited_for(models: dict[str, str], sdk: str) -> None:
    script = """
import popart
backend.POLL_S = 0.001
message = refuse(backend.open, spec(options={"wait_s": 0}))
session = backend.open(spec(options={"wait_s": 60}))
second = refuse(backend.open, spec(options={"wait_s": 0.01}))
result = {"message": message, "second": second, "held": popart.attached()}
"""
    result = drive(script, models, POPART_FAKE_SDK=sdk, POPART_FAKE_BUSY="4")
    assert result["message"].startswith("no IPU came free in 0 s: all are busy")
    assert ("Failed to acquire device" in result["message"]) == (sdk == "2.2")
    assert result["second"].startswith("no IPU came free in 0.01 s: all are busy")
    assert result["held"] == 1


def test_micro_batch_that_does_not_fit_is_refused(models: dict[str, str]) -> None:
    script = """
import popart
session = backend.open(spec(micro_batches=(5, 1)))
before = session.run(images(1)).tolist()
message = refuse(session.prepare, 5, "amortised")
session.prepare(1, "amortised")
result = {"message": message, "same": session.run(images(1)).tolist() == before}
session.close()
result |= {"all": refuse(backend.open, spec(micro_batches=(5,))), "left": popart.attached()}
"""
    fp32_bytes = sum(len(tensor.raw_data) for tensor in onnx.load(models["1"]).graph.initializer)
    two_images = 2 * 3 * SIZE * SIZE * 2
    result = drive(script, models, POPART_FAKE_MEMORY=str(fp32_bytes // 2 + two_images))
    message = "the model does not fit in the memory of one IPU at micro-batch 5"
    assert result == {"message": message, "same": True, "all": message, "left": 0}


def test_models_that_popart_does_not_accept_are_refused(models: dict[str, str]) -> None:
    script = """
import popart
def opening(name):
    return refuse(backend.open, spec(micro_batches=(1,), options={"static_models": {"1": MODELS.get(name, name)}}))
result = {name: opening(name) for name in ("symbolic", "opset", "ir", "inputs", "2", "no/such/file")}
result |= {"none": refuse(backend.open, spec(micro_batches=(3,))), "left": popart.attached()}
result |= {"int8": refuse(backend.open, spec(precision="int8")), "device": refuse(backend.open, spec(device="cpu"))}
"""
    result = drive(script, models)
    static = "the model of micro-batch 1 has the shape ({}, 3, 8, 8): it must be static"
    assert (result["symbolic"], result["2"]) == (static.format(0), static.format(2))
    assert "opset 12 is newer" in result["opset"]
    assert "ir_version 8" in result["ir"]
    assert result["inputs"] == "the model has 2 inputs and 1 outputs, not one of each"
    assert result["no/such/file"].startswith(
        "PopART does not accept the model of micro-batch 1: Failed to load"
    )
    assert result["none"].startswith("micro-batch 3 has no model file of its own size")
    assert result["int8"] == "PopART computes in fp16 or fp32, not in int8"
    assert result["device"] == "is not a device of PopART: ipu or ipu-model"
    assert result["left"] == 0


def test_memory_proportion_is_that_of_the_papers_program(models: dict[str, str]) -> None:
    script = """
import popart
seen, make = [], popart.InferenceSession.__init__
def note(self, *args, **named):
    seen.append(named["userOptions"].convolutionOptions)
    make(self, *args, **named)
popart.InferenceSession.__init__ = note
session = backend.open(spec(micro_batches=(1, 5)))
session.prepare(5, "amortised")
session.close()
backend.open(spec(options={"available_memory_proportion": 0.5})).close()
too_much = refuse(backend.open, spec(options={"available_memory_proportion": 1.5}))
result = {"seen": seen, "notes": session.facts.notes, "too_much": too_much, "left": popart.attached()}
"""
    result = drive(script, models)
    shares = [options["availableMemoryProportion"] for options in result["seen"]]
    assert shares == ["0.3", "0.26", "0.5", "1.5"]
    assert any("0.3 at micro-batch 1, 0.26 at micro-batch 5" in note for note in result["notes"])
    assert "must be in (0,1]" in result["too_much"]
    assert result["left"] == 0


def test_ipu_model_is_never_a_result(models: dict[str, str]) -> None:
    script = """
import popart
session = backend.open(spec(device="ipu-model"))
result = {"facts": vars(session.facts), "tiles": popart._devices.MODELS[0].tilesPerIPU, "held": popart.attached(),
        "devices": [(device.name, device.kind, device.reason, device.description) for device in backend.probe()],
        "outputs": session.run(images(1)).tolist(), "ipu": refuse(backend.open, spec())}
session.close()
result["left"] = popart.attached()
"""
    result = drive(script, models, POPART_FAKE_IPUS="0")
    assert "must never be published" in result["facts"]["notes"][0]
    assert (result["facts"]["platform"], result["facts"]["provider"]) == ("IPU model", "IPUModel")
    assert (result["facts"]["chip"], result["facts"]["chip_count"]) == (None, None)
    assert (result["tiles"], result["held"], result["left"]) == (1216, 1, 0)
    np.testing.assert_allclose(result["outputs"], reference(models["1"], 1), atol=5e-3)
    ipu, model = result["devices"]
    assert ipu[:3] == ["ipu", "ipu", "no IPU is attached to this machine"]
    assert result["ipu"] == ipu[2]
    assert model[:3] == ["ipu-model", "simulated", None]
    assert model[3].endswith("no times")


def test_chip_platform_and_sdk_are_reported(models: dict[str, str]) -> None:
    script = """
devices = [device.description for device in backend.probe()]
session = backend.open(spec(sessions=2, options={"platform": "C2"}))
result = {"facts": vars(session.facts), "devices": devices}
"""
    sdk = "sdk/poplar_sdk-ubuntu_18_04-2.1.0+617-6bb5f5b742/poplar-ubuntu_18_04-2.1.0+145366-ce995e299d"
    result = drive(
        script, models, POPART_FAKE_IPUS="2", POPART_FAKE_TILES="1472", POPLAR_SDK_ENABLED=sdk
    )
    facts = result["facts"]
    assert result["devices"][0] == "2 x IPU of 1472 tiles"
    assert (facts["platform"], facts["sdk_version"]) == ("C2", "2.1.0")
    assert (facts["chip"], facts["chip_count"]) == (None, 2)
    assert facts["notes"][-1] == "PopART does not tell which chip has these 1472 tiles"
    unknown = drive(script, models)["facts"]
    assert (unknown["sdk_version"], unknown["chip"]) == (None, "GC2")


ABSENCE = """
result = {"reasons": [device.reason for device in backend.probe()], "message": refuse(backend.open, spec())}
"""


FOREIGN = "the package named popart here is not Graphcore's: it has no Builder, DataFlow"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "PopART is not installed: it comes with Graphcore's Poplar SDK, not from a package"),
        ("class Session: pass\n", FOREIGN),
        ("raise RuntimeError('no libpoplar.so')\n", "PopART cannot be imported: no libpoplar.so"),
    ],
)
def test_process_without_popart_has_a_reason(
    models: dict[str, str], tmp_path: Path, source: str | None, message: str
) -> None:
    if source is not None:
        (tmp_path / "popart").mkdir()
        (tmp_path / "popart" / "__init__.py").write_text(source, encoding="utf-8")
    result = drive(ABSENCE, models, tmp_path)
    assert result["message"].startswith(message)
    assert result["reasons"] == [result["message"]] * 2


def test_onnx_must_not_precede_popart(models: dict[str, str]) -> None:
    result = drive(f"import onnx\n{ABSENCE}", models)
    assert result["message"].startswith("onnx was imported before PopART, which must come first")


def test_error_while_listing_is_a_reason(models: dict[str, str]) -> None:
    script = (
        """
import popart
def fails(self):
    raise popart.popart_exception("no driver")
popart.DeviceManager.enumerateDevices = fails
"""
        + ABSENCE
    )
    result = drive(script, models)
    assert result["reasons"] == ["PopART cannot list the IPUs: no driver", None]
    assert result["message"] == "PopART has no device: no driver"
