"""The benchmark of the emulator runs and says what it measured; how fast is never tested."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.__main__ import NAMES, main
from benchmarks.emulator import HELD_OUT, QUICK_SHAPES, SWEEP


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("emulator") / "found.json"
    assert main(["emulator", "--quick", "--out", str(out)]) == 0
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))["benchmarks"][0]
    return found


def test_it_is_one_of_all() -> None:
    assert "emulator" in NAMES
    assert (len(SWEEP), len(HELD_OUT)) == (6, 19)


def test_predictions_stand_beside_the_imports(report: dict[str, Any]) -> None:
    times = report["tables"][0]
    assert [row[0] for row in times["rows"]] == ["the imports alone", "C2 sweep", "other machines"]
    assert all(row[6] > 0 and row[7] > 0 for row in times["rows"])


def test_the_search_finds_every_plan(report: dict[str, Any]) -> None:
    rows = {row[0]: row for row in report["tables"][1]["rows"]}
    for target in ("c2", "m2000"):
        assert rows[f"{target}, plan"][1:4] == [QUICK_SHAPES, QUICK_SHAPES, 0]


def test_every_layer_shape_has_its_time(report: dict[str, Any]) -> None:
    layers = report["tables"][2]
    assert layers["title"].startswith("Search for one layer shape: resnet50")
    assert [row[-1] for row in layers["rows"]] == sorted((row[-1] for row in layers["rows"]), reverse=True)


def test_every_target_is_told(report: dict[str, Any]) -> None:
    assert len(report["targets"]) == 3 + 2
    assert {"name", "value", "limit", "met"} <= report["targets"][0].keys()
    assert any("without the disk cache" in note for note in report["notes"])
