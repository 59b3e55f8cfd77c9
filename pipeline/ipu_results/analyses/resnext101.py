"""ResNeXt101 inference as published, as measured here and as emulated, on one chart and unmistakably apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.analyses.look import COLORS, Record, data, finished, records, titled
from ipu_results.analyses.words import listed, percent

ORDER = ["origin", "publisher", "platform", "network", "framework", "compiler", "compute_precision", "run_id"]
SHAPES = {"published": "circle", "measured": "triangle-up", "emulated": "square"}
DASHES = {"published": [1, 0], "measured": [1, 0], "emulated": [4, 3]}
CROSS = "M-1,-1L1,1M-1,1L1,-1"
PANELS = {
    "throughput": "Throughput of the machine (images/s, log scale)",
    "latency": "Latency (ms per batch, log scale)",
}
ROOM = 1.6  # between the outermost points and the ends of a logarithmic axis


def _rows(frames: Frames, origin: str) -> list[Record]:
    """Rows of one origin without error flags."""
    frame = frames["resnext101"]
    kept = frame[(frame["errors"] == 0) & (frame["origin"] == origin)]
    return records(kept, [*ORDER, "batch_size", "result_id"])


def told(frames: Frames) -> str:
    published, measured, emulated = (_rows(frames, origin) for origin in SHAPES)
    return " ".join(
        [
            *_told_published(published),
            *_told_measured(measured),
            *_told_emulated(emulated, published),
            "None of these compare on the batch alone: chips in a machine, precision, batches in flight and what the "
            "latency holds differ from row to row, and the view tells them.",
        ]
    )


def _told_published(rows: list[Record]) -> list[str]:
    """The fastest row of each machine and network."""
    best: dict[tuple[Any, ...], Record] = {}
    for row in rows:
        key = (row["platform"], row["network"])
        if key not in best or row["throughput"] > best[key]["throughput"]:
            best[key] = row
    told = [
        f"{row['throughput']:,.0f} images/s on {row['platform']} ({row['publisher']}, {_short(row)}, {_chips(row)}, "
        f"batch {row['batch_size']}, {row['latency_ms']:.2f} ms)"
        for row in best.values()
    ]
    networks = Counter(row["network"] or "a network that no source tells" for row in rows)
    parts = listed([f"{count} rows of {name}" for name, count in networks.items()])
    return [f"Published are {parts}; the fastest of each machine and network: {'; '.join(told)}."] if told else []


def _chips(row: Record) -> str:
    count = row["chip_count"] or "unknown number of"
    return f"{count} chip{'s' * (count != 1)}"


def _short(row: Record) -> str:
    return (row["network"] or "network not told").removeprefix("ResNeXt101-")


def _told_measured(rows: list[Record]) -> list[str]:
    if not rows:
        return ["No run of this project's own is in this warehouse."]
    rates = [row["throughput"] for row in rows]
    suspect = sum(row["suspect"] is not None for row in rows)
    doubt = f"; {suspect} of them are suspect and crossed out" if suspect else ""
    return [
        f"Measured here are {len(rows)} points on {listed(row['platform'] for row in rows)}, {min(rates):.1f} to "
        f"{max(rates):.1f} images/s{doubt}: they show that the runner measures, and say nothing of an IPU."
    ]


def _told_emulated(rows: list[Record], published: list[Record]) -> list[str]:
    if not rows:
        return ["No emulated points are in this warehouse."]
    beside = {(row["platform"], row["batch_size"]): row for row in published if row["network"] == "ResNeXt101-32x4d"}
    pairs = [(row, beside.get((row["platform"], row["batch_size"]))) for row in rows]
    off = [abs(row["latency_ms"] / other["latency_ms"] - 1) for row, other in pairs if other]
    said = f"Emulated, not measured, are {len(rows)} points for {listed(row['platform'] for row in rows)}"
    doubtful = sum(row["suspect"] is not None for row in rows)
    said += f", {doubtful} of them doubtful (memory) and crossed out" if doubtful else ""
    if not off:
        return [f"{said}; no published row stands beside them."]
    fitted = ", which is no evidence, since two of its numbers were fitted on the paper's C2 rows"
    only_c2 = all(row["platform"] == "C2" for row, other in pairs if other)
    return [
        f"{said}: their latency is off the published one by {percent(median(off))} in the median and "
        f"{percent(max(off))} at most{fitted if only_c2 else ''}."
    ]


def chart(altair: Any, frames: Frames) -> Any:
    points = [_point(row) for origin in SHAPES for row in _rows(frames, origin)]
    _label(points)
    panels = [_panel(altair, points, name, said) for name, said in PANELS.items()]
    text = titled(altair, "ResNeXt101 inference: published, measured here, and emulated", *_key(points))
    return finished(altair.hconcat(*panels, spacing=30, data=data(altair, points)).properties(title=text), columns=2)


def _label(points: Sequence[Record]) -> None:
    """The word itself at the first emulated point."""
    emulated = [point for point in points if point["origin"] == "emulated"]
    for point in emulated:
        point["word"] = "EMULATED" if point is min(emulated, key=lambda one: one["batch"]) else ""


def _key(points: Sequence[Record]) -> list[str]:
    origins = {point["origin"] for point in points}
    said = ["Filled circles: published"]
    said += ["filled triangles: measured here"] if "measured" in origins else []
    said += ["HOLLOW SQUARES, DASHED: EMULATED, not measured"] if "emulated" in origins else []
    said += ["crossed out: suspect"] if any(point["suspect"] for point in points) else []
    return [
        "; ".join(said),
        "32x8d is a larger network than 32x4d; chips in a machine: 1 (A100), 2 (C2), 4 (IPU-M2000)",
    ]


def _point(row: Record) -> Record:
    about = [row["framework"], row["compiler"], row["compute_precision"] or row["precision"]]
    return {
        "origin": row["origin"],
        "machine": f"{row['platform']}, {_short(row)}, {row['origin']}",
        "series": ", ".join([*(one for one in about if one), row["run_id"] or row["publisher"]]),
        "batch": row["batch_size"],
        "throughput": row["throughput"],
        "latency": row["latency_ms"],
        "suspect": row["suspect"] or "",
        "word": "",
    }


def _panel(altair: Any, points: Sequence[Record], name: str, said: str) -> Any:
    names = list(dict.fromkeys(point["machine"] for point in points))
    colors = altair.Scale(domain=names, range=list(COLORS[: len(names)]))
    base = altair.Chart().encode(
        x=_x(altair), y=_y(altair, points, name, said), color=altair.Color("machine:N", title="Machine", scale=colors)
    )
    dashes = altair.Scale(domain=list(SHAPES), range=list(DASHES.values()))
    dash = altair.StrokeDash("origin:N", title="Origin", scale=dashes)
    lines = base.mark_line(strokeWidth=1.4, opacity=0.8).encode(detail=["series:N", "machine:N"], strokeDash=dash)
    word = base.transform_filter("datum.word != ''").mark_text(align="left", dx=-30, dy=22, fontWeight="bold")
    layers = altair.layer(lines, *_marks(altair, base, name), word.encode(text="word:N"))
    return layers.properties(width=420, height=360)


def _marks(altair: Any, base: Any, name: str) -> list[Any]:
    shapes = altair.Scale(domain=list(SHAPES), range=list(SHAPES.values()))
    shape = altair.Shape("origin:N", title="Origin", scale=shapes)
    tooltip = ["machine:N", "series:N", "batch:Q", f"{name}:Q", "suspect:N"]
    solid = base.transform_filter("datum.origin != 'emulated'").mark_point(size=50, filled=True, opacity=1)
    hollow = base.transform_filter("datum.origin == 'emulated'").mark_point(size=200, strokeWidth=1.8, opacity=1)
    crossed = base.transform_filter("datum.suspect != '' && datum.origin != 'emulated'")
    crossed_hollow = base.transform_filter("datum.suspect != '' && datum.origin == 'emulated'")
    return [
        solid.encode(shape=shape, tooltip=tooltip),
        hollow.encode(shape=shape, tooltip=tooltip),
        crossed.encode(color=altair.value("#000000")).mark_point(shape=CROSS, size=60, strokeWidth=1.2, opacity=1),
        crossed_hollow.mark_point(shape=CROSS, size=200, strokeWidth=1.2, opacity=1),
    ]


def _x(altair: Any) -> Any:
    scale = altair.Scale(type="log", base=2, domain=[0.9, 290], nice=False)
    axis = altair.Axis(values=[1, 2, 4, 8, 16, 32, 64, 128, 256], format="d", grid=False)
    return altair.X("batch:Q", title="Batch of the machine (log scale)", scale=scale, axis=axis)


def _y(altair: Any, points: Sequence[Record], name: str, said: str) -> Any:
    figures = [point[name] for point in points if point[name] is not None]
    ends = [min(figures) / ROOM, max(figures) * ROOM]
    ticks = [float(f"{step}e{power}") for power in range(-2, 8) for step in (1, 3)]
    axis = altair.Axis(values=[tick for tick in ticks if ends[0] <= tick <= ends[1]], format=",~g")
    return altair.Y(f"{name}:Q", title=said, scale=altair.Scale(type="log", domain=ends, nice=False), axis=axis)


ANALYSIS = Analysis(
    "resnext101",
    "How do published, measured and emulated ResNeXt101 figures stand beside each other?",
    ("resnext101",),
    told,
    chart,
)
