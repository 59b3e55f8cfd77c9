"""How well other parties reproduce the figures of a chip's maker, and one another's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import (
    UNVERIFIED,
    Analysis,
    Frames,
    Record,
    compute_mean,
    join_paragraphs,
    join_words,
    make_records,
)
from ipu_results.analyses.drawing import (
    STEP,
    WIDTH,
    draw_rule,
    make_channels,
    make_label_axis,
    make_log_axis,
    make_tooltips,
)
from ipu_results.ground.charts import CROSS, PALETTE, apply_theme, make_data, make_title

VENDOR, INDEPENDENT = "vendor and independent", "two independent"
IPU, OTHER = "IPU", "other"
TICKS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5)
TITLE = "Second party over the first (log scale)"
SHOWN = "shown, not counted"
ALL, NONE_STATED = "all", "none stated"
FINDING = (
    "Of {counted} counted pairs on IPUs, {within_5_percent} reproduce the vendor's figure within 5%"
)
PART = "{counted} with its {parts} ({within_5_percent} within 5%)"
PLURALS = {"author": "authors", "machine": "machines"}
GROUP = (
    "{pairs} pairs, {counted} counted, {within_5_percent} within 5%, or {works} works,"
    " {works_within_5_percent} within 5%. The geometric mean of the ratios is {mean_ratio:.3f} (95"
    " % from {mean_low:.3f} to {mean_high:.3f}), the lowest {lowest_ratio:.3f}, the highest"
    " {highest_ratio:.3f}."
)
LOWEST = (
    "The lowest is {second_publisher}: {second_figure:,.0f} against {first_figure:,.0f} {item}s/s"
    " ({model}, {chip_count} {chip}). "
)
ORDER = ["parties", "measure", "chip", "chip_count", "ratio", "first_result_id", "second_result_id"]


def summarise(frames: Frames) -> str:
    """Describe the counted pairs of each group with the interval of their mean, the exception, and
    what is left out.
    """
    groups = make_records(frames["replication_summary"])
    summary = {
        (row["machines"], row["parties"]): row for row in groups if row["vendor_part"] == ALL
    }
    parts = [
        row
        for row in groups
        if (row["machines"], row["parties"]) == (IPU, VENDOR) and row["vendor_part"] != ALL
    ]
    rows = frames["replications"]
    ipus, others = (rows[rows["machines"] == name] for name in (IPU, OTHER))
    vendor, makers = (part[(part["parties"] == VENDOR) & part["counts"]] for part in (ipus, others))
    return join_paragraphs(
        [f"{FINDING.format(**summary[IPU, VENDOR])}: {_describe_parts(parts)}"],
        [
            f"IPUs, the vendor and another party: {GROUP.format(**summary[IPU, VENDOR])}",
            _describe_lowest(vendor),
            f"IPUs, two others: {GROUP.format(**summary[IPU, INDEPENDENT])}",
            _describe_reasons(ipus),
        ],
        [
            f"Other chips, the maker and another party: {GROUP.format(**summary[OTHER, VENDOR])}",
            (
                "The counted ones are official MLPerf entries of"
                f" {makers['second_publisher'].nunique()} submitters, next to those of"
                f" {join_words(sorted(makers['first_publisher'].unique()))}."
            ),
            _describe_reasons(others),
        ],
        [
            (
                "Pairs of the same parties, work, chip and number of chips are averaged first. The"
                " interval is Student's t over the logarithms of the averages."
            ),
            (
                "The counted pairs with Graphcore are those of"
                f" {join_words(sorted(vendor['second_publisher'].unique()))}."
            ),
            (
                "Submitters of MLPerf often run the software of the chip's maker, and one entry of"
                " the maker is in the pairs of several submitters, so the interval of other chips"
                " is too narrow."
            ),
            f"MLPerf times: {UNVERIFIED[0].lower()}{UNVERIFIED[1:]}",
            "Few works of few parties say little about figures that were not measured again.",
        ],
    )


def _describe_parts(groups: Sequence[Record]) -> str:
    """Describe what part the vendor had in the pairs that count, most of them first."""
    counted = sorted((row for row in groups if row["counted"]), key=lambda row: -row["counted"])
    parts = [PART.format(**row, parts=_name_parts(row["vendor_part"])) for row in counted]
    independent = any(row["vendor_part"] == NONE_STATED for row in counted)
    return (
        f"{'most' if independent else 'all'} were run with a part of the vendor,"
        f" {join_words(parts)}."
    )


def _name_parts(vendor_part: str) -> str:
    return join_words([PLURALS.get(part, part) for part in vendor_part.split(", ")])


def _describe_lowest(rows: pd.DataFrame) -> str:
    lowest = rows.loc[rows["ratio"].idxmin()]
    others = rows.drop(lowest.name)["ratio"]
    mean = f"The geometric mean of the other {len(others)} pairs is {compute_mean(others):.3f}."
    return LOWEST.format(**lowest) + mean


def _describe_reasons(rows: pd.DataFrame) -> str:
    counts = rows.loc[~rows["counts"], "reason"].value_counts()
    parts = [
        f"{count} ({reason})"
        for reason, count in sorted(counts.items(), key=lambda part: (-part[1], part[0]))
    ]
    return f"Not counted are {join_words(parts)}."


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw the ratio of each pair, a line per work on IPUs and per benchmark on others, and the
    means of the works.
    """
    panels = [_draw_panel(alt, frames, name) for name in (IPU, OTHER)]
    title = make_title(
        alt,
        "One work, one chip, one number of chips, two parties",
        "Filled: counted. Crosses: shown, since the set-up explains the ratio or leaves it open."
        " MLPerf: unverified",
        "First lines: geometric mean of the works that count, with its interval of 95 %",
    )
    return apply_theme(alt.vconcat(*panels, spacing=30).properties(title=title), 2)


def _draw_panel(alt: Any, frames: Frames, machines: str) -> Any:
    rows, summary = (frames[name][frames[name]["machines"] == machines] for name in ANALYSIS.views)
    points = [_make_point(row) for row in make_records(rows, ORDER)]
    means = [
        _make_mean(row)
        for row in reversed(make_records(summary, ["parties", "vendor_part"]))
        if row["works"]
    ]
    x = make_log_axis(alt, "X", "ratio", TITLE, TICKS)
    y = make_label_axis(alt, [*means, *points], "Work", 520)
    channels = make_channels(alt, "parties", "Parties", [VENDOR, INDEPENDENT], PALETTE.series)
    color = channels["color"]
    shape = channels["shape"]
    fields = (
        "parties",
        "test",
        "first",
        "second",
        "ratio",
        "vendor_part",
        "reason",
        "differs",
        "unstated",
    )
    tooltip = [f"{name}:N" for name in fields]
    base = alt.Chart(make_data(alt, points)).encode(x=x, y=y, color=color, tooltip=tooltip)
    crosses = base.transform_filter(f"datum.counted == '{SHOWN}'")
    crosses = crosses.mark_point(shape=CROSS, size=30, opacity=0.6, strokeWidth=1)
    solid = base.transform_filter(f"datum.counted != '{SHOWN}'").mark_point(
        size=60, filled=True, opacity=1
    )
    title = "IPUs" if machines == IPU else "Other chips, next to their makers"
    layers = alt.layer(
        draw_rule(alt, 1, x), crosses, solid.encode(shape=shape), *_draw_means(alt, means, y, color)
    )
    return layers.properties(width=WIDTH, height=alt.Step(STEP), title=title)


def _draw_means(alt: Any, means: list[Record], y: Any, color: Any) -> list[Any]:
    """Draw each mean as a tick on the bar of its interval; the mean of one work has none."""
    tooltip = make_tooltips(
        alt, "label", "mean", "low", "high", "works", label="Mean of", low="From", high="To"
    )
    base = alt.Chart(make_data(alt, means)).encode(y=y, color=color, tooltip=tooltip)
    low, mean = (make_log_axis(alt, "X", name, TITLE, TICKS) for name in ("low", "mean"))
    bars = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=3, opacity=0.6)
    return [bars.encode(x=low, x2="high"), base.mark_tick(thickness=3, size=13).encode(x=mean)]


def _make_mean(row: Record) -> Record:
    return {
        "label": _label_mean(row),
        "parties": row["parties"],
        "mean": round(row["mean_ratio"], 4),
        "low": None if row["mean_low"] is None else round(row["mean_low"], 4),
        "high": None if row["mean_high"] is None else round(row["mean_high"], 4),
        "works": row["works"],
    }


def _label_mean(row: Record) -> str:
    part = row["vendor_part"]
    with_part = "" if part == ALL else f", vendor's part: {part}"
    return (
        f"mean of {row['works']} work{'s' if row['works'] > 1 else ''}, {row['parties']}{with_part}"
    )


def _make_point(row: Record) -> Record:
    work = row["model"] or row["test"].split(", ")[0]
    kind = f" ({row['measure']})" if row["measure"] != "throughput" else ""
    parties = f"{row['first_publisher']} / {row['second_publisher']}"
    test = f"{work}{kind}, {row['chip_count']} {row['chip']}: {parties}"
    return {
        "label": test if row["machines"] == IPU else f"{work}{kind}",
        "test": test,
        "parties": row["parties"],
        "counted": "counted" if row["counts"] else SHOWN,
        "ratio": round(row["ratio"], 4),
        "first": row["first_figure"],
        "second": row["second_figure"],
        "vendor_part": row["vendor_part"] or "not read",
        "reason": row["reason"] or "",
        "differs": row["differs"] or "",
        "unstated": row["unstated"] or "",
    }


ANALYSIS = Analysis(
    "replications",
    "How well do the vendor's figures replicate?",
    ("replications", "replication_summary"),
    summarise,
    build_chart,
)
