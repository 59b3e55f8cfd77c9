"""Tasks are run here or by an executor, whatever happens to its workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from multiprocessing import active_children
from pathlib import Path

import pytest
from ipu_results.errors import InconsistentModelError, WorkerError, WorkerLostError
from ipu_results.kit import parallel
from ipu_results.kit.parallel import choose_workers, open_processes, run_in_order, run_tasks

from tests.conftest import ROOT


def square(number: int) -> int:
    if number == -1:
        raise ValueError("is negative")
    if number < -1:
        raise InconsistentModelError("is very negative")
    return number * number


def kill_worker(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def finish_later(path: Path | None) -> None:
    if path is None:
        raise ValueError("no path")
    time.sleep(20)
    path.touch()


def touch_and_wait(path: str) -> None:
    Path(path).touch()
    time.sleep(60)


@pytest.fixture(params=["here", "threads", "processes"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    if request.param == "here":
        yield None
    elif request.param == "threads":
        with ThreadPoolExecutor(2) as threads:
            yield threads
    else:
        with open_processes(2) as processes:
            yield processes


@pytest.mark.slow
def test_every_task_has_a_result(executor: Executor | None) -> None:
    squares = [number * number for number in range(20)]
    assert sorted(run_tasks(square, range(20), executor)) == squares
    assert list(run_tasks(square, [], executor)) == []
    with pytest.raises(InconsistentModelError, match=r"^is very negative$"):
        list(run_tasks(square, [1, -2], executor))


def test_a_failure_in_a_worker_names_the_task() -> None:
    with ThreadPoolExecutor(1) as threads:
        tasks = run_tasks(square, [1, -1], threads, "number {}".format)
        message = r"^number -1: failed in a worker: ValueError: is negative$"
        with pytest.raises(WorkerError, match=message):
            list(tasks)


def test_what_cannot_be_sent_is_raised_at_once() -> None:
    with ThreadPoolExecutor(1) as threads, pytest.raises(Exception, match="pickle"):
        list(run_tasks(lambda number: number, [1], threads))


def test_an_executor_that_takes_no_tasks_is_an_error() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(WorkerError, match="takes no tasks: cannot schedule new futures"):
        list(run_tasks(square, [1], pool))


def test_a_second_worker_starts_only_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "count_cores", lambda: 2)
    assert [choose_workers(tasks, 500) for tasks in (0, 262, 1000, 9000)] == [1, 1, 2, 2]
    with open_processes(1) as executor:
        assert executor is None


@pytest.mark.slow
def test_a_killed_process_is_an_error() -> None:
    message = "1 or later: a worker process was killed, perhaps for lack of memory"
    with open_processes(2) as executor, pytest.raises(WorkerLostError, match=message):
        list(run_tasks(kill_worker, [1], executor))


@pytest.mark.slow
def test_an_error_ends_the_processes(tmp_path: Path) -> None:
    before = set(active_children())
    tasks = [tmp_path / "finished", None]
    with pytest.raises(WorkerError, match="no path"), open_processes(2) as executor:
        list(run_tasks(finish_later, tasks, executor))
    assert set(active_children()) == before
    assert not (tmp_path / "finished").exists()


INTERRUPTED = """
import sys
from ipu_results.kit.parallel import open_processes, run_tasks
from tests.kit.test_parallel import touch_and_wait
try:
    with open_processes(2) as executor:
        list(run_tasks(touch_and_wait, sys.argv[1:] * 4, executor))
except KeyboardInterrupt:
    print("interrupted")
"""


def fail_at_two(task: int) -> int:
    if task == 2:
        raise ValueError("two")
    return task


def test_results_in_order_and_the_task_that_fails_is_named() -> None:
    with ThreadPoolExecutor(2) as executor:
        assert list(run_in_order(abs, range(-100, 0), executor)) == list(range(100, 0, -1))
        results = run_in_order(fail_at_two, range(100), executor, lambda task: f"task {task}")
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(WorkerError, match=r"^task 2: failed in a worker: ValueError: two$"):
            next(results)


@pytest.mark.slow
def test_ctrl_c_reaches_this_process_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, tmp_path / "begun"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, cwd=ROOT, text=True, start_new_session=True
    ) as process:
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=50) == ("interrupted\n", "")  # each task takes 60 s
