"""A printed MLPerf figure against the official record."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import findings, plain, told

SECONDS_PER_MINUTE = 60
INFO_WITHIN_MINUTES = 0.01
WARN_WITHIN_MINUTES = 0.1


def r12(data: Dataset) -> pd.DataFrame:
    """The printed time is not the official score, computed from the logs, rounded to the printed digits.

    The row's MLPerf id names the entry; where no official entry bears it, that is the finding.
    """
    rows = _printed(data).merge(_scores(data), on=["mlperf_id", "model"], how="left")
    unknown, known = rows[rows["minutes"].isna()], rows[rows["minutes"].notna()]
    known = known.assign(official=known["minutes"] * SECONDS_PER_MINUTE / known["factor"])
    known = known.assign(rounded=[_as_printed(*row) for row in zip(known["official"], known["raw_text"], strict=True)])
    differing = known[known["rounded"] != known["value"]]
    minutes_off = (differing["value"] - differing["official"]).abs() * differing["factor"] / SECONDS_PER_MINUTE
    template = "prints {value} {unit}; the logs of {path} give {official}, {rounded} to the printed digits"
    suggested = [plain(seconds) for seconds in differing["rounded"] * differing["factor"]]
    severity = [_severity(far) for far in minutes_off]
    missing = told("no official entry of {model} bears the id {mlperf_id}", unknown)
    return pd.concat(
        [
            findings("R12", severity, differing, "time_to_train_s", told(template, differing), suggested=suggested),
            findings("R12", "warn", unknown, "mlperf_id", missing),
        ]
    )


def _severity(minutes: float) -> str:
    if minutes <= INFO_WITHIN_MINUTES:
        return "info"
    return "warn" if minutes <= WARN_WITHIN_MINUTES else "error"


def _printed(data: Dataset) -> pd.DataFrame:
    """Published rows with an MLPerf id, and the printed time."""
    columns = ["result_id", "mlperf_id", "model"]
    rows = data.results.loc[(data.results["origin"] == "published") & data.results["mlperf_id"].notna(), columns]
    told_times = data.cells[data.cells["column_name"] == "time_to_train_s"]
    return rows.merge(told_times[["result_id", "raw_text", "value", "unit", "factor"]], on="result_id")


def _scores(data: Dataset) -> pd.DataFrame:
    entries = data.official.loc[data.official["minutes"].notna(), ["mlperf_id", "result_id", "minutes", "path"]]
    models = data.results[["result_id", "model"]]
    return entries[entries["mlperf_id"].notna()].merge(models, on="result_id").drop(columns="result_id")


def _as_printed(value: float, text: str) -> float:
    """`value` rounded to the digits behind the point of `text`."""
    step = Decimal(1).scaleb(-len(text.partition(".")[2]))
    return float(Decimal(value).quantize(step, ROUND_HALF_UP))
