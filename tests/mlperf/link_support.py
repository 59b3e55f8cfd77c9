"""Made-up entries and runs of MLPerf, linked by the statements of a build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa
from ipu_results.kit.files import load_schema_file
from ipu_results.kit.sql import create_table, open_engine
from ipu_results.record.link.statements import link, stage
from ipu_results.schema import DETAIL, LINKS, table
from ipu_results.schema.frames import arrow_schema
from ipu_results.schema.vocabulary import load_vocabulary

Row = Mapping[str, Any]
FIRST, LAST = "mlperf_runs", "rank_resolution"
ENTRY = {
    "round": "2.0",
    "division": "closed",
    "benchmark": "resnet",
    "submitter": "ACME",
    "path": "ACME/results/s/resnet",
    "chip_count": 8,
    "global_batch_size": 64,
    "n_runs": 5,
    "n_success": 5,
    "scaling_factor": 1.0,
    "document_id": "entries",
    "table_name": "mlperf_entries",
}
RUN = {"round": "2.0", "counted": True, "document_id": "runs"}


@contextmanager
def link_mlperf(
    entries: Sequence[Row], runs: Sequence[Row], **others: Sequence[Row]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection with the tables that follow from entries and runs, which have the columns of
    ENTRY and RUN if they give no others.

    `others` are rows of other tables. An entry with minutes has its path as `result_id` if it gives
    no other. Nothing is refused.
    """
    with open_engine() as connection:
        stage(connection, [], load_vocabulary())
        connection.execute(f"CREATE SCHEMA {DETAIL}")
        completed = [_complete_entry(number, entry) for number, entry in enumerate(entries)]
        numbered = [
            {**RUN, "path": ENTRY["path"], "file": f"{number:04}", **run}
            for number, run in enumerate(runs)
        ]
        _create(connection, "documents", [{"document_id": "entries"}])
        _create(connection, "source_rows", completed)
        _create(
            connection,
            "mlperf_comparability",
            load_schema_file("vocabulary/mlperf.toml")["comparable"],
        )
        others = {"mlperf_entries": completed, "mlperf_runs": numbered, **others}
        for name, rows in others.items():
            schema = connection.table(f"read.{name}").to_arrow_table().schema
            filled = pa.Table.from_pylist(list(rows), schema)
            connection.register("incoming", filled)
            connection.execute(f"INSERT INTO read.{name} FROM incoming")
        names = LINKS[LINKS.index(FIRST) : LINKS.index(LAST) + 1]
        link(connection, [name for name in names if not name.startswith("wrong/")])
        yield connection


def _complete_entry(number: int, entry: Row) -> dict[str, Any]:
    completed = {**ENTRY, "row_number": number, **entry}
    completed.setdefault("minutes", 10.0)
    scored = completed["minutes"] is not None
    return {"result_id": completed["path"] if scored else None, **completed}


def _create(connection: duckdb.DuckDBPyConnection, name: str, rows: Any) -> None:
    definition = table(name)
    filled = pa.Table.from_pylist(list(rows), arrow_schema(definition).remove_metadata())
    create_table(connection, definition.sql_name, filled)
