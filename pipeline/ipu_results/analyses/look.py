"""The look that the charts share, and rows as the plain records that they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

Record = dict[str, Any]

# Okabe and Ito's palette, told apart by readers with any colour vision, each with a shape of its own.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")
SHAPES = ("circle", "triangle-up", "square", "diamond", "triangle-down", "triangle-right", "stroke")
CROSS = "M-1,-1L1,1M-1,1L1,-1"


def records(frame: pd.DataFrame, order: Sequence[str] = ()) -> list[Record]:
    """One plain record per row, None for what is missing, whole numbers as such; sorted by `order` where given."""
    found = frame.sort_values(list(order), kind="stable") if order else frame
    return [{str(name): _plain(value) for name, value in row.items()} for row in found.to_dict("records")]


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def data(altair: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    return altair.Data(values=[dict(row) for row in rows])


def titled(altair: Any, text: str, *under: str) -> Any:
    return altair.Title(text, subtitle=list(under), anchor="start", fontSize=15, subtitleFontSize=11, offset=14)


def finished(chart: Any, columns: int | None = None) -> Any:
    """The looks that all charts share; the legend stands below in so many columns, or at the right."""
    below = {} if columns is None else {"orient": "bottom", "columns": columns}
    return (
        chart.configure_view(stroke="#dddddd")
        .configure_axis(labelFontSize=11, titleFontSize=12, gridColor="#e6e6e6")
        .configure_legend(labelLimit=0, labelFontSize=11, titleFontSize=11, symbolSize=90, **below)
    )
