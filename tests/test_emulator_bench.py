"""The benchmark of the emulator runs and reports what it measured. How fast is never tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.emulator.speed import DEVELOPMENT, QUICK_SHAPES, SWEEP


@pytest.mark.slow
def test_quick_benchmark_reports_times_and_searches(tmp_path: Path) -> None:
    assert (len(SWEEP), len(DEVELOPMENT)) == (6, 19)
    assert main(["emulator", "--quick", "--out", str(tmp_path / "report.json")]) == 0
    (report,) = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["benchmarks"]
    times, searches = (table["rows"] for table in report["tables"])
    assert [row[0] for row in times] == ["the imports alone", "C2 sweep", "other machines"]
    assert all(row[6] > 0 and row[7] > 0 for row in times)
    assert [row[:4] for row in searches] == [[name, QUICK_SHAPES, QUICK_SHAPES, 0] for name in ("c2", "m2000")]
    assert len(report["targets"]) == 3 + 2
    assert any("without the disk cache" in note for note in report["notes"])
