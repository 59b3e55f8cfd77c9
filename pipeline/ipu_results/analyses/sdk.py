"""One test on one machine with several releases of the vendor's SDK."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import Analysis, Frames, compute_mean, join_cells, join_paragraphs, join_words
from ipu_results.analyses.drawing import build_ratio_chart
from ipu_results.ground.charts import apply_theme, make_title

CLOSE = 0.01
TEST = ("model", "variant", "framework", "platform")


def summarise(frames: Frames) -> str:
    """Describe the gain from the oldest to the newest release, its extremes, and which rows there are."""
    rows = frames["sdk_effect"]
    newest = _select_newest(rows)
    ratios = newest["throughput_ratio"]
    close = ((ratios - 1).abs() <= CLOSE).sum()
    best, worst = newest.loc[ratios.idxmax()], newest.loc[ratios.idxmin()]
    return join_paragraphs(
        [
            f"The newest SDK release has {compute_mean(ratios):.3f} times the throughput of the oldest, as a geometric "
            f"mean over {len(newest)} tests that are printed with several releases and nothing else changed.",
        ],
        [
            f"Of these tests, {close} stay within {CLOSE:.0%}, {(ratios > 1 + CLOSE).sum()} gain more than {CLOSE:.0%} "
            f"and {(ratios < 1 - CLOSE).sum()} lose more than that.",
            f"The largest gain is {_describe_test(best)}. The largest loss is {_describe_test(worst)}.",
            f"By release, the mean is {_describe_steps(newest)}.",
        ],
        [
            f"All are {join_words(sorted(rows['task'].unique()))} rows on "
            f"{join_words(sorted(rows['platform'].unique()))}.",
            "No older page version with inference or Classic machines is available.",
            "Each figure is one printed number, so changes of a percent may be run-to-run spread.",
        ],
    )


def _select_newest(rows: pd.DataFrame) -> pd.DataFrame:
    """Select the row of the newest release of each test."""
    later = rows[rows["position"] > 1].sort_values("position", kind="stable")
    return later.drop_duplicates("oldest_result_id", keep="last").reset_index(drop=True)


def _describe_test(row: pd.Series) -> str:
    return (
        f"{row['throughput_ratio']:.2f} ({join_cells(row, *TEST)}: {row['oldest_throughput']:,.0f} items/s with "
        f"{row['oldest_sdk_version']}, {row['throughput']:,.0f} with {row['sdk_version']})"
    )


def _describe_steps(newest: pd.DataFrame) -> str:
    groups = newest.groupby(["oldest_sdk_version", "sdk_version"])["throughput_ratio"]
    steps = sorted(
        ((step, ratios) for step, ratios in groups if len(ratios) > 1), key=lambda group: [*map(_sort_key, group[0])]
    )
    return join_words(
        [f"{compute_mean(ratios):.3f} from {old} to {new} ({len(ratios)} tests)" for (old, new), ratios in steps]
    )


def _sort_key(release: str) -> tuple[bool, str]:
    """Return a key that sorts `Pre-SDK2.5`, the oldest release of Bow, before all others."""
    return not release.startswith("Pre-"), release


def build_chart(alt: Any, frames: Frames) -> Any:
    """Draw each test on one line, with a point per release."""
    rows = frames["sdk_effect"]
    order = _select_newest(rows).sort_values(["throughput_ratio", "result_id"], ascending=False)
    records = [
        {
            "label": join_cells(row, *TEST),
            "ratio": round(row["throughput_ratio"], 4),
            "series": row["sdk_version"],
            "oldest": row["oldest_sdk_version"],
            "throughput": row["throughput"],
            "batch": row["batch_size"],
            "crossed": False,
            "result_id": row["result_id"],
        }
        for first in order["oldest_result_id"]
        for row in rows[(rows["oldest_result_id"] == first)].sort_values("position").to_dict("records")
    ]
    x = alt.X("ratio:Q", title="Throughput over that of the oldest release", scale=alt.Scale(zero=False, nice=True))
    title = make_title(
        alt,
        "One test, one machine, several SDK releases",
        "Published training rows of all page versions; no MLPerf, no row with an error flag",
    )
    releases = sorted(rows["sdk_version"].unique(), key=_sort_key)
    return apply_theme(build_ratio_chart(alt, records, x, "SDK", releases, 1.0).properties(title=title))


ANALYSIS = Analysis(
    "sdk_effect", "What did newer SDK releases do to one machine's figures?", ("sdk_effect",), summarise, build_chart
)
