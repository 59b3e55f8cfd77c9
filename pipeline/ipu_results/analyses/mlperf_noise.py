"""What share of the order of MLPerf Training the runs cannot resolve, and who is tied with whom."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import (
    UNVERIFIED,
    Analysis,
    Frames,
    Record,
    format_percent,
    join_paragraphs,
    join_words,
    make_records,
)
from ipu_results.analyses.drawing import join_panels, make_scale, make_tooltips
from ipu_results.ground.charts import PALETTE, make_data
from ipu_results.mlperf.rules import round_key

DIVISION = "closed"
SCOPES = {"all-sizes": "of all sizes", "same-size": "with as many accelerators"}
MIN_PAIRS = 20  # of a benchmark that is named
ROWS_DRAWN = 24
COUNTS = ["neighbouring_pairs", "shared_log_pairs", "tested_pairs", "separable_pairs", "separable_pairs_corrected"]
OUTCOMES = {"separable": "yes", "tied": "no", "shared-logs": "no, the same logs", "untested": "not tested"}
FIRST = "first"


def _select(frames: Frames, scope: str) -> pd.DataFrame:
    rows = frames["mlperf_noise"]
    return rows[(rows["division"] == DIVISION) & (rows["scope"] == scope)]


def _noise(rows: pd.DataFrame) -> float:
    """Return the share of tested pairs that are not separable."""
    return float(1 - rows["separable_pairs"].sum() / rows["tested_pairs"].sum())


def summarise(frames: Frames) -> str:
    """Describe the share over all rankings, by benchmark, over the rounds, and what the correction changes."""
    rows = _select(frames, "all-sizes")
    total = rows[COUNTS].sum()
    corrected = 1 - total["separable_pairs_corrected"] / total["tested_pairs"]
    finding, *others = (_describe_scope(_select(frames, scope), words) for scope, words in SCOPES.items())
    return join_paragraphs(
        [finding],
        [
            *others,
            f"With the correction for many pairs the first share is {format_percent(corrected)}.",
            f"{total['shared_log_pairs']:.0f} more pairs have a log in common, byte for byte.",
        ],
        [_describe_benchmarks(rows), _describe_rounds(rows)],
        ["A pair counts as noise if the 95 % interval of its difference includes zero. More runs could resolve it."],
        [UNVERIFIED],
    )


def _describe_scope(rows: pd.DataFrame, words: str) -> str:
    return (
        f"In the {DIVISION} rankings of systems {words}, the runs cannot separate {format_percent(_noise(rows))} of "
        f"{rows['tested_pairs'].sum():,.0f} neighbouring pairs."
    )


def _describe_benchmarks(rows: pd.DataFrame) -> str:
    shares = {
        str(name): _noise(group)
        for name, group in rows.groupby("benchmark")
        if group["tested_pairs"].sum() >= MIN_PAIRS
    }
    ordered = sorted(shares, key=lambda name: (-shares[name], name))
    noisy, clear = (
        join_words(f"{name} ({format_percent(shares[name])})" for name in names)
        for names in (ordered[:3], ordered[:-4:-1])
    )
    return f"By benchmark the share is highest for {noisy}, and lowest for {clear}." if ordered else ""


def _describe_rounds(rows: pd.DataFrame) -> str:
    shares = {str(name): _noise(group) for name, group in rows.groupby("round")}
    named = join_words(f"{format_percent(shares[name])} in v{name}" for name in sorted(shares, key=round_key))
    return f"Over the rounds it is {named}."


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw the share by benchmark and round, and the intervals of the largest ranking of the last round."""
    panels = [_draw_shares(alt, _select(frames, "all-sizes")), _draw_ranking(alt, frames["mlperf_ranking"])]
    title = (
        "How much of the order of MLPerf Training is noise",
        "Closed division. Left: neighbours that their runs cannot separate. Right: 95 % intervals of one ranking",
    )
    return join_panels(alt, panels, title, legend_columns=4)


def _draw_shares(alt: Any, rows: pd.DataFrame) -> Any:
    tested = make_records(rows[rows["tested_pairs"] > 0], ["benchmark"])
    records = [{**row, "label": f"{row['noise_percent']:.0f}"} for row in tested]
    rounds = sorted({row["round"] for row in records}, key=round_key)
    base = alt.Chart(make_data(alt, records)).encode(
        x=alt.X("round:N", title="Round", sort=rounds, axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("benchmark:N", title="Benchmark"),
        tooltip=make_tooltips(
            alt, "benchmark", "round", "tested_pairs", "separable_pairs", "separable_pairs_corrected"
        ),
    )
    scale = alt.Scale(domain=[0, 100], range=[PALETTE.ink["grid"], PALETTE.series[1]])
    cells = base.mark_rect(stroke=PALETTE.ink["frame"]).encode(
        color=alt.Color("noise_percent:Q", title="Pairs not separable, %", scale=scale)
    )
    layers = alt.layer(cells, base.mark_text(fontSize=10).encode(text="label:N"))
    return layers.properties(width=alt.Step(34), height=alt.Step(22), title="Pairs not separable, %")


def _draw_ranking(alt: Any, ranking: pd.DataFrame) -> Any:
    records = _pick_ranking(ranking)
    names = [row["name"] for row in records]
    axis = alt.Axis(labelLimit=320, titleAngle=0, titleAlign="right", titleAnchor="end", titleX=-8, titleY=-8)  # above
    y = alt.Y("name:N", title="Rank and system", sort=names, axis=axis)
    base = alt.Chart(make_data(alt, records)).encode(y=y)
    colors = [PALETTE.series[0], PALETTE.series[1], PALETTE.series[4], PALETTE.ink["muted"], PALETTE.ink["mark"]]
    color = alt.Color(
        "slower:N",
        title="Surely slower than the row above",
        scale=make_scale(alt, [*OUTCOMES.values(), FIRST], colors),
    )
    x = alt.X("minutes:Q", title="Minutes", scale=alt.Scale(zero=False))
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("minutes_low:Q", title="Minutes", scale=alt.Scale(zero=False)), x2="minutes_high:Q", color=color
    )
    fields = ("name", "minutes", "minutes_low", "minutes_high", "tied_ranks", "interval_method")
    tooltip = make_tooltips(alt, *fields)
    marks = base.mark_point(filled=True, size=45, opacity=1).encode(x=x, color=color, tooltip=tooltip)
    title = f"{records[0]['ranking']}, first {len(records)} of {records[0]['entries']}" if records else ""
    return alt.layer(bars, marks).properties(width=330, height=alt.Step(17), title=title)


def _pick_ranking(ranking: pd.DataFrame) -> list[Record]:
    """Pick the first rows of the largest ranking of systems of one size in the last round."""
    rows = ranking[(ranking["division"] == DIVISION) & (ranking["scope"] == "same-size")]
    if rows.empty:
        return []
    last = rows[rows["round"] == max(rows["round"], key=round_key)]
    name = last.sort_values(["entries", "ranking"], ascending=[False, True])["ranking"].iloc[0]
    drawn = make_records(last[last["ranking"] == name], ["rank", "path"])[:ROWS_DRAWN]
    return [
        {
            **{key: row[key] for key in ("ranking", "entries", "minutes", "minutes_low", "minutes_high")},
            **{key: row[key] for key in ("tied_ranks", "interval_method", "result_id")},
            "name": f"{row['rank']} {row['submitter']}, {row['system']}",
            "slower": OUTCOMES.get(row["outcome"], FIRST),
        }
        for row in drawn
    ]


ANALYSIS = Analysis(
    "mlperf_noise",
    "How much of the order of MLPerf is noise?",
    ("mlperf_noise", "mlperf_ranking"),
    summarise,
    build_chart,
    caveats=2,
)
