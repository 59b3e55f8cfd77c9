"""Measure what each assumed constant does to the errors: change it on every machine, recalibrate,
predict again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import Elementwise
from ipu_results.emulator.target import TARGETS, Constant, load_target

from benchmarks.emulator.calibration import get_range
from benchmarks.emulator.rows import SETS, PublishedRow
from benchmarks.emulator.scoring import (
    predict_rows,
    recalibrate,
    summarise_errors,
)

START = "elementwise.start"  # of every kind


@dataclass(frozen=True, slots=True)
class ConstantChange:
    """One constant at one value. `means` holds the mean error per set, in the order of SETS."""

    constant: str
    usual: float
    value: float
    superstep: float
    means: tuple[float, ...]


def list_assumed() -> dict[str, Constant]:
    """Return the constants of any machine that no source states."""
    targets = [load_target(name) for name in TARGETS]
    return {
        name: constant
        for target in targets
        for name, constant in target.constants.items()
        if constant.assumed
    }


def list_assumed_of(rows: Sequence[PublishedRow]) -> dict[str, Constant]:
    """Return the assumed constants without those of elementwise kinds that no network of the rows
    has.
    """
    programs = [load_network(network)(1) for network in {row.selector.network for row in rows}]
    operators = [operator for program in programs for operator in program.operators]
    kinds = {
        f"elementwise.{operator.kind}"
        for operator in operators
        if isinstance(operator, Elementwise)
    }
    return {
        name: each
        for name, each in list_assumed().items()
        if name in kinds or not name.startswith("elementwise.") or name == START
    }


def measure_changes(
    rows: Sequence[PublishedRow], names: Sequence[str] | None = None, workers: int = 1
) -> list[ConstantChange]:
    """Set each assumed constant that some row reads to both ends of its range.

    Takes minutes: some constants change the split, which is then searched again.
    """
    changes = list(_list_values(rows, names))
    if workers == 1:
        return [_measure_change(rows, *change) for change in changes]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_measure_change, [rows] * len(changes), *zip(*changes, strict=True)))


def _list_values(
    rows: Sequence[PublishedRow], names: Sequence[str] | None
) -> Iterator[tuple[str, float, float]]:
    for name, constant in list_assumed_of(rows).items():
        if names is None or name in names:
            for value in get_range(constant):
                yield name, constant.value, value


def _measure_change(
    rows: Sequence[PublishedRow], name: str, usual: float, value: float
) -> ConstantChange:
    machines = {target: load_target(target) for target in TARGETS}
    targets = {
        key: each.with_constants({name: value}) if name in each else each
        for key, each in machines.items()
    }
    calibration = recalibrate(rows, targets["c2"])
    scored = predict_rows(rows, calibration, targets)
    means = (
        summarise_errors([each.error for each in scored if each.row.set == set_]).mean
        for set_ in SETS
    )
    return ConstantChange(name, usual, value, calibration.fit.superstep, tuple(means))
