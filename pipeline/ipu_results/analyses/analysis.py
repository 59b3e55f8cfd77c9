"""One question about the dataset: the views that answer it, the summary of their rows, and their chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

Frames = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question with its views and macros by name, the first one the answer.

    `summarise` and `build_chart` take the rows of the views by name. The summary is one paragraph or several, separated
    by blank lines, and each figure in it comes from the rows. `build_chart` also takes the module altair.
    """

    name: str
    question: str
    views: tuple[str, ...]
    summarise: Callable[[Frames], str]
    build_chart: Callable[[Any, Frames], Any]
