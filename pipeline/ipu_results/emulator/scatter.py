"""Predicted against published time per batch, as a drawing that cannot be taken for a measurement."""

from __future__ import annotations

from typing import Any

from ipu_results._util.charts import render_chart
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.report import Report

COLORS = {"calibration (fitted)": "#9a9a9a", "ResNeXt101": "#3b6ea5", "ten": "#e08e45", "honest": "#7a9e5f"}
LEGEND = dict(zip(("calibration", "resnext", "ten", "honest"), COLORS, strict=True))
SIZE, ROOM = 460, 1.3


def draw(report: Report, suffix: str) -> bytes:
    """An image, `suffix` .svg or .png. Raises MissingExtraError."""
    return render_chart(lambda altair: _chart(altair, report), suffix)


def _chart(altair: Any, report: Report) -> Any:
    points = [
        {"set": LEGEND[one.row.how.set], "published": one.row.seconds * MS, "emulated": one.seconds * MS}
        for one in report.scored
    ]
    both = [seconds * MS for one in report.scored for seconds in (one.row.seconds, one.seconds)]
    ends = [min(both) / ROOM, max(both) * ROOM]
    scale = altair.Scale(type="log", domain=ends, nice=False)
    x = altair.X("published:Q", title="Published time per batch (ms)", scale=scale)
    y = altair.Y("emulated:Q", title="EMULATED time per batch (ms)", scale=scale)
    color = altair.Scale(domain=list(COLORS), range=list(COLORS.values()))
    marks = (
        altair.Chart(altair.Data(values=points))
        .mark_point(filled=True, size=55, opacity=0.8)
        .encode(x=x, y=y, color=altair.Color("set:N", title=None, scale=color))
    )
    return (
        altair.layer(*(_line(altair, ends, factor, x, y) for factor in (0.75, 1.0, 1.25)), marks)
        .properties(width=SIZE, height=SIZE, title=_title(altair, report))
        .resolve_scale(color="independent")
    )


def _line(altair: Any, ends: list[float], factor: float, x: Any, y: Any) -> Any:
    """Where the emulated time is `factor` of the published one."""
    low, high = max(ends[0], ends[0] / factor), min(ends[1], ends[1] / factor)
    values = [{"published": at, "emulated": at * factor} for at in (low, high)]
    dash = [1, 0] if factor == 1.0 else [4, 4]
    return altair.Chart(altair.Data(values=values)).mark_line(color="#555555", strokeDash=dash, size=1).encode(x=x, y=y)


def _title(altair: Any, report: Report) -> Any:
    under = f"Vertical axis is emulated, not measured; calibration {report.calibration.id}; dashed: ± 25 %"
    return altair.Title("Emulated against published time per batch", subtitle=under)
