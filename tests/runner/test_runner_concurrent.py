"""The machine around a sweep: the speed probe, the shares of the CPU, and other sweeps at the same
time.
"""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from filelock import FileLock
from ipu_results.runner import environment
from ipu_results.runner.environment import (
    HISTORY,
    Load,
    Usage,
    announce_sweep,
    compute_load,
    load_best_probe,
    read_usage,
    save_best_probe,
)

from tests.conftest import ROOT

# --- the speed probe


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
    (tmp_path / HISTORY).write_text(damage, encoding="utf-8")
    assert load_best_probe(tmp_path) is None
    save_best_probe(5.0, tmp_path)
    assert load_best_probe(tmp_path) == 5.0
    save_best_probe(5.0, tmp_path / HISTORY)  # a file in place of the folder stops no sweep
    assert load_best_probe(tmp_path / HISTORY) is None


# --- shares of the CPU

LINUX = "user nice system idle iowait irq softirq steal guest guest_nice"
LinuxTimes = namedtuple("LinuxTimes", LINUX)
OtherTimes = namedtuple("OtherTimes", "user system idle")


@pytest.mark.parametrize(
    ("times", "busy", "steal"),
    [(LinuxTimes(10, 1, 5, 70, 9, 1, 2, 2, 4, 1), 19, 2), (OtherTimes(10, 5, 85), 15, None)],
)
def test_guest_time_counts_once_and_waiting_is_not_busy(
    monkeypatch: pytest.MonkeyPatch, times: tuple[int, ...], busy: int, steal: int | None
) -> None:
    monkeypatch.setattr(psutil, "cpu_times", lambda: times)
    monkeypatch.setattr(environment, "_read_own_seconds", lambda: 3.0)
    assert read_usage() == Usage(total=100, busy=busy, steal=steal, own=3.0)


@pytest.mark.parametrize(
    ("earlier", "later", "load"),
    [
        (Usage(1000, 400, 10, 300), Usage(1008, 405, 11, 303), Load(2 / 8, steal=1 / 8)),
        (Usage(0, 0, None, 0), Usage(8, 4, None, 4), Load(0.0, None)),
        (Usage(8, 4, 1, 4), Usage(8, 4, 1, 4), Load(None, None)),
    ],
)
def test_load_is_the_share_of_others_in_the_window(
    earlier: Usage, later: Usage, load: Load
) -> None:
    assert compute_load(earlier, later) == load


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
    command = [sys.executable, "-c", SWEEP, run_id]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()
        finally:
            process.kill()


def test_two_sweeps_see_each_other_until_either_ends(locks: Path) -> None:
    with announce_sweep("b") as ours:
        assert (ours.reason, ours.list_others()) == (None, [])
        # for all users
        assert (locks / "b.lock").stat().st_mode & 0o777 == 0o666
        assert locks.stat().st_mode & 0o7777 == 0o1777
        with start_sweep("c") as (process, seen), FileLock(locks / "a.lock"):
            assert seen == ["b"]
            assert ours.list_others() == ["a", "c"]
            process.communicate()
            assert process.returncode == 0
            assert ours.list_others() == ["a"]
    assert [path.name for path in locks.iterdir() if path.name != "a.lock"] == []


def test_killed_sweep_is_forgotten_and_its_file_removed(locks: Path) -> None:
    with announce_sweep("a") as ours, start_sweep("b") as (process, _):
        process.kill()
        process.wait()
        assert (locks / "b.lock").exists()
        assert ours.list_others() == []
        assert not (locks / "b.lock").exists()
    (locks / "a.lock").touch()  # left by a dead sweep of that name
    with announce_sweep("a") as ours:
        assert ours.list_others() == []


def test_unusable_folder_of_locks_stops_no_sweep(locks: Path) -> None:
    locks.write_text("a file", encoding="ascii")
    with announce_sweep("a") as ours:
        assert ours.list_others() == []
        assert str(ours.reason).startswith("the folder of the locks cannot be used: ")
        assert str(locks) not in str(ours.reason)
