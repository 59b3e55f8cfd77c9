"""Measure predictions in a fresh process and again in the same one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.processes import Step, run_steps
from benchmarks.report import Options, Report, ReportTable, ReportTarget

NETWORK = "resnext101-32x4d"
C2 = "c2"
BATCHES = 6
REPEATS = 5
WARM_REPEATS = 20
# what is aimed at
COLD_S = 1.0
WARM_MS = 10.0


def predict_sweep(network: str, batches: int, warm: int) -> Iterator[Step]:
    """Build, read and predict a network at the batch sizes from 1 on, in a process that has done
    nothing before, and then predict them `warm` times again.
    """
    from ipu_results.emulator.frontend import read_program  # noqa: PLC0415
    from ipu_results.emulator.networks import build  # noqa: PLC0415
    from ipu_results.emulator.operators import Program  # noqa: PLC0415
    from ipu_results.emulator.prediction import predict  # noqa: PLC0415
    from ipu_results.emulator.target import load_target  # noqa: PLC0415

    start = time.perf_counter()
    programs: dict[int, Program] = {}
    model = build(network)
    for micro in range(1, batches + 1):
        programs[micro] = read_program(model, micro)
    target = load_target(C2)
    times = []
    for _ in range(1 + warm):
        for micro in programs:
            predict(programs.__getitem__, target, [micro * target.chips])
        end = time.perf_counter()
        times.append(end - start)
        start = end
    cold, *again = times
    yield {"cold": cold, "warm": median(again)}


def run(options: Options) -> Report:
    """Measure the speed."""
    batches = 2 if options.quick else BATCHES
    repeats = 1 if options.quick else REPEATS
    steps: list[Step] = []
    for _ in range(repeats):
        steps += run_steps(predict_sweep, network=NETWORK, batches=batches, warm=WARM_REPEATS)
    cold = median(step["cold"] for step in steps)
    warm = median(step["warm"] for step in steps)
    name = f"a C2 sweep of {batches} points"
    rows = [("cold", cold), ("warm", warm)]
    return Report(
        "emulator",
        f"predict {name}",
        [ReportTable("Predictions in a fresh process, and again in it", ("what", "s"), rows)],
        [
            ReportTarget(f"s, {name}, cold, imports not counted", cold, COLD_S),
            ReportTarget("ms, the sweep warm in the same process", 1000 * warm, WARM_MS),
        ],
        [f"Median of {repeats} runs, each in a fresh process."],
    )
