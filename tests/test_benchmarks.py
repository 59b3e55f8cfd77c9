"""The benchmarks run and say what they measured; how fast is never tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("ingest", "extract", "stages", "query")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("benchmarks") / "found.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--format", "markdown", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"### `{name}`" in done.stdout for name in NAMES)
    return json.loads(out.read_text(encoding="utf-8"))


def test_every_benchmark_tells_figures_and_where_they_come_from(found: dict[str, Any]) -> None:
    assert {"cpu", "cores", "python", "duckdb", "date"} <= found["environment"].keys()
    assert [report["name"] for report in found["benchmarks"]] == list(NAMES)
    for table in (table for report in found["benchmarks"] for table in report["tables"]):
        assert table["rows"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_the_reader_has_no_wrong_cell_where_read_html_has(found: dict[str, Any]) -> None:
    faults = found["benchmarks"][1]["tables"][-1]["rows"]
    assert sum(ours for _, ours, _ in faults) == 0
    assert sum(theirs for _, _, theirs in faults) > 0


def test_every_size_comes_to_the_end_of_every_stage(found: dict[str, Any]) -> None:
    stages = found["benchmarks"][2]["tables"][0]["rows"]
    sizes = {row[0] for row in stages}
    assert len(stages) == 5 * len(sizes)
