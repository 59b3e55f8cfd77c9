"""Compare figures of a run with the record: nearest rows, ratios, differences, plausibility, and
what is refused.
"""

from ipu_results.doors.comparison.expect import Expectation
from ipu_results.doors.comparison.measurement import Measurement
from ipu_results.doors.comparison.verdict import Check, Comparison, Match, Ratio, Refusal, compare

__all__ = [
    "Check",
    "Comparison",
    "Expectation",
    "Match",
    "Measurement",
    "Ratio",
    "Refusal",
    "compare",
]
