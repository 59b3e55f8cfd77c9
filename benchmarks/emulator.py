"""The emulator: predictions cold and warm, and its split search beside one that looks at every split."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

from benchmarks.child import Step, in_child, told
from benchmarks.options import Options
from benchmarks.report import Report, Table, Target, Value, shown

Point = tuple[str, str, int]  # network, target and micro-batch

NETWORK, C2, MK2, BOW = "resnext101-32x4d", "c2", "m2000", "bow-2000"
SWEEP: tuple[Point, ...] = tuple((NETWORK, C2, micro) for micro in range(1, 7))
HELD_OUT: tuple[Point, ...] = (
    *((NETWORK, MK2, micro) for micro in (1, 2, 4, 8, 16)),
    *(("resnext101-32x8d", MK2, micro) for micro in (1, 2, 4, 16)),
    *((network, MK2, 1) for network in ("resnet50", "efficientnet-b0")),
    *(("efficientnet-b4", MK2, micro) for micro in (1, 4, 6, 8, 10)),
    *((network, BOW, 1) for network in ("resnet50", "efficientnet-b0", "efficientnet-b4")),
)
QUICK: tuple[Point, ...] = (("resnet50", C2, 1), ("resnet50", C2, 2))
REPEATS, WARM, SHAPES, QUICK_SHAPES, FEW_TILES, SLOWEST = 5, 20, 400, 20, 96, 12
COLD_S, WARM_MS, HELD_OUT_S = 2.0, 10.0, 15.0
SEARCHES = ("plan",)


def imports() -> Iterator[Step]:
    """What every prediction waits for before it begins."""
    start = time.perf_counter()
    import ipu_results.emulator.prediction  # noqa: PLC0415
    import ipu_results.networks  # noqa: F401, PLC0415

    yield {"seconds": time.perf_counter() - start}


def predictions(points: Sequence[Point], warm: int) -> Iterator[Step]:
    """Build, read and predict each point in a process that has done nothing before, and then anew."""
    from ipu_results.emulator.frontend import read_program  # noqa: PLC0415
    from ipu_results.emulator.operators import Program  # noqa: PLC0415
    from ipu_results.emulator.prediction import predict  # noqa: PLC0415
    from ipu_results.emulator.split import plan  # noqa: PLC0415
    from ipu_results.emulator.target import load_target  # noqa: PLC0415
    from ipu_results.networks import build  # noqa: PLC0415

    start = time.perf_counter()
    models = {network: build(network) for network in dict.fromkeys(point[0] for point in points)}
    built = time.perf_counter()
    programs = {(network, micro): read_program(models[network], micro) for network, _, micro in points}
    read = time.perf_counter()

    def program(network: str, micro: int) -> Program:
        return programs[network, micro]

    def every() -> None:
        for network, name, micro in points:
            target = load_target(name)
            predict(partial(program, network), target, [micro * target.chips])

    every()
    cold = time.perf_counter()
    again = [_timed(every) for _ in range(warm)]
    yield {
        **{"build": built - start, "read": read - built, "predict": cold - read, "seconds": cold - start},
        **{"warm": median(again), "shapes": plan.cache_info().currsize},
    }


def searches(shapes: int, tiles: int) -> Iterator[Step]:
    """Random small convolutions on machines of few tiles: the search and every split, in turns."""
    from ipu_results.emulator.split import Plan, Shape, exhaustive, plan  # noqa: PLC0415
    from ipu_results.emulator.target import load_target  # noqa: PLC0415

    ways: dict[str, Callable[..., Plan]] = {
        "plan": plan,
        "every": exhaustive,
    }
    for name in (C2, MK2):
        draw, target = random.Random(1), load_target(name).changed(tiles=tiles)
        seconds, superstep = dict.fromkeys(ways, 0.0), target["plan.superstep"]
        equal, worst = dict.fromkeys(SEARCHES, 0), dict.fromkeys(SEARCHES, 1.0)
        for _ in range(shapes):
            shape = Shape(**_sizes(draw))
            found, costs = {}, {}
            for way, search in ways.items():
                start = time.perf_counter()
                found[way] = search(shape, target)
                seconds[way] += time.perf_counter() - start
                costs[way] = found[way].cycles + found[way].supersteps * superstep
            for way in SEARCHES:
                equal[way] += found[way] == found["every"]
                worst[way] = max(worst[way], costs[way] / costs["every"])
        yield {"target": name, "shapes": shapes, "seconds": seconds, "equal": equal, "worst": worst}


def layers(network: str, target: str, micro: int) -> Iterator[Step]:
    """Time of the search for each layer shape of a network."""
    from ipu_results.emulator.frontend import read_program  # noqa: PLC0415
    from ipu_results.emulator.operators import Convolution, Gemm  # noqa: PLC0415
    from ipu_results.emulator.schedule import shape_of  # noqa: PLC0415
    from ipu_results.emulator.split import plan  # noqa: PLC0415
    from ipu_results.emulator.target import load_target  # noqa: PLC0415
    from ipu_results.networks import build  # noqa: PLC0415

    machine, rows, seen = load_target(target), [], set()
    for operator in read_program(build(network), micro).operators:
        if isinstance(operator, Convolution | Gemm) and (shape := shape_of(operator)) not in seen:
            seen.add(shape)
            start = time.perf_counter()
            found = plan(shape, machine)
            taken = time.perf_counter() - start
            field = f"{shape.rows}×{shape.columns}, {shape.groups}×{shape.ins}→{shape.outs}"
            kernel = f"{shape.kernel_rows}×{shape.kernel_columns}/{shape.stride}"
            rows.append((operator.name, field, kernel, found.vertex, taken))
    yield {"layers": rows}


def run(options: Options) -> Report:
    sweep, held, repeats, count = (
        (QUICK, QUICK, 1, QUICK_SHAPES) if options.quick else (SWEEP, HELD_OUT, REPEATS, SHAPES)
    )
    load = os.getloadavg()[0]
    turns = [
        (told(imports), told(predictions, points=sweep, warm=WARM), told(predictions, points=held, warm=1))
        for _ in range(repeats)
    ]
    bare, cold, all_held = ([turn[at] for turn in turns] for at in range(3))
    found = _all_steps(count)
    by_layer = told(layers, network=sweep[-1][0], target=MK2, micro=sweep[-1][2])["layers"]
    warm_ms = 1000 * median(step["warm"] for step in cold)
    return Report(
        "emulator",
        f"predict a C2 sweep of {len(sweep)} points and {len(held)} points of other machines",
        [
            _times(bare, cold, all_held, (len(sweep), len(held))),
            _searches(found),
            _layers(by_layer, f"{sweep[-1][0]}, micro-batch {sweep[-1][2]}, on {MK2}"),
        ],
        [
            Target(f"s, cold sweep of {len(sweep)} points, imports not counted", _middle(cold), COLD_S),
            Target("ms, the sweep warm in the same process", warm_ms, WARM_MS),
            Target(f"s, {len(held)} points of other machines, cold", _middle(all_held), HELD_OUT_S),
            *(
                Target(
                    f"{one['target']}: share of equal plans, {way} / every split", one["equal"][way] / count, 1.0, True
                )
                for one in found
                for way in SEARCHES
            ),
        ],
        [
            f"Median of {repeats} interleaved runs, each in a fresh process without the disk cache.",
            f"{count} random shapes on {FEW_TILES} tiles of each machine; equal plans have the same split and costs.",
            f"Load of the machine over the last minute, before and after: {shown(load)}, {shown(os.getloadavg()[0])}.",
        ],
    )


def _all_steps(count: int) -> list[Step]:
    outcome = in_child(searches, shapes=count, tiles=FEW_TILES)
    if outcome.failure:
        raise RuntimeError(f"{searches.__name__}: {outcome.failure}")
    return outcome.steps


def _sizes(draw: random.Random) -> dict[str, int]:
    rows, columns, stride = draw.randint(1, 8), draw.randint(1, 8), draw.choice((1, 1, 2))
    kernel = draw.choice((1, 1, 3, 5))
    channels = (1, 3, 4, 16, 20, 64, 72, 100, 200, 333)
    ins, outs, groups = draw.choice(channels), draw.choice(channels), draw.choice((1, 1, 2, 4, 7))
    if draw.random() < 0.2:
        ins, outs, groups = 1, 1, draw.choice((8, 20, 96))
    return {
        **{"batch": draw.randint(1, 3), "groups": groups, "ins": ins, "outs": outs, "rows": rows, "columns": columns},
        **{"kernel_rows": kernel, "kernel_columns": kernel, "stride": stride},
        **{"in_rows": rows * stride, "in_columns": columns * stride},
    }


def _timed(function: Callable[[], None]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _middle(steps: Sequence[Step], name: str = "seconds") -> float:
    return float(median(step[name] for step in steps))


def _times(bare: Sequence[Step], cold: Sequence[Step], held: Sequence[Step], points: tuple[int, int]) -> Table:
    alone = _middle(bare)
    rows: list[tuple[Value, ...]] = [("the imports alone", None, None, None, None, None, alone, 1.0, None)]
    for name, steps, count in (("C2 sweep", cold, points[0]), ("other machines", held, points[1])):
        parts = [_middle(steps, part) for part in ("build", "read", "predict", "seconds")]
        rows.append((name, count, steps[0]["shapes"], *parts, parts[-1] / alone, 1000 * _middle(steps, "warm")))
    columns = ("what", "points", "shapes", "build s", "read s", "predict s", "all s", "ratio to the imports", "warm ms")
    return Table("Predictions in a fresh process, and anew in the same one", columns, rows)


def _searches(found: Sequence[Step]) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            *(f"{one['target']}, {way}", one["shapes"], one["equal"][way], 100 * (one["worst"][way] - 1)),
            *(1000 * one["seconds"][way] / one["shapes"], 1000 * one["seconds"]["every"] / one["shapes"]),
            one["seconds"]["every"] / one["seconds"][way],
        )
        for one in found
        for way in SEARCHES
    ]
    columns = ("search", "shapes", "equal plans", "worst cost, % more", "ms a shape", "every split, ms", "ratio")
    return Table("The split search beside every split", columns, rows)


def _layers(rows: Sequence[Sequence[Value]], title: str) -> Table:
    slowest = sorted(rows, key=lambda row: -float(row[-1] or 0))[:SLOWEST]
    columns = ("layer", "field and channels", "kernel", "vertex", "ms")
    total = 1000 * sum(float(row[-1] or 0) for row in rows)
    body = [(*row[:-1], 1000 * float(row[-1] or 0)) for row in slowest]
    return Table(
        f"Search for one layer shape: {title}; the slowest of {len(rows)}, {total:.0f} ms in all", columns, body
    )
