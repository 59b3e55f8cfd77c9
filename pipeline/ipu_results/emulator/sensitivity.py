"""What each assumed constant does to the errors: changed on every machine, recalibrated, predicted anew."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from ipu_results.emulator.calibration import Calibration
from ipu_results.emulator.operators import Elementwise
from ipu_results.emulator.published import SETS, Row
from ipu_results.emulator.target import TARGETS, Constant, Target, load_target
from ipu_results.emulator.validation import predicted, program_of, recalibrated, score

SHARE = 0.5
RANGES: Mapping[str, tuple[float, float]] = {"slic.load": (18, 66), "reduce.rest": (6, 9)}  # as their sources state
SPLIT = ("plan", "conv", "exchange", "amp1", "ampn", "slic", "vmac", "reduce", "tiles", "sram", "workers")


class Retimed(Target):
    """A target with constants changed that no split depends on: equal to the original, so that its plans serve."""

    @cached_property
    def planned(self) -> Target:
        return load_target(self.name)

    @cached_property
    def digest(self) -> str:
        return self.planned.digest

    def changed(self, **values: float) -> Target:
        new = super().changed(**values)
        found = Retimed(new.name, new.chip, new.chips, new.constants)
        split = {name: value for name, value in values.items() if name.partition("__")[0] in SPLIT}
        found.__dict__["planned"] = self.planned.changed(**split)
        return found


@dataclass(frozen=True, slots=True)
class Change:
    """One constant at one value; `means` is the mean error per set, in the order of SETS."""

    constant: str
    usual: float
    value: float
    superstep: float
    means: tuple[float, ...]


def assumed() -> dict[str, Constant]:
    """The constants of any machine that no source gives."""
    targets = [load_target(name) for name in TARGETS]
    return {name: one for target in targets for name, one in target.constants if one.assumed}


def ends(name: str, constant: Constant) -> tuple[float, float]:
    """The stated range, else half less and half more; whole supersteps, elements and cycles of the planner."""
    low, high = RANGES.get(name, (constant.value * (1 - SHARE), constant.value * (1 + SHARE)))
    if constant.unit == "superstep":
        return math.floor(low), math.ceil(high)
    return low, high


def changes(rows: Sequence[Row], names: Sequence[str] | None = None, workers: int = 1) -> list[Change]:
    """Both ends of each assumed constant that some row reads. Minutes: some change the split, searched anew."""
    known = {name: one for name, one in assumed().items() if name in read_by(rows)}
    wanted = list(_wanted(known, names))
    if workers == 1:
        return [_change(rows, *one) for one in wanted]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_change, [rows] * len(wanted), *zip(*wanted, strict=True)))


def read_by(rows: Sequence[Row]) -> set[str]:
    """The assumed constants without those of elementwise kinds that no network of the rows has."""
    networks = {row.how.network for row in rows}
    programs = [program_of(network, 1) for network in networks]
    kinds = {one.kind for program in programs for one in program.operators if isinstance(one, Elementwise)}
    named = {f"elementwise.{kind}" for kind in kinds}
    return {name for name in assumed() if not name.startswith("elementwise.") or name in named}


def _wanted(known: Mapping[str, Constant], names: Sequence[str] | None) -> Iterator[tuple[str, float, float]]:
    for name, constant in known.items():
        if names is None or name in names:
            for value in ends(name, constant):
                yield name, constant.value, value


def _change(rows: Sequence[Row], name: str, usual: float, value: float) -> Change:
    targets = {one: _with(load_target(one), name, value) for one in TARGETS}
    calibration = recalibrated(rows, targets["c2"])
    return Change(name, usual, value, calibration.fit.superstep, means(rows, calibration, targets))


def means(
    rows: Sequence[Row], calibration: Calibration, targets: Mapping[str, Target] | None = None
) -> tuple[float, ...]:
    """Mean error per set, in the order of SETS."""
    scored = predicted(rows, calibration, targets)
    return tuple(score([one.error for one in scored if one.row.how.set == name]).mean for name in SETS)


def _with(target: Target, name: str, value: float) -> Target:
    kind, _, _ = name.partition(".")
    usual = target if kind in SPLIT else Retimed(target.name, target.chip, target.chips, target.constants)
    return usual.changed(**{name.replace(".", "__"): value})
