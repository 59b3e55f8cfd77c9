"""Power: meters by their own formats, on fakes of the machine. No figure unless it was read."""

# ruff: noqa: N802 (names of NVML)

from __future__ import annotations

import math
import os
import shlex
import sys
import threading
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import RunnerError
from ipu_results.runner import power
from ipu_results.runner.power import (
    CommandMeter,
    NvmlMeter,
    PowerMeter,
    RaplMeter,
    count_spent,
    find_handle,
    find_meter,
    run_command,
)

# One C2: two IPUs, each of which prints the power of the whole board.
C2 = """\
Device Info:
  id: {id}
  target: PCIe
  average board temp: 30.1 C
  board ipu index: {id}
  board serial number: {serial}
  board type: C2
  clock: 1600MHz
  ipu power: N/A
  link speed: 16.0 GT/s
  total board power: {watts}
  user executable: N/A
"""


def c2(number: int, watts: str = "99.5 W", serial: str = "0024.0002.8203321") -> str:
    return C2.format(id=number, watts=watts, serial=serial)


def tick(*times: float) -> Callable[[], float]:
    """Return a clock that shows these seconds, one after the other."""
    shown = iter(times)
    return lambda: next(shown)


# --- gc-info


def gc_info(*ipus: str) -> Callable[[list[str]], str]:
    """Return a fake gc-info of a machine where these texts are printed for its IPUs."""

    def run(argv: list[str]) -> str:
        number = int(argv[-1])
        if number >= len(ipus):
            raise RunnerError("gc-info ended with status 1")
        return ipus[number]

    return run


@pytest.mark.parametrize(
    ("ipus", "reason"),
    [
        ([c2(0), c2(1), c2(0, serial="another")], "IPUs of several boards"),
        ([c2(0), c2(0) + c2(1, serial="another")], "IPUs of several boards"),
        ([], "gc-info ended with status 1"),
        (["| 0 | C2 | 99.5W |"], "gc-info gave no board serial number"),
        ([c2(0, "N/A")], "gc-info gave no total board power in watts"),
        ([c2(0, "-3.0 W")], "gc-info gave no total board power in watts"),
        ([c2(0, "0.0 W")], "gc-info gave 0 W"),
        ([c2(0, "9" * 400 + " W")], "gc-info gave inf W"),
    ],
)
def test_ipus_without_the_power_of_one_board_have_a_reason(
    ipus: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several boards it is unknown which one measures."""
    monkeypatch.setattr(power, "run_command", gc_info(*ipus))
    meter, text = find_meter("ipu", "ipu")
    assert meter is None
    assert text.startswith(f"no sensor: {reason}")


@pytest.mark.parametrize("more", [[], ["no such device"]])
def test_board_of_the_ipus_is_read(monkeypatch: pytest.MonkeyPatch, more: list[str]) -> None:
    monkeypatch.setattr(power, "run_command", gc_info(c2(0), c2(1), *more))
    meter, text = find_meter("ipu", "ipu")
    assert text.startswith("gc-info")
    assert meter is not None
    assert (meter.scope, meter.read()) == ("board", 99.5)


# --- sampling


class ScriptMeter(PowerMeter):
    """A meter with readings by script, the last one again and again, and a wait until enough have
    been taken.
    """

    interval_s = 0.002

    def __init__(self, *readings: float | Exception) -> None:
        self._script = chain(readings, repeat(readings[-1]))
        self._taken = threading.Semaphore(0)

    def read(self) -> float:
        reading = next(self._script)
        self._taken.release()
        if isinstance(reading, Exception):
            raise reading
        return reading

    def wait(self, more: int) -> None:
        for _ in range(more):
            assert self._taken.acquire(timeout=30)


def test_sampled_power_is_the_mean_of_its_readings() -> None:
    meter = ScriptMeter(10.0, 20.0, 15.0)
    meter.start()
    meter.wait(4)
    assert meter.stop() == pytest.approx(15.0)
    assert meter.reason is None


@pytest.mark.parametrize("bad", [RunnerError("it hangs"), KeyError()])
def test_bad_reading_voids_its_window_and_not_the_next(bad: Exception) -> None:
    meter = ScriptMeter(10.0, bad, 20.0)
    meter.start()
    meter.wait(3)
    assert meter.stop() is None
    assert meter.reason == (str(bad) or "KeyError")
    meter.start()
    meter.wait(2)
    assert (meter.stop(), meter.reason) == (20.0, None)


def test_short_or_empty_window_has_no_mean() -> None:
    meter = ScriptMeter(10.0)
    meter.min_window_s = 3600.0
    meter.start()
    meter.wait(1)
    assert meter.stop() is None
    assert str(meter.reason).endswith("is shorter than 3600 s")
    meter.min_window_s = 0.0
    meter.interval_s = 3600.0
    meter.start()
    assert (meter.stop(), meter.reason) == (None, "there was no reading within the window")


# --- the power command


def print_text(text: str) -> str:
    """Return a command that prints this, without a shell: what looks like one is a word of it."""
    return shlex.join([sys.executable, "-c", "import sys; print(sys.argv[1])", text, ";", "exit"])


def test_power_command_prints_one_number_of_watts(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = CommandMeter(print_text("230.25"))
    assert (meter.scope, meter.name) == ("wall", f"power command {Path(sys.executable).name}")
    assert meter.read() == 230.25
    for text, watts in ((" 240.5\n", 240.5), ("1.5e2\r\n", 150.0), ("1e6", 1e6)):
        monkeypatch.setattr(power, "run_command", lambda *_, text=text: text)
        assert meter.read() == watts


@pytest.mark.parametrize(
    "text",
    ["", "0", "-5", "nan", "1e999", "1000000.1", "12 W", "12\n13", "1_0", "0x10", "१२", "5,5"],
)
def test_other_text_of_the_power_command_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(power, "run_command", lambda *_: text)
    with pytest.raises(RunnerError, match="the power command"):
        CommandMeter("meter").read()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("sh -c 'sleep 600 & echo 5'", "sh did not answer within 1 s"),  # its child keeps it open
        ("false", "false ended with status 1"),
        ("no-such-meter -a", "no-such-meter could not be started: No such file or directory"),
        ("no\0meter", "no\0meter could not be started: not a command"),
    ],
)
def test_command_without_an_answer_is_an_error(command: str, reason: str) -> None:
    with pytest.raises(RunnerError, match=f"^{reason}$"):
        run_command(shlex.split(command), 1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"command": "''"}, "the power command is empty"),
        ({"command": "meter 'open"}, "the power command cannot be read"),
        ({"declared": 0.0}, "must be a number of watts above 0"),
        ({"declared": math.nan}, "must be a number of watts above 0"),
        ({"declared": math.inf}, "must be a number of watts above 0"),
    ],
)
def test_unusable_command_or_declared_power_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(RunnerError, match=message):
        find_meter("cpu", "cpu", **more)


# --- RAPL


PARTS = (("intel-rapl:0:0", "core"), ("intel-rapl:2", "psys"), ("intel-rapl-mmio:0", "package-0"))


class FakePowercap:
    """A sysfs with packages whose counters wrap around at `span` microjoules."""

    def __init__(self, root: Path, span: int = 1_000_000) -> None:
        self.root = root
        self.span = span

    def write(self, folder: str, name: str, energy_uj: int = 0) -> None:
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        energy = energy_uj % self.span
        files = {"name": name, "max_energy_range_uj": self.span, "energy_uj": energy}
        for file, value in files.items():
            (path / ".new").write_text(f"{value}\n", encoding="ascii")
            # a thread may be reading: it never meets an empty file
            os.replace(path / ".new", path / file)


@pytest.fixture
def powercap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePowercap:
    fake = FakePowercap(tmp_path / "powercap")
    monkeypatch.setattr(power, "POWERCAP", fake.root)
    fake.write("intel-rapl:0", "package-0", 900_000)
    fake.write("intel-rapl:1", "package-1", 100_000)
    for part, name in PARTS:
        fake.write(part, name, 5)
    return fake


def open_rapl(*times: float) -> RaplMeter:
    """Open a meter whose clock shows these seconds."""
    meter = RaplMeter()
    meter.clock = tick(*times)
    return meter


def test_whole_packages_add_up_over_wrap_arounds(powercap: FakePowercap) -> None:
    meter = open_rapl(0.0, 2.0, 2.0, 12.0)
    assert (meter.scope, meter.name) == ("package", "RAPL, 2 packages")
    meter.start()
    powercap.write("intel-rapl:0", "package-0", 1_500_000)
    powercap.write("intel-rapl:1", "package-1", 300_000)
    for part, name in PARTS:
        powercap.write(part, name, 999_999)
    assert meter.stop() == pytest.approx((0.6 + 0.2) / 2)
    meter.start()
    # readings in between keep count of each wrap-around
    for total in (2_300_000, 3_100_000, 3_900_000):
        powercap.write("intel-rapl:0", "package-0", total)
        meter.read()
    assert meter.stop() == pytest.approx(2.4 / 10)
    assert meter.reason is None


@given(st.integers(1, 10**12), st.data())
def test_no_energy_is_lost_or_counted_twice_over_wraps(span: int, data: st.DataObject) -> None:
    total = data.draw(st.integers(0, span - 1))
    for step in data.draw(st.lists(st.integers(0, span - 1), max_size=20)):
        assert count_spent(total % span, (total + step) % span, span) == step
        total += step


def test_counter_that_goes_back_voids_its_window_and_not_the_next(powercap: FakePowercap) -> None:
    (powercap.root / "intel-rapl:1" / "max_energy_range_uj").write_text("0\n", encoding="ascii")
    counter = powercap.root / "intel-rapl:1" / "energy_uj"
    meter = open_rapl(0.0, 2.0, 2.0, 4.0)
    meter.start()
    counter.write_text("50\n", encoding="ascii")
    assert meter.stop() is None
    assert "went back from 100000 to 50" in str(meter.reason)
    meter.start()
    counter.write_text("1000050\n", encoding="ascii")
    assert (meter.stop(), meter.reason) == (pytest.approx(0.5), None)


def test_window_without_energy_time_or_counter_has_a_reason(powercap: FakePowercap) -> None:
    meter = open_rapl(0.0, 2.0, 2.0, 2.5, 3.0, 5.0, 5.0, 7.0)
    meter.start()
    assert (meter.stop(), meter.reason) == (None, "RAPL gave 0 W")
    meter.start()
    powercap.write("intel-rapl:1", "package-1", 600_000)
    assert (meter.stop(), meter.reason) == (None, "the window of 0.5 s is shorter than 1 s")
    meter.start()
    (powercap.root / "intel-rapl:1" / "energy_uj").unlink()
    assert (meter.stop(), meter.reason) == (None, "RAPL's energy_uj cannot be read")
    meter.start()
    assert (meter.stop(), meter.reason) == (None, "RAPL's energy_uj cannot be read")


def test_cpu_has_rapl_or_a_reason(powercap: FakePowercap, monkeypatch: pytest.MonkeyPatch) -> None:
    meter, text = find_meter("cpu", "cpu")
    assert (type(meter), text) == (RaplMeter, "RAPL, 2 packages")
    read = Path.read_text

    def guard(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", guard)
    assert find_meter("cpu", "cpu") == (None, "no sensor: permission denied on RAPL's energy_uj")
    monkeypatch.setattr(power, "POWERCAP", powercap.root / "absent")
    assert find_meter("cpu", "cpu") == (None, "no sensor: no RAPL counter")


# --- which meter


@pytest.mark.usefixtures("powercap")
def test_declared_power_comes_before_a_command_and_that_before_the_device() -> None:
    meter, text = find_meter("cpu", "cpu", "meter --watts", 75)
    assert meter is not None
    meter.start()
    assert (meter.scope, meter.stop(), text) == ("declared", 75, "declared 75 W")
    meter, text = find_meter("cpu", "cpu", "/opt/bin/meter --host here")
    assert meter is not None
    assert (meter.scope, text) == ("wall", "power command meter")


def test_unreal_and_unknown_devices_have_no_meter() -> None:
    for kind in ("emulated", "simulated"):
        reason = f"no sensor: the device is {kind}, and what this machine draws is not its power"
        assert find_meter(kind, "c2", "meter", 75) == (None, reason)
    assert find_meter("tpu", "tpu:0") == (None, "no sensor: none is known for a device of kind tpu")


# --- NVML: the right GPU, or a reason


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
