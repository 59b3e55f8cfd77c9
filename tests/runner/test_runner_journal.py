"""The journal of a run: what a kill, a full disk, damage or a second process leaves, and that
publishing is atomic.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ipu_results.errors import CatalogueError, DamagedRunError
from ipu_results.record.sources.catalogue import load_catalogue
from ipu_results.runner.record import JOURNAL, Journal, list_unfinished

from tests.conftest import ROOT

RUN_ID = "20261121-134501-null-null-3fa2"
STEPS: list[dict[str, Any]] = [
    {"step": "opened", "model": "réseau", "lines": "one\ntwo\r\n\u2028three", "nothing": None},
    {"step": "block", "block": {"stamps": [[[0, 1, 2, 3, 4]]], "items": 0.1}},
    {"step": "block", "block": {"stamps": [], "items": 1e-300}},
    {"step": "excluded", "batch_size": 12, "reason": "out of memory"},
]
FILES = {
    "record.json": b"{}\n",
    "points.csv": b"a,b\n1,2\n",
    "stamps.parquet": bytes(range(256)) * 40,
}


def write_steps(out: Path, steps: list[dict[str, Any]] = STEPS) -> Journal:
    """Write a journal as a killed sweep leaves it."""
    journal = Journal(out, RUN_ID)
    with journal.lock():
        for step in steps:
            journal.append(**step)
    return journal


def load_steps(out: Path) -> list[dict[str, Any]]:
    journal = Journal(out, RUN_ID)
    journal.load()
    return journal.steps


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_nan_is_not_written(tmp_path: Path) -> None:
    journal = write_steps(tmp_path)
    before = journal.path.read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        journal.append("block", items=float("nan"))
    assert journal.path.read_bytes() == before


# --- kill -9 at any byte


def test_every_prefix_loads_its_whole_lines_and_can_be_continued(tmp_path: Path) -> None:
    path = write_steps(tmp_path).path
    data = path.read_bytes()
    assert [json.loads(line) for line in data.decode("ascii").splitlines()] == STEPS
    for length in range(len(data) + 1):
        # zeros as a file system leaves them after a power cut
        path.write_bytes(data[:length] + bytes(length % 9))
        whole = STEPS[: data[:length].count(b"\n")]
        assert load_steps(tmp_path) == whole
        journal = Journal(tmp_path, RUN_ID)
        journal.load()
        journal.append("more", of=length)
        assert load_steps(tmp_path) == [*whole, {"step": "more", "of": length}]


# --- damage


@pytest.mark.parametrize("line", [1, 4])
@pytest.mark.parametrize(
    "damage", [b"{", b"[]", b"", b"\0" * 40, b"\xff\xfe", b'{"step": "block"} {}']
)
def test_damaged_line_is_named_and_the_journal_kept(
    tmp_path: Path, line: int, damage: bytes
) -> None:
    """Even where no step can be read: a person may still repair it."""
    path = write_steps(tmp_path).path
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = damage
    path.write_bytes(b"\n".join(lines))
    journal = Journal(tmp_path, RUN_ID)
    message = f"^{RUN_ID}: line {line}: is not a step of a journal: "
    with journal.lock(), pytest.raises(DamagedRunError, match=message):
        journal.load()
    assert path.read_bytes() == b"\n".join(lines)


def test_run_without_a_step_leaves_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "raw" / "runs"
    with Journal(out, RUN_ID).lock():
        assert list_unfinished(out) == [RUN_ID]
    assert list_names(out) == []


def test_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file\n")
    with pytest.raises(DamagedRunError, match=f"^{RUN_ID}: cannot be written: "):
        write_steps(tmp_path / "runs")


def test_missing_journal_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedRunError, match=f"^{RUN_ID}: has no journal: No such file or dir"):
        load_steps(tmp_path)


# --- a full disk


def fill_disk(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Leave room for a few more bytes."""
    write = os.write

    def write_some(descriptor: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(descriptor, data[:room])
        room -= done
        return done

    monkeypatch.setattr(os, "write", write_some)


@pytest.mark.parametrize("room", [0, 1, 100])
def test_full_disk_keeps_the_steps_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    journal = write_steps(tmp_path, STEPS[:2])
    before = journal.path.read_bytes()
    with monkeypatch.context() as full:
        fill_disk(full, room)
        with pytest.raises(DamagedRunError) as caught:
            journal.append("block", more="x" * 200)
    reason = "2 steps are kept, the next cannot be written: No space left on device"
    assert str(caught.value) == f"{RUN_ID}: {journal.folder}: {reason}"
    assert journal.path.read_bytes() == before
    for step in STEPS[2:]:
        journal.append(**step)
    assert load_steps(tmp_path) == STEPS == journal.steps


# --- two at once


LOCKING = """
import pathlib, sys
from ipu_results.runner.record import Journal
with Journal(pathlib.Path(sys.argv[1]), sys.argv[2]).lock():
    print("locked")
"""


@pytest.mark.slow
def test_one_process_measures_a_run(tmp_path: Path) -> None:
    journal = write_steps(tmp_path)
    message = f"{RUN_ID}: another process is measuring it"
    command = [sys.executable, "-c", LOCKING, str(tmp_path), RUN_ID]
    with journal.lock():
        with pytest.raises(DamagedRunError, match=f"^{message}$"):
            write_steps(tmp_path)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"DamagedRunError: {message}" in done.stderr
    assert load_steps(tmp_path) == STEPS


# --- publishing


class StoppedError(BaseException):
    """The process is gone here."""


BROKEN = OSError(errno.EIO, os.strerror(errno.EIO))


def read_published(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / RUN_ID).iterdir()}


def _stop_at_call(
    patched: pytest.MonkeyPatch, at: int, error: BaseException, after: bool
) -> list[str]:
    """Fail before or after the call of this number of those that change the disk; return the calls."""
    calls: list[str] = []

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            calls.append(name)
            if len(calls) == at and not after:
                raise error
            result = real(*args, **more)
            if len(calls) == at:
                raise error
            return result

        return call

    for name in ("open", "fsync", "rename", "mkdir", "unlink", "rmdir"):
        patched.setattr(os, name, wrap(name, getattr(os, name)))
    patched.setattr(Path, "write_bytes", wrap("write", Path.write_bytes))
    return calls


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [StoppedError(), BROKEN], ids=["killed", "broken"])
def test_publishing_is_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, after: bool
) -> None:
    """Whichever call it is killed at, or fails at; what is half built is not a document."""
    states = set()
    for at in range(1, 1000):
        out = tmp_path / str(at)
        journal = write_steps(out)
        with monkeypatch.context() as patched:
            calls = _stop_at_call(patched, at, error, after)
            with suppress(StoppedError, DamagedRunError):
                journal.publish(FILES)
        whole = (out / RUN_ID).exists()
        states.add(whole)
        if whole:
            assert list_unfinished(out) == []
            assert list_names(out) == [RUN_ID]
        else:
            assert load_steps(out) == STEPS
            assert list_unfinished(out) == [RUN_ID]
            with pytest.raises(CatalogueError, match="contains no sidecar"):
                load_catalogue(out)
            again = Journal(out, RUN_ID)
            again.load()
            again.publish(FILES)
        assert read_published(out) == FILES
        if len(calls) < at:
            break
    assert "write" in calls
    assert states == {True, False}


def test_published_run_is_never_overwritten(tmp_path: Path) -> None:
    write_steps(tmp_path).publish(FILES)
    again = write_steps(tmp_path)
    message = f"^{RUN_ID}: cannot be written: Directory not empty$"
    with pytest.raises(DamagedRunError, match=message):
        again.publish({"record.json": b"another"})
    assert read_published(tmp_path) == FILES
    assert load_steps(tmp_path) == STEPS
    assert JOURNAL in list_names(again.folder)


def test_unfinished_runs_are_listed_in_their_order(tmp_path: Path) -> None:
    ids = ["20251121-134501-popart-ipu-ffff", "20261121-134500-a-1111", "20261121-134501-a-0000"]
    for run_id in reversed(ids):
        (tmp_path / f"{run_id}.unfinished").mkdir()
    (tmp_path / f"{RUN_ID}.unfinished").write_text("a file\n")
    assert list_unfinished(tmp_path) == ids
    assert list_unfinished(tmp_path / "absent") == []
