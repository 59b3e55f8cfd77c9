"""Recomputations: SQL that is kept beside a claim, run over the tables of this build and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results._util.sql import LOCKDOWN, run_query
from ipu_results.check.gate import to_arrow
from ipu_results.errors import DamagedDocumentError, QueryError
from ipu_results.schema import table

COLUMNS = {"value": pa.float64(), "baseline": pa.string(), "arithmetic": pa.string()}
PRINTED, ONE = "printed", "claim"


class Recomputed(NamedTuple):
    value: float
    baseline: str
    arithmetic: str


class Recomputer:
    """Runs recomputations: they see the tables of the build, all claims as `printed`, the one at hand as `claim`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, printed: pa.Table) -> None:
        self._connection = connection
        self._printed = printed

    def run(self, sql: str, claim_id: str | None, document: str, name: str) -> list[Recomputed]:
        """The values of one recomputation; none where the rows that it needs are not in the build.

        Raises DamagedDocumentError, naming it, where it fails or does not give what it must.
        """
        try:
            found = self._found(sql, claim_id)
        except (QueryError, duckdb.Error) as error:
            raise DamagedDocumentError(str(error), document=document, place=f"{name}.sql") from error
        if wrong := _wrong(found):
            raise DamagedDocumentError(wrong, document=document, place=f"{name}.sql")
        return [Recomputed(**row) for row in found.to_pylist() if row["value"] is not None]

    def reads_claims(self, sql: str) -> bool:
        """Whether a recomputation rests on what claims say, in whole or in part."""
        return PRINTED in self._connection.get_table_names(sql)

    def _found(self, sql: str, claim_id: str | None) -> pa.Table:
        if claim_id is None:
            return run_query(self._connection, sql)
        self._connection.register(ONE, self._printed.filter(pc.field("claim_id") == claim_id))
        try:
            return run_query(self._connection, sql)
        finally:
            self._connection.unregister(ONE)


@contextmanager
def recomputer(frames: Mapping[str, pd.DataFrame], printed: pd.DataFrame) -> Iterator[Recomputer]:
    """`frames` are tables of the build by name; `printed` holds what was printed of each claim."""
    with duckdb.connect(config={**LOCKDOWN, "threads": 1}) as connection:
        claims = pa.Table.from_pandas(printed, preserve_index=False)
        for name, rows in ((PRINTED, claims), *((name, to_arrow(table(name), frames[name])) for name in frames)):
            connection.register("incoming", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM incoming")
            connection.unregister("incoming")
        yield Recomputer(connection, claims)


def _wrong(found: pa.Table) -> str | None:
    if {field.name: field.type for field in found.schema} != COLUMNS:
        given = ", ".join(f"{field.name} {field.type}" for field in found.schema)
        return f"gives {given}, not value double, baseline string, arithmetic string"
    rows: Sequence[Mapping[str, object]] = [row for row in found.to_pylist() if row["value"] is not None]
    if any(value is None for row in rows for value in row.values()):
        return "gives a value without its baseline or arithmetic"
    if not all(math.isfinite(float(str(row["value"]))) for row in rows):
        return "gives a value that is not finite"
    return None
