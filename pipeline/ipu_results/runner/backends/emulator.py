"""An emulated IPU: outputs by onnxruntime in fp16, time and power by the model of the machine.

Nothing is measured.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ipu_results.emulator.target import PLATFORMS, Target, load_target
from ipu_results.errors import BackendError
from ipu_results.runner.backends import (
    BackendTraits,
    Device,
    SessionFacts,
    SessionSpec,
    VirtualSession,
)

if TYPE_CHECKING:
    from ipu_results.emulator.network import CompiledNetwork, Network
    from ipu_results.runner.backends import Batch, PredictedPoint

NAME = "emulator"
TRAITS = BackendTraits(precisions=("fp16",), virtual=True, converts=True)
# nothing in flight but the batch
PROTOCOLS = {"c2": "paper", "m2000": "lowest-latency", "bow-2000": "lowest-latency"}
NO_POWER = "no published row tells the power of this machine"


def probe() -> list[Device]:
    return [Device(NAME, name, "emulated", platform) for name, platform in PLATFORMS.items()]


def open(spec: SessionSpec) -> EmulatedChip:
    """Open one chip of an emulated machine.

    Raises BackendError for another precision or number of chips.
    """
    if spec.device not in PLATFORMS:
        names = ", ".join(PLATFORMS)
        raise BackendError(f"is not an emulated machine; known: {names}", place=spec.device)
    target = load_target(spec.device)
    if spec.precision not in (None, "fp16"):
        raise BackendError(f"computes in fp16, not in {spec.precision}", place=spec.device)
    if spec.sessions != target.chips:
        raise BackendError(
            f"has {target.chips} chips, a session each, not {spec.sessions}", place=spec.device
        )
    return EmulatedChip(spec, target)


@lru_cache(maxsize=1)
def _network(path: str) -> Network:
    """Read the network once for all chips, which share its weights."""
    from ipu_results.emulator.network import load_network  # noqa: PLC0415

    return load_network(Path(path))


class EmulatedChip(VirtualSession):
    """One chip's share of a batch.

    `run(None)` advances by the predicted time; `run(images)` computes outputs.
    """

    def __init__(self, spec: SessionSpec, target: Target) -> None:
        from ipu_results.emulator.network import Emulator  # noqa: PLC0415
        from ipu_results.emulator.target import load_calibration  # noqa: PLC0415

        self._spec = spec
        self._emulator = Emulator(spec.device, PROTOCOLS[spec.device])
        self._compiled: CompiledNetwork | None = None
        self._seconds = 0.0
        self.facts = SessionFacts(
            platform=PLATFORMS[spec.device],
            provider=f"emulator, protocol {PROTOCOLS[spec.device]}",
            framework="emulator",
            backend_version=version("ipu-results"),
            compute_precision="fp16",
            chip=target.chip,
            chip_count=target.chips,
            calibration_id=load_calibration().id,
            notes=[
                "emulated: time and power are predicted by a model of the machine, nothing is"
                " measured"
            ],
        )

    def prepare(self, micro_batch: int, kind: str) -> None:
        """Predict this batch; `amortised` and `isolated` differ by what is in flight."""
        batch = micro_batch * self._spec.sessions
        if self._compiled is None or self._compiled.timing.batch_size != batch:
            self._compiled = self._emulator.compile(_network(self._spec.model), batch)
        parts = self._compiled.timing.timing
        self._seconds = parts.period if kind == "amortised" else parts.device + parts.protocol

    def predict_point(self) -> PredictedPoint:
        """Return the predicted power, and the band scaled from the latency to the amortised one."""
        assert self._compiled is not None
        timing = self._compiled.timing
        amortised = timing.batch_size / timing.throughput * 1000
        has_power = timing.power_w is not None
        fits = timing.memory_verdict == "FITS"
        return {
            "latency_ms_low": amortised * timing.latency_ms_low / timing.latency_ms,
            "latency_ms_high": amortised * timing.latency_ms_high / timing.latency_ms,
            "power_w": timing.power_w,
            "power_scope": "board" if has_power else None,
            "power_reason": "predicted, not measured" if has_power else NO_POWER,
            "suspect": [] if fits else [f"memory: {timing.memory_verdict}"],
        }

    def run(self, batch: Batch | None) -> np.ndarray | None:
        if batch is None:
            self.advance(self._seconds)
            return None
        assert self._compiled is not None
        outputs = next(iter(self._compiled.run_chip(batch).values()))
        return np.asarray(outputs.reshape(len(outputs), -1), np.float32)
