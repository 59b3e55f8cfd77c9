"""Check a measurement against Little's law, the peak of the chips and the power rating of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ipu_results.comparison.measurement import Measurement, parse_sequence_length
from ipu_results.ground import physics
from ipu_results.ground.physics import FLOP_PER_MAC, MAX_BATCHES_IN_FLIGHT, MIN_BATCHES_IN_FLIGHT
from ipu_results.ground.text import format_plain
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

MACHINE_BITS = {"fp16": "FP16", "fp32": "32.32", "int8": "INT8"}  # words of the emulator and the runner
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
    return [_check_little(ours), _check_peak(ours, machine), *_check_power(ours, machine)]


def _check_little(ours: Measurement) -> Check:
    name = "Little's law"
    if ours.latency_basis == physics.PER_ITEM:
        return Check(name, "not checked", "the latency is that of an item, not of a batch")
    if not (ours.throughput and ours.latency_ms and ours.batch_size):
        missing = [key for key in ("throughput", "latency_ms", "batch_size") if getattr(ours, key) is None]
        return Check(name, "not checked", f"needs {', '.join(missing)}")
    depth = physics.count_batches_in_flight(ours.throughput, ours.latency_ms, ours.batch_size)
    product = f"{ours.throughput:.12g} × {ours.latency_ms:.12g} ms / batch {ours.batch_size}"
    text = f"{format_plain(depth)} batches in flight: {product}"
    if depth > MAX_BATCHES_IN_FLIGHT:
        far = f"more than {MAX_BATCHES_IN_FLIGHT}; is the latency in ms, and that of one batch?"
        return Check(name, "doubtful", f"{text}; {far}", depth, MAX_BATCHES_IN_FLIGHT)
    outcome: Outcome = "ok"
    if depth < MIN_BATCHES_IN_FLIGHT and (ours.latency_basis == "per-batch" or ours.latency_kind == "isolated"):
        text += "; the throughput counts time outside the batches"  # as R01: stated, so it can have gaps
    elif depth < MIN_BATCHES_IN_FLIGHT:
        outcome, shortest = "impossible", physics.compute_min_latency_ms(ours.throughput, ours.batch_size)
        hint = "; is the latency that of an item (--latency-basis per-item)?" if ours.batch_size > 1 else ""
        text += f"; a batch takes at least {format_plain(shortest, DIGITS)} ms at this throughput{hint}"
    return Check(name, outcome, text, depth, MIN_BATCHES_IN_FLIGHT)


def _check_peak(ours: Measurement, machine: Mapping[str, Any]) -> Check:
    name, chips = "peak of the chips", ours.chips or 0
    macs, uncounted = _find_macs(ours)
    gmacs, passes = (macs or 0) / physics.GIGA, physics.count_passes(ours.task)
    work = physics.compute_tflops(ours.throughput or 0.0, gmacs, passes)
    peaks = {normalise_name(word): machine.get(column) for word, column in load_vocabulary().peaks.items()}
    highest = max(filter(None, peaks.values()), default=None)
    if ours.precision is None and highest and chips and work > highest * chips:
        highest_of = f"the highest peak of {chips} × {ours.chip} at any precision"
        text = f"{format_plain(work, DIGITS)} TFLOP/s, above {format_plain(highest * chips, DIGITS)}, {highest_of}"
        return Check(name, "impossible", text, work, highest * chips)
    needed = {"a throughput": ours.throughput, uncounted: macs, "a precision": ours.precision}
    missing = [text for text, value in {**needed, "the number of chips": ours.chips}.items() if value is None]
    if missing:
        return Check(name, "not checked", f"needs {', '.join(missing)}")
    assert ours.precision
    peak = peaks.get(normalise_name(MACHINE_BITS.get(ours.precision, ours.precision)))
    if peak is None:
        unknown = f"no source gives the peak of {ours.platform or 'the machine'} at {ours.precision}"
        return Check(name, "not checked", unknown)
    limit = peak * chips
    text = (
        f"{format_plain(work, DIGITS)} TFLOP/s: {ours.throughput:.12g} × {gmacs:.4g} GMAC × {FLOP_PER_MAC * passes}, "
        f"{work / limit:.1%} of {format_plain(limit, DIGITS)} ({chips} × {ours.chip or 'chip'} at {ours.precision})"
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
        names = sorted(filter(None, counts))
        lengths = [str(length) for name in names if (length := parse_sequence_length(name))]
        if lengths and not ours.sequence_length:
            return None, f"the length of a sequence: state --sequence-length, counted are {', '.join(lengths)}"
        known = f"for {', '.join(names)}" if names else "without a variant"
        return None, f"{what}, which are counted {known} only"
    if ours.task == "training" and not entry["training"]:
        return None, f"{what} in training, which are counted for inference only"
    return int(entry["macs"]), ""


def _check_power(ours: Measurement, machine: Mapping[str, Any]) -> Iterator[Check]:
    """Compare the power with the rating, and the three figures of power where all are stated."""
    name, rated, power = "power rating", machine.get("rated_power_w"), ours.power_w
    if power is None and ours.throughput and ours.efficiency:
        power = physics.compute_power_w(ours.throughput, ours.efficiency)
    if power is None:
        yield Check(name, "not checked", "needs power_w, or throughput and efficiency")
    elif rated is None:
        yield Check(name, "not checked", f"no source gives the power rating of {ours.platform or 'the machine'}")
    else:
        text = f"{format_plain(power, DIGITS)} W; {ours.platform} is rated {format_plain(rated, DIGITS)} W"
        yield Check(name, "doubtful" if power > rated else "ok", text, power, rated)
    if ours.throughput and ours.power_w and ours.efficiency:
        implied = ours.throughput / ours.power_w
        stated = f"the stated efficiency {ours.efficiency:.12g}"
        text = f"throughput / power is {format_plain(implied, DIGITS)} item/s/W, {stated}"
        ratio = implied / ours.efficiency
        wrong = abs(ratio - 1) > physics.EFFICIENCY_TOLERANCE
        yield Check("efficiency", "impossible" if wrong else "ok", text, ratio, 1.0)
