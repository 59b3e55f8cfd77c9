"""Repeat a sweep of one point on this machine, every other time with a competitor, next to a naive
loop.

The quiet machine's value is known from the blocks during which no competitor was busy.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from ipu_results.runner.backends import SessionSpec
from ipu_results.runner.config import SweepPlan
from ipu_results.runner.estimate import DEFAULT, Block, Estimate, estimate, find_disturbances
from ipu_results.runner.sessions import Observer, SessionPool, SessionStamps, open_sessions
from ipu_results.runner.workload import Workload

from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value, format_value
from benchmarks.runner.common import (
    IMAGES,
    NETWORK,
    OFF,
    QUICK_IMAGES,
    LoopMean,
    average_loop,
    contains_value,
    is_misleading,
    measure_block,
    measure_pace_ms,
    open_observer,
    prepare_workload,
    warm_up,
    write_small_model,
)
from benchmarks.runner.competitor import Spell, compute_block_share, run_competitor

SWEEPS, QUICK_SWEEPS = 10, 2
PLAN = SweepPlan((2,), 1, block_s=1.2, iterations=6, overlap=False)
QUICK_PLAN = replace(PLAN, block_s=0.02, iterations=2, least_rounds=3, warm_runs=1)
BUSY = 0.1  # of a block's time: one core busy for that long is 5 % of a machine of two
MIN_MARKED = 90.0  # % of the blocks with a busy competitor

Rows = list[tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
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
    plan, sweeps = (QUICK_PLAN, QUICK_SWEEPS) if options.quick else (PLAN, SWEEPS)
    with tempfile.TemporaryDirectory() as folder, open_observer() as observer:
        work = Path(folder)
        source, images = (
            (write_small_model(work), QUICK_IMAGES) if options.quick else (NETWORK, IMAGES)
        )
        workload = prepare_workload(source, work, images, plan.batch_sizes[0])
        trials: list[SweepTrial] = []
        for number in range(sweeps):
            seeded, best = replace(plan, seed=number), find_best_probe(trials)
            trials.append(run_trial(workload, seeded, observer, number % 2 == 1, best))
    return build_report(trials, plan.batch_sizes[0])


def find_best_probe(trials: Sequence[SweepTrial]) -> float | None:
    return min(
        (probe for trial in trials for block in trial.blocks for probe in block.probe_ms or ()),
        default=None,
    )


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
    spec = SessionSpec("cpu", str(workload.model.path), micro_batches=(batch,))
    pool = open_sessions("onnxruntime", [spec], workload.images, overlap=plan.overlap)
    try:
        batch_s = warm_up(pool, batch, plan.warm_runs)
        seconds = plan.least_rounds * plan.estimate_round_s({batch: batch_s})

        def run_loop() -> None:
            pool.prepare(batch, "amortised")
            loops.append(pool.run_stream(seconds, 2))

        ways: list[Callable[[], object]] = [
            lambda: blocks.extend(measure_rounds(pool, plan, observer)),
            run_loop,
        ]
        random.Random(plan.seed).shuffle(ways)
        with run_competitor(
            plan.seed if competitor else None, PLAN.block_s / plan.block_s
        ) as spells:
            for way in ways:
                way()
    finally:
        pool.close()
    return judge_trial(competitor, blocks, loops[0], spells, best_probe_ms)


def measure_rounds(pool: SessionPool, plan: SweepPlan, observer: Observer) -> list[Block]:
    visits = [visit for number in range(plan.least_rounds) for visit in plan.list_visits(number)]
    return [
        measure_block(pool, visit, plan.block_s, plan.iterations, observer.observe(), number)
        for number, visit in enumerate(visits)
    ]


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
        estimate(blocks, DEFAULT, best_probe_ms),
        blocks,
        marked=[bool(causes) for causes in find_disturbances(blocks, DEFAULT, best_probe_ms)],
        shares=[compute_block_share(block, spells) for block in blocks],
        loop=average_loop(loop),
    )


def compute_quiet_ms(trials: Sequence[SweepTrial], kind: str = "amortised") -> float:
    """Return the median time of a batch over a kind's blocks without a busy competitor, else over
    all of them.
    """
    pairs = [
        (measure_pace_ms(block), share)
        for trial in trials
        for block, share in zip(trial.blocks, trial.shares, strict=True)
        if block.kind == kind
    ]
    return median([pace for pace, share in pairs if share == 0] or [pace for pace, _ in pairs])


def count_marked(trials: Sequence[SweepTrial]) -> dict[str, tuple[int, int]]:
    """Return the number of blocks of each group, and how many of them are marked as disturbed."""
    quiet = {
        kind: compute_quiet_ms(trials, kind)
        for kind in {block.kind for trial in trials for block in trial.blocks}
    }
    blocks = [
        (share, measure_pace_ms(block) > (1 + OFF) * quiet[block.kind], marked)
        for trial in trials
        for block, share, marked in zip(trial.blocks, trial.shares, trial.marked, strict=True)
    ]
    groups: dict[str, Callable[[float, bool], bool]] = {
        f"competitor busy {BUSY:.0%} of the time or more": lambda share, _: share >= BUSY,
        "competitor busy, but less": lambda share, _: 0 < share < BUSY,
        "no competitor": lambda share, _: share == 0,
        f"no competitor, {OFF:.0%} slower than quiet": lambda share, slow: share == 0 and slow,
        f"{OFF:.0%} slower than quiet, for whatever reason": lambda _, slow: slow,
    }
    marks = {
        name: [marked for share, slow, marked in blocks if belongs(share, slow)]
        for name, belongs in groups.items()
    }
    return {name: (len(group), sum(group)) for name, group in marks.items()}


def build_report(trials: Sequence[SweepTrial], batch: int) -> Report:
    """Compare sweeps and naive loops with the quiet machine's value."""
    quiet_ms, counts = compute_quiet_ms(trials), count_marked(trials)
    busy, marked = next(iter(counts.values()))
    misleading = sum(is_misleading(trial.row, quiet_ms) for trial in trials)
    blocks: Rows = [
        (name, count, part, 100 * part / count if count else None)
        for name, (count, part) in counts.items()
    ]
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
            (
                f"Quiet machine: {format_value(quiet_ms)} ms a batch, the median of all blocks"
                " without a busy competitor."
            ),
            ("The naive loop ran on the same session, as long as all blocks together."),
            (
                f"A sweep misleads if it is more than {OFF:.0%} off, not suspect, and its interval"
                " excludes quiet."
            ),
        ],
    )
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
    rows: Rows = [
        (
            *(number, _format_bool(trial.competitor), 100 * fmean(trial.shares)),
            *(trial.row.latency_ms, trial.row.latency_ms_low, trial.row.latency_ms_high),
            *(
                _off_percent(trial.row.latency_ms, quiet_ms),
                _format_bool(contains_value(trial.row, quiet_ms)),
            ),
            *(trial.row.disturbed_blocks, sum(share >= BUSY for share in trial.shares)),
            _format_bool(bool(trial.row.suspect)),
        )
        for number, trial in enumerate(trials)
    ]
    columns = (
        *("sweep", "competitor", "busy, %", "ms", "low", "high", "off, %", "interval holds"),
        *("blocks marked", "blocks with competitor", "suspect"),
    )
    return ReportTable("Sweeps", columns, rows)


def _tabulate_ways(trials: Sequence[SweepTrial], quiet_ms: float) -> ReportTable:
    rows: Rows = []
    for name, competitor in (("no competitor", False), ("competitor", True)):
        some = [trial for trial in trials if trial.competitor == competitor]
        held = sum(contains_value(trial.row, quiet_ms) for trial in some)
        loops_held = sum(trial.loop.contains(quiet_ms) for trial in some)
        suspect = sum(bool(trial.row.suspect) for trial in some)
        ways: list[tuple[str, list[float], int, int | None]] = [
            ("sweep", [trial.row.latency_ms for trial in some], held, suspect),
            ("naive loop", [trial.loop.mean_ms for trial in some], loops_held, None),
        ]
        for way, values, holds, bad in ways:
            if values:
                off = [abs(_off_percent(value, quiet_ms)) for value in values]
                spread = 100 * (max(values) / min(values) - 1)
                rows.append(
                    (f"{way}, {name}", len(values), median(off), max(off), spread, holds, bad)
                )
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


def _off_percent(value: float, quiet_ms: float) -> float:
    return 100 * (value / quiet_ms - 1)


def _format_bool(value: bool) -> str:
    return "yes" if value else "no"
