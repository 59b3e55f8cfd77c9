"""One question that a reader asks of the dataset: the views that answer it, what they show, and the chart of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Analysis:
    """`views` are its views and macros by name, the first one the answer; both functions take their rows by name.

    `told` gives one paragraph, each figure of it from the rows. `chart` takes the module altair and gives a chart.
    """

    name: str
    question: str
    views: tuple[str, ...]
    told: Callable[[Frames], str]
    chart: Callable[[Any, Frames], Any]
