"""Figures and names in the words of a paragraph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd


def mean(ratios: pd.Series) -> float:
    """The geometric mean; not a number for no ratios."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if len(ratios) else math.nan


def spread(ratios: pd.Series) -> str:
    """Number and ends of some ratios."""
    return "one pair" if len(ratios) == 1 else f"{len(ratios)} pairs, {ratios.min():.2f} to {ratios.max():.2f}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def listed(words: Iterable[str]) -> str:
    """Each word once: `a`, `a and b`, `a, b and c`."""
    *most, last = dict.fromkeys(words) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def label(row: Mapping[str, Any], *columns: str) -> str:
    """What a row is, blank cells left out."""
    return ", ".join(str(row[name]) for name in columns if not pd.isna(row[name]))
