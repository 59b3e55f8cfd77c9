"""Predict how long a network takes on an IPU, and compute what it returns there.

No IPU is needed, nothing is measured.

    from ipu_results.emulator import Emulator

    compiled = Emulator("m2000").compile("network.onnx", batch_size=16)
    compiled.timing.latency_ms  # predicted
    compiled.run(images).outputs  # computed in fp16

The modules, in the order in which a prediction passes them:

    graph, lowering, operators, frontend              ONNX to operators with sizes
    target, codelets, split, schedule                 operators to cycles and supersteps
    settings, prediction                              cycles to time, memory, power and records
    pipeline, training                                the same for a training step
    network, sweep                                    what users call and see
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipu_results.emulator.network import Emulator

__all__ = ["Emulator"]


def __getattr__(name: str) -> Any:
    """Import the public name on first use: `--help` must not wait for onnx."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ipu_results.emulator.network import Emulator  # noqa: PLC0415

    return Emulator
