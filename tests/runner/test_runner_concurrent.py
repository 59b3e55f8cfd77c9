"""The machine around a sweep: the speed probe, the shares of the CPU, and other sweeps at the same
time.
"""

from __future__ import annotations

import os
import signal
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
    Load,
    Usage,
    announce_sweep,
    compute_load,
    load_best_probe,
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
    (tmp_path / environment.HISTORY).write_text(damage, encoding="utf-8")
    assert load_best_probe(tmp_path) is None
    save_best_probe(5.0, tmp_path)
    assert load_best_probe(tmp_path) == 5.0
    # a file in place of the folder stops no sweep
    save_best_probe(5.0, tmp_path / environment.HISTORY)
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


def test_locks_are_open_to_other_users(locks: Path) -> None:
    with announce_sweep("a"):
        assert (locks / "a.lock").stat().st_mode & 0o777 == 0o666
        assert locks.stat().st_mode & 0o7777 == 0o1777


def test_unusable_folder_of_locks_stops_no_sweep(locks: Path) -> None:
    locks.write_text("a file", encoding="ascii")
    with announce_sweep("a") as ours:
        assert ours.list_others() == []
        assert str(ours.reason).startswith("the folder of the locks cannot be used: ")
        assert str(locks) not in str(ours.reason)
