"""The ratio of a figure to that of a row, with the bounds that the intervals of both give it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ipu_results.comparison.comparable import Row, get_interval
from ipu_results.comparison.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours over theirs; `low` and `high` bound it by the stated intervals of both, null where
    neither has one.
    """

    figure: str
    ours: float
    theirs: float
    ratio: float
    low: float | None = None
    high: float | None = None


def compute_ratio(figure: str, ours: Measurement, row: Row) -> Ratio:
    """Return the ratio of a figure that both have."""
    own = getattr(ours, figure)
    theirs = row[figure]
    low, high = get_interval(figure, asdict(ours)) or (own, own)
    their_low, their_high = get_interval(figure, row) or (theirs, theirs)
    if low == high and their_low == their_high:
        return Ratio(figure, own, theirs, own / theirs)
    return Ratio(figure, own, theirs, own / theirs, low / their_high, high / their_low)


def get_gap(ratio: Ratio) -> float:
    """Return how far apart two figures are, the larger over the smaller."""
    return max(ratio.ratio, 1 / ratio.ratio)
