"""Name the mistakes that everybody makes: seconds for milliseconds, batches for items, one chip for
the system.

Each mistake multiplies a figure by a known factor. A factor between a figure and what it is held
against is recognised, and the sentence asks about it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

from ipu_results.comparison.comparable import RUN, Row
from ipu_results.comparison.measurement import Measurement
from ipu_results.comparison.plausibility import TEXTS, compute_share, find_limits, get_peak
from ipu_results.ground.text import format_plain

LIMITS = SimpleNamespace(**RUN["mistakes"])  # the numbers, and `factors`, the table of mistakes


class Mistake(NamedTuple):
    """A mistake, by the factor that it puts on a figure; `what` is the factor in words."""

    factor: float
    what: str
    question: str


def list_mistakes(figure: str, ours: Measurement) -> list[Mistake]:
    """List the mistakes in a figure that the conditions of a run allow."""
    chips = ours.chip_count or 1
    words = {
        "batch": ours.batch_size or 1,
        "chips": chips,
        "machine": ours.platform or "the machine",
    }
    mistakes = []
    for entry in LIMITS.factors:
        if entry["figure"] == figure:
            for several in LIMITS.several if "{several}" in entry["factor"] else [1]:
                filled = {**words, "several": several, "of_several": several * chips}
                what = entry["factor"].format(**filled)
                if Fraction(what) != 1:
                    mistakes.append(
                        Mistake(float(Fraction(what)), what, entry["question"].format(**filled))
                    )
    return mistakes


def name_mistakes(
    factor: float, mistakes: Iterable[Mistake], of: str, near: float = LIMITS.near
) -> str:
    """Return "this is 1/16 of ..., and the batch is 16: ...?" for the mistakes whose factor this
    is; "" for none.
    """
    named: dict[str, list[tuple[float, str]]] = {}
    for own in mistakes:
        off = abs(math.log(factor / own.factor))
        if off <= math.log(near):
            named.setdefault(own.what, []).append((off, own.question))
    best = sorted(named.items(), key=lambda entry: min(entry[1])[0])[: LIMITS.max_questions]
    texts = []
    for what, questions in best:
        first, *more = (question for _, question in questions)
        text = "; or ".join([first, *(question.removeprefix("and ") for question in more)])
        about = TEXTS["factor"].format(
            factor=f"{what} {'of' if what.startswith('1/') else 'times'}", of=of
        )
        texts.append(f"{about}{',' if text.startswith('and') else ':'} {text}")
    return "; or ".join(texts)


def name_mistake(
    ours: Measurement,
    figure: str,
    ratio: float,
    row: Row,
    near: float = LIMITS.near,
    expected: float = 1.0,
) -> str:
    """Return the mistakes that explain a ratio to a row, after a semicolon; "" where none does."""
    chips = (
        ours.chip_count / row["chip_count"]
        if figure == "throughput" and ours.chip_count and row["chip_count"]
        else 1
    )
    named = name_mistakes(
        ratio / chips / expected, list_mistakes(figure, ours), "the nearest row", near
    )
    return f"; {named}" if named else ""


def doubt_other_machine(ours: Measurement, figure: str, ratio: float, row: Row) -> str:
    """Return why a figure is doubtful, seen from a row of another machine or precision; "" where it
    may be right.

    A figure far below what the peaks of both at their precisions leave is held against the factors
    of known mistakes. Without both peaks nothing is said. What is too fast is held against the peak
    instead.
    """
    if (
        figure not in ("throughput", "latency_ms")
        or ours.task != "inference"
        or not (ours.chip_count and row["chip_count"])
    ):
        return ""
    peak = get_peak(find_limits(ours.chip), ours.precision)
    theirs = get_peak(find_limits(row["chip"]), row["precision"])
    if not (peak and theirs):
        return ""
    is_rate = figure == "throughput"
    faster = peak / theirs
    speed = (ratio if is_rate else 1 / ratio) * row["chip_count"] / ours.chip_count
    same = (
        ours.platform is not None
        and ours.platform == row["platform"]
        and ours.batch_size == row["batch_size"]
    )
    if same and is_rate and faster <= LIMITS.slower_precision and speed > LIMITS.same_speed:
        precisions = {"ours": ours.precision, "theirs": row["precision"]}
        return str(TEXTS["precision_peak"].format(faster=f"{faster:.0%}", **precisions))
    margin = 1 if is_rate else LIMITS.latency_margin
    low = min(1.0, faster) / LIMITS.far_below / margin
    expected = faster**0.5
    if speed >= low:
        return ""
    named = name_mistake(
        ours, figure, ratio, row, LIMITS.far * margin, expected if is_rate else 1 / expected
    )
    slow = TEXTS["slow"].format(speed=format_plain(speed), limit=format_plain(low))
    return f"{slow}{named}" if named else ""


def doubt_share(
    ours: Measurement, machine: Mapping[str, Any], best: tuple[float, Row] | None
) -> str:
    """Return why a share of the peak is doubtful, seen from the highest of the record for the
    model; "" if not.

    A system that uses less than one of its chips could, and a chip that uses far more than any, are
    asked about.
    """
    share = compute_share(ours, find_limits(ours.chip, machine))
    if share is None or best is None or not ours.chip_count:
        return ""
    highest, row = best
    shares = {"share": f"{share:.2%}", "highest": f"{highest:.2%}"}
    text = TEXTS["of_peak"].format(**shares, publisher=row["publisher"], platform=row["platform"])
    if share > highest * LIMITS.far and share > LIMITS.high_share:
        return f"{text}; {TEXTS['too_high'].format(precision=ours.precision)}"
    if ours.chip_count >= LIMITS.system and share < highest / ours.chip_count / LIMITS.low_share:
        return f"{text}{TEXTS['of_one_chip'].format(chips=ours.chip_count)}"
    return ""
