"""An emulated IPU: outputs by onnxruntime in fp16, time and power by the model of the machine. Nothing is measured."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ipu_results.errors import BackendError
from ipu_results.runner.backends.base import Device, Facts, Spec, VirtualSession

if TYPE_CHECKING:
    from ipu_results.emulator.network import Network

NAME = "emulator"
VIRTUAL = CONVERTS = True
PRECISIONS = ("fp16",)
PLATFORMS = {"c2": "C2", "m2000": "IPU-M2000", "bow-2000": "Bow-2000"}
CHIPS = {"c2": ("GC2", 2), "m2000": ("GC200", 4), "bow-2000": ("Bow", 4)}
PROTOCOLS = {"c2": "paper", "m2000": "lowest-latency", "bow-2000": "lowest-latency"}  # nothing in flight but the batch
NO_POWER = "no published row tells the power of this machine"


def probe() -> list[Device]:
    return [Device(NAME, name, "emulated", platform) for name, platform in PLATFORMS.items()]


def open(spec: Spec) -> EmulatedChip:
    """One chip of an emulated machine. Raises BackendError for a precision or a number of chips that it has not."""
    if spec.device not in PLATFORMS:
        raise BackendError(f"is no emulated machine: one of {', '.join(PLATFORMS)}", place=spec.device)
    chip, count = CHIPS[spec.device]
    if spec.precision not in (None, *PRECISIONS):
        raise BackendError(f"computes in fp16, not in {spec.precision}", place=spec.device)
    if spec.sessions != count:
        raise BackendError(f"has {count} chips, a session each, not {spec.sessions}", place=spec.device)
    return EmulatedChip(spec, chip, count)


@lru_cache(maxsize=1)
def _network(path: str) -> Network:
    """Read once for all chips, which share its weights."""
    from ipu_results.emulator.network import load_network  # noqa: PLC0415

    return load_network(Path(path))


class EmulatedChip(VirtualSession):
    """One chip's share of a batch. `run(None)` takes the predicted time; given images it computes their outputs."""

    def __init__(self, spec: Spec, chip: str, count: int) -> None:
        from ipu_results.emulator.calibration import load_calibration  # noqa: PLC0415
        from ipu_results.emulator.emulator import Emulator  # noqa: PLC0415

        self._spec = spec
        self._emulator = Emulator(spec.device, PROTOCOLS[spec.device])
        self._compiled: Any = None
        self._seconds = 0.0
        self.facts = Facts(
            platform=PLATFORMS[spec.device],
            provider=f"emulator, protocol {PROTOCOLS[spec.device]}",
            framework="emulator",
            backend_version=version("ipu-results"),
            compute_precision="fp16",
            chip=chip,
            chip_count=count,
            calibration_id=load_calibration().id,
            notes=["emulated: time and power are predicted by a model of the machine, nothing is measured"],
        )

    def prepare(self, micro_batch: int, kind: str) -> None:
        """Predict this batch; `amortised` and `isolated` differ by what is in flight."""
        batch = micro_batch * self._spec.sessions
        if self._compiled is None or self._compiled.timing.batch_size != batch:
            self._compiled = self._emulator.compile(_network(self._spec.model), batch)
        timing = self._compiled.timing.timing
        self._seconds = timing.period if kind == "amortised" else timing.device + timing.protocol

    def told(self) -> dict[str, Any]:
        """The prediction's band, as a share of its latency kept for the amortised one, and its power."""
        found = self._compiled.timing
        amortised = found.batch_size / found.throughput * 1000
        doubts = [] if found.memory_verdict == "FITS" else [f"memory: {found.memory_verdict}"]
        return {
            "latency_ms_low": amortised * found.latency_ms_low / found.latency_ms,
            "latency_ms_high": amortised * found.latency_ms_high / found.latency_ms,
            "power_w": found.power_w,
            "power_scope": None if found.power_w is None else "board",
            "power_reason": NO_POWER if found.power_w is None else "predicted, not measured",
            "suspect": doubts,
        }

    def run(self, images: Any) -> Any:
        if images is None:
            return self.advance(self._seconds)
        (outputs,) = self._compiled.run_chip(np.asarray(images)).values()
        return outputs.astype(np.float32)
