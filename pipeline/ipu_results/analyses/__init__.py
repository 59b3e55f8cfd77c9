"""Analyses: from views of the warehouse to a summary and a chart each.

The views are in `schema/views/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np

from ipu_results.analyses import (
    latency,
    mlperf,
    mlperf_order,
    per_dollar,
    ratios,
    replications,
    resnext101,
    roofline,
    scaling,
)
from ipu_results.analyses.analysis import (
    CONSIDERED,
    Analysis,
    Answer,
    Frames,
    set_title,
    split_summary,
)
from ipu_results.errors import TooFewRowsError
from ipu_results.ground.charts import render_specification, to_vega_lite
from ipu_results.ground.sql import run_query
from ipu_results.schema import VIEWS

__all__ = [
    "ANALYSES",
    "Analysis",
    "Answer",
    "Frames",
    "build_specification",
    "describe_answer",
    "draw_chart",
    "load_frames",
    "summarise",
]

EMPTY = re.compile(r"\bempty\b|zero-size|not enough values|at least one")
"""In the ValueError of Python, NumPy or pandas for a minimum, a mean or a first and last of
nothing.
"""
ANALYSES: tuple[Analysis, ...] = (
    latency.ANALYSIS,
    ratios.GENERATIONS,
    scaling.ANALYSIS,
    ratios.SDK,
    ratios.FRAMEWORK,
    per_dollar.ANALYSIS,
    resnext101.C2_TO_M2000,
    resnext101.RESNEXT101,
    mlperf.IPU,
    mlperf_order.NOISE,
    mlperf.TRENDS,
    replications.ANALYSIS,
    roofline.ANALYSIS,
)


def load_frames(
    connection: duckdb.DuckDBPyConnection,
    analysis: Analysis,
    parameters: Mapping[str, float] | None = None,
) -> Frames:
    """Load the rows of an analysis' views and macros by name, in the order of their files, and
    those that it considered.

    `parameters` go to the macros that have them.

    Raises QueryError for a warehouse without these views.
    """
    frames = {}
    for view in (view for view in VIEWS if view.name in analysis.views):
        known = [name for name, _ in view.parameters]
        arguments = ", ".join(
            f"{name} := {value!r}" for name, value in (parameters or {}).items() if name in known
        )
        source = f"{view.sql_name}({arguments})" if view.parameters else view.sql_name
        frames[view.name] = run_query(connection, view.select_rows(source)).to_pandas()
    if analysis.considered:
        sql = f"SELECT usable FROM measurements WHERE {analysis.considered}"
        frames[CONSIDERED] = run_query(connection, sql).to_pandas()
    return frames


def draw_chart(analysis: Analysis, frames: Frames, suffix: str) -> bytes:
    """Render the chart as an image, `suffix` .svg or .png. Raises MissingExtraError."""
    return render_specification(build_specification(analysis, frames), suffix)


def build_specification(analysis: Analysis, frames: Frames) -> dict[str, Any]:
    """Build the chart as Vega-Lite, with the data in it and the finding as its title.

    Raises MissingExtraError.
    """
    with _require_rows(analysis, frames):
        specification = to_vega_lite(lambda alt: analysis.build_chart(alt, frames))
    return set_title(specification, describe_answer(analysis, frames).finding)


def describe_answer(analysis: Analysis, frames: Frames) -> Answer:
    """Describe the finding, other figures and the caveats of an analysis."""
    return split_summary(summarise(analysis, frames), analysis.caveats)


def summarise(analysis: Analysis, frames: Frames) -> str:
    """Summarise the rows in paragraphs.

    Raises TooFewRowsError for a record that cannot answer the question.
    """
    with _require_rows(analysis, frames):
        summary = analysis.summarise(frames)
        if re.search(r"\bnan\b", summary) or not re.search(r"\d", summary.split("\n\n")[0]):
            raise LookupError("a finding without a figure")
    return summary


@contextmanager
def _require_rows(analysis: Analysis, frames: Frames) -> Iterator[None]:
    """Apply one rule to every analysis: without a row, a group or a figure that it names, it has no
    answer.
    """
    first = next(view for view in VIEWS if view.name == analysis.views[0])
    try:
        with np.errstate(invalid="raise", divide="raise"):
            if frames[first.name].empty:
                raise LookupError("no rows")
            yield
    except (LookupError, ValueError, ArithmeticError) as error:
        if isinstance(error, ValueError) and not EMPTY.search(str(error)):
            raise
        counts = ", ".join(f"{len(frames[name])} of {name}" for name in analysis.views)
        needed = re.split(r"(?<=\w)[.:] ", first.description)[0].rstrip(".")
        message = (
            f"the record has too few rows for an answer ({counts}); {first.name} holds: {needed}"
        )
        see = f'see what there is with: ipu-results query "FROM {first.source}"'
        raise TooFewRowsError(f"{message}; {see}", place=f"analysis {analysis.name}") from error
