"""Link: join what documents say of one thing, by the statements of `schema/links`.

They read the tables of one build in one connection, and in its schema `read` the rows of documents
as they were read, each with its place. What is numeric and not relational is in `link.mlperf`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from ipu_results.errors import DamagedDocumentError, VocabularyError
from ipu_results.ground.sql import create_table
from ipu_results.ground.statements import run_statement
from ipu_results.link.machines import parse_machine
from ipu_results.normalise import NormalisedDocument
from ipu_results.normalise.by_source import get_run_id
from ipu_results.normalise.rows import PLACE, passthrough_schema
from ipu_results.schema import LINKS, SQL, TABLES, table
from ipu_results.schema.frames import build_frame_from_columns
from ipu_results.schema.vocabulary import KINDS, normalise_header

WRONG = "wrong/"
"""The folder of statements that return what may not be: a row stops the build."""
ADDED = "added"
VOCABULARY = "schema/vocabulary/"
PUBLISHED = {published.name for published in TABLES}
AS_READ = (
    "configurations",
    "facts",
    "mlperf_entries",
    "mlperf_ids",
    "mlperf_published",
    "mlperf_rcp",
    "mlperf_runs",
    "run_points",
    "runs",
)
# headers of a configuration under which a result may have a cell
CITED = ("micro_batch_size", "latency_definition")


def _make_schema(*texts: str) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in texts])


SCHEMAS = {
    "cells": pa.schema([*_make_schema("document_id", "field", "header", "raw_text"), *PLACE]),
    "run_documents": _make_schema("document_id", "reader", "run_id"),
    "machines": pa.schema(
        [*_make_schema("run_id", "platform", "processor", "evidence"), ("virtual_cpus", pa.int64())]
    ),
}


def stage_documents(
    connection: duckdb.DuckDBPyConnection, documents: Sequence[NormalisedDocument]
) -> None:
    """Create the tables of the schema `read`: rows of AS_READ, cells of configurations, and what the
    documents of local runs are.
    """
    connection.execute("CREATE SCHEMA read")
    for name in AS_READ:
        parts = [passthrough_schema(name).empty_table()]
        for document in documents:
            if KINDS[document.document.reader].table == name:
                parts.append(document.passthrough)
        create_table(connection, f"read.{name}", pa.concat_tables(parts))
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for document in documents:
        source = document.document
        if KINDS[source.reader].table == "configurations":
            rows["cells"] += _list_cells(document)
        if KINDS[source.reader].local:
            run_id = get_run_id(source)
            rows["run_documents"].append(
                {"document_id": source.document_id, "reader": source.reader, "run_id": run_id}
            )
            rows["machines"] += _list_machines(run_id, document.passthrough.to_pylist())
    for name, schema in SCHEMAS.items():
        create_table(connection, f"read.{name}", pa.Table.from_pylist(rows[name], schema))


def _list_cells(document: NormalisedDocument) -> Iterator[dict[str, Any]]:
    """Yield the cells of a document of configurations under which a result may have a cell."""
    for read in document.parsed.tables:
        headers = [normalise_header(header) for header in read.columns]
        for field in CITED:
            column = headers.index(normalise_header(field))
            for row in read.rows:
                yield {
                    "document_id": document.document.document_id,
                    "table_name": read.name,
                    "row_number": row.number,
                    "locator": read.cell_locator(row, column),
                    "field": field,
                    "header": read.columns[column],
                    "raw_text": row.cells[column],
                }


def _list_machines(run_id: str, rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the virtual machine that the record of a run describes."""
    for row in rows:
        environment = row.get("environment")
        machine = parse_machine(json.loads(environment)) if environment else None
        if machine is not None:
            yield {
                "run_id": run_id,
                "platform": machine.name,
                "processor": machine.processor,
                "virtual_cpus": machine.virtual_cpus,
                "evidence": machine.evidence,
            }


def link(connection: duckdb.DuckDBPyConnection) -> dict[str, pd.DataFrame]:
    """Run the statements of `schema/links` in their order, each of which can read those before it.

    Returns the published tables among them, and fills `results` and `microbenchmarks`. Raises
    DamagedDocumentError or VocabularyError for what contradicts another document.
    """
    frames = {}
    for name in LINKS:
        rows = run_statement(connection, f"links/{name}.sql")
        if name.startswith(WRONG):
            _raise_first(rows)
            continue
        if name in PUBLISHED:
            rows = rows.sort_by([(column, "ascending") for column in table(name).key])
            columns = dict(zip(rows.column_names, rows.columns, strict=True))
            frames[name] = build_frame_from_columns(table(name), columns)
        create_table(connection, table(name).sql_name if name in PUBLISHED else name, rows)
        if name == ADDED:
            _apply_added(connection)
    return frames


def _raise_first(rows: pa.Table) -> None:
    """Raise the error of the first row, if there is one: what is wrong, and where."""
    for row in rows.slice(0, 1).to_pylist():
        is_ours = row["document_id"].startswith(VOCABULARY)
        error = VocabularyError if is_ours else DamagedDocumentError
        raise error(row["message"], document=row["document_id"], place=row["place"])


def _apply_added(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the columns of `results` and `microbenchmarks` with what `added` has for them."""
    changed = f"SELECT DISTINCT relation, column_name FROM {ADDED}"
    for relation, name in connection.execute(changed).fetchall():
        definition = table(relation)
        kind = SQL[definition.column(name).kind]
        connection.execute(
            f"UPDATE {relation} SET {name} = CAST(a.value AS {kind}) FROM {ADDED} a"
            f" WHERE a.id = {relation}.{definition.key[0]}"
            f" AND a.relation = '{relation}' AND a.column_name = '{name}'"
        )
