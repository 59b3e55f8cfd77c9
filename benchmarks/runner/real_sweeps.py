"""Ten sweeps of one point on this machine, half of them beside a competitor, a naive loop and LoadGen next to each."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ipu_results.runner.backends import SessionSpec
from ipu_results.runner.blocks import Block
from ipu_results.runner.concurrent_sweeps import announce_sweep
from ipu_results.runner.observer import Observer
from ipu_results.runner.plan import SweepPlan
from ipu_results.runner.sessions import SessionPool, open_sessions

from benchmarks.options import Options
from benchmarks.report import Report, shown
from benchmarks.runner_competitor import competing
from benchmarks.runner_judged import Tried, judged, reported
from benchmarks.runner_naive import LoadGen, Naive, interpreter, loadgen, naive
from benchmarks.runner_support import NETWORK, PHOTOS, QUICK_PHOTOS, Stage, measured, set_up, small_model, warmed

SWEEPS, QUICK_SWEEPS, SEED = 10, 2, 0
NO_SENSOR = "power is not looked at here"
PLAN = SweepPlan((2,), 1, block_s=1.2, iterations=6, overlap=False)
QUICK_PLAN = replace(PLAN, block_s=0.02, iterations=2, least_rounds=3, warm_runs=1)


def run(options: Options) -> Report:
    plan, sweeps = (QUICK_PLAN, QUICK_SWEEPS) if options.quick else (PLAN, SWEEPS)
    python, load = interpreter(options), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, announce_sweep(f"benchmark-{os.getpid()}") as companions:
        work = Path(folder)
        source = small_model(work) if options.quick else NETWORK
        stage = set_up(source, ["fp32"], work, QUICK_PHOTOS if options.quick else PHOTOS, plan.batch_sizes[0])
        observer = Observer(companions, None, NO_SENSOR, lambda _: None)
        found: list[Tried] = []
        for number in range(sweeps):
            found.append(tried(stage, replace(plan, seed=number), observer, python, number % 2 == 1, best_of(found)))
    report = reported(found, plan.batch_sizes[0])
    if python is None:
        report.notes.append("LoadGen was left out: install the extra loadgen, or name an interpreter with --loadgen.")
    report.notes.append(
        f"Load of the machine over the last minute, before and after: {shown(load)}, {shown(os.getloadavg()[0])}."
    )
    return report


def tried(
    stage: Stage,
    plan: SweepPlan,
    observer: Observer,
    python: Path | None,
    competitor: bool,
    best_probe_ms: float | None,
) -> Tried:
    """Open, warm up, and measure in each way for the same time, in an order of the seed's."""
    (batch,) = plan.batch_sizes
    spec = SessionSpec("cpu", str(stage.models["fp32"].path), micro_batches=(batch,))
    crew = open_sessions("onnxruntime", [spec], stage.images, overlap=plan.overlap)
    blocks: list[Block] = []
    loops: list[Naive] = []
    generated: list[LoadGen] = []
    try:
        batch_s = warmed(crew, batch, plan.warm_runs)
        seconds = plan.least_rounds * plan.estimate_round_s({batch: batch_s})
        ways: list[Callable[[], object]] = [
            lambda: blocks.extend(swept(crew, plan, observer)),
            lambda: loops.append(naive(crew, batch, seconds)),
        ]
        if python is not None:
            ways.append(lambda: generated.append(loadgen(python, crew, batch, seconds, 1e3 * batch_s)))
        random.Random(f"{SEED} {plan.seed}").shuffle(ways)
        shorter = PLAN.block_s / plan.block_s
        with competing(plan.seed if competitor else None, shorter) as spells:
            for way in ways:
                way()
    finally:
        crew.close()
    return judged(competitor, blocks, loops[0], generated[0] if generated else None, spells, best_probe_ms)


def swept(crew: SessionPool, plan: SweepPlan, observer: Observer) -> list[Block]:
    """The rounds of a sweep."""
    visits = [visit for number in range(plan.least_rounds) for visit in plan.list_visits(number)]
    return [
        measured(crew, visit, plan.block_s, plan.iterations, observer.observe(), number)
        for number, visit in enumerate(visits)
    ]


def best_of(found: Sequence[Tried]) -> float | None:
    """The least probe of all sweeps so far, which a sweep knows from those before it."""
    return min((probe for one in found for block in one.blocks for probe in block.probe_ms or ()), default=None)
