"""What the harness costs: an iteration of a sweep's loop beside the bare call of the same session, in one process."""

from __future__ import annotations

import os
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
from ipu_results.runner.backends import Session, SessionSpec, onnxruntime
from ipu_results.runner.worker import open_feed, read_classes, run_batches

from benchmarks.options import Options
from benchmarks.report import Report, Table, Target, Value, shown
from benchmarks.runner_support import least_model

ROUNDS, QUICK_ROUNDS = 1000, 10
OVERHEAD_US = 1.0
LIBRARY, RUN, READ, STILL, LOOP, AHEAD = (
    "the library's own call",
    "run alone",
    "run, and read the classes",
    "the loop, its clock stopped",
    "the loop",
    "the loop, batches made ahead by a thread",
)
HANDED_OVER = 50  # iterations in a slice where a thread hands each batch over

Way = Callable[[], float]  # µs of one iteration


class Trivial(Session):
    """Computes nothing, and says so."""

    def run(self, images: Any) -> Any:
        pass


@dataclass(frozen=True, slots=True)
class Subject:
    """A session to loop over. `count` iterations make a slice; `over` is what its target is set against."""

    name: str
    session: Session
    images: Any
    count: int
    over: str
    library: Callable[[Any], Any] | None = None


def ways_of(one: Subject) -> dict[str, Way]:
    """Each way of doing one batch after another, as a function that takes a slice."""
    run, images, count = one.session.run, one.images, one.count
    still: Any = SimpleNamespace(run=run, clock=int)
    library = one.library
    alone: dict[str, Way] = {} if library is None else {LIBRARY: lambda: _ran(library, images, count)}
    return alone | {
        RUN: lambda: _ran(run, images, count),
        READ: lambda: _read(run, images, count),
        STILL: lambda: _looped(still, images, count, False),
        LOOP: lambda: _looped(one.session, images, count, False),
        AHEAD: lambda: _looped(one.session, images, min(count, HANDED_OVER), True),
    }


def interleaved(ways: Mapping[str, Way], rounds: int, seed: int = 0) -> dict[str, list[float]]:
    """µs of an iteration by way and round; every round takes the ways in another order."""
    names, draw = list(ways), random.Random(seed)
    found: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        ways[name]()
    for _ in range(rounds):
        for name in draw.sample(names, len(names)):
            found[name].append(ways[name]())
    return found


def difference(of: Sequence[float], to: Sequence[float]) -> tuple[float, float, float]:
    """Difference of the medians, and the quartiles of the differences round by round."""
    pairs = [one - two for one, two in zip(of, to, strict=True)]
    low, _, high = quantiles(pairs, n=4)
    return median(of) - median(to), low, high


def run(options: Options) -> Report:
    rounds, load = QUICK_ROUNDS if options.quick else ROUNDS, os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        found = [(one, interleaved(ways_of(one), rounds)) for one in subjects(Path(folder), options.quick)]
    return Report(
        "runner",
        f"overhead of the runner's loop, {rounds:,} interleaved rounds",
        [table(one, times) for one, times in found],
        [target(one, times) for one, times in found],
        [
            "Five stamps are taken in an iteration. From and to: quartiles over rounds of the difference in a round.",
            "The trivial session computes nothing; the tiny network is one dense layer from 192 values to 10.",
            "With batches made ahead a queue hands each one over between two threads, which alternate here.",
            f"Load of the machine over the last minute, before and after: {shown(load)}, {shown(os.getloadavg()[0])}.",
        ],
    )


def subjects(folder: Path, quick: bool) -> list[Subject]:
    """A session that does nothing, and ONNX Runtime with the least of networks on one thread."""
    share = 10 if quick else 1
    path = least_model(folder)
    spec = SessionSpec("cpu", str(path), threads=1, micro_batches=(1,))
    session, images = onnxruntime.open(spec), np.zeros((1, 3, 8, 8), np.float32)
    return [
        Subject("a trivial session", Trivial(), np.zeros((2, 3, 8, 8), np.float32), 2000 // share, RUN),
        Subject("onnxruntime, a tiny network", session, images, 200 // share, READ, _library(path)),
    ]


def table(one: Subject, times: Mapping[str, Sequence[float]]) -> Table:
    rows: list[tuple[Value, ...]] = [
        (name, median(some), *difference(some, times[RUN]), difference(some, times[READ])[0])
        for name, some in times.items()
    ]
    columns = ("way", "µs an iteration", "more than run alone", "from", "to", "more than run and read")
    return Table(f"Time of one iteration, {one.name}", columns, rows)


def target(one: Subject, times: Mapping[str, Sequence[float]]) -> Target:
    name = f"µs an iteration that the loop adds to: {one.over} ({one.name})"
    return Target(name, difference(times[LOOP], times[one.over])[0], OVERHEAD_US)


def _library(path: Path) -> Callable[[Any], Any]:
    import onnxruntime as library  # noqa: PLC0415

    choices = library.SessionOptions()
    choices.intra_op_num_threads = 1
    session = library.InferenceSession(path, choices, providers=["CPUExecutionProvider"])
    outputs, name = [session.get_outputs()[0].name], session.get_inputs()[0].name
    return lambda images: session.run(outputs, {name: images})[0]


def _ran(run: Callable[[Any], Any], images: Any, count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        run(images)
    return _each(start, count)


def _read(run: Callable[[Any], Any], images: Any, count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        read_classes(run(images))
    return _each(start, count)


def _looped(session: Any, images: Any, count: int, ahead: bool) -> float:
    source = SimpleNamespace(load=lambda: None, prepare=lambda _: images)
    with open_feed(session, source, ahead) as feed:
        start = time.perf_counter_ns()
        run_batches(session, feed, 0, count)
        return _each(start, count)


def _each(start: int, count: int) -> float:
    return (time.perf_counter_ns() - start) / 1e3 / count
