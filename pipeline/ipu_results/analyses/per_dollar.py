"""Performance per dollar against one node of 8 A100, with the prices as parameters, and the price of a tie."""

from __future__ import annotations

from typing import Any

from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.analyses.look import COLORS, Record, data, finished, records, titled
from ipu_results.analyses.words import listed

MLPERF, THROUGHPUT = "mlperf time to train", "training throughput"
ORDER = ["measure", "round", "ipu_platform", "network", "ipu_framework", "ipu_result_id"]
BELOW, ABOVE, STEPS = 4.0, 1.5, 24  # the prices drawn: from a part of the least tie to a multiple of the highest
RATIOS = (0.25, 0.5, 1, 2, 4, 8)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def _rows(frames: Frames, measure: str) -> list[Record]:
    frame = frames["per_dollar"]
    return records(frame[(frame["measure"] == measure) & (frame["errors"] == 0)], ORDER)


def told(frames: Frames) -> str:
    entries, rates = _rows(frames, MLPERF), _rows(frames, THROUGHPUT)
    priced = [*_told_priced(entries), *_told_unpriced(entries), *_told_faster(entries)]
    return " ".join([*priced, *_told_rates(rates), *_told_prices([*entries, *rates]), _cited(entries)])


def _told_priced(entries: list[Record]) -> list[str]:
    """A sentence for each round and IPU machine with a price."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for row in entries:
        if row["per_dollar_ratio"] is not None:
            groups.setdefault((row["round"], row["ipu_platform"]), []).append(row)
    return [
        f"MLPerf v{round_of}, {platform} at {_usd(rows[0]['ipu_price_usd'])} and 8 A100-80GB at "
        f"{_usd(rows[0]['gpu_price_usd'])}: {'; '.join(map(_told_pair, rows))}."
        for (round_of, platform), rows in groups.items()
    ]


def _told_pair(row: Record) -> str:
    return (
        f"{row['network']} ({row['ipu_framework']}) in {row['ipu_figure']:.2f} against {row['gpu_figure']:.2f} "
        f"minutes, {row['performance_ratio']:.2f} times as fast and {row['per_dollar_ratio']:.2f} times as much per "
        f"dollar, with a tie at {_usd(row['break_even_ipu_price_usd'])}"
    )


def _told_unpriced(entries: list[Record]) -> list[str]:
    """Machines without a list price: what they may cost."""
    told = [
        f"{_usd(row['break_even_ipu_price_usd'])} by {row['network']} ({row['ipu_framework']}, v{row['round']})"
        for row in entries
        if row["ipu_price_usd"] is None
    ]
    machines = {row["ipu_platform"] for row in entries if row["ipu_price_usd"] is None}
    return [f"{listed(sorted(machines))} has no known list price; it ties at {listed(told)}."] if told else []


def _told_faster(entries: list[Record]) -> list[str]:
    """What other submitters' entries on the same GPUs would change."""
    faster = dict.fromkeys(
        f"{row['gpu_fastest_figure']:.2f} ({row['gpu_fastest_entry']}) instead of {row['gpu_figure']:.2f} minutes in "
        f"v{row['round']}'s {row['network']}"
        for row in entries
        if row["gpu_fastest_figure"] < row["gpu_figure"]
    )
    if not faster:
        return []
    return [
        f"That is NVIDIA's own entry on eight A100; others' entries on one node of them took less, {listed(faster)}, "
        "on machines without a known price."
    ]


def _told_rates(rates: list[Record]) -> list[str]:
    ratios = sorted(row["per_dollar_ratio"] for row in rates if row["per_dollar_ratio"] is not None)
    if not ratios:
        return []
    faster = [row for row in rates if (row["gpu_fastest_figure"] or 0) > row["gpu_figure"]]
    others = dict.fromkeys(
        f"{row['gpu_fastest_figure']:,} instead of {row['gpu_figure']:,} {row['unit']} for {row['network']}"
        for row in faster
    )
    caution = f"; NVIDIA prints more elsewhere on eight A100: {listed(others)}" if others else ""
    conditions = dict.fromkeys(said.split()[0] for row in rates for said in row["differs"].split("; "))
    return [
        f"Throughput rows give {ratios[0]:.2f} to {ratios[-1]:.2f} times per dollar on {len(ratios)} priced pairs, "
        f"but they differ in what `differs` names ({', '.join(conditions)}) and train to no target{caution}."
    ]


def _told_prices(rows: list[Record]) -> list[str]:
    """Whose the prices are: the reader's own are not the vendor's."""
    sides = {"IPU": "ipu_price_listed", "GPU": "gpu_price_listed"}
    kept = [side for side, name in sides.items() if any(row[name] for row in rows)]
    if not kept:
        return []
    both = len(kept) == len(sides)
    what = "The list prices of both machines are" if both else f"The {kept[0]} machine's list price is"
    about = ", the GPU one only about" if "GPU" in kept else ""
    return [
        f"{what} what the IPU vendor's blog of June 2021 says{about}; without power, discounts or today's market, so "
        "put in a quote."
    ]


def _cited(entries: list[Record]) -> str:
    ids = sorted({row["ipu_mlperf_id"] for row in entries if row["ipu_mlperf_id"]})
    inferred = [row["ipu_mlperf_id"] for row in entries if row["mlperf_id_confidence"] == "inferred"]
    sure = f" ({listed(sorted(inferred))} inferred)" if inferred else ""
    rounds = listed(sorted({f"v{row['round']}" for row in entries}))
    systems = listed(sorted({row["gpu_platform"] for row in entries}))
    benchmarks = listed(sorted({row["benchmark"] for row in entries}))
    return (
        f"MLPerf Training {rounds} {entries[0]['division']}, {benchmarks}: Graphcore ids {', '.join(ids)}{sure}, "
        f"and NVIDIA's {systems}, whose ids are not known; computed from the logs by ipu-results, not verified by "
        "MLCommons Association; performance per dollar is no MLPerf metric."
    )


def _usd(amount: float) -> str:
    return f"${amount:,.0f}"


def chart(altair: Any, frames: Frames) -> Any:
    entries, rates = _rows(frames, MLPERF), _rows(frames, THROUGHPUT)
    prices = _prices([*entries, *rates])
    panels = [
        _panel(altair, entries, prices, "MLPerf Training time to train, closed, unverified"),
        _panel(altair, rates, prices, "Training throughput"),
    ]
    gpu = next(row["gpu_price_usd"] for row in [*entries, *rates])
    under = f"8 A100-80GB at {_usd(gpu)}; marks: the price of a tie; grey: the price reckoned with. No MLPerf metric"
    text = titled(altair, "Performance per dollar of 16 IPUs over 8 A100-80GB, by the price of the IPUs", under)
    joined = altair.hconcat(*panels, spacing=30).resolve_scale(color="independent", shape="independent")
    return finished(joined.properties(title=text), columns=1)


def _prices(rows: list[Record]) -> list[float]:
    """Prices to draw, USD, evenly apart on a logarithmic axis."""
    ties = [row["break_even_ipu_price_usd"] for row in rows]
    low, high = min(ties) / BELOW, max(ties) * ABOVE
    return [float(f"{low * (high / low) ** (step / STEPS):.5g}") for step in range(STEPS + 1)]


def _panel(altair: Any, rows: list[Record], prices: list[float], text: str) -> Any:
    names = [_name(row) for row in rows]
    ties = [
        {"name": _name(row), "price": row["break_even_ipu_price_usd"], "ratio": 1, "differs": row["differs"]}
        for row in rows
    ]
    color = altair.Color("name:N", title="Pair", scale=altair.Scale(domain=names, range=list(COLORS[: len(names)])))
    shape = altair.Shape("name:N", title="Pair", scale=altair.Scale(domain=names, range=list(SHAPES[: len(names)])))
    tooltip = ["name:N", altair.Tooltip("price:Q", title="Tie at USD", format=",.0f"), "differs:N"]
    axes = _axes(altair, prices)
    lines = altair.Chart(data(altair, _line(ties, prices))).mark_line(strokeWidth=1.6).encode(**axes, color=color)
    marks = altair.Chart(data(altair, ties)).mark_point(size=90, filled=True, opacity=1)
    marks = marks.encode(**axes, color=color, shape=shape, tooltip=tooltip)
    layers = altair.layer(*_rules(altair, rows, axes), lines, marks)
    return layers.properties(width=400, height=330, title=text)


def _line(ties: list[Record], prices: list[float]) -> list[Record]:
    """The ratio at each price: the tie's price over it."""
    return [
        {"name": tie["name"], "price": price, "ratio": tie["price"] / price}
        for tie in ties
        for price in prices
        if RATIOS[0] <= tie["price"] / price <= RATIOS[-1]
    ]


def _axes(altair: Any, prices: list[float]) -> dict[str, Any]:
    x_scale = altair.Scale(type="log", domain=[prices[0], prices[-1]], nice=False)
    y_scale = altair.Scale(type="log", domain=[RATIOS[0], RATIOS[-1]], nice=False)
    ticks = [float(f"{step}e{power}") for power in range(-2, 12) for step in (1, 2, 5)]
    x_axis = altair.Axis(values=[tick for tick in ticks if prices[0] <= tick <= prices[-1]], format="$,.0f", grid=False)
    y_axis = altair.Axis(values=list(RATIOS), format="~g")
    return {
        "x": altair.X("price:Q", title="Price of the IPU machine, USD (log scale)", scale=x_scale, axis=x_axis),
        "y": altair.Y("ratio:Q", title="Ratio of performance per dollar (log scale)", scale=y_scale, axis=y_axis),
    }


def _rules(altair: Any, rows: list[Record], axes: dict[str, Any]) -> list[Any]:
    tie = altair.Chart(data(altair, [{"ratio": 1}])).mark_rule(color="#555555", strokeDash=[4, 3]).encode(y=axes["y"])
    prices = sorted({row["ipu_price_usd"] for row in rows if row["ipu_price_usd"] is not None})
    at = altair.Chart(data(altair, [{"price": price} for price in prices]))
    priced = at.mark_rule(color="#999999", strokeWidth=3, opacity=0.5, clip=True).encode(x=axes["x"])
    return [tie, priced] if prices else [tie]


def _name(row: Record) -> str:
    round_of = [f"MLPerf v{row['round']}"] if row["round"] else []
    return ", ".join([row["network"], *round_of, row["ipu_platform"], row["ipu_framework"]])


ANALYSIS = Analysis(
    "per_dollar",
    "What does a dollar buy, and at which price is it a tie?",
    ("per_dollar",),
    told,
    chart,
)
