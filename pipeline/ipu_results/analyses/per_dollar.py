"""Performance per dollar over one node of 8 A100, with the prices as parameters, and the price of a
tie.
"""

from __future__ import annotations

from typing import Any

from ipu_results.analyses.analysis import (
    UNVERIFIED,
    Analysis,
    Frames,
    Record,
    describe_left_out,
    join_paragraphs,
    join_words,
    make_records,
    select_usable,
)
from ipu_results.analyses.drawing import (
    PANEL,
    join_panels,
    make_channels,
    make_log_axis,
    make_tooltips,
)
from ipu_results.ground.charts import PALETTE, list_log_ticks, make_data

MLPERF, THROUGHPUT = "mlperf time to train", "training throughput"
ORDER = ["measure", "round", "ipu_platform", "model", "ipu_framework", "ipu_result_id"]
# prices drawn: from a fraction of the lowest tie to a multiple of the highest
BELOW, ABOVE, STEPS = 4.0, 1.5, 24
RATIOS = (0.25, 0.5, 1, 2, 4, 8)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def _select(frames: Frames, measure: str) -> list[Record]:
    """Select the pairs of one measure that are usable."""
    return make_records(select_usable(frames["per_dollar"], measure=measure), ORDER)


# Sentences about the pairs of one machine and round, and about one pair, by the columns of the
# view.
PRICES = (
    "In MLPerf v{round}, performance per dollar of the {ipu_platform} at ${ipu_price_usd:,.0f} over"
    " 8 A100-80GB at ${gpu_price_usd:,.0f} is {ratios}."
)
RATIO = "{per_dollar_ratio:.2f} for {model} ({ipu_framework})"
TIMES = (
    "{model} ({ipu_framework}) takes {ipu_figure:.2f} minutes against {gpu_figure:.2f}, which is "
    "{performance_ratio:.2f} times as fast, with a tie at ${break_even_ipu_price_usd:,.0f}."
)
TIE = "${break_even_ipu_price_usd:,.0f} by {model} ({ipu_framework}, v{round})"
FASTER = (
    "{gpu_fastest_figure:.2f} ({gpu_fastest_entry}) instead of {gpu_figure:.2f} minutes for"
    " {model} in v{round}"
)
FASTER_RATE = "{gpu_fastest_figure:,} instead of {gpu_figure:,} {unit} for {model}"


def summarise(frames: Frames) -> str:
    """Describe the priced pairs, the ties, other entries and rows, whose the prices are, and the
    cited entries.
    """
    entries = _select(frames, MLPERF)
    rates = _select(frames, THROUGHPUT)
    return join_paragraphs(
        [_describe_finding(entries)],
        [*_describe_priced(entries), _describe_unpriced(entries)],
        [_describe_faster(entries), _describe_rates(rates)],
        [_describe_prices([*entries, *rates]), describe_left_out(frames["per_dollar"], "pair")],
        [_cite(entries), UNVERIFIED, "Performance per dollar is not an MLPerf metric."],
    )


def _describe_finding(entries: list[Record]) -> str:
    """Describe the range of the priced pairs, or of the prices of a tie where no IPU machine has a
    price.
    """
    priced = [row for row in entries if row["per_dollar_ratio"] is not None]
    if not priced:
        ties = [f"${row['break_even_ipu_price_usd']:,.0f}" for row in entries]
        return f"16 IPUs tie with 8 A100 in MLPerf training per dollar at {join_words(ties)}."
    ratios = [row["per_dollar_ratio"] for row in priced]
    listed = all(row["ipu_price_listed"] and row["gpu_price_listed"] for row in priced)
    slower = sum(row["performance_ratio"] < 1 for row in priced)
    return (
        f"At {'list prices of June 2021' if listed else 'these prices'}, a dollar buys"
        f" {min(ratios):.2f} to {max(ratios):.2f} times the MLPerf training performance on 16 IPUs"
        f" that it buys on 8 A100 ({len(priced)} pairs, {slower} of them slower on the IPUs)."
    )


def _describe_priced(entries: list[Record]) -> list[str]:
    """Describe each round and IPU machine that has a price."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for row in entries:
        if row["per_dollar_ratio"] is not None:
            groups.setdefault((row["round"], row["ipu_platform"]), []).append(row)
    return [
        sentence
        for rows in groups.values()
        for sentence in (
            PRICES.format(**rows[0], ratios=join_words(RATIO.format(**row) for row in rows)),
            *(TIMES.format(**row) for row in rows),
        )
    ]


def _describe_unpriced(entries: list[Record]) -> str:
    """Describe at which price a machine without a list price would tie."""
    unpriced = [row for row in entries if row["ipu_price_usd"] is None]
    ties = join_words(TIE.format(**row) for row in unpriced)
    machines = join_words(sorted({row["ipu_platform"] for row in unpriced}))
    return f"{machines} has no known list price. It would tie at {ties}." if unpriced else ""


def _describe_faster(entries: list[Record]) -> str:
    """Describe the faster entries of other submitters on the same GPUs."""
    faster = [
        FASTER.format(**row) for row in entries if row["gpu_fastest_figure"] < row["gpu_figure"]
    ]
    if not faster:
        return ""
    return (
        "The GPU figures are NVIDIA's own entries on eight A100. Others took less time on one node"
        f" of them: {join_words(faster)}. The prices of those machines are unknown."
    )


def _describe_rates(rates: list[Record]) -> str:
    """Describe the pairs of training throughput, what differs in them, and faster rows that NVIDIA
    prints.
    """
    ratios = sorted(row["per_dollar_ratio"] for row in rates if row["per_dollar_ratio"] is not None)
    if not ratios:
        return ""
    others = [
        FASTER_RATE.format(**row)
        for row in rates
        if (row["gpu_fastest_figure"] or 0) > row["gpu_figure"]
    ]
    differences = dict.fromkeys(
        part.split()[0] for row in rates for part in row["differs"].split("; ")
    )
    text = (
        f"By throughput, the ratio is {ratios[0]:.2f} to {ratios[-1]:.2f} on {len(ratios)} priced"
        " pairs. These train to no target, and they differ in what the column `differs` names"
        f" ({', '.join(differences)})."
    )
    return (
        f"{text} NVIDIA prints more elsewhere on eight A100: {join_words(others)}."
        if others
        else text
    )


def _describe_prices(rows: list[Record]) -> str:
    """Describe whose the list prices are; prices set by the reader are not the vendor's."""
    listed = [name for name in ("ipu", "gpu") if any(row[f"{name}_price_listed"] for row in rows)]
    if not listed:
        return ""
    prices = (
        "Both list prices are"
        if len(listed) == 2
        else f"The list price of the {listed[0].upper()} machine is"
    )
    approximate = ", and the GPU price is approximate" if "gpu" in listed else ""
    return (
        f"{prices} from the IPU vendor's blog of June 2021{approximate}. Power, discounts and"
        " today's market are not included, so set the price of a quote."
    )


def _cite(entries: list[Record]) -> str:
    ids = sorted({row["ipu_mlperf_id"] for row in entries if row["ipu_mlperf_id"]})
    inferred = sorted(
        {row["ipu_mlperf_id"] for row in entries if row["mlperf_id_confidence"] == "inferred"}
    )
    note = f" ({join_words(inferred)} inferred)" if inferred else ""
    rounds = join_words(sorted({f"v{row['round']}" for row in entries}))
    systems = join_words(sorted({row["gpu_platform"] for row in entries}))
    benchmarks = join_words(sorted({row["benchmark"] for row in entries}))
    return (
        f"MLPerf Training {rounds} {entries[0]['division']}, {benchmarks}: Graphcore ids"
        f" {', '.join(ids)}{note}, and NVIDIA's {systems}, whose ids are unknown."
    )


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw performance per dollar over the price of the IPU machine, one panel per measure."""
    entries = _select(frames, MLPERF)
    rates = _select(frames, THROUGHPUT)
    ties = [row["break_even_ipu_price_usd"] for row in [*entries, *rates]]
    low = min(ties) / BELOW
    high = max(ties) * ABOVE
    prices = [float(f"{low * (high / low) ** (step / STEPS):.5g}") for step in range(STEPS + 1)]
    panels = [
        _draw_panel(alt, entries, prices, "MLPerf Training time to train, closed, unverified"),
        _draw_panel(alt, rates, prices, "Training throughput"),
    ]
    gpu = next(row["gpu_price_usd"] for row in [*entries, *rates])
    title = (
        "Performance per dollar of 16 IPUs over 8 A100-80GB, by the price of the IPUs",
        (
            f"8 A100-80GB at ${gpu:,.0f}; marks: the price of a tie; grey: the price of the IPUs in"
            " the table. No MLPerf metric"
        ),
    )
    return join_panels(alt, panels, title, legend_columns=1)


def _draw_panel(alt: Any, rows: list[Record], prices: list[float], title: str) -> Any:
    names = [_format_name(row) for row in rows]
    ties = [
        {
            "name": name,
            "result_id": row["ipu_result_id"],
            "price": row["break_even_ipu_price_usd"],
            "ratio": 1,
            "differs": row["differs"],
        }
        for name, row in zip(names, rows, strict=True)
    ]
    # The ratio at a price is the price of the tie over it.
    line = [
        {"name": tie["name"], "price": price, "ratio": tie["price"] / price}
        for tie in ties
        for price in prices
        if RATIOS[0] <= tie["price"] / price <= RATIOS[-1]
    ]
    channels = make_channels(alt, "name", "Pair", names, PALETTE.series, SHAPES)
    x = "Price of the IPU machine, USD (log scale)"
    y = "Ratio of performance per dollar (log scale)"
    ends = [prices[0], prices[-1]]
    ratio_ends = [RATIOS[0], RATIOS[-1]]
    axes = {
        "x": make_log_axis(
            alt, "X", "price", x, list_log_ticks(ends[0], ends[1]), "$,.0f", domain=ends
        ),
        "y": make_log_axis(alt, "Y", "ratio", y, RATIOS, domain=ratio_ends),
    }
    lines = (
        alt.Chart(make_data(alt, line))
        .mark_line(strokeWidth=1.6)
        .encode(**axes, color=channels["color"])
    )
    marks = alt.Chart(make_data(alt, ties)).mark_point(size=90, filled=True, opacity=1)
    marks = marks.encode(**axes, **channels, tooltip=make_tooltips(alt, "name", "price", "differs"))
    layers = alt.layer(*_draw_rules(alt, rows, axes), lines, marks)
    return layers.properties(**PANEL, title=title)


def _draw_rules(alt: Any, rows: list[Record], axes: dict[str, Any]) -> list[Any]:
    """Draw the ratio of a tie, and the price of the IPU machine where there is one."""
    tie = alt.Chart(make_data(alt, [{"ratio": 1}])).mark_rule(
        color=PALETTE.ink["rule"], strokeDash=[4, 3]
    )
    prices = sorted({row["ipu_price_usd"] for row in rows if row["ipu_price_usd"] is not None})
    priced = alt.Chart(make_data(alt, [{"price": price} for price in prices]))
    priced = priced.mark_rule(
        color=PALETTE.ink["muted"], strokeWidth=3, opacity=0.5, clip=True
    ).encode(x=axes["x"])
    return [tie.encode(y=axes["y"]), *([priced] if prices else [])]


def _format_name(row: Record) -> str:
    mlperf_round = f"MLPerf v{row['round']}" if row["round"] else None
    return ", ".join(
        filter(None, [row["model"], mlperf_round, row["ipu_platform"], row["ipu_framework"]])
    )


ANALYSIS = Analysis(
    "per_dollar",
    "What does a dollar buy, and at which price is it a tie?",
    ("per_dollar",),
    summarise,
    build_chart,
    caveats=2,
)
