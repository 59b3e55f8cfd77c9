"""Recompute claims: run the SQL that is kept with each claim over the tables of this build.

A recomputation returns one row per recomputed value, with these columns:

* `value` DOUBLE, unrounded, in the unit of the claim
* `baseline` VARCHAR: what was compared, and with what
* `arithmetic` VARCHAR: the computation with its figures
* `inputs` VARCHAR[]: the rows that it used, each as 'table:key'. The key is the value of the
  table's key columns, joined by '/' if there are several: 'results:' || result_id,
  'mlperf_entries:' || round || '/' || path. A row of `printed` (what the documents claim) is
  'claims:' || claim_id.

Further columns are optional:

* `within_spread` BOOLEAN: of a difference between two MLPerf scores, whether their runs fail to
  separate them
* `low`, `high` DOUBLE: the 95 % interval of the value
* `relation` VARCHAR: that of this value, where it reads the claim in another way
* `shown_only` VARCHAR: why the value is shown and does not count for the verdict; null if it counts
* `stand_in` VARCHAR: what takes the place of the baseline that the claim names or leaves open; null
  where it is its own
* `division`, `system`, `source`, `reading` VARCHAR: what the claim leaves open and the value takes
  as said here: the MLPerf division, the machine compared, the file or party that prints the
  figures, how the words are read

Where the results that a value used depart from the conditions of the claim,
`schema/claims/departures.sql` finds it: no recomputation has to say so.
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
    Connection,
    begin_reading,
    create_table,
    fetch_rows,
    map_statements,
    open_database,
)
from ipu_results.kit.statements import define_macros, run_statement
from ipu_results.record.recompute.verdict import AXES, RELATIONS
from ipu_results.schema import DETAIL, VIEWS, quote, table

COLUMNS = {"value": "DOUBLE", "baseline": "VARCHAR", "arithmetic": "VARCHAR", "inputs": "VARCHAR[]"}
ALL_COLUMNS = {
    **COLUMNS,
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
# of results: a row that a user handed in changes no verdict
NOT_SUBMITTED = "WHERE relationship IS DISTINCT FROM 'submitted'"
CLAIMS = "claims"
PRINTED = "printed"
CURRENT = "current_claim"
CLAIM_VIEW = (
    f"CREATE VIEW claim AS SELECT * FROM {CURRENT} WHERE claim_id = getvariable('claim_id')"
)
SDK_EFFECT = f"{DETAIL}.sdk_effect"
SDK_MARGINS = f"""
    SELECT
        greatest(coalesce(max(1 - later.throughput / earlier.throughput), 0), 0),
        greatest(coalesce(max(later.throughput / earlier.throughput - 1), 0), 0)
    FROM {SDK_EFFECT} AS earlier
    JOIN {SDK_EFFECT} AS later USING (oldest_result_id)
    WHERE earlier.position < later.position
"""
WORD = re.compile(r"\w+")


def measure_sdk_margins(connection: Connection) -> tuple[float, float]:
    """Return the largest slow-down and speed-up in the view `sdk_effect`, shares of the earlier
    throughput.
    """
    [(slow_down, speed_up)] = connection.execute(SDK_MARGINS).fetchall()
    return float(slow_down), float(speed_up)


class Recomputed(NamedTuple):
    """One recomputed value, as the module describes its columns; `inputs` are pairs of table and
    key.
    """

    value: float
    baseline: str
    arithmetic: str
    inputs: Sequence[tuple[str, str]]
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
    def axes(self) -> dict[str, str | None]:
        """Return what the value takes the claim to leave open, by AXES."""
        return {axis: getattr(self, axis) for axis in AXES}

    @property
    def spread(self) -> tuple[float, float] | None:
        if self.low is None or self.high is None:
            return None
        return self.low, self.high

    @property
    def tables(self) -> set[str]:
        """Return the names of the tables that it used rows of."""
        return {table_name for table_name, _ in self.inputs}

    def to_record(self) -> dict[str, Any]:
        """Return value, baseline and arithmetic, as they are published."""
        return {
            "value": round_derived(self.value),
            "baseline": self.baseline,
            "arithmetic": self.arithmetic,
        }


@dataclass(frozen=True, slots=True)
class Recomputation:
    """The statement of a file `name`.sql of a document, run for one claim or for none."""

    sql: str
    claim_id: str | None
    document: str
    name: str

    def refuse(self, message: str) -> DamagedDocumentError:
        """Return the error that names the file."""
        return DamagedDocumentError(message, document=self.document, place=f"{self.name}.sql")


def _fetch(
    connection: Connection, task: Recomputation
) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """Return the columns with their types, and the rows, of a recomputation."""
    claim = "NULL" if task.claim_id is None else quote(task.claim_id)
    try:
        connection.execute(f"SET VARIABLE claim_id = {claim}")
        return fetch_rows(connection, task.sql)
    except (QueryError, duckdb.Error) as error:
        raise task.refuse(str(error)) from error


class Recomputer:
    """Runs recomputations.

    They see the tables of the build, all claims as `printed`, and their own as `claim`.
    """

    def __init__(self, connection: Connection, tables: Mapping[str, str]) -> None:
        self.connection = connection
        self._tables = tables
        self._keys: dict[str, frozenset[str]] = {}

    def run(self, tasks: Sequence[Recomputation]) -> list[list[Recomputed]]:
        """Return the values of each recomputation, none if the rows that it needs are not in the
        build.

        Raises DamagedDocumentError, naming the file, if one fails, lacks one of COLUMNS, returns
        others than ALL_COLUMNS, or names no inputs or one that is not in the build.
        """
        fetched = map_statements(self.connection, RECOMPUTING, _fetch, tasks, reading=True)
        return [
            self._check(task, columns, rows)
            for task, (columns, rows) in zip(tasks, fetched, strict=True)
        ]

    def _check(
        self, task: Recomputation, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
    ) -> list[Recomputed]:
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        valued = [row for row in named if row.get("value") is not None]
        if fault := _find_fault(columns, valued):
            raise task.refuse(fault)
        values = []
        for row in valued:
            row["inputs"] = _split_inputs(row["inputs"])
            values.append(Recomputed(**row))
        for value in values:
            for table_name, key in value.inputs:
                if fault := self._find_unknown(table_name, key):
                    raise task.refuse(fault)
        return values

    def find_departures(
        self, values: Mapping[str, Sequence[Recomputed]]
    ) -> dict[tuple[str, int], str]:
        """Return where the results of values depart from the conditions of their claims, by claim
        and place of the value. `values` are those of each claim, by its id.
        """
        used = []
        for claim_id, of_claim in values.items():
            for position, value in enumerate(of_claim, start=1):
                for table_name, key in value.inputs:
                    if table_name == "results":
                        row = {
                            "claim_id": claim_id,
                            "position": position,
                            "has_stand_in": value.stand_in is not None,
                            "result_id": key,
                        }
                        used.append(row)
        if not used:
            return {}
        found = run_statement(self.connection, DEPARTURES, {"used": used})
        return {(row["claim_id"], row["position"]): row["departs"] for row in found.to_pylist()}

    def _find_unknown(self, table_name: str, key: str) -> str | None:
        if table_name not in self._tables:
            return f"input {table_name}:{key} names no table of the build; write 'table:key'"
        columns = table(table_name).key
        if table_name not in self._keys:
            sql = f"SELECT {', '.join(columns)} FROM {self._tables[table_name]}"
            keys = self.connection.execute(sql).fetchall()
            self._keys[table_name] = frozenset("/".join(map(str, values)) for values in keys)
        if key in self._keys[table_name]:
            return None
        return f"input {table_name}:{key} is not a row of {table_name} (key: {'/'.join(columns)})"

    def reads_claims(self, sql: str) -> bool:
        """Return whether a recomputation rests on other claims: its own is in another table."""
        # most texts lack the word, and need not be parsed for their tables
        return PRINTED in WORD.findall(sql) and PRINTED in self.connection.get_table_names(sql)


@contextmanager
def open_recomputer(
    engine: Connection,
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
            where = NOT_SUBMITTED if name == "results" else ""
            connection.execute(f"CREATE VIEW {sql_name} AS FROM {ATTACHED}.{sql_name} {where}")
        create_table(connection, PRINTED, pa.Table.from_pandas(printed, preserve_index=False))
        # A table of its own: see reads_claims
        create_table(connection, CURRENT, pa.Table.from_pandas(current, preserve_index=False))
        connection.execute(CLAIM_VIEW)
        define_macros(connection, MACROS)
        _create_view(connection, SDK_EFFECT)
        with begin_reading(connection):
            yield Recomputer(connection, sql_names | {CLAIMS: PRINTED})


def _find_fault(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str | None:
    has_needed = columns.items() >= COLUMNS.items()
    has_known = columns.items() <= ALL_COLUMNS.items()
    if not has_needed or not has_known:
        return f"returns {_list_types(columns)}, not {_list_types(COLUMNS)}"
    if any(row["baseline"] is None or row["arithmetic"] is None for row in rows):
        return "returns a value without its baseline or arithmetic"
    if not all(math.isfinite(row["value"]) for row in rows):
        return "returns a value that is not finite"
    for row in rows:
        if row.get("relation") not in (None, *RELATIONS):
            choices = ", ".join(RELATIONS)
            return f"returns the unknown relation {row['relation']!r}; choose from: {choices}"
    if not all(row["inputs"] and None not in row["inputs"] for row in rows):
        return (
            "returns a value without inputs, or with one that is null: list the rows that it used"
            " as 'table:key'"
        )
    return None


def _list_types(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def _split_inputs(inputs: Sequence[str]) -> list[tuple[str, str]]:
    """Split each 'table:key', once if it is named twice."""
    pairs = []
    for text in dict.fromkeys(inputs):
        table_name, _, key = text.partition(":")
        pairs.append((table_name, key))
    return pairs


def _create_view(connection: Connection, sql_name: str) -> None:
    """Create a view, and before it those that it reads."""
    for view in VIEWS:
        if view.sql_name == sql_name:
            for needed in view.list_read():
                _create_view(connection, needed)
            connection.execute(f"CREATE OR REPLACE VIEW {sql_name} AS {view.sql}")
