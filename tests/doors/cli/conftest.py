"""What the first ingest printed."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def ingest_output(warehouse: Path) -> list[str]:
    """Return the lines that the ingest of `warehouse` printed."""
    return (warehouse.parent / "stdout.txt").read_text(encoding="utf-8").splitlines()
