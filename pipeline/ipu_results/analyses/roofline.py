"""What share of the measured and of the stated peak of a chip the models reach."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import (
    CONSIDERED,
    Analysis,
    Frames,
    Record,
    describe_left_out,
    format_percent,
    join_paragraphs,
    join_words,
    make_records,
)
from ipu_results.analyses.drawing import join_panels, make_log_axis, make_scale
from ipu_results.ground.charts import PALETTE, make_data
from ipu_results.ground.text import format_count

CHIPS = ("GC2", "GC200", "Bow", "C600")
MODELS = (
    "ResNet-50 v1.5",
    "ResNeXt101-32x4d",
    "ResNeXt101-32x8d",
    "EfficientNet-B0",
    "EfficientNet-B4",
    "EfficientNet-B7",
    "BERT-Base",
    "BERT-Large",
)
BEST = (
    "{share} on {chip} ({model} {task} at {precision} by {publisher},"
    " {achieved_tflops:.1f} TFLOP/s)"
)
CEILING = "{percent} on {chip} ({component}, {measured:,.1f} of {stated:,.1f} {unit})"
SMALL_PANEL = {"width": 280, "height": 270}
X_ENDS, Y_ENDS = (1.0, 1000.0), (1.0, 1000.0)
TICKS = (1, 10, 100, 1000)
DATASHEET, DATASHEET_FP8, MEASURED = "datasheet, 16 bits", "datasheet, FP8", "measured"
# of which a datasheet states one peak
PRECISIONS = {DATASHEET: ("FP16", "mixed"), DATASHEET_FP8: ("FP8",)}
DASHES = {DATASHEET: [1, 0], DATASHEET_FP8: [7, 2], MEASURED: [4, 3]}
MATRIX, MEMORY = "matrix product at 16 bits", "local memory"


def summarise(frames: Frames) -> str:
    """Describe the highest share of each chip, what microbenchmarks reach of the same peaks, and
    what is not known.
    """
    rows = frames["peak_shares"]
    stated = rows["datasheet_share"].notna()
    clean = rows[rows["usable"] & ~rows["precision_doubtful"] & stated]
    ranked = clean.sort_values(
        ["datasheet_share", "result_id"], ascending=[False, True]
    ).drop_duplicates("chip")
    best = [row for chip in CHIPS for row in make_records(ranked[ranked["chip"] == chip])]
    shares = [BEST.format(**row, share=format_percent(row["datasheet_share"])) for row in best]
    reached = frames["ceilings"].dropna(subset="share")
    ceilings = [
        CEILING.format(**row, percent=format_percent(row["share"]))
        for row in make_records(reached[reached["chip"].isin(CHIPS)], ["chip", "component"])
    ]
    doubtful = rows[rows["chip"].isin(CHIPS) & rows["usable"] & rows["precision_doubtful"]]
    return join_paragraphs(
        [_describe_finding(best)],
        [
            f"The highest shares of the datasheet's peak are {join_words(shares)}.",
            f"Microbenchmarks alone reach {join_words(ceilings)} of what is stated.",
        ],
        [
            (
                "Operations are counted from the architecture, two per multiply-accumulate, and"
                " three times that in training. Sequences count at full length, also where a source"
                " pads shorter ones."
            ),
            (
                "Intensity assumes that each weight is read once a batch and each result written"
                " and read once."
            ),
            (
                "Only the GC2 and the GC200 have a measured memory bandwidth, so the other panels"
                " have no slope."
            ),
            describe_left_out(frames[CONSIDERED]),
            (
                f"In doubt, and left out too: {format_count(len(doubtful), 'row')} whose document"
                " prints the same throughput at another width."
            ),
        ],
    )


def _describe_finding(best: list[Record]) -> str:
    lowest, *_, highest = sorted(best, key=lambda row: float(row["datasheet_share"]))
    low, high = (format_percent(row["datasheet_share"]) for row in (lowest, highest))
    return (
        f"No counted model reaches more than {high} of an IPU's datasheet peak at its printed"
        f" precision: the best of each of {len(best)} chips reaches between {low}"
        f" ({lowest['chip']}) and {high} ({highest['chip']})."
    )


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw one roofline per chip: models, the stated peak, and the measured ceilings where there
    are any.
    """
    panels = [_draw_panel(alt, frames, chip) for chip in CHIPS]
    title = (
        "Achieved FLOP/s of a chip over operations per byte of local memory",
        (
            "Solid: peak of the datasheet at 16 bits. Long dashes: at FP8. Short dashes: highest"
            " measured matrix product and memory bandwidth"
        ),
        "Filled points: FP8, hollow ones: 16 bits. Usable rows without a width in doubt",
    )
    pairs = [alt.hconcat(*panels[at : at + 2], spacing=30) for at in (0, 2)]
    return join_panels(alt, [alt.vconcat(*pairs)], title, 4, legends="shared")


def _draw_panel(alt: Any, frames: Frames, chip: str) -> Any:
    shares = frames["peak_shares"]
    clean = shares["usable"] & ~shares["precision_doubtful"] & shares["intensity"].notna()
    rows = shares[(shares["chip"] == chip) & clean]
    points = [
        _make_point(row) for row in make_records(rows, ["model", "achieved_tflops", "result_id"])
    ]
    x = make_log_axis(
        alt, "X", "intensity", "FLOP per byte (log scale)", TICKS, domain=list(X_ENDS)
    )
    y = make_log_axis(
        alt, "Y", "tflops", "TFLOP/s of a chip (log scale)", TICKS, domain=list(Y_ENDS)
    )
    color = alt.Color("model:N", title="Model", scale=make_scale(alt, MODELS, PALETTE.series))
    shape = alt.Shape(
        "task:N",
        title="Task",
        scale=make_scale(alt, ("inference", "training"), ("circle", "diamond")),
    )
    tooltip = [
        f"{name}:N"
        for name in ("model", "task", "publisher", "precision", "batch", "tflops", "share")
    ]
    base = alt.Chart(make_data(alt, points)).encode(
        x=x, y=y, color=color, shape=shape, tooltip=tooltip
    )
    is_fp8 = f"datum.precision == '{PRECISIONS[DATASHEET_FP8][0]}'"
    hollow = base.transform_filter(f"!({is_fp8})").mark_point(size=40, opacity=0.8)
    filled = base.transform_filter(is_fp8).mark_point(size=40, opacity=0.8, filled=True)
    lines = alt.Chart(make_data(alt, _make_roofs(frames, chip))).mark_line(
        color=PALETTE.ink["rule"], strokeWidth=1.5
    )
    dashes = alt.StrokeDash(
        "kind:N", title="Ceiling", scale=make_scale(alt, DASHES, DASHES.values())
    )
    roofs = lines.encode(x=x, y=y, detail="roof:N", strokeDash=dashes)
    return alt.layer(roofs, hollow, filled).properties(**SMALL_PANEL, title=chip)


def _make_roofs(frames: Frames, chip: str) -> list[Record]:
    """Make the ends of each ceiling: flat at a peak, rising with the intensity below the memory
    bandwidth.
    """
    shares = frames["peak_shares"]
    ceilings = frames["ceilings"]
    of_chip = ceilings[(ceilings["chip"] == chip) & ceilings["is_ceiling"]].set_index("component")[
        "measured"
    ]
    own = shares[shares["chip"] == chip]
    peaks = {
        kind: own.loc[own["precision"].isin(names), "datasheet_peak_tflops"].max()
        for kind, names in PRECISIONS.items()
    }
    peaks[MEASURED] = of_chip.get(MATRIX)
    roofs = [
        {"roof": f"{kind} peak", "kind": kind, "intensity": at, "tflops": peak}
        for kind, peak in peaks.items()
        if peak is not None and not pd.isna(peak)
        for at in X_ENDS
    ]
    if MEMORY in of_chip:
        slope = float(of_chip[MEMORY]) / 1000  # TB/s is TFLOP/s at one operation a byte
        top = float(peaks[DATASHEET])
        for at in (max(X_ENDS[0], Y_ENDS[0] / slope), top / slope):
            roofs.append(
                {"roof": "memory", "kind": MEASURED, "intensity": at, "tflops": at * slope}
            )
    return roofs


def _make_point(row: Record) -> Record:
    return {
        "result_id": row["result_id"],
        "model": row["model"],
        "task": row["task"],
        "publisher": row["publisher"],
        "precision": row["precision"],
        "batch": row["batch_size"],
        "intensity": round(row["intensity"], 3),
        "tflops": round(row["achieved_tflops"], 3),
        "share": row["datasheet_share"],
    }


ANALYSIS = Analysis(
    "roofline",
    "What share of the peak do models reach?",
    ("peak_shares", "ceilings"),
    summarise,
    build_chart,
    considered=f"""
        chip IN {CHIPS} AND benchmark IS NULL AND throughput_per_chip IS NOT NULL
        AND model IN (SELECT model FROM detail.operation_counts)
    """,
)
