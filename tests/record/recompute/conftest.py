"""The tables that recomputations read, opened once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.record.recompute.claims_support import open_tables


@pytest.fixture(scope="session")
def engine(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the tables of the built warehouse, which no test changes."""
    with open_tables(warehouse) as opened:
        yield opened
