"""Compare an iteration of the runner's loop with the bare call of the same session, in one process."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
from ipu_results.emulator.networks.builder import GraphBuilder
from ipu_results.runner.backends import Session, SessionSpec
from ipu_results.runner.backends import onnxruntime as backend
from ipu_results.runner.worker import open_feed, read_classes, run_batches

from benchmarks.processes import take_turns
from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value

ROUNDS = 1000
QUICK_ROUNDS = 10
MAX_OVERHEAD_US = 1.0
RUN = "run alone"
READ = "run, and read the classes"
LOOP = "the loop"


class TrivialSession(Session):
    """Compute nothing."""

    def run(self, images: Any) -> Any:
        pass


@dataclass(frozen=True)
class LoopSubject:
    """A session to run in loops of `count` iterations.

    The target limits what the runner's loop adds to `base`.
    """

    name: str
    session: Session
    images: Any
    count: int
    base: str


def build_ways(subject: LoopSubject) -> dict[str, Callable[[], float]]:
    """Return functions that run batch after batch in different ways and return the µs of an
    iteration.
    """
    session = subject.session
    images = subject.images
    count = subject.count
    return {
        RUN: lambda: _time_runs(session.run, images, count),
        READ: lambda: _time_runs(lambda batch: read_classes(session.run(batch)), images, count),
        LOOP: lambda: _time_loop(session, images, count),
    }


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
            "An iteration takes five time stamps.",
            "The trivial session computes nothing. The tiny network is one dense layer from 192"
            " values to 10.",
        ],
    )


def open_subjects(folder: Path, quick: bool) -> list[LoopSubject]:
    """Return a session that does nothing, and ONNX Runtime with a tiny network on one thread."""
    share = 10 if quick else 1
    spec = SessionSpec("cpu", write_tiny_model(folder), threads=1, micro_batches=(1,))
    images = np.zeros((1, 3, 8, 8), np.float32)
    return [
        LoopSubject("a trivial session", TrivialSession(), images, 2000 // share, RUN),
        LoopSubject("onnxruntime, a tiny network", backend.open(spec), images, 200 // share, READ),
    ]


def write_tiny_model(folder: Path) -> str:
    """Write one dense layer on images of 8 × 8, which computes next to nothing."""
    graph = GraphBuilder(0)
    image = graph.add_input("image", (3, 8, 8))
    pixels = graph.add_node("Flatten", "flatten", image)
    classes = graph.add_dense("classes", pixels, (192, 10))
    path = folder / "tiny.onnx"
    onnx.save(graph.build_model("tiny", classes, (10,)), path)
    return str(path)


def tabulate_ways(subject: LoopSubject, times: Mapping[str, Sequence[float]]) -> ReportTable:
    rows: list[tuple[Value, ...]] = []
    for name, own in times.items():
        middle = median(own)
        more = middle - median(times[RUN])
        more_than_read = middle - median(times[READ])
        rows.append((name, middle, more, more_than_read))
    columns = (
        "way",
        "µs an iteration",
        "more than run alone",
        "more than run and read",
    )
    return ReportTable(f"Time of one iteration, {subject.name}", columns, rows)


def build_target(subject: LoopSubject, times: Mapping[str, Sequence[float]]) -> ReportTarget:
    name = f"µs an iteration that the loop adds to: {subject.base} ({subject.name})"
    more = median(times[LOOP]) - median(times[subject.base])
    return ReportTarget(name, more, MAX_OVERHEAD_US)


def _time_runs(run: Callable[[Any], Any], images: Any, count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        run(images)
    return (time.perf_counter_ns() - start) / 1e3 / count


def _time_loop(session: Any, images: Any, count: int) -> float:
    stream: Any = SimpleNamespace(load=lambda: None, prepare=lambda _: images)
    with open_feed(session, stream, False) as feed:
        start = time.perf_counter_ns()
        run_batches(session, feed, 0, count)
        return (time.perf_counter_ns() - start) / 1e3 / count
