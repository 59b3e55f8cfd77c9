"""Compare what a row implies with what the machine can do and with the official record.

Unknown limits flag nothing.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pandas as pd

from ipu_results.check.rules.dataset import Dataset, build_flags, format_figure, round_figures
from ipu_results.check.rules.identity import find_networks
from ipu_results.ground.physics import (
    FLOP_PER_MAC,
    SECONDS_PER_MINUTE,
    TRAINING_PASSES,
    compute_power_w,
    compute_tflops,
    count_passes,
)

OF_CHIPS = ("device", "board")
OF_MACHINE = "machine"
# one of the two dies of a chip; no source rates one, and it draws no more than the whole chip
DIE = " GCD"
# in the conditions: the power is that of one chip, whatever their number
OF_ONE_CHIP = r"(?i)\bper (?:IPU|GPU|GCD)\b"


def flag_flops_above_peak(data: Dataset) -> pd.DataFrame:
    """Flag more FLOP/s than the peak of all the row's chips at its precision.

    FLOP/s are throughput × multiply-accumulates of one inference × FLOP_PER_MAC, in training also ×
    TRAINING_PASSES (forward, and twice as much backward). Only networks with counted operations for
    the printed variant are checked.
    """
    rows = compute_implied_work(data)
    rows = rows[rows["tflops"] > rows["peak"]]
    rows = rows.assign(
        passes=np.where(rows["task"] == "training", f" × {TRAINING_PASSES}", ""),
        tflops=round_figures(rows["tflops"]),
        at=rows["precision_printed"],
    )
    template = (
        "{tflops} TFLOP/s: throughput {throughput} × {gmacs} GMAC of {model} ×"
        f" {FLOP_PER_MAC}{{passes}}; the peak of {{chip_count}} × {{chip}} at {{at}} is {{peak}}"
    )
    return build_flags("R21", "error", rows, "throughput", template)


def compute_implied_work(data: Dataset) -> pd.DataFrame:
    """Return the published rows with known work and peak: implied `tflops`, and `peak` of all
    chips.
    """
    columns = [
        "result_id",
        "task",
        "platform",
        "variant",
        "chip",
        "chip_count",
        "precision_printed",
    ]
    rows = data.published[[*columns, "throughput"]].assign(
        model=data.compute_once(find_networks)["model"]
    )
    rows = rows[
        rows["throughput"].notna()
        & rows["model"].isin([network for network, _ in data.vocabulary.gmacs])
    ]
    rows = rows.assign(variant=rows["variant"].fillna(""))
    known = [(*place, gmacs) for place, gmacs in data.vocabulary.gmacs.items()]
    work = pd.DataFrame(known, columns=["model", "variant", "gmacs"])
    work = work.astype(
        {"model": rows["model"].dtype, "variant": rows["variant"].dtype, "gmacs": "float64"}
    )
    rows = rows.merge(work, on=["model", "variant"], validate="m:1")
    rows = rows.assign(peak=_find_peaks(data, rows) * rows["chip_count"])
    passes = rows["task"].map(count_passes).astype("int64")  # of no rows, `map` makes texts
    rows = rows.assign(tflops=compute_tflops(rows["throughput"], rows["gmacs"], passes))
    return rows[rows["peak"].notna() & rows["tflops"].notna()]


def _find_peaks(data: Dataset, rows: pd.DataFrame) -> pd.Series:
    """Return the peak of one chip at each row's precision."""
    machines = data.platforms.drop_duplicates("platform").set_index("platform")
    bound = rows["precision_printed"].map(data.vocabulary.peaks)
    peak = pd.Series(np.nan, index=rows.index)
    for name in set(data.vocabulary.peaks.values()):
        peak = peak.where(bound != name, rows["platform"].map(machines[name]).astype("float64"))
    return peak


def flag_suspect(data: Dataset) -> pd.DataFrame:
    """Flag a point that its sweep calls suspect, such as for a machine that was disturbed while it ran."""
    rows = data.results.loc[data.results["suspect"].notna(), ["result_id", "suspect"]]
    return build_flags("R47", "warn", rows, "throughput", "{suspect}")


def flag_power_above_rating(data: Dataset) -> pd.DataFrame:
    """Flag more power, throughput over efficiency, than the machine is rated for.

    The rule is one-sided, since no source says what a machine draws at rest.
    """
    rows = data.published[["result_id", "platform", "throughput", "efficiency", "rated_power_w"]]
    rows = rows.assign(power=compute_power_w(rows["throughput"], rows["efficiency"]))
    rows = rows[rows["power"] > rows["rated_power_w"]]
    rows = rows.assign(power=rows["power"].round(1))
    template = (
        "{power} W: throughput {throughput} / efficiency {efficiency}; {platform} is rated"
        " {rated_power_w} W"
    )
    return build_flags("R22", "warn", rows, "efficiency", template)


LEAST_POWER = (
    0.1  # of the rating of one chip: a convention, since no source says what a chip draws at rest
)


def flag_power_below_rating(data: Dataset) -> pd.DataFrame:
    """Flag less power, throughput over efficiency, than LEAST_POWER of the rating of one chip, or
    of the machine.

    The least in the record is half of a rating. A unit of efficiency that is mistaken is off by
    1000.
    """
    rows = data.published[["result_id", "chip", "throughput", "efficiency", "rated_power_w"]]
    rows = rows[rows["throughput"].notna() & rows["efficiency"].notna()]
    rated = rows["chip"].str.removesuffix(DIE).map(data.vocabulary.chip_ratings).astype("float64")
    rows = rows.assign(
        power=compute_power_w(rows["throughput"], rows["efficiency"]),
        rated=rated.fillna(rows["rated_power_w"]),
    )
    rows = rows[(rows["power"] > 0) & (rows["power"] < LEAST_POWER * rows["rated"])]
    template = (
        "{power:3} W: throughput {throughput} / efficiency {efficiency}; {chip} is rated {rated} W"
        " and does not draw so little at work: read the unit of the efficiency again"
    )
    return build_flags("R42", "error", rows, "efficiency", template)


def flag_power_above_scope(data: Dataset) -> pd.DataFrame:
    """Flag more power than the chips or the machine that `power_scope` names are rated for.

    The power is the printed one, else throughput × energy per item, else throughput / efficiency.
    Energy of chips or cards is compared with the rating of one chip × chips, or of one where the
    conditions say that it is of each chip. A die is compared with the whole chip. A row without a
    scope, or without a rating, is not checked.
    """
    rows = data.published[
        """
        result_id chip chip_count throughput efficiency energy_per_item_j power_w power_scope rated_power_w conditions
        """.split()
    ].rename(columns={"power_scope": "scope"})
    rows = rows[rows["scope"].notna()]
    each = rows["conditions"].str.contains(OF_ONE_CHIP, na=False, regex=True)
    rows["chip_count"] = rows["chip_count"].mask(each & rows["scope"].isin(OF_CHIPS), 1)
    whole = rows["chip"].str.removesuffix(DIE)
    of_chips = whole.map(data.vocabulary.chip_ratings).astype("float64") * rows["chip_count"]
    of_machine = rows["rated_power_w"].where(rows["scope"] == OF_MACHINE)
    rated = of_chips.where(rows["scope"].isin(OF_CHIPS), of_machine)
    readings = {
        "power_w": (rows["power_w"], "printed"),
        "energy_per_item_j": (
            rows["throughput"] * rows["energy_per_item_j"],
            "throughput {throughput} × {energy_per_item_j} J an item",
        ),
        "efficiency": (
            compute_power_w(rows["throughput"], rows["efficiency"]),
            "throughput {throughput} / efficiency {efficiency}",
        ),
    }
    flags = []
    for column, (power, how) in readings.items():
        above = rows.assign(power=power, rated=rated)[power > rated]
        above = above.assign(
            power=round_figures(above["power"]),
            efficiency=above["efficiency"].astype("float64").map("{:.4g}".format),
        )
        die = np.where(
            above["chip"].str.endswith(DIE).fillna(False), ", whole chips of two dies each", ""
        )
        above = above.assign(die=die)
        template = (
            f"{{power}} W: {how}; {{chip_count}} × {{chip}} (power of {{scope}}{{die}}) are rated"
            " {rated} W"
        )
        flags.append(build_flags("R29", "error", above, column, template))
    return pd.concat(flags, ignore_index=True).drop_duplicates("result_id")


INFO_WITHIN_MINUTES = 0.01
WARN_WITHIN_MINUTES = 0.1


def flag_official_record(data: Dataset) -> pd.DataFrame:
    """Flag a printed time that is not the official score, computed from the logs and rounded to the
    printed digits.

    The row's MLPerf id names the entry. An id without an official entry is a finding of its own,
    and so is a machine with another number of chips than the entry's.
    """
    named = data.results["origin"].eq("published") & data.results["mlperf_id"].notna()
    rows = data.results.loc[named, ["result_id", "mlperf_id", "model_printed", "chip_count"]]
    columns = ["mlperf_id", "result_id", "minutes", "path", "chip_count"]
    official = data.official.loc[data.official["mlperf_id"].isin(rows["mlperf_id"]), columns]
    machines = official[["mlperf_id", "chip_count"]].dropna().drop_duplicates("mlperf_id")
    machines = rows.merge(machines, on="mlperf_id", suffixes=("", "_official"))
    unequal = machines["chip_count"] != machines["chip_count_official"]
    machines = machines[unequal.fillna(False)]
    scores = official[official["minutes"].notna()].drop(columns="chip_count")
    models = data.results.loc[
        data.results["result_id"].isin(scores["result_id"]), ["result_id", "model_printed"]
    ]
    scores = scores.merge(models, on="result_id").drop(columns="result_id")
    times = (data.cells["column_name"] == "time_to_train_s") & data.cells["result_id"].isin(
        rows["result_id"]
    )
    rows = rows.merge(
        data.cells.loc[times, ["result_id", "raw_text", "value", "unit", "factor"]], on="result_id"
    )
    rows = rows.merge(scores, on=["mlperf_id", "model_printed"], how="left")
    unknown = rows[rows["minutes"].isna()]
    known = rows[rows["minutes"].notna()]
    known = known.assign(official=known["minutes"] * SECONDS_PER_MINUTE / known["factor"])
    known = known.assign(
        rounded=[
            _round_as_printed(*row)
            for row in zip(known["official"], known["raw_text"], strict=True)
        ]
    )
    differing = known[known["rounded"] != known["value"]]
    minutes_off = (
        (differing["value"] - differing["official"]).abs()
        * differing["factor"]
        / SECONDS_PER_MINUTE
    )
    template = (
        "prints {value} {unit}; the logs of {path} give {official}, {rounded} to the printed digits"
    )
    suggested = [format_figure(seconds) for seconds in differing["rounded"] * differing["factor"]]
    is_near = [minutes_off <= INFO_WITHIN_MINUTES, minutes_off <= WARN_WITHIN_MINUTES]
    severity = np.select(is_near, ["info", "warn"], "error")
    unlike = (
        "prints a machine of {chip_count} chips; the official entry {mlperf_id} has"
        " {chip_count_official}"
    )
    missing = "no official entry of {model_printed} bears the id {mlperf_id}"
    return pd.concat(
        [
            build_flags(
                "R12", severity, differing, "time_to_train_s", template, suggested=suggested
            ),
            build_flags("R12", "warn", unknown, "mlperf_id", missing),
            build_flags("R12", "error", machines, "chip_count", unlike),
        ]
    )


def _round_as_printed(value: float, text: str) -> float:
    """Round `value` to the decimals of `text`."""
    step = Decimal(1).scaleb(-len(text.partition(".")[2]))
    return float(Decimal(value).quantize(step, ROUND_HALF_UP))
