"""Name the mistakes that everybody makes: seconds for milliseconds, batches for items, one chip for the system.

Each mistake multiplies a figure by a known factor. A factor between a figure and what it is held against is recognised,
and the sentence asks about it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ipu_results.comparison.comparable import Row
from ipu_results.comparison.measurement import Measurement
from ipu_results.comparison.plausibility import compute_share, find_limits, get_peak
from ipu_results.ground.text import format_plain

NEAR = 1.35  # by which a factor may be off where all else is the same; a convention
FAR = 3.0  # the same on another machine
MAX_QUESTIONS = 2
# Conventions: how far below the slower one of two machines a figure is doubtful, and more for latencies, which may time
# one batch or several in flight; a precision of at most so much of the peak that reaches nearly the same figure.
FAR_BELOW, LATENCY_MARGIN = 5.0, 4.0
SLOWER_PRECISION, SAME_SPEED = 0.3, 0.8
HIGH_SHARE = 0.4  # of the peak: below it no figure is too high
SYSTEM = 4  # chips from which a figure may be that of one of them
LOW_SHARE = 4.0  # of the highest share over the chips: machines differ in what they reach
PER_MINUTE, PER_HOUR = 60, 3600
CHIPS = (2, 4, 8, 16, 32, 64)  # of the systems that are sold


class Mistake(NamedTuple):
    """A mistake, by the factor that it puts on a figure; `what` is the factor in words."""

    factor: float
    what: str
    question: str


def list_mistakes(figure: str, ours: Measurement) -> list[Mistake]:
    """List the mistakes in a figure that the conditions of a run allow."""
    batch, chips = ours.batch_size or 1, ours.chips or 1
    thousand = {
        "throughput": "is it in thousands of items per second?",
        "latency_ms": "is it in seconds? State --latency-ms in milliseconds",
        "power_w": "is it in kilowatts? State --power-w in watts",
        "efficiency": "is the power behind it in milliwatts?",
        "minutes": "is the unit right?",
    }[figure]
    mistakes = [Mistake(1 / 1000, "1/1000", thousand)]
    if figure == "throughput":
        mistakes += [
            Mistake(1000, "1000", "is it items per 1000 seconds, or a latency?"),
            Mistake(PER_MINUTE, "60", "is it items per minute?"),
            Mistake(PER_HOUR, "3600", "is it items per hour?"),
        ]
        if batch > 1:
            mistakes += [
                Mistake(1 / batch, f"1/{batch}", f"and the batch is {batch}: is it batches per second?"),
                Mistake(batch, f"{batch}", f"and the batch is {batch}: is it multiplied by the batch twice?"),
            ]
        mistakes += [
            Mistake(many, f"{many}", f"is it the figure of {many * chips} chips? State --chips") for many in CHIPS
        ]
    if figure == "latency_ms":
        mistakes.append(Mistake(1000, "1000", "is it in microseconds? State --latency-ms in milliseconds"))
        if batch > 1:
            item = f"and the batch is {batch}: is it the latency of an item? State --latency-basis per-item"
            mistakes += [Mistake(1 / batch, f"1/{batch}", item)]
    if figure == "minutes":
        mistakes += [
            Mistake(PER_MINUTE, "60", "is it in seconds? State --minutes"),
            Mistake(1 / PER_MINUTE, "1/60", "is it in hours? State --minutes"),
        ]
    if figure in ("power_w", "efficiency"):
        mistakes.append(Mistake(1000, "1000", "is it in milliwatts? State --power-w in watts"))
    if chips > 1 and figure in ("throughput", "power_w"):
        per_chip = f"and {ours.platform or 'the machine'} has {chips} chips: is it the figure of one chip?"
        mistakes.append(Mistake(1 / chips, f"1/{chips}", per_chip))
    return mistakes


def name_mistakes(factor: float, mistakes: Iterable[Mistake], of: str, near: float = NEAR) -> str:
    """Return "this is 1/16 of ..., and the batch is 16: ...?" for the mistakes whose factor this is; "" for none."""
    named: dict[str, list[tuple[float, str]]] = {}
    for own in mistakes:
        off = abs(math.log(factor / own.factor))
        if off <= math.log(near):
            named.setdefault(own.what, []).append((off, own.question))
    best = sorted(named.items(), key=lambda entry: min(entry[1])[0])[:MAX_QUESTIONS]
    texts = []
    for what, questions in best:
        unit = "of" if what.startswith("1/") else "times"
        first, *more = (question for _, question in questions)
        text = "; or ".join([first, *(question.removeprefix("and ") for question in more)])
        texts.append(f"this is about {what} {unit} {of}{'' if text.startswith('and') else ':'} {text}")
    return "; or ".join(texts)


def name_mistake(
    ours: Measurement, figure: str, ratio: float, row: Row, near: float = NEAR, expected: float = 1.0
) -> str:
    """Return the mistakes that explain a ratio to a row, after a semicolon; "" where none does."""
    chips = ours.chips / row["chips"] if figure == "throughput" and ours.chips and row["chips"] else 1
    named = name_mistakes(ratio / chips / expected, list_mistakes(figure, ours), "the nearest row", near)
    return f"; {named}" if named else ""


def doubt_other_machine(ours: Measurement, figure: str, ratio: float, row: Row) -> str:
    """Return why a figure is doubtful, seen from a row of another machine or precision; "" where it may be right.

    A figure far below what the peaks of both at their precisions leave is held against the factors of known mistakes.
    Without both peaks nothing is said. What is too fast is held against the peak instead.
    """
    if figure not in ("throughput", "latency_ms") or ours.task != "inference" or not (ours.chips and row["chips"]):
        return ""
    peak = get_peak(find_limits(ours.chip), ours.precision)
    theirs = get_peak(find_limits(row["chip"]), row["effective_precision"])
    if not (peak and theirs):
        return ""
    is_rate, faster = figure == "throughput", peak / theirs
    speed = (ratio if is_rate else 1 / ratio) * row["chips"] / ours.chips
    same = ours.platform is not None and ours.platform == row["platform"] and ours.batch_size == row["batch_size"]
    if same and is_rate and faster <= SLOWER_PRECISION and speed > SAME_SPEED:
        peaks = f"the peak at {ours.precision} is {faster:.0%} of that at {row['effective_precision']}"
        return f"{peaks}; is it a figure at {row['effective_precision']} called {ours.precision}? State --precision"
    margin = 1 if is_rate else LATENCY_MARGIN
    low, expected = min(1.0, faster) / FAR_BELOW / margin, faster**0.5
    if speed >= low:
        return ""
    named = name_mistake(ours, figure, ratio, row, FAR * margin, expected if is_rate else 1 / expected)
    slow = f"each chip would be {format_plain(speed)} times as fast, less than {format_plain(low)}"
    return f"{slow}{named}" if named else ""


def doubt_share(ours: Measurement, machine: Mapping[str, Any], best: tuple[float, Row] | None) -> str:
    """Return why a share of the peak is doubtful, seen from the highest of the record for the network; "" if not.

    A system that uses less than one of its chips could, and a chip that uses far more than any, are asked about.
    """
    share = compute_share(ours, find_limits(ours.chip, machine))
    if share is None or best is None or not ours.chips:
        return ""
    highest, row = best
    text = (
        f"{share:.2%} of the peak; the highest of the record is {highest:.2%} ({row['publisher']}, {row['platform']})"
    )
    if share > highest * FAR and share > HIGH_SHARE:
        precision = f"or is it not {ours.precision}? State --precision"
        return f"{text}; is it the figure of more chips? State --chips; {precision}"
    if ours.chips >= SYSTEM and share < highest / ours.chips / LOW_SHARE:
        return f"{text}, far less than 1/{ours.chips} of it: is it the figure of one chip of {ours.chips}?"
    return ""
