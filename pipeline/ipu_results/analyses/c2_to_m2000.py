"""From the C2 card to the IPU-M2000, per chip, on the rows that ran the same network."""

from __future__ import annotations

from typing import Any

from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.analyses.look import COLORS, Record, data, finished, records, titled
from ipu_results.analyses.words import listed

MACHINES = {"c2": "C2", "m2000": "IPU-M2000"}
ORDER = ["pairing", "c2_micro_batch_size", "m2000_micro_batch_size"]
EQUAL, BEST = "equal micro-batch", "best of each"


def _rows(frames: Frames, *pairings: str) -> list[Record]:
    frame = frames["c2_to_m2000"]
    clean = frame[frame["errors"] == 0]
    return records(clean[clean["pairing"].isin(pairings)] if pairings else clean, ORDER)


def told(frames: Frames) -> str:
    equal, best = _rows(frames, EQUAL), _rows(frames, BEST)
    most = max(row["c2_micro_batch_size"] for row in _rows(frames) if row["c2_micro_batch_size"] is not None)
    parts = [_told_equal(equal), *(_told_best(row, most) for row in best), _told_latency(equal[0])]
    return " ".join([*parts, _told_differences(equal[0])])


def _told_equal(equal: list[Record]) -> str:
    ratios = [
        f"{row['ratio']:.2f} times at {row['c2_micro_batch_size']} ({row['m2000_throughput_per_chip']:,.0f} against "
        f"{row['c2_throughput_per_chip']:,.0f} images/s)"
        for row in equal
    ]
    first = equal[0]
    return (
        f"On {first['network']}, per chip and at equal micro-batch, an IPU-M2000 gives {listed(ratios)}, where "
        f"the chips' 16-bit peaks differ {first['peak_ratio']:.2f} times and tiles times clock "
        f"{first['tile_cycles_ratio']:.2f} times."
    )


def _told_best(row: Record, most: int) -> str:
    return (
        f"Best against best it is {row['ratio']:.2f} times, {row['m2000_throughput_per_chip']:,.0f} images/s at "
        f"{row['m2000_micro_batch_size']} against {row['c2_throughput_per_chip']:,.0f} at "
        f"{row['c2_micro_batch_size']}; the paper prints no more than {most} per chip, so the larger batch counts in "
        "and not the chip alone."
    )


def _told_latency(row: Record) -> str:
    return (
        f"The printed latencies do not compare: at {row['c2_micro_batch_size']} per chip the C2's "
        f"{row['c2_latency_ms']:.2f} ms stand for {row['c2_batches_in_flight']:.1f} batches in flight, the IPU-M2000's "
        f"{row['m2000_latency_ms']:.2f} ms for {row['m2000_batches_in_flight']:.1f}; the C2 is done with a batch every "
        f"{row['c2_batch_period_ms']:.2f} ms and the IPU-M2000 every {row['m2000_batch_period_ms']:.2f} ms, and how "
        "soon it would be done with one alone no row tells."
    )


def _told_differences(row: Record) -> str:
    return (
        f"Software differs too ({row['c2_framework']} {row['c2_sdk_version']}, {row['c2_precision']} precision "
        f"against {row['m2000_framework']}, SDK {row['m2000_sdk_version']}, {row['m2000_precision']}), so does the "
        f"data (C2: {row['c2_dataset']}; IPU-M2000: {row['m2000_dataset']}), and with "
        "several batches in flight transfers can overlap, so this is a step between two published set-ups, not two "
        "chips. The page's PyTorch rows, which ran the larger 32x8d, are left out."
    )


def chart(altair: Any, frames: Frames) -> Any:
    points = _points(_rows(frames))
    panels = [_throughput_panel(altair, points), _time_panel(altair, points)]
    under = "ResNeXt101-32x4d inference, published rows; both times agree where one batch is in flight, as on the C2"
    text = titled(altair, "From the C2 card to the IPU-M2000, per chip", under)
    joined = altair.hconcat(*panels, spacing=30).resolve_scale(
        color="independent", shape="independent", strokeDash="independent"
    )
    return finished(joined.properties(title=text), columns=2)


def _points(rows: list[Record]) -> list[Record]:
    """Each row of either machine once."""
    found: dict[str, Record] = {}
    for row in rows:
        for side, machine in MACHINES.items():
            if row[f"{side}_result_id"] is not None:
                found[row[f"{side}_result_id"]] = {
                    "machine": machine,
                    "micro_batch": row[f"{side}_micro_batch_size"],
                    "throughput": row[f"{side}_throughput_per_chip"],
                    "latency": row[f"{side}_latency_ms"],
                    "period": row[f"{side}_batch_period_ms"],
                    "in_flight": row[f"{side}_batches_in_flight"],
                }
    return sorted(found.values(), key=lambda one: (one["machine"], one["micro_batch"]))


def _x(altair: Any) -> Any:
    scale = altair.Scale(type="log", base=2, domain=[0.9, 18], nice=False)
    axis = altair.Axis(values=[1, 2, 3, 4, 5, 6, 8, 16], format="d", grid=False)
    return altair.X("micro_batch:Q", title="Images per batch and chip (log scale)", scale=scale, axis=axis)


def _channels(altair: Any, field: str, names: list[str]) -> dict[str, Any]:
    colors = altair.Scale(domain=names, range=list(COLORS[: len(names)]))
    shapes = altair.Scale(domain=names, range=["circle", "diamond"])
    return {
        "color": altair.Color(f"{field}:N", title="Machine", scale=colors),
        "shape": altair.Shape(f"{field}:N", title="Machine", scale=shapes),
    }


def _throughput_panel(altair: Any, points: list[Record]) -> Any:
    channels = _channels(altair, "machine", list(MACHINES.values()))
    y = altair.Y("throughput:Q", title="Throughput per chip (images/s)", scale=altair.Scale(zero=True))
    base = altair.Chart(data(altair, points)).encode(x=_x(altair), y=y, color=channels["color"])
    marks = base.mark_point(size=80, filled=True, opacity=1)
    marks = marks.encode(shape=channels["shape"], tooltip=["machine:N", "micro_batch:Q", "throughput:Q"])
    return altair.layer(base.mark_line(), marks).properties(width=400, height=330, title="Throughput")


def _time_panel(altair: Any, points: list[Record]) -> Any:
    kinds = {"latency": "latency as printed", "period": "time between batches"}
    parts = [{**point, "ms": point[kind], "what": what} for kind, what in reversed(kinds.items()) for point in points]
    channels = _channels(altair, "machine", list(MACHINES.values()))
    dash = altair.Scale(domain=list(kinds.values()), range=[[1, 0], [4, 3]])
    y = altair.Y("ms:Q", title="Time (ms)", scale=altair.Scale(zero=True))
    base = altair.Chart(data(altair, parts)).encode(x=_x(altair), y=y, color=channels["color"])
    lines = base.mark_line().encode(strokeDash=altair.StrokeDash("what:N", title="Time", scale=dash))
    flight = altair.Tooltip("in_flight:Q", format=".2f")
    told = base.encode(shape=channels["shape"], tooltip=["machine:N", "what:N", "micro_batch:Q", "ms:Q", flight])
    solid = told.transform_filter("datum.what == 'latency as printed'").mark_point(size=80, filled=True, opacity=1)
    hollow = told.transform_filter("datum.what != 'latency as printed'").mark_point(size=80, opacity=1)
    return altair.layer(lines, hollow, solid).properties(width=400, height=330, title="Time of a batch")


ANALYSIS = Analysis(
    "c2_to_m2000",
    "What did a chip gain from the C2 card to the IPU-M2000?",
    ("c2_to_m2000",),
    told,
    chart,
)
