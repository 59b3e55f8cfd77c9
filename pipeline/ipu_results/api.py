"""Load and query the dataset from Python."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import (
    is_bool_dtype,
    is_datetime64_any_dtype,
    is_numeric_dtype,
    is_string_dtype,
)

from ipu_results.errors import QueryError
from ipu_results.kit.extras import import_extra
from ipu_results.kit.files import DATASET, read_version
from ipu_results.kit.renamed import describe_column, describe_relation
from ipu_results.kit.sql import run_query
from ipu_results.kit.text import find_nearest_words
from ipu_results.record.store.files import BUILD_ID, get_parquet_name
from ipu_results.record.store.query import (
    check_build_id,
    connect_warehouse,
    open_warehouse,
    read_build_id,
    read_one_build,
    read_parquet,
    read_view,
)
from ipu_results.schema import DETAIL, TABLES, VIEWS, Table, View, quote
from ipu_results.schema.frames import DataFrame

if TYPE_CHECKING:
    import pandera.pandas as pandera

MAX_NAMES = 50  # in an error message
TIMES = ("date", "timestamp")
DATETIME = "datetime64[us]"  # as a frame of a DuckDB query has it


def load(
    table: str = "results",
    *,
    columns: Iterable[str] | None = None,
    warehouse: str | Path | None = None,
    **filters: Any,
) -> DataFrame:
    """Load a table or view of the dataset.

    `table` is its name; one in the schema `detail` needs no prefix. A filter is a column with the
    value, or the list of values, that its rows must have; `None` means null:
    `load("results", platform="IPU-M2000", batch_size=[4, 8], usable=True)`. `usable` rows are those
    that may be ranked. Units are in the table `columns`. Dates are datetime64.
    `df.attrs` holds the name of the table, the version of the dataset and the id of its build.
    Without `warehouse` it is the dataset that came with the package.

    Raises `ipu_results.errors.QueryError` for an unknown table or column, for a filter of another
    type than its column, and for a text that no row of a text column has; WarehouseError if
    `warehouse` holds no dataset.
    """
    relation = _find_relation(table)
    if columns is None:
        columns = relation.names
    elif isinstance(columns, str):
        columns = [columns]
    selected = list(columns)
    needed = list(dict.fromkeys([*selected, *filters]))
    for name in needed:
        if name not in relation.names:
            hint = describe_column(name, relation.name, relation.names)
            hint = hint or _suggest(name, relation.names)
            raise QueryError(f"{relation.name} has no column {name!r}; {hint}")
    rows, build_id = read_one_build(
        _choose_folder(warehouse), lambda folder: _read_rows(folder, relation, needed)
    )
    frame = rows.to_pandas()
    for column in relation.columns:
        # pandas cannot resample or join by dates of Arrow
        if column.name in frame and column.kind in TIMES:
            frame[column.name] = frame[column.name].astype(DATETIME)
    keep = np.ones(len(frame), dtype=bool)
    for name, value in filters.items():
        keep &= _match(frame[name], value)
    chosen = DataFrame(frame[keep][selected].reset_index(drop=True))
    chosen.attrs = {"table": relation.name, "dataset_version": read_version(), BUILD_ID: build_id}
    return chosen


def pandera_schema(table: str = "results") -> pandera.DataFrameSchema:
    """Return the pandera schema of a table or view, to check a frame of your own.

    It has the columns, key and limits that `ingest` checks before it publishes a row. `table` is a
    name as in `load`. The dtypes are `str`, `Int64`, `float64`, `boolean` and `datetime64[ns]`.
    `validate` converts a frame to them where no value changes, and returns it: a frame of `load`,
    of `pandas.read_parquet` or of your own. It adds a column that may be null and is missing, and
    refuses an unknown one. With `lazy=True` its error lists all failures. `to_yaml()` returns the
    schema as text.

    Raises `ipu_results.errors.QueryError` for an unknown table.
    """
    schemas = import_extra("ipu_results.schema.pandera_schemas")
    relation = _find_relation(table)
    rows = relation.file_table if isinstance(relation, View) else relation
    schema: pandera.DataFrameSchema = schemas.build_reader_schema(rows)
    return schema


def _find_relation(name: str) -> Table | View:
    """Return a table or view by its name, with its schema or without."""
    name = name.removeprefix(f"{DETAIL}.")
    relations: dict[str, Table | View] = {published.name: published for published in TABLES}
    relations |= {view.name: view for view in VIEWS}
    if name not in relations:
        hint = describe_relation(name) or _suggest(name, relations)
        raise QueryError(f"there is no table or view {name!r}; {hint}")
    return relations[name]


def _choose_folder(warehouse: str | Path | None) -> Path:
    """Return a warehouse, by default the one that came with the package."""
    return DATASET if warehouse is None else Path(warehouse)


def _read_rows(folder: Path, relation: Table | View, columns: list[str]) -> tuple[pa.Table, str]:
    """Return columns of a table or view and the id of its build; a view is evaluated."""
    if isinstance(relation, View):
        with open_warehouse(folder, relation.rows_sql) as connection:
            [[build_id]] = connection.execute("SELECT DISTINCT build_id FROM build").fetchall()
            return read_view(connection, relation).select(columns), build_id
    build_id = read_build_id(folder)
    path = folder / get_parquet_name(relation.sql_name)
    check_build_id(path, build_id)
    return read_parquet(path, columns), build_id


def _suggest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    if nearest := find_nearest_words(name, names):
        return f"the nearest: {', '.join(nearest)}"
    return f"choose from: {', '.join(names[:MAX_NAMES])}{', …' if len(names) > MAX_NAMES else ''}"


def _match(column: pd.Series[Any], value: Any) -> Any:
    """Compare a column with a value or a list of values.

    Raises QueryError where no row could ever match.
    """
    values = list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]
    present = [item for item in values if item is not None]
    allowed = _list_types(column)
    for item in present:
        if not isinstance(item, allowed):
            kind = type(item).__name__
            raise QueryError(f"{column.name} holds {column.dtype}; {item!r} is a {kind}")
    # a misspelt name would silently give no rows
    if allowed is str:
        texts = set(column.dropna())
        for item in sorted(set(present) - texts):
            hint = _suggest(item, sorted(texts))
            raise QueryError(f"no row has {column.name} {item!r}; {hint}")
    if is_datetime64_any_dtype(column.dtype):
        present = [_parse_day(column.name, item) for item in present]
    return (column.isin(present) | (column.isna() & (None in values))).to_numpy(dtype=bool)


def _list_types(column: pd.Series[Any]) -> Any:
    """Return the types of the values that a column can be compared with."""
    if is_string_dtype(column.dtype):
        return str
    if is_bool_dtype(column.dtype):
        return (bool, np.bool_)
    if is_numeric_dtype(column.dtype):
        return Real
    return (str, date, np.datetime64)


def _parse_day(name: Any, value: Any) -> pd.Timestamp:
    try:
        return pd.Timestamp(value)
    except ValueError as error:
        raise QueryError(f"{name} holds dates; {value!r} is none") from error


def connect(warehouse: str | Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open a read-only DuckDB connection to the dataset, with its views and macros.

    Close it when you are done.

    Without `warehouse` it is the dataset that came with the package. Raises WarehouseError if there
    is none.
    """
    return connect_warehouse(_choose_folder(warehouse))


def provenance(result_id: str, *, warehouse: str | Path | None = None) -> DataFrame:
    """Return where each figure of a result or microbenchmark was printed: a row per figure.

    Columns are text, unit, factor, document and locator. `locator_in` says whether `locator` is a
    place in our transcription, in a file that we derived, or in the source itself. `source_url` and
    `source_locator` lead to the source.

    Raises `ipu_results.errors.QueryError` for an unknown result.
    """
    if not isinstance(result_id, str):
        raise QueryError(f"a result_id is a text, not {result_id!r}")
    reads = "SELECT 1 FROM provenance, results, microbenchmarks"
    ids = "SELECT result_id FROM results UNION ALL SELECT microbenchmark_id FROM microbenchmarks"
    where = f"result_id = {quote(result_id)}"
    with open_warehouse(_choose_folder(warehouse), reads) as connection:
        if not run_query(connection, f"FROM ({ids}) WHERE {where}").num_rows:
            raise QueryError(f"unknown result {result_id!r}")
        figures = f"FROM provenance WHERE {where} ORDER BY cell_number"
        return DataFrame(run_query(connection, figures).to_pandas())


def claims(*, warehouse: str | Path | None = None, **filters: Any) -> DataFrame:
    """Load the claims with their verdicts; a filter is a column with its value, as in `load`."""
    return load("claims", warehouse=warehouse, **filters)
