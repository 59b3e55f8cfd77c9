"""Which rows may not be ranked, why, and the one sentence that says how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ipu_results.ground.files import load_schema_file
from ipu_results.ground.text import format_count

USABLE = "usable"
REASONS: Mapping[str, str] = load_schema_file("comparison.toml")["run"]["unusable"]


def find_unusable(row: Mapping[str, Any]) -> str | None:
    """Return why a result is not usable, one of REASONS; None where it is."""
    if row["usable"]:
        return None
    if row.get("same_as"):
        return "repeated"
    if row["errors"]:
        return "error"
    if row["origin"] == "official":  # another entry of the round has the same logs
        return "repeated"
    for column in ("origin", "relationship"):
        if row[column] in REASONS:
            return str(row[column])
    return "suspect"


def describe_unusable(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say how many rows are not usable and why, empty where all are."""
    counts = Counter(reason for row in rows if (reason := find_unusable(row)))
    if not counts:
        return ""
    why = ", ".join(f"{counts[name]} {words}" for name, words in REASONS.items() if counts[name])
    return f"{counts.total():,} of {format_count(len(rows), 'row')} are not usable: {why}"
