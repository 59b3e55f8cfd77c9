"""What the benchmarks of the runner share: networks, workloads, warm sessions, blocks, and how a
row is judged.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev

import onnx
from ipu_results.emulator.networks.builder import GraphBuilder
from ipu_results.emulator.networks.vision import ResNet
from ipu_results.runner.environment import announce_sweep
from ipu_results.runner.estimate import MS, Block, Estimate
from ipu_results.runner.sessions import Observer, SessionStamps

OFF = 0.05  # of the quiet machine's value: how far a row may be off without being suspect
ERRORS_95 = 1.96  # standard errors on either side contain 95 % of independent, normal means


@dataclass(frozen=True)
class LoopMean:
    """The mean over all iterations of a plain loop ± 1.96 standard errors, in ms."""

    mean_ms: float
    error_ms: float

    def contains(self, value_ms: float) -> bool:
        return abs(self.mean_ms - value_ms) <= self.error_ms


def average_loop(stamps: SessionStamps) -> LoopMean:
    """Average at least two iterations as if they were independent."""
    times: list[float] = []
    for session in stamps:
        times += [(iteration[-1] - iteration[0]) / MS for iteration in session]
    return LoopMean(fmean(times), ERRORS_95 * stdev(times) / math.sqrt(len(times)))


def contains_value(row: Estimate, value_ms: float) -> bool:
    if row.latency_ms_low is None or row.latency_ms_high is None:
        return False
    return row.latency_ms_low <= value_ms <= row.latency_ms_high


def is_off(value_ms: float, quiet_ms: float) -> bool:
    return abs(value_ms / quiet_ms - 1) > OFF


def is_misleading(row: Estimate, quiet_ms: float) -> bool:
    """Report whether a row is off, not suspect, and has an interval that lies elsewhere."""
    told = row.suspect or contains_value(row, quiet_ms)
    return is_off(row.latency_ms, quiet_ms) and not told


def measure_pace_ms(block: Block) -> float:
    """Return the milliseconds of a batch."""
    if block.kind == "amortised":
        return 1e3 * block.batch_size / block.window.throughput
    return median(block.latencies_ms)


def write_small_model(folder: Path) -> str:
    """Write a ResNeXt of four bottlenecks on images of 32 × 32, which builds and runs in no time."""
    builder = GraphBuilder(0)
    path = folder / "small.onnx"
    onnx.save(ResNet((1, 1, 1, 1), groups=4, width=1, resolution=32).build(builder, "small"), path)
    return str(path)


def write_tiny_model(folder: Path) -> str:
    """Write one dense layer on images of 8 × 8, which computes next to nothing."""
    graph = GraphBuilder(0)
    pixels = graph.add_node("Flatten", "flatten", graph.add_input("image", (3, 8, 8)))
    path = folder / "tiny.onnx"
    onnx.save(graph.build_model("tiny", graph.add_dense("classes", pixels, (192, 10)), (10,)), path)
    return str(path)


@contextmanager
def open_observer() -> Iterator[Observer]:
    """Announce this process to other sweeps and yield an observer of the machine without a power
    sensor.
    """
    with announce_sweep(f"benchmark-{os.getpid()}") as concurrent:
        yield Observer(concurrent, None, "power is not measured here", lambda _: None)
