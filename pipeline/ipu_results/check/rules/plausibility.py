"""What a row's figures imply of the machine, against what the machine can do. Where a limit is unknown, nothing."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import findings, rounded, told

FLOP_A_MAC = 2
TRAINING_PASSES = 3
GIGA_PER_TERA = 1000
NAMED = ("model", "platform", "framework")


def r21(data: Dataset) -> pd.DataFrame:
    """More FLOP/s than the peak of all the row's chips at its precision.

    Throughput times the multiply-accumulates of one inference, times FLOP_A_MAC, and times TRAINING_PASSES in training:
    forward, and twice as much backward. Only networks whose multiply-accumulates are counted for the printed variant.
    """
    rows = implied(data)
    rows = rows[rows["tflops"] > rows["peak"]]
    rows = rows.assign(
        passes=np.where(rows["task"] == "training", f" × {TRAINING_PASSES}", ""),
        tflops=rounded(rows["tflops"]),
        at=_precision(rows),
    )
    template = (
        f"{{tflops}} TFLOP/s: throughput {{throughput}} × {{gmacs}} GMAC of {{network}} × {FLOP_A_MAC}{{passes}}; "
        "the peak of {chip_count} × {chip} at {at} is {peak}"
    )
    return findings("R21", "error", rows, "throughput", told(template, rows))


def implied(data: Dataset) -> pd.DataFrame:
    """Published rows whose work and peak are known: `tflops` that the throughput implies, `peak` of all chips."""
    columns = ["result_id", "task", *NAMED, "variant", "chip", "chip_count", "precision", "compute_precision"]
    rows = data.published[[*columns, "throughput"]]
    rows = rows.assign(network=_networks(data, rows), variant=rows["variant"].fillna(""))
    rows = rows.merge(_work(data, rows), on=["network", "variant"], validate="m:1")
    rows = rows.assign(peak=_peaks(data, rows) * rows["chip_count"])
    passes = np.where(rows["task"] == "training", TRAINING_PASSES, 1)
    rows = rows.assign(tflops=rows["throughput"] * rows["gmacs"] * FLOP_A_MAC * passes / GIGA_PER_TERA)
    return rows[rows["peak"].notna() & rows["tflops"].notna()]


def _networks(data: Dataset, rows: pd.DataFrame) -> pd.Series:
    """The network that ran: that of the identity where a model's name stands for several."""
    known = pd.DataFrame([asdict(identity) for identity in data.identities], columns=[*NAMED, "network"])
    known = known.astype(rows["model"].dtype)
    return rows[list(NAMED)].merge(known, on=list(NAMED), how="left", validate="m:1")["network"].fillna(rows["model"])


def _work(data: Dataset, rows: pd.DataFrame) -> pd.DataFrame:
    known = [(network, variant, gmacs) for (network, variant), gmacs in data.work.items()]
    work = pd.DataFrame(known, columns=["network", "variant", "gmacs"])
    return work.astype({"network": rows["network"].dtype, "variant": rows["variant"].dtype, "gmacs": "float64"})


def _peaks(data: Dataset, rows: pd.DataFrame) -> pd.Series:
    """The peak of one chip at each row's precision."""
    machines = data.platforms.drop_duplicates("platform").set_index("platform")
    bound = _precision(rows).map(data.peaks)
    peak = pd.Series(np.nan, index=rows.index)
    for name in set(data.peaks.values()):
        peak = peak.where(bound != name, rows["platform"].map(machines[name]).astype("float64"))
    return peak


def _precision(rows: pd.DataFrame) -> pd.Series:
    return rows["precision"].fillna(rows["compute_precision"])


def r22(data: Dataset) -> pd.DataFrame:
    """More power than the machine is rated for: throughput over efficiency.

    One-sided, since no source tells what a machine draws at rest.
    """
    rows = data.published[["result_id", "platform", "throughput", "efficiency"]]
    ratings = data.platforms.drop_duplicates("platform").set_index("platform")["rated_power_w"]
    rated = rows["platform"].map(ratings).astype("float64")
    rows = rows.assign(power=rows["throughput"] / rows["efficiency"], rated=rated)
    rows = rows[rows["power"] > rows["rated"]]
    rows = rows.assign(power=rows["power"].round(1))
    template = "{power} W: throughput {throughput} / efficiency {efficiency}; {platform} is rated {rated} W"
    return findings("R22", "warn", rows, "efficiency", told(template, rows))
