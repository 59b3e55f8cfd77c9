"""Compare how soon entries converged with the official reference of their round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ipu_results.link.mlperf_speed import LoggedRun, Record, RunsByEntry, get_key
from ipu_results.mlperf.reference import EPOCH_DIGITS, ReferencePoint, find_reference, prune_points
from ipu_results.mlperf.rules import BETWEEN_FINDINGS, CLOSED, Rules, olympic_mean, round_key

STEPS = "steps"
# by which a submitted factor may differ: factors are printed with all digits, or rounded by hand
TOLERANCE = 1e-6


def mark_pruned(rcps: Sequence[dict[str, Any]]) -> None:
    """Add to each point whether its round's reference leaves it out; None for one that was added
    after the round.
    """
    kept = _prune(rcps)
    for row in rcps:
        point = ReferencePoint(row["global_batch_size"], row["rcp_mean"])
        row["pruned"] = (
            point not in kept[row["round"], row["benchmark"]] if row["at_round"] else None
        )


def _prune(rcps: Iterable[Record]) -> dict[tuple[str, str], list[ReferencePoint]]:
    points: dict[tuple[str, str], list[ReferencePoint]] = defaultdict(list)
    for row in rcps:
        if row["at_round"]:
            points[row["round"], row["benchmark"]].append(
                ReferencePoint(row["global_batch_size"], row["rcp_mean"])
            )
    return {name: prune_points(of_benchmark) for name, of_benchmark in points.items()}


def add_references(
    entries: Iterable[dict[str, Any]], runs: RunsByEntry, rcps: Sequence[Record], known: Rules
) -> None:
    """Add reference and expected scaling factor to each entry, and a finding where its factor is
    another one.
    """
    kept = _prune(rcps)
    units = {(row["round"], row["benchmark"]): row["rcp_unit"] for row in rcps}
    for entry in entries:
        name = (entry["round"], entry["benchmark"])
        batch = entry["global_batch_size"]
        is_late = round_key(entry["round"]) >= round_key(known.first_normalised_round)
        entry["normalised"] = is_late and entry["division"] == CLOSED
        reference = (
            find_reference(kept[name], batch) if name in kept and batch is not None else None
        )
        if reference is None:
            continue
        entry["reference_to_converge"], entry["reference_method"] = reference
        drop = known.benchmark(entry["benchmark"]).drop
        own = _average_counts(runs.get(get_key(entry), ()), units[name], batch, drop)
        if entry["normalised"] and own:
            entry["expected_scaling_factor"] = max(1.0, reference[0] / own)
            _report_factor(entry)


def _average_counts(runs: Sequence[LoggedRun], unit: str, batch: int, drop: int) -> float | None:
    """Average what the runs needed, in the unit of the reference, as the RCP checker does."""
    counted = [run for run in runs if run.counted]
    if unit == STEPS:
        counts = [None if run.samples is None else run.samples / batch for run in counted]
    else:
        counts = [getattr(run, unit) for run in counted]
    known = [
        round(count, EPOCH_DIGITS) if unit == "epochs" else count
        for count in counts
        if count is not None
    ]
    return (
        olympic_mean(known, len(runs) - len(counted), drop) if len(known) == len(counted) else None
    )


def _report_factor(entry: dict[str, Any]) -> None:
    factor = entry["scaling_factor"]
    expected = entry["expected_scaling_factor"]
    if entry["minutes"] is not None and abs(factor / expected - 1) > TOLERANCE:
        message = f"scaling_factor is {factor:.6g}; its logs and the reference give {expected:.6g}"
        entry["findings"] = BETWEEN_FINDINGS.join(filter(None, (entry["findings"], message)))
