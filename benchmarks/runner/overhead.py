"""Compare an iteration of the runner's loop with the bare call of the same session, in one process."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
from ipu_results.runner.backends import Session, SessionSpec
from ipu_results.runner.backends import onnxruntime as backend
from ipu_results.runner.worker import open_feed, read_classes, run_batches

from benchmarks.processes import take_turns
from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value
from benchmarks.runner.common import write_tiny_model

ROUNDS, QUICK_ROUNDS = 1000, 10
MAX_OVERHEAD_US = 1.0
AHEAD_ITERATIONS = 50  # of a slice in which a thread hands each batch over
LIBRARY, RUN, READ, STOPPED, LOOP, AHEAD = (
    "the library's own call",
    "run alone",
    "run, and read the classes",
    "the loop, its clock stopped",
    "the loop",
    "the loop, batches made ahead by a thread",
)


class TrivialSession(Session):
    """Compute nothing."""

    def run(self, images: Any) -> Any:
        pass


@dataclass(frozen=True, slots=True)
class LoopSubject:
    """A session to run in loops of `count` iterations.

    The target limits what the runner's loop adds to `base`.
    """

    name: str
    session: Session
    images: Any
    count: int
    base: str
    library: Callable[[Any], Any] | None = None


def build_ways(subject: LoopSubject) -> dict[str, Callable[[], float]]:
    """Return functions that run batch after batch in different ways and return the µs of an
    iteration.
    """
    session, images, count = subject.session, subject.images, subject.count
    stopped = SimpleNamespace(run=session.run, clock=int)
    library = subject.library
    own: dict[str, Callable[[], float]] = (
        {LIBRARY: lambda: _time_runs(library, images, count)} if library else {}
    )
    return own | {
        RUN: lambda: _time_runs(session.run, images, count),
        READ: lambda: _time_reads(session.run, images, count),
        STOPPED: lambda: _time_loop(stopped, images, count, False),
        LOOP: lambda: _time_loop(session, images, count, False),
        AHEAD: lambda: _time_loop(session, images, min(count, AHEAD_ITERATIONS), True),
    }


def compare_times(times: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """Return the difference of the medians, and the quartiles of the differences round by round."""
    low, _, high = quantiles([own - other for own, other in zip(times, base, strict=True)], n=4)
    return median(times) - median(base), low, high


def run(options: Options) -> Report:
    """Measure all ways in turns, in another order each round, after one unmeasured round."""
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for subject in open_subjects(Path(folder), options.quick):
            ways = build_ways(subject)
            take_turns(ways, 1)
            results.append((subject, take_turns(ways, rounds, random.Random(0))))
    return Report(
        "runner",
        f"overhead of the runner's loop, {rounds:,} interleaved rounds",
        [tabulate_ways(subject, times) for subject, times in results],
        [build_target(subject, times) for subject, times in results],
        [
            (
                "An iteration takes five time stamps. From and to: quartiles over rounds of the"
                " difference in a round."
            ),
            (
                "The trivial session computes nothing. The tiny network is one dense layer from 192"
                " values to 10."
            ),
            (
                "With batches made ahead a queue passes each one between two threads, which"
                " alternate here."
            ),
        ],
    )


def open_subjects(folder: Path, quick: bool) -> list[LoopSubject]:
    """Return a session that does nothing, and ONNX Runtime with a tiny network on one thread."""
    share, path = 10 if quick else 1, write_tiny_model(folder)
    session = backend.open(SessionSpec("cpu", path, threads=1, micro_batches=(1,)))
    images = np.zeros((1, 3, 8, 8), np.float32)
    return [
        LoopSubject(
            "a trivial session",
            TrivialSession(),
            np.zeros((2, 3, 8, 8), np.float32),
            2000 // share,
            RUN,
        ),
        LoopSubject(
            "onnxruntime, a tiny network", session, images, 200 // share, READ, _open_library(path)
        ),
    ]


def tabulate_ways(subject: LoopSubject, times: Mapping[str, Sequence[float]]) -> ReportTable:
    rows: list[tuple[Value, ...]] = [
        (name, median(own), *compare_times(own, times[RUN]), compare_times(own, times[READ])[0])
        for name, own in times.items()
    ]
    columns = (
        "way",
        "µs an iteration",
        "more than run alone",
        "from",
        "to",
        "more than run and read",
    )
    return ReportTable(f"Time of one iteration, {subject.name}", columns, rows)


def build_target(subject: LoopSubject, times: Mapping[str, Sequence[float]]) -> ReportTarget:
    name = f"µs an iteration that the loop adds to: {subject.base} ({subject.name})"
    return ReportTarget(name, compare_times(times[LOOP], times[subject.base])[0], MAX_OVERHEAD_US)


def _open_library(path: str) -> Callable[[Any], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    outputs, name = [session.get_outputs()[0].name], session.get_inputs()[0].name
    return lambda images: session.run(outputs, {name: images})[0]


def _time_runs(run: Callable[[Any], Any], images: Any, count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        run(images)
    return _divide_time(start, count)


def _time_reads(run: Callable[[Any], Any], images: Any, count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        read_classes(run(images))
    return _divide_time(start, count)


def _time_loop(session: Any, images: Any, count: int, ahead: bool) -> float:
    stream = SimpleNamespace(load=lambda: None, prepare=lambda _: images)
    with open_feed(session, stream, ahead) as feed:
        start = time.perf_counter_ns()
        run_batches(session, feed, 0, count)
        return _divide_time(start, count)


def _divide_time(start: int, count: int) -> float:
    return (time.perf_counter_ns() - start) / 1e3 / count
