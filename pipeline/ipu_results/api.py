"""Load and query the dataset from Python."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.parquet as pq

from ipu_results._util.resources import DATASET
from ipu_results._util.sql import run_query
from ipu_results._util.version import read_version
from ipu_results.errors import QueryError
from ipu_results.schema import TABLES, VIEWS, quote
from ipu_results.store.files import BUILD_ID, get_parquet_name
from ipu_results.store.query import connect_warehouse, open_warehouse, read_build_id


def load(
    table: str = "results",
    *,
    columns: Iterable[str] | None = None,
    warehouse: str | Path | None = None,
    **filters: Any,
) -> pd.DataFrame:
    """Load a table or view of the dataset.

    A filter is a column with the value, or the list of values, that its rows must have; `None` means null:
    `load("results", platform="IPU-M2000", batch_size=[4, 8])`. Units are in the table `columns`. `df.attrs` holds the
    name of the table, the version of the dataset and the id of its build. Without `warehouse` it is the dataset that
    came with the package.

    Raises QueryError for an unknown table or column, WarehouseError if `warehouse` holds no dataset.
    """
    folder = DATASET if warehouse is None else Path(warehouse)
    names = {published.name: list(published.names) for published in TABLES}
    names |= {view.name: [column.name for column in view.columns] for view in VIEWS}
    if table not in names:
        raise QueryError(f"there is no table or view {table!r}; choose from: {', '.join(names)}")
    selected = names[table] if columns is None else list(columns)
    if unknown := [name for name in (*selected, *filters) if name not in names[table]]:
        raise QueryError(f"{table} has no column {unknown[0]!r}; it has: {', '.join(names[table])}")
    build_id = read_build_id(folder)
    if any(published.name == table for published in TABLES):
        frame = pq.read_table(folder / get_parquet_name(table), columns=[*{*selected, *filters}]).to_pandas()
    else:
        source = next(view.source for view in VIEWS if view.name == table)
        with open_warehouse(folder) as connection:
            frame = run_query(connection, f"FROM {source}").to_pandas()
    for name, value in filters.items():
        frame = frame[_matches(frame[name], value)]
    frame = frame[selected].reset_index(drop=True)
    frame.attrs = {"table": table, "dataset_version": read_version(), BUILD_ID: build_id}
    return frame


def _matches(column: pd.Series[Any], value: Any) -> pd.Series[bool]:
    values = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
    present = [item for item in values if item is not None]
    return column.isin(present) | (column.isna() & (None in values))


def connect(warehouse: str | Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open a read-only DuckDB connection to the dataset, with its views and macros. Close it when you are done.

    Without `warehouse` it is the dataset that came with the package. Raises WarehouseError if there is none.
    """
    return connect_warehouse(DATASET if warehouse is None else Path(warehouse))


def provenance(result_id: str, *, warehouse: str | Path | None = None) -> pd.DataFrame:
    """Return where each figure of a result was printed: text, unit, factor, document and locator, a row per figure.

    Raises QueryError for an unknown result.
    """
    with open_warehouse(DATASET if warehouse is None else Path(warehouse)) as connection:
        where = f"result_id = {quote(result_id)}"
        if not run_query(connection, f"FROM results WHERE {where}").num_rows:
            raise QueryError(f"there is no result {result_id!r}")
        return run_query(connection, f"FROM provenance WHERE {where}").to_pandas()


def claims(*, warehouse: str | Path | None = None, **filters: Any) -> pd.DataFrame:
    """Load the claims with their verdicts; a filter is a column with its value, as in `load`."""
    return load("claims", warehouse=warehouse, **filters)
