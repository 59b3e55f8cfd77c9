"""The record that the tools of the MCP server read, opened once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ipu_results.serve.answers import Record, open_record
from ipu_results.serve.sql import SqlWorker


@pytest.fixture(scope="session")
def record(warehouse: Path) -> Record:
    return open_record(warehouse)


@pytest.fixture(scope="session")
def worker(record: Record) -> Iterator[SqlWorker]:
    worker = SqlWorker(record)
    yield worker
    worker.stop()
