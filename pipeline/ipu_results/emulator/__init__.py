"""Predict how long a network takes on an IPU, and compute what it returns there.

No IPU is needed, nothing is measured.

    from ipu_results.emulator import Emulator

    compiled = Emulator("m2000").compile("network.onnx", batch_size=16)
    compiled.timing.latency_ms  # predicted
    compiled.run(images).outputs  # computed in fp16

The modules, in the order in which a prediction passes them:

    graph, products, lowering, operators, frontend    ONNX to operators with sizes
    target, codelets, split, schedule                 operators to cycles and supersteps
    settings, prediction                              cycles to time, memory, power and records
    pipeline, training                                the same for a training step
    network, sweep                                    what users call and see
    training_keys                                     what `--set` says of a training step
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
