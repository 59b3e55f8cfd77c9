"""Logs read by the workers of a dask cluster, which run the same function per entry as local processes do."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ipu_results.errors import ClusterError, MissingExtraError, WorkerLostError
from ipu_results.mlperf.layout import Entry
from ipu_results.mlperf.scoring import Job, Reader, Runs, read_entry

TIMEOUT = 10.0
RETRIES = 3


def on_cluster(address: str, *, timeout: float = TIMEOUT) -> Reader:
    """Read on the cluster whose scheduler has this address, and wait `timeout` seconds for it and for a worker.

    The workers read the files themselves, so a path must be one that they see. An entry whose worker is lost goes to
    another. Raises MissingExtraError, ClusterError, WorkerLostError.
    """
    return partial(_read_on_cluster, address, timeout)


def _read_on_cluster(address: str, timeout: float, jobs: Sequence[Job]) -> Generator[tuple[Entry, Runs]]:
    dask = _distributed()
    pickle.dumps(jobs[0])  # what cannot be sent is told here, in one line
    with _without_its_log(), _client(dask, address, timeout) as client:
        _check_workers(client, address, timeout, jobs)
        futures = client.map(read_entry, jobs, pure=False, retries=RETRIES)
        try:
            for done in dask.as_completed(futures, loop=client.loop):
                yield done.result()
        except dask.scheduler.KilledWorker as error:
            raise WorkerLostError("its workers were killed; nothing was written", document=address) from error
        except dask.CancelledError as error:
            raise ClusterError("the scheduler is gone; nothing was written", document=address) from error
        except BaseException:
            client.cancel(futures)
            raise


def _distributed() -> Any:
    try:
        import distributed  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("--dask needs dask: pip install 'ipu-results[distributed]'") from error
    return distributed


@contextmanager
def _without_its_log() -> Iterator[None]:
    """Its log writes tracebacks of lost connections to stderr; what matters of them is raised as an error."""
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def _client(dask: Any, address: str, timeout: float) -> Iterator[Any]:
    try:
        dask.comm.resolve_address(address)
        client = dask.Client(address, timeout=timeout, set_as_default=False)
    except ValueError as error:
        raise ClusterError(f"is no address of a scheduler: {error}", document=address) from error
    except OSError as error:
        raise ClusterError(f"no scheduler answers within {timeout:g} s: {error}", document=address) from error
    with client:
        yield client


def _check_workers(client: Any, address: str, timeout: float, jobs: Sequence[Job]) -> None:
    """A worker that does not see the data would tell of each log that it is missing."""
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        raise ClusterError(f"the scheduler has no worker within {timeout:g} s", document=address) from error
    job = next((job for job in jobs if job.entry.logs), None)
    if job is None or (here := _why_unseen(job)):
        return
    for worker, told in client.run(_why_unseen, job).items():
        if told != here:
            raise ClusterError(f"worker {worker} does not see the data: {told}", document=address)


def _why_unseen(job: Job) -> str:
    """Why the first log of an entry cannot be read here; empty where it can."""
    try:
        for _ in job.tree.chunks(f"{job.entry.full_path}/{job.entry.logs[0]}"):
            break
    except OSError as error:
        return str(error)
    return ""
