"""The verdict on a measurement, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from ipu_results.comparison.candidates import Row, name_precision
from ipu_results.comparison.comparison import GROUP_NAMES, UNVERIFIED, Match, Refusal, Status, get_unit
from ipu_results.comparison.measurement import Measurement
from ipu_results.comparison.plausibility import Check

# Rows of one machine, batch and precision differ by up to 1.73 in the record (Yolo v4 on Bow-2000, batch 8).
DOUBTFUL_FACTOR = 2.0


def is_same_set_up(ours: Measurement, row: Row) -> bool:
    """Return whether a row has our machine and batch size, and a precision that does not contradict ours."""
    precisions = {name_precision(ours.precision), name_precision(row["effective_precision"])} - {None}
    same = ours.platform is not None and ours.platform == row["platform"]
    if ours.benchmark is not None:  # the rules of the benchmark leave batch and precision to the submitter
        return same
    return same and ours.batch_size == row["batch_size"] and len(precisions) <= 1


def judge(
    ours: Measurement, matches: Sequence[Match], refusals: Sequence[Refusal], checks: Sequence[Check]
) -> tuple[Status, str]:
    """Return the status and the verdict: what is impossible first, then what the nearest measured row says."""
    status, text = _judge_by_rows(ours, matches, refusals)
    for outcome in ("impossible", "doubtful"):
        if failed := [check for check in checks if check.outcome == outcome]:
            worse: Status = "implausible" if outcome == "impossible" else "doubtful"
            status, text = worse, f"{failed[0].name}: {failed[0].message}"
            break
    notes = [f"; your run is marked as suspect: {ours.suspect}"] if ours.suspect else []
    label = "emulated, not measured: " if ours.origin == "emulated" else ""
    return status, f"{label}{status.replace('-', ' ')}: {text}{''.join(notes)}"


def _judge_by_rows(ours: Measurement, matches: Sequence[Match], refusals: Sequence[Refusal]) -> tuple[Status, str]:
    measured = [match for match in matches if match.group not in UNVERIFIED]
    emulated = [match for match in matches if match.group == "emulated"]
    same = [match for match in measured if is_same_set_up(ours, match.row)]
    if same:
        nearest = min(same, key=lambda match: match.distance)
        ratio = nearest.ratio.ratio
        if max(ratio, 1 / ratio) > DOUBTFUL_FACTOR:
            limit = f"more than a factor of {DOUBTFUL_FACTOR:g} apart on the same machine at the same batch size"
            return "doubtful", f"{describe_match(nearest)}: {limit}"
        return "plausible", describe_match(nearest)
    if measured:
        nearest = min(measured, key=lambda match: match.distance)
        return "other-conditions", f"{describe_match(nearest)}: no row of the same machine, batch size and precision"
    if emulated:
        return "only-emulated", f"{describe_match(emulated[0])}: no measured row may be compared"
    if matches:
        return "no-comparable-row", f"{describe_match(matches[0])}: no other row may be compared"
    if refusals:
        largest = refusals[0]
        count = sum(refusal.rows for refusal in refusals)
        rows = "row" if count == 1 else "rows"
        return (
            "no-comparable-row",
            f"{count} {rows} of {ours.network} may not be compared, {largest.rows} because: {largest.reason}",
        )
    return "no-comparable-row", f"the record has no row of {ours.network}"


def describe_match(match: Match) -> str:
    """Describe a match in one line: ratio, interval, figure and the row."""
    ratio, row = match.ratio, match.row
    ends = f" ({ratio.low:.3g} to {ratio.high:.3g})" if ratio.low is not None and ratio.high is not None else ""
    batch = f", batch {row['batch_size']}" if row["batch_size"] else ""
    software = f", {row['framework']}" if row["framework"] else ""
    figure = f"{ratio.theirs:.6g} {get_unit(ratio.figure, row)}"
    where = f"{row['publisher']}, {row['platform']}{batch}{software}, {figure}"
    return f"{ratio.ratio:.3g} ×{ends} the nearest row {GROUP_NAMES[match.group]} ({where})"
