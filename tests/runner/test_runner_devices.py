"""Which device is selected, which is refused with its reason, and how PopART is probed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ipu_results.errors import BackendError
from ipu_results.runner import config, sessions
from ipu_results.runner.backends import NAMES, Device, load_backend
from ipu_results.runner.config import ListDevices, SelectedDevice, list_devices, select_devices

from tests.conftest import ROOT
from tests.runner.faulty_backend import write_faulty_python
from tests.runner.runner_support import list_children

FAKES = ROOT / "tests" / "runner" / "fakes"
IPU = Device("popart", "ipu", "ipu", "IPU")
NO_IPU = Device("popart", "ipu", "ipu", "IPU", "no IPU is attached to this machine")
IPU_MODEL = Device("popart", "ipu-model", "simulated", "a model of an IPU")
CPU = Device("onnxruntime", "cpu", "cpu", "a CPU")
GPU = Device("onnxruntime", "cuda:0", "gpu", "a GPU")
NO_GPU = Device("onnxruntime", "cuda:0", "gpu", "a GPU", "it comes in another wheel")
OPENVINO = Device("openvino", "CPU", "cpu", "a CPU")
INTEL = Device("openvino", "GPU", "gpu", "a GPU")
EMULATED = [Device("emulator", name, "emulated", name) for name in ("c2", "m2000", "bow-2000")]


def machine(*devices: Device) -> ListDevices:
    """Return the probe of a machine with these devices."""
    present = (*devices, OPENVINO, *EMULATED)
    return lambda name: [device for device in present if device.backend == name]


BARE = machine(NO_IPU, IPU_MODEL, CPU, NO_GPU)
NEITHER = "neither an IPU nor a GPU is here"


@pytest.mark.parametrize(
    ("probe", "selected"),
    [
        (machine(IPU, IPU_MODEL, CPU, GPU), [(IPU, "an IPU is here")]),
        (machine(NO_IPU, IPU_MODEL, CPU, GPU), [(GPU, "no IPU is here, a GPU is")]),
        (machine(NO_IPU, CPU, NO_GPU, INTEL), [(INTEL, "no IPU is here, a GPU is")]),
        (BARE, [(EMULATED[0], f"{NEITHER}: emulated"), (CPU, f"{NEITHER}: measured")]),
        (machine(NO_IPU, IPU_MODEL), [(EMULATED[0], f"{NEITHER}: emulated")]),
    ],
    ids=["ipu", "gpu", "gpu of any backend", "emulator and CPU", "no simulated device"],
)
def test_auto_prefers_ipu_then_gpu_then_emulator_and_cpu(
    probe: ListDevices, selected: list[tuple[Device, str]]
) -> None:
    assert select_devices("auto", None, "c2", probe) == [
        SelectedDevice(*choice) for choice in selected
    ]


@pytest.mark.parametrize(
    ("name", "device", "message"),
    [
        ("popart", None, "popart: ipu: no IPU is attached to this machine"),
        ("onnxruntime", "cuda:0", "onnxruntime: cuda:0: it comes in another wheel"),
        ("onnxruntime", "cuda:7", "cuda:7: is not a device of onnxruntime, which has: cpu, cuda:0"),
        ("emulator", "c3", "c3: is not a device of emulator, which has: c2, m2000, bow-2000"),
        ("auto", "cuda:1", "cuda:1: --device needs --backend, which names the backend of the"),
    ],
)
def test_nothing_replaces_the_requested_device(name: str, device: str | None, message: str) -> None:
    with pytest.raises(BackendError, match=f"^{message}"):
        select_devices(name, device, "c2", BARE)


@pytest.mark.parametrize("expected", [CPU, OPENVINO, EMULATED[1], IPU_MODEL])
def test_requested_device_is_selected(expected: Device) -> None:
    chosen = SelectedDevice(expected, "requested")
    assert select_devices(expected.backend, expected.name, "c2", BARE) == [chosen]


def test_target_is_the_device_of_the_emulator() -> None:
    chosen = SelectedDevice(EMULATED[2], "requested")
    assert select_devices("emulator", None, "bow-2000", BARE) == [chosen]
    assert select_devices("onnxruntime", None, "c2", BARE)[0].device == CPU


def test_precision_that_a_device_does_not_have_is_refused() -> None:
    """`auto` skips what cannot compute in it."""
    with pytest.raises(BackendError, match=r"^emulator: c2: does not compute in int8$"):
        select_devices("emulator", "c2", "c2", BARE, "int8")
    assert select_devices("emulator", None, "c2", BARE, "fp16")[0].device == EMULATED[0]
    assert [choice.device for choice in select_devices("auto", None, "c2", BARE, "int8")] == [CPU]
    with pytest.raises(BackendError, match="does not compute in bf16"):
        select_devices("auto", None, "c2", BARE, "bf16")


# --- the backends themselves


def test_probes_of_this_machine_list_its_devices() -> None:
    for name in NAMES:
        assert {device.backend for device in list_devices(name)} == {name}
        assert name == load_backend(name).NAME
    assert any(device.name == "cpu" and device.usable for device in list_devices("onnxruntime"))
    emulated = [device.name for device in list_devices("emulator")]
    assert emulated == ["c2", "m2000", "bow-2000", "c600"]


PROBING = """
import sys, onnx
from ipu_results.runner.config import list_devices
for device in list_devices("popart"):
    print(device.name, device.usable)
print("popart" in sys.modules)
"""


def test_popart_is_probed_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be imported in a process that has onnx, as this one."""
    monkeypatch.setenv("PYTHONPATH", str(FAKES), prepend=os.pathsep)
    printed = subprocess.check_output([sys.executable, "-c", PROBING], text=True, cwd=ROOT)
    assert printed.splitlines() == ["ipu True", "ipu-model True", "False"]


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("raise SystemExit(4)", "the process of session 0 ended with 4"),
        ("import time; time.sleep(600)", "session 0 has not replied for 0 s"),
        (None, "cannot be started: No such file or directory"),
    ],
    ids=["ends", "hangs", "missing"],
)
def test_failed_probe_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str | None, reason: str
) -> None:
    if reason.startswith("session"):
        monkeypatch.setattr(config, "PROBE_TIMEOUT_S", 0.05)
        monkeypatch.setattr(sessions, "CLOSE_TIMEOUT_S", 0.05)
    before = list_children()
    python = str(tmp_path / "absent") if first is None else write_faulty_python(tmp_path, first)
    assert list_devices("popart", python) == [Device("popart", "popart", "ipu", "IPU", reason)]
    assert list_children() == before
