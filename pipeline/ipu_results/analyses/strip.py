"""Ratios of named rows, one line each: a chart that several analyses draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipu_results.analyses.look import COLORS, CROSS, SHAPES

WIDTH, STEP = 460, 17


def strip(
    altair: Any, records: Sequence[Mapping[str, Any]], x: Any, legend: str, names: Sequence[str], at: float
) -> Any:
    """One line per `label`, in the records' order, points at `ratio`, colour and shape by `series`, one of `names`.

    Records with a true `crossed` are crossed out. A dashed rule stands at the ratio `at`.
    """
    base = altair.Chart(altair.Data(values=list(records)))
    lines = list(dict.fromkeys(record["label"] for record in records))
    above = {"titleAngle": 0, "titleAlign": "right", "titleX": -8, "titleY": -7}
    y = altair.Y("label:N", title="Test", sort=lines, axis=altair.Axis(labelLimit=420, grid=True, **above))
    colors, shapes = (altair.Scale(domain=list(names), range=list(of[: len(names)])) for of in (COLORS, SHAPES))
    color = altair.Color("series:N", title=legend, scale=colors)
    shape = altair.Shape("series:N", title=legend, scale=shapes)
    tooltip = [altair.Tooltip(f"{name}:N") for name in records[0] if name not in ("label", "crossed")]
    points = base.mark_point(filled=True, size=75, opacity=1).encode(
        x=x, y=y, color=color, shape=shape, tooltip=tooltip
    )
    crossed = base.transform_filter("datum.crossed").encode(x=x, y=y)
    crosses = crossed.mark_point(shape=CROSS, size=130, stroke="#000000", strokeWidth=2, opacity=1)
    return altair.layer(rule(altair, at, x), points, crosses).properties(width=WIDTH, height=altair.Step(STEP))


def rule(altair: Any, at: float, x: Any) -> Any:
    """A dashed line at a ratio."""
    return altair.Chart(altair.Data(values=[{"ratio": at}])).mark_rule(color="#555555", strokeDash=[4, 3]).encode(x=x)
