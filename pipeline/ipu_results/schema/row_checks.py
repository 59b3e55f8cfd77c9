"""Generate the pandera schema of a table, with checks over several columns of one row.

Only the checks import this: loading and querying need no pandera.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
import pandera.pandas as pandera

from ipu_results.schema import Column, Table, table
from ipu_results.schema.frames import frame_dtypes
from ipu_results.schema.vocabulary import load_vocabulary


@cache
def pandera_schema(table: Table) -> pandera.DataFrameSchema:
    """Return the table's schema: no coercion, no unknown column, the key unique.

    Pandera takes a millisecond a column, so names and dtypes of all columns are one check, and only a column with a
    limit on its values is checked on its own.
    """
    dtypes = list(frame_dtypes(table).items())
    checks: dict[str, Callable[[pd.DataFrame], Any]] = {"columns": lambda frame: list(frame.dtypes.items()) == dtypes}
    checks |= ROW_CHECKS.get(table.name, {})
    columns = {column.name: _list_checks(column) for column in table.columns}
    return pandera.DataFrameSchema(
        {
            column.name: pandera.Column(None, columns[column.name], nullable=not column.required)
            for column in table.columns
            if columns[column.name] or column.required
        },
        checks=[pandera.Check(check, name=name) for name, check in checks.items()],
        unique=list(table.key),
        name=table.name,
    )


def _list_checks(column: Column) -> list[pandera.Check]:
    bounds: list[tuple[Any, Any]] = [
        (pandera.Check.ge, column.low),
        (pandera.Check.gt, column.above),
        (pandera.Check.le, column.high),
        (pandera.Check.isin, list(column.choices) if column.choices else None),
        (pandera.Check.str_matches, rf"(?:{column.pattern})\Z" if column.pattern else None),
    ]
    return [check(bound) for check, bound in bounds if bound is not None]


FIGURES = [column.name for column in table("results").columns if column.figure]
EFFICIENCY_TOLERANCE = 1e-9
AMORTISED_TOLERANCE = 1e-6
SUBMITTED_TABLE = "independent_results"  # the table of a bundle that a user handed in

RowCheck = Callable[[pd.DataFrame], "pd.Series[bool]"]


def has_figure(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame[FIGURES].notna().any(axis=1)


def match_precision_bits(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require the bits that the vocabulary has for the printed precision, and none without one."""
    known = load_vocabulary().precision_bits
    names = ("activation_bits", "weight_bits")
    agree = [
        (frame["precision"].map({name: pair[index] for name, pair in known.items()}) == frame[column]).fillna(False)
        for index, column in enumerate(names)
    ]
    blank = frame[["precision", *names]].isna().all(axis=1)
    return (agree[0] & agree[1]) | blank


def match_origin_and_place(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require a document for published, official and submitted rows, and a run for all others."""
    local = _is_local(frame)
    return (local & frame["run_id"].notna()) | (~local & frame["document_id"].notna() & frame["run_id"].isna())


def contain_latency(frame: pd.DataFrame) -> pd.Series[bool]:
    low, high = frame["latency_ms_low"], frame["latency_ms_high"]
    return ~((low > frame["latency_ms"]) | (high < frame["latency_ms"]))


def match_calibration(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require a calibration exactly for emulated rows."""
    return (frame["origin"] == "emulated") == frame["calibration_id"].notna()


def match_efficiency(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require of a local row an efficiency exactly where it has a power: throughput over power."""
    computed = frame["throughput"] / frame["power_w"]
    efficiency = frame["efficiency"]
    agrees = _agree(efficiency, computed, EFFICIENCY_TOLERANCE) | (efficiency.isna() & computed.isna())
    return ~_is_local(frame) | agrees


def match_amortised_latency(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require that the amortised latency of a local row times its throughput is its batch."""
    items = frame["latency_ms"] / 1000 * frame["throughput"]
    agrees = _agree(items, frame["batch_size"].astype("float64"), AMORTISED_TOLERANCE)
    return ~(_is_local(frame) & (frame["latency_kind"] == "amortised")) | agrees


def match_interval(frame: pd.DataFrame) -> pd.Series[bool]:
    """Allow a coverage only with an interval, never with an emulated band."""
    interval = frame["latency_ms_low"].notna() & frame["latency_ms_high"].notna()
    return frame["interval_confidence"].isna() | (interval & (frame["origin"] != "emulated"))


def match_latency_kind(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require of a local row how its latency was measured exactly where it has one."""
    return ~_is_local(frame) | (frame["latency_ms"].notna() == frame["latency_kind"].notna())


def match_power_scope(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require of a local row what its power covers exactly where it has one."""
    return ~_is_local(frame) | (frame["power_w"].notna() == frame["power_scope"].notna())


def order_run_times(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame["started_at"] <= frame["finished_at"]


def _is_local(frame: pd.DataFrame) -> pd.Series[bool]:
    return frame["origin"].isin(["measured", "emulated"]) & ~_is_submitted(frame)


def _is_submitted(frame: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows were measured by a user: they have a document and no run here."""
    in_table = (frame["table_name"] == SUBMITTED_TABLE).fillna(False)
    return (frame["origin"] == "measured") & frame["run_id"].isna() & in_table


def _agree(first: pd.Series[float], second: pd.Series[float], tolerance: float) -> pd.Series[bool]:
    return (first / second - 1).abs() <= tolerance


ROW_CHECKS: dict[str, dict[str, RowCheck]] = {
    "results": {
        "no_figure": has_figure,
        "precision_bits": match_precision_bits,
        "origin_place": match_origin_and_place,
        "latency_band": contain_latency,
        "emulated_marked": match_calibration,
        "interval_measured": match_interval,
        "local_efficiency": match_efficiency,
        "local_latency": match_amortised_latency,
        "local_latency_kind": match_latency_kind,
        "local_power": match_power_scope,
    },
    "runs": {"run_times": order_run_times},
}
