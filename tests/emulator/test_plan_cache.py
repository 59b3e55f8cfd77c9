"""The disk cache of plans returns what the search returns, and never stops a prediction."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock
from ipu_results.emulator import split
from ipu_results.emulator.network import load_network
from ipu_results.emulator.schedule import schedule
from ipu_results.emulator.split import (
    ConvolutionShape,
    PlanCache,
    SplitPlan,
    compute_search_version,
    open_plan_cache,
)
from ipu_results.emulator.target import Target, load_target

from tests.conftest import ROOT

C2 = load_target("c2")
SHAPES = [
    ConvolutionShape(1, 1, 64, 64, size, size, in_rows=size, in_columns=size)
    for size in (7, 14, 28)
]
WRITER = """
import sys
from pathlib import Path
from ipu_results.emulator.split import ConvolutionShape
from ipu_results.emulator.target import load_target
for size in map(int, sys.argv[2:]):
    plans = PlanCache(Path(sys.argv[1]))
    plans(ConvolutionShape(1, 1, 64, 64, size, size, in_rows=size, in_columns=size), load_target("c2"))
    plans.save()
"""


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[ConvolutionShape]:
    """Record the shapes that are searched."""
    shapes: list[ConvolutionShape] = []
    search = split.plan_split

    def record(shape: ConvolutionShape, target: Target) -> SplitPlan:
        shapes.append(shape)
        return search(shape, target)

    monkeypatch.setattr(split, "plan_split", record)
    return shapes


def test_plans_from_memory_and_disk_equal_those_of_the_search(
    tmp_path: Path, searched: list[ConvolutionShape]
) -> None:
    program = load_network("resnet50")(1)
    expected = schedule(program, C2)
    plans = PlanCache(tmp_path)
    assert schedule(program, C2) == expected
    plans.save()
    assert len(searched) == len(set(searched)) > 10
    count = len(searched)
    again = PlanCache(tmp_path)
    assert schedule(program, C2, again) == expected
    assert len(searched) == count
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again.save()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files, (
        "nothing new, nothing written"
    )


def prepend_checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode() + b"\n" + data


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: data[:0],
    "cut": lambda data: data[:-20],
    "changed": lambda data: data.replace(b"amp", b"imp", 1),
    "not text": lambda data: b"\xff" + data,
    "no plans": lambda data: prepend_checksum(data[:0]),
    "other contents": lambda data: prepend_checksum(
        data.partition(b"\n")[2].replace(b'"vertex"', b'"corner"')
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_file_is_ignored_and_replaced(
    tmp_path: Path, searched: list[ConvolutionShape], damage: Callable[[bytes], bytes]
) -> None:
    plans = PlanCache(tmp_path)
    expected = plans(SHAPES[0], C2)
    plans.save()
    path = plans.path(C2)
    intact = path.read_bytes()
    path.write_bytes(damage(intact))
    again = PlanCache(tmp_path)
    assert again(SHAPES[0], C2) == expected
    assert len(searched) == 2
    again.save()
    assert path.read_bytes() == intact


def test_other_constants_and_another_search_are_other_files(
    tmp_path: Path, searched: list[ConvolutionShape], monkeypatch: pytest.MonkeyPatch
) -> None:
    plans, slow = PlanCache(tmp_path), C2.with_constants({"exchange.bytes": 1})
    expected = [plans(SHAPES[1], target) for target in (C2, slow)]
    assert expected[0] != expected[1]
    plans.save()
    assert len(searched) == len(list(tmp_path.glob("*.json"))) == 2
    again = PlanCache(tmp_path)
    assert [again(SHAPES[1], target) for target in (C2, slow)] == expected
    assert len(searched) == 2
    assert compute_search_version() in plans.path(C2).name
    monkeypatch.setattr(split, "compute_search_version", lambda: "later")
    PlanCache(tmp_path)(SHAPES[1], C2)
    assert len(searched) == 3


@pytest.mark.slow
def test_two_processes_keep_the_plans_of_both(tmp_path: Path) -> None:
    commands = [
        [sys.executable, "-c", WRITER, str(tmp_path), *map(str, range(at, 30, 2))] for at in (4, 5)
    ]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, ("pipeline", os.environ.get("PYTHONPATH")))),
    }
    processes = [subprocess.Popen(command, cwd=ROOT, env=env) for command in commands]
    assert [process.wait(60) for process in processes] == [0, 0]
    (path,) = tmp_path.glob("*.json")
    assert len(json.loads(path.read_bytes().partition(b"\n")[2])) == 26
    assert not list(tmp_path.glob(".*"))


def plan_and_interrupt() -> None:
    with open_plan_cache() as plans:
        plans(SHAPES[0], C2)
        raise KeyboardInterrupt


def test_interrupted_run_keeps_its_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(split.CACHE_VARIABLE, str(tmp_path / "new"))
    with pytest.raises(KeyboardInterrupt):
        plan_and_interrupt()
    assert len(list((tmp_path / "new").glob("*.json"))) == 1


def test_unusable_folder_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    plans = PlanCache(tmp_path / "file")
    assert plans(SHAPES[0], C2) == split.plan_split(SHAPES[0], C2)
    plans.save()
    assert (tmp_path / "file").read_text() == "in the way"


def test_held_lock_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "LOCK_TIMEOUT_S", 0.05)
    plans = PlanCache(tmp_path)
    plans(SHAPES[0], C2)
    with FileLock(plans.path(C2).with_suffix(".lock")):
        plans.save()
    assert not list(tmp_path.glob("*.json"))


def test_folder_is_the_users_unless_the_variable_names_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(split.CACHE_VARIABLE, str(tmp_path))
    assert split.get_cache_folder() == tmp_path
    monkeypatch.delenv(split.CACHE_VARIABLE)
    assert split.get_cache_folder().name == "ipu-results"
