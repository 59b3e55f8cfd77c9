"""The committed warehouse, opened once: the data of the site come from it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from ipu_results.store.query import open_warehouse

from tests.conftest import ROOT

COMMITTED = ROOT / "warehouse"


@pytest.fixture(scope="session")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the committed warehouse."""
    with open_warehouse(COMMITTED) as opened:
        yield opened
