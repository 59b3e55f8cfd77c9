"""The PopART backend against a stand-in (tests/fakes/popart), in processes of their own: import order counts."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from ipu_results.runner.backends import popart
from ipu_results.runner.backends.base import Spec
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).parents[1]
FAKES = ROOT / "tests" / "fakes"
SIZE, CLASSES = 8, 10
SDKS = ("1.1", "2.2", "3.0")

PRELUDE = """
import json, sys
import numpy as np
from ipu_results.errors import BackendError
from ipu_results.runner.backends import popart as backend
from ipu_results.runner.backends.base import Spec

def spec(**changes):
    given = {"device": "ipu", "model": "unused", "micro_batches": (1, 2), "options": {"static_models": MODELS}}
    options = {**given["options"], **changes.pop("options", {})}
    return Spec(**{**given, **changes, "options": options})

def images(micro_batch, dtype="float16"):
    return np.random.default_rng(micro_batch).standard_normal((micro_batch, 3, SIZE, SIZE)).astype(dtype)

def refused(do, *given):
    try:
        do(*given)
    except BackendError as error:
        return error.message
    return None
"""


def network(batch: int | str, opset: int = 11, ir: int = 6, inputs: int = 1) -> onnx.ModelProto:
    draw = np.random.default_rng(0)
    weights = {
        "filters": draw.standard_normal((6, 3, 3, 3)) / 5,
        "scale": np.ones(6),
        "shift": draw.standard_normal(6) / 10,
        "variance": np.ones(6),
        "matrix": draw.standard_normal((6, CLASSES)) / 2,
        "bias": draw.standard_normal(CLASSES) / 10,
    }
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["conv"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        helper.make_node("BatchNormalization", ["conv", "scale", "shift", "shift", "variance"], ["norm"]),
        helper.make_node("Relu", ["norm"], ["relu"]),
        helper.make_node("GlobalAveragePool", ["relu"], ["pool"]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "matrix", "bias"], ["classes"]),
    ]
    shapes = {"image": [batch, 3, SIZE, SIZE], "second": [batch, 3, SIZE, SIZE]}
    data = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes[name]) for name in list(shapes)[:inputs]]
    output = helper.make_tensor_value_info("classes", TensorProto.FLOAT, [batch, CLASSES])
    tensors = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "small", data, [output], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("static")
    made = {
        **{str(batch): network(batch) for batch in (1, 2, 5)},
        "symbolic": network("batch"),
        "opset": network(1, opset=12),
        "ir": network(1, ir=8),
        "inputs": network(1, inputs=2),
    }
    for name, model in made.items():
        onnx.save(model, folder / f"{name}.onnx")
    return {name: str(folder / f"{name}.onnx") for name in made}


def drive(script: str, models: dict[str, str], package: Path = FAKES, **environment: str) -> dict[str, Any]:
    """The dictionary `told` that a script leaves in a process where `popart` is the stand-in, or another package."""
    told = {key: value for key, value in os.environ.items() if not key.startswith("POP")}
    told |= {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]), **environment}
    whole = f"MODELS, SIZE = {models!r}, {SIZE}\n{PRELUDE}\n{script}\nprint('\\n' + json.dumps(told))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", whole], env=told, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def reference(model: str, micro_batch: int) -> npt.NDArray[np.float32]:
    images = np.random.default_rng(micro_batch).standard_normal((micro_batch, 3, SIZE, SIZE))
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    found: npt.NDArray[np.float32] = session.run(None, {"image": images.astype(np.float32)})[0]
    return found


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
told = {"outputs": outputs, "dtype": session.dtype, "out": str(first.dtype), "left": popart.attached(),
        "facts": vars(session.facts)}
"""
    told = drive(script, models, POPART_FAKE_SDK=sdk)
    for micro_batch in (1, 2):
        found = np.array(told["outputs"][str(micro_batch)])
        wanted = reference(models[str(micro_batch)], micro_batch)
        assert found.shape == (micro_batch, CLASSES)
        np.testing.assert_allclose(found, wanted, atol=5e-3)
        assert np.abs(found - wanted).max() > 0  # it was fp16
    assert (told["dtype"], told["out"], told["left"]) == ("float16", "float32", 0)
    facts = told["facts"]
    assert (facts["compute_precision"], facts["framework"]) == ("fp16", "PopART")
    assert (facts["chip"], facts["chip_count"]) == ("GC2", 1)
    assert facts["backend_version"] == f"{sdk}.0" == facts["versions"]["popart"]
    assert facts["versions"]["ipu-driver"] == "1.0.49"
    assert facts["compile_s"] > 0
    assert facts["load_s"] > 0


def test_fp32_when_asked_for(models: dict[str, str]) -> None:
    script = """
session = backend.open(spec(precision="fp32"))
first = session.run(images(1, "float32"))
session.run(images(1, "float32") + 1)
told = {"precision": session.facts.compute_precision, "outputs": first.tolist(),
        "half": refused(session.run, images(1))}
"""
    told = drive(script, models)
    assert told["precision"] == "fp32"
    np.testing.assert_allclose(told["outputs"], reference(models["1"], 1), rtol=1e-5, atol=1e-6)
    assert "float32 (1, 3, 8, 8)" in told["half"]


def test_precision_is_that_of_the_compiled_model(models: dict[str, str]) -> None:
    script = """
import popart
session = backend.open(spec())
before = session.run(images(1))
popart.GraphTransformer.convertFloatsToHalfs = lambda self: None
later = refused(session.prepare, 2, "amortised")
session.prepare(1, "amortised")
told = {"later": later, "same": bool((session.run(images(1)) == before).all())}
session.close()
told |= {"said": refused(backend.open, spec()), "left": popart.attached()}
"""
    told = drive(script, models)
    said = "the compiled model gives float32, so it does not compute in fp16"
    assert told == {"later": said, "same": True, "said": said, "left": 0}


def test_images_of_another_type_shape_or_order_are_refused(models: dict[str, str]) -> None:
    script = """
session = backend.open(spec())
turned = np.ascontiguousarray(images(1).transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2)
told = {"dtype": refused(session.run, images(1, "float32")), "shape": refused(session.run, images(2)),
        "order": refused(session.run, turned), "good": refused(session.run, np.ascontiguousarray(turned))}
session.close()
told["closed"] = refused(session.run, images(1))
"""
    told = drive(script, models)
    assert told["dtype"].endswith("not float32 (1, 3, 8, 8), contiguous")
    assert told["shape"].endswith("not float16 (2, 3, 8, 8), contiguous")
    assert told["order"].endswith("not float16 (1, 3, 8, 8), not contiguous")
    assert told["good"] is None
    assert told["closed"] == "no micro-batch is prepared"


@pytest.mark.parametrize("sdk", SDKS)
def test_busy_ipus(models: dict[str, str], sdk: str) -> None:
    script = """
import popart
backend.POLL_S = 0.001
said = refused(backend.open, spec(options={"wait_s": 0}))
session = backend.open(spec(options={"wait_s": 60}))
second = refused(backend.open, spec(options={"wait_s": 0.01}))
told = {"said": said, "second": second, "held": popart.attached()}
"""
    told = drive(script, models, POPART_FAKE_SDK=sdk, POPART_FAKE_BUSY="4")
    assert told["said"].startswith("no IPU came free in 0 s: all are busy")
    assert ("Failed to acquire device" in told["said"]) == (sdk == "2.2")
    assert told["second"].startswith("no IPU came free in 0.01 s: all are busy")
    assert told["held"] == 1


@pytest.mark.parametrize("sdk", ["1.1", "3.0"])
def test_a_micro_batch_that_does_not_fit(models: dict[str, str], sdk: str) -> None:
    script = """
import popart
session = backend.open(spec(micro_batches=(5, 1)))
before = session.run(images(1)).tolist()
said = refused(session.prepare, 5, "amortised")
session.prepare(1, "amortised")
told = {"said": said, "same": session.run(images(1)).tolist() == before}
session.close()
told |= {"all": refused(backend.open, spec(micro_batches=(5,))), "left": popart.attached()}
"""
    weights = sum(len(one.raw_data) for one in network(1).graph.initializer) // 2
    limit = weights + 2 * 3 * SIZE * SIZE * 2
    told = drive(script, models, POPART_FAKE_SDK=sdk, POPART_FAKE_MEMORY=str(limit))
    said = "the model does not fit in the memory of one IPU at micro-batch 5"
    assert told == {"said": said, "same": True, "all": said, "left": 0}


def test_models_that_popart_does_not_take(models: dict[str, str]) -> None:
    script = """
import popart
def opening(name):
    return refused(backend.open, spec(micro_batches=(1,), options={"static_models": {"1": MODELS.get(name, name)}}))
told = {name: opening(name) for name in ("symbolic", "opset", "ir", "inputs", "2", "no/such/file")}
told |= {"none": refused(backend.open, spec(micro_batches=(3,))), "left": popart.attached()}
told |= {"int8": refused(backend.open, spec(precision="int8")), "device": refused(backend.open, spec(device="cpu"))}
"""
    told = drive(script, models)
    assert told["symbolic"] == "the model of micro-batch 1 takes (0, 3, 8, 8): its shape must be static"
    assert told["2"] == "the model of micro-batch 1 takes (2, 3, 8, 8): its shape must be static"
    assert "opset 12 is newer" in told["opset"]
    assert "ir_version 8" in told["ir"]
    assert told["inputs"] == "the model has 2 inputs and 1 outputs, not one of each"
    assert told["no/such/file"].startswith("PopART does not take the model of micro-batch 1: Failed to load")
    assert told["none"].startswith("there is no model file of static micro-batch 3")
    assert told["int8"] == "PopART computes in fp16 or fp32, not in int8"
    assert told["device"] == "is no device of PopART: ipu or ipu-model"
    assert told["left"] == 0


def test_memory_proportion_of_the_papers_program(models: dict[str, str]) -> None:
    script = """
import popart
seen, make = [], popart.InferenceSession.__init__
def noted(self, *given, **named):
    seen.append(named["userOptions"].convolutionOptions)
    make(self, *given, **named)
popart.InferenceSession.__init__ = noted
session = backend.open(spec(micro_batches=(1, 5)))
session.prepare(5, "amortised")
session.close()
backend.open(spec(options={"available_memory_proportion": 0.5})).close()
too_much = refused(backend.open, spec(options={"available_memory_proportion": 1.5}))
told = {"seen": seen, "notes": session.facts.notes, "too_much": too_much, "left": popart.attached()}
"""
    told = drive(script, models)
    assert [one["availableMemoryProportion"] for one in told["seen"]] == ["0.3", "0.26", "0.5", "1.5"]
    assert any("0.3 at micro-batch 1, 0.26 at micro-batch 5" in note for note in told["notes"])
    assert "must be in (0,1]" in told["too_much"]
    assert told["left"] == 0


@pytest.mark.parametrize("sdk", ["1.1", "3.0"])
def test_the_ipu_model_is_no_result(models: dict[str, str], sdk: str) -> None:
    script = """
import popart
session = backend.open(spec(device="ipu-model"))
told = {"facts": vars(session.facts), "tiles": popart._devices.MODELS[0].tilesPerIpu, "held": popart.attached(),
        "devices": [(one.name, one.kind, one.reason, one.description) for one in backend.probe()],
        "outputs": session.run(images(1)).tolist(), "ipu": refused(backend.open, spec())}
session.close()
told["left"] = popart.attached()
"""
    told = drive(script, models, POPART_FAKE_SDK=sdk, POPART_FAKE_IPUS="0")
    assert "must never be published" in told["facts"]["notes"][0]
    assert (told["facts"]["platform"], told["facts"]["provider"]) == ("IPU model", "IPUModel")
    assert (told["facts"]["chip"], told["facts"]["chip_count"]) == (None, None)
    assert (told["tiles"], told["held"], told["left"]) == (1216, 1, 0)
    np.testing.assert_allclose(told["outputs"], reference(models["1"], 1), atol=5e-3)
    (ipu, kind, reason, _), (model, simulated, none, text) = told["devices"]
    assert (ipu, kind, reason) == ("ipu", "ipu", "no IPU is attached to this machine") == ("ipu", "ipu", told["ipu"])
    assert (model, simulated, none) == ("ipu-model", "simulated", None)
    assert text.endswith("no times")


def test_chip_platform_and_sdk(models: dict[str, str]) -> None:
    script = """
devices = [one.description for one in backend.probe()]
session = backend.open(spec(sessions=2, options={"platform": "C2"}))
told = {"facts": vars(session.facts), "devices": devices}
"""
    sdk = "sdk/poplar_sdk-ubuntu_18_04-2.1.0+617-6bb5f5b742/poplar-ubuntu_18_04-2.1.0+145366-ce995e299d"
    told = drive(script, models, POPART_FAKE_IPUS="2", POPART_FAKE_TILES="1472", POPLAR_SDK_ENABLED=sdk)
    facts = told["facts"]
    assert told["devices"][0] == "2 x IPU of 1472 tiles"
    assert (facts["platform"], facts["chip"], facts["chip_count"], facts["sdk_version"]) == ("C2", None, 2, "2.1.0")
    assert facts["notes"][-1] == "PopART does not tell which chip has these 1472 tiles"
    unknown = drive(script, models)["facts"]
    assert (unknown["sdk_version"], unknown["chip"]) == (None, "GC2")


ABSENCE = """
told = {"reasons": [one.reason for one in backend.probe()], "said": refused(backend.open, spec())}
"""


def test_onnx_imported_first(models: dict[str, str]) -> None:
    told = drive("import onnx\n" + ABSENCE, models)
    assert told["said"] == "onnx was imported before PopART, which must come first in a process"
    assert told["reasons"] == [told["said"]] * 2
    later = drive("backend.probe()\nimport onnx\n" + ABSENCE, models)
    assert later == {"reasons": [None, None], "said": None}


@pytest.mark.parametrize("source", ["", "class Session: pass\n", "raise RuntimeError('no libpoplar.so')\n"])
def test_a_package_that_is_not_popart(models: dict[str, str], tmp_path: Path, source: str) -> None:
    (tmp_path / "popart").mkdir()
    (tmp_path / "popart" / "__init__.py").write_text(source, encoding="utf-8")
    told = drive(ABSENCE, models, package=tmp_path)
    if source.startswith("raise"):
        assert told["said"] == "PopART cannot be imported: no libpoplar.so"
    else:
        assert told["said"].startswith("the package named popart here is not Graphcore's: it has no Builder, DataFlow")
    assert told["reasons"] == [told["said"]] * 2


def test_no_popart_at_all(models: dict[str, str], tmp_path: Path) -> None:
    told = drive(ABSENCE, models, package=tmp_path)
    assert "Graphcore's Poplar SDK, not from a package index" in told["said"]
    assert told["reasons"] == [told["said"]] * 2
    here = popart.probe()
    assert [(one.name, one.usable) for one in here] == [("ipu", False), ("ipu-model", False)]


def test_an_error_while_listing_is_a_reason(models: dict[str, str]) -> None:
    script = (
        """
import popart
def fails(self):
    raise popart.popart_exception("no driver")
popart.DeviceManager.enumerateDevices = fails
"""
        + ABSENCE
    )
    told = drive(script, models)
    assert told["reasons"] == ["PopART cannot list the IPUs: no driver", None]
    assert told["said"] == "PopART gives no device: no driver"


def test_the_worker_side_does_not_import_onnx(models: dict[str, str]) -> None:
    told = drive("told = {'heavy': [one for one in ('onnx', 'pandas', 'popart') if one in sys.modules]}", models)
    assert told == {"heavy": []}


def test_the_stand_in_refuses_what_popart_cannot_do(models: dict[str, str]) -> None:
    script = """
import popart
def said(do, *given, **named):
    try:
        do(*given, **named)
    except (TypeError, popart.popart_exception) as error:
        return str(error)
flow = popart.DataFlow(1, {"classes": popart.AnchorReturnType("ALL")})
device = popart.DeviceManager().acquireAvailableDevice(1)
session = popart.InferenceSession(MODELS["1"], flow, device)
def step(array):
    return popart.PyStepIO({"image": array}, session.initAnchorArrays())
told = {"keyword": said(popart.InferenceSession, MODELS["1"], dataFeed=flow, deviceInfo=device),
        "case": said(popart.AnchorReturnType, "all"), "unprepared": said(session.weightsFromHost)}
session.prepareDevice()
told["weights"] = said(session.run, step(images(1, "float32")))
session.weightsFromHost()
other = popart.InferenceSession(MODELS["2"], flow, device)
other.prepareDevice()
told["other"] = said(session.run, step(images(1, "float32")))
session.weightsFromHost()
told |= {"dtype": said(session.run, step(images(1))), "count": said(session.run, step(images(2, "float32"))),
         "order": said(session.run, step(images(1, "float32").T)),
         "good": said(session.run, step(images(1, "float32")))}
device.detach()
told["detached"] = said(session.run, step(images(1, "float32")))
"""
    told = drive(script, models)
    assert told.pop("good") is None
    for what, words in {
        "keyword": "dataFeed",
        "case": "Invalid anchor return type",
        "unprepared": "prepareDevice",
        "weights": "weightsFromHost",
        "other": "weightsFromHost",
        "dtype": "float16",
        "count": "Expected 192",
        "order": "not contiguous",
        "detached": "attach",
    }.items():
        assert words in told[what], (what, told[what])


@pytest.mark.parametrize(
    "file",
    [
        "errors.py",
        "runner/__init__.py",
        "runner/backends/__init__.py",
        "runner/backends/base.py",
        "runner/backends/popart.py",
    ],
)
def test_syntax_of_python_3_8(file: str) -> None:
    source = (ROOT / "pipeline" / "ipu_results" / file).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    first = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)][:1]
    assert first == ["__future__"] or not any(isinstance(node, ast.ClassDef) for node in ast.walk(tree))


def test_a_backend_error_names_the_device_that_is_none() -> None:
    with pytest.raises(popart.BackendError, match="tpu: is no device of PopART"):
        popart.open(Spec(device="tpu", model="unused"))
