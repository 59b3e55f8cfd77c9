"""Checks over several columns of one row; each returns True for a row that holds."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from schema.results import FIGURES

RowCheck = Callable[[pd.DataFrame], "pd.Series[bool]"]


def no_figure(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame[list(FIGURES)].notna().any(axis=1)


def precision_bits(frame: pd.DataFrame) -> pd.Series[bool]:
    bits = frame["activation_bits"].astype("string") + "." + frame["weight_bits"].astype("string")
    return (bits == frame["precision"].astype("string")).fillna(
        frame["precision"].isna() & frame["activation_bits"].isna() & frame["weight_bits"].isna()
    )


def origin_place(frame: pd.DataFrame) -> pd.Series[bool]:
    """Published and official rows stand in a document, measured and emulated ones in a run."""
    local = frame["origin"].isin(["measured", "emulated"])
    return (local & frame["run_id"].notna()) | (~local & frame["document_id"].notna() & frame["run_id"].isna())


def latency_band(frame: pd.DataFrame) -> pd.Series[bool]:
    low, high = frame["latency_ms_low"], frame["latency_ms_high"]
    return ~((low > frame["latency_ms"]) | (high < frame["latency_ms"]))


def emulated_marked(frame: pd.DataFrame) -> pd.Series[bool]:
    """A row names its calibration exactly when it is emulated."""
    return (frame["origin"] == "emulated") == frame["calibration_id"].notna()


ROW_CHECKS: dict[str, dict[str, RowCheck]] = {
    "results": {
        "no_figure": no_figure,
        "precision_bits": precision_bits,
        "origin_place": origin_place,
        "latency_band": latency_band,
        "emulated_marked": emulated_marked,
    }
}
