"""The machine around a sweep: the speed probe, the shares of the CPU, and other sweeps at the same
time.
"""

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
from ipu_results.runner import environment
from ipu_results.runner.environment import (
    Load,
    Usage,
    announce_sweep,
    compute_load,
    load_best_probe,
    save_best_probe,
)

from tests.conftest import ROOT

# --- the speed probe


def test_probe_is_the_time_of_a_fixed_computation() -> None:
    times = iter([1_000_000, 6_500_000])
    assert environment.run_probe(clock=lambda: next(times)) == 5.5
    values = [environment.compute_steps(steps) for steps in range(4)]
    assert values == [1, 1015568748, 1586005467, 2165703038], "the generator of Numerical Recipes"


def test_best_probe_is_kept_until_the_machine_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    assert load_best_probe(cache) is None
    for probe in (5.2, 4.9, 5.5):
        save_best_probe(probe, cache)
    assert load_best_probe(cache) == 4.9
    monkeypatch.setattr(psutil, "boot_time", lambda: 1.0)
    assert load_best_probe(cache) is None


@pytest.mark.parametrize("damage", ["", "[]", "{}", "null", '{"best_ms": 5}'])
def test_damaged_history_of_probes_counts_as_absent(tmp_path: Path, damage: str) -> None:
    (tmp_path / environment.HISTORY).write_text(damage, encoding="utf-8")
    assert load_best_probe(tmp_path) is None
    save_best_probe(5.0, tmp_path)
    assert load_best_probe(tmp_path) == 5.0
    save_best_probe(
        5.0, tmp_path / environment.HISTORY
    )  # a file in place of the folder stops no sweep
    assert load_best_probe(tmp_path / environment.HISTORY) is None


# --- shares of the CPU

LinuxTimes = namedtuple(
    "LinuxTimes", "user nice system idle iowait irq softirq steal guest guest_nice"
)
OtherTimes = namedtuple("OtherTimes", "user system idle")


def test_guest_time_counts_once_and_waiting_is_not_busy() -> None:
    usage = environment.read_usage(lambda: LinuxTimes(10, 1, 5, 70, 9, 1, 2, 2, 4, 1), lambda: 3.0)
    assert usage == Usage(total=100, busy=19, steal=2, own=3.0)
    usage = environment.read_usage(lambda: OtherTimes(10, 5, 85), lambda: 3.0)
    assert usage == Usage(total=100, busy=15, steal=None, own=3.0)


@pytest.mark.parametrize(
    ("earlier", "later", "load"),
    [
        (
            Usage(1000, 400, 10, 300),
            Usage(1008, 405, 11, 303),
            Load(foreign_cpu=2 / 8, steal=1 / 8),
        ),
        (Usage(0, 0, None, 0), Usage(8, 4, None, 4), Load(0.0, None)),
        (Usage(8, 4, 1, 4), Usage(8, 4, 1, 4), Load(None, None)),
    ],
)
def test_load_is_the_share_of_others_in_the_window(
    earlier: Usage, later: Usage, load: Load
) -> None:
    assert compute_load(earlier, later) == load


SECONDS = st.floats(0, 1e9)
USAGES = st.builds(Usage, SECONDS, SECONDS, st.one_of(st.none(), SECONDS), SECONDS)


@given(USAGES, USAGES)
def test_shares_are_between_0_and_1(earlier: Usage, later: Usage) -> None:
    assert all(share is None or 0 <= share <= 1 for share in compute_load(earlier, later))


BURN = (
    "import sys, time\nwhile time.process_time() < 0.3: pass\nprint(flush=True); sys.stdin.read()"
)


def test_child_counts_while_it_lives_and_after_its_end() -> None:
    before = environment.read_own_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        alive = environment.read_own_seconds()
        child.communicate()
    assert alive >= before + 0.25
    if sys.platform == "linux":
        assert environment.read_own_seconds() > alive - 0.01  # a tick


class FakeProcess:
    """A process; without seconds it ended between the listing and the look at it."""

    def __init__(self, *children: FakeProcess, seconds: float | None = None) -> None:
        self._children, self._seconds = children, seconds

    def children(self, recursive: bool) -> list[FakeProcess]:
        assert recursive
        self.cpu_times()
        return list(self._children)

    def cpu_times(self) -> Any:
        if self._seconds is None:
            raise psutil.NoSuchProcess(1)
        times = namedtuple("times", "user system children_user children_system")
        return times(self._seconds, 0.5, 0.25, 0.25)


def test_ended_child_is_skipped() -> None:
    family: Any = FakeProcess(FakeProcess(), FakeProcess(seconds=2.0), seconds=1.0)
    assert environment.read_own_seconds(family) == 5.0
    ended: Any = FakeProcess()
    assert environment.read_own_seconds(ended) == 0.0


# --- other sweeps on this machine

SWEEP = """
import sys
from ipu_results.runner.environment import announce_sweep
with announce_sweep(sys.argv[1]) as concurrent:
    print(*concurrent.list_others(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(environment.VARIABLE, str(tmp_path / "locks"))
    return tmp_path / "locks"


@contextmanager
def start_sweep(run_id: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Announce a sweep in a process of its own; yield it and the others that it sees."""
    process = subprocess.Popen(
        [sys.executable, "-c", SWEEP, run_id],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()
        finally:
            process.kill()


def test_two_sweeps_see_each_other_until_either_ends(locks: Path) -> None:
    with announce_sweep("b") as ours:
        assert (ours.reason, ours.list_others()) == (None, [])
        with start_sweep("c") as (process, seen), FileLock(locks / "a.lock"):
            assert seen == ["b"]
            assert ours.list_others() == ["a", "c"]
            process.communicate()
            assert process.returncode == 0
            assert ours.list_others() == ["a"]
    assert [path.name for path in locks.iterdir() if path.name != "a.lock"] == []


def test_killed_sweep_is_forgotten_and_its_file_removed(locks: Path) -> None:
    with announce_sweep("a") as ours, start_sweep("b") as (process, _):
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert (locks / "b.lock").exists()
        assert ours.list_others() == []
        assert not (locks / "b.lock").exists()
    (locks / "a.lock").touch()  # left by a dead sweep of that name
    with announce_sweep("a") as ours:
        assert ours.list_others() == []


def test_run_is_measured_by_one_sweep_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "ANNOUNCE_S", 0.0)
    message = "a: another sweep is measuring it"
    with start_sweep("a"), pytest.raises(DamagedRunError, match=message), announce_sweep("a"):
        pytest.fail("two sweeps of one run")


def test_locks_are_open_to_other_users(locks: Path) -> None:
    with announce_sweep("a"):
        assert (locks / "a.lock").stat().st_mode & 0o777 == 0o666
        assert locks.stat().st_mode & 0o7777 == 0o1777


def test_file_of_another_users_dead_sweep_stays(
    locks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks.mkdir()
    (locks / "dead.lock").touch()

    def refuse(_path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EPERM, f"not permitted ({missing_ok})")

    with announce_sweep("a") as ours:
        monkeypatch.setattr(Path, "unlink", refuse)
        assert ours.list_others() == []
        assert (locks / "dead.lock").exists()


def test_unusable_folder_of_locks_stops_no_sweep(locks: Path) -> None:
    locks.write_text("a file", encoding="ascii")
    with announce_sweep("a") as ours:
        assert ours.list_others() == []
        assert str(ours.reason).startswith("the folder of the locks cannot be used: ")
        assert str(locks) not in str(ours.reason)


def test_error_in_the_sweep_removes_its_file(
    locks: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match="disk full"), announce_sweep("a"):
        raise OSError("disk full")
    assert list(locks.iterdir()) == []
    monkeypatch.delenv(environment.VARIABLE)
    monkeypatch.setattr(environment.tempfile, "tempdir", str(tmp_path))
    assert environment.get_locks_folder() == tmp_path / "ipu-results-sweeps"
