"""Power of an NVIDIA GPU by the energy counter of NVML, from the package nvidia-ml-py.

Only the counter counts: a GPU without one (before Volta, some virtual ones) has no sensor. `nvmlDeviceGetPowerUsage`
is no substitute, since A100 and H100 sample it for a quarter of the time and older ones average it over a second.
"""

from __future__ import annotations

import importlib
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ipu_results.errors import RunnerError
from ipu_results.runner.power.meter import reading, too_short

MIN_WINDOW_S = 5.0
# OpenVINO's `GPU` is Intel's and MIGraphX's is AMD's: NVML knows neither, and may know a third one.
NAMES = re.compile(r"(?:nv)?(?:cuda|tensorrt|nvidia)[a-z]*:?(\d+)?", re.ASCII | re.IGNORECASE)


def library() -> Any:
    """The module pynvml. Raises RunnerError when nvidia-ml-py is not installed."""
    try:
        return importlib.import_module("pynvml")
    except ImportError as error:
        raise RunnerError("no NVML: nvidia-ml-py is not installed") from error


def index(device: str) -> int:
    """CUDA's number in the name of a device, such as `cuda:1`. Raises RunnerError when it is not NVIDIA's."""
    found = NAMES.fullmatch(device)
    if not found:
        raise RunnerError(f"{device} is not the name of an NVIDIA GPU, and NVML reads no other")
    return int(found[1] or 0)


def handle(nvml: Any, number: int, environ: Mapping[str, str]) -> Any:
    """NVML's handle of the GPU that CUDA numbers so. Raises RunnerError when it is not certain which that is."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(number)] if visible is None else [name.strip() for name in visible.split(",")][number : number + 1]
    if not names:
        raise RunnerError(f"CUDA_VISIBLE_DEVICES hides GPU {number}")
    if names[0].startswith("GPU-"):
        return nvml.nvmlDeviceGetHandleByUUID(names[0])
    if not re.fullmatch(r"\d+", names[0], re.ASCII):
        raise RunnerError(f"CUDA_VISIBLE_DEVICES names no whole GPU for device {number}")
    _assert_same_order(nvml, environ)
    return nvml.nvmlDeviceGetHandleByIndex(int(names[0]))


def _assert_same_order(nvml: Any, environ: Mapping[str, str]) -> None:
    """CUDA puts the fastest GPU first, NVML the lowest on the bus: that is one order only if all are of one model."""
    if environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID":
        return
    every = range(nvml.nvmlDeviceGetCount())
    if len({nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(each)) for each in every}) > 1:
        raise RunnerError("GPUs of several models and no CUDA_DEVICE_ORDER=PCI_BUS_ID: NVML may number them otherwise")


class Nvml:
    """One GPU's energy over a window. Raises RunnerError when NVML, the GPU or its counter is not there."""

    scope = "device"
    min_window_s = MIN_WINDOW_S

    def __init__(
        self,
        device: str,
        nvml: Any = None,
        *,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        number = index(device)
        self._nvml, self._clock = nvml or library(), clock
        self.reason: str | None = "the sensor was not started"
        self._earlier: int | None = None
        self._started = 0.0
        self._asked(self._nvml.nvmlInit, "no NVML")
        self._open = True
        try:
            self._handle = self._asked(lambda: handle(self._nvml, number, environ), "no GPU in NVML")
            self._assert_whole()
            self._energy()
            self.name = f"NVML energy counter, {self._asked(lambda: self._nvml.nvmlDeviceGetName(self._handle))}"
        except RunnerError:
            self.close()
            raise

    def _asked(self, call: Callable[[], Any], what: str = "NVML") -> Any:
        try:
            return call()
        except self._nvml.NVMLError as error:
            raise RunnerError(f"{what}: {str(error).lower()}") from error

    def _energy(self) -> int:
        """Millijoules since the driver was loaded."""
        call = self._nvml.nvmlDeviceGetTotalEnergyConsumption
        return int(self._asked(lambda: call(self._handle), "the energy counter of NVML"))

    def _assert_whole(self) -> None:
        try:
            divided = self._nvml.nvmlDeviceGetMigMode(self._handle)[0]
        except self._nvml.NVMLError:  # a model that cannot be divided
            return
        if divided:
            raise RunnerError("the GPU is divided (MIG), and NVML counts the energy of the whole")

    def start(self) -> None:
        self.reason, self._earlier = None, None
        try:
            self._earlier = self._energy()
        except RunnerError as error:
            self.reason = error.message
        self._started = self._clock()

    def stop(self) -> float | None:
        """Mean watts since `start`, or None with `reason` set."""
        if self._earlier is None:
            return None
        try:
            spent = self._energy() - self._earlier
        except RunnerError as error:
            self.reason = error.message
            return None
        elapsed = self._clock() - self._started
        self.reason = too_short(elapsed, self.min_window_s)
        if self.reason:
            return None
        watts, self.reason = reading(spent / 1e3 / elapsed, "NVML")
        return watts

    def close(self) -> None:
        if self._open:
            self._open = False
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
