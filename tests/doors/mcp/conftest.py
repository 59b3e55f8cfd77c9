"""The record that the tools of the MCP server read, opened once, and how to ask them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ipu_results.doors.mcp.answers import Record, open_record
from ipu_results.doors.mcp.refusal import WORDS
from ipu_results.doors.mcp.worker import SqlWorker

Answer = dict[str, Any]
Ask = Callable[..., Answer]


@pytest.fixture(scope="session")
def record(warehouse: Path) -> Record:
    return open_record(warehouse)


@pytest.fixture(scope="session")
def worker(record: Record) -> Iterator[SqlWorker]:
    worker = SqlWorker(record.folder)
    yield worker
    worker.stop()


@pytest.fixture(scope="session")
def ask(record: Record, worker: SqlWorker) -> Ask:
    """Ask a tool. The answer is as its schema says."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from ipu_results.doors.mcp.server import TOOLS, answer  # noqa: PLC0415

    validators = {}
    for tool in TOOLS:
        schema = build_output_schema(tool)
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[tool] = jsonschema.Draft202012Validator(schema)

    def ask(tool: str, of: Record = record, **arguments: Any) -> Answer:
        actual = answer(of, worker, tool, arguments)
        if tool in validators:
            validators[tool].validate(json.loads(json.dumps(actual)))
        return actual

    return ask


def build_output_schema(name: str) -> Answer:
    """Return the JSON Schema of a tool's answer: answered with the keys of tools.toml, or refused
    with a next step.
    """
    refused = ["code", "reason", "next_step"]
    return {
        "type": "object",
        "properties": {
            "status": {"enum": ["answered", "refused"]},
            **{key: {"type": "string"} for key in refused},
        },
        "required": ["status"],
        "oneOf": [
            {"properties": {"status": {"const": "answered"}}, "required": WORDS["returns"][name]},
            {"properties": {"status": {"const": "refused"}}, "required": refused},
        ],
    }


def copy_warehouse(warehouse: Path, folder: Path) -> Path:
    """Copy the Parquet files of a warehouse."""
    shutil.copytree(warehouse, folder, ignore=shutil.ignore_patterns("*.duckdb"))
    return folder


def edit_rows(folder: Path, name: str, key: Mapping[str, str], **changes: Any) -> None:
    """Change the rows of a table of a warehouse that have these values."""
    path = folder / f"{name}.parquet"
    table = pq.read_table(path)
    rows = [row | changes if row.items() >= key.items() else row for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
