"""Compare printed MLPerf figures with the official record."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import pandas as pd

from ipu_results.check.rules.dataset import Dataset
from ipu_results.check.rules.findings import build_flags, fill_template, format_figure

SECONDS_PER_MINUTE = 60
INFO_WITHIN_MINUTES = 0.01
WARN_WITHIN_MINUTES = 0.1


def flag_official_record(data: Dataset) -> pd.DataFrame:
    """Flag a printed time that is not the official score, computed from the logs and rounded to the printed digits.

    The row's MLPerf id names the entry. An id without an official entry is a finding of its own.
    """
    rows = _printed(data).merge(_scores(data), on=["mlperf_id", "model"], how="left")
    unknown, known = rows[rows["minutes"].isna()], rows[rows["minutes"].notna()]
    known = known.assign(official=known["minutes"] * SECONDS_PER_MINUTE / known["factor"])
    known = known.assign(
        rounded=[_round_as_printed(*row) for row in zip(known["official"], known["raw_text"], strict=True)]
    )
    differing = known[known["rounded"] != known["value"]]
    minutes_off = (differing["value"] - differing["official"]).abs() * differing["factor"] / SECONDS_PER_MINUTE
    template = "prints {value} {unit}; the logs of {path} give {official}, {rounded} to the printed digits"
    suggested = [format_figure(seconds) for seconds in differing["rounded"] * differing["factor"]]
    severity = [_severity(far) for far in minutes_off]
    missing = fill_template("no official entry of {model} bears the id {mlperf_id}", unknown)
    return pd.concat(
        [
            build_flags(
                "R12", severity, differing, "time_to_train_s", fill_template(template, differing), suggested=suggested
            ),
            build_flags("R12", "warn", unknown, "mlperf_id", missing),
        ]
    )


def _severity(minutes: float) -> str:
    if minutes <= INFO_WITHIN_MINUTES:
        return "info"
    return "warn" if minutes <= WARN_WITHIN_MINUTES else "error"


def _printed(data: Dataset) -> pd.DataFrame:
    """Return published rows with an MLPerf id, and the printed time."""
    columns = ["result_id", "mlperf_id", "model"]
    rows = data.results.loc[(data.results["origin"] == "published") & data.results["mlperf_id"].notna(), columns]
    printed_times = data.cells[data.cells["column_name"] == "time_to_train_s"]
    return rows.merge(printed_times[["result_id", "raw_text", "value", "unit", "factor"]], on="result_id")


def _scores(data: Dataset) -> pd.DataFrame:
    entries = data.official.loc[data.official["minutes"].notna(), ["mlperf_id", "result_id", "minutes", "path"]]
    models = data.results[["result_id", "model"]]
    return entries[entries["mlperf_id"].notna()].merge(models, on="result_id").drop(columns="result_id")


def _round_as_printed(value: float, text: str) -> float:
    """Round `value` to the decimals of `text`."""
    step = Decimal(1).scaleb(-len(text.partition(".")[2]))
    return float(Decimal(value).quantize(step, ROUND_HALF_UP))
