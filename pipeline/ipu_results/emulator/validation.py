"""Predictions of published rows, their errors, and the calibration made anew from the warehouse."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ipu_results.emulator.calibration import Calibration, Observation, calibrate, seconds
from ipu_results.emulator.network import network
from ipu_results.emulator.operators import Program
from ipu_results.emulator.prediction import MS, Prediction, predict
from ipu_results.emulator.protocol import timing
from ipu_results.emulator.published import Row
from ipu_results.emulator.schedule import schedule
from ipu_results.emulator.target import Target, load_target
from ipu_results.errors import WarehouseError

COMMITTED = "predictions.csv"
COLUMNS = ("result_id", "model", "target", "protocol", "batch", "time_ms", "latency_ms", "calibration_id", "constants")
CLOSE = 1e-6  # two predictions this close are one: sums differ so much between machines


@dataclass(frozen=True, slots=True)
class Targets:
    """What a set must reach on time per batch, as shares."""

    mean: float
    most: float


TARGETS: Mapping[str, Targets] = {
    "resnext": Targets(0.06, 0.12),
    "ten": Targets(0.045, 0.13),
    "honest": Targets(0.12, 0.25),
}
IN_SAMPLE, LEAVE_ONE_OUT = 0.03, 0.05


@dataclass(frozen=True, slots=True)
class Scored:
    """A row and its prediction; `error` is signed, on time per batch, as a share of the published time."""

    row: Row
    prediction: Prediction

    @property
    def seconds(self) -> float:
        return self.prediction.timing.period

    @property
    def error(self) -> float:
        return self.seconds / self.row.seconds - 1


@dataclass(frozen=True, slots=True)
class Score:
    rows: int
    mean: float
    most: float

    def meets(self, wanted: Targets) -> tuple[bool, bool]:
        return self.mean <= wanted.mean, self.most <= wanted.most


def score(errors: Sequence[float]) -> Score:
    """Mean and maximum of the absolute errors."""
    sizes = [abs(error) for error in errors]
    return Score(len(sizes), sum(sizes) / len(sizes), max(sizes))


def program_of(name: str, micro: int) -> Program:
    return network(name)(micro)


def predicted(
    rows: Sequence[Row], calibration: Calibration, targets: Mapping[str, Target] | None = None
) -> list[Scored]:
    """Each row as its selector says; `targets` replaces machines by name, for sensitivity."""
    return [Scored(row, _predicted(row, calibration, targets or {})) for row in rows]


def _predicted(row: Row, calibration: Calibration, targets: Mapping[str, Target]) -> Prediction:
    how = row.how
    target = targets.get(how.target) or load_target(how.target)
    (found,) = predict(network(how.network), target, [row.batch], how.path, calibration)
    return found


def observations(rows: Sequence[Row], target: Target) -> list[Observation]:
    """What the calibration is fitted on: rows of its own protocol, with no number of the fit in them."""
    return [_observation(row, target) for row in rows]


def _observation(row: Row, target: Target) -> Observation:
    micro = row.batch // target.chips
    program = program_of(row.how.network, micro)
    plan = schedule(program, target)
    fixed = timing(plan.cycles / target["clock"], program, target, row.how.path, 0.0).period
    return Observation(fixed, plan.supersteps / target["clock"], micro, row.seconds)


def recalibrated(rows: Sequence[Row], target: Target | None = None) -> Calibration:
    """The calibration that the six C2 rows among `rows` give."""
    machine = target or load_target("c2")
    return calibrate(observations([row for row in rows if row.how.set == "calibration"], machine), machine)


def in_sample(observed: Sequence[Observation], calibration: Calibration) -> list[float]:
    return [seconds(one, calibration.fit) / one.seconds - 1 for one in observed]


def left_out(observed: Sequence[Observation], calibration: Calibration) -> list[float]:
    """The error of each row by the fit that has not seen it."""
    pairs = zip(observed, calibration.jackknife, strict=True)
    return [seconds(one, numbers) / one.seconds - 1 for one, numbers in pairs]


def differing(one: Calibration, other: Calibration) -> bool:
    """Whether two calibrations are of other constants or other rows."""
    fits = [(known.fit, *known.jackknife) for known in (one, other)]
    numbers = [[value for fit in known for value in (fit.superstep, fit.per_image)] for known in fits]
    same = len(numbers[0]) == len(numbers[1]) and all(map(_close, *numbers))
    return not same or one.constants != other.constants


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE * abs(other)


def committed_text(scored: Sequence[Scored]) -> str:
    """`predictions.csv`: no published figure but the batch size is in it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in scored:
        row, found = one.row, one.prediction
        machine = load_target(row.how.target)
        times = (f"{one.seconds * MS:.9g}", f"{found.latency_ms:.9g}")
        said = (row.result_id, row.how.network, row.how.target, found.protocol, row.batch)
        writer.writerow((*said, *times, found.calibration_id, machine.digest))
    return out.getvalue()


def committed() -> Mapping[str, float]:
    """Seconds per batch by row, as predicted before they were scored."""
    text = (files("ipu_results.emulator") / COMMITTED).read_text(encoding="utf-8")
    return {record["result_id"]: float(record["time_ms"]) / MS for record in csv.DictReader(io.StringIO(text))}


def departed(scored: Sequence[Scored]) -> list[Scored]:
    """Rows of the honest set whose prediction is no longer the committed one."""
    known = committed()
    if missing := [one.row for one in scored if one.row.result_id not in known]:
        raise WarehouseError(f"row {missing[0].result_id} has no committed prediction", place=str(missing[0].how))
    return [one for one in scored if not _close(one.seconds, known[one.row.result_id])]
