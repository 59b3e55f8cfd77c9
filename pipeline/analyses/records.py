"""Rows of a frame as plain records, and the look that the charts share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

Record = dict[str, Any]

# Okabe and Ito's palette, told apart by readers with any colour vision.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")


def records(frame: pd.DataFrame, order: Sequence[str] = ()) -> list[Record]:
    """One plain record per row, None for what is missing, whole numbers as such; sorted by `order` where given."""
    found = frame.sort_values(list(order), kind="stable") if order else frame
    return [{str(name): _plain(value) for name, value in row.items()} for row in found.to_dict("records")]


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def told_apart(names: Iterable[str]) -> str:
    """A list in words: `a`, `a and b`, `a, b and c`."""
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} and {last}" if most else last


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def title(altair: Any, text: str, *under: str) -> Any:
    return altair.Title(text, subtitle=list(under), anchor="start", fontSize=15, subtitleFontSize=11, offset=14)


def data(altair: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    return altair.Data(values=[dict(row) for row in rows])


def styled(chart: Any, columns: int = 2) -> Any:
    return (
        chart.configure_view(stroke=None)
        .configure_axis(labelFontSize=11, titleFontSize=12, gridColor="#e6e6e6")
        .configure_legend(
            orient="bottom", columns=columns, labelLimit=0, labelFontSize=11, titleFontSize=11, symbolSize=90
        )
    )
