"""Analyses: from views of the warehouse to a paragraph and a chart each. Views: `schema/analyses/`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd

from ipu_results._util.charts import render_chart, to_vega_lite
from ipu_results._util.sql import run_query
from ipu_results.analyses import c2_to_m2000, framework, generations, latency, per_dollar, resnext101, scaling, sdk
from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.schema import VIEWS

__all__ = ["ANALYSES", "Analysis", "Frames", "draw", "rows", "specification"]

ANALYSES: tuple[Analysis, ...] = (
    latency.ANALYSIS,
    generations.ANALYSIS,
    scaling.ANALYSIS,
    sdk.ANALYSIS,
    framework.ANALYSIS,
    per_dollar.ANALYSIS,
    c2_to_m2000.ANALYSIS,
    resnext101.ANALYSIS,
)


def rows(
    connection: duckdb.DuckDBPyConnection, asked: Analysis, parameters: Mapping[str, float] | None = None
) -> dict[str, pd.DataFrame]:
    """The rows of its views and macros by name; `parameters` fill those that its macros have.

    Raises QueryError for a warehouse without them.
    """
    views = [view for view in VIEWS if view.name in asked.views]
    found = {}
    for view in views:
        known = [name for name, _ in view.parameters]
        given = ", ".join(f"{name} := {value!r}" for name, value in (parameters or {}).items() if name in known)
        source = f"{view.name}({given})" if view.parameters else view.name
        found[view.name] = run_query(connection, f"FROM {source}").to_pandas()
    return found


def draw(asked: Analysis, frames: Frames, suffix: str) -> bytes:
    """Its chart as an image, `suffix` .svg or .png. Raises MissingExtraError."""
    return render_chart(lambda altair: asked.chart(altair, frames), suffix)


def specification(asked: Analysis, frames: Frames) -> dict[str, Any]:
    """Its chart as Vega-Lite, with the data in it. Raises MissingExtraError."""
    return to_vega_lite(lambda altair: asked.chart(altair, frames))
