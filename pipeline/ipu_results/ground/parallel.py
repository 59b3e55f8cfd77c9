"""Run one function on many tasks, in other processes or on a dask cluster, behind one interface."""

from __future__ import annotations

import logging
import os
import pickle
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from typing import Any, Protocol, TypeVar

from ipu_results.errors import ClusterError, MissingExtraError, WorkerLostError

T = TypeVar("T")
R = TypeVar("R")
Check = Callable[[], str]

TIMEOUT = 10.0  # seconds to wait for a scheduler and for its first worker
RETRIES = 3  # how often a task may lose its worker before it is given up


class TaskPool(Protocol):
    """Workers that run a function on many tasks."""

    def map_unordered(
        self, function: Callable[[T], R], tasks: Sequence[T], check: Check | None = None
    ) -> Generator[R]:
        """Yield each result as soon as it arrives; closing the generator cancels the rest.

        Function, tasks and results must be picklable. `check` returns why a machine cannot run the
        tasks, an empty text where it can; a pool with workers on other machines calls it on each of
        them first.

        Raises what `function` raises, and WorkerLostError where a worker was killed.
        """
        ...


@dataclass(frozen=True, slots=True)
class ProcessPool:
    """Processes of this machine, one per core by default.

    With one worker or one task, this process does the work.

    Where `workers` is not set, each worker needs `tasks_per_worker` tasks: with fewer, starting it
    does not pay.
    """

    workers: int | None = None
    tasks_per_worker: int = 1

    def count_workers(self, tasks: int) -> int:
        """Return how many processes work on this number of tasks."""
        return min(
            self.workers or min(count_cores(), max(1, tasks // self.tasks_per_worker)), tasks
        )

    def map_unordered(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        check: Check | None = None,  # noqa: ARG002  (this machine sees what the caller sees)
    ) -> Generator[R]:
        workers = self.count_workers(len(tasks))
        if workers <= 1:
            yield from map(function, tasks)
            return
        pickle.dumps(tasks[0])  # raise here what cannot be sent: within the pool it may hang
        others = set(active_children())
        # spawn: a fork of a process with threads may deadlock
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            try:
                with _block_interrupts():
                    futures = [pool.submit(function, task) for task in tasks]
                for future in as_completed(futures):
                    yield future.result()
            except BrokenProcessPool as error:
                message = (
                    "a worker process was killed, perhaps for lack of memory; use fewer workers"
                )
                raise WorkerLostError(message) from error
            except BaseException:
                for worker in set(active_children()) - others:
                    worker.kill()
                raise


@dataclass(frozen=True, slots=True)
class DaskCluster:
    """The workers of a dask cluster; a task whose worker is lost goes to another one.

    `address` is that of the scheduler. Methods raise ClusterError where no scheduler or no worker
    answers within `timeout` seconds, and MissingExtraError without the package.
    """

    address: str
    timeout: float = TIMEOUT

    def map_unordered(
        self, function: Callable[[T], R], tasks: Sequence[T], check: Check | None = None
    ) -> Generator[R]:
        if not tasks:
            return
        dask = _import_distributed()
        pickle.dumps(tasks[0])  # raise here, in one line, what cannot be sent
        with _silence_log(), self._connect(dask) as client:
            self._check_workers(client, check)
            futures = client.map(
                function, tasks, pure=False, retries=RETRIES
            )  # closing the client cancels them
            try:
                for future in dask.as_completed(futures, loop=client.loop):
                    yield future.result()
            except dask.scheduler.KilledWorker as error:
                raise WorkerLostError(
                    "its workers were killed; see their logs", document=self.address
                ) from error
            except dask.CancelledError as error:
                raise ClusterError(
                    "the scheduler is gone; start again", document=self.address
                ) from error

    @contextmanager
    def _connect(self, dask: Any) -> Iterator[Any]:
        try:
            dask.comm.resolve_address(self.address)
            client = dask.Client(self.address, timeout=self.timeout, set_as_default=False)
        except ValueError as error:
            raise ClusterError(
                f"is not the address of a scheduler: {error}", document=self.address
            ) from error
        except OSError as error:
            message = f"no scheduler answers within {self.timeout:g} s: {error}"
            raise ClusterError(message, document=self.address) from error
        with client:
            yield client

    def _check_workers(self, client: Any, check: Check | None) -> None:
        """Raise ClusterError for a worker that cannot do what this machine can."""
        try:
            client.wait_for_workers(1, timeout=self.timeout)
        except TimeoutError as error:
            message = f"the scheduler has no worker within {self.timeout:g} s"
            raise ClusterError(message, document=self.address) from error
        if check is None or check():
            return
        for worker, problem in client.run(check).items():
            if problem:
                raise ClusterError(
                    f"worker {worker} cannot do the work: {problem}", document=self.address
                )


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def _import_distributed() -> Any:
    try:
        import distributed  # noqa: PLC0415  (optional, and slow to import)
    except ImportError as error:
        raise MissingExtraError(
            "a dask cluster needs dask: pip install 'ipu-results[distributed]'"
        ) from error
    return distributed


@contextmanager
def _silence_log() -> Iterator[None]:
    """Keep the client's tracebacks of lost connections off stderr; those that matter are raised as
    errors.
    """
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
