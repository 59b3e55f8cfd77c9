"""MLPerf Training: where IPUs were, and how times changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from ipu_results.analyses.analysis import (
    UNVERIFIED,
    Analysis,
    Frames,
    Record,
    join_paragraphs,
    join_words,
    make_records,
)
from ipu_results.analyses.drawing import (
    PANEL,
    join_panels,
    make_channels,
    make_log_axis,
    make_scale,
    make_tooltips,
)
from ipu_results.ground.charts import PALETTE, apply_theme, make_data, make_title
from ipu_results.mlperf.rules import round_key

DIVISION = "closed"  # in the open division, each entry has rules of its own
WORDS = {"ipu-faster": "faster", "ipu-slower": "slower", "tied": "not separable"}
KINDS = {"GC200": "IPU-POD", "Bow": "Bow Pod", "A100": "A100", "TPU": "TPU", "Gaudi": "Gaudi"}
CHIP_TICKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # larger machines are only in the view
MINUTE_TICKS = (1, 2, 5, 10, 20, 50, 100, 200)
BENCHMARKS = ("resnet", "bert")
IPU_ORDER = ["benchmark", "ipu_chip_count", "ipu_path"]


def _name_outcome(row: Record) -> str:
    return str(WORDS.get(row["outcome"], row["outcome"]))


def summarise_ipu(frames: Frames) -> str:
    """Describe each round: machines with as many chips, then one node of eight A100."""
    compared = frames["mlperf_ipu"]
    rows = make_records(
        compared[compared["is_ipu"].eq(False) & compared["division"].eq(DIVISION)], IPU_ORDER
    )
    rounds = [
        [row for row in rows if row["round"] == name]
        for name in sorted({row["round"] for row in rows}, key=round_key)
    ]
    same = [row for row in rows if row["chip_count"] == row["ipu_chip_count"]]
    outcomes = [
        f"{word} in {count}" for word, count in sorted(Counter(map(_name_outcome, same)).items())
    ]
    own = compared.drop_duplicates(["round", "ipu_path"])
    submitters = [
        f"{count} of {name}" for name, count in sorted(own["ipu_submitter"].value_counts().items())
    ]
    alone = int(own["outcome"].isna().sum())
    return join_paragraphs(
        [
            f"In {len(same)} comparisons with machines of as many chips ({DIVISION}"
            f" division), IPUs were {join_words(outcomes)}."
        ],
        [
            (
                f"{len(own)} entries ran on IPUs, {join_words(submitters)}. Comparisons are within"
                " a round, benchmark and division."
            ),
            f"{alone} of them had no other entry to compare with." if alone else "",
        ],
        [
            "Against machines with as many chips, closed division:",
            *map(_describe_equal, rounds),
        ],
        [
            "Against NVIDIA's own node of 8 A100, machines with 16 IPUs:",
            *map(_describe_node, rounds),
        ],
        ["A gap that the runs cannot separate says nothing, whichever side is ahead."],
        [UNVERIFIED],
    )


def _describe_equal(rows: Iterable[Record]) -> str:
    """Count the outcomes against machines with as many chips, by benchmark."""
    same = [row for row in rows if row["chip_count"] == row["ipu_chip_count"]]
    if not same:
        return ""
    parts = []
    for name in sorted({row["benchmark"] for row in same}):
        counts = Counter(_name_outcome(row) for row in same if row["benchmark"] == name)
        parts.append(
            f"{name}:"
            f" {', '.join(f'{counts[word]} {word}' for word in WORDS.values() if counts[word])}"
        )
    return f"v{same[0]['round']} {'; '.join(parts)}."


def _describe_node(rows: Sequence[Record]) -> str:
    """Describe machines with 16 IPUs next to one node of 8 A100, the comparison that the vendor
    made.
    """
    parts = [
        f"{row['benchmark']} ({row['ipu_submitter']}, {row['ipu_framework'].split()[0]})"
        f" {_format_interval(row, 'ipu_')} against {_format_interval(row, '')} minutes,"
        f" {_name_outcome(row)}"
        for row in rows
        if (row["ipu_chip_count"], row["chip_count"], row["submitter"]) == (16, 8, "NVIDIA")
        and "A100" in row["chip"]
    ]
    return f"v{rows[0]['round']} {'; '.join(parts)}." if parts else ""


def _format_interval(row: Record, prefix: str) -> str:
    low = row[f"{prefix}minutes_low"]
    high = row[f"{prefix}minutes_high"]
    interval = "" if low is None else f" [{low:.2f}, {high:.2f}]"
    return f"{row[f'{prefix}minutes']:.2f}{interval}"


def draw_ipu(alt: Any, frames: Frames) -> Any:
    """Draw minutes with their intervals over chips, a panel for each round and benchmark."""
    points = _list_points(frames)
    rounds = sorted({point["round"] for point in points}, key=round_key)
    minutes = [
        row[name]
        for row in points
        for name in ("minutes", "minutes_low", "minutes_high")
        if row[name]
    ]
    ends = [0.9 * min(minutes), 1.1 * max(minutes)]  # one axis for all panels
    rows = [
        alt.hconcat(*(_draw_round(alt, points, name, benchmark, ends) for name in rounds))
        for benchmark in BENCHMARKS
    ]
    title = make_title(
        alt,
        "MLPerf Training on IPUs next to every other closed entry",
        "Bars: 95 % intervals of the scores, from the spread of the runs. Unverified",
    )
    return apply_theme(
        alt.vconcat(*rows).properties(title=title).resolve_scale(color="shared", shape="shared"), 5
    )


def _list_points(frames: Frames) -> list[Record]:
    """List the entries of the panels, each once."""
    points = {}
    for row in make_records(frames["mlperf_ipu"], IPU_ORDER):
        for prefix in ("ipu_", ""):
            path = row[f"{prefix}path"]
            size = row[f"{prefix}chip_count"]
            if row["division"] == DIVISION and path is not None and size and size <= CHIP_TICKS[-1]:
                points[row["round"], path] = _make_point(row, prefix)
    return [points[key] for key in sorted(points)]


def _make_point(row: Record, prefix: str) -> Record:
    name = (row[f"{prefix}chip"] or "").lower()
    kind = next((kind for word, kind in KINDS.items() if word.lower() in name), "other")
    fields = (
        "chip_count",
        "minutes",
        "minutes_low",
        "minutes_high",
        "submitter",
        "platform",
        "result_id",
    )
    values = {field: row[f"{prefix}{field}"] for field in fields}
    return {**values, "round": row["round"], "benchmark": row["benchmark"], "kind": kind}


def _draw_round(
    alt: Any, points: list[Record], name: str, benchmark: str, ends: list[float]
) -> Any:
    own = [point for point in points if (point["round"], point["benchmark"]) == (name, benchmark)]
    names = [*KINDS.values(), "other"]
    colors = [*PALETTE.assign(list(KINDS.values())), PALETTE.ink["muted"]]
    shapes = ("diamond", "triangle-down", "circle", "triangle-up", "square", "cross")
    channels = make_channels(alt, "kind", "Chip", names, colors, shapes)
    x = make_log_axis(
        alt,
        "X",
        "chip_count",
        "Chips",
        CHIP_TICKS,
        "d",
        base=2,
        domain=[0.8, 640.0],
    )
    y, low = (
        make_log_axis(alt, "Y", each, "Minutes", MINUTE_TICKS, domain=ends)
        for each in ("minutes", "minutes_low")
    )
    base = alt.Chart(make_data(alt, own)).encode(x=x, color=channels["color"])
    bars = (
        base.transform_filter("datum.minutes_low > 0")
        .mark_rule(strokeWidth=1.5)
        .encode(y=low, y2="minutes_high:Q")
    )
    tooltip = make_tooltips(
        alt, "submitter", "platform", "chip_count", "minutes", "minutes_low", "minutes_high"
    )
    marks = base.mark_point(filled=True, size=22, opacity=0.9).encode(
        y=y, shape=channels["shape"], tooltip=tooltip
    )
    return alt.layer(bars, marks).properties(width=260, height=240, title=f"{benchmark}, v{name}")


IPU = Analysis(
    "mlperf_ipu",
    "Where was the IPU in MLPerf, and which gaps can the runs resolve?",
    ("mlperf_ipu",),
    summarise_ipu,
    draw_ipu,
    caveats=2,
)

SIZE = 8  # chips: the one size that was submitted in every round
MIN_ROUNDS = 3  # of a curve: two points show no trend
MINUTES, RATE = "minutes", "samples_per_chip_minute"
TREND_MINUTES = (
    "{model} {best_minutes:.2f} (median {median_minutes:.2f}) in v{round},"
    " {last[best_minutes]:.2f} ({last[median_minutes]:.2f}) in v{last[round]}."
)
TREND_RATE = (
    "{model} {best_samples_per_chip_minute:,.1f} in v{round}, "
    "{last[best_samples_per_chip_minute]:,.1f} in v{last[round]}, {growth:.1f} times."
)


def _list_curves(frames: Frames, scope: str, figure: str) -> list[list[Record]]:
    """List the blocks of rounds with MIN_ROUNDS rounds or more, in the order of the rounds."""
    rows = frames["mlperf_trends"]
    size = rows["chip_count"].eq(SIZE) if scope == "same-size" else True
    chosen = rows[
        (rows["division"] == DIVISION)
        & (rows["scope"] == scope)
        & size
        & rows[f"best_{figure}"].notna()
    ]
    curves = [
        sorted(make_records(group), key=lambda row: round_key(row["round"]))
        for _, group in chosen.groupby(["model", "comparable_rounds"])
    ]
    return [curve for curve in curves if len(curve) >= MIN_ROUNDS]


def summarise_trends(frames: Frames) -> str:
    """Describe first and last round of each block: minutes on eight chips, then samples per
    chip.
    """
    minutes = _list_curves(frames, "same-size", MINUTES)
    rates = _list_curves(frames, "all-sizes", RATE)
    growths = [curve[-1][f"best_{RATE}"] / curve[0][f"best_{RATE}"] for curve in rates]
    return join_paragraphs(
        [_describe_falls(minutes)],
        [
            (
                f"Minutes on {SIZE} chips, closed division, best and median of a round:"
                if minutes
                else ""
            ),
            *(TREND_MINUTES.format(**curve[0], last=curve[-1]) for curve in minutes),
        ],
        [
            ("Samples per chip and minute, all sizes, best entry of a round:" if rates else ""),
            *(
                TREND_RATE.format(**curve[0], last=curve[-1], growth=growth)
                for curve, growth in zip(rates, growths, strict=True)
            ),
        ],
        [
            (
                "The chips of later rounds are newer, so this is the progress of machines"
                " and software together. Samples per chip and minute is not an MLPerf"
                " metric."
            ),
            UNVERIFIED,
        ],
    )


def _describe_falls(minutes: list[list[Record]]) -> str:
    """Describe the smallest, the median and the largest fall of the best time of a block."""
    falls = [
        (curve[0]["best_minutes"] / curve[-1]["best_minutes"], curve[0]["model"])
        for curve in minutes
    ]
    if not falls:
        return ""
    (min_factor, slowest), *_, (max_factor, fastest) = sorted(falls)
    return (
        f"On {SIZE} chips, the best time in the last comparable round of a benchmark is"
        f" shorter than in its first by a factor of {median(fall for fall, _ in falls):.1f} in the"
        f" median of {len(falls)} benchmarks, from {min_factor:.1f} ({slowest}) to {max_factor:.1f}"
        f" ({fastest})."
    )


def draw_trends(alt: Any, frames: Frames) -> Any:
    """Draw best and median over the rounds, a panel for minutes and one for samples per chip
    and minute.
    """
    minutes = _list_curves(frames, "same-size", MINUTES)
    rates = _list_curves(frames, "all-sizes", RATE)
    names = sorted({curve[0]["model"] for curve in [*minutes, *rates]})
    rounds = sorted({row["round"] for curve in [*minutes, *rates] for row in curve}, key=round_key)
    x = alt.X(
        "round:N",
        title="Round",
        sort=rounds,
        scale=alt.Scale(domain=rounds),
        axis=alt.Axis(labelAngle=0),
    )
    count = len(PALETTE.series)  # a second shape where there are more benchmarks than colours
    colors = [PALETTE.series[index % count] for index in range(len(names))]
    shapes = [("circle", "triangle-up")[index // count % 2] for index in range(len(names))]
    channels = {"x": x, **make_channels(alt, "name", "Benchmark", names, colors, shapes)}
    panels = [
        _draw_trend(
            alt,
            curves,
            figure,
            title,
            {**channels, "y": make_log_axis(alt, "Y", "value", title, ticks, "~s")},
        )
        for curves, figure, title, ticks in (
            (minutes, MINUTES, f"Minutes on {SIZE} chips", (*MINUTE_TICKS, 500)),
            (
                rates,
                RATE,
                "Samples per chip and minute, all sizes",
                [10.0**power for power in range(10)],
            ),
        )
    ]
    title = (
        "MLPerf Training over the rounds, comparable rounds only",
        "Closed division. Solid with marks: best entry; dashed: median. Logarithmic. Unverified",
    )
    return join_panels(alt, panels, title, legend_columns=4, legends="shared")


def _draw_trend(
    alt: Any, curves: list[list[Record]], figure: str, title: str, channels: dict[str, Any]
) -> Any:
    points = [
        {
            "name": row["model"],
            "block": f"{row['model']} {row['comparable_rounds']}",
            "round": row["round"],
            "value": row[f"{kind}_{figure}"],
            "kind": kind,
            "result_id": row["best_result_id"] if (kind, figure) == ("best", MINUTES) else None,
        }
        for curve in curves
        for row in curve
        for kind in ("best", "median")
    ]
    shape = channels.pop("shape")  # of the marks alone
    base = alt.Chart(make_data(alt, points)).encode(**channels)
    dash = alt.StrokeDash(
        "kind:N", legend=None, scale=make_scale(alt, ("best", "median"), ([1, 0], [2, 2]))
    )
    lines = base.mark_line(strokeWidth=1.4, opacity=0.8).encode(detail="block:N", strokeDash=dash)
    tooltip = make_tooltips(alt, "name", "round", "value", "kind", name="Benchmark", value=title)
    marks = base.transform_filter("datum.kind == 'best'").mark_point(
        filled=True, size=50, opacity=1
    )
    return alt.layer(lines, marks.encode(shape=shape, tooltip=tooltip)).properties(
        **PANEL, title=title
    )


TRENDS = Analysis(
    "mlperf_trends",
    "How did MLPerf times change over the rounds?",
    ("mlperf_trends",),
    summarise_trends,
    draw_trends,
)
