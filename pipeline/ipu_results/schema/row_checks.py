"""Generate the pandera schema of a table, with checks over several columns of one row.

Only the checks import this: loading and querying need no pandera.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, partial, reduce
from typing import Any

import pandas as pd
import pandera.pandas as pandera
from pandera.errors import SchemaError

from ipu_results.schema import Column, Table, table
from ipu_results.schema.frames import frame_dtypes
from ipu_results.schema.vocabulary import load_vocabulary


@cache
def pandera_schema(table: Table) -> pandera.DataFrameSchema:
    """Return the table's schema: no coercion, no unknown column, the key unique.

    Pandera takes a millisecond a column, so a check looks at all columns with a limit of its kind.
    """
    dtypes = list(frame_dtypes(table).items())
    checks: dict[str, Callable[[pd.DataFrame], Any]] = {
        "columns": lambda frame: list(frame.dtypes.items()) == dtypes
    }
    for reason, (is_limited, find_beyond) in LIMITS.items():
        if limited := [column for column in table.columns if is_limited(column)]:
            checks[reason] = partial(_check_columns, limited, find_beyond)
    checks |= ROW_CHECKS.get(table.name, {})
    return pandera.DataFrameSchema(
        # Pandera would look for rows without any value, to ignore them.
        checks=[pandera.Check(check, name=name, ignore_na=False) for name, check in checks.items()],
        unique=list(table.key),
        name=table.name,
    )


def _check_columns(columns: Sequence[Column], find_beyond: FindBeyond, frame: pd.DataFrame) -> bool:
    """Raise SchemaError with the cells beyond a limit: pandera would list the other cells of their
    rows, too.
    """
    cells = []
    for column in columns:
        if column.name in frame and (beyond := find_beyond(frame[column.name], column)).any():
            values = frame.loc[beyond.fillna(False), column.name]
            cells.append(
                pd.DataFrame({"column": column.name, "failure_case": values, "index": values.index})
            )
    if cells:
        message = "a value is beyond the limits of its column"
        raise SchemaError(None, frame, message, pd.concat(cells))  # type: ignore[no-untyped-call]
    return True


def _find_out_of_range(values: pd.Series, column: Column) -> pd.Series[bool]:
    bounds = ((operator.lt, column.low), (operator.le, column.above), (operator.gt, column.high))
    return reduce(
        operator.or_, (compare(values, bound) for compare, bound in bounds if bound is not None)
    )


FindBeyond = Callable[[pd.Series, Column], "pd.Series[bool]"]

# By the reason to refuse a row: which columns have such a limit, and which values are beyond it. A
# null is within.
LIMITS: dict[str, tuple[Callable[[Column], bool], FindBeyond]] = {
    "missing-{}": (lambda column: column.required, lambda values, _: values.isna()),
    "{}-out-of-range": (
        lambda column: any(bound is not None for bound in (column.low, column.above, column.high)),
        _find_out_of_range,
    ),
    "{}-not-a-choice": (
        lambda column: bool(column.choices),
        lambda values, column: values.notna() & ~values.isin(column.choices),
    ),
    "{}-malformed": (
        lambda column: bool(column.pattern),
        lambda values, column: ~values.str.match(rf"(?:{column.pattern})\Z", na=True),
    ),
}

FIGURES = [column.name for column in table("results").as_filled().columns if column.figure]
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
        (
            frame["precision_printed"].map({name: pair[index] for name, pair in known.items()})
            == frame[column]
        ).fillna(False)
        for index, column in enumerate(names)
    ]
    other = ~frame["precision_printed"].isin(list(known)) & frame[[*names]].isna().all(axis=1)
    return (agree[0] & agree[1]) | other


def match_origin_and_place(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require a document for published, official and submitted rows, and a run for all others."""
    local = _is_local(frame)
    return (local & frame["run_id"].notna()) | (
        ~local & frame["document_id"].notna() & frame["run_id"].isna()
    )


def contain_latency(frame: pd.DataFrame) -> pd.Series[bool]:
    low = frame["latency_ms_low"]
    high = frame["latency_ms_high"]
    return ~((low > frame["latency_ms"]) | (high < frame["latency_ms"]))


def match_calibration(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require a calibration exactly for emulated rows."""
    return (frame["origin"] == "emulated") == frame["calibration_id"].notna()


def match_efficiency(frame: pd.DataFrame) -> pd.Series[bool]:
    """Require of a local row an efficiency exactly where it has a power: throughput over power."""
    computed = frame["throughput"] / frame["power_w"]
    efficiency = frame["efficiency"]
    agrees = _agree(efficiency, computed, EFFICIENCY_TOLERANCE) | (
        efficiency.isna() & computed.isna()
    )
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
