"""Measure predictions in a fresh process and again in the same one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from benchmarks.processes import Step, run_steps
from benchmarks.report import Options, Report, ReportTable, ReportTarget

Point = tuple[str, str, int]  # network, target and micro-batch

NETWORK = "resnext101-32x4d"
C2 = "c2"
SWEEP = [(NETWORK, C2, micro) for micro in range(1, 7)]
QUICK = [("resnet50", C2, 1), ("resnet50", C2, 2)]
REPEATS = 5
WARM_REPEATS = 20
# what is aimed at
COLD_S = 1.0
WARM_MS = 10.0


def predict_points(points: Sequence[Point], warm: int) -> Iterator[Step]:
    """Build, read and predict each point in a process that has done nothing before, and then `warm`
    times again.
    """
    from ipu_results.emulator.frontend import read_program  # noqa: PLC0415
    from ipu_results.emulator.networks import build  # noqa: PLC0415
    from ipu_results.emulator.operators import Program  # noqa: PLC0415
    from ipu_results.emulator.prediction import predict  # noqa: PLC0415
    from ipu_results.emulator.split import search_splits  # noqa: PLC0415
    from ipu_results.emulator.target import load_target  # noqa: PLC0415

    start = time.perf_counter()
    models = {network: build(network) for network in dict.fromkeys(point[0] for point in points)}
    built = time.perf_counter()
    programs = {
        (network, micro): read_program(models[network], micro) for network, _, micro in points
    }
    read = time.perf_counter()

    def get_program(network: str, micro: int) -> Program:
        return programs[network, micro]

    def predict_all() -> None:
        for network, name, micro in points:
            target = load_target(name)
            predict(partial(get_program, network), target, [micro * target.chips])

    predict_all()
    cold = time.perf_counter()
    yield {
        "build": built - start,
        "read": read - built,
        "predict": cold - read,
        "seconds": cold - start,
        "warm": median(_time(predict_all) for _ in range(warm)),
        "shapes": search_splits.cache_info().currsize,
    }


def run(options: Options) -> Report:
    """Measure the speed."""
    points = QUICK if options.quick else SWEEP
    repeats = 1 if options.quick else REPEATS
    steps: list[Step] = []
    for _ in range(repeats):
        steps += run_steps(predict_points, points=points, warm=WARM_REPEATS)
    cold = _take_median(steps)
    warm_ms = 1000 * _take_median(steps, "warm")
    rows = [(f"to {part}", _take_median(steps, part)) for part in ("build", "read", "predict")]
    rows += [("cold", cold), ("warm", warm_ms / 1000)]
    name = f"a C2 sweep of {len(points)} points"
    shapes = steps[0]["shapes"]
    return Report(
        "emulator",
        f"predict {name}",
        [ReportTable("Predictions in a fresh process, and again in it", ("what", "s"), rows)],
        [
            ReportTarget(f"s, {name}, cold, imports not counted", cold, COLD_S),
            ReportTarget("ms, the sweep warm in the same process", warm_ms, WARM_MS),
        ],
        [f"Median of {repeats} runs, each in a fresh process. {shapes} shapes."],
    )


def _time(function: Callable[[], None]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _take_median(steps: Sequence[Step], name: str = "seconds") -> float:
    return float(median(step[name] for step in steps))
