"""Check a measurement against Little's law, the peak of the chips and the power rating of the
machine.

A figure that no chip can reach is impossible. One that leaves nearly all of the machine idle is
doubtful. Each message asks about the mistake that explains it, where one does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ipu_results.comparison.measurement import COMPARISON, Measurement, parse_sequence_length
from ipu_results.ground import physics
from ipu_results.ground.physics import (
    DOUBTFUL_BATCHES_IN_FLIGHT,
    FLOP_PER_MAC,
    MAX_BATCHES_IN_FLIGHT,
    MIN_BATCHES_IN_FLIGHT,
    WRONG_BATCHES_IN_FLIGHT,
)
from ipu_results.ground.text import format_plain
from ipu_results.schema.accelerators import find_accelerator, load_accelerators
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

TEXTS: Mapping[str, str] = COMPARISON["run"]["texts"]
DIGITS = 4  # of a figure that is computed here
COLUMN_OF_PEAK = re.compile("peak_(.+)_t(?:fl)?ops")
OF_16_BITS = ("fp16", "bf16")
OF_CHIPS = ("device", "board", "package")
WATTS = re.compile(r"(\d{2,4}) ?W\b")  # of a chip's name, such as `A100-PCIE-40GB (250W)`
THOUSAND = 1000.0
# of a whole machine over the rating of its chips: hosts, network and supplies; a convention
MAX_DRAW = 4.0
MAX_TAIL = 20.0  # of the longest latency over the mean or median of a warm machine; a convention
# of the rating of one chip; no row of the record without an error flag draws so little
MIN_DRAW = 1 / 30

Outcome = Literal["ok", "impossible", "doubtful", "not checked"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, outcome and arithmetic; `value` and `limit` are null where it was not
    made.
    """

    name: str
    outcome: Outcome
    message: str
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one chip can do by type, in 10¹² operations per second, and what the machine and one
    chip may draw, in W.
    """

    peaks: Mapping[str, float]
    machine_w: float | None = None
    chip_w: float | None = None
    is_accelerator: bool = False


@cache
def _load_chips() -> Mapping[str, Mapping[str, Any]]:
    """Load what the vocabulary knows of each chip by name; of a machine, only what holds for one
    chip is read.
    """
    return {entry["chip"]: entry for entry in load_vocabulary().list_entries("platform")}


def find_limits(chip: str | None, machine: Mapping[str, Any] = {}) -> Limits:
    """Return the limits of a machine, which may be new here: those that are stated of its chip,
    then sourced ones.
    """
    vocabulary = load_vocabulary()
    chip = chip or machine.get("chip")
    facts = {
        **_load_chips().get(chip or "", {}),
        **{name: value for name, value in machine.items() if value is not None},
    }
    stated = {
        match[1]: facts[column]
        for column in set(vocabulary.peaks.values())
        if facts.get(column) and (match := COLUMN_OF_PEAK.fullmatch(column))
    }
    own = find_accelerator(chip)
    rated = vocabulary.chip_ratings.get(chip or "") or (own.power_w if own else None)
    if rated and (watts := WATTS.search(chip or "")):
        rated = max(rated, float(watts[1]))
    return Limits(
        {**(own.peaks if own else {}), **stated},
        machine.get("rated_power_w"),
        rated,
        own is not None,
    )


def get_peak(limits: Limits, precision: str | None) -> float | None:
    """Return the peak of one chip at a precision, None where no source gives it."""
    name = name_type(precision)
    if name in OF_16_BITS:
        return max(filter(None, map(limits.peaks.get, OF_16_BITS)), default=None)
    return limits.peaks.get(name or "")


def name_type(precision: str | None) -> str | None:
    """Return the type of a precision as the peaks have it, such as fp16 of 16.32 and of mixed."""
    name = normalise_name(precision or "")
    columns = {normalise_name(word): column for word, column in load_vocabulary().peaks.items()}
    match = COLUMN_OF_PEAK.fullmatch(columns.get(name, ""))
    return match[1] if match else name or None


def check_plausibility(ours: Measurement, machine: Mapping[str, Any]) -> list[Check]:
    """Check what the figures imply; `machine` is the row of `platforms`, empty where the machine is
    unknown.
    """
    limits = find_limits(ours.chip, machine)
    checks = [_check_little(ours), _check_peak(ours, limits)]
    if ours.latency_ms:
        checks.append(_check_latency(ours, limits))
    if ours.latency_ms and ours.latency_max_ms:
        checks.append(_check_warm_up(ours.latency_ms, ours.latency_max_ms))
    return [*checks, *_check_power(ours, limits)]


def _check_little(ours: Measurement) -> Check:
    name = "Little's law"
    is_of_item = ours.latency_basis == physics.PER_ITEM
    batch = 1 if is_of_item else ours.batch_size
    if not (ours.throughput and ours.latency_ms and batch):
        missing = [
            key for key in ("throughput", "latency_ms", "batch_size") if getattr(ours, key) is None
        ]
        return Check(name, "not checked", TEXTS["needs"].format(what=", ".join(missing)))
    depth = physics.count_batches_in_flight(ours.throughput, ours.latency_ms, batch)
    product = f"{ours.throughput:.12g} × {ours.latency_ms:.12g} ms" + (
        "" if is_of_item else f" / batch {batch}"
    )
    unit = "items" if is_of_item else "batches"
    text = TEXTS["in_flight"].format(depth=format_plain(depth), unit=unit, product=product)
    repairs = [(THOUSAND, TEXTS["seconds"])]
    if not is_of_item and batch > 1:
        repairs.append((batch, TEXTS["batches"]))
    if (ours.chip_count or 1) > 1:
        repairs.append((ours.chip_count or 1, TEXTS["one_chip"]))
    fits = _name_repairs(depth, repairs, MIN_BATCHES_IN_FLIGHT / 2, MAX_BATCHES_IN_FLIGHT)
    if depth > MAX_BATCHES_IN_FLIGHT * ((ours.batch_size or 1) if is_of_item else 1):
        far = TEXTS["too_many"].format(limit=MAX_BATCHES_IN_FLIGHT)
        return Check(name, "doubtful", f"{text}; {far}", depth, MAX_BATCHES_IN_FLIGHT)
    hint = f"; {fits}" if fits else ""
    if ours.latency_basis == "per-batch" or ours.latency_kind == "isolated" or is_of_item:
        # as R01: stated, so there can be time outside the batches, but not nearly all of it
        outcome: Outcome = "ok"
        if depth < DOUBTFUL_BATCHES_IN_FLIGHT:
            outcome = "impossible" if depth < WRONG_BATCHES_IN_FLIGHT else "doubtful"
            text += f"; {TEXTS['idle'].format(share=f'{1 - depth:.3%}')}{hint}"
        elif depth < MIN_BATCHES_IN_FLIGHT:
            text += f"; {TEXTS['outside']}"
        return Check(name, outcome, text, depth, MIN_BATCHES_IN_FLIGHT)
    if depth >= MIN_BATCHES_IN_FLIGHT:
        return Check(name, "ok", text, depth, MIN_BATCHES_IN_FLIGHT)
    shortest = physics.compute_min_latency_ms(ours.throughput, batch)
    per_item = f"; {TEXTS['of_item']}" if batch > 1 and not hint else ""
    text += f"; {TEXTS['shortest'].format(shortest=format_plain(shortest, DIGITS))}{per_item}{hint}"
    return Check(name, "impossible", text, depth, MIN_BATCHES_IN_FLIGHT)


def _name_repairs(
    share: float, repairs: Iterable[tuple[float, str]], low: float, high: float
) -> str:
    """Return the questions about the factors that bring a share between two bounds, the nearest to
    1 first.
    """
    fits = [(abs(math.log(share * factor)), factor, question) for factor, question in repairs]
    fits = [fit for fit in fits if low <= share * fit[1] <= high]
    best = sorted(fits)[:2]
    return "; or ".join(
        TEXTS["fits"].format(times=format_plain(own), question=question)
        for _, own, question in best
    )


def _check_peak(ours: Measurement, limits: Limits) -> Check:
    """Compare the work of a throughput with the peak."""
    macs, uncounted = _find_macs(ours)
    gmacs = (macs or 0) / physics.GIGA
    passes = physics.count_passes(ours.task)
    work = physics.compute_tflops(ours.throughput or 0.0, gmacs, passes)
    arithmetic = (
        f"{ours.throughput or 0:.12g} × {format_plain(gmacs, DIGITS)} GMAC ×"
        f" {FLOP_PER_MAC * passes}"
    )
    missing = [
        text
        for text, value in {"a throughput": ours.throughput, uncounted: macs}.items()
        if value is None
    ]
    return _compare_with_peak(
        "peak of the chips", ours, limits, work, arithmetic, missing, "throughput"
    )


def _check_latency(ours: Measurement, limits: Limits) -> Check:
    """Compare the work of one batch within its latency with the peak: the floor of a latency,
    whatever is in flight.
    """
    assert ours.latency_ms
    macs, uncounted = _find_macs(ours)
    batch = 1 if ours.latency_basis == physics.PER_ITEM else ours.batch_size
    gmacs = (macs or 0) / physics.GIGA
    passes = physics.count_passes(ours.task)
    work = physics.compute_latency_tflops(batch or 0, ours.latency_ms, gmacs, passes)
    arithmetic = (
        f"batch {batch} × {format_plain(gmacs, DIGITS)} GMAC × {FLOP_PER_MAC * passes} /"
        f" {ours.latency_ms:.12g} ms"
    )
    missing = [
        text for text, value in {"batch_size": batch, uncounted: macs}.items() if value is None
    ]
    return _compare_with_peak(
        "latency floor", ours, limits, work, arithmetic, missing, "latency_ms"
    )


def _check_warm_up(latency_ms: float, latency_max_ms: float) -> Check:
    """Compare the longest latency with the stated one: the first runs compile and load."""
    times = latency_max_ms / latency_ms
    text = (
        f"the longest latency, {latency_max_ms:.12g} ms, is {format_plain(times)} times the"
        " stated one"
    )
    if times < MAX_TAIL:
        return Check("warm-up", "ok", text, times, MAX_TAIL)
    question = "are the first runs among the timed ones? Leave out the warm-up"
    return Check("warm-up", "doubtful", f"{text}; {question}", times, MAX_TAIL)


def _compare_with_peak(
    name: str,
    ours: Measurement,
    limits: Limits,
    work: float,
    arithmetic: str,
    missing: list[str],
    figure: str,
) -> Check:
    chips = ours.chip_count or 0
    highest = max(limits.peaks.values(), default=None)
    top = (highest or 0) * chips
    shown = format_plain(work, DIGITS)
    any_peak = TEXTS["any_precision"].format(chips=chips, chip=ours.chip)
    if ours.precision is None and top and work > top:
        hint = _ask_about_peak(ours, limits, work, top, figure)
        text = TEXTS["above_any"].format(work=shown, limit=format_plain(top, DIGITS), peak=any_peak)
        return Check(name, "impossible", text + hint, work, top)
    if ours.precision is None:
        missing.append("a precision")
    if missing or ours.chip_count is None:
        missing += ["the number of chips"] if not chips else []
        return Check(name, "not checked", TEXTS["needs"].format(what=", ".join(missing)))
    assert ours.precision
    peak = get_peak(limits, ours.precision)
    if peak is None:
        if top and work > top:
            hint = _ask_about_peak(ours, limits, work, top, figure)
            return Check(
                name,
                "impossible",
                TEXTS["above_known"].format(work=shown, peak=any_peak) + hint,
                work,
                top,
            )
        machine = ours.platform or ours.chip or "the machine"
        return Check(
            name, "not checked", TEXTS["no_peak"].format(machine=machine, precision=ours.precision)
        )
    limit = peak * chips
    shares = {"share": f"{work / limit:.1%}", "limit": format_plain(limit, DIGITS)}
    of = {"chips": chips, "chip": ours.chip or "chip", "precision": ours.precision}
    text = TEXTS["share"].format(work=shown, arithmetic=arithmetic, **shares, **of)
    if work <= limit:
        return Check(name, "ok", text, work, limit)
    text += _ask_about_peak(ours, limits, work, limit, figure)
    tensor = limits.peaks.get("tf32") if name_type(ours.precision) == "fp32" else None
    if tensor and limit < work <= tensor * chips and limits.is_accelerator:
        # frameworks run convolutions of FP32 as TF32 by default
        return Check(name, "doubtful", text, work, limit)
    return Check(name, "impossible", text, work, limit)


def _ask_about_peak(
    ours: Measurement, limits: Limits, work: float, limit: float, figure: str
) -> str:
    """Return the questions that explain work above a limit, "" where nothing does."""
    chips = ours.chip_count or 1
    questions = []
    faster = [name for name, peak in limits.peaks.items() if peak * chips >= work]
    if faster and ours.precision is not None:
        name = min(faster, key=lambda name: limits.peaks[name])
        other = {"other": name.upper(), "option": name, "precision": ours.precision}
        questions.append(TEXTS["other_precision"].format(**other))
    if figure == "latency_ms":
        questions += [TEXTS["seconds"]] if work <= limit * THOUSAND * 2 else []
        if (
            (ours.batch_size or 1) > 1
            and ours.latency_basis != physics.PER_ITEM
            and work <= limit * (ours.batch_size or 1)
        ):
            questions.append(TEXTS["latency_of_item"])
    else:
        if work <= limit * max(64, chips):
            questions.append(TEXTS["more_chips"])
        if work <= limit * (ours.batch_size or 1) and (ours.batch_size or 1) > 1:
            questions.append(TEXTS["batch_twice"])
        if work > limit * 10:
            questions.append(TEXTS["unit"])
    return f"; {'; or '.join(questions)}" if questions else ""


def _find_macs(ours: Measurement) -> tuple[int | None, str]:
    """Return the multiply-accumulates of one item, from the table `operation_counts`, else what is
    missing of them.
    """
    counts = {
        str(entry["variant"]): entry
        for entry in load_vocabulary().operation_counts
        if entry["model"] == ours.model
    }
    variant = f"SL{ours.sequence_length}" if ours.sequence_length else ours.variant or ""
    what = TEXTS["operations"].format(what=f"{ours.model}{f' ({variant})' if variant else ''}")
    if not counts:
        return None, what + TEXTS["not_counted"]
    if ours.sparsity:
        return None, what + TEXTS["sparse"]
    if ours.packed:
        return None, what + TEXTS["packed"]
    entry = counts.get(variant)
    if entry is None:
        names = sorted(filter(None, counts))
        lengths = [str(length) for name in names if (length := parse_sequence_length(name))]
        if lengths and not ours.sequence_length:
            return None, TEXTS["length"].format(lengths=", ".join(lengths))
        known = f"for {', '.join(names)}" if names else "without a variant"
        return None, what + TEXTS["counted"].format(variants=known)
    if ours.task == "training" and not entry["training"]:
        return None, what + TEXTS["inference_only"]
    return int(entry["macs"]), ""


def _check_power(ours: Measurement, limits: Limits) -> Iterator[Check]:
    """Compare the power with the rating of the machine or of its chips, and the figures of power
    with each other.
    """
    name = "power rating"
    power = ours.power_w
    if power is None and ours.throughput and ours.efficiency:
        power = physics.compute_power_w(ours.throughput, ours.efficiency)
    of_chips = limits.chip_w * ours.chip_count if limits.chip_w and ours.chip_count else None
    is_of_chips = ours.power_scope in OF_CHIPS or (
        limits.machine_w is None and ours.power_scope is None
    )
    if power is None:
        yield Check(name, "not checked", "needs power_w, or throughput and efficiency")
    elif limits.machine_w is not None and not (ours.power_scope in OF_CHIPS and of_chips):
        text = (
            f"{format_plain(power, DIGITS)} W; {ours.platform} is rated"
            f" {format_plain(limits.machine_w, DIGITS)} W"
        )
        yield _judge_power(
            name, text, power, limits.machine_w, limits.chip_w or limits.machine_w, 1.0
        )
    elif of_chips is not None and limits.chip_w:
        rated = f"{ours.chip_count} × {ours.chip} are rated {format_plain(of_chips, DIGITS)} W"
        scope = (
            "" if is_of_chips else f", and {ours.power_scope} power may be {MAX_DRAW:g} times that"
        )
        text = f"{format_plain(power, DIGITS)} W; {rated}{scope}"
        yield _judge_power(
            name, text, power, of_chips, limits.chip_w, 1.0 if is_of_chips else MAX_DRAW
        )
    else:
        lowest, highest = _find_range_of_ratings()
        machine = ours.platform or ours.chip or "the machine"
        text = f"no source gives the power rating of {machine}"
        far = (
            f"{format_plain(power, DIGITS)} W; {text}; chips are rated {lowest:g} to {highest:g} W"
        )
        own = _judge_power(
            name, far, power, highest * (ours.chip_count or math.inf), lowest, MAX_DRAW
        )
        yield own if own.outcome == "doubtful" else Check(name, "not checked", text)
    if ours.throughput and ours.power_w and ours.efficiency:
        implied = ours.throughput / ours.power_w
        stated = f"the stated efficiency {ours.efficiency:.12g}"
        text = f"throughput / power is {format_plain(implied, DIGITS)} item/s/W, {stated}"
        ratio = implied / ours.efficiency
        wrong = abs(ratio - 1) > physics.EFFICIENCY_TOLERANCE
        yield Check("efficiency", "impossible" if wrong else "ok", text, ratio, 1.0)


@cache
def _find_range_of_ratings() -> tuple[float, float]:
    """Return the lowest and the highest rated power of one chip that a source states."""
    own = (accelerator.power_w for accelerator in load_accelerators() if accelerator.power_w)
    ratings = [*load_vocabulary().chip_ratings.values(), *own]
    return min(ratings), max(ratings)


def _judge_power(
    name: str, text: str, power: float, limit: float, chip_w: float, factor: float
) -> Check:
    """Judge a power by `factor` times the rating `limit`, and by a small part of the rating of one
    chip.
    """
    if power > limit * factor:
        unit = "is it in milliwatts? State power_w in watts"
        hint = (
            f"; {unit}"
            if power > limit * THOUSAND / 10
            else "; is it the power of more chips, or of the whole machine?"
        )
        return Check(name, "doubtful", text + hint, power, limit * factor)
    if power < chip_w * MIN_DRAW:
        return Check(
            name,
            "doubtful",
            f"{text}; is it in kilowatts? State power_w in watts",
            power,
            chip_w * MIN_DRAW,
        )
    return Check(name, "ok", text, power, limit * factor)


def compute_share(ours: Measurement, limits: Limits) -> float | None:
    """Compute the share of the peak of all chips that a throughput uses; None where either is not
    known.
    """
    macs, _ = _find_macs(ours)
    peak = get_peak(limits, ours.precision) if ours.precision else None
    if not (macs and peak and ours.chip_count and ours.throughput):
        return None
    work = physics.compute_tflops(
        ours.throughput, macs / physics.GIGA, physics.count_passes(ours.task)
    )
    return float(work / (peak * ours.chip_count))
