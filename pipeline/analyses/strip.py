"""Ratios of named rows on one line each, what several analyses draw and average."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

# Okabe and Ito's palette, told apart by readers with any colour vision, each with a shape of its own.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHAPES = ("circle", "triangle-up", "square", "diamond", "triangle-down", "triangle-right", "stroke")
CROSS = "M-1,-1L1,1M-1,1L1,-1"
WIDTH, STEP = 460, 17


def mean(ratios: pd.Series) -> float:
    """The geometric mean; not a number for no ratios."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if len(ratios) else math.nan


def spread(ratios: pd.Series) -> str:
    """Number and ends of some ratios, in words."""
    return "one pair" if len(ratios) == 1 else f"{len(ratios)} pairs, {ratios.min():.2f} to {ratios.max():.2f}"


def listed(words: Sequence[str]) -> str:
    """Words parted by commas, the last one by `and`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def label(row: Mapping[str, Any], *columns: str) -> str:
    """What a row is, blank cells left out."""
    return ", ".join(str(row[name]) for name in columns if not pd.isna(row[name]))


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


def titled(altair: Any, text: str, *under: str) -> Any:
    return altair.Title(text, subtitle=list(under), anchor="start", fontSize=15, subtitleFontSize=11, offset=12)


def finished(chart: Any) -> Any:
    """The looks that all these charts share."""
    return chart.configure_view(stroke="#dddddd").configure_axis(gridColor="#e6e6e6").configure_legend(labelLimit=0)
