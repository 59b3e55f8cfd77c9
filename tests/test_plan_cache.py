"""The disk cache of plans: equal results, and never in the way."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT
from filelock import FileLock
from ipu_results.emulator import cache, split
from ipu_results.emulator.cache import Plans, saved, search_version
from ipu_results.emulator.network import network
from ipu_results.emulator.schedule import Schedule, schedule
from ipu_results.emulator.split import Shape
from ipu_results.emulator.target import load_target

C2 = load_target("c2")
SHAPES = [Shape(1, 1, 64, 64, size, size, in_rows=size, in_columns=size) for size in (7, 14, 28)]
ADD = """
import sys
from pathlib import Path
from ipu_results.emulator.cache import Plans
from ipu_results.emulator.split import Shape
from ipu_results.emulator.target import load_target
for size in map(int, sys.argv[2:]):
    plans = Plans(Path(sys.argv[1]))
    plans(Shape(1, 1, 64, 64, size, size, in_rows=size, in_columns=size), load_target("c2"))
    plans.save()
"""


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[Shape]:
    """The shapes that the search was asked for."""
    asked: list[Shape] = []
    plan = split.plan

    def counted(shape: Shape, target: split.Target) -> split.Plan:
        asked.append(shape)
        return plan(shape, target)

    monkeypatch.setattr(split, "plan", counted)
    return asked


def of_resnet(planner: Plans) -> Schedule:
    return schedule(network("resnet50")(1), C2, planner)


def test_cold_warm_and_from_disk_are_equal(tmp_path: Path, searched: list[Shape]) -> None:
    plain = schedule(network("resnet50")(1), C2)
    first = Plans(tmp_path)
    assert of_resnet(first) == plain
    assert len(searched) == len(set(searched)) > 10
    assert of_resnet(first) == plain
    first.save()
    count = len(searched)
    assert of_resnet(Plans(tmp_path)) == plain
    assert len(searched) == count


def test_nothing_is_written_when_nothing_is_new(tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    plans.save()
    assert not list(tmp_path.iterdir())


def sealed(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode() + b"\n" + data


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: data[:0],
    "cut": lambda data: data[:-20],
    "changed": lambda data: data.replace(b"amp", b"imp", 1),
    "no text": lambda data: b"\xff" + data,
    "no plans": lambda data: sealed(data[:0]),
    "other contents": lambda data: sealed(data.partition(b"\n")[2].replace(b'"vertex"', b'"corner"')),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_damaged_file_is_ignored_and_written_anew(
    tmp_path: Path, searched: list[Shape], harm: Callable[[bytes], bytes]
) -> None:
    plans = Plans(tmp_path)
    want = plans(SHAPES[0], C2)
    plans.save()
    path = plans.path(C2.digest)
    good = path.read_bytes()
    path.write_bytes(harm(good))
    again = Plans(tmp_path)
    assert again(SHAPES[0], C2) == want
    assert len(searched) == 2
    again.save()
    assert path.read_bytes() == good


def test_other_constants_are_another_file(tmp_path: Path, searched: list[Shape]) -> None:
    plans = Plans(tmp_path)
    slow = C2.changed(exchange__bytes=1)
    assert plans(SHAPES[1], C2) != plans(SHAPES[1], slow)
    plans.save()
    assert len(searched) == len(list(tmp_path.glob("*.json"))) == 2
    again = Plans(tmp_path)
    found = [again(SHAPES[1], one) for one in (C2, slow)]
    assert found == [plans(SHAPES[1], one) for one in (C2, slow)]
    assert len(searched) == 2


def test_another_search_is_another_file(tmp_path: Path, searched: list[Shape], monkeypatch: pytest.MonkeyPatch) -> None:
    plans = Plans(tmp_path)
    plans(SHAPES[0], C2)
    plans.save()
    assert search_version() in plans.path(C2.digest).name
    monkeypatch.setattr(cache, "search_version", lambda: "later")
    Plans(tmp_path)(SHAPES[0], C2)
    assert len(searched) == 2


def test_two_processes_keep_what_both_found(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", ADD, str(tmp_path), *map(str, range(at, 30, 2))] for at in (4, 5)]
    running = [subprocess.Popen(one, cwd=ROOT, env={**os.environ, "PYTHONPATH": "."}) for one in commands]
    assert [one.wait(60) for one in running] == [0, 0]
    (path,) = tmp_path.glob("*.json")
    assert len(json.loads(path.read_bytes().partition(b"\n")[2])) == 26
    assert not list(tmp_path.glob(".*"))


def interrupted() -> None:
    with saved() as plans:
        plans(SHAPES[0], C2)
        raise KeyboardInterrupt


def test_plans_of_an_interrupted_run_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "new"))
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(list((tmp_path / "new").glob("*.json"))) == 1


def test_a_folder_that_cannot_be_used_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    plans = Plans(tmp_path / "file")
    assert plans(SHAPES[0], C2) == split.plan(SHAPES[0], C2)
    plans.save()
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_lock_that_is_held_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "WAIT", 0.05)
    plans = Plans(tmp_path)
    plans(SHAPES[0], C2)
    with FileLock(plans.path(C2.digest).with_suffix(".lock")):
        plans.save()
    assert not list(tmp_path.glob("*.json"))


def test_the_folder_is_the_users_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path))
    assert cache.folder() == tmp_path
    monkeypatch.delenv(cache.FOLDER)
    assert cache.folder().name == "ipu-results"
