"""Score the present model on every row of the record that can be built, next to simpler models.

`python -m benchmarks.emulator scores` prints the tables, and with `--out FILE` writes every row, for
other simulators to use. `benchmarks.emulator.sets` makes the rows.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.report import ReportTable

ROWS = Path(__file__).parent / "validation.csv"
PERCENT = 100
BANDED = ("inference", "training")  # kinds of whole programs, which predictions are of
NOMINAL = 0.8  # share of further rows that a band is made to hold
FEWEST = 5  # rows of other documents, below which there is no band to test
ROUNDING = 1e-9

# Sets that a number of the model is read off. They are scored, and pooled with no others.
FITTED = {
    "c2": "s and h, the host's seconds of a batch and of an image",
    "ten": "P, the rate of the gateway's memory",
    "vertex": "amp1.zero: the first group of input channels takes no more cycles than the others",
    "tamu pods": "norm.span: the sum of a norm's statistics over two replicas",
}


@dataclass(frozen=True, slots=True)
class Score:
    """A measured time and its predictions, all in `unit`."""

    kind: str
    """Of work: rows of one kind share a band."""
    set: str
    document: str
    network: str
    row: str
    unit: str
    measured: float
    predicted: float
    two: float | None = None
    """By operations and operators."""
    three: float | None = None
    """By operations, operators and vectors."""
    nearest: float | None = None
    """By a line through the two nearest rows of its series."""
    host_bound: bool = False
    """Whether one process drives short steps, which the emulator refuses to predict."""
    series: str = ""
    """What rows have in common that differ in `size` alone."""
    size: float = 1.0

    @property
    def error(self) -> float:
        """Return the signed share of the measured time: less than 0 is too fast."""
        return self.predicted / self.measured - 1

    @property
    def ratio(self) -> float:
        return self.measured / self.predicted

    @property
    def is_fitted(self) -> bool:
        return self.set in FITTED


MODELS = {
    "emulator": "predicted",
    "two numbers: operations, operators": "two",
    "three numbers: operations, operators, vectors": "three",
    "line through the two nearest rows": "nearest",
}


def list_errors(scores: Iterable[Score], column: str = "predicted") -> list[float]:
    """List the signed errors of a model on the rows that it predicts."""
    times = ((getattr(each, column), each.measured) for each in scores)
    return [time / measured - 1 for time, measured in times if time is not None]


def summarise(errors: Sequence[float]) -> tuple[str, ...]:
    """Return rows, median, mean and 90th percentile of the sizes, and the mean with its sign."""
    if not errors:
        return ("0", "", "", "", "")
    sizes = [abs(error) for error in errors]
    shares = (median(sizes), mean(sizes), float(np.quantile(sizes, 0.9)))
    return (
        str(len(errors)),
        *(f"{PERCENT * share:.1f}" for share in shares),
        f"{PERCENT * mean(errors):+.1f}",
    )


SUMMARY = ("rows", "median %", "mean %", "p90 %", "bias %")


def fit_band(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the order statistics that hold NOMINAL of further rows, whatever their distribution
    is.

    The prediction itself is always in its band.
    """
    ordered = sorted(ratios)
    tail = (1 - NOMINAL) / 2
    low = max(0, math.floor((len(ordered) + 1) * tail + ROUNDING) - 1)
    return min(1.0, ordered[low]), max(1.0, ordered[len(ordered) - 1 - low])


def check_coverage(scores: Sequence[Score]) -> dict[Score, bool]:
    """Check for each row whether the band of its kind, made without rows of its document, holds it.

    A row whose kind has too few rows in other documents is left out.
    """
    held = {}
    programs = [each for each in scores if each.kind in BANDED]
    for document, kind in dict.fromkeys((each.document, each.kind) for each in programs):
        members = [each for each in scores if each.kind == kind and not each.host_bound]
        others = [each.ratio for each in members if each.document != document]
        if len(others) < FEWEST:
            continue
        low, high = fit_band(others)
        for each in members:
            if each.document == document:
                held[each] = low <= each.ratio <= high
    return held


def format_bands(scores: Sequence[Score]) -> str:
    """Return the text of `bands.toml`: of each kind the band of all rows, and what it held of
    documents left out.
    """
    held = check_coverage(scores)
    lines = [
        "# Made by `python -m benchmarks.emulator bands`: measured over predicted time. Not to be"
        " edited."
    ]
    for kind in BANDED:
        members = [each for each in scores if each.kind == kind and not each.host_bound]
        low, high = fit_band([each.ratio for each in members])
        checked = [held[each] for each in members if each in held]
        lines += [
            "",
            f'["{kind}"]',
            f"low = {low:.3f}",
            f"high = {high:.3f}",
            f"rows = {len(members)}",
            f"held_out = {len(checked)}",
            f"covered = {mean(checked):.3f}",
        ]
    return "\n".join(lines) + "\n"


def tabulate_pool(scores: Sequence[Score]) -> ReportTable:
    """Pool every row that no number of the model is read off; each simpler model beside the
    emulator on the rows that it predicts.
    """
    pool = [each for each in scores if not each.is_fitted]
    answered = [each for each in pool if not each.host_bound]
    held = check_coverage(scores)
    rows = [
        ("emulator, all", *summarise(list_errors(pool)), ""),
        (
            "emulator, without what it refuses",
            *summarise(list_errors(answered)),
            _format_share([held[each] for each in answered if each in held]),
        ),
    ]
    for name, column in MODELS.items():
        if column == "predicted":
            continue
        members = [each for each in pool if getattr(each, column) is not None]
        rows.append((name, *summarise(list_errors(members, column)), ""))
        rows.append(("emulator on the same rows", *summarise(list_errors(members)), ""))
    return ReportTable(
        "Every row that can be built, outside the fits",
        ("model", *SUMMARY, "in band % by document"),
        rows,
    )


def tabulate_documents(scores: Sequence[Score]) -> ReportTable:
    """Summarise by document and kind of work, outside the fits."""
    pool = [each for each in scores if not each.is_fitted]
    keys = {each: (each.document, each.kind) for each in pool}
    return ReportTable(
        "By document", ("document", "kind", *COLUMNS), _tabulate_groups(scores, keys.get)
    )


def tabulate_sets(scores: Sequence[Score]) -> ReportTable:
    """Summarise set by set, those that a number is read off too."""
    table = _tabulate_groups(scores, lambda each: (each.set, FITTED.get(each.set, "")))
    return ReportTable("By set", ("set", "read off it", *COLUMNS), table)


COLUMNS = (*SUMMARY, "two numbers: mean %", "three: mean %", "line: mean %", "in band %")
Key = Callable[[Score], tuple[str, ...] | None]


def _tabulate_groups(scores: Sequence[Score], key: Key) -> list[tuple[str, ...]]:
    held = check_coverage(scores)
    groups: dict[tuple[str, ...], list[Score]] = {}
    for each in scores:
        if (name := key(each)) is not None:
            groups.setdefault(name, []).append(each)
    rows = []
    for name, members in groups.items():
        simple = (summarise(list_errors(members, each))[2] for each in ("two", "three", "nearest"))
        refused = all(each.host_bound for each in members)
        share = _format_share([held[each] for each in members if each in held])
        rows.append(
            (*name, *summarise(list_errors(members)), *simple, "refused" if refused else share)
        )
    return rows


def _format_share(flags: Sequence[bool]) -> str:
    return f"{PERCENT * mean(flags):.0f} ({len(flags)})" if flags else ""


def build_tables(scores: Sequence[Score]) -> list[ReportTable]:
    return [tabulate_pool(scores), tabulate_documents(scores), tabulate_sets(scores)]


def read_rows(path: Path = ROWS) -> list[Score]:
    """Read what `write_rows` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_read_row(line) for line in csv.DictReader(file)]


def _read_row(line: dict[str, str]) -> Score:
    texts = {name: line[name] for name in ("kind", "set", "document", "network", "row", "unit")}
    numbers = {
        name: float(line[name]) if line[name] else None
        for name in ("measured", "predicted", "two", "three", "nearest", "size")
    }
    return Score(**texts, **numbers, host_bound=line["host_bound"] == "True", series=line["series"])  # type: ignore[arg-type]


def write_rows(scores: Sequence[Score], path: Path) -> None:
    """Write every row as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(field.name for field in fields(Score)), "error"])
        for each in scores:
            values = map(_format_value, asdict(each).values())
            writer.writerow([*values, f"{each.error:.4f}"])


def _format_value(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
