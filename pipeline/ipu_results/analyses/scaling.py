"""What a larger machine gains in throughput and in MLPerf time to train, over the smallest machine
of each curve.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import (
    UNVERIFIED,
    Analysis,
    Frames,
    Record,
    describe_left_out,
    format_percent,
    join_paragraphs,
    join_words,
    make_records,
    select_usable,
)
from ipu_results.analyses.drawing import (
    PANEL,
    join_panels,
    make_scale,
    make_size_axis,
    make_tooltips,
)
from ipu_results.ground.charts import PALETTE, make_data

TIMES = "Batch, times the smallest machine's"
THROUGHPUT, MLPERF = "throughput", "mlperf time to train"
CURVE = [
    "family",
    "model",
    "variant",
    "dataset",
    "framework",
    "sdk_version",
    "base_sdk_version",
    "document_id",
]
ORDER = ["round", *CURVE, "chip_count", "result_id"]
SUPERLINEAR = 1.05  # rule R08 flags efficiencies above it
CHIPS = (16, 64, 128, 256)
SMALL_PANEL = {"width": 330, "height": PANEL["height"]}
FIXED, GROWN = "fixed global batch", "grown global batch"


FASTER = (
    "{model} falls from {base[minutes]:.2f} to {minutes:.2f} minutes, {speed_up:.1f} times faster"
    " ({linear} of linear) with {batch_ratio:.2f} times the global batch."
)
SAMPLES = (
    "{model} needs {samples:.2f} times the samples at batch size {batch_size:,} instead of"
    " {base[batch_size]:,}, which alone leaves {left}. Its samples per minute and chip keep {kept}."
)


def _select(frames: Frames, measure: str) -> list[Record]:
    """Select the usable rows of one measure, the smallest machines included."""
    return make_records(select_usable(frames["scaling"], measure=measure), ORDER)


def _select_compared(rows: list[Record]) -> pd.DataFrame:
    """Select the larger machines whose batch is stated, by whether the global batch is fixed or
    grown.
    """
    names = {"fixed": FIXED, "grown": GROWN, "grown-with-chips": GROWN}
    frame = pd.DataFrame(rows)
    return frame.assign(batch=frame["batch_growth"].map(names)).dropna(subset="batch")


def summarise(frames: Frames) -> str:
    """Describe what each size keeps of its throughput, then time to train, its samples and the
    cited entries.
    """
    entries = _select(frames, MLPERF)
    latest, max_chips = (max(row[name] for row in entries) for name in ("round", "chip_count"))
    largest = [row for row in entries if row["round"] == latest and row["chip_count"] == max_chips]
    bases = {row["result_id"]: row for row in entries}
    pairs = [
        {
            **row,
            "base": bases[row["base_result_id"]],
            "samples": 1 / row["samples_efficiency"],
            "linear": format_percent(row["scaling_efficiency"]),
            "left": format_percent(row["samples_efficiency"]),
            "kept": format_percent(row["rate_efficiency"]),
        }
        for row in largest
    ]
    return join_paragraphs(
        [_describe_finding(_select(frames, THROUGHPUT))],
        [
            *_describe_throughput(_select(frames, THROUGHPUT)),
            (
                "MLPerf time to train is a separate measure, here with "
                f"{pairs[0]['chip_count'] / pairs[0]['base_chip_count']:.0f} times the chips."
            ),
            *(FASTER.format(**row) for row in pairs),
        ],
        [
            "Larger batches need more samples.",
            *(SAMPLES.format(**row) for row in pairs),
            (
                "Throughput does not include that loss of samples, so it alone does not show what a"
                " larger machine saves."
            ),
            "The two measures are never divided by each other.",
        ],
        [
            describe_left_out(frames["scaling"]),
            _cite(entries),
            UNVERIFIED,
            "Speed-up and efficiency are not MLPerf metrics.",
        ],
    )


def _select_comparable(rows: list[Record]) -> pd.DataFrame:
    """Select the rows whose smallest machine has the same SDK and that are not above linear."""
    compared = _select_compared(rows)
    return compared[compared["same_sdk"] & (compared["scaling_efficiency"] <= SUPERLINEAR)]


def _describe_finding(rows: list[Record]) -> str:
    same = _select_comparable(rows)
    max_chips = same["chip_count"].max()
    parts = [
        f"{format_percent(largest['scaling_efficiency'].median())} with a {batch}"
        f" ({_describe_tests(largest)})"
        for batch, largest in same[same["chip_count"] == max_chips].groupby("batch")
    ]
    smallest = join_words(str(chips) for chips in sorted(set(same["base_chip_count"])))
    return (
        f"Each of {max_chips} chips keeps a median of {join_words(parts)} of the training"
        f" throughput that it has among {smallest}."
    )


def _describe_tests(rows: pd.DataFrame) -> str:
    names = rows["model"].unique()
    return f"{len(rows)} rows{f', all {names[0]}' if len(names) == 1 else ''}"


def _describe_throughput(rows: list[Record]) -> list[str]:
    same = _select_comparable(rows)
    larger = pd.DataFrame([row for row in rows if row["chip_count"] > row["base_chip_count"]])
    above = larger[larger["scaling_efficiency"] > SUPERLINEAR]
    grown = same.loc[same["batch"] == GROWN, "batch_ratio"]
    excluded = (
        f"{join_words(above['model'])} ({len(above)} rows) is above linear, flagged by R08 and"
        " excluded."
        if len(above)
        else ""
    )
    return [
        *(_describe_sizes(batch, group) for batch, group in same.groupby("batch")),
        (
            "A fixed global batch leaves each chip less work as the machine grows (strong"
            f" scaling). The grown ones are {grown.min():.2f} to {grown.max():.2f} times the"
            " smallest machine's (weak scaling where as many times as the chips)."
        ),
        (
            "Both rows of each comparison have one SDK. Each size has other models, and so has each"
            " kind of batch, so the difference between the two kinds is not that of the batch"
            " alone."
        ),
        excluded,
    ]


def _describe_sizes(batch: str, rows: pd.DataFrame) -> str:
    sizes = [
        f"{format_percent(shares.median())} on {chips} ({_describe_shares(shares)})"
        for chips, shares in rows.groupby("chip_count")["scaling_efficiency"]
    ]
    return f"With a {batch}, the median throughput per chip is {join_words(sizes)}."


def _describe_shares(shares: pd.Series) -> str:
    if len(shares) == 1:
        return "one row"
    return (
        f"from {format_percent(shares.min())} to {format_percent(shares.max())}, {len(shares)} rows"
    )


def _cite(entries: list[Record]) -> str:
    rounds = []
    for name in sorted({row["round"] for row in entries}):
        rows = [row for row in entries if row["round"] == name]
        ids = sorted({row["mlperf_id"] for row in rows if row["mlperf_id"]})
        inferred = (
            ", inferred" if any(row["mlperf_id_confidence"] == "inferred" for row in rows) else ""
        )
        benchmarks = join_words(sorted({row["benchmark"] for row in rows}))
        cited = f"ids {', '.join(ids)}{inferred}" if ids else "ids unknown"
        rounds.append(f"v{name} {rows[0]['division']} {benchmarks} ({cited})")
    return f"MLPerf Training entries of {entries[0]['submitter']}: {join_words(rounds)}."


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw efficiency over chips: throughput at a fixed and at a grown global batch, and MLPerf
    minutes.
    """
    rows = _select(frames, THROUGHPUT)
    names = sorted({row["model"] for row in rows})
    panels = [
        *(_draw_throughput(alt, rows, names, batch) for batch in (FIXED, GROWN)),
        _draw_minutes(alt, _select(frames, MLPERF)),
    ]
    title = (
        "Scaling from 16 chips: what each chip keeps",
        (
            "100 % is linear. Two measures, each over the smallest machine of its own curve;"
            " hollow: SDKs differ. ×: global batch of the larger machines over that of the smallest"
        ),
    )
    return join_panels(alt, panels, title, legend_columns=1)


def _make_axes(alt: Any, y_title: str) -> dict[str, Any]:
    return {
        "x": make_size_axis(alt, "chips", "Chips", CHIPS),
        "y": alt.Y("efficiency:Q", title=y_title, scale=alt.Scale(domain=[0, 130], nice=False)),
    }


def _draw_throughput(alt: Any, rows: list[Record], names: list[str], batch: str) -> Any:
    """Draw the larger machines with this kind of batch, and the smallest machines of their curves."""
    larger = _select_compared(rows)
    larger = larger[larger["batch"] == batch]
    chosen = {*larger["result_id"], *larger["base_result_id"]}
    points = [_make_point(row, row["model"]) for row in rows if row["result_id"] in chosen]
    axes = _make_axes(alt, "Throughput per chip, % of the smallest machine's")
    color = _make_color(alt, "Model", names)
    base = alt.Chart(make_data(alt, points)).encode(**axes, color=color)
    lines = base.mark_line(strokeWidth=1.2, opacity=0.6).encode(detail="curve:N")
    fills = make_scale(alt, ["the same", "another"], [PALETTE.ink["frame"], "transparent"])
    marks = base.mark_point(size=55, strokeWidth=1.5, opacity=0.9).encode(
        shape=alt.Shape("machine:N", title="Machine", scale=alt.Scale(range=["diamond", "circle"])),
        fill=alt.Fill("sdk:N", scale=fills, legend=None),
        tooltip=make_tooltips(
            alt, "name", "curve", "chips", "efficiency", "sdk", "batch", sdk="SDK", batch=TIMES
        ),
    )
    layers = alt.layer(_draw_linear(alt, axes["y"]), lines, marks)
    return layers.properties(**SMALL_PANEL, title=f"Training throughput, {batch}")


def _draw_minutes(alt: Any, rows: list[Record]) -> Any:
    total = [_make_point(row, name) for row, name in zip(rows, _name_entries(rows), strict=True)]
    samples = [
        {**point, "efficiency": 100 * row["samples_efficiency"]}
        for point, row in zip(total, rows, strict=True)
    ]
    names = sorted({point["name"] for point in total})
    parts = [
        {**point, "part": part}
        for part, points in (("all", total), ("more samples alone", samples))
        for point in points
    ]
    axes = _make_axes(alt, "MLPerf speed-up per chip, % of linear")
    legend = "Entry, closed division"
    base = alt.Chart(make_data(alt, parts)).encode(**axes, color=_make_color(alt, legend, names))
    dash = alt.StrokeDash("part:N", title="Loss", scale=alt.Scale(range=[[1, 0], [3, 3]]))
    lines = base.mark_line(strokeWidth=1.6).encode(detail="name:N", strokeDash=dash)
    marks = base.mark_point(size=60, filled=True, opacity=1).encode(
        shape=alt.Shape("name:N", title=legend, scale=alt.Scale(domain=names)),
        tooltip=make_tooltips(alt, "name", "part", "chips", "efficiency"),
    )
    layers = alt.layer(_draw_linear(alt, axes["y"]), lines, marks)
    return layers.properties(
        **PANEL, title="MLPerf Training time to train, official entries, unverified"
    )


def _name_entries(rows: list[Record]) -> list[str]:
    """Name the curve of each entry, with how its global batch grows."""
    curves = [f"{row['model']}, {row['framework']}, v{row['round']}" for row in rows]
    growth: dict[str, list[str]] = {}
    for curve, row in zip(curves, rows, strict=True):
        if row["chip_count"] > row["base_chip_count"]:
            growth.setdefault(curve, []).append(f"×{row['batch_ratio']:.3g}")
    return [f"{curve}, {' '.join(growth[curve])}" for curve in curves]


def _make_point(row: Record, name: str) -> Record:
    machine = "Bow Pod" if row["family"] == "Bow" else "IPU-POD"
    curve = [
        row["model"],
        row["variant"],
        row["framework"],
        machine,
        f"SDK {row['base_sdk_version']} on the smallest",
    ]
    return {
        "name": name,
        "result_id": row["result_id"],
        "machine": machine,
        "curve": ", ".join(filter(None, curve)),
        "chips": row["chip_count"],
        "efficiency": 100 * row["scaling_efficiency"],
        "sdk": "the same" if row["same_sdk"] else "another",
        "batch": row["batch_ratio"],
    }


def _make_color(alt: Any, title: str, names: list[str]) -> Any:
    return alt.Color("name:N", title=title, scale=make_scale(alt, names, PALETTE.series))


def _draw_linear(alt: Any, y: Any) -> Any:
    return (
        alt.Chart(make_data(alt, [{"efficiency": 100}]))
        .mark_rule(color=PALETTE.ink["muted"])
        .encode(y=y)
    )


ANALYSIS = Analysis(
    "scaling", "What do 256 chips gain over 16?", ("scaling",), summarise, build_chart, caveats=2
)
