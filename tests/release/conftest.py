"""The readers of a release that no other test uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import install_aside


@pytest.fixture(scope="session")
def other_readers() -> Path:
    """Install the readers of a release that no other test uses: datasets, frictionless and mlcroissant."""
    return install_aside("readers")
