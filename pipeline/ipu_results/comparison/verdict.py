"""What a comparison holds: matches with their ratios, refusals, checks and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ipu_results.check.gate import MAX_BATCHES_IN_FLIGHT
from ipu_results.comparison.candidates import (
    RUN,
    Difference,
    Obstacle,
    Row,
    find_input_size,
    get_latency_basis,
    has_same_chips,
    name_precision,
)
from ipu_results.comparison.measurement import Measurement
from ipu_results.comparison.plausibility import Check
from ipu_results.ground.text import format_plain, to_json_value

UNKNOWN = "unknown"  # published, by whom seen from the maker of the chip is not known
GROUP_NAMES: Mapping[str, str] = RUN["groups"]
ROW_NAMES: Mapping[str, str] = RUN["rows"]
GROUPS = tuple(GROUP_NAMES)
UNVERIFIED = ("emulated", "submitted")  # groups that no verdict rests on
ROW_COLUMNS = (
    *("result_id", "origin", "relationship", "publisher", "document_id", "table_name", "row_number", "published_on"),
    *("network", "variant", "task", "phase", "platform", "chip", "chips", "framework", "sdk_version"),
    *("effective_precision", "batch_size", "throughput", "item", "latency_ms", "latency_basis", "latency_kind"),
    *("minutes", "efficiency", "power_w", "power_scope", "calibration_id", "run_id", "errors", "warnings"),
)

Status = Literal[
    "implausible", "doubtful", "plausible", "depends", "other-conditions", "only-emulated", "no-comparable-row"
]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours over theirs; `low` and `high` bound it by the stated intervals of both, null where neither has one."""

    figure: str
    ours: float
    theirs: float
    ratio: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """The nearest row of a group. `not_compared` has the reason for each figure that both have and that is refused."""

    group: str
    distance: float
    row: Row
    ratios: tuple[Ratio, ...]
    not_compared: Mapping[str, str]
    differences: tuple[Difference, ...]
    ratio_per_chip: float | None = None

    @property
    def ratio(self) -> Ratio:
        """The ratio of the first figure that both have."""
        return self.ratios[0]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows that may not be compared, with the reason."""

    reason: Obstacle
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measurement compared with the record. `peers` are the measured rows of its machine, batch and precision."""

    measurement: Measurement
    status: Status
    verdict: str
    matches: tuple[Match, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    checks: tuple[Check, ...] = ()
    peers: Mapping[str, Any] = field(default_factory=dict)

    def to_record(self) -> dict[str, Any]:
        """Return everything as values that JSON has."""
        record = asdict(self)
        for match, own in zip(record["matches"], self.matches, strict=True):
            match["row"] = {name: own.row[name] for name in ROW_COLUMNS}
            match["group_name"] = GROUP_NAMES[own.group]
            match["attribution"] = own.row["attribution"]
        return {name: to_json_value(value) for name, value in record.items()}


def get_group(row: Row) -> str:
    """Return the group of a row: who measured, or that it is emulated."""
    return "emulated" if row["origin"] == "emulated" else row["relationship"] or UNKNOWN


def get_unit(figure: str, row: Row) -> str:
    """Return the unit of a figure as a reader writes it."""
    items = f"{row['item'] or 'item'}s"
    units = {"throughput": f"{items}/s", "efficiency": f"{items}/s/W", "latency_ms": "ms", "minutes": "min"}
    return units.get(figure, "W")


DOUBTFUL_FACTOR = 2.0  # a convention; rows that only their conditions tell apart can differ by more


def is_same_set_up(ours: Measurement, row: Row) -> bool:
    """Return whether a row has our machine, chips and batch size, and a precision that does not contradict ours."""
    precisions = {name_precision(ours.precision), name_precision(row["effective_precision"])} - {None}
    same = ours.platform is not None and ours.platform == row["platform"] and has_same_chips(ours, row)
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
    settled = [match for match in same if not _has_open_basis(ours, match)]
    if same and not settled:
        return _judge_by_bases(ours, same)
    if settled:
        nearest = min(settled, key=lambda match: match.distance)
        ratio = max(_list_settled(ours, nearest), key=_get_gap)
        if _get_gap(ratio) > DOUBTFUL_FACTOR:
            batch = "" if ours.benchmark else " at the same batch size"
            limit = f"more than a factor of {DOUBTFUL_FACTOR:g} apart on the same machine{batch}"
            return "doubtful", f"{describe_match(nearest, ratio)}: {limit}"
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


def _has_open_basis(ours: Measurement, match: Match) -> bool:
    """Return whether a match rests on a latency of which a side does not say what it times."""
    return match.ratio.figure == "latency_ms" and None in (ours.stated_basis, get_latency_basis(match.row))


def _judge_by_bases(ours: Measurement, matches: Sequence[Match]) -> tuple[Status, str]:
    """Judge a latency by the nearest row of each basis; what only the basis can explain settles nothing."""
    bases: dict[str | None, Match] = {}
    for match in sorted(matches, key=lambda match: match.distance):
        bases.setdefault(get_latency_basis(match.row), match)
    gaps = [_get_gap(match.ratio) for match in bases.values()]
    texts = [
        f"{format_plain(match.ratio.ratio)} × if {basis} {_describe_row(match, match.ratio)}"
        if basis
        else f"{format_plain(match.ratio.ratio)} × a row that does not say what it times "
        f"{_describe_row(match, match.ratio)}"
        for basis, match in bases.items()
    ]
    stated = "; ".join(texts)
    if max(gaps) <= DOUBTFUL_FACTOR:
        return "plausible", stated
    several = len(bases.keys() - {None}) > 1
    if min(gaps) > DOUBTFUL_FACTOR * (1 if several else MAX_BATCHES_IN_FLIGHT):
        return "doubtful", f"{stated}: more than a factor of {DOUBTFUL_FACTOR:g} apart, whatever the latency times"
    step = "the rows do not say" if ours.stated_basis else "state it with --latency-basis"
    return "depends", f"{stated}: what the latency times decides; {step}"


def _list_settled(ours: Measurement, match: Match) -> list[Ratio]:
    """Return the first ratio, and each other one but that of a latency of which a side does not say what it times."""
    stated = [ours.stated_basis, get_latency_basis(match.row)]
    return [match.ratio, *(own for own in match.ratios[1:] if own.figure != "latency_ms" or all(stated))]


def _get_gap(ratio: Ratio) -> float:
    return max(ratio.ratio, 1 / ratio.ratio)


def describe_match(match: Match, ratio: Ratio | None = None) -> str:
    """Describe a match in one line: ratio, by default that of the first figure, interval, figure and the row."""
    ratio = ratio or match.ratio
    ends = ""
    if ratio.low is not None and ratio.high is not None:
        ends = f" ({format_plain(ratio.low)} to {format_plain(ratio.high)})"
    return f"{format_plain(ratio.ratio)}{ends} × the nearest {ROW_NAMES[match.group]} {_describe_row(match, ratio)}"


def _describe_row(match: Match, ratio: Ratio) -> str:
    row = match.row
    batch = f", batch {row['batch_size']}" if row["batch_size"] else ""
    software = f", {row['framework']}" if row["framework"] else ""
    figure = f"{ratio.theirs:.12g} {get_unit(ratio.figure, row)}"
    size = f", {own}" if (own := find_input_size(row["variant"])) else ""
    return f"({row['publisher']}, {row['platform']}{size}{batch}{software}, {figure})"
