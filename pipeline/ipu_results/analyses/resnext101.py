"""ResNeXt101 inference as published, as measured here and as emulated, on one chart and clearly apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from ipu_results.analyses.analysis import (
    Analysis,
    Frames,
    Record,
    format_chips,
    format_percent,
    join_paragraphs,
    join_words,
    make_records,
    select_clean,
)
from ipu_results.analyses.drawing import join_panels, make_log_axis, make_scale, make_size_axis, make_tooltips
from ipu_results.ground.charts import CROSS, ORIGIN_DASHES, ORIGIN_SHAPES, PALETTE, list_log_ticks, make_data

ORDER = ["origin", "publisher", "platform", "network", "framework", "compiler", "compute_precision", "run_id"]
ORDER += ["batch_size", "result_id"]
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PANELS = {
    "throughput": "Throughput of the machine (images/s, log scale)",
    "latency": "Latency (ms per batch, log scale)",
}
MARGIN = 1.6  # factor between the outermost points and the ends of a logarithmic axis


def _select(frames: Frames, origin: str) -> list[Record]:
    return make_records(select_clean(frames["resnext101"], origin=origin), ORDER)


def summarise(frames: Frames) -> str:
    """Describe the fastest published rows, the measured and the emulated points, and what differs between rows."""
    published, measured, emulated = (_select(frames, origin) for origin in ORIGIN_SHAPES)
    return join_paragraphs(
        [_describe_finding(published)],
        [_describe_published(published)],
        [_describe_measured(measured)],
        [_describe_emulated(emulated, published)],
        [
            "Rows of equal batch size are not comparable for that reason alone.",
            "Chips in a machine, precision, batches in flight and the meaning of the latency differ from row to row.",
            "The view lists them.",
        ],
    )


def _describe_finding(rows: list[Record]) -> str:
    """Describe the highest throughput per chip of each machine, of the network that the most machines ran."""
    machines: dict[str, dict[str, Record]] = {}
    for row in rows:
        best = machines.setdefault(row["network"] or "a network that no source states", {})
        if row["throughput_per_chip"] and (
            row["platform"] not in best or row["throughput_per_chip"] > best[row["platform"]]["throughput_per_chip"]
        ):
            best[row["platform"]] = row
    if not machines:
        return ""
    network, best = max(machines.items(), key=lambda item: len(item[1]))
    ordered = sorted(best.values(), key=lambda row: -row["throughput_per_chip"])
    figures = [f"{row['throughput_per_chip']:,.0f} on {row['platform']} (batch {row['batch_size']})" for row in ordered]
    return f"The highest published images/s per chip of {network} are {join_words(figures)}."


def _describe_published(rows: list[Record]) -> str:
    """Describe the fastest row of each machine and network."""
    if not rows:
        return ""
    fastest: dict[tuple[Any, ...], Record] = {}
    for row in rows:
        key = (row["platform"], row["network"])
        if key not in fastest or row["throughput"] > fastest[key]["throughput"]:
            fastest[key] = row
    figures = [
        f"{row['throughput']:,.0f} images/s on {row['platform']} ({row['publisher']}, {_shorten_network(row)}, "
        f"{_describe_chips(row)}, batch {row['batch_size']}, {row['latency_ms']:.2f} ms)"
        for row in fastest.values()
    ]
    networks = Counter(row["network"] or "a network that no source states" for row in rows)
    counts = join_words([f"{count} rows of {name}" for name, count in networks.items()])
    text = f"By machine and network, the fastest published rows are {join_words(figures)}. Published are {counts}."
    return text + _describe_remarks(rows)


def _describe_remarks(rows: list[Record]) -> str:
    """Describe the remarks that every row of a machine carries."""
    machines: dict[str, set[str | None]] = {}
    for row in rows:
        machines.setdefault(row["platform"], set()).add(row["remark"])
    return "".join(f" {name}: {remarks.pop()}." for name, remarks in machines.items() if len(remarks - {None}) == 1)


def _describe_chips(row: Record) -> str:
    return format_chips(row["chip_count"]) if row["chip_count"] else "unknown number of chips"


def _shorten_network(row: Record) -> str:
    return (row["network"] or "network unknown").removeprefix("ResNeXt101-")


def _describe_measured(rows: list[Record]) -> str:
    if not rows:
        return "This warehouse has no run of this project's own."
    rates = [row["throughput"] for row in rows]
    suspect = sum(row["suspect"] is not None for row in rows)
    doubt = f"Of these, {suspect} are suspect and crossed out. " if suspect else ""
    return (
        f"Measured here are {len(rows)} points on {join_words(row['platform'] for row in rows)}, {min(rates):.1f} to "
        f"{max(rates):.1f} images/s. {doubt}They show that the runner measures, and nothing about an IPU."
    )


def _describe_emulated(rows: list[Record], published: list[Record]) -> str:
    if not rows:
        return "This warehouse has no emulated points."
    text = f"Emulated, not measured, are {len(rows)} points for {join_words(row['platform'] for row in rows)}."
    if doubtful := sum(row["suspect"] is not None for row in rows):
        text += f" Of these, {doubtful} are doubtful (memory) and crossed out."
    references = {
        (row["platform"], row["batch_size"]): row for row in published if row["network"] == "ResNeXt101-32x4d"
    }
    pairs = [(row, references[key]) for row in rows if (key := (row["platform"], row["batch_size"])) in references]
    if not pairs:
        return f"{text} There is no published row of the same machine and batch size."
    errors = [abs(row["latency_ms"] / reference["latency_ms"] - 1) for row, reference in pairs]
    text += (
        f" Their latency differs from the published one by {format_percent(median(errors))} in the median and "
        f"{format_percent(max(errors))} at most."
    )
    if any(row["platform"] != "C2" for row, _ in pairs):
        return text
    return f"{text} This is not evidence, since two numbers of the emulator were fitted on the paper's C2 rows."


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw throughput and latency over the batch size, one panel each."""
    points = [_make_point(row) for origin in ORIGIN_SHAPES for row in _select(frames, origin)]
    _label_emulated(points)
    _name_curves(points)
    panels = [_draw_panel(alt, points, name, title) for name, title in PANELS.items()]
    title = ("ResNeXt101 inference: published, measured here, and emulated", *_make_key(points))
    return join_panels(alt, panels, title, 2, legends="shared").properties(data=make_data(alt, points))


def _name_curves(points: Sequence[Record]) -> None:
    """Name what has one colour: a machine and network, and its set-up where a publisher prints several."""
    published = {(point["machine"], point["series"]) for point in points if point["origin"] == "published"}
    counts = Counter(machine for machine, _ in published)
    for point in points:
        several = counts[point["machine"]] > 1
        point["curve"] = f"{point['machine']}: {point['series']}" if several else point["machine"]


def _label_emulated(points: Sequence[Record]) -> None:
    """Write the word EMULATED next to the first emulated point."""
    emulated = [point for point in points if point["origin"] == "emulated"]
    if emulated:
        min(emulated, key=lambda point: point["batch"])["word"] = "EMULATED"


def _make_key(points: Sequence[Record]) -> list[str]:
    origins = {point["origin"] for point in points}
    signs = ["Filled circles: published"]
    signs += ["filled triangles: measured here"] if "measured" in origins else []
    signs += ["HOLLOW SQUARES, DASHED: EMULATED, not measured"] if "emulated" in origins else []
    signs += ["crossed out: suspect"] if any(point["suspect"] for point in points) else []
    return [
        "; ".join(signs),
        "32x8d is a larger network than 32x4d; chips in a machine: 1 (A100), 2 (C2), 4 (IPU-M2000)",
    ]


def _make_point(row: Record) -> Record:
    series = [row["framework"], row["compiler"], row["compute_precision"] or row["precision"]]
    return {
        "origin": row["origin"],
        "result_id": row["result_id"],
        "machine": f"{row['platform']}, {_shorten_network(row)}, {row['origin']}",
        "series": ", ".join(filter(None, [*series, row["run_id"] or row["publisher"]])),
        "batch": row["batch_size"],
        "throughput": row["throughput"],
        "latency": row["latency_ms"],
        "suspect": row["suspect"] or "",
        "word": "",
    }


def _draw_panel(alt: Any, points: Sequence[Record], name: str, title: str) -> Any:
    names = list(dict.fromkeys(point["curve"] for point in points))
    color = alt.Color("curve:N", title="Machine", scale=make_scale(alt, names, PALETTE.assign(names)))
    x = make_size_axis(alt, "batch", "Batch size of the machine", SIZES)
    figures = [point[name] for point in points if point[name] is not None]
    ends = [min(figures) / MARGIN, max(figures) * MARGIN]
    y = make_log_axis(alt, "Y", name, title, list_log_ticks(ends[0], ends[1], (1, 3)), ",~g", domain=ends)
    base = alt.Chart().encode(x=x, y=y, color=color)
    dashes = make_scale(alt, ORIGIN_DASHES, ORIGIN_DASHES.values())
    dash = alt.StrokeDash("origin:N", title="Origin", scale=dashes)
    lines = base.mark_line(strokeWidth=1.4, opacity=0.8).encode(detail=["series:N", "machine:N"], strokeDash=dash)
    word = base.transform_filter("datum.word != ''").mark_text(align="left", dx=-30, dy=22, fontWeight="bold")
    layers = alt.layer(lines, *_draw_marks(alt, base, name), word.encode(text="word:N"))
    return layers.properties(width=420, height=360)


def _draw_marks(alt: Any, base: Any, name: str) -> list[Any]:
    shape = alt.Shape("origin:N", title="Origin", scale=make_scale(alt, ORIGIN_SHAPES, ORIGIN_SHAPES.values()))
    tooltip = make_tooltips(alt, "machine", "series", "batch", name, "suspect")
    solid = base.transform_filter("datum.origin != 'emulated'").mark_point(size=50, filled=True, opacity=1)
    hollow = base.transform_filter("datum.origin == 'emulated'").mark_point(size=200, strokeWidth=1.8, opacity=1)
    crossed = base.transform_filter("datum.suspect != '' && datum.origin != 'emulated'")
    crossed_hollow = base.transform_filter("datum.suspect != '' && datum.origin == 'emulated'")
    black = alt.value(PALETTE.ink["mark"])
    return [
        solid.encode(shape=shape, tooltip=tooltip),
        hollow.encode(shape=shape, tooltip=tooltip),
        crossed.encode(color=black).mark_point(shape=CROSS, size=60, strokeWidth=1.2, opacity=1),
        crossed_hollow.mark_point(shape=CROSS, size=200, strokeWidth=1.2, opacity=1),
    ]


ANALYSIS = Analysis(
    "resnext101",
    "How do published, measured and emulated ResNeXt101 figures compare?",
    ("resnext101",),
    summarise,
    build_chart,
)
