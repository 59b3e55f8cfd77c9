"""MLPerf Training: which neighbours in its rankings the runs separate."""

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
from ipu_results.analyses.mlperf import DIVISION
from ipu_results.ground.charts import PALETTE, make_data
from ipu_results.mlperf.rules import round_key

SCOPES = {"all-sizes": "of all sizes", "same-size": "with as many chips"}
MIN_PAIRS = 20  # of a benchmark that is named: a share of fewer pairs says little
ROWS_DRAWN = 24  # of a ranking: what fits next to the shares
OUTCOMES = {
    "separable": "yes",
    "tied": "no",
    "shared-logs": "no, the same logs",
    "untested": "not tested",
}


def _select_scope(frames: Frames, scope: str) -> pd.DataFrame:
    rows = frames["mlperf_noise"]
    return rows[(rows["division"] == DIVISION) & (rows["scope"] == scope)]


def _share(
    rows: pd.DataFrame, separable: str = "separable_pairs", pairs: str = "tested_pairs"
) -> float:
    """Return the share of pairs that are not separable."""
    return float(1 - rows[separable].sum() / rows[pairs].sum())


def summarise_noise(frames: Frames) -> str:
    """Describe the share over all rankings, next to other shares, by benchmark and over the rounds."""
    rows, same = (_select_scope(frames, scope) for scope in SCOPES)
    rounds = sorted(rows.groupby("round"), key=lambda group: round_key(group[0]))
    shares = join_words(f"{format_percent(_share(group))} in v{name}" for name, group in rounds)
    wrong = (
        (rows["wrong_order_percent"] * rows["tested_pairs"]).sum()
        / rows["tested_pairs"].sum()
        / 100
    )
    every = format_percent(_share(rows, "all_separable_pairs", "all_pairs"))
    by_speed = format_percent(_share(same, "speed_separable_pairs", "speed_pairs"))
    same_machine = format_percent(
        _share(same, "same_machine_separable_pairs", "same_machine_pairs")
    )
    return join_paragraphs(
        [_describe_scope(rows, SCOPES["all-sizes"])],
        [
            (
                f"Of all {rows['all_pairs'].sum():,.0f} pairs of these rankings it is {every}. Two"
                f" neighbours are in the wrong order with a probability of {format_percent(wrong)}"
                " in the mean; in a random order it is 50 %."
            ),
            _describe_scope(same, SCOPES["same-size"]),
            (
                f"By minutes per sample, without luck of convergence, it is {by_speed} of"
                f" {same['speed_pairs'].sum():,.0f} neighbours of that order."
            ),
        ],
        [
            (
                f"{format_percent(same['same_machine_pairs'].sum() / same['tested_pairs'].sum())}"
                " of the neighbours with as many chips have the same ones, entered by two"
                f" companies: of them {same_machine} cannot be separated, of the others"
                f" {format_percent(_share_others(same))}."
            ),
            (
                "With the correction for many pairs the first share is "
                f"{format_percent(_share(rows, 'separable_pairs_corrected'))}."
            ),
            (
                f"{rows['entries'].sum() - rows['measurements'].sum():.0f} entries repeat the"
                f" measurement of another and are ranked once; {rows['unscored'].sum():.0f}"
                " published ones have no minutes here."
            ),
        ],
        [_describe_benchmarks(rows), f"Over the rounds it is {shares}."],
        [
            "Not separable is not equal: more runs could separate a pair, and the share grows with"
            " the number of entries. Submitters may choose the runs that they hand in, so these may"
            " differ less than others would."
        ],
        [UNVERIFIED],
    )


def _share_others(rows: pd.DataFrame) -> float:
    separable = rows["separable_pairs"].sum() - rows["same_machine_separable_pairs"].sum()
    return float(1 - separable / (rows["tested_pairs"].sum() - rows["same_machine_pairs"].sum()))


def _describe_scope(rows: pd.DataFrame, words: str) -> str:
    return (
        f"In the {DIVISION} rankings of systems {words}, the runs cannot separate "
        f"{format_percent(_share(rows))} of {rows['tested_pairs'].sum():,.0f} neighbouring pairs."
    )


def _describe_benchmarks(rows: pd.DataFrame) -> str:
    shares = {
        str(name): _share(group)
        for name, group in rows.groupby("benchmark")
        if group["tested_pairs"].sum() >= MIN_PAIRS
    }
    ordered = sorted(shares, key=lambda name: (-shares[name], name))
    noisy, clear = (
        join_words(f"{name} ({format_percent(shares[name])})" for name in names)
        for names in (ordered[:3], ordered[:-4:-1])
    )
    return (
        f"By benchmark the share is highest for {noisy}, and lowest for {clear}." if ordered else ""
    )


def draw_noise(alt: Any, frames: Frames) -> Any:
    """Draw the share by benchmark and round, and the intervals of the largest ranking of the last
    round.
    """
    panels = [
        _draw_shares(alt, _select_scope(frames, "all-sizes")),
        _draw_ranking(alt, frames["mlperf_ranking"]),
    ]
    title = (
        "Neighbours in MLPerf Training that their runs cannot separate",
        "Closed division. Left: share by benchmark and round. Right: 95 % intervals of one ranking",
    )
    return join_panels(alt, panels, title, legend_columns=4)


def _draw_shares(alt: Any, rows: pd.DataFrame) -> Any:
    tested = make_records(rows[rows["tested_pairs"] > 0], ["benchmark"])
    records = [{**row, "label": f"{row['noise_percent']:.0f}"} for row in tested]
    rounds = sorted({row["round"] for row in records}, key=round_key)
    fields = ("benchmark", "round", "tested_pairs", "separable_pairs", "separable_pairs_corrected")
    base = alt.Chart(make_data(alt, records)).encode(
        x=alt.X("round:N", title="Round", sort=rounds, axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("benchmark:N", title="Benchmark"),
        tooltip=make_tooltips(alt, *fields),
    )
    title = "Pairs not separable, %"
    scale = alt.Scale(domain=[0, 100], range=[PALETTE.ink["grid"], PALETTE.series[1]])
    color = alt.Color("noise_percent:Q", title=title, scale=scale)
    cells = base.mark_rect(stroke=PALETTE.ink["frame"]).encode(color=color)
    layers = alt.layer(cells, base.mark_text(fontSize=10).encode(text="label:N"))
    return layers.properties(width=alt.Step(34), height=alt.Step(22), title=title)


def _draw_ranking(alt: Any, ranking: pd.DataFrame) -> Any:
    records = _pick_ranking(ranking)
    axis = alt.Axis(
        labelLimit=320, titleAngle=0, titleAlign="right", titleAnchor="end", titleX=-8, titleY=-8
    )  # above
    y = alt.Y("name:N", title="Rank and system", sort=[row["name"] for row in records], axis=axis)
    base = alt.Chart(make_data(alt, records)).encode(y=y)
    colors = [*(PALETTE.series[at] for at in (0, 1, 4)), PALETTE.ink["muted"], PALETTE.ink["mark"]]
    scale = make_scale(alt, [*OUTCOMES.values(), "first"], colors)
    color = alt.Color("slower:N", title="Separable from the row above", scale=scale)
    x, low = (
        alt.X(f"{name}:Q", title="Minutes", scale=alt.Scale(zero=False))
        for name in ("minutes", "minutes_low")
    )
    bars = base.mark_rule(strokeWidth=2).encode(x=low, x2="minutes_high:Q", color=color)
    tooltip = make_tooltips(
        alt, "name", "minutes", "minutes_low", "minutes_high", "tied_ranks", "interval_method"
    )
    marks = base.mark_point(filled=True, size=45, opacity=1).encode(
        x=x, color=color, tooltip=tooltip
    )
    title = (
        f"{records[0]['ranking']}, first {len(records)} of {records[0]['entries']}"
        if records
        else ""
    )
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
            **{
                key: row[key]
                for key in ("ranking", "entries", "minutes", "minutes_low", "minutes_high")
            },
            **{key: row[key] for key in ("tied_ranks", "interval_method", "result_id")},
            "name": f"{row['rank']} {row['submitter']}, {row['platform']}",
            "slower": (
                OUTCOMES["shared-logs"] if row["repeats"] else OUTCOMES.get(row["outcome"], "first")
            ),
        }
        for row in drawn
    ]


NOISE = Analysis(
    "mlperf_noise",
    "Which neighbours in an MLPerf ranking do the runs separate?",
    ("mlperf_noise", "mlperf_ranking"),
    summarise_noise,
    draw_noise,
    caveats=2,
)
