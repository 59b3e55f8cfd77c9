"""From a tree to its scored entries: the logs of each entry read by a worker, judged and scored here."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import active_children, get_context

from ipu_results.errors import DocumentError, UnrecognisedDocumentError, WorkerLostError
from ipu_results.mlperf.layout import Entry, Finding, Plan, plan
from ipu_results.mlperf.log import Log, read_log
from ipu_results.mlperf.rules import Rules, rules
from ipu_results.mlperf.score import Run, Scored, score
from ipu_results.mlperf.systems import System, read_system
from ipu_results.mlperf.tree import Listing, Tree, small_file

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Job:
    """The logs of one entry, for a worker."""

    tree: Tree
    entry: Entry
    digests: bool


Runs = tuple[Run, ...]
Reader = Callable[[Sequence[Job]], Generator[tuple[Entry, Runs]]]


@dataclass(frozen=True, slots=True)
class Round:
    """All that was scored under one path."""

    entries: tuple[Scored, ...]
    findings: tuple[Finding, ...]


def score_tree(
    tree: Tree,
    reader: Reader,
    *,
    digests: bool = False,
    round_: str | None = None,
    progress: Progress = lambda *_: None,
) -> Round:
    """Score every entry under `tree`. `round_` is the round of a checkout whose name tells none.

    Raises UnrecognisedDocumentError where there is no entry, WorkerLostError where a worker was killed.
    """
    known, listing = rules(), tree.listing()
    found = planned(listing, known, round_ or tree.name)
    jobs = [Job(tree, entry, digests) for entry in found.entries]
    runs: dict[Entry, Runs] = {}
    with closing(reader(jobs)) as results:
        for done, (entry, read) in enumerate(results, start=1):
            runs[entry] = read
            progress(done, len(jobs))
    return assemble(found, runs, lambda path: small_file(tree, path), known)


def planned(listing: Listing, known: Rules, name: str) -> Plan:
    """The entries of a listing. Raises UnrecognisedDocumentError where there is none."""
    found = plan(listing.paths, known, name)
    findings = (*listing.findings, *found.findings)
    if not found.entries:
        raise UnrecognisedDocumentError(_nothing(findings), document=name)
    return Plan(found.entries, findings)


def assemble(found: Plan, runs: Mapping[Entry, Runs], small: Callable[[str], bytes | None], known: Rules) -> Round:
    """Score what was read; `small` gives the bytes of a system's description or of a scaling file."""
    entries = tuple(_scored(entry, runs[entry], small, known) for entry in found.entries)
    return Round(entries, (*found.findings, *(finding for one in entries for finding in one.findings)))


def in_processes(workers: int) -> Reader:
    """Read in this process where `workers` is 1, else in as many others."""
    return partial(_read_here, workers)


def read_entry(job: Job) -> tuple[Entry, Runs]:
    """Read the logs of one entry, in whatever process; a log that cannot be read is a run that says so."""
    return job.entry, tuple(
        read_run(job.tree.chunks(f"{job.entry.full_path}/{name}"), name, job.digests) for name in job.entry.logs
    )


def _scored(entry: Entry, runs: Runs, small: Callable[[str], bytes | None], known: Rules) -> Scored:
    system, scaling, findings = System(), None, []
    try:
        system = read_system(small(entry.system_path), known)
    except (OSError, DocumentError) as error:
        system = System(findings=(f"cannot be read, the system is unknown: {_told(error)}",))
    try:
        scaling = small(entry.scaling_path)
    except (OSError, DocumentError) as error:
        scaling, findings = b"", [Finding(entry.scaling_path, f"cannot be read: {_told(error)}")]
    one = score(entry, runs, system, scaling, known)
    digest = None if findings else one.scaling_sha256
    return replace(one, scaling_sha256=digest, findings=(*findings, *one.findings))


def read_run(chunks: Iterator[bytes], name: str, digests: bool) -> Run:
    """Read one log, whatever its bytes are."""
    digest, whole = hashlib.sha256() if digests else None, False

    def hashed() -> Iterator[bytes]:
        nonlocal whole
        for chunk in chunks:
            if digest:
                digest.update(chunk)
            yield chunk
        whole = True

    try:
        log = read_log(hashed())
    except OSError as error:
        return Run(name, Log(problem=f"cannot be read: {_told(error)}"))
    return Run(name, log, digest.hexdigest() if digest and whole else None)


def _told(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _read_here(workers: int, jobs: Sequence[Job]) -> Generator[tuple[Entry, Runs]]:
    if workers == 1 or len(jobs) == 1:
        yield from map(read_entry, jobs)
        return
    pickle.dumps(jobs[0])  # what cannot be sent is told here: within the pool it may hang
    others = set(active_children())
    with ProcessPoolExecutor(min(workers, len(jobs)), mp_context=get_context("spawn")) as pool:
        try:
            with _interrupt_held():
                futures = [pool.submit(read_entry, job) for job in jobs]
            for done in as_completed(futures):
                yield done.result()
        except BrokenProcessPool as error:
            raise WorkerLostError("a worker was killed; nothing was written") from error
        except BaseException:
            for worker in set(active_children()) - others:
                worker.kill()
            raise


@contextmanager
def _interrupt_held() -> Iterator[None]:
    """Ctrl-C reaches every process of the terminal: workers started here never see it, this process afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _nothing(findings: Sequence[Finding]) -> str:
    refused = "; ".join(str(finding) for finding in findings[:3])
    return f"holds no entry <submitter>/results/<system>/<benchmark>{f' ({refused})' if refused else ''}"


def default_workers() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
