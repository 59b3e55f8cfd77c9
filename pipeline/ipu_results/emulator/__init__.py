"""Predict how long a network takes on an IPU, and compute what it returns there. No IPU is needed, nothing is measured.

    from ipu_results.emulator import Emulator

    compiled = Emulator("m2000").compile("network.onnx", batch_size=16)
    compiled.timing.latency_ms  # predicted
    compiled.run(images).outputs  # computed in fp16

The modules, in the order in which a prediction passes them:

    network, input_shapes, model, frontend, shapes, typed            ONNX to nodes with sizes
    lowering, products, fusion, operators                            nodes to operators
    target, split, codelets, cache, schedule                         operators to cycles and supersteps
    memory, protocol, calibration, prediction                        cycles to time, memory verdict and power
    emulator, fp16, records, plot                                    what users call and see
    profile, trace, comparison, sweep                                predictions as a design tool
    published, validation, baselines                                 predictions against published figures
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipu_results.emulator.network import CompiledNetwork, EmulatedRun, Emulator
    from ipu_results.emulator.prediction import Prediction, predict
    from ipu_results.emulator.target import TARGETS, Target, load_target

__all__ = [
    "TARGETS",
    "CompiledNetwork",
    "EmulatedRun",
    "Emulator",
    "Prediction",
    "Target",
    "load_target",
    "predict",
]
_MODULES = {
    **dict.fromkeys(("CompiledNetwork", "EmulatedRun", "Emulator"), "network"),
    **dict.fromkeys(("Prediction", "predict"), "prediction"),
    **dict.fromkeys(("TARGETS", "Target", "load_target"), "target"),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: `--help` must not wait for onnx."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
