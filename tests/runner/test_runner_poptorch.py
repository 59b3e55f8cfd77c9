"""The PopTorch backend against a fake (fakes/poptorch.py), with PyTorch where it is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx
import pytest

from tests.runner.runner_support import build_tiny_model
from tests.runner.test_runner_popart import CLASSES, FAKES, SIZE, drive, models, reference

__all__ = ["models"]
pytestmark = pytest.mark.slow  # a process with onnx for each test
PACKAGES = [FAKES] if find_spec("torch") else [FAKES, FAKES / "without_torch"]
IMPORT = "from ipu_results.runner.backends import poptorch as backend\n"


def drive_poptorch(script: str, models: dict[str, str], **environment: str) -> dict[str, Any]:
    """Return what a script leaves as `result` in a process where `poptorch` is the fake."""
    path = os.pathsep.join(map(str, PACKAGES))
    return drive(IMPORT + script, models, path, **environment)  # type: ignore[arg-type]


def test_outputs_are_those_of_the_network_by_batch_and_by_step(models: dict[str, str]) -> None:
    script = """
import poptorch
session = backend.open(spec(options={"batches_per_step": 3}))
session.prepare(2, "amortised")
step = session.run(np.concatenate([images(2), images(2) + 1, images(2) - 1]))
result = {"steps": session.batches_per_step, "held": len(poptorch.HELD), "wrong": refuse(session.run, images(2))}
session.prepare(2, "isolated")
result["apart"] = [session.run(images(2) + shift).tolist() for shift in (0, 1, -1)]
session.prepare(1, "isolated")
result |= {"step": step.tolist(), "one": session.run(images(1)).tolist(), "dtype": session.dtype}
result |= {"still": len(poptorch.HELD), "facts": vars(session.facts)}
session.close()
session.close()
result["left"] = len(poptorch.HELD)
"""
    result = drive_poptorch(script, models)
    assert (result["steps"], result["dtype"]) == (3, "float16")
    assert (result["held"], result["still"], result["left"]) == (1, 1, 0)
    np.testing.assert_array_equal(np.array(result["step"]), np.concatenate(result["apart"]))
    for micro_batch, outputs in ((2, result["apart"][0]), (1, result["one"])):
        expected = reference(models[str(micro_batch)], micro_batch)
        assert np.shape(outputs) == (micro_batch, CLASSES)
        np.testing.assert_allclose(outputs, expected, atol=5e-3)
        assert np.abs(np.array(outputs) - expected).max() > 0  # it was fp16
    assert f"takes images as float16 (6, 3, {SIZE}, {SIZE})" in result["wrong"]
    facts = result["facts"]
    assert (facts["compute_precision"], facts["framework"], facts["backend_version"]) == (
        "fp16",
        "PyTorch",
        "3.3.0-fake",
    )
    assert (facts["chip"], facts["chip_count"], facts["platform"]) == ("GC200", 1, "GC200 IPU")
    assert facts["compile_s"] > 0


def test_fp32_chip_unknown_and_cache(models: dict[str, str], tmp_path: Any) -> None:
    script = """
import os, poptorch
session = backend.open(spec(precision="fp32", options={"engine_cache": os.environ["CACHE"], "batches_per_step": 2}))
session.prepare(1, "isolated")
outputs = session.run(images(1, "float32")).tolist()
result = {"outputs": outputs, "facts": vars(session.facts), "caches": poptorch.CACHES}
"""
    result = drive_poptorch(script, models, POPTORCH_FAKE_VERSION="21", CACHE=str(tmp_path))
    np.testing.assert_allclose(result["outputs"], reference(models["1"], 1), rtol=1e-4, atol=1e-5)
    assert (result["facts"]["compute_precision"], result["facts"]["chip"]) == ("fp32", None)
    assert (
        result["facts"]["notes"][-1]
        == "PopTorch does not tell which chip has the hardware version 21"
    )
    assert len(set(result["caches"])) == 2  # each number of batches a step is another program


def test_busy_absent_and_simulated_ipus(models: dict[str, str]) -> None:
    script = """
from ipu_results.runner.backends import popart
popart.POLL_S = 0.001
result = {"busy": refuse(backend.open, spec(options={"wait_s": 0})), "free": refuse(backend.open, spec())}
result["second"] = refuse(backend.open, spec(options={"wait_s": 0}))
"""
    result = drive_poptorch(script, models, POPART_FAKE_BUSY="3")
    assert result["busy"].startswith("no IPU came free in 0 s: all are busy (In poptorch")
    assert result["free"] is None
    assert result["second"].startswith("no IPU came free")  # the first session holds the only one
    absent = """
session = backend.open(spec(device="ipu-model"))
result = {"ipu": refuse(backend.open, spec()), "reasons": [device.reason for device in backend.probe()]}
result |= {"facts": vars(session.facts), "device": refuse(backend.open, spec(device="cpu"))}
"""
    result = drive_poptorch(absent, models, POPART_FAKE_IPUS="0")
    assert (
        result["reasons"] == [result["ipu"], None] == ["no IPU is attached to this machine", None]
    )
    assert (result["facts"]["platform"], result["facts"]["chip_count"]) == ("IPU model", None)
    assert "must never be published" in result["facts"]["notes"][0]
    assert result["device"] == "is not a device of PopTorch: ipu or ipu-model"


def test_models_that_it_does_not_run_are_refused(models: dict[str, str], tmp_path: Any) -> None:
    other = build_tiny_model(SIZE, CLASSES, 1)
    other.graph.node[2].op_type = "Softsign"
    onnx.save(other, tmp_path / "other.onnx")
    opening = (
        'refuse(backend.open, spec(micro_batches=(1,), options={"static_models": {"1": NAME}}))'
    )
    padded = build_tiny_model(SIZE, CLASSES, 1)
    [convolution] = [node for node in padded.graph.node if "Conv" in node.op_type][:1]
    convolution.attribute.append(onnx.helper.make_attribute("auto_pad", "SAME_UPPER"))
    onnx.save(padded, tmp_path / "padded.onnx")
    names = f"{str(tmp_path / 'other.onnx')!r}, {str(tmp_path / 'padded.onnx')!r}, MODELS['2']"
    script = f"result = {{NAME: {opening} for NAME in ({names})}}"
    operator, setting, size = drive_poptorch(script, models).values()
    assert setting == "PopTorch runs no Conv with these settings here: choose --backend popart"
    assert operator == "PopTorch runs no Softsign with these settings here: choose --backend popart"
    assert (
        size
        == f"the model of micro-batch 1 has the shape (2, 3, {SIZE}, {SIZE}): it must be static"
    )


def test_without_poptorch_the_reason_is_named(models: dict[str, str], tmp_path: Any) -> None:
    script = f"{IMPORT}result = {{'reasons': [device.reason for device in backend.probe()]}}"
    missing = (
        "PopTorch is not installed: it comes with Graphcore's Poplar SDK, not from a package index"
    )
    assert drive(script, models, tmp_path)["reasons"] == [missing] * 2
    late = f"import onnx\n{script}"
    [first, _] = drive(late, models, FAKES)["reasons"]
    assert first == "onnx was imported before PopTorch, which must come first in a process"
