"""Measure predictions in a fresh process and again in the same one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from benchmarks.processes import Step, run_steps
from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value

Point = tuple[str, str, int]  # network, target and micro-batch

NETWORK = "resnext101-32x4d"
C2 = "c2"
MK2 = "m2000"
BOW = "bow-2000"
SWEEP = [(NETWORK, C2, micro) for micro in range(1, 7)]
DEVELOPMENT = [(NETWORK, MK2, micro) for micro in (1, 2, 4, 8, 16)]
DEVELOPMENT += [("resnext101-32x8d", MK2, micro) for micro in (1, 2, 4, 16)]
DEVELOPMENT += [("efficientnet-b4", MK2, micro) for micro in (1, 4, 6, 8, 10)]
DEVELOPMENT += [(network, MK2, 1) for network in ("resnet50", "efficientnet-b0")]
DEVELOPMENT += [(network, BOW, 1) for network in ("resnet50", "efficientnet-b0", "efficientnet-b4")]
QUICK = [("resnet50", C2, 1), ("resnet50", C2, 2)]
REPEATS = 5
WARM_REPEATS = 20
# what is aimed at
COLD_S = 1.0
WARM_MS = 10.0
DEVELOPMENT_S = 5.0


def import_modules() -> Iterator[Step]:
    """Time the imports, which every prediction needs first."""
    start = time.perf_counter()
    import ipu_results.emulator.networks  # noqa: F401, PLC0415
    import ipu_results.emulator.prediction  # noqa: F401, PLC0415

    yield {"seconds": time.perf_counter() - start}


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
    sweep = QUICK if options.quick else SWEEP
    development = QUICK if options.quick else DEVELOPMENT
    repeats = 1 if options.quick else REPEATS
    imports: list[Step] = []
    cold: list[Step] = []
    others: list[Step] = []
    for _ in range(repeats):
        imports += run_steps(import_modules)
        cold += run_steps(predict_points, points=sweep, warm=WARM_REPEATS)
        others += run_steps(predict_points, points=development, warm=1)
    return Report(
        "emulator",
        f"predict a C2 sweep of {len(sweep)} points and {len(development)} points of other"
        " machines",
        [
            _tabulate_times(imports, cold, others, (len(sweep), len(development))),
        ],
        [
            ReportTarget(
                f"s, cold sweep of {len(sweep)} points, imports not counted",
                _take_median(cold),
                COLD_S,
            ),
            ReportTarget(
                "ms, the sweep warm in the same process", 1000 * _take_median(cold, "warm"), WARM_MS
            ),
            ReportTarget(
                f"s, {len(development)} points of other machines, cold",
                _take_median(others),
                DEVELOPMENT_S,
            ),
        ],
        [
            f"Median of {repeats} interleaved runs, each in a fresh process.",
        ],
    )


def _time(function: Callable[[], None]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _take_median(steps: Sequence[Step], name: str = "seconds") -> float:
    return float(median(step[name] for step in steps))


def _tabulate_times(
    imports: Sequence[Step], cold: Sequence[Step], others: Sequence[Step], points: tuple[int, int]
) -> ReportTable:
    alone = _take_median(imports)
    rows: list[tuple[Value, ...]] = [
        ("the imports alone", None, None, None, None, None, alone, 1.0, None)
    ]
    for name, steps, count in (
        ("C2 sweep", cold, points[0]),
        ("other machines", others, points[1]),
    ):
        parts = [_take_median(steps, part) for part in ("build", "read", "predict", "seconds")]
        rows.append(
            (
                name,
                count,
                steps[0]["shapes"],
                *parts,
                parts[-1] / alone,
                1000 * _take_median(steps, "warm"),
            )
        )
    columns = (
        "what",
        "points",
        "shapes",
        "build s",
        "read s",
        "predict s",
        "all s",
        "ratio to the imports",
        "warm ms",
    )
    return ReportTable("Predictions in a fresh process, and again in the same one", columns, rows)
