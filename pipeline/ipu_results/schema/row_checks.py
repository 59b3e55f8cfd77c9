"""Checks over several columns of one row; each returns True for a row that holds."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from ipu_results.schema.definitions import table

FIGURES = [column.name for column in table("results").columns if column.figure]
EFFICIENCY_WITHIN = 1e-9
AMORTISED_WITHIN = 1e-6

RowCheck = Callable[[pd.DataFrame], "pd.Series[bool]"]


def no_figure(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame[FIGURES].notna().any(axis=1)


def precision_bits(frame: pd.DataFrame) -> pd.Series[bool]:
    bits = frame["activation_bits"].astype("string") + "." + frame["weight_bits"].astype("string")
    return (bits == frame["precision"].astype("string")).fillna(
        frame["precision"].isna() & frame["activation_bits"].isna() & frame["weight_bits"].isna()
    )


def origin_place(frame: pd.DataFrame) -> pd.Series[bool]:
    """Published and official rows stand in a document, measured and emulated ones in a run."""
    local = _local(frame)
    return (local & frame["run_id"].notna()) | (~local & frame["document_id"].notna() & frame["run_id"].isna())


def latency_band(frame: pd.DataFrame) -> pd.Series[bool]:
    low, high = frame["latency_ms_low"], frame["latency_ms_high"]
    return ~((low > frame["latency_ms"]) | (high < frame["latency_ms"]))


def emulated_marked(frame: pd.DataFrame) -> pd.Series[bool]:
    """A row names its calibration exactly when it is emulated."""
    return (frame["origin"] == "emulated") == frame["calibration_id"].notna()


def _local(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame["origin"].isin(["measured", "emulated"])


def _agrees(one: pd.Series[float], other: pd.Series[float], within: float) -> pd.Series[bool]:
    return (one / other - 1).abs() <= within


def local_efficiency(frame: pd.DataFrame) -> pd.Series[bool]:
    """A local row has an efficiency exactly where it has a power, and it is throughput over power."""
    computed = frame["throughput"] / frame["power_w"]
    alike = _agrees(frame["efficiency"], computed, EFFICIENCY_WITHIN) | (frame["efficiency"].isna() & computed.isna())
    return ~_local(frame) | alike


def local_latency(frame: pd.DataFrame) -> pd.Series[bool]:
    """An amortised latency of a local row times its throughput is its batch."""
    items = frame["latency_ms"] / 1000 * frame["throughput"]
    alike = _agrees(items, frame["batch_size"].astype("float64"), AMORTISED_WITHIN)
    return ~(_local(frame) & (frame["latency_kind"] == "amortised")) | alike


def interval_measured(frame: pd.DataFrame) -> pd.Series[bool]:
    """A coverage is that of an interval, never of an emulated band."""
    interval = frame["latency_ms_low"].notna() & frame["latency_ms_high"].notna()
    return frame["interval_confidence"].isna() | (interval & (frame["origin"] != "emulated"))


def local_latency_kind(frame: pd.DataFrame) -> pd.Series[bool]:
    """A local row says how its latency was taken exactly where it has one."""
    return ~_local(frame) | (frame["latency_ms"].notna() == frame["latency_kind"].notna())


def local_power(frame: pd.DataFrame) -> pd.Series[bool]:
    """A local row says what its power covers exactly where it has one."""
    return ~_local(frame) | (frame["power_w"].notna() == frame["power_scope"].notna())


def run_times(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame["started_at"] <= frame["finished_at"]


ROW_CHECKS: dict[str, dict[str, RowCheck]] = {
    "results": {
        "no_figure": no_figure,
        "precision_bits": precision_bits,
        "origin_place": origin_place,
        "latency_band": latency_band,
        "emulated_marked": emulated_marked,
        "interval_measured": interval_measured,
        "local_efficiency": local_efficiency,
        "local_latency": local_latency,
        "local_latency_kind": local_latency_kind,
        "local_power": local_power,
    },
    "runs": {"run_times": run_times},
}
