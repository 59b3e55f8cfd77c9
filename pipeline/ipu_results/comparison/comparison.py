"""What a comparison holds: matches with their ratios, refusals, checks and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ipu_results._util.text import to_json_value
from ipu_results.comparison.candidates import RUN, Obstacle, Row
from ipu_results.comparison.differences import Difference
from ipu_results.comparison.measurement import Measurement
from ipu_results.comparison.plausibility import Check

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
