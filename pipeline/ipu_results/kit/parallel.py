"""Run one function on many tasks: in this process, or on a `concurrent.futures.Executor`.

Such an executor is a pool of processes, or a cluster: `dask.distributed.Client(…).get_executor()`.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TypeVar

from ipu_results.errors import IpuResultsError, WorkerError, WorkerLostError

T = TypeVar("T")
R = TypeVar("R")

WAITING = 64  # tasks that are submitted and not taken
KILLED = "a worker process was killed, perhaps for lack of memory; use fewer workers"


def run_tasks(
    function: Callable[[T], R],
    tasks: Sequence[T],
    executor: Executor | None = None,
    name: Callable[[T], str] = str,
) -> Generator[R]:
    """Yield each result as soon as it arrives. Without an executor, this process does the work.

    Function, tasks and results must be picklable. `name` says what a task is, for errors. Closing
    the generator cancels what has not begun.

    Raises IpuResultsErrors of `function`, WorkerLostError where a worker was killed, and
    WorkerError for anything else that went wrong in a worker.
    """
    if executor is None:
        yield from map(function, tasks)
        return
    if tasks:
        # raise here what cannot be sent: within a pool it may hang
        pickle.dumps((function, tasks[0]))
    futures: dict[Future[R], T] = {}
    try:
        with _block_interrupts():
            for task in tasks:
                futures[_submit(executor, function, task)] = task
        for future in as_completed(futures):
            # Forgotten once it is taken: thousands of results need not be in memory.
            yield _take_result(future, name(futures.pop(future)))
    finally:
        for future in futures:
            future.cancel()


def run_in_order(
    function: Callable[[T], R],
    tasks: Iterable[T],
    executor: Executor | None = None,
    name: Callable[[T], str] = str,
) -> Iterator[R]:
    """Yield the results in the order of the tasks, of which WAITING at most are in memory.

    `name` says what a task is, for errors. Raises what `run_tasks` raises.
    """
    if executor is None:
        yield from map(function, tasks)
        return
    waiting: deque[tuple[str, Future[R]]] = deque()

    def take_first() -> R:
        first, future = waiting.popleft()
        return _take_result(future, first)

    try:
        for task in tasks:
            with _block_interrupts():
                waiting.append((name(task), _submit(executor, function, task)))
            if len(waiting) == WAITING:
                yield take_first()
        while waiting:
            yield take_first()
    finally:
        for _, future in waiting:
            future.cancel()


def _submit(executor: Executor, function: Callable[[T], R], task: T) -> Future[R]:
    try:
        return executor.submit(function, task)
    except BrokenExecutor as error:
        raise WorkerLostError(KILLED) from error
    except RuntimeError as error:
        raise WorkerError(f"the executor takes no tasks: {error}") from error


def _take_result(future: Future[R], name: str) -> R:
    try:
        return future.result()
    except IpuResultsError:
        raise
    except BrokenExecutor as error:
        raise WorkerLostError(KILLED, place=f"{name} or later") from error
    except Exception as error:
        message = f"failed in a worker: {type(error).__name__}: {error}"
        raise WorkerError(message, place=name) from error


@contextmanager
def open_processes(workers: int) -> Iterator[Executor | None]:
    """Yield an executor of so many processes of this machine, or none for one worker: the caller
    does its work then.

    After an error or an interrupt, tasks in progress are killed and not waited for.
    """
    if workers <= 1:
        yield None
        return
    others = set(active_children())
    # spawn: a fork of a process with threads may deadlock
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            yield pool
        except BaseException:
            for worker in set(active_children()) - others:
                worker.kill()
            raise


def choose_workers(tasks: int, tasks_per_worker: int) -> int:
    """Return how many processes pay: one a core, each with enough tasks to be worth its start."""
    return max(1, min(count_cores(), tasks // tasks_per_worker))


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Hold back Ctrl-C, which reaches every process of the terminal: workers started here never see
    it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
