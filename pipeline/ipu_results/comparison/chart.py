"""A chart of a comparison: your figure and the nearest rows, with the intervals that are stated.

Measured and published figures are filled, emulated ones hollow; each figure that was compared has a panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipu_results._util.charts import ORIGIN_SHAPES, PALETTE, apply_theme, make_data, make_title, render_chart
from ipu_results.comparison.compare import get_interval
from ipu_results.comparison.comparison import GROUP_NAMES, Comparison, Match, Ratio, get_unit
from ipu_results.errors import ComparisonError
from ipu_results.runner.reference_rows import EMULATED

WIDTH, ROW_HEIGHT = 420, 34
MAX_PANELS = 40
OURS = "your run"
LABEL_WIDTH = 420
MAX_TITLE = 150  # characters
LOG_FROM = 8.0  # ratio between the largest figure and the smallest from which the axis is logarithmic
LABELS = {"latency_ms": "latency", "power_w": "power"}


def draw_comparisons(comparisons: Sequence[Comparison], suffix: str) -> bytes:
    """Return an image, `suffix` .svg or .png. Raises MissingExtraError, and ComparisonError without a match."""
    panels = [
        (comparison, figure)
        for comparison in comparisons
        for figure in dict.fromkeys(ratio.figure for match in comparison.matches for ratio in match.ratios)
    ]
    if not panels:
        raise ComparisonError(f"nothing to draw: {comparisons[0].verdict}")
    if len(panels) > MAX_PANELS:
        raise ComparisonError(f"{len(panels)} panels are too many for one chart, at most {MAX_PANELS}; draw fewer rows")
    return render_chart(lambda alt: _build_chart(alt, panels), suffix)


def _build_chart(alt: Any, panels: Sequence[tuple[Comparison, str]]) -> Any:
    drawings = [_build_panel(alt, build_rows(comparison, figure), comparison, figure) for comparison, figure in panels]
    return apply_theme(alt.vconcat(*drawings))


def build_rows(comparison: Comparison, figure: str) -> list[dict[str, Any]]:
    """Return what one panel draws: our figure, then that of each match, with the ends of their intervals."""
    ours = comparison.measurement
    pairs = [(match, ratio) for match in comparison.matches for ratio in match.ratios if ratio.figure == figure]
    interval = get_interval(figure, {name: getattr(ours, name, None) for name in ours.__dataclass_fields__})
    first = pairs[0][1]
    how = f" ({EMULATED})" if ours.origin == "emulated" else ""
    own = _build_row(f"{OURS}: {ours.platform or 'machine not stated'}{how}", ours.origin, first.ours, interval)
    return [own, *(_build_match_row(match, ratio) for match, ratio in pairs)]


def _build_match_row(match: Match, ratio: Ratio) -> dict[str, Any]:
    row = match.row
    batch = f", batch {row['batch_size']}" if row["batch_size"] else ""
    name = f"{row['publisher']}, {row['platform']}{batch} ({GROUP_NAMES[match.group]})"
    return _build_row(name, row["origin"], ratio.theirs, get_interval(ratio.figure, row))


def _build_row(name: str, origin: str, value: float, interval: tuple[float, float] | None) -> dict[str, Any]:
    low, high = interval or (value, value)
    return {"name": name, "origin": origin, "value": value, "low": low, "high": high, "emulated": origin == "emulated"}


def _build_panel(alt: Any, rows: Sequence[dict[str, Any]], comparison: Comparison, figure: str) -> Any:
    ours = comparison.measurement
    unit = get_unit(figure, {"item": ours.item})
    y = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=LABEL_WIDTH))
    data = make_data(alt, rows)
    color, shape = PALETTE.ink["mark"], ORIGIN_SHAPES["published"]
    base = alt.Chart(data)
    bars = base.mark_rule(color=color).encode(y=y, x=alt.X("low:Q"), x2="high:Q")
    ends = [end for row in rows for end in (row["low"], row["high"])]
    scale = alt.Scale(type="log") if max(ends) > LOG_FROM * min(ends) else alt.Scale(zero=True)
    axis = alt.X("value:Q", title=f"{LABELS.get(figure, figure)} ({unit})", scale=scale)
    points = [
        base.transform_filter(alt.datum.emulated == emulated)
        .mark_point(shape=shape, size=90, color=color, opacity=1, filled=not emulated)
        .encode(y=y, x=axis)
        for emulated in (False, True)
    ]
    title = make_title(alt, f"{ours.label}: {ours.network} {ours.task}", comparison.verdict[:MAX_TITLE])
    return alt.layer(bars, *points).properties(width=WIDTH, height=ROW_HEIGHT * len(rows), title=title)
