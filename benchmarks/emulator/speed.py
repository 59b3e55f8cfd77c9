"""Measure predictions in a fresh process and again in the same one, and the split search next to
every split.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from benchmarks.processes import Step, run_steps
from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value

Point = tuple[str, str, int]  # network, target and micro-batch

NETWORK, C2, MK2, BOW = "resnext101-32x4d", "c2", "m2000", "bow-2000"
SWEEP: tuple[Point, ...] = tuple((NETWORK, C2, micro) for micro in range(1, 7))
DEVELOPMENT: tuple[Point, ...] = (
    *((NETWORK, MK2, micro) for micro in (1, 2, 4, 8, 16)),
    *(("resnext101-32x8d", MK2, micro) for micro in (1, 2, 4, 16)),
    *((network, MK2, 1) for network in ("resnet50", "efficientnet-b0")),
    *(("efficientnet-b4", MK2, micro) for micro in (1, 4, 6, 8, 10)),
    *((network, BOW, 1) for network in ("resnet50", "efficientnet-b0", "efficientnet-b4")),
)
QUICK: tuple[Point, ...] = (("resnet50", C2, 1), ("resnet50", C2, 2))
REPEATS, WARM_REPEATS, SHAPES, QUICK_SHAPES, FEW_TILES = 5, 20, 400, 20, 96
COLD_S, WARM_MS, DEVELOPMENT_S = 1.0, 10.0, 5.0


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
        **{
            "build": built - start,
            "read": read - built,
            "predict": cold - read,
            "seconds": cold - start,
        },
        **{
            "warm": median(_time(predict_all) for _ in range(warm)),
            "shapes": search_splits.cache_info().currsize,
        },
    }


def search_shapes(shapes: int, tiles: int) -> Iterator[Step]:
    """Plan random small convolutions on machines of few tiles, by the search and by every split in
    turn.
    """
    from ipu_results.emulator import split  # noqa: PLC0415
    from ipu_results.emulator.target import load_target  # noqa: PLC0415

    ways: tuple[Callable[..., split.SplitPlan], ...] = (
        split.plan_split,
        partial(split.search_splits, every=True),
    )
    for name in (C2, MK2):
        draw, target = random.Random(1), load_target(name).with_constants(tiles=tiles)
        superstep = target["superstep.cycles"]
        seconds, equal, worst = [0.0, 0.0], 0, 1.0
        for _ in range(shapes):
            shape = split.ConvolutionShape(**_draw_sizes(draw))
            plans = []
            for way, search in enumerate(ways):
                start = time.perf_counter()
                plans.append(search(shape, target))
                seconds[way] += time.perf_counter() - start
            equal += plans[0] == plans[1]
            costs = [plan.cycles + plan.supersteps * superstep for plan in plans]
            worst = max(worst, costs[0] / costs[1])
        yield {"target": name, "shapes": shapes, "seconds": seconds, "equal": equal, "worst": worst}


def run(options: Options) -> Report:
    """Measure the speed."""
    sweep, development, repeats, count = (
        (QUICK, QUICK, 1, QUICK_SHAPES) if options.quick else (SWEEP, DEVELOPMENT, REPEATS, SHAPES)
    )
    imports: list[Step] = []
    cold: list[Step] = []
    others: list[Step] = []
    for _ in range(repeats):
        imports += run_steps(import_modules)
        cold += run_steps(predict_points, points=sweep, warm=WARM_REPEATS)
        others += run_steps(predict_points, points=development, warm=1)
    searches = run_steps(search_shapes, shapes=count, tiles=FEW_TILES)
    return Report(
        "emulator",
        f"predict a C2 sweep of {len(sweep)} points and {len(development)} points of other"
        " machines",
        [
            _tabulate_times(imports, cold, others, (len(sweep), len(development))),
            _tabulate_searches(searches),
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
            *(
                ReportTarget(
                    f"{step['target']}: share of plans equal to those of every split",
                    step["equal"] / count,
                    1.0,
                    True,
                )
                for step in searches
            ),
        ],
        [
            (f"Median of {repeats} interleaved runs, each in a fresh process."),
            (
                f"{count} random shapes on {FEW_TILES} tiles of each machine; equal plans have the"
                " same split and costs."
            ),
        ],
    )


def _draw_sizes(draw: random.Random) -> dict[str, int]:
    rows, columns, stride = draw.randint(1, 8), draw.randint(1, 8), draw.choice((1, 1, 2))
    kernel = draw.choice((1, 1, 3, 5))
    channels = (1, 3, 4, 16, 20, 64, 72, 100, 200, 333)
    ins, outs, groups = draw.choice(channels), draw.choice(channels), draw.choice((1, 1, 2, 4, 7))
    if draw.random() < 0.2:
        ins, outs, groups = 1, 1, draw.choice((8, 20, 96))
    return {
        **{
            "batch": draw.randint(1, 3),
            "groups": groups,
            "ins": ins,
            "outs": outs,
            "rows": rows,
            "columns": columns,
        },
        **{"kernel_rows": kernel, "kernel_columns": kernel, "stride": stride},
        **{"in_rows": rows * stride, "in_columns": columns * stride},
    }


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


def _tabulate_searches(steps: Sequence[Step]) -> ReportTable:
    rows: list[tuple[Value, ...]] = []
    for step in steps:
        search, every = (1000 * seconds / step["shapes"] for seconds in step["seconds"])
        worst = 100 * (step["worst"] - 1)
        rows.append(
            (step["target"], step["shapes"], step["equal"], worst, search, every, every / search)
        )
    columns = (
        "machine",
        "shapes",
        "equal plans",
        "worst cost, % more",
        "ms a shape",
        "every split, ms",
        "ratio",
    )
    return ReportTable("The split search next to every split", columns, rows)
