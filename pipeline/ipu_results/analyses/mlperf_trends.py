"""How times and samples per accelerator of each comparable MLPerf Training benchmark changed over the rounds."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

from ipu_results.analyses.analysis import UNVERIFIED, Analysis, Frames, Record, join_paragraphs, make_records
from ipu_results.analyses.drawing import PANEL, join_panels, make_log_axis, make_scale, make_tooltips
from ipu_results.ground.charts import PALETTE, make_data
from ipu_results.mlperf.rules import round_key

DIVISION, SIZE = "closed", 8
MIN_ROUNDS = 3
MINUTES, RATE = "minutes", "samples_per_accelerator_minute"
BLOCK = ["comparable_model", "comparable_rounds"]
MINUTE_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
RATE_TICKS = tuple(10.0**power for power in range(10))
DASHES = ([1, 0], [2, 2])


def _list_curves(frames: Frames, scope: str, figure: str) -> list[list[Record]]:
    """List the blocks of rounds with MIN_ROUNDS rounds or more, in the order of the rounds."""
    rows = frames["mlperf_trends"]
    size = rows["accelerators"].eq(SIZE) if scope == "same-size" else True
    chosen = rows[(rows["division"] == DIVISION) & (rows["scope"] == scope) & size & rows[f"best_{figure}"].notna()]
    curves = [
        sorted(make_records(group), key=lambda row: round_key(row["round"])) for _, group in chosen.groupby(BLOCK)
    ]
    return [curve for curve in curves if len(curve) >= MIN_ROUNDS]


def summarise(frames: Frames) -> str:
    """Describe first and last round of each block: minutes on eight accelerators, then samples per accelerator."""
    minutes, rates = _list_curves(frames, "same-size", MINUTES), _list_curves(frames, "all-sizes", RATE)
    return join_paragraphs(
        [_describe_finding(minutes)],
        [
            f"Minutes on {SIZE} accelerators, closed division, best and median of a round:" if minutes else "",
            *(_describe_minutes(curve[0], curve[-1]) for curve in minutes),
        ],
        [
            "Samples per accelerator and minute, all sizes, best entry of a round:" if rates else "",
            *(_describe_rate(curve[0], curve[-1]) for curve in rates),
        ],
        [
            "The accelerators of later rounds are newer, so this is the progress of machines and software together. "
            "Samples per accelerator and minute is not an MLPerf metric.",
            UNVERIFIED,
        ],
    )


def _describe_finding(minutes: list[list[Record]]) -> str:
    """Describe the smallest, the median and the largest fall of the best time of a block."""
    falls = [(curve[0]["best_minutes"] / curve[-1]["best_minutes"], curve[0]["comparable_model"]) for curve in minutes]
    if not falls:
        return ""
    (min_factor, slowest), *_, (max_factor, fastest) = sorted(falls)
    return (
        f"On {SIZE} accelerators, the best time in the last comparable round of a benchmark is shorter than in its "
        f"first by a factor of {median(fall for fall, _ in falls):.1f} in the median of {len(falls)} benchmarks, from "
        f"{min_factor:.1f} ({slowest}) to {max_factor:.1f} ({fastest})."
    )


def _describe_minutes(first: Record, last: Record) -> str:
    return (
        f"{first['comparable_model']} {first['best_minutes']:.2f} (median {first['median_minutes']:.2f}) in "
        f"v{first['round']}, {last['best_minutes']:.2f} ({last['median_minutes']:.2f}) in v{last['round']}."
    )


def _describe_rate(first: Record, last: Record) -> str:
    growth = last[f"best_{RATE}"] / first[f"best_{RATE}"]
    return (
        f"{first['comparable_model']} {first[f'best_{RATE}']:,.1f} in v{first['round']}, "
        f"{last[f'best_{RATE}']:,.1f} in v{last['round']}, {growth:.1f} times."
    )


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw best and median over the rounds, a panel for minutes and one for samples per accelerator and minute."""
    minutes, rates = _list_curves(frames, "same-size", MINUTES), _list_curves(frames, "all-sizes", RATE)
    names = sorted({curve[0]["comparable_model"] for curve in [*minutes, *rates]})
    rounds = sorted({row["round"] for curve in [*minutes, *rates] for row in curve}, key=round_key)
    panels = [
        _draw_panel(alt, minutes, MINUTES, f"Minutes on {SIZE} accelerators", MINUTE_TICKS, names, rounds),
        _draw_panel(alt, rates, RATE, "Samples per accelerator and minute, all sizes", RATE_TICKS, names, rounds),
    ]
    title = (
        "MLPerf Training over the rounds, comparable rounds only",
        "Closed division. Solid with marks: best entry; dashed: median. Logarithmic. Unverified",
    )
    return join_panels(alt, panels, title, legend_columns=4, legends="shared")


def _draw_panel(
    alt: Any,
    curves: Iterable[list[Record]],
    figure: str,
    title: str,
    ticks: tuple[float, ...],
    names: list[str],
    rounds: list[str],
) -> Any:
    points = [
        {
            "name": row["comparable_model"],
            "block": f"{row['comparable_model']} {row['comparable_rounds']}",
            "round": row["round"],
            "value": row[f"{kind}_{figure}"],
            "kind": kind,
            "result_id": row["best_result_id"] if (kind, figure) == ("best", MINUTES) else None,
        }
        for curve in curves
        for row in curve
        for kind in ("best", "median")
    ]
    shapes = [("circle", "triangle-up")[index // len(PALETTE.series) % 2] for index in range(len(names))]
    colors = [PALETTE.series[index % len(PALETTE.series)] for index in range(len(names))]
    color = alt.Color("name:N", title="Benchmark", scale=make_scale(alt, names, colors))
    shape = alt.Shape("name:N", title="Benchmark", scale=make_scale(alt, names, shapes))
    x = alt.X("round:N", title="Round", sort=rounds, scale=alt.Scale(domain=rounds), axis=alt.Axis(labelAngle=0))
    y = make_log_axis(alt, "Y", "value", title, ticks, "~s")
    base = alt.Chart(make_data(alt, points)).encode(x=x, y=y, color=color)
    dash = alt.StrokeDash("kind:N", legend=None, scale=make_scale(alt, ("best", "median"), DASHES))
    lines = base.mark_line(strokeWidth=1.4, opacity=0.8).encode(detail="block:N", strokeDash=dash)
    tooltip = make_tooltips(alt, "name", "round", "value", "kind", name="Benchmark", value=title)
    marks = base.transform_filter("datum.kind == 'best'").mark_point(filled=True, size=50, opacity=1)
    return alt.layer(lines, marks.encode(shape=shape, tooltip=tooltip)).properties(**PANEL, title=title)


ANALYSIS = Analysis(
    "mlperf_trends", "How did MLPerf times change over the rounds?", ("mlperf_trends",), summarise, build_chart
)
