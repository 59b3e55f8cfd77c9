"""Repeat a sweep of one point on this machine, every other time with a competitor, next to a naive
loop.

The quiet machine's value is known from the blocks during which no competitor was busy.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from ipu_results.runner.backends import Device, SessionSpec
from ipu_results.runner.config import SweepConfig, SweepPlan, SweepTask
from ipu_results.runner.estimate import Block, Estimate, estimate, find_disturbances, list_probes
from ipu_results.runner.sessions import Observer, SessionPool, SessionStamps, open_sessions
from ipu_results.runner.sweep import measure_block
from ipu_results.runner.workload import Workload, prepare_workload

from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value, format_value
from benchmarks.runner.common import (
    OFF,
    LoopMean,
    average_loop,
    contains_value,
    is_misleading,
    measure_pace_ms,
    open_observer,
    write_small_model,
)
from benchmarks.runner.competitor import Spell, compute_block_share, run_competitor

NETWORK = "resnext101-32x4d"
CPU = Device("onnxruntime", "cpu", "cpu", "the CPU")
SWEEPS = 10
QUICK_SWEEPS = 2
PLAN = SweepPlan((2,), 1, block_s=1.2, iterations=6, overlap=False)
QUICK_PLAN = replace(PLAN, block_s=0.02, iterations=2, least_rounds=3, warm_runs=1)
BUSY = 0.1  # of a block's time: one core busy for that long is 5 % of a machine of two
MIN_MARKED = 90.0  # % of the blocks with a busy competitor

Rows = list[tuple[Value, ...]]


@dataclass(frozen=True)
class SweepTrial:
    """A sweep and what was measured next to it.

    `shares` of its blocks' time the competitor was busy.
    """

    competitor: bool
    row: Estimate
    blocks: Sequence[Block]
    marked: Sequence[bool]
    shares: Sequence[float]
    loop: LoopMean


def run(options: Options) -> Report:
    """Measure all sweeps; each one knows the best probe of those before it."""
    plan = QUICK_PLAN if options.quick else PLAN
    trials: list[SweepTrial] = []
    with tempfile.TemporaryDirectory() as folder, open_observer() as observer:
        work = Path(folder)
        source = write_small_model(work) if options.quick else NETWORK
        workload = prepare_workload(SweepTask(CPU, plan, SweepConfig(model=source)), work)
        for number in range(QUICK_SWEEPS if options.quick else SWEEPS):
            best = find_best_probe(trials)
            competitor = number % 2 == 1
            trials.append(
                run_trial(workload, replace(plan, seed=number), observer, competitor, best)
            )
    return build_report(trials, plan.batch_sizes[0])


def find_best_probe(trials: Sequence[SweepTrial]) -> float | None:
    probes: list[float] = []
    for trial in trials:
        probes += list_probes(trial.blocks)
    return min(probes, default=None)


def run_trial(
    workload: Workload,
    plan: SweepPlan,
    observer: Observer,
    competitor: bool,
    best_probe_ms: float | None,
) -> SweepTrial:
    """Open a session, warm it up, and measure in each way for the same time, in an order drawn by
    the plan's seed.
    """
    (batch,) = plan.batch_sizes
    blocks: list[Block] = []
    loops: list[SessionStamps] = []
    spec = SessionSpec("cpu", workload.path, micro_batches=(batch,))
    pool = open_sessions("onnxruntime", [spec], workload.inputs.stream, overlap=plan.overlap)
    with closing(pool):
        pool.prepare(batch, "amortised")
        batch_s = pool.warm_up(plan.warm_runs).batch_s
        seconds = plan.least_rounds * plan.estimate_round_s({batch: batch_s})

        def run_loop() -> None:
            pool.prepare(batch, "amortised")
            loops.append(pool.run_stream(seconds, 2))

        ways: list[Callable[[], object]] = [
            lambda: blocks.extend(measure_rounds(pool, plan, observer)),
            run_loop,
        ]
        random.Random(plan.seed).shuffle(ways)
        seed = plan.seed if competitor else None
        with run_competitor(seed, PLAN.block_s / plan.block_s) as spells:
            for way in ways:
                way()
    return judge_trial(competitor, blocks, loops[0], spells, best_probe_ms)


def measure_rounds(pool: SessionPool, plan: SweepPlan, observer: Observer) -> list[Block]:
    blocks: list[Block] = []
    for number in range(plan.least_rounds):
        for visit in plan.list_visits(number):
            blocks.append(measure_block(pool, observer, plan, visit, len(blocks)))
    return blocks


def judge_trial(
    competitor: bool,
    blocks: Sequence[Block],
    loop: SessionStamps,
    spells: Sequence[Spell],
    best_probe_ms: float | None = None,
) -> SweepTrial:
    """Estimate the row of a sweep and relate all measurements to the spells of the competitor."""
    return SweepTrial(
        competitor,
        estimate(blocks, best_probe_ms),
        blocks,
        marked=[bool(causes) for causes in find_disturbances(blocks, best_probe_ms)],
        shares=[compute_block_share(block, spells) for block in blocks],
        loop=average_loop(loop),
    )


def compute_quiet_ms(trials: Sequence[SweepTrial], kind: str = "amortised") -> float:
    """Return the median time of a batch over a kind's blocks without a busy competitor, else over
    all of them.
    """
    every: list[float] = []
    quiet: list[float] = []
    for trial in trials:
        for block, share in zip(trial.blocks, trial.shares, strict=True):
            if block.kind == kind:
                every.append(measure_pace_ms(block))
                if share == 0:
                    quiet.append(every[-1])
    return median(quiet or every)


def count_marked(trials: Sequence[SweepTrial]) -> dict[str, tuple[int, int]]:
    """Return the number of blocks of each group, and how many of them are marked as disturbed."""
    busy = f"competitor busy {BUSY:.0%} of the time or more"
    less = "competitor busy, but less"
    alone = "no competitor"
    alone_and_slow = f"no competitor, {OFF:.0%} slower than quiet"
    slow = f"{OFF:.0%} slower than quiet, for whatever reason"
    marks: dict[str, list[bool]] = {
        group: [] for group in (busy, less, alone, alone_and_slow, slow)
    }
    for trial in trials:
        for block, share, marked in zip(trial.blocks, trial.shares, trial.marked, strict=True):
            is_slow = measure_pace_ms(block) > (1 + OFF) * compute_quiet_ms(trials, block.kind)
            if share >= BUSY:
                marks[busy].append(marked)
            elif share > 0:
                marks[less].append(marked)
            else:
                marks[alone].append(marked)
                if is_slow:
                    marks[alone_and_slow].append(marked)
            if is_slow:
                marks[slow].append(marked)
    return {group: (len(own), sum(own)) for group, own in marks.items()}


def build_report(trials: Sequence[SweepTrial], batch: int) -> Report:
    """Compare sweeps and naive loops with the quiet machine's value."""
    quiet_ms = compute_quiet_ms(trials)
    counts = count_marked(trials)
    misleading = sum(is_misleading(trial.row, quiet_ms) for trial in trials)
    blocks: Rows = []
    for group, (count, part) in counts.items():
        blocks.append((group, count, part, 100 * part / count if count else None))
    report = Report(
        "runner_real",
        f"{len(trials)} sweeps of batch {batch}, every other one with a competitor",
        [
            _tabulate_sweeps(trials, quiet_ms),
            _tabulate_ways(trials, quiet_ms),
            ReportTable("Blocks marked as disturbed", ("blocks", "number", "marked", "%"), blocks),
        ],
        [ReportTarget(f"sweeps that mislead, of {len(trials)}", misleading, 0)],
        [
            f"Quiet machine: {format_value(quiet_ms)} ms a batch, the median of all blocks"
            " without a busy competitor.",
            "The naive loop ran on the same session, as long as all blocks together.",
            f"A sweep misleads if it is more than {OFF:.0%} off, not suspect, and its interval"
            " excludes quiet.",
        ],
    )
    busy, marked = next(iter(counts.values()))
    if busy:
        share = 100 * marked / busy
        report.targets.append(
            ReportTarget("% of the competitor's blocks that are marked", share, MIN_MARKED, True)
        )
    for number, trial in enumerate(trials):
        if trial.row.suspect:
            report.notes.append(f"Sweep {number} is suspect: {'; '.join(trial.row.suspect)}.")
    return report


def _tabulate_sweeps(trials: Sequence[SweepTrial], quiet_ms: float) -> ReportTable:
    rows: Rows = []
    for number, trial in enumerate(trials):
        row = trial.row
        rows.append(
            (
                number,
                _format_bool(trial.competitor),
                100 * fmean(trial.shares),
                row.latency_ms,
                row.latency_ms_low,
                row.latency_ms_high,
                _off_percent(row.latency_ms, quiet_ms),
                _format_bool(contains_value(row, quiet_ms)),
                row.disturbed_blocks,
                sum(share >= BUSY for share in trial.shares),
                _format_bool(bool(row.suspect)),
            )
        )
    columns = (
        "sweep",
        "competitor",
        "busy, %",
        "ms",
        "low",
        "high",
        "off, %",
        "interval holds",
        "blocks marked",
        "blocks with competitor",
        "suspect",
    )
    return ReportTable("Sweeps", columns, rows)


def _tabulate_ways(trials: Sequence[SweepTrial], quiet_ms: float) -> ReportTable:
    rows: Rows = []
    for name, competitor in (("no competitor", False), ("competitor", True)):
        group = [trial for trial in trials if trial.competitor == competitor]
        if not group:
            continue
        held = sum(contains_value(trial.row, quiet_ms) for trial in group)
        suspect = sum(bool(trial.row.suspect) for trial in group)
        row_ms = [trial.row.latency_ms for trial in group]
        rows.append((f"sweep, {name}", *_describe_spread(row_ms, quiet_ms), held, suspect))
        held = sum(trial.loop.contains(quiet_ms) for trial in group)
        loop_ms = [trial.loop.mean_ms for trial in group]
        rows.append((f"naive loop, {name}", *_describe_spread(loop_ms, quiet_ms), held, None))
    columns = (
        "way",
        "times",
        "median off, %",
        "max off, %",
        "max / min, %",
        "interval holds",
        "marked as bad",
    )
    return ReportTable("Relative to the quiet machine's value", columns, rows)


def _describe_spread(values: Sequence[float], quiet_ms: float) -> tuple[Value, ...]:
    """Return how many values there are, the median and the worst of how far they are off, and their
    range.
    """
    off = [abs(_off_percent(value, quiet_ms)) for value in values]
    return len(values), median(off), max(off), 100 * (max(values) / min(values) - 1)


def _off_percent(value: float, quiet_ms: float) -> float:
    return 100 * (value / quiet_ms - 1)


def _format_bool(value: bool) -> str:
    return "yes" if value else "no"
