"""Check a measurement against Little's law, the peak of the chips and the power rating of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ipu_results.check.gate import (
    FLOP_PER_MAC,
    GIGA_PER_TERA,
    MAX_BATCHES_IN_FLIGHT,
    MIN_BATCHES_IN_FLIGHT,
    PER_ITEM,
    TRAINING_PASSES,
)
from ipu_results.comparison.measurement import Measurement
from ipu_results.ground.text import format_plain
from ipu_results.runner.reference_rows import SEQUENCE
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

EFFICIENCY_TOLERANCE = 0.05  # of throughput over power against the efficiency
MACHINE_BITS = {"fp16": "FP16", "fp32": "32.32", "int8": "INT8"}  # words of the emulator and the runner
MS = 1000.0
GIGA = 10**9
DIGITS = 4  # of a figure that is computed here

Outcome = Literal["ok", "impossible", "doubtful", "not checked"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, outcome and arithmetic; `value` and `limit` are null where it was not made."""

    name: str
    outcome: Outcome
    message: str
    value: float | None = None
    limit: float | None = None


def check_plausibility(ours: Measurement, machine: Mapping[str, Any]) -> list[Check]:
    """Check what the figures imply; `machine` is the row of `platforms`, empty where the machine is unknown."""
    return [_check_little(ours), _check_peak(ours, machine), _check_power(ours, machine), *_check_efficiency(ours)]


def _check_little(ours: Measurement) -> Check:
    name = "Little's law"
    if ours.latency_basis == PER_ITEM:
        return Check(name, "not checked", "the latency is that of an item, not of a batch")
    if not (ours.throughput and ours.latency_ms and ours.batch_size):
        missing = [key for key in ("throughput", "latency_ms", "batch_size") if getattr(ours, key) is None]
        return Check(name, "not checked", f"needs {', '.join(missing)}")
    depth = ours.throughput * ours.latency_ms / MS / ours.batch_size
    product = f"{ours.throughput:.12g} × {ours.latency_ms:.12g} ms / batch {ours.batch_size}"
    text = f"{format_plain(depth)} batches in flight: {product}"
    if depth > MAX_BATCHES_IN_FLIGHT:
        far = f"more than {MAX_BATCHES_IN_FLIGHT}; is the latency in ms, and that of one batch?"
        return Check(name, "doubtful", f"{text}; {far}", depth, MAX_BATCHES_IN_FLIGHT)
    if depth >= MIN_BATCHES_IN_FLIGHT:
        return Check(name, "ok", text, depth, MIN_BATCHES_IN_FLIGHT)
    if ours.latency_basis == "per-batch" or ours.latency_kind == "isolated":  # as R01: stated, so it can have gaps
        return Check(
            name, "ok", f"{text}; the throughput counts time outside the batches", depth, MIN_BATCHES_IN_FLIGHT
        )
    shortest = (
        f"a batch takes at least {format_plain(ours.batch_size / ours.throughput * MS, DIGITS)} ms at this throughput"
    )
    hint = "; is the latency that of an item (--latency-basis per-item)?" if ours.batch_size > 1 else ""
    return Check(name, "impossible", f"{text}; {shortest}{hint}", depth, MIN_BATCHES_IN_FLIGHT)


def _check_peak(ours: Measurement, machine: Mapping[str, Any]) -> Check:
    name = "peak of the chips"
    macs, uncounted = _find_macs(ours)
    gmacs = macs / GIGA if macs else None
    peaks = {normalise_name(word): column for word, column in load_vocabulary().peaks.items()}
    precision = MACHINE_BITS.get(ours.precision or "", ours.precision or "")
    peak = machine.get(peaks.get(normalise_name(precision), "")) if precision else None
    passes = TRAINING_PASSES if ours.task == "training" else 1
    work = (ours.throughput or 0.0) * (gmacs or 0.0) * FLOP_PER_MAC * passes / GIGA_PER_TERA
    missing = [
        text
        for value, text in (
            (ours.throughput, "a throughput"),
            (gmacs, uncounted),
            (ours.precision, "a precision"),
            (ours.chips, "the number of chips"),
        )
        if value is None
    ]
    highest = max((machine[column] for column in peaks.values() if machine.get(column)), default=None)
    if ours.precision is None and highest and ours.chips and work > highest * ours.chips:
        limit = highest * ours.chips
        highest_of = f"the highest peak of {ours.chips} × {ours.chip} at any precision"
        text = f"{format_plain(work, DIGITS)} TFLOP/s, above {format_plain(limit, DIGITS)}, {highest_of}"
        return Check(name, "impossible", text, work, limit)
    if missing:
        return Check(name, "not checked", f"needs {', '.join(missing)}")
    if peak is None:
        return Check(
            name, "not checked", f"no source gives the peak of {ours.platform or 'the machine'} at {ours.precision}"
        )
    assert ours.throughput
    assert gmacs
    assert ours.chips
    limit = peak * ours.chips
    text = (
        f"{format_plain(work, DIGITS)} TFLOP/s: {ours.throughput:.12g} × {gmacs:.4g} GMAC × {FLOP_PER_MAC * passes}, "
        f"{work / limit:.1%} of {format_plain(limit, DIGITS)} "
        f"({ours.chips} × {ours.chip or 'chip'} at {ours.precision})"
    )
    return Check(name, "impossible" if work > limit else "ok", text, work, limit)


def _find_macs(ours: Measurement) -> tuple[int | None, str]:
    """Return the multiply-accumulates of one item, from the table `operation_counts`, else what is missing of them."""
    counts = {
        str(entry["variant"]): entry for entry in load_vocabulary().operation_counts if entry["network"] == ours.network
    }
    variant = f"SL{ours.sequence_length}" if ours.sequence_length else ours.variant or ""
    what = f"the operations of {ours.network}{f' ({variant})' if variant else ''}"
    if not counts:
        return None, f"{what}, which are not counted here"
    if ours.packed:
        return None, f"{what} in packed sequences, whose lengths are not known"
    entry = counts.get(variant)
    if entry is None:
        lengths = [match[1] for name in sorted(counts) if (match := SEQUENCE.fullmatch(name))]
        if lengths and not ours.sequence_length:
            return None, f"the length of a sequence: state --sequence-length, counted are {', '.join(lengths)}"
        names = ", ".join(name for name in sorted(counts) if name)
        return None, f"{what}, which are counted {f'for {names} only' if names else 'without a variant only'}"
    if ours.task == "training" and not entry["training"]:
        return None, f"{what} in training, which are counted for inference only"
    return int(entry["macs"]), ""


def _check_power(ours: Measurement, machine: Mapping[str, Any]) -> Check:
    name, rated = "power rating", machine.get("rated_power_w")
    power = ours.power_w
    if power is None and ours.throughput and ours.efficiency:
        power = ours.throughput / ours.efficiency
    if power is None:
        return Check(name, "not checked", "needs power_w, or throughput and efficiency")
    if rated is None:
        return Check(name, "not checked", f"no source gives the power rating of {ours.platform or 'the machine'}")
    text = f"{format_plain(power, DIGITS)} W; {ours.platform} is rated {format_plain(rated, DIGITS)} W"
    return Check(name, "doubtful" if power > rated else "ok", text, power, rated)


def _check_efficiency(ours: Measurement) -> list[Check]:
    """Compare the three figures of power where all are stated."""
    if not (ours.throughput and ours.power_w and ours.efficiency):
        return []
    ratio = ours.throughput / ours.power_w / ours.efficiency
    implied = ours.throughput / ours.power_w
    text = (
        f"throughput / power is {format_plain(implied, DIGITS)} item/s/W, the stated efficiency {ours.efficiency:.12g}"
    )
    wrong = abs(ratio - 1) > EFFICIENCY_TOLERANCE
    return [Check("efficiency", "impossible" if wrong else "ok", text, ratio, 1.0)]
