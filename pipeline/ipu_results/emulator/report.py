"""The validation as a whole, and as tables for the terminal and the docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tabulate import tabulate

from ipu_results.emulator.baselines import GRID, SCALED, TOLD, baselines, line_errors
from ipu_results.emulator.calibration import Calibration, frozen
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.published import SETS, Row
from ipu_results.emulator.sensitivity import Change
from ipu_results.emulator.target import load_target
from ipu_results.emulator.validation import (
    IN_SAMPLE,
    LEAVE_ONE_OUT,
    TARGETS,
    Score,
    Scored,
    Targets,
    departed,
    differing,
    in_sample,
    left_out,
    observations,
    predicted,
    recalibrated,
    score,
)

HELD_OUT = ("resnext", "ten")
OVER_LINE, OVER_GRID = 4.0, 1.3
PERCENT = 100
WORST = 12
TIMES = ("published ms", "emulated ms", "chip", "host")
PARTS = ("amp 1x1", "amp nx1", "slic", "vmac", "other operators", "supersteps", "host path")
NAMES: Mapping[str, str] = {
    "calibration": "C2, ResNeXt101 (the fit)",
    "resnext": "IPU-M2000, ResNeXt101",
    "ten": "the ten rows of ResNet-50, EfficientNet-B0 and -B4",
    "honest": "every other inference row that the operators cover",
}


@dataclass(frozen=True)
class Table:
    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def told(self, style: str) -> str:
        """`style` is one of tabulate's."""
        return str(tabulate(self.rows, self.head, tablefmt=style, disable_numparse=True))


@dataclass(frozen=True)
class Report:
    """Everything recomputed from the warehouse; `others` are the errors of each baseline, row by row."""

    calibration: Calibration
    remade: Calibration
    scored: Sequence[Scored]
    inside: Sequence[float]
    outside: Sequence[float]
    line: tuple[Sequence[float], Sequence[float]]
    others: Mapping[str, Sequence[float]]

    @property
    def differs(self) -> bool:
        return differing(self.remade, self.calibration)

    @property
    def departed(self) -> list[Scored]:
        return departed([one for one in self.scored if one.row.how.set == "honest"])

    def score(self, *sets: str) -> Score:
        return score([one.error for one in self.scored if one.row.how.set in sets])

    def other(self, name: str, *sets: str) -> Score:
        pairs = zip(self.scored, self.others[name], strict=True)
        return score([error for one, error in pairs if one.row.how.set in sets])

    def ratio(self, names: Iterable[str], *sets: str) -> float:
        """How much larger the mean error of the best of these baselines is than the emulator's."""
        return min(self.other(name, *sets).mean for name in names) / self.score(*sets).mean


def validate(rows: Sequence[Row], calibration: Calibration | None = None) -> Report:
    known = calibration or frozen()
    fitted = [row for row in rows if row.how.set == "calibration"]
    remade = recalibrated(rows)
    observed = observations(fitted, load_target("c2"))
    others = {name: [one(row) / row.seconds - 1 for row in rows] for name, one in baselines(fitted).items()}
    inside, outside = in_sample(observed, remade), left_out(observed, remade)
    return Report(known, remade, predicted(rows, known), inside, outside, line_errors(fitted), others)


def tables(report: Report) -> list[Table]:
    return [scores(report), simpler(report), *(by_row(report, name) for name in SETS), groups(report), parts(report)]


def scores(report: Report) -> Table:
    """Each target, met or missed."""
    line_in, line_out = (score(errors) for errors in report.line)
    lines = [
        ("C2, in sample", report.inside, IN_SAMPLE),
        ("C2, leave one out", report.outside, LEAVE_ONE_OUT),
    ]
    rows: list[tuple[str, ...]] = [
        (name, *_score(score(errors)), _percent(wanted), _verdict(errors, wanted)) for name, errors, wanted in lines
    ]
    for name, limits in TARGETS.items():
        rows.append((NAMES[name], *_score(report.score(name)), *_judged(report.score(name), limits)))
    rows += [
        ("a straight line on C2, in sample", *_score(line_in), "", ""),
        ("a straight line on C2, leave one out", *_score(line_out), "", ""),
    ]
    return Table("Scores on time per batch", ("rows", "n", "MAPE %", "max %", "target", "verdict"), rows)


def simpler(report: Report) -> Table:
    """The emulator and each baseline on the same rows."""
    sets = [(name,) for name in SETS] + [HELD_OUT]
    head = ("model", "C2", "ResNeXt101", "ten", "honest", "ResNeXt101 + ten", "× emulator")
    rows = [("emulator", *(_both(report.score(*one)) for one in sets), "1.0")]
    for name in TOLD:
        found = (_both(report.other(name, *one)) for one in sets)
        rows.append((name, *found, f"{report.ratio([name], *HELD_OUT):.1f}"))
    return Table("Against simpler models: MAPE (max), %", head, rows)


class Ratio(NamedTuple):
    """How many times a simpler model's mean error is the emulator's, on the watched rows and on those never watched."""

    against: str
    watched: float
    honest: float
    target: float

    @property
    def verdict(self) -> str:
        return "met" if self.watched >= self.target else "missed"


def ratios(report: Report) -> tuple[Ratio, ...]:
    """The two comparisons that the emulator must win; the targets are for the 19 held-out rows that were watched."""
    return tuple(
        Ratio(name, report.ratio(models, *HELD_OUT), report.ratio(models, "honest"), target)
        for name, models, target in (("best scaled-C2 line", SCALED, OVER_LINE), (GRID, [GRID], OVER_GRID))
    )


def misses(report: Report) -> list[str]:
    """One sentence for each target that is missed."""
    found = [
        ("C2, in sample", "MAPE", score(report.inside).mean, IN_SAMPLE),
        ("C2, leave one out", "MAPE", score(report.outside).mean, LEAVE_ONE_OUT),
    ]
    for name, wanted in TARGETS.items():
        known = report.score(name)
        found += [(NAMES[name], "MAPE", known.mean, wanted.mean), (NAMES[name], "maximum", known.most, wanted.most)]
    return [
        f"{name}: {what} {PERCENT * value:.1f} % against a target of {_percent(wanted)}"
        for name, what, value, wanted in found
        if value > wanted
    ]


def by_row(report: Report, name: str) -> Table:
    head = ("network", "machine", "framework", "protocol", "batch", *TIMES, "error %")
    rows = [_line(one) for one in report.scored if one.row.how.set == name]
    return Table(NAMES[name][0].upper() + NAMES[name][1:], head, rows)


def _line(one: Scored) -> tuple[str, ...]:
    how, found = one.row.how, one.prediction
    numbers = (one.row.seconds * MS, one.seconds * MS, found.device_ms, found.protocol_ms)
    said = (how.network, how.target, how.framework, _path(one), str(one.row.batch))
    return (*said, *(f"{number:.3f}" for number in numbers), _signed(one.error))


def _path(one: Scored) -> str:
    path = one.row.how.path
    return f"{path.name}, {path.io_tiles}" if path.io_tiles else path.name


def groups(report: Report) -> Table:
    """The honest rows by network, machine and protocol: where the model holds and where it does not."""
    found: dict[tuple[str, ...], list[float]] = {}
    for one in report.scored:
        if one.row.how.set == "honest":
            key = (one.row.how.network, one.row.how.target, one.row.how.protocol)
            found.setdefault(key, []).append(one.error)
    rows = [(*key, *_score(score(errors)), _signed(sum(errors) / len(errors))) for key, errors in found.items()]
    head = ("network", "machine", "protocol", "n", "MAPE %", "max %", "mean error %")
    return Table("The honest rows by network and protocol", head, rows)


def parts(report: Report) -> Table:
    """Shares of the predicted time in the rows that are furthest off."""
    worst = sorted(report.scored, key=lambda one: -abs(one.error))[:WORST]
    rows = [_parts_line(one, report.calibration) for one in worst]
    head = ("network", "machine", "protocol", "batch", "error %", *PARTS)
    return Table("Where the predicted time goes in the worst rows, %", head, rows)


def _parts_line(one: Scored, calibration: Calibration) -> tuple[str, ...]:
    how, found = one.row.how, shares(one, calibration)
    said = (how.network, how.target, _path(one), str(one.row.batch), _signed(one.error))
    return (*said, *(f"{PERCENT * found[part]:.0f}" for part in PARTS))


def shares(one: Scored, calibration: Calibration) -> dict[str, float]:
    """By PARTS, of the time between two batches; they add to one."""
    target, plan = load_target(one.row.how.target), one.prediction.schedule
    found = dict.fromkeys(PARTS, 0.0)
    for step in plan.steps:
        found[_part(step.plan.vertex if step.plan else "")] += step.cycles / target["clock"]
    found["supersteps"] = plan.supersteps * calibration.fit.superstep / target["clock"]
    found["host path"] = one.prediction.protocol_ms / MS
    return {part: seconds / one.seconds for part, seconds in found.items()}


def _part(vertex: str) -> str:
    if vertex.startswith("amp") and vertex != "amp 1x1":
        return "amp nx1"
    return next((part for part in PARTS if vertex and vertex.startswith(part)), "other operators")


def sensitivity(report: Report, changes: Sequence[Change]) -> Table:
    """Change of the mean error per set, in points, at both ends of each assumed constant."""
    usual = [report.score(name).mean for name in SETS]
    rows = [
        (
            one.constant,
            f"{one.usual:g}",
            f"{one.value:g}",
            f"{one.superstep:.0f}",
            *(_points(new - old) for new, old in zip(one.means, usual, strict=True)),
        )
        for one in changes
        if felt(one, usual)
    ]
    head = ("constant", "usual", "set to", "κ", "C2", "ResNeXt101", "ten", "honest")
    return Table("Change of the MAPE, in points", head, rows)


def felt(one: Change, usual: Sequence[float]) -> bool:
    """Whether any set's mean error moves by what the table shows."""
    return any(abs(new - old) * PERCENT >= 0.005 for new, old in zip(one.means, usual, strict=True))


def unfelt(report: Report, changes: Sequence[Change]) -> list[str]:
    """Assumed constants that move nothing at either end."""
    usual = [report.score(name).mean for name in SETS]
    moving = {one.constant for one in changes if felt(one, usual)}
    return sorted({one.constant for one in changes} - moving)


def _percent(share: float) -> str:
    return f"{PERCENT * share:.3g} %"


def _signed(share: float) -> str:
    return f"{PERCENT * share:+.1f}"


def _points(share: float) -> str:
    return f"{PERCENT * share:+.2f}"


def _score(found: Score) -> tuple[str, str, str]:
    return str(found.rows), f"{PERCENT * found.mean:.1f}", f"{PERCENT * found.most:.1f}"


def _both(found: Score) -> str:
    return f"{PERCENT * found.mean:.1f} ({PERCENT * found.most:.1f})"


def _judged(found: Score, wanted: Targets) -> tuple[str, str]:
    names = ("MAPE", "maximum")
    verdicts = [f"{name} {'met' if met else 'missed'}" for name, met in zip(names, found.meets(wanted), strict=True)]
    told = "met" if all(found.meets(wanted)) else ", ".join(verdicts)
    return f"{_percent(wanted.mean)}, max {_percent(wanted.most)}", told


def _verdict(errors: Sequence[float], wanted: float) -> str:
    return "met" if score(errors).mean <= wanted else "missed"
