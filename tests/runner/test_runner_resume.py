"""Interrupted sweeps: what a resumed one keeps, what it refuses, and sessions or devices that fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ipu_results.errors import BackendError, DamagedRunError, RunnerError, SessionLostError
from ipu_results.runner.environment import describe_environment, read_versions
from ipu_results.runner.estimate import Block
from ipu_results.runner.record import (
    Journal,
    Opened,
    PowerSource,
    Ready,
    RunData,
    build_points,
    list_unfinished,
)
from ipu_results.runner.sweep import SweepResult, resume_sweep, run_task

from tests.runner.faulty_backend import register_faulty, write_faulty_python
from tests.runner.runner_support import (
    Recorder,
    faulty_task,
    interrupt_at,
    list_children,
    null_task,
    read_blocks,
    read_record,
    read_stamps,
)

pytestmark = pytest.mark.slow  # sweeps are run


def load_journal(out: Path, run_id: str) -> Journal:
    journal = Journal(out, run_id)
    journal.load()
    return journal


def read_kept(out: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return the id and the blocks of the one unfinished run."""
    (run_id,) = list_unfinished(out)
    return run_id, [step["block"] for step in load_journal(out, run_id).select("block")]


def assert_kept(run: SweepResult, before: list[dict[str, Any]]) -> None:
    """Check that the first blocks of the run are these to the last nanosecond."""
    rows = []
    for was, now in zip(before, read_blocks(run.folder), strict=False):
        assert {**now, "stamps": was["stamps"]}.items() >= was.items()
        for session, iterations in enumerate(was["stamps"]):
            for iteration, stamps in enumerate(iterations):
                rows.append((was["block"], session, iteration, *stamps))
    assert read_stamps(run.folder)[: len(rows)] == rows


@pytest.mark.parametrize("visit", [1, 6, 9])
def test_resumed_sweep_measures_what_is_missing(tmp_path: Path, visit: int) -> None:
    task = null_task(least_rounds=2, most_rounds=2)
    with pytest.raises(KeyboardInterrupt):
        run_task(task, tmp_path, interrupt_at(visit))
    run_id, before = read_kept(tmp_path)
    assert len(before) == visit - 1
    recorder = Recorder()
    run = resume_sweep(None, tmp_path, recorder)
    every = [*task.plan.list_visits(0), *task.plan.list_visits(1)]
    assert recorder.visits == every[visit - 1 :]
    assert_kept(run, before)
    assert [block["block"] for block in read_blocks(run.folder)] == list(range(len(every)))
    assert run.run_id == run_id
    assert list_unfinished(tmp_path) == []
    assert [point["blocks"] for point in run.points] == [3, 3, 3]


def begin(out: Path) -> str:
    """Interrupt a sweep at its third block; return its id."""
    with pytest.raises(KeyboardInterrupt):
        run_task(null_task(least_rounds=2, most_rounds=2), out, interrupt_at(3))
    (run_id,) = list_unfinished(out)
    return run_id


ENVIRONMENT = {**describe_environment(), "cpu": "another", "load_average": [99.0]}


@pytest.mark.parametrize(
    ("target", "value", "message"),
    [
        (
            "ipu_results.runner.sweep.read_versions",
            lambda *names: {**read_versions(*names), "onnxruntime": "0.1"},
            r"versions onnxruntime was [\d.]+, is 0\.1",
        ),
        # a busier machine is the same
        (
            "ipu_results.runner.sweep.describe_environment",
            lambda: ENVIRONMENT,
            "environment cpu was .+, is another",
        ),
        ("benchmarks.runner.null_backend.VERSION", "2", "facts backend_version was 1, is 2"),
    ],
    ids=["library", "machine", "backend"],
)
def test_sweep_is_not_resumed_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, value: object, message: str
) -> None:
    run_id = begin(tmp_path)
    before = load_journal(tmp_path, run_id).path.read_bytes()
    with monkeypatch.context() as changed:
        changed.setattr(target, value)
        message = f"^{run_id}: cannot be resumed here: {message}$"
        with pytest.raises(DamagedRunError, match=message):
            resume_sweep(run_id, tmp_path)
    assert load_journal(tmp_path, run_id).path.read_bytes() == before
    assert resume_sweep(run_id, tmp_path).run_id == run_id


@pytest.mark.parametrize(("old", "new"), [(b'"task"', b'"asked"'), (b'"seed": 0', b'"seed": "x"')])
def test_journal_of_another_version_is_not_resumed(tmp_path: Path, old: bytes, new: bytes) -> None:
    run_id = begin(tmp_path)
    path = load_journal(tmp_path, run_id).path
    data = path.read_bytes().replace(old, new, 1)
    path.write_bytes(data)
    with pytest.raises(DamagedRunError, match=f"^{run_id}: its journal is not one of this version"):
        resume_sweep(run_id, tmp_path)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("scope", "watts", "reason"),
    [("wall", 90.0, None), ("wall", None, "it failed"), (None, None, "no sensor: no RAPL counter")],
)
def test_point_has_power_or_a_reason(
    tmp_path: Path, scope: str | None, watts: float | None, reason: str | None
) -> None:
    task = null_task(least_rounds=2, most_rounds=2)
    with pytest.raises(KeyboardInterrupt):
        run_task(task, tmp_path, interrupt_at(9))
    journal = load_journal(tmp_path, *list_unfinished(tmp_path))
    source = PowerSource(scope, str(reason))
    opened = replace(msgspec.convert(journal.select("opened")[0], Opened), power=source)
    ready = [msgspec.convert(step, Ready) for step in journal.select("ready")]
    blocks = []
    for step in journal.select("block"):
        observed = {"power_w": watts, "power_reason": reason}
        blocks.append(msgspec.convert(step["block"] | observed, Block))
    for point in build_points(RunData("id", opened, ready, blocks, "")):
        assert (point["power_w"], point["power_reason"]) == (watts, reason)
        assert point["power_scope"] == (scope if watts else None)
        assert point["efficiency"] == (point["throughput"] / watts if watts else None)


# --- sessions that fail


@pytest.fixture
def python(tmp_path: Path) -> Iterator[str]:
    register_faulty()
    before = list_children()
    yield write_faulty_python(tmp_path / "faulty")
    assert list_children() <= before


@pytest.mark.parametrize(
    ("fault", "error"),
    [("die", SessionLostError), ("refuse", BackendError)],
    ids=["session dies", "device fails"],
)
def test_failure_during_a_sweep_loses_no_block(
    tmp_path: Path, python: str, fault: str, error: type[RunnerError]
) -> None:
    flag = tmp_path / "flag"
    out = tmp_path / "runs"
    task = faulty_task(python, when="run", do=fault, session=1, flag=str(flag))
    with pytest.raises(error):
        run_task(task, out, Recorder(lambda visit: visit == 4 and flag.touch()))
    run_id, before = read_kept(out)
    assert len(before) == 3
    flag.unlink()
    recorder = Recorder()
    run = resume_sweep(run_id, out, recorder)
    assert_kept(run, before)
    assert len(recorder.visits) == len(read_blocks(run.folder)) - 3 == 3
    assert [point["blocks"] for point in run.points] == [3, 3]


def test_device_that_accepts_no_batch_is_an_error(tmp_path: Path, python: str) -> None:
    recorder = Recorder()
    with pytest.raises(BackendError, match="has no room for this batch"):
        run_task(faulty_task(python, when="prepare", do="refuse"), tmp_path / "runs", recorder)
    warnings = [warning.partition(":")[0] for warning in recorder.warnings]
    assert warnings == ["batch 2 is left out", "batch 4 is left out"]


def test_batch_that_the_device_does_not_accept_is_excluded(tmp_path: Path, python: str) -> None:
    """With a warning and a note in the record; the others are measured."""
    flag = tmp_path / "flag"
    flag.touch()
    recorder = Recorder()
    task = faulty_task(python, when="prepare", do="refuse-once", flag=str(flag))
    run = run_task(task, tmp_path / "runs", recorder)
    assert [point["batch_size"] for point in run.points] == [4]
    assert recorder.warnings == ["batch 2 is left out: tiny: faulty: has no room for this batch"]
    assert read_record(run.folder)["notes"] == ["batch 2 left out: has no room for this batch"]
    assert {visit.batch_size for visit in recorder.visits} == {4}
