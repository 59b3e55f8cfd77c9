"""Analyses: from views of the warehouse to a paragraph and a chart each. Views: `schema/analyses.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd

from pipeline.analyses import c2_to_m2000, per_dollar, resnext101, scaling
from pipeline.analyses.analysis import Analysis, Frames
from pipeline.drawing import drawn, specified
from pipeline.query import run_query
from schema.views import VIEWS

__all__ = ["ANALYSES", "Analysis", "Frames", "analysis", "draw", "rows", "specification"]

ANALYSES: tuple[Analysis, ...] = (
    Analysis(
        "scaling",
        "What do 256 chips gain over 16?",
        ("scaling",),
        scaling.told,
        scaling.chart,
    ),
    Analysis(
        "per_dollar",
        "What does a dollar buy, and at which price is it a tie?",
        ("per_dollar",),
        per_dollar.told,
        per_dollar.chart,
    ),
    Analysis(
        "c2_to_m2000",
        "What did a chip gain from the C2 card to the IPU-M2000?",
        ("c2_to_m2000",),
        c2_to_m2000.told,
        c2_to_m2000.chart,
    ),
    Analysis(
        "resnext101",
        "How do published, measured and emulated ResNeXt101 figures stand beside each other?",
        ("resnext101",),
        resnext101.told,
        resnext101.chart,
    ),
)


def analysis(name: str) -> Analysis:
    return next(one for one in ANALYSES if one.name == name)


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
    """Its chart as an image, `suffix` .svg or .png. Raises ExtraMissing."""
    return drawn(lambda altair: asked.chart(altair, frames), suffix)


def specification(asked: Analysis, frames: Frames) -> dict[str, Any]:
    """Its chart as Vega-Lite, with the data in it. Raises ExtraMissing."""
    return specified(lambda altair: asked.chart(altair, frames))
