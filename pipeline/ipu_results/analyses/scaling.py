"""What a larger machine gains: throughput, and MLPerf time to train, each against the smallest machine of its curve."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.analyses.look import COLORS, Record, data, finished, records, titled
from ipu_results.analyses.words import listed, percent

THROUGHPUT, MLPERF = "throughput", "mlperf time to train"
CURVE = ["family", "model", "variant", "dataset", "framework", "sdk_version", "base_sdk_version", "document_id"]
ORDER = ["round", *CURVE, "chip_count", "result_id"]
SUPERLINEAR = 1.05  # above it rule R08 flags
CHIPS = (16, 64, 128, 256)


def _rows(frames: Frames, measure: str) -> list[Record]:
    """Clean rows of one measure, the smallest machines among them."""
    frame = frames["scaling"]
    clean = (frame["errors"] == 0) & (frame["base_errors"] == 0)
    return records(frame[clean & (frame["measure"] == measure)], ORDER)


def told(frames: Frames) -> str:
    entries = _rows(frames, MLPERF)
    latest = max(row["round"] for row in entries)
    largest = [row for row in entries if row["round"] == latest and row["chip_count"] == _most(entries)]
    return " ".join([_told_throughput(_rows(frames, THROUGHPUT)), *_told_minutes(largest, entries), _cited(entries)])


def _most(rows: list[Record]) -> int:
    return max(int(row["chip_count"]) for row in rows)


def _told_throughput(rows: list[Record]) -> str:
    larger = pd.DataFrame([row for row in rows if row["chip_count"] > row["base_chip_count"]])
    same = larger[larger["same_sdk"] & (larger["efficiency"] <= SUPERLINEAR)]
    sizes = [
        f"{percent(of['efficiency'].median())} on {chips} (from {percent(of['efficiency'].min())} to "
        f"{percent(of['efficiency'].max())}, {len(of)} rows)"
        for chips, of in same.groupby("chip_count")
    ]
    above = larger[larger["efficiency"] > SUPERLINEAR]
    smallest = listed(str(chips) for chips in sorted(set(same["base_chip_count"])))
    kept = (
        f"Training throughput per chip, on rows of one SDK and against {smallest} chips, keeps in the median "
        f"{'; '.join(sizes)}, of other models at each size"
    )
    if above.empty:
        return f"{kept}."
    return f"{kept}; {listed(above['model'])} ({len(above)} rows), above linear and flagged by R08, is left out there."


def _told_minutes(largest: list[Record], entries: list[Record]) -> list[str]:
    bases = {row["result_id"]: row for row in entries}
    gains, samples = [], []
    for row in largest:
        base = bases[row["base_result_id"]]
        gains.append(
            f"{row['model']} from {base['minutes']:.2f} to {row['minutes']:.2f} minutes, {row['speed_up']:.1f} times "
            f"faster ({percent(row['efficiency'])} of linear)"
        )
        samples.append(
            f"{row['model']} {1 / row['samples_efficiency']:.2f} times the samples at batch {row['batch_size']:,} "
            f"instead of {base['batch_size']:,}, which alone leaves {percent(row['samples_efficiency'])}, while "
            f"samples per minute and chip keep {percent(row['rate_efficiency'])}"
        )
    times = largest[0]["chip_count"] / largest[0]["base_chip_count"]
    return [
        f"MLPerf time to train, a measure of its own, falls on {times:.0f} times the chips for {'; for '.join(gains)}.",
        f"Larger batches need more samples: {'; '.join(samples)}.",
        "A throughput leaves that loss of samples out, so it alone does not tell what a larger machine saves; the two "
        "measures are never divided by each other.",
    ]


def _cited(entries: list[Record]) -> str:
    rounds = []
    for name in sorted({row["round"] for row in entries}):
        of = [row for row in entries if row["round"] == name]
        ids = sorted({row["mlperf_id"] for row in of if row["mlperf_id"]})
        inferred = ", inferred" if any(row["mlperf_id_confidence"] == "inferred" for row in of) else ""
        benchmarks = listed(sorted({row["benchmark"] for row in of}))
        rounds.append(f"v{name} {of[0]['division']} {benchmarks} (ids {', '.join(ids)}{inferred})")
    return (
        f"MLPerf Training entries of {entries[0]['submitter']}: {'; '.join(rounds)}; computed from the logs by "
        "ipu-results, not verified by MLCommons Association; speed-up and efficiency are no MLPerf metrics."
    )


def chart(altair: Any, frames: Frames) -> Any:
    panels = [_throughput_panel(altair, _rows(frames, THROUGHPUT)), _minutes_panel(altair, _rows(frames, MLPERF))]
    text = "Scaling from 16 chips: what each chip keeps"
    under = "100 % is linear. Two measures, each against the smallest machine of its own curve; hollow: SDKs differ"
    joined = altair.hconcat(*panels, spacing=30).resolve_scale(
        color="independent", shape="independent", strokeDash="independent"
    )
    return finished(joined.properties(title=titled(altair, text, under)), columns=2)


def _axes(altair: Any, y_title: str) -> dict[str, Any]:
    scale = altair.Scale(type="log", base=2, domain=[14, 290], nice=False)
    x_axis = altair.Axis(values=list(CHIPS), format="d", grid=False)
    return {
        "x": altair.X("chips:Q", title="Chips (log scale)", scale=scale, axis=x_axis),
        "y": altair.Y("efficiency:Q", title=y_title, scale=altair.Scale(domain=[0, 130], nice=False)),
    }


def _throughput_panel(altair: Any, rows: list[Record]) -> Any:
    points = [_point(row, row["model"]) for row in rows]
    axes = _axes(altair, "Throughput per chip, % of the smallest machine's")
    base = altair.Chart(data(altair, points)).encode(
        **axes,
        color=_color(altair, "Model", sorted({point["name"] for point in points})),
    )
    lines = base.mark_line(strokeWidth=1.2, opacity=0.6).encode(detail="curve:N")
    marks = base.mark_point(size=55, strokeWidth=1.5, opacity=0.9).encode(
        shape=altair.Shape("machine:N", title="Machine", scale=altair.Scale(range=["diamond", "circle"])),
        fill=altair.Fill(
            "sdk:N", scale=altair.Scale(domain=["the same", "another"], range=["#dddddd", "transparent"]), legend=None
        ),
        tooltip=["name:N", "curve:N", "chips:Q", altair.Tooltip("efficiency:Q", format=".1f"), "sdk:N"],
    )
    layers = altair.layer(_linear(altair, axes["y"]), lines, marks)
    return layers.properties(width=400, height=330, title="Training throughput, performance page")


def _minutes_panel(altair: Any, rows: list[Record]) -> Any:
    total = [_point(row, f"{row['model']}, {row['framework']}, v{row['round']}") for row in rows]
    alone = [{**point, "efficiency": 100 * row["samples_efficiency"]} for point, row in zip(total, rows, strict=True)]
    names = sorted({point["name"] for point in total})
    parts = [{**point, "part": part} for part, of in (("all", total), ("more samples alone", alone)) for point in of]
    axes = _axes(altair, "MLPerf speed-up per chip, % of linear")
    base = altair.Chart(data(altair, parts)).encode(**axes, color=_color(altair, "Entry, closed division", names))
    dash = altair.StrokeDash("part:N", title="Loss", scale=altair.Scale(range=[[1, 0], [3, 3]]))
    lines = base.mark_line(strokeWidth=1.6).encode(detail="name:N", strokeDash=dash)
    marks = base.mark_point(size=60, filled=True, opacity=1).encode(
        shape=altair.Shape("name:N", title="Entry, closed division", scale=altair.Scale(domain=names)),
        tooltip=["name:N", "part:N", "chips:Q", altair.Tooltip("efficiency:Q", format=".1f")],
    )
    layers = altair.layer(_linear(altair, axes["y"]), lines, marks)
    return layers.properties(width=400, height=330, title="MLPerf Training time to train, official entries, unverified")


def _point(row: Record, name: str) -> Record:
    machine = "Bow Pod" if row["family"] == "Bow" else "IPU-POD"
    curve = [row["model"], row["variant"], row["framework"], machine, f"SDK {row['base_sdk_version']} on the smallest"]
    return {
        "name": name,
        "machine": machine,
        "curve": ", ".join(one for one in curve if one),
        "chips": row["chip_count"],
        "efficiency": 100 * row["efficiency"],
        "sdk": "the same" if row["same_sdk"] else "another",
    }


def _color(altair: Any, name: str, domain: list[str]) -> Any:
    return altair.Color("name:N", title=name, scale=altair.Scale(domain=domain, range=list(COLORS[: len(domain)])))


def _linear(altair: Any, y: Any) -> Any:
    return altair.Chart(data(altair, [{"efficiency": 100}])).mark_rule(color="#999999").encode(y=y)


ANALYSIS = Analysis(
    "scaling",
    "What do 256 chips gain over 16?",
    ("scaling",),
    told,
    chart,
)
