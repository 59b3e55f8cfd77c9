"""Power: sensors by their own formats, on fakes of the machine. No figure unless it was read."""
# ruff: noqa: N802 (names of NVML)

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import RunnerError
from ipu_results.runner.power import energy, find_sensor, meter
from ipu_results.runner.power.energy import NvmlSensor, RaplSensor
from ipu_results.runner.power.meter import Reading, SampledSensor

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


def assert_watts_or_reason(reading: Reading) -> None:
    assert (reading.watts is None) != (reading.reason is None)
    assert reading.watts is None or (math.isfinite(reading.watts) and reading.watts > 0)


# --- gc-info


@pytest.mark.parametrize(
    ("texts", "watts"),
    [
        ([c2(0), c2(1)], 99.5),
        ([c2(0) + c2(1)], 99.5),
        ([c2(0, "99.0 W"), c2(1, "100.0 W")], 99.5),
        ([c2(0), c2(1), c2(2, "110.25 W", "x"), c2(3, "110.25 W", "x")], 209.75),
    ],
    ids=["two IPUs", "in one text", "two readings", "two boards"],
)
def test_each_board_counts_once(texts: list[str], watts: float) -> None:
    assert energy.sum_board_power(texts) == Reading(watts, None)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ([], "gc-info gave no device"),
        ([""], "gc-info gave no board serial number"),
        ([c2(0, "N/A")], "gc-info gave no total board power"),
        ([c2(0), c2(1, "")], "gc-info gave no total board power"),
        ([c2(0, "99.5")], "gc-info's total board power is not in watts"),
        ([c2(0, "99500 mW")], "gc-info's total board power is not in watts"),
        ([c2(0, "-3.0 W")], "gc-info's total board power is not in watts"),
        ([c2(0, "0.0 W")], "gc-info gave 0 W"),
        ([c2(0, "9" * 400 + " W")], "gc-info gave inf W"),
        ([c2(0, serial="N/A")], "gc-info gave no board serial number"),
        (["| 0 | C2 | 99.5W |"], "gc-info gave no board serial number"),
    ],
)
def test_gc_info_without_a_power_has_a_reason(texts: list[str], reason: str) -> None:
    assert energy.sum_board_power(texts) == Reading(None, reason)
    sensor, text = find_sensor("ipu", "ipu", gc_info=lambda: texts)
    assert (sensor, text) == (None, f"no sensor: {reason}")


LINES = st.one_of(
    st.text(max_size=30),
    st.builds(
        "{}: {}".format, st.sampled_from(["total board power", "board serial number", "id"]), st.text(max_size=9)
    ),
    st.builds("total board power: {} W".format, st.one_of(st.floats(), st.integers())),
)


@given(st.lists(st.lists(LINES, max_size=8).map("\n".join), max_size=4))
def test_any_output_of_gc_info_is_a_power_or_a_reason(texts: list[str]) -> None:
    assert_watts_or_reason(energy.sum_board_power(texts))


def rack(*serials: str) -> Callable[[str], str]:
    """Return a fake gc-info of a machine with an IPU on each of these boards."""

    def query(number: str) -> str:
        if int(number) >= len(serials):
            raise RunnerError("gc-info ended with status 1")
        return c2(int(number), serial=serials[int(number)])

    return query


def test_ipu_of_a_single_board_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of several boards it is unknown which one measures."""
    assert energy.find_source(rack("x", "x"))() == [c2(0, serial="x")]
    assert energy.find_source(lambda number: c2(0) if number == "0" else "no such device")() == [c2(0)]
    assert energy.find_source(lambda _: c2(0))() == [c2(0)]
    with pytest.raises(RunnerError, match="IPUs of several boards"):
        energy.find_source(rack("x", "x", "y", "y"))
    with pytest.raises(RunnerError, match="status 1"):
        energy.find_source(rack())
    sensor, text = find_sensor("ipu", "ipu", gc_info=lambda: [c2(0), c2(1)])
    assert sensor is not None
    assert (sensor.scope, sensor.name, text) == ("board", "gc-info", "gc-info")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = "no sensor: gc-info could not be started: No such file or directory"
    assert find_sensor("ipu", "ipu") == (None, missing)


# --- sampling


class Script:
    """Readings by script, the last one again and again, and a wait until enough have been taken."""

    def __init__(self, *readings: Reading | Exception) -> None:
        self._readings, self._taken = readings, 0
        self._more = threading.Condition()

    def __call__(self) -> Reading:
        with self._more:
            reading = self._readings[min(self._taken, len(self._readings) - 1)]
            self._taken += 1
            self._more.notify_all()
        if isinstance(reading, Exception):
            raise reading
        return reading

    def wait(self, more: int) -> None:
        with self._more:
            enough = self._taken + more
            assert self._more.wait_for(lambda: self._taken >= enough, timeout=30)


def sample(script: Script, min_window_s: float = 0.0) -> SampledSensor:
    return SampledSensor(script, scope="wall", name="a script", interval_s=0.002, min_window_s=min_window_s)


def test_sampled_power_is_the_mean_of_its_readings() -> None:
    script = Script(Reading(10.0, None), Reading(20.0, None), Reading(15.0, None))
    sensor = sample(script)
    sensor.start()
    script.wait(4)
    assert sensor.stop() == pytest.approx(15.0)
    assert sensor.reason is None


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Reading(None, "no number"), "readings failed: no number"),
        (RunnerError("it hangs"), "readings failed: it hangs"),
        (KeyError(), "readings failed: KeyError"),
    ],
)
def test_bad_reading_voids_its_window_and_not_the_next(bad: Reading | Exception, reason: str) -> None:
    script = Script(Reading(10.0, None), bad, Reading(20.0, None))
    sensor = sample(script)
    sensor.start()
    script.wait(3)
    assert sensor.stop() is None
    assert str(sensor.reason).endswith(reason)
    sensor.start()
    script.wait(2)
    assert (sensor.stop(), sensor.reason) == (20.0, None)


def test_short_or_empty_window_has_no_mean() -> None:
    script = Script(Reading(10.0, None))
    sensor = sample(script, min_window_s=3600)
    sensor.start()
    script.wait(1)
    assert sensor.stop() is None
    assert str(sensor.reason).endswith("is shorter than 3600 s")
    sensor = SampledSensor(script, scope="wall", name="slow", interval_s=3600, min_window_s=0)
    sensor.start()
    assert (sensor.stop(), sensor.reason) == (None, "there was no reading within the window")


@given(st.lists(st.one_of(st.floats(), st.floats(0.1, 500)), min_size=1))
def test_mean_is_between_its_readings_or_none(values: list[float]) -> None:
    reading = meter.average_readings([meter.check_watts(value, "a meter") for value in values])
    assert_watts_or_reason(reading)
    assert (reading.watts is not None) == all(0 < value <= meter.MAX_W for value in values)
    if reading.watts is not None:
        assert min(values) * (1 - 1e-12) <= reading.watts <= max(values) * (1 + 1e-12)


# --- the power command

PROGRAM = Path(sys.executable).name


@pytest.mark.parametrize(("text", "watts"), [("12", 12.0), (" 240.5\n", 240.5), ("1.5e2\r\n", 150.0)])
def test_power_command_prints_one_number(text: str, watts: float) -> None:
    assert meter.parse_watts(text) == Reading(watts, None)


@pytest.mark.parametrize("text", ["", "0", "-5", "nan", "1e999", "2e6", "12 W", "12\n13", "1_0", "0x10", "१२", "5,5"])
def test_other_output_is_not_a_power(text: str) -> None:
    assert meter.parse_watts(text).watts is None


@given(st.text())
def test_any_output_of_a_power_command_is_a_power_or_a_reason(text: str) -> None:
    assert_watts_or_reason(meter.parse_watts(text))


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


OPEN = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print(5)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "timeout_s", "reason"),
    [
        (python("import time; time.sleep(60)"), 0.5, "{} did not answer within 0.5 s"),
        (python(OPEN), 1, "{} did not answer within 1 s"),  # its child keeps the output open
        (python("raise SystemExit(3)"), 60, "{} ended with status 3"),
        (python("while True: print('9' * 1000)"), 60, "{} printed more than 65536 bytes"),
        (["no-such-meter", "-a"], 60, "no-such-meter could not be started: No such file or directory"),
        (["no\0meter"], 60, "no\0meter could not be started: not a command"),
    ],
)
def test_command_without_an_answer_is_an_error(argv: list[str], timeout_s: float, reason: str) -> None:
    with pytest.raises(RunnerError) as caught:
        meter.run_command(argv, timeout_s)
    assert caught.value.message == reason.format(PROGRAM)


def run_once(sensor: SampledSensor) -> float | None:
    """Return the power of a window that ends after the first reading."""
    taken = threading.Event()
    read = sensor._read

    def watch() -> Reading:
        try:
            return read()
        finally:
            taken.set()

    sensor._read, sensor.min_window_s = watch, 0.0
    sensor.start()
    assert taken.wait(60)
    return sensor.stop()


def test_wall_meter_runs_its_command_without_a_shell(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'print(230.25)' ; touch {tmp_path / 'made'}"
    sensor = meter.open_wall_meter(command, timeout_s=60, interval_s=0.01)
    assert (sensor.scope, sensor.name) == ("wall", f"power command {PROGRAM}")
    assert run_once(sensor) == 230.25
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print(12, 13)", "the power command printed no single number of watts"),
        ("print(0)", "the power command gave 0 W"),
        ("1 / 0", "ended with status 1"),
    ],
)
def test_bad_power_command_has_a_reason(code: str, reason: str) -> None:
    sensor = meter.open_wall_meter(f"{sys.executable} -c '{code}'", timeout_s=60, interval_s=0.01)
    assert run_once(sensor) is None
    assert str(sensor.reason).endswith(reason)


@pytest.mark.parametrize("command", ["", "''", "meter 'open"])
def test_unusable_command_is_refused(command: str) -> None:
    with pytest.raises(RunnerError, match="the power command"):
        find_sensor("cpu", "cpu", command)


@pytest.mark.parametrize("watts", [0.0, math.nan, math.inf])
def test_declared_power_is_above_0(watts: float) -> None:
    with pytest.raises(RunnerError, match="must be a number of watts above 0"):
        find_sensor("cpu", "cpu", declared=watts)


# --- RAPL


class FakePowercap:
    """A sysfs with packages whose counters wrap around at `span` microjoules."""

    def __init__(self, root: Path, span: int = 1_000_000) -> None:
        self.root, self.span = root, span

    def write(self, folder: str, name: str, energy_uj: int = 0) -> None:
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        for file, value in {"name": name, "max_energy_range_uj": self.span, "energy_uj": energy_uj % self.span}.items():
            (path / ".new").write_text(f"{value}\n", encoding="ascii")
            os.replace(path / ".new", path / file)  # a thread may be reading: it never meets an empty file


@pytest.fixture
def powercap(tmp_path: Path) -> FakePowercap:
    fake = FakePowercap(tmp_path / "powercap")
    fake.write("intel-rapl:0", "package-0", 900_000)
    fake.write("intel-rapl:1", "package-1", 100_000)
    for part, name in (("intel-rapl:0:0", "core"), ("intel-rapl:2", "psys"), ("intel-rapl-mmio:0", "package-0")):
        fake.write(part, name, 5)
    return fake


def test_whole_packages_add_up_over_wrap_arounds(powercap: FakePowercap) -> None:
    sensor = RaplSensor(powercap.root, clock=tick(0.0, 2.0, 2.0, 12.0))
    assert (sensor.scope, sensor.name) == ("package", "RAPL, 2 packages")
    assert (sensor.stop(), sensor.reason) == (None, "the sensor was not started")
    sensor.start()
    powercap.write("intel-rapl:0", "package-0", 1_500_000)
    powercap.write("intel-rapl:1", "package-1", 300_000)
    for part, name in (("intel-rapl:0:0", "core"), ("intel-rapl:2", "psys"), ("intel-rapl-mmio:0", "package-0")):
        powercap.write(part, name, 999_999)
    assert sensor.stop() == pytest.approx((0.6 + 0.2) / 2)
    sensor.start()
    for total in (2_300_000, 3_100_000, 3_900_000):  # readings in between keep count of each wrap-around
        powercap.write("intel-rapl:0", "package-0", total)
        sensor.poll()
    assert sensor.stop() == pytest.approx(2.4 / 10)
    assert sensor.reason is None


def test_thread_reads_along(powercap: FakePowercap, monkeypatch: pytest.MonkeyPatch) -> None:
    sensor = RaplSensor(powercap.root, poll_s=0.002, clock=tick(0.0, 10.0))
    read, reads, enough = sensor._read_counters, [], threading.Event()

    def count() -> list[int]:
        reads.append(1)
        if len(reads) > 3:
            enough.set()
        return read()

    monkeypatch.setattr(sensor, "_read_counters", count)
    sensor.start()
    assert enough.wait(30)
    powercap.write("intel-rapl:1", "package-1", 600_000)
    assert sensor.stop() == pytest.approx(0.5 / 10)


@given(st.integers(1, 10**12), st.data())
def test_no_energy_is_lost_or_counted_twice_over_wraps(span: int, data: st.DataObject) -> None:
    totals = [data.draw(st.integers(0, span - 1))]
    steps = data.draw(st.lists(st.integers(0, span - 1), max_size=20))
    for step in steps:
        totals.append(totals[-1] + step)
    assert [energy.count_spent(first % span, last % span, span) for first, last in pairwise(totals)] == steps


def test_counter_that_goes_back_voids_its_window_and_not_the_next(powercap: FakePowercap) -> None:
    (powercap.root / "intel-rapl:1" / "max_energy_range_uj").write_text("0\n", encoding="ascii")
    counter = powercap.root / "intel-rapl:1" / "energy_uj"
    sensor = RaplSensor(powercap.root, clock=tick(0.0, 2.0, 2.0, 4.0))
    sensor.start()
    counter.write_text("50\n", encoding="ascii")
    assert sensor.stop() is None
    assert "went back from 100000 to 50" in str(sensor.reason)
    sensor.start()
    counter.write_text("1000050\n", encoding="ascii")
    assert sensor.stop() == pytest.approx(0.5)
    assert sensor.reason is None


def test_window_without_energy_time_or_counter_has_a_reason(powercap: FakePowercap) -> None:
    sensor = RaplSensor(powercap.root, clock=tick(0.0, 2.0, 2.0, 2.5, 3.0, 5.0, 5.0, 7.0))
    sensor.start()
    assert (sensor.stop(), sensor.reason) == (None, "RAPL gave 0 W")
    sensor.start()
    powercap.write("intel-rapl:1", "package-1", 600_000)
    assert (sensor.stop(), sensor.reason) == (None, "the window of 0.5 s is shorter than 1 s")
    sensor.start()
    (powercap.root / "intel-rapl:1" / "energy_uj").unlink()
    assert (sensor.stop(), sensor.reason) == (None, "RAPL's energy_uj cannot be read")
    sensor.start()
    assert (sensor.stop(), sensor.reason) == (None, "RAPL's energy_uj cannot be read")


def test_cpu_has_rapl_or_a_reason(powercap: FakePowercap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sensor, text = find_sensor("cpu", "cpu", powercap=powercap.root)
    assert isinstance(sensor, RaplSensor)
    assert text == "RAPL, 2 packages"
    assert find_sensor("cpu", "cpu", powercap=tmp_path / "absent") == (None, "no sensor: no RAPL counter")
    read = Path.read_text

    def guard(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", guard)
    denied = "no sensor: permission denied on RAPL's energy_uj"
    assert find_sensor("cpu", "cpu", powercap=powercap.root) == (None, denied)


# --- NVML


class NVMLError(Exception):
    pass


class FakeNvml(SimpleNamespace):
    """As much of pynvml as is used: two GPUs, their energy in millijoules."""

    NVMLError = NVMLError

    def __init__(self, names: tuple[str, ...] = ("NVIDIA H200", "NVIDIA H200"), mig: int | None = 0) -> None:
        super().__init__(names=names, mig=mig, energy={0: 10_000, 1: 70_000}, users=0, failing=set())

    def fail_if(self, name: str) -> None:
        if name in self.failing:
            raise NVMLError("Not Supported")

    def nvmlInit(self) -> None:
        self.fail_if("init")
        self.users += 1

    def nvmlShutdown(self) -> None:
        self.users -= 1
        self.fail_if("shutdown")

    def nvmlDeviceGetCount(self) -> int:
        return len(self.names)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index >= len(self.names):
            raise NVMLError("Invalid Argument")
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        return {"GPU-aa": 0, "GPU-bb": 1}[uuid]

    def nvmlDeviceGetName(self, handle: int) -> str:
        return str(self.names[handle])

    def nvmlDeviceGetMigMode(self, _handle: int) -> list[int]:
        if self.mig is None:
            raise NVMLError("Not Supported")
        return [self.mig, self.mig]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        self.fail_if("energy")
        return int(self.energy[handle])


@pytest.fixture(autouse=True)
def _no_cuda_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)


def test_millijoules_over_the_window_are_watts() -> None:
    nvml = FakeNvml()
    sensor = NvmlSensor("cuda:1", nvml, clock=tick(100.0, 105.0))
    assert (sensor.scope, sensor.name, sensor.min_window_s) == ("device", "NVML energy counter, NVIDIA H200", 5.0)
    sensor.start()
    nvml.energy[0] += 999_999
    nvml.energy[1] += 1_500_000
    assert sensor.stop() == pytest.approx(300.0)
    sensor.close()
    sensor.close()
    assert nvml.users == 0


@pytest.mark.parametrize(
    ("change", "seconds", "reason"),
    [
        (1_000, 4.9, "the window of 4.9 s is shorter than 5 s"),
        (0, 5.0, "NVML gave 0 W"),
        (-10_000, 5.0, "NVML gave -2 W"),
    ],
)
def test_window_that_nvml_cannot_resolve_has_a_reason(change: int, seconds: float, reason: str) -> None:
    nvml = FakeNvml()
    sensor = NvmlSensor("cuda:0", nvml, clock=tick(0.0, seconds))
    sensor.start()
    nvml.energy[0] += change
    assert (sensor.stop(), sensor.reason) == (None, reason)


def test_counter_that_fails_during_the_window_has_a_reason() -> None:
    nvml = FakeNvml()
    sensor = NvmlSensor("cuda:0", nvml, clock=tick(0.0, 5.0, 10.0))
    failed = (None, "the energy counter of NVML: not supported")
    nvml.failing.add("energy")
    sensor.start()
    assert (sensor.stop(), sensor.reason) == failed
    nvml.failing.clear()
    sensor.start()
    nvml.failing.add("energy")
    assert (sensor.stop(), sensor.reason) == failed


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        ({"energy"}, "the energy counter of NVML: not supported"),
        ({"energy", "shutdown"}, "the energy counter of NVML: not supported"),
        ({"init"}, "no NVML: not supported"),
    ],
)
def test_gpu_without_a_counter_has_no_sensor(failing: set[str], reason: str) -> None:
    nvml = FakeNvml()
    nvml.failing = failing
    assert find_sensor("gpu", "cuda:0", nvml=nvml) == (None, f"no sensor: {reason}")
    assert nvml.users == 0


def test_missing_package_divided_and_missing_gpu_have_no_sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(mig=1)
    sensor, text = find_sensor("gpu", "cuda:0", nvml=nvml)
    assert sensor is None
    assert "divided (MIG)" in text
    assert nvml.users == 0
    assert find_sensor("gpu", "cuda:0", nvml=FakeNvml(mig=None))[0] is not None
    assert find_sensor("gpu", "cuda:7", nvml=FakeNvml()) == (None, "no sensor: no GPU in NVML: invalid argument")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find_sensor("gpu", "cuda:0") == (None, "no sensor: no NVML: nvidia-ml-py is not installed")


@pytest.mark.parametrize(("device", "number"), [("cuda", 0), ("cuda:1", 1), ("tensorrt:2", 2)])
def test_number_of_a_gpu_is_in_its_name(device: str, number: int) -> None:
    assert energy.parse_number(device) == number


@pytest.mark.parametrize("device", ["GPU", "GPU.0", "migraphx:0", "coreml"])
def test_gpu_of_another_maker_is_not_read_by_nvml(device: str) -> None:
    text = f"no sensor: {device} is not the name of an NVIDIA GPU, and NVML reads no other"
    assert find_sensor("gpu", device, nvml=FakeNvml()) == (None, text)


@pytest.mark.parametrize(
    ("visible", "number", "handle"), [(None, 1, 1), ("1", 0, 1), ("1,0", 1, 0), ("GPU-bb, GPU-aa", 0, 1)]
)
def test_gpu_is_numbered_as_cuda_sees_it(visible: str | None, number: int, handle: int) -> None:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert energy.find_handle(FakeNvml(), number, environ) == handle


@pytest.mark.parametrize("visible", ["", "0", "MIG-aa,MIG-bb"])
def test_hidden_gpu_has_no_sensor(visible: str) -> None:
    with pytest.raises(RunnerError, match="CUDA_VISIBLE_DEVICES"):
        energy.find_handle(FakeNvml(), 1, {"CUDA_VISIBLE_DEVICES": visible})


def test_gpus_of_several_models_need_one_order() -> None:
    nvml = FakeNvml(names=("NVIDIA T4", "NVIDIA H200"))
    with pytest.raises(RunnerError, match="CUDA_DEVICE_ORDER"):
        energy.find_handle(nvml, 0, {})
    assert energy.find_handle(nvml, 1, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == 1


# --- which sensor


def test_declared_power_comes_before_a_command_and_that_before_the_device(powercap: FakePowercap) -> None:
    sensor, text = find_sensor("cpu", "cpu", "meter --watts", 75, powercap=powercap.root)
    assert sensor is not None
    sensor.start()
    assert (sensor.scope, sensor.stop(), sensor.reason, text) == ("declared", 75, None, "declared 75 W")
    sensor, text = find_sensor("cpu", "cpu", "/opt/bin/meter --host here", powercap=powercap.root)
    assert sensor is not None
    assert (sensor.scope, text) == ("wall", "power command meter")


def test_unreal_and_unknown_devices_have_no_sensor() -> None:
    for kind in ("emulated", "simulated"):
        sensor, text = find_sensor(kind, "c2", "meter", 75)
        assert sensor is None
        assert text.startswith(f"no sensor: the device is {kind}")
    assert find_sensor("tpu", "tpu:0") == (None, "no sensor: none is known for a device of kind tpu")
