"""What the benchmarks of the runner share: networks, workloads, warm sessions, blocks, and how a
row is judged.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
import onnx
from ipu_results.emulator.networks.builder import GraphBuilder, WeightGenerator
from ipu_results.emulator.networks.vision import ResNet
from ipu_results.runner import models
from ipu_results.runner.config import Visit
from ipu_results.runner.environment import announce_sweep
from ipu_results.runner.estimate import MS, NS, Block, Estimate
from ipu_results.runner.inputs import ImageStream, generate_images
from ipu_results.runner.sessions import Observer, SessionPool, SessionStamps
from ipu_results.runner.workload import Workload, compute_reference

NETWORK = "resnext101-32x4d"
IMAGES, QUICK_IMAGES = 24, 4
SETTLED, MAX_WARM_SETS = 0.05, 8  # two medians of warm-up runs that differ by less agree
OFF = 0.05  # of the quiet machine's value: how far a row may be off without being suspect
ERRORS_95 = 1.96  # standard errors on either side contain 95 % of independent, normal means


@dataclass(frozen=True, slots=True)
class LoopMean:
    """The mean over all iterations of a plain loop ± 1.96 standard errors, in ms."""

    mean_ms: float
    error_ms: float

    def contains(self, value_ms: float) -> bool:
        return abs(self.mean_ms - value_ms) <= self.error_ms


def average_loop(stamps: SessionStamps) -> LoopMean:
    """Average at least two iterations as if they were independent."""
    times = [(end - start) / MS for session in stamps for start, *_, end in session]
    return LoopMean(fmean(times), ERRORS_95 * stdev(times) / math.sqrt(len(times)))


def contains_value(row: Estimate, value_ms: float) -> bool:
    low, high = row.latency_ms_low, row.latency_ms_high
    return low is not None and high is not None and low <= value_ms <= high


def is_off(value_ms: float, quiet_ms: float) -> bool:
    return abs(value_ms / quiet_ms - 1) > OFF


def is_misleading(row: Estimate, quiet_ms: float) -> bool:
    """Report whether a row is off, not suspect, and has an interval that lies elsewhere."""
    return (
        is_off(row.latency_ms, quiet_ms) and not row.suspect and not contains_value(row, quiet_ms)
    )


def measure_pace_ms(block: Block) -> float:
    """Return the milliseconds of a batch."""
    return (
        1e3 * block.batch_size / block.window.throughput
        if block.kind == "amortised"
        else median(block.latencies_ms)
    )


def prepare_workload(source: str, work: Path, images: int, batch: int) -> Workload:
    """Write the network and some images to `work`, with the outputs of the first `batch` of them."""
    model = models.prepare_model(source, None, work)
    names = generate_images(work / "images", images, 0)
    stream = ImageStream(work / "images", names, model.height, model.width, micro_batch=batch)
    first = np.asarray(stream.prepare(stream.load()), np.float32)
    arguments = {
        "folder": str(work / "images"),
        "names": names,
        "height": model.height,
        "width": model.width,
    }
    return Workload(model, arguments, compute_reference(model.path, first), {}, (), {})


def write_small_model(folder: Path) -> str:
    """Write a ResNeXt of four bottlenecks on images of 32 × 32, which builds and runs in no time."""
    builder = GraphBuilder(WeightGenerator(0))
    path = folder / "small.onnx"
    onnx.save(ResNet((1, 1, 1, 1), groups=4, width=1, resolution=32).build(builder, "small"), path)
    return str(path)


def write_tiny_model(folder: Path) -> str:
    """Write one dense layer on images of 8 × 8, which computes next to nothing."""
    graph = GraphBuilder(WeightGenerator(0))
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


def warm_up(pool: SessionPool, batch: int, runs: int) -> float:
    """Run until the medians of two sets in turn agree, and return the seconds of a batch."""
    pool.prepare(batch, "amortised")
    before = 0.0
    for _ in range(MAX_WARM_SETS):
        stamps = pool.run_stream(0.0, runs)
        now = median((end - start) / NS for session in stamps for start, *_, end in session)
        if abs(now - before) <= SETTLED * before:
            break
        before = now
    return now


def measure_block(
    pool: SessionPool,
    visit: Visit,
    seconds: float,
    min_batches: int,
    watch: AbstractContextManager[dict[str, Any]],
    number: int = 0,
) -> Block:
    """Measure one block with what is observed around it."""
    pool.prepare(visit.batch_size, visit.kind)
    started_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with watch as observation:
        stamps = (pool.run_stream if visit.kind == "amortised" else pool.run_isolated)(
            seconds, min_batches
        )
    return Block(
        number, visit.round, visit.batch_size, visit.kind, started_at, stamps, **observation
    )
