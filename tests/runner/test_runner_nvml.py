"""The energy counter of NVIDIA GPUs, on a fake of pynvml: the right GPU, or a reason for the
missing figure.
"""

# ruff: noqa: N802 (names of NVML)

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from ipu_results.errors import RunnerError
from ipu_results.runner.power import NvmlMeter, find_handle, find_meter

from tests.runner.test_runner_power import tick


@pytest.fixture(autouse=True)
def _no_cuda_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")


class NVMLError(Exception):
    pass


class FakeNvml(SimpleNamespace):
    """As much of pynvml as is used: two GPUs, their energy in millijoules."""

    NVMLError = NVMLError

    def __init__(self) -> None:
        super().__init__(mig=0, energy={0: 10_000, 1: 70_000}, users=0, failing=set())
        self.nvmlDeviceGetHandleByUUID = {"GPU-aa": 0, "GPU-bb": 1}.__getitem__
        self.nvmlDeviceGetName = lambda _: "NVIDIA H200"

    def fail_if(self, failing: bool, reason: str = "Not Supported") -> None:
        if failing:
            raise NVMLError(reason)

    def nvmlInit(self) -> None:
        self.fail_if("init" in self.failing)
        self.users += 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        self.fail_if(index not in self.energy, "Invalid Argument")
        return index

    def nvmlDeviceGetMigMode(self, _handle: int) -> list[int]:
        self.fail_if(self.mig is None)
        return [self.mig, self.mig]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        self.fail_if("energy" in self.failing)
        self.fail_if(not self.users, "Uninitialized")
        return int(self.energy[handle])


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_millijoules_over_the_window_are_watts(nvml: FakeNvml) -> None:
    meter = NvmlMeter("cuda:1")
    meter.clock = tick(100.0, 105.0)
    assert (meter.scope, meter.name) == ("device", "NVML energy counter, NVIDIA H200")
    meter.start()
    nvml.energy[0] += 999_999
    nvml.energy[1] += 1_500_000
    assert meter.stop() == pytest.approx(300.0)


@pytest.mark.parametrize(
    ("change", "seconds", "fails", "reason"),
    [
        (1_000, 4.9, False, "the window of 4.9 s is shorter than 5 s"),
        (0, 5.0, False, "NVML gave 0 W"),
        (-10_000, 5.0, False, "NVML gave -2 W"),
        (1_000, 5.0, True, "the energy counter of NVML: not supported"),
    ],
)
def test_window_that_nvml_cannot_resolve_has_a_reason(
    nvml: FakeNvml, change: int, seconds: float, fails: bool, reason: str
) -> None:
    """Too short, without energy, or with a counter that fails."""
    meter = NvmlMeter("cuda:0")
    meter.clock = tick(0.0, seconds)
    meter.start()
    nvml.energy[0] += change
    nvml.failing = {"energy"} if fails else set()
    assert (meter.stop(), meter.reason) == (None, reason)


@pytest.mark.parametrize(
    ("state", "device", "reason"),
    [
        ({"failing": {"energy"}}, "cuda:0", "the energy counter of NVML: not supported"),
        ({"failing": {"init"}}, "cuda:0", "no NVML: not supported"),
        ({"mig": 1}, "cuda:0", "the GPU is divided (MIG), and NVML counts the energy of the whole"),
        (None, "cuda:0", "no NVML: nvidia-ml-py is not installed"),
        ({"mig": None}, "cuda", None),
        ({}, "tensorrt:1", None),
        ({}, "cuda:7", "no GPU in NVML: invalid argument"),
        ({}, "GPU.0", "GPU.0 is not the name of an NVIDIA GPU, and NVML reads no other"),
    ],
)
def test_gpu_has_a_counter_or_a_reason(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, state: Any, device: str, reason: str | None
) -> None:
    vars(nvml).update(state or {})
    if state is None:
        monkeypatch.setitem(sys.modules, "pynvml", None)
    meter, text = find_meter("gpu", device)
    assert text == (f"no sensor: {reason}" if reason else "NVML energy counter, NVIDIA H200")
    assert (meter is None) == bool(reason)


def test_gpu_is_numbered_as_cuda_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_handle(FakeNvml(), 1) == 1
    for visible, number, handle in (("1,0", 1, 0), ("GPU-bb, GPU-aa", 0, 1)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert find_handle(FakeNvml(), number) == handle
    for visible in ("", "0", "MIG-aa,MIG-bb"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        with pytest.raises(RunnerError, match="CUDA_VISIBLE_DEVICES"):
            find_handle(FakeNvml(), 1)


def test_another_order_of_gpus_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA may count them otherwise than NVML."""
    monkeypatch.delenv("CUDA_DEVICE_ORDER")
    with pytest.raises(RunnerError, match="CUDA_DEVICE_ORDER"):
        find_handle(FakeNvml(), 0)
