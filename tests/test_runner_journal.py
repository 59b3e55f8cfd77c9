"""The journal of a run: what a kill, a full disk, damage or a second process leaves, and that a finish is whole."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import CatalogueError, DamagedRunError
from ipu_results.runner import journal as journals
from ipu_results.runner.journal import JOURNAL, Journal, unfinished
from ipu_results.sources.catalogue import load_catalogue

RUN_ID = "20261121-134501-null-null-3fa2"
STEPS: list[dict[str, Any]] = [
    {"step": "opened", "model": "réseau", "lines": "one\ntwo\r\n\u2028three", "nothing": None},
    {"step": "block", "block": {"stamps": [[[0, 1, 2, 3, 4]]], "items": 0.1}},
    {"step": "block", "block": {"stamps": [], "items": 1e-300}},
    {"step": "left_out", "batch_size": 12, "reason": "out of memory"},
]
FILES = {"record.json": b"{}\n", "points.csv": b"a,b\n1,2\n", "stamps.parquet": bytes(range(256)) * 40}


def journal(out: Path, run_id: str = RUN_ID) -> Journal:
    return Journal(out, run_id)


def written(out: Path, steps: list[dict[str, Any]] = STEPS) -> Journal:
    """A journal with these steps that a killed sweep left."""
    found = journal(out)
    with found.held():
        for step in steps:
            found.add(**step)
    return found


def reread(out: Path) -> list[dict[str, Any]]:
    found = journal(out)
    found.read()
    return found.steps


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- what is written is what is read


def test_steps_come_back_as_they_were(tmp_path: Path) -> None:
    found = written(tmp_path)
    assert found.steps == STEPS == reread(tmp_path)
    assert found.of("block") == STEPS[1:3]
    assert found.path.read_bytes().count(b"\n") == len(STEPS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.fixed_dictionaries({"step": st.text(), "told": JSON}), min_size=1, max_size=5))
def test_any_steps_come_back(tmp_path_factory: pytest.TempPathFactory, steps: list[dict[str, Any]]) -> None:
    out = tmp_path_factory.mktemp("any")
    written(out, steps)
    assert reread(out) == steps


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_does_not_have_is_not_written(tmp_path: Path, value: float) -> None:
    found = written(tmp_path)
    before = found.path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        found.add("block", items=value)
    assert found.path.read_bytes() == before


# --- kill -9 at any byte


def test_every_prefix_gives_its_whole_lines(tmp_path: Path) -> None:
    found = written(tmp_path)
    data = found.path.read_bytes()
    for length in range(len(data) + 1):
        found.path.write_bytes(data[:length])
        assert reread(tmp_path) == STEPS[: data[:length].count(b"\n")]


def test_every_prefix_can_be_gone_on_with(tmp_path: Path) -> None:
    found = written(tmp_path)
    data = found.path.read_bytes()
    for length in range(len(data) + 1):
        found.path.write_bytes(data[:length])
        again = journal(tmp_path)
        again.read()
        again.add("more", of=length)
        assert reread(tmp_path) == [*STEPS[: data[:length].count(b"\n")], {"step": "more", "of": length}]


@given(st.data())
def test_a_tail_of_anything_without_a_newline_is_no_step(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Such as the zeros that a file system leaves after a power cut."""
    out = tmp_path_factory.mktemp("tail")
    tail = data.draw(st.binary().map(lambda some: some.replace(b"\n", b"")) | st.just(bytes(100)))
    with written(out).path.open("ab") as file:
        file.write(tail)
    assert reread(out) == STEPS


KILLED = """
import sys
from pathlib import Path
from ipu_results.runner.journal import Journal
journal = Journal(Path(sys.argv[1]), sys.argv[2])
with journal.held():
    for number in range(10**9):
        journal.add("block", number=number, more="x" * 3000)
        print(number, flush=True)
"""


def test_a_killed_process_leaves_every_step_that_it_told_of(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), RUN_ID]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(20)]
        process.kill()
        told += [int(line) for line in process.stdout if line.endswith("\n")]
    steps = reread(tmp_path)
    assert [one["number"] for one in steps] == list(range(len(steps)))
    assert len(told) <= len(steps) <= len(told) + 1
    with journal(tmp_path).held():  # the lock of the dead is free
        assert unfinished(tmp_path) == [RUN_ID]


# --- damage


@pytest.mark.parametrize("line", [1, 2, 4])
@pytest.mark.parametrize(
    "damage", [b"{", b"[]", b"null", b"7", b'"step"', b"", b"\0" * 40, b"\xff\xfe", b'{"step": "block"} {}', b"{,}"]
)
def test_a_damaged_line_is_named(tmp_path: Path, line: int, damage: bytes) -> None:
    found = written(tmp_path)
    lines = found.path.read_bytes().split(b"\n")
    lines[line - 1] = damage
    found.path.write_bytes(b"\n".join(lines))
    with pytest.raises(DamagedRunError, match=f"^{RUN_ID}: line {line}: is no journal: "):
        reread(tmp_path)


def test_a_damaged_journal_is_kept(tmp_path: Path) -> None:
    """Even where not one step could be read: a person may still mend it."""
    found = written(tmp_path)
    data = b"?" + found.path.read_bytes()
    found.path.write_bytes(data)
    again = journal(tmp_path)
    with again.held(), pytest.raises(DamagedRunError):
        again.read()
    assert found.path.read_bytes() == data


def test_a_run_without_a_journal(tmp_path: Path) -> None:
    with pytest.raises(DamagedRunError, match=f"^{RUN_ID}: has no journal: No such file or directory$"):
        reread(tmp_path)


def test_a_run_without_a_step_leaves_no_folder(tmp_path: Path) -> None:
    with journal(tmp_path / "raw" / "runs").held():
        assert unfinished(tmp_path / "raw" / "runs") == [RUN_ID]
    assert names(tmp_path / "raw" / "runs") == []


# --- a full disk


class Full:
    """A disk with room for so many bytes more."""

    def __init__(self, room: int) -> None:
        self.room, self._write = room, os.write

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = self._write(descriptor, data[: self.room])
        self.room -= done
        return done


@pytest.mark.parametrize("room", [0, 1, 30, 100])
def test_a_full_disk_keeps_the_steps_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    found = written(tmp_path, STEPS[:2])
    before = found.path.read_bytes()
    with monkeypatch.context() as full:
        full.setattr(os, "write", Full(room).write)
        with pytest.raises(DamagedRunError) as caught:
            found.add("block", more="x" * 200)
    place = re.escape(str(found.folder))
    assert re.fullmatch(
        rf"{RUN_ID}: {place}: 2 steps are kept, the next cannot be written: No space left on device", str(caught.value)
    )
    assert found.path.read_bytes() == before
    found.add(**STEPS[2])
    found.add(**STEPS[3])
    assert reread(tmp_path) == STEPS == found.steps


def test_a_write_in_pieces_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    written(tmp_path)
    assert reread(tmp_path) == STEPS


@pytest.mark.parametrize("call", ["fsync", "ftruncate", "open"])
def test_a_disk_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    found = written(tmp_path, STEPS[:3])

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        with pytest.raises(DamagedRunError, match="3 steps are kept, the next cannot be written: Input/output error"):
            found.add(**STEPS[3])
    assert reread(tmp_path) == STEPS[:3] == found.steps


def _limit_size() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))


def test_a_limit_of_the_system_is_a_full_disk(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), RUN_ID]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, preexec_fn=_limit_size, timeout=60, check=False
    )
    assert "DamagedRunError" in done.stderr
    assert "3 steps are kept, the next cannot be written: File too large" in done.stderr
    assert [one["number"] for one in reread(tmp_path)] == [0, 1, 2]
    assert journal(tmp_path).path.read_bytes().endswith(b"\n")


# --- two at once


def test_one_process_at_a_time(tmp_path: Path) -> None:
    found = written(tmp_path)
    with found.held():
        second = journal(tmp_path)
        with pytest.raises(DamagedRunError, match=f"^{RUN_ID}: another process is at it$"), second.held():
            pass
        command = [sys.executable, "-c", KILLED, str(tmp_path), RUN_ID]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"DamagedRunError: {RUN_ID}: another process is at it" in done.stderr
    assert reread(tmp_path) == STEPS
    with journal(tmp_path).held():
        pass


def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    other = RUN_ID.replace("3fa2", "0000")
    with journal(tmp_path).held(), journal(tmp_path, other).held():
        assert unfinished(tmp_path) == [other, RUN_ID]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file\n")
    with pytest.raises(DamagedRunError, match=f"^{RUN_ID}: cannot be written: "), journal(tmp_path / "runs").held():
        pass


# --- finishing


class Stopped(BaseException):
    """The process is gone here."""


def finished(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / RUN_ID).iterdir()}


def holds_no_document(raw: Path) -> bool:
    with pytest.raises(CatalogueError, match="holds no sidecar"):
        load_catalogue(raw)
    return True


def test_a_finished_run_has_its_files_and_no_journal(tmp_path: Path) -> None:
    found = written(tmp_path)
    with found.held():
        assert found.finish(FILES) == tmp_path / RUN_ID
    assert finished(tmp_path) == FILES
    assert names(tmp_path) == [RUN_ID]
    assert unfinished(tmp_path) == []


def _calls(monkeypatch: pytest.MonkeyPatch, at: int, stop: Callable[[], None], after: bool) -> list[str]:
    """Stop at the call of this number of those that change the disk, before it or after it."""
    made: list[str] = []

    def wrapped(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*given: Any, **more: Any) -> Any:
            made.append(name)
            if len(made) == at and not after:
                stop()
            result = real(*given, **more)
            if len(made) == at and after:
                stop()
            return result

        return call

    for name in ("open", "write", "fsync", "rename", "mkdir", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, wrapped(name))
    return made


def _gone() -> None:
    raise Stopped


def _broken() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def _stopped_at_every_call(
    out: Path, monkeypatch: pytest.MonkeyPatch, stop: Callable[[], None], after: bool
) -> set[str]:
    """Finish a run again and again, stopped at one call later each time; what it was then, `whole` or `absent`."""
    states = set()
    for at in range(1, 1000):
        place = out / str(at)
        found = written(place)
        with monkeypatch.context() as patched:
            made = _calls(patched, at, stop, after)
            with suppress(Stopped, DamagedRunError):
                found.finish(FILES)
        whole = (place / RUN_ID).exists()
        states.add("whole" if whole else "absent")
        if whole:
            assert finished(place) == FILES
            assert unfinished(place) == []
            assert names(place) == [RUN_ID]
        else:
            assert reread(place) == STEPS
            assert unfinished(place) == [RUN_ID]
            assert holds_no_document(place)
            again = journal(place)
            again.read()
            again.finish(FILES)
            assert finished(place) == FILES
        if len(made) < at:
            return states
    raise AssertionError("finishing never ends")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("stop", [_gone, _broken])
def test_finishing_is_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Callable[[], None], after: bool
) -> None:
    """Whichever call it is killed at, or fails at; what is half built is no document."""
    assert _stopped_at_every_call(tmp_path, monkeypatch, stop, after) == {"whole", "absent"}


def test_half_a_finished_run_is_no_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(tmp_path)
    monkeypatch.setattr(os, "rename", lambda *_: _gone())
    with pytest.raises(Stopped):
        found.finish({"points.csv.toml": b"nonsense", **FILES})
    assert list(tmp_path.rglob("points.csv.toml")) != []
    assert holds_no_document(tmp_path)


def test_a_kill_between_rename_and_removal_is_cleaned_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(journals.shutil, "rmtree", lambda *_, **__: _gone() if (tmp_path / RUN_ID).exists() else None)
        with pytest.raises(Stopped):
            found.finish(FILES)
    assert names(tmp_path) == [RUN_ID, f"{RUN_ID}.unfinished"]
    assert unfinished(tmp_path) == []
    assert names(tmp_path) == [RUN_ID]
    assert finished(tmp_path) == FILES


def test_a_finished_run_is_never_overwritten(tmp_path: Path) -> None:
    written(tmp_path).finish(FILES)
    again = written(tmp_path)
    with pytest.raises(DamagedRunError, match=f"^{RUN_ID}: cannot be written: Directory not empty$"):
        again.finish({"record.json": b"another"})
    assert finished(tmp_path) == FILES
    assert reread(tmp_path) == STEPS


def test_a_full_disk_while_finishing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = written(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(os, "write", Full(20).write)
        with pytest.raises(DamagedRunError, match=f"^{RUN_ID}: cannot be written: No space left on device$"):
            found.finish(FILES)
    assert names(tmp_path) == [f"{RUN_ID}.unfinished"]
    assert {JOURNAL} <= set(names(found.folder)) <= {JOURNAL, ".lock"}
    found.finish(FILES)
    assert finished(tmp_path) == FILES


def test_unfinished_runs_in_their_order(tmp_path: Path) -> None:
    ids = ["20261121-134501-null-null-0000", "20251121-134501-popart-ipu-ffff", "20261121-134500-null-null-1111"]
    for run_id in ids:
        with (other := journal(tmp_path, run_id)).held():
            other.add("opened")
    (tmp_path / f"{RUN_ID}.unfinished").write_text("a file\n")
    assert unfinished(tmp_path) == sorted(ids)
    assert unfinished(tmp_path / "absent") == []


def test_lines_are_plain_json(tmp_path: Path) -> None:
    lines = written(tmp_path).path.read_text(encoding="ascii").splitlines()
    assert [json.loads(line) for line in lines] == STEPS
