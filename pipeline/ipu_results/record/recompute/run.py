"""Recompute claims: run the SQL that is kept with each claim over the tables of this build.

A recomputation returns one row per recomputed value, with these columns:

* `value` DOUBLE, unrounded, in the unit of the claim
* `baseline` VARCHAR: what was compared, and with what
* `arithmetic` VARCHAR: the computation with its figures
* `inputs` VARCHAR[]: the rows that it used, each as 'table:key'. The key is the value of the table's key columns,
  joined by '/' if there are several: 'results:' || result_id, 'mlperf_entries:' || round || '/' || path. A row of
  `printed` (what the documents claim) is 'claims:' || claim_id.

Further columns are optional:

* `within_spread` BOOLEAN: of a difference between two MLPerf scores, whether their runs fail to separate them
* `low`, `high` DOUBLE: the 95 % interval of the value
* `relation` VARCHAR: that of this value, where it reads the claim in another way
* `shown_only` VARCHAR: why the value is shown and does not count for the verdict; null if it counts
* `stand_in` VARCHAR: what takes the place of the baseline that the claim names or leaves open; null where it is its own
* `division`, `system`, `source`, `reading` VARCHAR: what the claim leaves open and the value takes as said here: the
  MLPerf division, the machine compared, the file or party that prints the figures, how the words are read

Where the results that a value used depart from the conditions of the claim, `schema/claims/departures.sql` finds it: no
recomputation has to say so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import pyarrow as pa

from ipu_results.errors import DamagedDocumentError, QueryError
from ipu_results.kit.physics import round_derived
from ipu_results.kit.sql import (
    ATTACHED,
    begin_reading,
    create_table,
    fetch_rows,
    map_statements,
    open_database,
)
from ipu_results.kit.statements import define_macros, run_statement
from ipu_results.record.recompute.verdict import AXES, HOLDS, Axes
from ipu_results.schema import DETAIL, VIEWS, View, quote, table

SDK_MARGINS = """
    SELECT
        greatest(coalesce(max(1 - later.throughput / earlier.throughput), 0), 0),
        greatest(coalesce(max(later.throughput / earlier.throughput - 1), 0), 0)
    FROM detail.sdk_effect AS earlier
    JOIN detail.sdk_effect AS later USING (oldest_result_id)
    WHERE earlier.position < later.position
"""


def measure_sdk_margins(connection: duckdb.DuckDBPyConnection) -> tuple[float, float]:
    """Return the largest slow-down and speed-up in the view `sdk_effect`, shares of the earlier
    throughput.
    """
    [(slow_down, speed_up)] = connection.execute(SDK_MARGINS).fetchall()
    return float(slow_down), float(speed_up)


PUBLISHED = ("value", "baseline", "arithmetic")
COLUMNS = {"value": "DOUBLE", "baseline": "VARCHAR", "arithmetic": "VARCHAR", "inputs": "VARCHAR[]"}
OPTIONAL_COLUMNS = {
    "within_spread": "BOOLEAN",
    "low": "DOUBLE",
    "high": "DOUBLE",
    "relation": "VARCHAR",
    "shown_only": "VARCHAR",
    "stand_in": "VARCHAR",
    **dict.fromkeys(AXES, "VARCHAR"),
}
RECOMPUTING = "recomputing"  # the database of what recomputations see
MACROS = "claims/macros.sql"
DEPARTURES = "claims/departures.sql"
# a row that a user handed in changes no verdict
RECORD = " WHERE relationship IS DISTINCT FROM 'submitted'"
CLAIMS, PRINTED, CURRENT = "claims", "printed", "current_claim"
CLAIM_VIEW = (
    f"CREATE VIEW claim AS SELECT * FROM {CURRENT} WHERE claim_id = getvariable('claim_id')"
)
WORD = re.compile(r"\w+")


class Recomputed(NamedTuple):
    """One recomputed value, as the module describes its columns; `inputs` are pairs of table and
    key.
    """

    value: float
    baseline: str
    arithmetic: str
    inputs: tuple[tuple[str, str], ...]
    within_spread: bool | None = None
    low: float | None = None
    high: float | None = None
    relation: str | None = None
    shown_only: str | None = None
    stand_in: str | None = None
    division: str | None = None
    system: str | None = None
    source: str | None = None
    reading: str | None = None

    @property
    def axes(self) -> Axes:
        """Return what the value takes the claim to leave open, in the order of AXES."""
        return self.division, self.system, self.source, self.reading

    @property
    def spread(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    def to_record(self) -> dict[str, Any]:
        """Return value, baseline and arithmetic, as they are published."""
        record = {name: getattr(self, name) for name in PUBLISHED}
        return {**record, "value": round_derived(self.value)}


@dataclass(frozen=True, slots=True)
class Recomputation:
    """The statement of a file `name`.sql of a document, run for one claim or for none."""

    sql: str
    claim_id: str | None
    document: str
    name: str

    @property
    def place(self) -> str:
        return f"{self.name}.sql"


def _fetch(
    connection: duckdb.DuckDBPyConnection, task: Recomputation
) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """Return the columns with their types, and the rows, of a recomputation."""
    claim = "NULL" if task.claim_id is None else quote(task.claim_id)
    try:
        connection.execute(f"SET VARIABLE claim_id = {claim}")
        return fetch_rows(connection, task.sql)
    except (QueryError, duckdb.Error) as error:
        message = str(error)
        raise DamagedDocumentError(message, document=task.document, place=task.place) from error


class Recomputer:
    """Runs recomputations.

    They see the tables of the build, all claims as `printed`, and their own as `claim`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, str]) -> None:
        self._connection = connection
        self._tables = tables
        self._keys: dict[str, frozenset[str]] = {}

    def run(self, tasks: Sequence[Recomputation]) -> list[list[Recomputed]]:
        """Return the values of each recomputation, none if the rows that it needs are not in the
        build.

        Raises DamagedDocumentError, naming the file, if one fails, returns other columns than
        COLUMNS and OPTIONAL_COLUMNS, or names no inputs or one that is not in the build.
        """
        fetched = map_statements(self._connection, RECOMPUTING, _fetch, tasks, reading=True)
        return [self._check(task, *rows) for task, rows in zip(tasks, fetched, strict=True)]

    def _check(
        self, task: Recomputation, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
    ) -> list[Recomputed]:
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        valued = [row for row in named if row.get("value") is not None]
        if message := _find_fault(columns, valued) or self._find_unknown_input(valued):
            raise DamagedDocumentError(message, document=task.document, place=task.place)
        return [Recomputed(**{**row, "inputs": _split_inputs(row["inputs"])}) for row in valued]

    def find_departures(
        self, values: Mapping[str, Sequence[Recomputed]]
    ) -> dict[tuple[str, int], str]:
        """Return where the results of values depart from the conditions of their claims, by claim and
        place of the value. `values` are those of each claim, by its id.
        """
        used = [
            {
                "claim_id": claim_id,
                "position": position,
                "has_stand_in": value.stand_in is not None,
                "result_id": key,
            }
            for claim_id, own in values.items()
            for position, value in enumerate(own, start=1)
            for table_name, key in value.inputs
            if table_name == "results"
        ]
        if not used:
            return {}
        found = run_statement(self._connection, DEPARTURES, {"used": used})
        return {(row["claim_id"], row["position"]): row["departs"] for row in found.to_pylist()}

    def _find_unknown_input(self, rows: Sequence[Mapping[str, Any]]) -> str | None:
        for table_name, key in (pair for row in rows for pair in _split_inputs(row["inputs"])):
            if table_name not in self._tables:
                return f"input {table_name}:{key} names no table of the build; write 'table:key'"
            if key not in self._get_keys(table_name):
                return (
                    f"input {table_name}:{key} is not a row of {table_name} (key:"
                    f" {'/'.join(table(table_name).key)})"
                )
        return None

    def _get_keys(self, table_name: str) -> frozenset[str]:
        if table_name not in self._keys:
            columns = ", ".join(table(table_name).key)
            rows = self._connection.execute(
                f"SELECT {columns} FROM {self._tables[table_name]}"
            ).fetchall()
            self._keys[table_name] = frozenset("/".join(map(str, key)) for key in rows)
        return self._keys[table_name]

    def measure_sdk_margins(self) -> tuple[float, float]:
        """Return the largest measured slow-down and speed-up from one SDK to a later one."""
        return measure_sdk_margins(self._connection)

    def reads_claims(self, sql: str) -> bool:
        """Return whether a recomputation rests on other claims; its own claim is in another table."""
        return PRINTED in WORD.findall(sql) and PRINTED in self._connection.get_table_names(sql)


@contextmanager
def open_recomputer(
    engine: duckdb.DuckDBPyConnection,
    names: Collection[str],
    printed: pd.DataFrame,
    current: pd.DataFrame,
) -> Iterator[Recomputer]:
    """Open a recomputer over the tables `names` of the engine, of `results` without what users
    handed in.

    `printed` holds what was printed of each claim; `current` is the same under the conditions that
    each is judged by.
    """
    sql_names = {name: table(name).sql_name for name in names}
    with open_database(engine, RECOMPUTING, DETAIL) as connection:
        for name, sql_name in sql_names.items():
            rows = f"{ATTACHED}.{sql_name}{RECORD if name == 'results' else ''}"
            connection.execute(f"CREATE VIEW {sql_name} AS FROM {rows}")
        create_table(connection, PRINTED, pa.Table.from_pandas(printed, preserve_index=False))
        # A table of its own: see reads_claims
        create_table(connection, CURRENT, pa.Table.from_pandas(current, preserve_index=False))
        connection.execute(CLAIM_VIEW)
        define_macros(connection, MACROS)
        _create_view(connection, "detail.sdk_effect", {view.sql_name: view for view in VIEWS})
        with begin_reading(connection):
            yield Recomputer(connection, sql_names | {CLAIMS: PRINTED})


def _find_fault(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str | None:
    if columns != {
        **COLUMNS,
        **{name: kind for name, kind in OPTIONAL_COLUMNS.items() if name in columns},
    }:
        actual, expected = (
            ", ".join(f"{name} {kind}" for name, kind in types.items())
            for types in (columns, COLUMNS)
        )
        return f"returns {actual}, not {expected}"
    if any(row[name] is None for row in rows for name in PUBLISHED):
        return "returns a value without its baseline or arithmetic"
    if not all(math.isfinite(row["value"]) for row in rows):
        return "returns a value that is not finite"
    if unknown := [row["relation"] for row in rows if row.get("relation") not in (None, *HOLDS)]:
        return f"returns the unknown relation {unknown[0]!r}; choose from: {', '.join(HOLDS)}"
    if not all(row["inputs"] and None not in row["inputs"] for row in rows):
        return (
            "returns a value without inputs, or with one that is null: list the rows that it used"
            " as 'table:key'"
        )
    return None


def _split_inputs(inputs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Split each 'table:key', once if it is named twice."""
    return tuple(
        (name, key) for name, _, key in (text.partition(":") for text in dict.fromkeys(inputs))
    )


def _create_view(
    connection: duckdb.DuckDBPyConnection, sql_name: str, views: Mapping[str, View]
) -> None:
    """Create a view, and before it those that it reads."""
    for needed in views[sql_name].list_read():
        if needed in views:
            _create_view(connection, needed, views)
    connection.execute(f"CREATE OR REPLACE VIEW {sql_name} AS {views[sql_name].sql}")
