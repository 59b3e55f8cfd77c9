"""The committed warehouse, opened once: the data of the site come from it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import duckdb
import pytest
from ipu_results.record.store.query import open_warehouse

from tests.conftest import COMMITTED, ROOT, require


@pytest.fixture(scope="session")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the committed warehouse."""
    with open_warehouse(COMMITTED) as opened:
        yield opened


@pytest.fixture(scope="session")
def node() -> None:
    """Require Node.js and the packages of the page."""
    present = shutil.which("node") is not None and (ROOT / "site" / "node_modules").exists()
    require(present, "needs Node.js and `make site`, or `npm ci` in site/")
