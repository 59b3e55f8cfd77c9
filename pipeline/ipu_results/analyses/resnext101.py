"""ResNeXt101 inference: all its figures on one chart, apart by origin, and from the C2 card to the
IPU-M2000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from ipu_results.analyses.analysis import (
    Analysis,
    Frames,
    Record,
    describe_left_out,
    format_chips,
    format_percent,
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
    make_scale,
    make_size_axis,
    make_tooltips,
)
from ipu_results.ground.charts import (
    CROSS,
    ORIGIN_DASHES,
    ORIGIN_SHAPES,
    PALETTE,
    list_log_ticks,
    make_data,
)

ORDER = [
    "origin",
    "publisher",
    "platform",
    "model",
    "framework",
    "conditions",
    "precision",
    "run_id",
]
ORDER += ["batch_size", "result_id"]
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PANELS = {
    "throughput": "Throughput of the machine (images/s, log scale)",
    "latency": "Latency (ms per batch, log scale)",
}
MARGIN = 1.6  # factor between the outermost points and the ends of a logarithmic axis
UNSTATED = "a model that no source states"
FASTEST = (
    "{throughput:,.0f} images/s on {platform} ({publisher}, {shown_model}, {shown_chips}, batch"
    " {batch_size}, {latency_ms:.2f} ms)"
)


def _select(frames: Frames, origin: str) -> list[Record]:
    """Select the rows of one origin, with words for a model and a number of chips that may be
    unknown; emulated ones are never usable, and are marked instead.
    """
    shown = frames["resnext101"]
    if origin == "emulated":
        shown = shown.assign(usable=shown["errors"] == 0)
    rows = make_records(select_usable(shown, origin=origin), ORDER)
    for row in rows:
        row["shown_model"] = (row["model"] or "model unknown").removeprefix("ResNeXt101-")
        row["shown_chips"] = (
            format_chips(row["chip_count"]) if row["chip_count"] else "unknown number of chips"
        )
    return rows


def summarise(frames: Frames) -> str:
    """Describe the fastest published rows, the measured and the emulated points, and what differs
    between rows.
    """
    rows = frames["resnext101"]
    published, measured, emulated = (_select(frames, origin) for origin in ORIGIN_SHAPES)
    return join_paragraphs(
        [_describe_finding(published)],
        [_describe_published(published), *_describe_remarks(published)],
        [
            _describe_measured(measured),
            describe_left_out(rows[rows["origin"] != "emulated"]),
        ],
        [_describe_emulated(emulated, published)],
        [
            "Rows of equal batch size are not comparable for that reason alone.",
            (
                "Chips in a machine, precision, batches in flight and the meaning of the latency"
                " differ from row to row."
            ),
            "The view lists them.",
        ],
    )


def _pick_fastest(rows: list[Record], figure: str, *names: str) -> list[Record]:
    """Pick the first row with the highest figure of each group, in the order of the groups."""
    fastest: dict[tuple[Any, ...], Record] = {}
    for row in rows:
        if row[figure] > fastest.setdefault(tuple(row[name] for name in names), row)[figure]:
            fastest[tuple(row[name] for name in names)] = row
    return list(fastest.values())


def _describe_finding(rows: list[Record]) -> str:
    """Describe the highest throughput per chip of each machine, of the model that the most
    machines ran.
    """
    best = _pick_fastest(
        [row for row in rows if row["throughput_per_chip"]],
        "throughput_per_chip",
        "model",
        "platform",
    )
    if not best:
        return ""
    [(model, _)] = Counter(row["model"] for row in best).most_common(1)
    chosen = [row for row in best if row["model"] == model]
    figures = [
        f"{row['throughput_per_chip']:,.0f} on {row['platform']} (batch {row['batch_size']})"
        for row in sorted(chosen, key=lambda row: -float(row["throughput_per_chip"]))
    ]
    return (
        f"The highest published images/s per chip of {model or UNSTATED} are {join_words(figures)}."
    )


def _describe_published(rows: list[Record]) -> str:
    """Describe the fastest row of each machine and model."""
    if not rows:
        return ""
    fastest = [
        FASTEST.format(**row) for row in _pick_fastest(rows, "throughput", "platform", "model")
    ]
    models = Counter(row["model"] or UNSTATED for row in rows)
    counts = join_words(f"{count} rows of {name}" for name, count in models.items())
    return (
        f"By machine and model, the fastest published rows are {join_words(fastest)}. Published"
        f" are {counts}."
    )


def _describe_remarks(rows: list[Record]) -> list[str]:
    """Describe the remarks that every row of a machine carries."""
    machines: dict[str, set[str | None]] = {}
    for row in rows:
        machines.setdefault(row["platform"], set()).add(row["remark"])
    return [
        f"{name}: {remarks.pop()}."
        for name, remarks in machines.items()
        if len(remarks) == 1 and remarks != {None}
    ]


def _describe_measured(rows: list[Record]) -> str:
    if not rows:
        return "This warehouse has no run of this project's own."
    rates = [row["throughput"] for row in rows]
    return (
        f"Measured here are {len(rows)} points on {join_words(row['platform'] for row in rows)},"
        f" {min(rates):.1f} to {max(rates):.1f} images/s. They show that the runner"
        " measures, and nothing about an IPU."
    )


def _describe_emulated(rows: list[Record], published: list[Record]) -> str:
    if not rows:
        return "This warehouse has no emulated points."
    text = (
        f"Emulated, not measured, are {len(rows)} points for"
        f" {join_words(row['platform'] for row in rows)}."
    )
    if doubtful := sum(row["suspect"] is not None for row in rows):
        text += f" Of these, {doubtful} are doubtful (memory) and crossed out."
    references = {
        (row["platform"], row["batch_size"]): row
        for row in published
        if row["model"] == "ResNeXt101-32x4d"
    }
    pairs = [
        (row, references[key])
        for row in rows
        if (key := (row["platform"], row["batch_size"])) in references
    ]
    if not pairs:
        return f"{text} There is no published row of the same machine and batch size."
    errors = [abs(row["latency_ms"] / reference["latency_ms"] - 1) for row, reference in pairs]
    text += (
        f" Their latency differs from the published one by {format_percent(median(errors))} in the"
        f" median and {format_percent(max(errors))} at most."
    )
    if any(row["platform"] != "C2" for row, _ in pairs):
        return text
    return (
        f"{text} This is not evidence, since two numbers of the emulator were fitted on the paper's"
        " C2 rows."
    )


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw throughput and latency over the batch size, one panel each."""
    points = [_make_point(row) for origin in ORIGIN_SHAPES for row in _select(frames, origin)]
    emulated = [point for point in points if point["origin"] == "emulated"]
    if emulated:
        min(emulated, key=lambda point: point["batch"])["word"] = "EMULATED"
    # One colour is of a machine and model, and of its set-up where a publisher prints several.
    published = {
        (point["machine"], point["series"]) for point in points if point["origin"] == "published"
    }
    counts = Counter(machine for machine, _ in published)
    for point in points:
        several = counts[point["machine"]] > 1
        point["curve"] = f"{point['machine']}: {point['series']}" if several else point["machine"]
    panels = [_draw_panel(alt, points, name, title) for name, title in PANELS.items()]
    title = ("ResNeXt101 inference: published, measured here, and emulated", *_make_key(points))
    return join_panels(alt, panels, title, 2, legends="shared").properties(
        data=make_data(alt, points)
    )


def _make_key(points: Sequence[Record]) -> list[str]:
    origins = {point["origin"] for point in points}
    signs = ["Filled circles: published"]
    signs += ["filled triangles: measured here"] if "measured" in origins else []
    signs += ["HOLLOW SQUARES, DASHED: EMULATED, not measured"] if "emulated" in origins else []
    signs += ["crossed out: doubtful"] if any(point["suspect"] for point in points) else []
    return [
        "; ".join(signs),
        "32x8d is a larger model than 32x4d; chips in a machine: 1 (A100), 2 (C2), 4 (IPU-M2000)",
    ]


def _make_point(row: Record) -> Record:
    series = [row["framework"], row["conditions"], row["precision"]]
    return {
        "origin": row["origin"],
        "result_id": row["result_id"],
        "machine": f"{row['platform']}, {row['shown_model']}, {row['origin']}",
        "series": ", ".join(filter(None, [*series, row["run_id"] or row["publisher"]])),
        "batch": row["batch_size"],
        "throughput": row["throughput"],
        "latency": row["latency_ms"],
        "suspect": row["suspect"] or "",
        "word": "",
    }


def _draw_panel(alt: Any, points: Sequence[Record], name: str, title: str) -> Any:
    names = list(dict.fromkeys(point["curve"] for point in points))
    color = alt.Color(
        "curve:N", title="Machine", scale=make_scale(alt, names, PALETTE.assign(names))
    )
    x = make_size_axis(alt, "batch", "Batch size of the machine", SIZES)
    figures = [point[name] for point in points if point[name] is not None]
    ends = [min(figures) / MARGIN, max(figures) * MARGIN]
    y = make_log_axis(
        alt, "Y", name, title, list_log_ticks(ends[0], ends[1], (1, 3)), ",~g", domain=ends
    )
    base = alt.Chart().encode(x=x, y=y, color=color)
    dashes = make_scale(alt, ORIGIN_DASHES, ORIGIN_DASHES.values())
    dash = alt.StrokeDash("origin:N", title="Origin", scale=dashes)
    lines = base.mark_line(strokeWidth=1.4, opacity=0.8).encode(
        detail=["series:N", "machine:N"], strokeDash=dash
    )
    word = base.transform_filter("datum.word != ''").mark_text(
        align="left", dx=-30, dy=22, fontWeight="bold"
    )
    layers = alt.layer(lines, *_draw_marks(alt, base, name), word.encode(text="word:N"))
    return layers.properties(width=420, height=360)


def _draw_marks(alt: Any, base: Any, name: str) -> list[Any]:
    shape = alt.Shape(
        "origin:N", title="Origin", scale=make_scale(alt, ORIGIN_SHAPES, ORIGIN_SHAPES.values())
    )
    tooltip = make_tooltips(alt, "machine", "series", "batch", name, "suspect")
    solid = base.transform_filter("datum.origin != 'emulated'").mark_point(
        size=50, filled=True, opacity=1
    )
    hollow = base.transform_filter("datum.origin == 'emulated'").mark_point(
        size=200, strokeWidth=1.8, opacity=1
    )
    crossed = base.transform_filter("datum.suspect != ''")
    return [
        solid.encode(shape=shape, tooltip=tooltip),
        hollow.encode(shape=shape, tooltip=tooltip),
        crossed.mark_point(shape=CROSS, size=200, strokeWidth=1.2, opacity=1),
    ]


RESNEXT101 = Analysis(
    "resnext101",
    "How do published, measured and emulated ResNeXt101 figures compare?",
    ("resnext101",),
    summarise,
    build_chart,
)

MACHINES = {"c2": "C2", "m2000": "IPU-M2000"}
STEP_ORDER = ["pairing", "c2_micro_batch_size", "m2000_micro_batch_size"]
EQUAL, BEST = "equal micro-batch", "best of each"
PRINTED = "latency as printed"
PER_CHIP = "Throughput per chip (images/s)"
MICRO_BATCHES = (1, 2, 3, 4, 5, 6, 8, 16)
# Sentences about one row of the view, by its columns.
STEP_RATIO = (
    "{ratio:.2f} at {c2_micro_batch_size} ({m2000_throughput_per_chip:,.0f} against"
    " {c2_throughput_per_chip:,.0f} images/s)"
)
STEP_PEAKS = (
    "The chips' 16-bit peaks differ {peak_ratio:.2f} times, and tiles times clock"
    " {tile_cycles_ratio:.2f} times."
)
STEP_BEST = (
    "Best against best, the ratio is {ratio:.2f}: {m2000_throughput_per_chip:,.0f} images/s at"
    " {m2000_micro_batch_size} against {c2_throughput_per_chip:,.0f} at {c2_micro_batch_size}. The"
    " paper prints no more than {largest} per chip, so this ratio is due to the larger batch as"
    " well as to the chip."
)
STEP_LATENCY = (
    "The printed latencies are not comparable. At {c2_micro_batch_size} per chip, the C2's"
    " {c2_latency_ms:.2f} ms stand for {c2_batches_in_flight:.1f} batches in flight, and the"
    " IPU-M2000's {m2000_latency_ms:.2f} ms for {m2000_batches_in_flight:.1f}. The C2 completes a"
    " batch every {c2_batch_period_ms:.2f} ms and the IPU-M2000 every {m2000_batch_period_ms:.2f}"
    " ms. No row shows how long the IPU-M2000 takes for one batch alone."
)
STEP_DIFFERENCES = (
    "The software differs too: {c2_framework} {c2_sdk_version} with {c2_precision} precision"
    " against {m2000_framework}, SDK {m2000_sdk_version}, with {m2000_precision}. So does the data"
    " (C2: {c2_dataset}; IPU-M2000: {m2000_dataset}). With several batches in flight, transfers can"
    " overlap. The step is therefore one between two published set-ups, not between two chips. The"
    " page's PyTorch rows ran the larger 32x8d and are excluded."
)


def _select_step(frames: Frames, **values: str) -> list[Record]:
    return make_records(select_usable(frames["c2_to_m2000"], **values), STEP_ORDER)


def summarise_step(frames: Frames) -> str:
    """Describe the ratios at equal micro-batch and of the best rows, and what the rows cannot show."""
    equal = _select_step(frames, pairing=EQUAL)
    best = _select_step(frames, pairing=BEST)
    rows = _select_step(frames)
    largest = max(
        row["c2_micro_batch_size"] for row in rows if row["c2_micro_batch_size"] is not None
    )
    ratios = [row["ratio"] for row in equal]
    first = equal[0]
    return join_paragraphs(
        [
            f"At equal micro-batch, a chip of the IPU-M2000 has {min(ratios):.2f} to"
            f" {max(ratios):.2f} times the throughput of one of the C2 card on {first['model']}."
        ],
        [
            (
                "By images per batch and chip, the ratio is"
                f" {join_words(STEP_RATIO.format(**row) for row in equal)}."
            ),
            STEP_PEAKS.format(**first),
            *(STEP_BEST.format(**row, largest=largest) for row in best),
        ],
        [
            STEP_LATENCY.format(**first),
            STEP_DIFFERENCES.format(**first),
            describe_left_out(frames["c2_to_m2000"]),
        ],
    )


def draw_step(alt: Any, frames: Frames) -> Any:
    """Draw throughput and times over the micro-batch size, one panel each."""
    points = _make_step_points(_select_step(frames))
    title = (
        "From the C2 card to the IPU-M2000, per chip",
        (
            "ResNeXt101-32x4d inference, published rows; both times agree where one batch is in"
            " flight, as on the C2"
        ),
    )
    panels = [_draw_step_throughput(alt, points), _draw_step_times(alt, points)]
    return join_panels(alt, panels, title, legend_columns=2)


def _make_step_points(rows: list[Record]) -> list[Record]:
    """Make one point per result; a result is in several rows."""
    columns = {
        "result_id": "result_id",
        "micro_batch": "micro_batch_size",
        "throughput": "throughput_per_chip",
        "latency": "latency_ms",
        "period": "batch_period_ms",
        "in_flight": "batches_in_flight",
    }
    points = {
        row[f"{prefix}_result_id"]: {
            "machine": machine,
            **{name: row[f"{prefix}_{column}"] for name, column in columns.items()},
        }
        for row in rows
        for prefix, machine in MACHINES.items()
    }
    points.pop(None, None)  # the row of the best on one machine alone
    return sorted(points.values(), key=lambda point: (point["machine"], point["micro_batch"]))


def _make_step_base(alt: Any, points: list[Record], y: Any) -> tuple[Any, Any]:
    """Set the axes and the colour of the machine, and return its shape."""
    x = make_size_axis(alt, "micro_batch", "Images per batch and chip", MICRO_BATCHES)
    names = list(MACHINES.values())
    channels = make_channels(
        alt, "machine", "Machine", names, PALETTE.assign(names), ["circle", "diamond"]
    )
    return (
        alt.Chart(make_data(alt, points)).encode(x=x, y=y, color=channels["color"]),
        channels["shape"],
    )


def _draw_step_throughput(alt: Any, points: list[Record]) -> Any:
    base, shape = _make_step_base(
        alt, points, alt.Y("throughput:Q", title=PER_CHIP, scale=alt.Scale(zero=True))
    )
    tooltip = make_tooltips(alt, "machine", "micro_batch", "throughput", throughput=PER_CHIP)
    marks = base.mark_point(size=80, filled=True, opacity=1).encode(shape=shape, tooltip=tooltip)
    return alt.layer(base.mark_line(), marks).properties(**PANEL, title="Throughput")


def _draw_step_times(alt: Any, points: list[Record]) -> Any:
    kinds = {"period": "time between batches", "latency": PRINTED}
    parts = [
        {**point, "ms": point[kind], "what": name}
        for kind, name in kinds.items()
        for point in points
    ]
    base, shape = _make_step_base(
        alt, parts, alt.Y("ms:Q", title="Time (ms)", scale=alt.Scale(zero=True))
    )
    dashes = make_scale(alt, reversed(kinds.values()), [[1, 0], [4, 3]])
    lines = base.mark_line().encode(strokeDash=alt.StrokeDash("what:N", title="Time", scale=dashes))
    marks = base.encode(
        shape=shape, tooltip=make_tooltips(alt, "machine", "what", "micro_batch", "ms", "in_flight")
    )
    solid = marks.transform_filter(f"datum.what == '{PRINTED}'").mark_point(
        size=80, filled=True, opacity=1
    )
    hollow = marks.transform_filter(f"datum.what != '{PRINTED}'").mark_point(size=80, opacity=1)
    return alt.layer(lines, hollow, solid).properties(**PANEL, title="Time of a batch")


C2_TO_M2000 = Analysis(
    "c2_to_m2000",
    "What did a chip gain from the C2 card to the IPU-M2000?",
    ("c2_to_m2000",),
    summarise_step,
    draw_step,
)
