"""The runs of a few machines, and what became of each in `collect`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from ipu_results.fleet import CollectedRun
from ipu_results.sources.catalogue import COLLECTING

from tests.runner.runs_support import put_emulated, put_run

OTHER_ID = "20261122-080000-onnxruntime-cpu-00aa"
EMULATED = "20261122-090000-emulator-c2-00bb"


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Write the runs of two machines, in folders as a synchronised disk has them."""
    put_run(tmp_path / "lab" / "host-1")
    put_run(tmp_path / "lab" / "host-1", run_id=OTHER_ID)
    put_emulated(tmp_path / "lab" / "host-2" / "data", EMULATED)
    return tmp_path / "lab"


def count(outcomes: list[CollectedRun]) -> Counter[str]:
    return Counter(own.status for own in outcomes)


def explain(outcomes: list[CollectedRun], status: str) -> str:
    """Return the reason of the one run of this status."""
    (reason,) = [own.reason for own in outcomes if own.status == status]
    return str(reason)


def list_runs(into: Path) -> list[str]:
    return sorted(path.name for path in into.iterdir() if not path.name.startswith("."))


def assert_nothing_staged(into: Path) -> None:
    left = [path for path in (into / COLLECTING).rglob("*") if path.name != ".lock"]
    assert left == []
