"""Where IPUs were in MLPerf Training, against every entry of their rankings, and which gaps the runs resolve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import (
    UNVERIFIED,
    Analysis,
    Frames,
    Record,
    join_paragraphs,
    join_words,
    make_records,
)
from ipu_results.analyses.drawing import make_log_axis, make_scale, make_tooltips
from ipu_results.ground.charts import PALETTE, apply_theme, make_data, make_title
from ipu_results.mlperf.rules import round_key

DIVISION = "closed"
WORDS = {"ipu-faster": "faster", "ipu-slower": "slower", "tied": "not separable"}
KINDS = {"GC200": "IPU-POD", "Bow": "Bow Pod", "A100": "A100", "TPU": "TPU", "Gaudi": "Gaudi"}
OTHER = "other"
MAX_ACCELERATORS = 512
ACCELERATOR_TICKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
MINUTE_TICKS = (1, 2, 5, 10, 20, 50, 100, 200)
BENCHMARKS = ("resnet", "bert")
ORDER = ["benchmark", "ipu_accelerators", "ipu_path"]


def _select(frames: Frames) -> list[Record]:
    """Select the comparisons with machines that are not on IPUs."""
    rows = frames["mlperf_ipu"]
    return make_records(rows[rows["is_ipu"].eq(False)], ORDER)


def summarise(frames: Frames) -> str:
    """Describe each round: machines with as many accelerators, then one node of eight A100."""
    rows = [row for row in _select(frames) if row["division"] == DIVISION]
    rounds = sorted({row["round"] for row in rows}, key=round_key)
    own = frames["mlperf_ipu"].drop_duplicates(["round", "ipu_path"])
    alone = int(own["outcome"].isna().sum())
    return join_paragraphs(
        [_describe_finding(rows)],
        [
            f"{len(own)} entries ran on IPUs, {join_words(_count_submitters(own))}. Comparisons are within a round, "
            "benchmark and division.",
            f"{alone} of them had no other entry to compare with." if alone else "",
        ],
        [
            "Against machines with as many accelerators, closed division:",
            *(_describe_equal([row for row in rows if row["round"] == name]) for name in rounds),
        ],
        [
            "Against NVIDIA's own node of 8 A100, machines with 16 IPUs:",
            *(_describe_node([row for row in rows if row["round"] == name]) for name in rounds),
        ],
        ["A gap that the runs cannot separate says nothing, whichever side is ahead."],
        [UNVERIFIED],
    )


def _describe_finding(rows: Iterable[Record]) -> str:
    """Count the outcomes of the comparisons with machines of as many accelerators."""
    same = [row["outcome"] for row in rows if row["accelerators"] == row["ipu_accelerators"]]
    counts = Counter(WORDS.get(outcome, outcome) for outcome in same)
    return (
        f"In {len(same)} comparisons with machines of as many accelerators ({DIVISION} division), IPUs were "
        f"{join_words(f'{word} in {count}' for word, count in sorted(counts.items()))}."
    )


def _count_submitters(rows: pd.DataFrame) -> Iterator[str]:
    counts = rows["ipu_submitter"].value_counts()
    return (f"{count} of {name}" for name, count in sorted(counts.items()))


def _describe_equal(rows: Iterable[Record]) -> str:
    same = [row for row in rows if row["accelerators"] == row["ipu_accelerators"]]
    if not same:
        return ""
    parts = []
    for name in sorted({row["benchmark"] for row in same}):
        counts = Counter(WORDS.get(row["outcome"], row["outcome"]) for row in same if row["benchmark"] == name)
        parts.append(f"{name}: {', '.join(f'{counts[word]} {word}' for word in WORDS.values() if counts[word])}")
    return f"v{same[0]['round']} {'; '.join(parts)}."


def _describe_node(rows: Iterable[Record]) -> str:
    node = [
        row
        for row in rows
        if row["ipu_accelerators"] == 16
        and row["accelerators"] == 8
        and row["submitter"] == "NVIDIA"
        and "A100" in row["accelerator"]
    ]
    if not node:
        return ""
    parts = [
        f"{row['benchmark']} ({row['ipu_submitter']}, {row['ipu_framework'].split()[0]}) "
        f"{_format_interval(row, 'ipu_')} against {_format_interval(row, '')} minutes, "
        f"{WORDS.get(row['outcome'], row['outcome'])}"
        for row in node
    ]
    return f"v{node[0]['round']} {'; '.join(parts)}."


def _format_interval(row: Record, prefix: str) -> str:
    low, high = row[f"{prefix}minutes_low"], row[f"{prefix}minutes_high"]
    interval = "" if low is None else f" [{low:.2f}, {high:.2f}]"
    return f"{row[f'{prefix}minutes']:.2f}{interval}"


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw minutes with their intervals over accelerators, a panel for each round and benchmark."""
    points = _list_points(frames)
    rounds = sorted({point["round"] for point in points}, key=round_key)
    ends = _find_ends(points)
    rows = [
        alt.hconcat(
            *(_draw_panel(alt, _filter(points, name, benchmark), f"{benchmark}, v{name}", ends) for name in rounds)
        )
        for benchmark in BENCHMARKS
    ]
    title = make_title(
        alt,
        "MLPerf Training on IPUs next to every other closed entry",
        "Bars: 95 % intervals of the scores, from the spread of the runs. Unverified",
    )
    return apply_theme(alt.vconcat(*rows).properties(title=title).resolve_scale(color="shared", shape="shared"), 5)


def _list_points(frames: Frames) -> list[Record]:
    """List the entries of the panels, each once."""
    points = {}
    for row in make_records(frames["mlperf_ipu"], ORDER):
        if row["division"] != DIVISION:
            continue
        for prefix, path in (("ipu_", row["ipu_path"]), ("", row["path"])):
            if path is not None and (row[f"{prefix}accelerators"] or MAX_ACCELERATORS + 1) <= MAX_ACCELERATORS:
                points[row["round"], path] = _make_point(row, prefix)
    return [points[key] for key in sorted(points)]


def _make_point(row: Record, prefix: str) -> Record:
    name = row[f"{prefix}accelerator"] or ""
    kind = next((kind for word, kind in KINDS.items() if word.lower() in name.lower()), OTHER)
    fields = ("accelerators", "minutes", "minutes_low", "minutes_high", "submitter", "system", "result_id")
    values = {field: row[f"{prefix}{field}"] for field in fields}
    return {**values, "round": row["round"], "benchmark": row["benchmark"], "kind": kind}


def _filter(points: Iterable[Record], round_: str, benchmark: str) -> list[Record]:
    return [point for point in points if (point["round"], point["benchmark"]) == (round_, benchmark)]


def _find_ends(points: Iterable[Record]) -> list[float]:
    """Find the ends of the axis of minutes that all panels share."""
    minutes = [row[name] for row in points for name in ("minutes", "minutes_low", "minutes_high") if row[name]]
    return [0.9 * min(minutes), 1.1 * max(minutes)]


def _draw_panel(alt: Any, points: list[Record], title: str, ends: list[float]) -> Any:
    names = [*KINDS.values(), OTHER]
    colors = [*PALETTE.assign(list(KINDS.values())), PALETTE.ink["muted"]]
    color = alt.Color("kind:N", title="Accelerator", scale=make_scale(alt, names, colors))
    shapes = ("diamond", "triangle-down", "circle", "triangle-up", "square", "cross")
    shape = alt.Shape("kind:N", title="Accelerator", scale=make_scale(alt, names, shapes))
    domain = [0.8 * ACCELERATOR_TICKS[0], 1.25 * ACCELERATOR_TICKS[-1]]
    x = make_log_axis(alt, "X", "accelerators", "Accelerators", ACCELERATOR_TICKS, "d", base=2, domain=domain)
    y = make_log_axis(alt, "Y", "minutes", "Minutes", MINUTE_TICKS, domain=ends)
    base = alt.Chart(make_data(alt, points)).encode(x=x, color=color)
    low = make_log_axis(alt, "Y", "minutes_low", "Minutes", MINUTE_TICKS, domain=ends)
    bars = base.transform_filter("datum.minutes_low > 0").mark_rule(strokeWidth=1.5).encode(y=low, y2="minutes_high:Q")
    tooltip = make_tooltips(alt, "submitter", "system", "accelerators", "minutes", "minutes_low", "minutes_high")
    marks = base.mark_point(filled=True, size=22, opacity=0.9).encode(y=y, shape=shape, tooltip=tooltip)
    return alt.layer(bars, marks).properties(width=260, height=240, title=title)


ANALYSIS = Analysis(
    "mlperf_ipu",
    "Where was the IPU in MLPerf, and which gaps can the runs resolve?",
    ("mlperf_ipu",),
    summarise,
    build_chart,
    caveats=2,
)
