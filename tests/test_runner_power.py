"""Power: sensors by their own formats, on fakes of the machine. No figure unless it was read."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import RunnerError
from ipu_results.runner import power
from ipu_results.runner.power import gcinfo, meter, nvml, rapl
from ipu_results.runner.power.meter import Reading, Sampled

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


def ticking(*times: float) -> Callable[[], float]:
    """A clock that shows these seconds, one after the other."""
    shown = iter(times)
    return lambda: next(shown)


# gc-info


def test_a_board_with_two_ipus_counts_once() -> None:
    assert gcinfo.board_power([c2(0), c2(1)]) == Reading(99.5, None)


def test_both_ipus_in_one_text_are_still_one_board() -> None:
    assert gcinfo.board_power([c2(0) + c2(1)]) == Reading(99.5, None)


def test_two_boards_add_up() -> None:
    texts = [c2(0), c2(1), c2(2, "110.25 W", "0024.0002.8203322"), c2(3, "110.25 W", "0024.0002.8203322")]
    assert gcinfo.board_power(texts) == Reading(209.75, None)


def test_two_readings_of_one_board_are_averaged() -> None:
    assert gcinfo.board_power([c2(0, "99.0 W"), c2(1, "100.0 W")]) == Reading(99.5, None)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ([], "gc-info gave no device"),
        ([""], "gc-info gave no board serial number"),
        ([c2(0, "N/A")], "gc-info gave no total board power"),
        ([c2(0, "")], "gc-info gave no total board power"),
        ([c2(0), c2(1, "N/A")], "gc-info gave no total board power"),
        ([c2(0, "99.5")], "gc-info's total board power is not in watts"),
        ([c2(0, "99500 mW")], "gc-info's total board power is not in watts"),
        ([c2(0, "-3.0 W")], "gc-info's total board power is not in watts"),
        ([c2(0, "0.0 W")], "gc-info gave 0 W"),
        ([c2(0, "9" * 400 + " W")], "gc-info gave inf W"),
        ([c2(0, serial="N/A")], "gc-info gave no board serial number"),
        (["| 0 | C2 | 99.5W |"], "gc-info gave no board serial number"),
    ],
)
def test_gc_info_without_a_power_says_why(texts: list[str], reason: str) -> None:
    assert gcinfo.board_power(texts) == Reading(None, reason)


LINES = st.one_of(
    st.text(max_size=30),
    st.builds(
        "{}: {}".format, st.sampled_from(["total board power", "board serial number", "id"]), st.text(max_size=9)
    ),
    st.builds("total board power: {} W".format, st.one_of(st.floats(), st.integers())),
)


@given(st.lists(st.lists(LINES, max_size=8).map("\n".join), max_size=4))
def test_whatever_gc_info_prints_it_is_a_power_above_0_or_a_reason(texts: list[str]) -> None:
    watts, reason = gcinfo.board_power(texts)
    assert (watts is None) != (reason is None)
    assert watts is None or (math.isfinite(watts) and watts > 0)


@given(st.lists(st.floats(0.1, 500).map(lambda watts: round(watts, 1)), min_size=1, max_size=5), st.integers(1, 4))
def test_the_sum_over_boards_does_not_depend_on_the_ipus_of_each(boards: list[float], ipus: int) -> None:
    texts = [c2(0, f"{watts} W", f"serial-{number}") for number, watts in enumerate(boards) for _ in range(ipus)]
    assert gcinfo.board_power(texts).watts == pytest.approx(sum(boards))


@pytest.mark.parametrize(
    ("device", "numbers"), [("ipu", []), ("ipu:3", ["3"]), ("ipu:0,1", ["0", "1"]), ("ipu2", ["2"]), ("c2:4", ["4"])]
)
def test_the_ids_are_those_in_the_name_of_the_device(device: str, numbers: list[str]) -> None:
    assert gcinfo.device_ids(device) == numbers


def test_gc_info_is_asked_of_each_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gcinfo, "answer", " ".join)
    assert gcinfo.source("ipu:0,1")() == ["gc-info -i -d 0", "gc-info -i -d 1"]


def rack(*serials: str) -> Callable[[str], str]:
    """What a machine with an IPU on each of these boards prints of one of them."""

    def ask(number: str) -> str:
        if int(number) >= len(serials):
            raise RunnerError("gc-info ended with status 1")
        return c2(int(number), serial=serials[int(number)])

    return ask


def test_a_name_without_an_id_will_do_where_there_is_one_board() -> None:
    assert gcinfo.source("ipu", rack("x", "x"))() == [c2(0, serial="x")]
    assert gcinfo.source("ipu", lambda number: c2(0) if number == "0" else "no such device")() == [c2(0)]
    assert gcinfo.source("ipu", lambda _: c2(0))() == [c2(0)]


def test_a_name_without_an_id_will_not_do_where_there_are_two_boards() -> None:
    with pytest.raises(RunnerError, match="IPUs of several boards"):
        gcinfo.source("ipu", rack("x", "x", "y", "y"))
    assert gcinfo.source("ipu:2", rack("x", "x", "y", "y"))() == [c2(2, serial="y")]


def test_a_machine_whose_gc_info_fails_has_no_sensor() -> None:
    with pytest.raises(RunnerError, match="status 1"):
        gcinfo.source("ipu", rack())


def test_an_ipu_has_its_board_for_a_sensor() -> None:
    sensor, text = power.find("ipu", "ipu:0,1", gc_info=lambda: [c2(0), c2(1)])
    assert sensor is not None
    assert (sensor.scope, sensor.name, text) == ("board", "gc-info", "gc-info")


def test_an_ipu_without_gc_info_has_no_sensor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sensor, text = power.find("ipu", "ipu:0")
    assert sensor is None
    assert text == "no sensor: gc-info could not be started: No such file or directory"


def test_an_ipu_whose_board_gives_no_power_has_no_sensor() -> None:
    assert power.find("ipu", "ipu:0", gc_info=lambda: [c2(0, "N/A")]) == (
        None,
        "no sensor: gc-info gave no total board power",
    )


# Sampling


class Script:
    """Readings by script, the last one again and again, and a wait until enough have been taken."""

    def __init__(self, *readings: Reading | Exception) -> None:
        self._readings, self._taken = readings, 0
        self._more = threading.Condition()

    def __call__(self) -> Reading:
        with self._more:
            found = self._readings[min(self._taken, len(self._readings) - 1)]
            self._taken += 1
            self._more.notify_all()
        if isinstance(found, Exception):
            raise found
        return found

    def wait(self, taken: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: self._taken >= taken, timeout=30)


def sampled(script: Script, min_window_s: float = 0.0) -> Sampled:
    return Sampled(script, scope="wall", name="a script", interval_s=0.002, min_window_s=min_window_s)


def test_the_mean_of_the_readings_in_the_window() -> None:
    script = Script(Reading(10.0, None), Reading(20.0, None), Reading(15.0, None))
    sensor = sampled(script)
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
def test_one_bad_reading_voids_its_window_and_not_the_next(bad: Reading | Exception, reason: str) -> None:
    script = Script(Reading(10.0, None), bad, Reading(20.0, None))
    sensor = sampled(script)
    sensor.start()
    script.wait(3)
    assert sensor.stop() is None
    assert str(sensor.reason).endswith(reason)
    sensor.start()
    script.wait(script._taken + 2)
    assert sensor.stop() == 20.0
    assert sensor.reason is None


def test_a_window_below_the_least_gives_no_mean() -> None:
    script = Script(Reading(10.0, None))
    sensor = sampled(script, min_window_s=3600)
    sensor.start()
    script.wait(1)
    assert sensor.stop() is None
    assert str(sensor.reason).endswith("is shorter than 3600 s")


def test_a_window_without_a_reading_gives_none() -> None:
    sensor = Sampled(Script(Reading(1.0, None)), scope="wall", name="slow", interval_s=3600, min_window_s=0)
    sensor.start()
    assert sensor.stop() is None
    assert sensor.reason == "there was no reading within the window"


def test_close_ends_the_thread() -> None:
    sensor = sampled(Script(Reading(1.0, None)))
    sensor.start()
    assert sensor._poller is not None
    thread = sensor._poller._thread
    assert thread.is_alive()
    sensor.close()
    assert not thread.is_alive()
    sensor.close()


@given(st.lists(st.one_of(st.floats(), st.floats(0.1, 500)), min_size=1))
def test_a_mean_is_above_0_or_none(values: list[float]) -> None:
    watts, reason = meter.mean([meter.reading(value, "a meter") for value in values])
    assert (watts is None) != (reason is None)
    assert watts is None or min(values) * (1 - 1e-12) <= watts <= max(values) * (1 + 1e-12)
    assert (watts is not None) == all(0 < value <= meter.MOST_W for value in values)


# The power command


@pytest.mark.parametrize(("text", "watts"), [("12", 12.0), (" 240.5\n", 240.5), ("1.5e2\r\n", 150.0)])
def test_a_power_command_prints_one_number(text: str, watts: float) -> None:
    assert meter.parse_watts(text) == Reading(watts, None)


@pytest.mark.parametrize(
    "text",
    ["", "0", "-5", "nan", "inf", "1e999", "2e6", "12 W", "12 13", "12\n13", "1_0", "0x10", "१२", "error: 5", "5,5"],
)
def test_anything_else_is_no_power(text: str) -> None:
    found = meter.parse_watts(text)
    assert found.watts is None
    assert found.reason


@given(st.text())
def test_no_output_of_a_power_command_raises_or_gives_0(text: str) -> None:
    watts, reason = meter.parse_watts(text)
    assert (watts is None) != (reason is None)
    assert watts is None or (math.isfinite(watts) and watts > 0)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_what_a_command_prints() -> None:
    assert meter.answer(python("print(41.5)"), 60).strip() == "41.5"


PROGRAM = Path(sys.executable).name


@pytest.mark.parametrize(
    ("argv", "timeout_s", "reason"),
    [
        (python("import time; time.sleep(60)"), 0.5, "{} did not answer within 0.5 s"),
        (python("raise SystemExit(3)"), 60, "{} ended with status 3"),
        (python("while True: print('9' * 1000)"), 60, "{} printed more than 65536 bytes"),
        (["no-such-meter", "-a"], 60, "no-such-meter could not be started: No such file or directory"),
        (["no\0meter"], 60, "no\0meter could not be started: not a command"),
    ],
)
def test_a_command_that_does_not_answer_is_an_error(argv: list[str], timeout_s: float, reason: str) -> None:
    with pytest.raises(RunnerError) as caught:
        meter.answer(argv, timeout_s)
    assert caught.value.message == reason.format(PROGRAM)


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
def test_a_command_that_leaves_its_output_open_does_not_hold_us_up() -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print(5)"
    with pytest.raises(RunnerError, match="did not answer within 1 s"):
        meter.answer(python(code), 1)


def run_once(sensor: Sampled) -> float | None:
    """The first reading that a sensor takes, by its own thread."""
    taken = threading.Event()
    read = sensor._read

    def watched() -> Reading:
        try:
            return read()
        finally:
            taken.set()

    sensor._read, sensor.min_window_s = watched, 0.0
    sensor.start()
    assert taken.wait(60)
    return sensor.stop()


def test_a_wall_meter_by_its_command() -> None:
    sensor = meter.wall_meter(f"{sys.executable} -c 'print(230.25)'", timeout_s=60, interval_s=0.01)
    assert (sensor.scope, sensor.name) == ("wall", f"power command {PROGRAM}")
    assert run_once(sensor) == 230.25


@pytest.mark.parametrize(
    ("code", "timeout_s", "reason"),
    [
        ("import time; time.sleep(60)", 0.5, "did not answer within 0.5 s"),
        ("print(12, 13)", 60, "the power command printed no single number of watts"),
        ("print(0)", 60, "the power command gave 0 W"),
        ("1 / 0", 60, "ended with status 1"),
    ],
)
def test_a_bad_power_command_gives_none_and_the_reason(code: str, timeout_s: float, reason: str) -> None:
    sensor = meter.wall_meter(f"{sys.executable} -c '{code}'", timeout_s=timeout_s, interval_s=0.01)
    assert run_once(sensor) is None
    assert str(sensor.reason).endswith(reason)


def test_no_shell_reads_the_power_command(tmp_path: Path) -> None:
    victim = tmp_path / "made"
    sensor = meter.wall_meter(f"{sys.executable} -c 'print(5)' ; touch {victim}", timeout_s=60, interval_s=0.01)
    assert run_once(sensor) == 5.0
    assert not victim.exists()


@pytest.mark.parametrize("command", ["", "  ", "''", "meter 'open"])
def test_a_command_that_cannot_be_one_is_refused(command: str) -> None:
    with pytest.raises(RunnerError, match="the power command"):
        power.find("cpu", "cpu", command)


@pytest.mark.parametrize("watts", [0.0, -1.0, math.nan, math.inf])
def test_a_declared_power_is_above_0(watts: float) -> None:
    with pytest.raises(RunnerError, match="must be a number of watts above 0"):
        power.find("cpu", "cpu", declared=watts)


# RAPL


class Machine:
    """A sysfs with packages whose counters run below `span` microjoules."""

    def __init__(self, root: Path, span: int = 1_000_000) -> None:
        self.root, self.span = root, span

    def domain(self, folder: str, name: str, energy: int = 0) -> Path:
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        told = {"name": name, "max_energy_range_uj": self.span, "energy_uj": energy % self.span}
        for file, value in told.items():
            (path / ".new").write_text(f"{value}\n", encoding="ascii")
            os.replace(path / ".new", path / file)  # a thread may be reading: it never meets an empty file
        return path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = Machine(tmp_path / "powercap")
    found.domain("intel-rapl:0", "package-0", 900_000)
    found.domain("intel-rapl:1", "package-1", 100_000)
    found.domain("intel-rapl:0:0", "core", 5)
    found.domain("intel-rapl:2", "psys", 5)
    found.domain("intel-rapl-mmio:0", "package-0", 5)
    return found


def test_whole_packages_add_up_over_a_wrap_around(machine: Machine) -> None:
    sensor = rapl.Rapl(machine.root, clock=ticking(0.0, 2.0))
    assert (sensor.scope, sensor.name) == ("package", "RAPL, 2 packages")
    sensor.start()
    machine.domain("intel-rapl:0", "package-0", 1_500_000)
    machine.domain("intel-rapl:1", "package-1", 300_000)
    machine.domain("intel-rapl:0:0", "core", 999_999)
    machine.domain("intel-rapl:2", "psys", 999_999)
    machine.domain("intel-rapl-mmio:0", "package-0", 999_999)
    assert sensor.stop() == pytest.approx((0.6 + 0.2) / 2)
    assert sensor.reason is None


def test_a_reading_in_between_keeps_count_of_each_wrap_around(machine: Machine) -> None:
    sensor = rapl.Rapl(machine.root, clock=ticking(0.0, 10.0))
    sensor.start()
    for energy in (1_700_000, 2_500_000, 3_300_000):
        machine.domain("intel-rapl:0", "package-0", energy)
        sensor.advance()
    assert sensor.stop() == pytest.approx(2.4 / 10)


def test_the_thread_reads_along(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    sensor = rapl.Rapl(machine.root, poll_s=0.002, clock=ticking(0.0, 10.0))
    read, reads, enough = sensor._read, [], threading.Event()

    def counted() -> list[int]:
        reads.append(1)
        if len(reads) > 3:
            enough.set()
        return read()

    monkeypatch.setattr(sensor, "_read", counted)
    sensor.start()
    assert enough.wait(30)
    machine.domain("intel-rapl:1", "package-1", 600_000)
    assert sensor.stop() == pytest.approx(0.5 / 10)


@given(st.integers(1, 10**12), st.data())
def test_no_energy_is_lost_or_counted_twice_over_wraps(span: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, span - 1))
    steps = data.draw(st.lists(st.integers(0, span - 1), max_size=20))
    totals = [start]
    for step in steps:
        totals.append(totals[-1] + step)
    found = [rapl.spent(earlier % span, later % span, span) for earlier, later in pairwise(totals)]
    assert found == steps


@given(st.integers(), st.integers(), st.integers())
def test_what_was_spent_is_never_below_0(earlier: int, later: int, span: int) -> None:
    if later >= earlier or 0 <= later < earlier <= span:
        assert rapl.spent(earlier, later, span) >= 0
        return
    with pytest.raises(RunnerError, match="went back"):
        rapl.spent(earlier, later, span)


def test_a_counter_that_goes_back_beyond_its_range_voids_the_window(machine: Machine) -> None:
    machine.span = 0
    (machine.root / "intel-rapl:1" / "max_energy_range_uj").write_text("0\n", encoding="ascii")
    sensor = rapl.Rapl(machine.root, clock=ticking(0.0, 2.0, 2.0, 4.0))
    sensor.start()
    (machine.root / "intel-rapl:1" / "energy_uj").write_text("50\n", encoding="ascii")
    assert sensor.stop() is None
    assert "went back from 100000 to 50" in str(sensor.reason)
    sensor.start()
    (machine.root / "intel-rapl:1" / "energy_uj").write_text("1000050\n", encoding="ascii")
    assert sensor.stop() == pytest.approx(0.5)
    assert sensor.reason is None


def test_counters_that_stand_still_give_none(machine: Machine) -> None:
    sensor = rapl.Rapl(machine.root, clock=ticking(0.0, 2.0))
    sensor.start()
    assert sensor.stop() is None
    assert sensor.reason == "RAPL gave 0 W"


def test_a_counter_that_vanishes_gives_none(machine: Machine) -> None:
    sensor = rapl.Rapl(machine.root, clock=ticking(0.0, 2.0, 2.0, 4.0))
    sensor.start()
    (machine.root / "intel-rapl:1" / "energy_uj").unlink()
    assert sensor.stop() is None
    assert sensor.reason == "RAPL's energy_uj cannot be read"
    sensor.start()
    assert sensor.stop() is None
    assert sensor.reason == "RAPL's energy_uj cannot be read"


def test_a_short_window_gives_none(machine: Machine) -> None:
    sensor = rapl.Rapl(machine.root, clock=ticking(0.0, 0.5))
    sensor.start()
    machine.domain("intel-rapl:1", "package-1", 600_000)
    assert sensor.stop() is None
    assert sensor.reason == "the window of 0.5 s is shorter than 1 s"


def test_a_machine_without_rapl_has_no_sensor(tmp_path: Path) -> None:
    assert power.find("cpu", "cpu", powercap=tmp_path / "absent") == (None, "no sensor: no RAPL counter")


def test_counters_for_root_only_are_no_sensor(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def guarded(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", guarded)
    assert power.find("cpu", "cpu", powercap=machine.root) == (
        None,
        "no sensor: permission denied on RAPL's energy_uj",
    )


def test_a_cpu_has_rapl_for_a_sensor(machine: Machine) -> None:
    sensor, text = power.find("cpu", "cpu", powercap=machine.root)
    assert isinstance(sensor, rapl.Rapl)
    assert text == "RAPL, 2 packages"


# NVML


class NVMLError(Exception):
    pass


class Library(SimpleNamespace):
    """As much of pynvml as is used: two GPUs, their energy in millijoules."""

    NVMLError = NVMLError

    def __init__(self, names: tuple[str, ...] = ("NVIDIA H200", "NVIDIA H200"), mig: int | None = 0) -> None:
        super().__init__(names=names, mig=mig, energy={0: 10_000, 1: 70_000}, users=0, failing=set())

    def fail(self, name: str) -> None:
        if name in self.failing:
            raise NVMLError("Not Supported")

    def nvmlInit(self) -> None:
        self.fail("init")
        self.users += 1

    def nvmlShutdown(self) -> None:
        self.users -= 1
        self.fail("shutdown")

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
        self.fail("energy")
        return int(self.energy[handle])


@pytest.fixture(autouse=True)
def _no_cuda_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    return None


def test_millijoules_over_the_window_are_watts() -> None:
    library = Library()
    sensor = nvml.Nvml("cuda:1", library, clock=ticking(100.0, 105.0))
    assert (sensor.scope, sensor.name, sensor.min_window_s) == ("device", "NVML energy counter, NVIDIA H200", 5.0)
    sensor.start()
    library.energy[0] += 999_999
    library.energy[1] += 1_500_000
    assert sensor.stop() == pytest.approx(300.0)
    sensor.close()
    sensor.close()
    assert library.users == 0


def test_a_window_that_nvml_cannot_resolve_gives_none() -> None:
    library = Library()
    sensor = nvml.Nvml("cuda:0", library, clock=ticking(0.0, 4.9))
    sensor.start()
    library.energy[0] += 1_000
    assert sensor.stop() is None
    assert sensor.reason == "the window of 4.9 s is shorter than 5 s"


@pytest.mark.parametrize("change", [0, -10_000])
def test_an_energy_counter_that_does_not_move_on_gives_none(change: int) -> None:
    library = Library()
    sensor = nvml.Nvml("cuda:0", library, clock=ticking(0.0, 5.0))
    sensor.start()
    library.energy[0] += change
    assert sensor.stop() is None
    assert str(sensor.reason).startswith("NVML gave ")


def test_a_counter_that_fails_in_between_gives_none() -> None:
    library = Library()
    sensor = nvml.Nvml("cuda:0", library, clock=ticking(0.0, 5.0))
    assert sensor.stop() is None
    assert sensor.reason == "the sensor was not started"
    library.failing.add("energy")
    sensor.start()
    assert sensor.stop() is None
    assert sensor.reason == "the energy counter of NVML: not supported"
    library.failing.clear()
    sensor.start()
    library.failing.add("energy")
    assert sensor.stop() is None
    assert sensor.reason == "the energy counter of NVML: not supported"


@pytest.mark.parametrize("failing", [{"energy"}, {"energy", "shutdown"}])
def test_a_gpu_without_a_counter_has_no_sensor(failing: set[str]) -> None:
    library = Library()
    library.failing = failing
    assert power.find("gpu", "cuda:0", nvml=library) == (None, "no sensor: the energy counter of NVML: not supported")
    assert library.users == 0


def test_no_driver_no_sensor() -> None:
    library = Library()
    library.failing.add("init")
    assert power.find("gpu", "cuda:0", nvml=library) == (None, "no sensor: no NVML: not supported")


def test_no_package_no_sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert power.find("gpu", "cuda:0") == (None, "no sensor: no NVML: nvidia-ml-py is not installed")


def test_a_part_of_a_gpu_has_no_sensor() -> None:
    library = Library(mig=1)
    sensor, text = power.find("gpu", "cuda:0", nvml=library)
    assert sensor is None
    assert "divided (MIG)" in text
    assert library.users == 0
    assert power.find("gpu", "cuda:0", nvml=Library(mig=None))[0] is not None


@pytest.mark.parametrize("device", ["GPU", "GPU.0", "migraphx:0", "rocm", "gpu:0"])
def test_no_other_makers_gpu_is_read_by_nvml(device: str) -> None:
    sensor, text = power.find("gpu", device, nvml=Library())
    assert sensor is None
    assert text == f"no sensor: {device} is not the name of an NVIDIA GPU, and NVML reads no other"


@pytest.mark.parametrize(
    ("device", "number"), [("cuda", 0), ("cuda:1", 1), ("cuda1", 1), ("CUDAExecutionProvider", 0), ("tensorrt:2", 2)]
)
def test_the_number_is_in_the_name_of_the_device(device: str, number: int) -> None:
    assert nvml.index(device) == number


@pytest.mark.parametrize(
    ("visible", "number", "handle"), [(None, 1, 1), ("1", 0, 1), ("1,0", 1, 0), ("GPU-bb, GPU-aa", 0, 1)]
)
def test_cuda_may_see_other_gpus_than_nvml(visible: str | None, number: int, handle: int) -> None:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert nvml.handle(Library(), number, environ) == handle


@pytest.mark.parametrize("visible", ["", "0", "MIG-aa,MIG-bb", "none,none"])
def test_a_gpu_that_cuda_does_not_see_has_no_sensor(visible: str) -> None:
    with pytest.raises(RunnerError, match="CUDA_VISIBLE_DEVICES"):
        nvml.handle(Library(), 1, {"CUDA_VISIBLE_DEVICES": visible})


def test_gpus_of_several_models_need_one_order() -> None:
    library = Library(names=("NVIDIA T4", "NVIDIA H200"))
    with pytest.raises(RunnerError, match="CUDA_DEVICE_ORDER"):
        nvml.handle(library, 0, {})
    assert nvml.handle(library, 1, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == 1


def test_a_gpu_that_is_not_there_has_no_sensor() -> None:
    sensor, text = power.find("gpu", "cuda:7", nvml=Library())
    assert (sensor, text) == (None, "no sensor: no GPU in NVML: invalid argument")


# Which sensor


def test_declared_comes_before_a_command_and_that_before_the_device(machine: Machine) -> None:
    sensor, text = power.find("cpu", "cpu", "meter --watts", 75, powercap=machine.root)
    assert sensor is not None
    sensor.start()
    assert (sensor.scope, sensor.stop(), sensor.reason, text) == ("declared", 75, None, "declared 75 W")
    sensor, text = power.find("cpu", "cpu", "/opt/bin/meter --host here", powercap=machine.root)
    assert sensor is not None
    assert (sensor.scope, text) == ("wall", "power command meter")


@pytest.mark.parametrize("kind", ["emulated", "simulated"])
def test_a_device_that_is_not_there_draws_no_power(kind: str) -> None:
    sensor, text = power.find(kind, "c2", "meter", 75)
    assert sensor is None
    assert text.startswith(f"no sensor: the device is {kind}")


def test_an_unknown_kind_has_no_sensor() -> None:
    assert power.find("tpu", "tpu:0") == (None, "no sensor: none is known for a device of kind tpu")


@pytest.mark.parametrize("kind", ["cpu", "gpu", "ipu"])
def test_this_machine_has_a_sensor_or_a_reason(kind: str) -> None:
    sensor, text = power.find(kind, {"gpu": "cuda:0"}.get(kind, kind))
    assert text.startswith("no sensor: ") == (sensor is None)
    if sensor:
        assert sensor.scope in power.SCOPES
        sensor.close()
