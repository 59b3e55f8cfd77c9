"""The one sentence that says how many rows may not be ranked, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ipu_results.kit.files import load_schema_file
from ipu_results.kit.text import format_count

USABLE = "usable"
DOUBTFUL = ("error", "suspect", "submitted")  # of REASONS
REASONS: Mapping[str, str] = load_schema_file("comparison.toml")["run"]["unusable"]


def describe_doubtful(reasons: Sequence[str | None]) -> str:
    """Count the rows whose figures are doubted, empty for none; the others that are not usable are
    predictions and figures that another row has.
    """
    counts = Counter(reason for reason in reasons if reason in DOUBTFUL)
    return ", ".join(f"{counts[name]} {REASONS[name]}" for name in DOUBTFUL if counts[name])


def describe_unusable(reasons: Sequence[str | None]) -> str:
    """Say how many rows are not usable and why, empty where all are; a usable one has no reason."""
    counts = Counter(reason for reason in reasons if reason is not None)
    if not counts:
        return ""
    why = ", ".join(f"{counts[name]} {words}" for name, words in REASONS.items() if counts[name])
    return f"{counts.total():,} of {format_count(len(reasons), 'row')} are not usable: {why}"
