"""What simpler models make of the same rows: each is fitted on the C2 rows alone, as the emulator is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ipu_results.emulator.calibration import Observation, fit
from ipu_results.emulator.operators import Convolution, Gemm, Program
from ipu_results.emulator.protocol import timing
from ipu_results.emulator.published import Row
from ipu_results.emulator.schedule import schedule, shape_of
from ipu_results.emulator.split import HALF, Shape
from ipu_results.emulator.target import Target, load_target
from ipu_results.emulator.validation import program_of

Baseline = Callable[[Row], float]
Cycles = Callable[[Shape, Target], float]
SCALED = ("C2 line, scaled by peak", "C2 line, scaled by clock", "C2 line, start by clock, slope by peak")
UTILISATION, ROOFLINE = "constant utilisation", "roofline"
PERFECT, GRID = "perfect-utilisation BSP", "broadcast-grid BSP"
TOLD: Mapping[str, str] = {
    SCALED[0]: "a + b·images per chip on C2, b scaled by the network's MACs, all by the chip's peak MAC rate",
    SCALED[1]: "the same, all by the chip's clock",
    SCALED[2]: "the same, a by the clock and b by the peak MAC rate",
    UTILISATION: "MACs over the share of peak that the C2 rows have",
    ROOFLINE: "MACs over peak; all is in on-chip memory, so no bandwidth bounds it",
    PERFECT: "each product spread evenly at peak rate, operands received once; one superstep each; κ, h refitted",
    GRID: "each product on a grid of field × output channels, shares rounded up; a formula balances the bytes of "
    "inputs and weights, nothing is searched; peak rate; κ and h refitted",
}


def baselines(rows: Sequence[Row]) -> dict[str, Baseline]:
    """By name; `rows` are the C2 ones."""
    line = _line(rows)
    found = dict(zip(SCALED, (_scaled(line, rows, *how) for how in _SCALES), strict=True))
    found[UTILISATION] = _of_peak(_utilisation(rows))
    found[ROOFLINE] = _of_peak(1.0)
    found[PERFECT] = _bsp(perfect, rows)
    found[GRID] = _bsp(grid, rows)
    return found


def mac_rate(target: Target) -> float:
    """fp16 multiply-accumulates per cycle and tile."""
    return target["conv.units"] * target["conv.in_channels"] / target["amp1.worker_more"]


def peak(target: Target) -> float:
    """Of one chip, per second."""
    return mac_rate(target) * target.tiles * target["clock"]


def line_errors(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Errors of a straight line on the C2 rows, in sample and with the row left out."""
    start, slope = _line(rows)
    inside = [(start + slope * _images(row)) / row.seconds - 1 for row in rows]
    outside = []
    for at, row in enumerate(rows):
        start, slope = _line([*rows[:at], *rows[at + 1 :]])
        outside.append((start + slope * _images(row)) / row.seconds - 1)
    return inside, outside


def perfect(shape: Shape, target: Target) -> float:
    inputs = shape.batch * shape.groups * shape.ins * shape.in_rows * shape.in_columns
    moved = (inputs + shape.macs / _field(shape)) * HALF / target["exchange.bytes"]
    return (shape.macs / mac_rate(target) + moved) / target.tiles


def grid(shape: Shape, target: Target) -> float:
    """The grid is field × outs ≤ tiles with as many bytes of inputs as of weights on each tile."""
    field, outs = _field(shape), shape.groups * shape.outs
    kernel, tiles = shape.kernel_rows * shape.kernel_columns, target.tiles
    balanced = round(math.sqrt(tiles * field * shape.stride**2 / (outs * kernel)))
    down = max(1, min(balanced, field, tiles))
    across = min(outs, tiles // down)
    down = min(field, tiles // across)
    n, o = math.ceil(field / down), math.ceil(outs / across)
    inputs = n * shape.stride**2 * shape.ins * math.ceil(o / shape.outs)
    weights = o * shape.ins * kernel
    return n * weights / mac_rate(target) + (inputs + weights) * HALF / target["exchange.bytes"]


def _field(shape: Shape) -> int:
    return shape.batch * shape.rows * shape.columns


def _images(row: Row) -> int:
    return row.batch // load_target(row.how.target).chips


def _macs(row: Row) -> float:
    """Of one image."""
    return program_of(row.how.network, 1).macs


def _line(rows: Sequence[Row]) -> tuple[float, float]:
    """Start and slope over images of one chip, relative least squares."""
    weight = 1 / np.array([row.seconds for row in rows])
    unknown = np.array([[1.0, _images(row)] for row in rows])
    solution, *_ = np.linalg.lstsq(unknown * weight[:, None], np.ones(len(rows)), rcond=None)
    return float(solution[0]), float(solution[1])


def _by_peak(target: Target, old: Target) -> float:
    return peak(old) / peak(target)


def _by_clock(target: Target, old: Target) -> float:
    return old["clock"] / target["clock"]


_Scale = Callable[[Target, Target], float]
_SCALES: tuple[tuple[_Scale, _Scale], ...] = ((_by_peak, _by_peak), (_by_clock, _by_clock), (_by_clock, _by_peak))


def _scaled(line: tuple[float, float], rows: Sequence[Row], start_by: _Scale, slope_by: _Scale) -> Baseline:
    old, macs = load_target(rows[0].how.target), _macs(rows[0])

    def seconds(row: Row) -> float:
        target = load_target(row.how.target)
        slope = line[1] * slope_by(target, old) * _macs(row) / macs
        return line[0] * start_by(target, old) + slope * _images(row)

    return seconds


def _utilisation(rows: Sequence[Row]) -> float:
    """The share of peak with the least relative squares over the time."""
    ideal = [_of_peak(1.0)(row) / row.seconds for row in rows]
    return sum(one * one for one in ideal) / sum(ideal)


def _of_peak(share: float) -> Baseline:
    return lambda row: _macs(row) * _images(row) / (share * peak(load_target(row.how.target)))


def _bsp(cycles: Cycles, rows: Sequence[Row]) -> Baseline:
    numbers = fit([_observed(row, cycles) for row in rows])

    def seconds(row: Row) -> float:
        program, target = program_of(row.how.network, _images(row)), load_target(row.how.target)
        work, steps = _work(program, target, cycles)
        device = (work + steps * numbers.superstep) / target["clock"]
        return timing(device, program, target, row.how.path, numbers.per_image).period

    return seconds


def _observed(row: Row, cycles: Cycles) -> Observation:
    program, target = program_of(row.how.network, _images(row)), load_target(row.how.target)
    work, steps = _work(program, target, cycles)
    fixed = timing(work / target["clock"], program, target, row.how.path, 0.0).period
    return Observation(fixed, steps / target["clock"], _images(row), row.seconds)


def _work(program: Program, target: Target, cycles: Cycles) -> tuple[float, int]:
    """Cycles and supersteps: products by the simple rule, all else as the emulator has it."""
    work, steps = 0.0, 0
    for operator, step in zip(program.operators, schedule(program, target).steps, strict=True):
        if isinstance(operator, Convolution | Gemm):
            work, steps = work + cycles(shape_of(operator), target), steps + 1
        else:
            work, steps = work + step.cycles, steps + step.supersteps
    return work, steps
