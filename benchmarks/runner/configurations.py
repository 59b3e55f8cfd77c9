"""Compare the best configuration of this CPU with torch eager, plain ONNX Runtime and the machine's
fp32 peak.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
from ipu_results.errors import BackendError
from ipu_results.runner.config import Visit, count_cores
from ipu_results.runner.estimate import DEFAULT, Block, Estimate, estimate, group_by_round
from ipu_results.runner.sessions import Observer, SessionPool
from ipu_results.runner.workload import compare_outputs

from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value, format_value
from benchmarks.runner.common import measure_block, open_observer, warm_up
from benchmarks.runner.contenders import (
    Contender,
    ContenderFactory,
    list_contenders,
    prepare_factory,
)
from benchmarks.runner.plain_sessions import ONNXRUNTIME, TORCH

PRECISIONS = {"onnxruntime": ("fp32", "int8"), "openvino": ("fp32", "bf16", "int8")}
MIN_COSINE = 0.9999  # of torch's outputs with the reference's
FLOP, SMALL_FLOP = (
    15.94e9,
    2e6,
)  # of one image, twice the multiply-accumulates; the small network's roughly
BEST, BEST_FP32, PLAIN, EAGER = "the best", "the best in fp32", "plain onnxruntime", "torch eager"
MIN_TO_EAGER, MIN_TO_PLAIN, MIN_PERCENT_OF_PEAK = 1.5, 1.0, 70.0


@dataclass(frozen=True, slots=True)
class ComparisonSize:
    """How much is measured.

    Seconds and iterations are minimums of a block; `side` is that of the square matrices.
    """

    batches: tuple[int, ...] = (2, 8)
    sessions: tuple[int, ...] = (1, 2)
    scan_s: float = 1.5
    scan_runs: int = 3
    rounds: int = 6
    block_s: float = 2.0
    iterations: int = 4
    side: int = 4096
    warm_runs: int = 2
    precisions: Mapping[str, Sequence[str]] = field(default_factory=lambda: PRECISIONS)


QUICK = ComparisonSize(
    (2,), (2,), 0.02, 1, 2, 0.02, 1, 256, 1, {"onnxruntime": ("fp32",), "openvino": ("int8",)}
)


@dataclass(frozen=True, slots=True)
class ScannedPoint:
    """One short block of a contender: images per second, min cosine with fp32, precision that the
    session reports.
    """

    contender: Contender
    batch: int
    throughput: float
    cosine: float | None
    precision: str


@dataclass(frozen=True, slots=True)
class ComparedPoint:
    """A chosen point with its blocks in the interleaved rounds."""

    name: str
    point: ScannedPoint
    row: Estimate
    blocks: Sequence[Block]

    def compute_ratio(self, other: ComparedPoint) -> float:
        """Return the median over rounds of this throughput divided by the other's."""
        return median(
            a / b
            for a, b in zip(group_by_round(self.blocks), group_by_round(other.blocks), strict=True)
        )


def run(options: Options) -> Report:
    """Scan every configuration once, then measure the fastest ones in interleaved rounds."""
    size = QUICK if options.quick else ComparisonSize()
    uses_int8 = any("int8" in precisions for precisions in size.precisions.values())
    with tempfile.TemporaryDirectory() as folder, open_observer() as observer:
        factory = prepare_factory(
            Path(folder), options, ["fp32", "int8"] if uses_int8 else ["fp32"], max(size.batches)
        )
        scanned, excluded = scan(factory, size)
        compared, peak = compare(factory, size, choose_points(scanned), observer)
    report = build_report(scanned, compared, peak, SMALL_FLOP if options.quick else FLOP)
    report.notes += [f"Excluded: {reason}." for reason in excluded]
    if options.torch is None:
        report.notes.append(
            "NOT COMPARED with torch: name an interpreter that has it with --torch PYTHON."
        )
    return report


def scan(factory: ContenderFactory, size: ComparisonSize) -> tuple[list[ScannedPoint], list[str]]:
    """Measure a short block of every contender at every batch size.

    Also return which are not available, and why.
    """
    points: list[ScannedPoint] = []
    excluded: list[str] = []
    for contender in list_contenders(
        size.precisions, size.sessions, count_cores(), factory.torch is not None
    ):
        try:
            points += _scan_contender(factory, size, contender)
        except BackendError as error:
            excluded.append(f"{contender.name}: {error}")
    return points, excluded


def _scan_contender(
    factory: ContenderFactory, size: ComparisonSize, contender: Contender
) -> list[ScannedPoint]:
    pool = factory.open_pool(contender, size.batches)
    points = []
    try:
        for batch in size.batches:
            pool.prepare(batch, "amortised")
            reference = factory.workloads["fp32"].select_reference(batch, contender.sessions)
            assert reference is not None
            cosine, _ = compare_outputs(pool.compute_outputs(batch), reference)
            if contender.backend == TORCH and not (cosine and cosine >= MIN_COSINE):
                raise RuntimeError(
                    f"torch computes another network: the outputs' cosine is {cosine}"
                )
            warm_up(pool, batch, size.warm_runs)
            visit = Visit(0, batch, "amortised")
            block = measure_block(pool, visit, size.scan_s, size.scan_runs, nullcontext({}))
            precision = pool.facts.compute_precision
            points.append(
                ScannedPoint(contender, batch, block.window.throughput, cosine, precision)
            )
    finally:
        pool.close()
    return points


def choose_points(points: Sequence[ScannedPoint]) -> dict[str, ScannedPoint]:
    """Return the fastest of all, the fastest in fp32, of plain ONNX Runtime and of torch, each at
    its best batch.
    """
    tuned = [point for point in points if not point.contender.plain]
    plain = [point for point in points if point.contender.plain]
    groups = {
        BEST: tuned,
        BEST_FP32: [point for point in tuned if point.contender.precision == "fp32"],
        PLAIN: [point for point in plain if point.contender.backend == ONNXRUNTIME],
        EAGER: [point for point in plain if point.contender.backend == TORCH],
    }
    return {
        name: max(group, key=lambda point: point.throughput)
        for name, group in groups.items()
        if group
    }


def compare(
    factory: ContenderFactory,
    size: ComparisonSize,
    chosen: Mapping[str, ScannedPoint],
    observer: Observer,
) -> tuple[list[ComparedPoint], list[float]]:
    """Measure the chosen points in interleaved rounds, all open at once; and GFLOP/s of a matrix
    product by round.
    """
    blocks: dict[ScannedPoint, list[Block]] = {point: [] for point in chosen.values()}
    peak: list[float] = []
    with ExitStack() as stack:
        pools: dict[ScannedPoint, SessionPool] = {}
        for point in blocks:
            pools[point] = factory.open_pool(point.contender, [point.batch])
            stack.callback(pools[point].close)
            warm_up(pools[point], point.batch, size.warm_runs)
        for number in range(size.rounds):
            peak.append(max(measure_product_gflops(size.side) for _ in range(2)))
            for point in random.Random(number).sample(list(pools), len(pools)):
                visit, own = Visit(number, point.batch, "amortised"), blocks[point]
                watch = observer.observe()
                own.append(
                    measure_block(
                        pools[point], visit, size.block_s, size.iterations, watch, len(own)
                    )
                )
    best = min(probe for own in blocks.values() for block in own for probe in block.probe_ms or ())
    rows = {point: estimate(own, DEFAULT, best) for point, own in blocks.items()}
    return [
        ComparedPoint(name, point, rows[point], blocks[point]) for name, point in chosen.items()
    ], peak


def measure_product_gflops(side: int) -> float:
    """Multiply square fp32 matrices by numpy's BLAS on all cores."""
    left, right = (
        np.random.default_rng(seed).random((side, side), np.float32) for seed in range(2)
    )
    start = time.perf_counter()
    np.matmul(left, right)
    return 2 * side**3 / (time.perf_counter() - start) / 1e9


def build_report(
    scanned: Sequence[ScannedPoint],
    compared: Sequence[ComparedPoint],
    peak: Sequence[float],
    flop: float,
) -> Report:
    """Report ratios and shares of the peak: GFLOP/s of a matrix product by round.

    `flop` are those of one image.
    """
    by_name = {point.name: point for point in compared}
    best, fp32, plain, eager = (by_name.get(name) for name in (BEST, BEST_FP32, PLAIN, EAGER))
    gflops = {point.name: point.row.throughput * flop / 1e9 for point in compared}
    percent = {name: 100 * own / max(peak) for name, own in gflops.items()}
    targets: list[ReportTarget] = []
    if best and eager:
        targets.append(
            ReportTarget(f"{BEST} / {EAGER}", best.compute_ratio(eager), MIN_TO_EAGER, True)
        )
    if best and plain:
        targets.append(
            ReportTarget(f"{BEST} / {PLAIN}", best.compute_ratio(plain), MIN_TO_PLAIN, True)
        )
    if fp32:
        targets.append(
            ReportTarget(
                f"% of the fp32 peak, {BEST_FP32}", percent[BEST_FP32], MIN_PERCENT_OF_PEAK, True
            )
        )
    rows: list[tuple[Value, ...]] = [
        (
            *(
                own.name,
                own.point.contender.name,
                own.point.precision,
                own.point.batch,
                own.row.throughput,
            ),
            *(
                _to_throughput(own, own.row.latency_ms_high),
                _to_throughput(own, own.row.latency_ms_low),
            ),
            *(
                own.row.infer_ms,
                *(own.compute_ratio(other) if other else None for other in (eager, plain)),
            ),
            *(gflops[own.name], percent[own.name], own.point.cosine),
        )
        for own in compared
    ]
    columns = (
        *(
            "configuration",
            "which, sessions × threads",
            "computes in",
            "batch",
            "images/s",
            "low",
            "high",
            "infer ms",
        ),
        *("/ torch eager", "/ plain", "GFLOP/s", "% of the fp32 peak", "min cosine"),
    )
    return Report(
        "runner_configurations",
        f"{len(compared)} of {len(scanned)} configurations in interleaved rounds",
        [ReportTable("Interleaved rounds", columns, rows), _tabulate_scan(scanned)],
        targets,
        [
            (
                f"Peak: {format_value(max(peak))} GFLOP/s, the fastest of {len(peak)} products of"
                " fp32 matrices by numpy's BLAS, on all cores before each round; their median is"
                f" {format_value(median(peak))}."
            ),
            "Every configuration decodes and crops its images, and its time includes that.",
            (
                "The scan chose each point and its batch size; the figures are those of the rounds"
                " after it."
            ),
            *(
                f"{own.name} is suspect: {'; '.join(own.row.suspect)}."
                for own in compared
                if own.row.suspect
            ),
        ],
    )


def _to_throughput(own: ComparedPoint, latency_ms: float | None) -> float | None:
    return None if latency_ms is None else 1e3 * own.point.batch / latency_ms


def _tabulate_scan(scanned: Sequence[ScannedPoint]) -> ReportTable:
    rows = [
        (point.contender.name, point.precision, point.batch, point.throughput, point.cosine)
        for point in sorted(scanned, key=lambda point: -point.throughput)
    ]
    columns = ("configuration", "computes in", "batch", "images/s", "min cosine with fp32")
    return ReportTable("One short block of each", columns, rows)
