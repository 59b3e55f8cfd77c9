"""From the C2 card to the IPU-M2000, per chip, on the rows that ran the same network."""

from __future__ import annotations

from typing import Any

from ipu_results.analyses.analysis import (
    Analysis,
    Frames,
    Record,
    join_paragraphs,
    join_words,
    make_records,
    select_clean,
)
from ipu_results.analyses.drawing import PANEL, join_panels, make_scale, make_size_axis, make_tooltips
from ipu_results.ground.charts import PALETTE, make_data

MACHINES = {"c2": "C2", "m2000": "IPU-M2000"}
ORDER = ["pairing", "c2_micro_batch_size", "m2000_micro_batch_size"]
EQUAL, BEST = "equal micro-batch", "best of each"
PRINTED = "latency as printed"
PER_CHIP = "Throughput per chip (images/s)"
SIZES = (1, 2, 3, 4, 5, 6, 8, 16)


def _select(frames: Frames, **values: str) -> list[Record]:
    return make_records(select_clean(frames["c2_to_m2000"], **values), ORDER)


def summarise(frames: Frames) -> str:
    """Describe the ratios at equal micro-batch and of the best rows, and what the rows cannot show."""
    equal, best, rows = _select(frames, pairing=EQUAL), _select(frames, pairing=BEST), _select(frames)
    max_micro_batch = max(row["c2_micro_batch_size"] for row in rows if row["c2_micro_batch_size"] is not None)
    return join_paragraphs(
        [_describe_finding(equal)],
        [_describe_equal(equal), *(_describe_best(row, max_micro_batch) for row in best)],
        [_describe_latency(equal[0]), _describe_differences(equal[0])],
    )


def _describe_finding(equal: list[Record]) -> str:
    ratios = [row["ratio"] for row in equal]
    return (
        f"At equal micro-batch, a chip of the IPU-M2000 has {min(ratios):.2f} to {max(ratios):.2f} times the "
        f"throughput of one of the C2 card on {equal[0]['network']}."
    )


def _describe_equal(equal: list[Record]) -> str:
    ratios = [
        f"{row['ratio']:.2f} at {row['c2_micro_batch_size']} ({row['m2000_throughput_per_chip']:,.0f} against "
        f"{row['c2_throughput_per_chip']:,.0f} images/s)"
        for row in equal
    ]
    first = equal[0]
    return (
        "By images per batch and chip, the ratio is "
        f"{join_words(ratios)}. The chips' 16-bit peaks differ {first['peak_ratio']:.2f} "
        f"times, and tiles times clock {first['tile_cycles_ratio']:.2f} times."
    )


def _describe_best(row: Record, max_micro_batch: int) -> str:
    return (
        f"Best against best, the ratio is {row['ratio']:.2f}: {row['m2000_throughput_per_chip']:,.0f} images/s at "
        f"{row['m2000_micro_batch_size']} against {row['c2_throughput_per_chip']:,.0f} at "
        f"{row['c2_micro_batch_size']}. The paper prints no more than {max_micro_batch} per chip, so this ratio is due "
        "to the larger batch as well as to the chip."
    )


def _describe_latency(row: Record) -> str:
    return (
        f"The printed latencies are not comparable. At {row['c2_micro_batch_size']} per chip, the C2's "
        f"{row['c2_latency_ms']:.2f} ms stand for {row['c2_batches_in_flight']:.1f} batches in flight, and the "
        f"IPU-M2000's {row['m2000_latency_ms']:.2f} ms for {row['m2000_batches_in_flight']:.1f}. The C2 completes a "
        f"batch every {row['c2_batch_period_ms']:.2f} ms and the IPU-M2000 every {row['m2000_batch_period_ms']:.2f} "
        "ms. No row shows how long the IPU-M2000 takes for one batch alone."
    )


def _describe_differences(row: Record) -> str:
    return (
        f"The software differs too: {row['c2_framework']} {row['c2_sdk_version']} with {row['c2_precision']} precision "
        f"against {row['m2000_framework']}, SDK {row['m2000_sdk_version']}, with {row['m2000_precision']}. So does the "
        f"data (C2: {row['c2_dataset']}; IPU-M2000: {row['m2000_dataset']}). With several batches in flight, transfers "
        "can overlap. The step is therefore one between two published set-ups, not between two chips. The page's "
        "PyTorch rows ran the larger 32x8d and are excluded."
    )


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw throughput and times over the micro-batch size, one panel each."""
    points = _make_points(_select(frames))
    title = (
        "From the C2 card to the IPU-M2000, per chip",
        "ResNeXt101-32x4d inference, published rows; both times agree where one batch is in flight, as on the C2",
    )
    panels = [_draw_throughput(alt, points), _draw_times(alt, points)]
    return join_panels(alt, panels, title, legend_columns=2)


def _make_points(rows: list[Record]) -> list[Record]:
    """Make one point per result; a result is in several rows."""
    points: dict[str, Record] = {}
    for row in rows:
        for prefix, machine in MACHINES.items():
            if row[f"{prefix}_result_id"] is not None:
                points[row[f"{prefix}_result_id"]] = {
                    "machine": machine,
                    "result_id": row[f"{prefix}_result_id"],
                    "micro_batch": row[f"{prefix}_micro_batch_size"],
                    "throughput": row[f"{prefix}_throughput_per_chip"],
                    "latency": row[f"{prefix}_latency_ms"],
                    "period": row[f"{prefix}_batch_period_ms"],
                    "in_flight": row[f"{prefix}_batches_in_flight"],
                }
    return sorted(points.values(), key=lambda point: (point["machine"], point["micro_batch"]))


def _make_base(alt: Any, points: list[Record], y: Any) -> Any:
    """Set the axes and the colour of the machine."""
    x = make_size_axis(alt, "micro_batch", "Images per batch and chip", SIZES)
    names = list(MACHINES.values())
    color = alt.Color("machine:N", title="Machine", scale=make_scale(alt, names, PALETTE.assign(names)))
    return alt.Chart(make_data(alt, points)).encode(x=x, y=y, color=color)


def _make_shape(alt: Any) -> Any:
    return alt.Shape("machine:N", title="Machine", scale=make_scale(alt, MACHINES.values(), ["circle", "diamond"]))


def _draw_throughput(alt: Any, points: list[Record]) -> Any:
    y = alt.Y("throughput:Q", title=PER_CHIP, scale=alt.Scale(zero=True))
    base = _make_base(alt, points, y)
    marks = base.mark_point(size=80, filled=True, opacity=1)
    marks = marks.encode(
        shape=_make_shape(alt), tooltip=make_tooltips(alt, "machine", "micro_batch", "throughput", throughput=PER_CHIP)
    )
    return alt.layer(base.mark_line(), marks).properties(**PANEL, title="Throughput")


def _draw_times(alt: Any, points: list[Record]) -> Any:
    kinds = {"period": "time between batches", "latency": PRINTED}
    parts = [{**point, "ms": point[kind], "what": name} for kind, name in kinds.items() for point in points]
    base = _make_base(alt, parts, alt.Y("ms:Q", title="Time (ms)", scale=alt.Scale(zero=True)))
    dashes = make_scale(alt, reversed(kinds.values()), [[1, 0], [4, 3]])
    lines = base.mark_line().encode(strokeDash=alt.StrokeDash("what:N", title="Time", scale=dashes))
    tooltip = make_tooltips(alt, "machine", "what", "micro_batch", "ms", "in_flight")
    marks = base.encode(shape=_make_shape(alt), tooltip=tooltip)
    solid = marks.transform_filter(f"datum.what == '{PRINTED}'").mark_point(size=80, filled=True, opacity=1)
    hollow = marks.transform_filter(f"datum.what != '{PRINTED}'").mark_point(size=80, opacity=1)
    return alt.layer(lines, hollow, solid).properties(**PANEL, title="Time of a batch")


ANALYSIS = Analysis(
    "c2_to_m2000", "What did a chip gain from the C2 card to the IPU-M2000?", ("c2_to_m2000",), summarise, build_chart
)
