"""Recompute claims: run the SQL that is kept with each claim over the tables of this build."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import pyarrow as pa

from ipu_results._util.sql import LOCKDOWN, fetch_rows
from ipu_results.errors import DamagedDocumentError, QueryError
from ipu_results.schema import quote, table
from ipu_results.schema.frames import to_arrow

COLUMNS = {"value": "DOUBLE", "baseline": "VARCHAR", "arithmetic": "VARCHAR"}
SPREAD_COLUMN = {"within_spread": "BOOLEAN"}  # of a difference between two MLPerf scores
PRINTED, CURRENT = "printed", "current_claim"
CLAIM_VIEW = f"CREATE VIEW claim AS SELECT * FROM {CURRENT} WHERE claim_id = getvariable('claim_id')"


class Recomputed(NamedTuple):
    """One recomputed value, unrounded, in the unit of its claim.

    `within_spread` says of a difference between two MLPerf scores whether their runs fail to separate them.
    """

    value: float
    baseline: str
    arithmetic: str
    within_spread: bool | None = None

    def to_record(self) -> dict[str, Any]:
        """Return value, baseline and arithmetic, as they are published."""
        return {name: getattr(self, name) for name in COLUMNS}


class Recomputer:
    """Runs recomputations. They see the tables of the build, all claims as `printed`, and their own as `claim`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def run(self, sql: str, claim_id: str | None, document: str, name: str) -> list[Recomputed]:
        """Return the values of one recomputation, none if the rows that it needs are not in the build.

        Raises DamagedDocumentError, naming the file, if it fails or returns other columns than COLUMNS; SPREAD_COLUMN
        may follow them.
        """
        try:
            self._connection.execute(f"SET VARIABLE claim_id = {'NULL' if claim_id is None else quote(claim_id)}")
            columns, rows = fetch_rows(self._connection, sql)
        except (QueryError, duckdb.Error) as error:
            raise DamagedDocumentError(str(error), document=document, place=f"{name}.sql") from error
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        if message := _find_fault(columns, named):
            raise DamagedDocumentError(message, document=document, place=f"{name}.sql")
        return [Recomputed(**row) for row in named if row["value"] is not None]

    def reads_claims(self, sql: str) -> bool:
        """Return whether a recomputation rests on other claims; its own claim is in another table."""
        return PRINTED in self._connection.get_table_names(sql)


@contextmanager
def open_recomputer(frames: Mapping[str, pd.DataFrame], printed: pd.DataFrame) -> Iterator[Recomputer]:
    """Open a recomputer over tables of the build by name; `printed` holds what was printed of each claim."""
    with duckdb.connect(config={**LOCKDOWN, "threads": 1}) as connection:
        tables = {name: to_arrow(table(name), frame) for name, frame in frames.items()}
        tables[PRINTED] = tables[CURRENT] = pa.Table.from_pandas(printed, preserve_index=False)  # see reads_claims
        for name, rows in tables.items():
            connection.register("incoming", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM incoming")
            connection.unregister("incoming")
        connection.execute(CLAIM_VIEW)
        yield Recomputer(connection)


def _find_fault(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str | None:
    if columns not in (COLUMNS, COLUMNS | SPREAD_COLUMN):
        actual, expected = (", ".join(f"{name} {kind}" for name, kind in types.items()) for types in (columns, COLUMNS))
        return f"returns {actual}, not {expected}"
    valued = [row for row in rows if row["value"] is not None]
    if any(row[name] is None for row in valued for name in COLUMNS):
        return "returns a value without its baseline or arithmetic"
    if not all(math.isfinite(row["value"]) for row in valued):
        return "returns a value that is not finite"
    return None
