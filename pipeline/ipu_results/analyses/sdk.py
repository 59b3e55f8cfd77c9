"""One test on one machine under several releases of the vendor's software."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ipu_results.analyses.analysis import Analysis, Frames
from ipu_results.analyses.look import finished, titled
from ipu_results.analyses.strip import strip
from ipu_results.analyses.words import label, listed, mean

CLOSE = 0.01
TEST = ("model", "variant", "framework", "platform")


def told(frames: Frames) -> str:
    rows = frames["sdk_effect"]
    newest = _newest(rows)
    ratios = newest["throughput_ratio"]
    close = ((ratios - 1).abs() <= CLOSE).sum()
    best, worst = newest.loc[ratios.idxmax()], newest.loc[ratios.idxmin()]
    return " ".join(
        [
            f"{len(newest)} tests stand on the page with two or more releases and nothing else changed; the newest "
            f"release gives {mean(ratios):.3f} times the oldest's throughput as a geometric mean, and {close} of them "
            f"stay within {CLOSE:.0%}.",
            f"The largest gain is {_said(best)}, the largest loss {_said(worst)}.",
            f"By release the mean is {_steps(newest)}.",
            f"So newer releases gave {(ratios > 1 + CLOSE).sum()} tests more than {CLOSE:.0%} and took more than that "
            f"from {(ratios < 1 - CLOSE).sum()}.",
            f"All are {listed(sorted(rows['task'].unique()))} rows on {listed(sorted(rows['platform'].unique()))}: "
            "no older page version with inference or Classic machines is at hand, and each figure is one printed "
            "number, so changes of a percent may be run to run.",
        ]
    )


def _newest(rows: pd.DataFrame) -> pd.DataFrame:
    """The row of the newest release of each test."""
    later = rows[rows["position"] > 1].sort_values("position", kind="stable")
    return later.drop_duplicates("oldest_result_id", keep="last").reset_index(drop=True)


def _said(row: pd.Series) -> str:
    return (
        f"{row['throughput_ratio']:.2f} ({label(row, *TEST)}: {row['oldest_throughput']:,.0f} items/s with "
        f"{row['oldest_sdk_version']}, {row['throughput']:,.0f} with {row['sdk_version']})"
    )


def _steps(newest: pd.DataFrame) -> str:
    groups = newest.groupby(["oldest_sdk_version", "sdk_version"])["throughput_ratio"]
    steps = sorted(((step, of) for step, of in groups if len(of) > 1), key=lambda found: tuple(map(_age, found[0])))
    return listed([f"{mean(of):.3f} from {old} to {new} ({len(of)} tests)" for (old, new), of in steps])


def _age(release: str) -> tuple[bool, str]:
    """Sorts releases; what came before 2.5 is the oldest that Bow ran."""
    return not release.startswith("Pre-"), release


def chart(alt: Any, frames: Frames) -> Any:
    rows = frames["sdk_effect"]
    order = _newest(rows).sort_values(["throughput_ratio", "result_id"], ascending=False)
    records = [
        {
            "label": label(row, *TEST),
            "ratio": round(row["throughput_ratio"], 4),
            "series": row["sdk_version"],
            "oldest": row["oldest_sdk_version"],
            "throughput": row["throughput"],
            "batch": row["batch_size"],
            "crossed": False,
        }
        for first in order["oldest_result_id"]
        for row in rows[(rows["oldest_result_id"] == first)].sort_values("position").to_dict("records")
    ]
    x = alt.X("ratio:Q", title="Throughput over that of the oldest release", scale=alt.Scale(zero=False, nice=True))
    title = titled(
        alt,
        "One test, one machine, several SDK releases",
        "Published training rows of all page versions; no MLPerf, no row with an error flag",
    )
    releases = sorted(rows["sdk_version"].unique(), key=_age)
    return finished(strip(alt, records, x, "SDK", releases, 1.0).properties(title=title))


ANALYSIS = Analysis(
    "sdk_effect", "What did newer SDK releases do to one machine's figures?", ("sdk_effect",), told, chart
)
