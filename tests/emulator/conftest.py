"""The folder of split plans that these tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ipu_results.emulator import split


@pytest.fixture(autouse=True, scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep plans in one folder for all modules, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.getbasetemp() / "plans"
        patch.setenv(split.CACHE_VARIABLE, str(folder))
        yield folder
