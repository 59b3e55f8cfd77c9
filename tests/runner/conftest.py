"""Sweeps of one module do not see those of others on the same machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ipu_results.runner.environment import VARIABLE


@pytest.fixture(scope="module", autouse=True)
def _own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("locks")))
        yield
