"""Which device is taken, which is refused with its reason, and where PopART is looked for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import ROOT
from ipu_results.errors import BackendError
from ipu_results.runner import choice
from ipu_results.runner.backends import NAMES, backend, computes, is_virtual
from ipu_results.runner.backends.base import KINDS, Device
from ipu_results.runner.choice import Choice, choose, listing, probed
from runner_support import children, odd_python

FAKES = ROOT / "tests" / "fakes"
IPU = Device("popart", "ipu", "ipu", "IPU")
NO_IPU = Device("popart", "ipu", "ipu", "IPU", "no IPU is attached to this machine")
IPU_MODEL = Device("popart", "ipu-model", "simulated", "a model of an IPU")
CPU = Device("onnxruntime", "cpu", "cpu", "a CPU")
GPUS = [Device("onnxruntime", f"cuda:{index}", "gpu", "a GPU") for index in range(2)]
NO_GPU = Device("onnxruntime", "cuda:0", "gpu", "a GPU", "it comes in another wheel")
OPENVINO = [Device("openvino", "CPU", "cpu", "a CPU"), Device("openvino", "GPU", "gpu", "a GPU")]
EMULATED = [Device("emulator", name, "emulated", name) for name in ("c2", "m2000", "bow-2000")]
NULL = Device("null", "null", "simulated", "null")


def machine(popart: Sequence[Device], others: Sequence[Device]) -> choice.Probe:
    """What there is on a machine with these of PopART and of ONNX Runtime."""
    found = {"popart": popart, "onnxruntime": others, "openvino": OPENVINO[:1], "emulator": EMULATED, "null": [NULL]}
    return lambda name: found[name]


BARE = machine([NO_IPU, IPU_MODEL], [CPU, NO_GPU])


def test_auto_takes_an_ipu_first() -> None:
    assert choose("auto", None, "c2", machine([IPU, IPU_MODEL], [CPU, *GPUS])) == [Choice(IPU, "an IPU is here")]


def test_auto_takes_a_gpu_next() -> None:
    found = choose("auto", None, "c2", machine([NO_IPU, IPU_MODEL], [CPU, *GPUS]))
    assert found == [Choice(GPUS[0], "no IPU is here, a GPU is")]


def test_auto_takes_any_backends_gpu() -> None:
    probe = machine([NO_IPU], [CPU, NO_GPU])
    found = choose("auto", None, "c2", lambda name: OPENVINO if name == "openvino" else probe(name))
    assert found == [Choice(OPENVINO[1], "no IPU is here, a GPU is")]


@pytest.mark.parametrize("target", range(3))
def test_auto_falls_to_the_emulator_and_the_cpu(target: int) -> None:
    why = "neither an IPU nor a GPU is here"
    wanted = [Choice(EMULATED[target], f"{why}: emulated"), Choice(CPU, f"{why}: measured")]
    assert choose("auto", None, EMULATED[target].name, BARE) == wanted


def test_auto_takes_no_simulated_device() -> None:
    (only,) = choose("auto", None, "c2", machine([NO_IPU, IPU_MODEL], []))
    assert only.device == EMULATED[0]


@pytest.mark.parametrize(
    ("name", "device", "wanted"),
    [
        ("onnxruntime", None, CPU),
        ("onnxruntime", "cpu", CPU),
        ("openvino", "CPU", OPENVINO[0]),
        ("emulator", None, EMULATED[0]),
        ("emulator", "m2000", EMULATED[1]),
        ("popart", "ipu-model", IPU_MODEL),
        ("null", None, NULL),
    ],
)
def test_what_is_asked_for_is_taken(name: str, device: str | None, wanted: Device) -> None:
    assert choose(name, device, "c2", BARE) == [Choice(wanted, "asked for")]


def test_a_backend_alone_means_its_first_device_that_can_be_used() -> None:
    assert choose("onnxruntime", None, "c2", machine([], [NO_GPU, CPU])) == [Choice(CPU, "asked for")]
    assert choose("emulator", None, "bow-2000", BARE)[0].device == EMULATED[2]


@pytest.mark.parametrize(
    ("name", "device", "message"),
    [
        ("popart", None, "popart: ipu: no IPU is attached to this machine"),
        ("popart", "ipu", "popart: ipu: no IPU is attached to this machine"),
        ("onnxruntime", "cuda:0", "onnxruntime: cuda:0: it comes in another wheel"),
        ("onnxruntime", "cuda:7", "cuda:7: is no device of onnxruntime, which has: cpu, cuda:0"),
        ("emulator", "c3", "c3: is no device of emulator, which has: c2, m2000, bow-2000"),
        ("openvino", "NPU", "NPU: is no device of openvino, which has: CPU"),
    ],
)
def test_nothing_is_taken_in_place_of_what_was_asked_for(name: str, device: str | None, message: str) -> None:
    with pytest.raises(BackendError) as caught:
        choose(name, device, "c2", BARE)
    assert str(caught.value) == message


def test_a_precision_that_a_device_does_not_have_is_refused() -> None:
    """Before anything is run; `auto` leaves out what cannot compute in it."""
    with pytest.raises(BackendError, match=r"^emulator: c2: does not compute in int8$"):
        choose("emulator", "c2", "c2", BARE, "int8")
    assert choose("emulator", None, "c2", BARE, "fp16") == [Choice(EMULATED[0], "asked for")]
    assert [one.device.backend for one in choose("auto", None, "c2", BARE, "int8")] == ["onnxruntime"]
    with pytest.raises(BackendError, match="does not compute in bf16"):
        choose("auto", None, "c2", BARE, "bf16")


def test_a_device_is_asked_of_a_backend() -> None:
    with pytest.raises(BackendError, match=r"^cuda:1: is a device of which backend"):
        choose("auto", "cuda:1", "c2", BARE)


def test_a_backend_without_devices() -> None:
    with pytest.raises(BackendError, match=r"^popart: is no device of popart, which has: none$"):
        choose("popart", None, "c2", machine([], []))


def test_every_device_is_listed_with_what_is_against_it() -> None:
    found = listing(BARE)
    assert [one.backend for one, _ in found] == sorted((one.backend for one, _ in found), key=NAMES.index)
    told = {(one.backend, one.name): why for one, why in found}
    assert told["popart", "ipu"] == NO_IPU.reason
    assert told["onnxruntime", "cpu"] == "can be used"
    assert len(told) == len(found) == 9


# --- the backends themselves


def test_every_backend_says_what_it_is() -> None:
    assert {name for name in NAMES if is_virtual(name)} == {"emulator", "null"}
    assert {name for name in NAMES if not computes(name)} == {"null"}
    assert all(name == backend(name).NAME for name in NAMES)


def test_this_machine_by_the_real_probes() -> None:
    found = [one for name in NAMES for one in probed(name)]
    assert {one.backend for one in found} == set(NAMES)
    assert {one.kind for one in found} <= set(KINDS)
    assert CPU.name in {one.name for one in found if one.backend == "onnxruntime" and one.usable}
    assert [one.name for one in found if one.backend == "emulator"] == ["c2", "m2000", "bow-2000"]


PROBING = """
import sys, onnx
from ipu_results.runner.choice import probed
for one in probed("popart"):
    print(one.name, one.usable)
print("popart" in sys.modules)
"""


def test_popart_is_looked_for_in_a_process_of_its_own() -> None:
    """It cannot be imported beside onnx, which this process has."""
    paths = os.pathsep.join([str(FAKES), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", PROBING],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["ipu True", "ipu-model True", "False"], done.stderr


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("raise SystemExit(4)", "the process of session 0 ended with 4"),
        ("import os; os.kill(os.getpid(), 11)", "the process of session 0 was killed by SIGSEGV"),
    ],
)
def test_a_probe_that_dies_is_a_reason(tmp_path: Path, first: str, reason: str) -> None:
    before = children()
    assert probed("popart", odd_python(tmp_path, first)) == [Device("popart", "popart", "ipu", "IPU", reason)]
    assert children() == before


def test_an_interpreter_that_is_not_there_is_a_reason(tmp_path: Path) -> None:
    (found,) = probed("popart", str(tmp_path / "absent"))
    assert found.reason == "cannot be started: No such file or directory"


def test_a_probe_that_hangs_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "PROBE_S", 0.05)
    monkeypatch.setattr("ipu_results.runner.seats.LEAVE_S", 0.05)
    before = children()
    (found,) = probed("popart", odd_python(tmp_path, "import time; time.sleep(600)"))
    assert found.reason == "session 0 has not answered for 0 s"
    assert children() == before
