"""One test with one thing changed: the SDK release, the framework, or the generation of the
machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import (
    CONSIDERED,
    Analysis,
    Frames,
    Record,
    compute_mean,
    describe_left_out,
    describe_range,
    join_cells,
    join_paragraphs,
    join_words,
    select_usable,
)
from ipu_results.analyses.drawing import (
    build_ratio_chart,
    make_log_axis,
)
from ipu_results.ground.charts import apply_theme, make_title

TEST = ("model", "variant", "framework", "platform")
CLOSE = 0.01  # a change up to this may be the spread of runs
# conditions of the rows that the views choose from
PRINTED = "origin = 'published' AND benchmark IS NULL AND throughput IS NOT NULL"
MACHINES = "SELECT platform FROM platforms WHERE family IN ('Bow', 'Classic')"


@dataclass(frozen=True, slots=True)
class RatioPoints:
    """The points of a chart of ratios: columns that name a test and its series, and other columns
    by tooltip.
    """

    test: Sequence[str]
    series: str
    figures: Mapping[str, str]
    result_id: str = "result_id"

    def make(
        self, rows: pd.DataFrame, details: str = "", crossed: str | None = None
    ) -> list[Record]:
        """Make a point of each row; `details` of its columns end the label, a column `crossed`
        crosses points out.
        """
        return [
            {
                "label": join_cells(row, *self.test) + details.format(**row),
                "ratio": round(row["throughput_ratio"], 4),
                "series": str(row[self.series]),
                **{name: row[column] for name, column in self.figures.items()},
                "crossed": bool(crossed and row[crossed]),
                "result_id": row[self.result_id],
            }
            for row in rows.to_dict("records")
        ]


def _describe_ratio(rows: pd.DataFrame) -> str:
    return (
        f"{compute_mean(rows['throughput_ratio']):.2f} ({describe_range(rows['throughput_ratio'])})"
    )


SDK_POINTS = RatioPoints(
    TEST,
    "sdk_version",
    {"oldest": "oldest_sdk_version", "throughput": "throughput", "batch": "batch_size"},
)


def summarise_sdk(frames: Frames) -> str:
    """Describe the gain from the oldest to the newest release, its extremes, and which rows there
    are.
    """
    rows = frames["sdk_effect"]
    newest = _select_newest(rows)
    ratios = newest["throughput_ratio"]
    best, worst = (_describe_test(newest.loc[at]) for at in (ratios.idxmax(), ratios.idxmin()))
    return join_paragraphs(
        [
            f"The newest SDK release has {compute_mean(ratios):.3f} times the throughput of the"
            f" oldest, as a geometric mean over {len(newest)} tests that are printed with"
            " several releases and nothing else changed."
        ],
        [
            (
                f"Of these tests, {((ratios - 1).abs() <= CLOSE).sum()} stay within {CLOSE:.0%},"
                f" {(ratios > 1 + CLOSE).sum()} gain more than {CLOSE:.0%} and"
                f" {(ratios < 1 - CLOSE).sum()} lose more than that."
            ),
            f"The largest gain is {best}. The largest loss is {worst}.",
            f"By release, the mean is {_describe_steps(newest)}.",
        ],
        [
            (
                f"All are {join_words(sorted(rows['task'].unique()))} rows on "
                f"{join_words(sorted(rows['platform'].unique()))}."
            ),
            "No older page version with inference or Classic machines is available.",
            "Each figure is one printed number, so changes of a percent may be run-to-run spread.",
            describe_left_out(frames[CONSIDERED]),
        ],
    )


def _select_newest(rows: pd.DataFrame) -> pd.DataFrame:
    """Select the row of the newest release of each test."""
    later = rows[rows["position"] > 1].sort_values("position", kind="stable")
    return later.drop_duplicates("oldest_result_id", keep="last").reset_index(drop=True)


def _describe_test(row: pd.Series) -> str:
    return (
        f"{row['throughput_ratio']:.2f} ({join_cells(row, *TEST)}: {row['oldest_throughput']:,.0f}"
        f" items/s with {row['oldest_sdk_version']}, {row['throughput']:,.0f} with"
        f" {row['sdk_version']})"
    )


def _describe_steps(newest: pd.DataFrame) -> str:
    groups = newest.groupby(["oldest_sdk_version", "sdk_version"])["throughput_ratio"]
    steps = [(*step, ratios) for step, ratios in groups if len(ratios) > 1]
    steps.sort(key=lambda step: (_sort_key(step[0]), _sort_key(step[1])))
    return join_words(
        [
            f"{compute_mean(ratios):.3f} from {old} to {new} ({len(ratios)} tests)"
            for old, new, ratios in steps
        ]
    )


def _sort_key(release: str) -> tuple[bool, str]:
    """Return a key that sorts `Pre-SDK2.5`, the oldest release of Bow, before all others."""
    return not release.startswith("Pre-"), release


def draw_sdk(alt: Any, frames: Frames) -> Any:
    """Draw each test on one line, with a point per release."""
    rows = frames["sdk_effect"]
    order = _select_newest(rows).sort_values(["throughput_ratio", "result_id"], ascending=False)
    tests = [
        rows[rows["oldest_result_id"] == first].sort_values("position")
        for first in order["oldest_result_id"]
    ]
    x = alt.X(
        "ratio:Q",
        title="Throughput over that of the oldest release",
        scale=alt.Scale(zero=False, nice=True),
    )
    title = make_title(
        alt,
        "One test, one machine, several SDK releases",
        "Published training rows of all page versions; usable rows alone, no MLPerf",
    )
    releases = sorted(rows["sdk_version"].unique(), key=_sort_key)
    records = [record for test in tests for record in SDK_POINTS.make(test)]
    return apply_theme(
        build_ratio_chart(alt, records, x, "SDK", releases, 1.0).properties(title=title)
    )


SDK = Analysis(
    "sdk_effect",
    "What did newer SDK releases do to one machine's figures?",
    ("sdk_effect",),
    summarise_sdk,
    draw_sdk,
    considered=f"{PRINTED} AND batch_size IS NOT NULL AND sdk_version IS NOT NULL",
)

FRAMEWORK_POINTS = RatioPoints(
    ("model_printed", "variant", "platform"),
    "pair",
    {
        "throughput": "throughput",
        "base": "base_throughput",
        "task": "task",
        "model": "model",
        "base_model": "base_model",
    },
)


def summarise_framework(frames: Frames) -> str:
    """Describe the mean ratio of each two frameworks, what else differs, and what the pairs cover."""
    clean = select_usable(frames["framework_effect"])
    same = clean[clean["same_model"]]
    other = clean[~clean["same_model"]]
    means = [
        f"{_describe_ratio(rows)} for {framework} over {base} in {task}"
        for (task, framework, base), rows in same.groupby(["task", "framework", "base_framework"])
    ]
    return join_paragraphs(
        [f"The mean throughput ratio is {join_words(means)}."],
        [
            (
                f"These are geometric means over {len(same)} pairs of rows that differ in the"
                " framework, with test, machine, SDK, precision and batch size equal."
            ),
            *_compare_depths(same),
        ],
        [
            _describe_other_models(other),
            (
                f"The pairs cover {join_words(sorted(same['model'].unique()))} on "
                f"{join_words(sorted(same['platform'].unique()))}."
            ),
            (
                "The page prints most models in one framework, and a vendor tunes the programs of"
                " each framework separately. So this compares programs as shipped, not frameworks"
                " as such."
            ),
            describe_left_out(frames["framework_effect"], "pair"),
        ],
    )


def _compare_depths(same: pd.DataFrame) -> list[str]:
    """Describe each two frameworks whose programs keep different numbers of batches in flight."""
    known = same[same[["batches_in_flight", "base_batches_in_flight"]].notna().all(axis=1)]
    sentences = []
    for (framework, base), rows in known.groupby(["framework", "base_framework"]):
        fewer = rows["base_batches_in_flight"] < rows["batches_in_flight"]
        parts = [
            f"{_describe_ratio(part)} where {base} keeps {comparison} batches in flight"
            f" ({_describe_ends(part['base_batches_in_flight'])} against"
            f" {_describe_ends(part['batches_in_flight'])})"
            for comparison, part in (("fewer", rows[fewer]), ("more", rows[~fewer]))
            if len(part)
        ]
        sentences.append(f"{framework} over {base} is {join_words(parts)}.")
    if not sentences:
        return []
    source = "These numbers follow from throughput and latency, as no source prints them."
    return ["The programs differ in more than the framework.", *sentences, source]


def _describe_ends(depths: pd.Series) -> str:
    return " to ".join(dict.fromkeys((f"{depths.min():.1f}", f"{depths.max():.1f}")))


def _describe_other_models(other: pd.DataFrame) -> str:
    """Describe the pairs that ran two models under one name."""
    if other.empty:
        return ""
    columns = zip(
        other["model"],
        other["framework"],
        other["base_model"],
        other["base_framework"],
        strict=True,
    )
    covered = sorted(
        {
            f"{own} in {framework} and {base} in {base_in}"
            for own, framework, base, base_in in columns
        }
    )
    names = join_words(sorted(other["model_printed"].unique()))
    return (
        f"Excluded is {names} at {_describe_ratio(other)}, because this name covers"
        f" {join_words(covered)}."
    )


def draw_framework(alt: Any, frames: Frames) -> Any:
    """Draw each pair on one line; pairs of two models under one name are crossed out."""
    clean = select_usable(frames["framework_effect"])
    pair = clean["framework"] + " over " + clean["base_framework"]
    clean = clean.assign(pair=pair, different=~clean["same_model"])
    rows = clean.sort_values(
        ["different", "pair", "model_printed", "variant", "platform", "batch_size", "result_id"]
    )
    records = FRAMEWORK_POINTS.make(rows, ", SDK {sdk_version}, batch {batch_size:,}", "different")
    label = "Throughput over that of the other framework, log scale"
    ticks = [0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5]
    x = make_log_axis(alt, "X", "ratio", label, ticks, padding=12)
    title = make_title(
        alt,
        "One test, one machine, two frameworks",
        "Published rows equal in test, machine, SDK, precision and batch",
        "Crossed out: two different models under one name (rule R20)",
    )
    chart = build_ratio_chart(alt, records, x, "Frameworks", sorted(pair.unique()), 1.0)
    return apply_theme(chart.properties(title=title))


FRAMEWORK = Analysis(
    "framework_effect",
    "What does the framework cost on one machine?",
    ("framework_effect",),
    summarise_framework,
    draw_framework,
)

GENERATION_POINTS = RatioPoints(
    ("model", "variant", "framework", "bow_platform"),
    "chip_count",
    {"bow": "bow_throughput", "classic": "classic_throughput", "batch": "batch_size"},
    "bow_result_id",
)


def summarise_generations(frames: Frames) -> str:
    """Describe the mean of the matched pairs, by size, and what they cannot show."""
    pairs = frames["generations"]
    ratios = pairs["throughput_ratio"]
    bow, classic = (
        join_words(sorted(pairs[f"{machine}_sdk_version"].unique()))
        for machine in ("bow", "classic")
    )
    return join_paragraphs(
        [
            f"Bow has {compute_mean(ratios):.2f} times the throughput of the Classic machines, as a"
            f" geometric mean over {len(pairs)} matched pairs ({ratios.min():.2f} to"
            f" {ratios.max():.2f}), and its clock is {pairs['clock_ratio'].max():.2f} times as"
            " fast."
        ],
        [
            *_describe_sizes(pairs),
            (
                f"All {len(pairs)} pairs are {join_words(sorted(pairs['task'].unique()))} rows, Bow"
                f" with {bow} and Classic with {classic}."
            ),
        ],
        [
            (
                "A join on task, model and chips alone would pair other sequence lengths,"
                " frameworks and batch sizes, and compare these rather than machines."
            ),
            describe_left_out(frames[CONSIDERED]),
        ],
    )


def _describe_sizes(pairs: pd.DataFrame) -> list[str]:
    """Describe the mean of each number of chips, and their trend only where they fall with it."""
    groups = list(pairs.groupby("chip_count"))
    by_chips = [
        f"{compute_mean(rows['throughput_ratio']):.2f} on {chips} chips"
        f" ({describe_range(rows['throughput_ratio'])})"
        for chips, rows in groups
    ]
    sizes = (
        f"By size, the mean is {join_words(by_chips)}. Each pair has the same test, framework,"
        " precision, batch size, number of chips and item, and nearly the same SDK."
    )
    means = [compute_mean(rows["throughput_ratio"]) for _, rows in groups]
    if means != sorted(means, reverse=True):
        return [sizes]
    chips, last = groups[-1]
    return [
        sizes,
        (
            "The fewer the chips, the closer the gain comes to the ratio of the clocks. The rows"
            f" do not explain this, and {len(last)} pairs are too few to conclude it for {chips}"
            " chips."
        ),
    ]


def draw_generations(alt: Any, frames: Frames) -> Any:
    """Draw each matched pair next to the ratio of the clocks."""
    pairs = frames["generations"]
    clock = pairs["clock_ratio"].max()
    records = GENERATION_POINTS.make(
        pairs.sort_values(["chip_count", "throughput_ratio", "bow_result_id"])
    )
    x = alt.X(
        "ratio:Q",
        title="Throughput of Bow over Classic",
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(format=".2f", tickCount=6),
    )
    names = list(dict.fromkeys(record["series"] for record in records))
    title = make_title(
        alt,
        "Bow over Classic: throughput of matched rows",
        f"Dashed: the ratio of the clocks, {clock:.2f}. Published rows that are usable, no MLPerf",
    )
    chart = build_ratio_chart(alt, records, x, "Chips", names, clock)
    return apply_theme(chart.properties(title=title))


GENERATIONS = Analysis(
    "generations",
    "How much faster is Bow than the Classic machines?",
    ("generations",),
    summarise_generations,
    draw_generations,
    considered=f"{PRINTED} AND relationship = 'vendor' AND platform IN ({MACHINES})",
)
