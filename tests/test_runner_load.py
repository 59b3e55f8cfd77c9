"""What else the machine does: the probe, the shares of the CPU, and other sweeps at the same time."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import DamagedRunError
from ipu_results.runner import companions, load
from ipu_results.runner.companions import announced
from ipu_results.runner.load import Load, LoadWatch, Probe, Usage

ROOT = Path(__file__).resolve().parent.parent

# The probe


def test_a_probe_is_the_time_of_one_fixed_computation() -> None:
    times = iter([1_000_000, 6_500_000])
    assert Probe(clock=lambda: next(times)).run() == 5.5


def test_the_computation_is_the_generator_of_numerical_recipes() -> None:
    assert [load.compute(steps) for steps in range(4)] == [1, 1015568748, 1586005467, 2165703038]


def test_a_probe_takes_time() -> None:
    assert Probe(steps=1000).run() > 0


# Shares of the CPU

Linux = namedtuple("Linux", "user nice system idle iowait irq softirq steal guest guest_nice")
Other = namedtuple("Other", "user system idle")


def test_the_guests_time_counts_once_and_waiting_is_not_busy() -> None:
    found = load.usage(lambda: Linux(10, 1, 5, 70, 9, 1, 2, 2, 4, 1), lambda: 3.0)
    assert found == Usage(total=100, busy=19, steal=2, own=3.0)


def test_a_system_that_does_not_tell_of_steal() -> None:
    assert load.usage(lambda: Other(10, 5, 85), lambda: 3.0) == Usage(total=100, busy=15, steal=None, own=3.0)


def test_the_shares_of_a_window() -> None:
    looks = iter([Usage(1000, 400, 10, 300), Usage(1008, 405, 11, 303), Usage(1010, 406, 11, 303)])
    watch = LoadWatch(lambda: next(looks))
    watch.start()
    assert watch.stop() == Load(foreign_cpu=2 / 8, steal=1 / 8)
    assert watch.stop() == Load(foreign_cpu=3 / 10, steal=1 / 10)


def test_without_steal_or_without_a_window_there_is_no_share() -> None:
    assert load.between(Usage(0, 0, None, 0), Usage(8, 4, None, 4)) == Load(0.0, None)
    assert load.between(Usage(8, 4, 1, 4), Usage(8, 4, 1, 4)) == Load(None, None)
    assert LoadWatch().stop() == Load(None, None)


SECONDS = st.floats(0, 1e9)
USAGES = st.builds(Usage, SECONDS, SECONDS, st.one_of(st.none(), SECONDS), SECONDS)


@given(USAGES, USAGES)
def test_a_share_is_between_0_and_1(earlier: Usage, later: Usage) -> None:
    for share in load.between(earlier, later):
        assert share is None or 0 <= share <= 1


def test_this_machine_has_shares() -> None:
    watch = LoadWatch()
    watch.start()
    while watch.stop().foreign_cpu is None:
        load.compute(10_000)
    foreign, steal = watch.stop()
    assert foreign is not None
    assert 0 <= foreign <= 1
    assert (steal is not None) == hasattr(psutil.cpu_times(), "steal")


TICK_S = 0.01
BURN = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); sys.stdin.read()"


def test_a_child_counts_while_it_lives_and_after_it_has_ended() -> None:
    before = load.own_seconds()
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = load.own_seconds()
        child.communicate()
    assert alive >= before + 0.25
    if sys.platform == "linux":
        assert load.own_seconds() > alive - TICK_S


class Gone:
    """A process that ends between being listed and being asked."""

    def __init__(self, *children: Gone, seconds: float | None = None) -> None:
        self._children, self._seconds = children, seconds

    def children(self, recursive: bool) -> list[Gone]:
        assert recursive
        if self._seconds is None:
            raise psutil.NoSuchProcess(1)
        return list(self._children)

    def cpu_times(self) -> Any:
        if self._seconds is None:
            raise psutil.NoSuchProcess(1)
        times = namedtuple("times", "user system children_user children_system")
        return times(self._seconds, 0.5, 0.25, 0.25)


def test_a_child_that_has_gone_is_left_out() -> None:
    family: Any = Gone(Gone(), Gone(seconds=2.0), seconds=1.0)
    assert load.own_seconds(family) == 5.0
    gone: Any = Gone()
    assert load.own_seconds(gone) == 0.0


# Other sweeps on this machine

SWEEP = """
import sys
from ipu_results.runner.companions import announced
with announced(sys.argv[1]) as companions:
    print(*companions.others(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(companions.VARIABLE, str(tmp_path / "locks"))
    return tmp_path / "locks"


@contextmanager
def sweep(run_id: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A sweep in a process of its own, and the others that it sees."""
    process = subprocess.Popen(
        [sys.executable, "-c", SWEEP, run_id], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()
        finally:
            process.kill()


def test_two_sweeps_see_each_other_until_one_ends(locks: Path) -> None:
    with announced("20261121-134501-a") as ours:
        assert ours.reason is None
        assert ours.others() == []
        with sweep("20261121-134502-b") as (process, seen):
            assert seen == ["20261121-134501-a"]
            assert ours.others() == ["20261121-134502-b"]
            process.communicate()
            assert process.returncode == 0
            assert ours.others() == []
        assert [path.name for path in locks.iterdir()] == ["20261121-134501-a.lock"]
    assert list(locks.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_killed_sweep_is_forgotten_and_its_file_removed(locks: Path) -> None:
    with announced("a") as ours, sweep("b") as (process, _):
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert (locks / "b.lock").exists()
        assert ours.others() == []
        assert not (locks / "b.lock").exists()


def test_a_file_that_nobody_holds_is_a_dead_sweeps(locks: Path) -> None:
    locks.mkdir()
    (locks / "dead.lock").touch()
    (locks / "notes.txt").touch()
    with announced("a") as ours:
        assert ours.others() == []
        assert sorted(path.name for path in locks.iterdir()) == ["a.lock", "notes.txt"]


def test_the_name_of_a_dead_sweep_can_be_taken_again(locks: Path) -> None:
    locks.mkdir()
    (locks / "a.lock").touch()
    with announced("a"), sweep("b") as (_, seen):
        assert seen == ["a"]


def test_one_run_is_measured_by_one_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(companions, "ANNOUNCE_S", 0.0)
    with (
        sweep("a"),
        pytest.raises(DamagedRunError, match="a: another sweep is at it"),
        announced("a"),
    ):
        pytest.fail("two sweeps of one run")


def test_several_others_are_in_order() -> None:
    with announced("b") as ours, sweep("c"), sweep("a"):
        assert ours.others() == ["a", "c"]


def test_other_users_can_look(locks: Path) -> None:
    with announced("a"):
        if os.name == "posix":
            assert (locks / "a.lock").stat().st_mode & 0o777 == 0o666
            assert locks.stat().st_mode & 0o7777 == 0o1777


def test_a_dead_sweeps_file_that_is_not_ours_to_remove_stays(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locks.mkdir()
    (locks / "dead.lock").touch()

    def refuse(_path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EPERM, f"not permitted ({missing_ok})")

    with announced("a") as ours:
        monkeypatch.setattr(Path, "unlink", refuse)
        assert ours.others() == []
        assert (locks / "dead.lock").exists()


def test_a_folder_that_cannot_be_used_stops_no_sweep(locks: Path) -> None:
    locks.write_text("a file", encoding="ascii")
    with announced("a") as ours:
        assert ours.others() == []
        assert ours.reason is not None
        assert ours.reason.startswith("the folder of the locks cannot be used: ")
        assert str(locks) not in ours.reason


def test_an_error_in_the_sweep_passes_and_the_file_goes(locks: Path) -> None:
    with pytest.raises(OSError, match="disk full"), announced("a"):
        raise OSError("disk full")
    assert list(locks.iterdir()) == []


def test_the_folder_is_below_the_temporary_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(companions.VARIABLE)
    monkeypatch.setattr(companions.tempfile, "tempdir", str(tmp_path))
    assert companions.folder() == tmp_path / "ipu-results-sweeps"


def test_a_lock_of_another_handle_in_this_process_counts(locks: Path) -> None:
    locks.mkdir()
    with announced("a") as ours, FileLock(locks / "z.lock"):
        assert ours.others() == ["z"]
