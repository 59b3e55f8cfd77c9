"""What an answer says, and its chart shows, when the record changes: the built rows with some
changed, and made-up ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors.analyses.analysis_support import (
    BASES,
    CHANGES,
    changed,
    make_warehouse,
    read_change,
)
from tests.doors.analyses.test_views import POPART, PYTORCH


@pytest.mark.parametrize("case", CHANGES["sentence"], ids=lambda case: case["after"])
def test_changed_record_changes_the_sentence(warehouse: Path, case: dict[str, str]) -> None:
    with changed(warehouse) as database:
        assert case["before"] in database.answer(case["analysis"]).summary
    with changed(warehouse, read_change(case)) as database:
        summary = database.answer(case["analysis"]).summary
    assert case["before"] not in summary
    assert case["after"] in summary


@pytest.mark.parametrize(
    ("prices", "sentence"),
    [
        ({}, "Both list prices are"),
        ({"gpu_price": 200000}, "The list price of the IPU machine is"),
        ({"ipu_price": 120000}, "The list price of the GPU machine is"),
        ({"ipu_price": 120000, "gpu_price": 200000}, "At these prices"),
    ],
)
def test_price_of_the_reader_is_not_called_a_list_price(
    warehouse: Path, prices: dict[str, float], sentence: str
) -> None:
    with changed(warehouse) as database:
        summary = database.answer("per_dollar", **prices).summary
    assert sentence in summary
    assert ("list price" in summary.replace("no known list price", "")) == (len(prices) < 2)
    assert "(framework, precision, batch, software)" in summary


FAST = {**PYTORCH, "variant": "b", "throughput": 500.0}
SLOW = {**POPART, "task": "inference", "framework": "PyTorch", "latency_ms": 1920.0}


def test_rows_that_are_not_usable_or_of_another_model_are_not_in_the_mean() -> None:
    rows = [POPART, PYTORCH, {**POPART, "variant": "b"}, FAST]
    flag = {"result_id": "3", "rule": "R10", "severity": "error"}
    flagged = make_warehouse(rows, [flag]).answer("framework_effect").summary
    assert "is 0.90 (one pair) for PyTorch over PopART in training." in flagged
    assert "Left out as not usable: 1 pair." in flagged
    other = make_warehouse([*rows[:3], {**FAST, "model": "Net-32x8d"}]).answer("framework_effect")
    assert "is 0.90 (one pair) for PyTorch over PopART in training." in other.finding
    assert "Excluded is Net at 5.00" in other.summary


def test_summary_compares_batches_in_flight() -> None:
    rows = []
    for variant, depth in (("a", 2), ("b", 5), ("c", 5)):  # three are in flight in PyTorch
        latency = depth * 64 * 1000 / 50
        other = {"framework": "TensorFlow1", "throughput": 50.0, "latency_ms": latency}
        rows += [{**SLOW, "variant": variant}, {**SLOW, **other, "variant": variant}]
    sentence = (
        "TensorFlow1 over PyTorch is 0.50 (2 pairs, 0.50 to 0.50) where PyTorch keeps fewer batches"
        " in flight (3.0 against 5.0) and 0.50 (one pair) where PyTorch keeps more batches in"
        " flight (3.0 against 2.0)."
    )
    assert sentence in make_warehouse(rows).answer("framework_effect").summary


# charts


@pytest.mark.parametrize(
    ("rows", "works", "drawn"), [(3, 1, True), (2, 1, False), (8, 8, True), (9, 9, False)]
)
def test_panel_has_three_rows_or_more_and_at_most_eight_variants(
    rows: int, works: int, drawn: bool
) -> None:
    point = BASES["point"]
    points = [{**point, "variant": f"SL{1 + at % works}"} for at in range(rows)]
    points += [{**point, "model_printed": "Other"}] * 3
    panels = make_warehouse(points).draw("latency_bounded")["concat"]
    assert [panel["title"] for panel in panels] == (["Net", "Other"] if drawn else ["Other"])


def test_emulated_points_are_hollow_dashed_and_labelled(warehouse: Path) -> None:
    with changed(warehouse) as database:
        chart = database.draw("resnext101")
    assert "EMULATED, not measured" in chart["title"]["subtitle"][1]
    for panel in chart["concat"]:
        lines, solid, hollow, _, word = panel["layer"]
        assert solid["transform"] == [{"filter": "datum.origin != 'emulated'"}]
        assert hollow["transform"] == [{"filter": "datum.origin == 'emulated'"}]
        assert solid["mark"]["filled"] is True
        assert "filled" not in hollow["mark"]
        dashes = lines["encoding"]["strokeDash"]["scale"]
        assert dashes["range"][dashes["domain"].index("emulated")] == [4, 3]
        assert word["encoding"]["text"]["field"] == "word"
        rows = panel["data"]["values"]
        assert [row["origin"] for row in rows if row["word"]] == ["emulated"]


def test_each_tie_is_on_its_line(warehouse: Path) -> None:
    with changed(warehouse) as database:
        panels = database.draw("per_dollar")["concat"]
    for panel in panels:
        ties = {row["Name"]: row["Price of a tie (USD)"] for row in panel["data"]["values"]}
        lines = panel["layer"][2]["data"]["values"]
        assert {row["Name"] for row in lines} == ties.keys()
        for row in lines:
            assert row["ratio"] * row["Price of a tie (USD)"] == pytest.approx(ties[row["Name"]])


def test_each_measure_and_kind_of_batch_has_its_own_panel(warehouse: Path) -> None:
    with changed(warehouse) as database:
        fixed, grown, minutes = database.draw("scaling")["concat"]
    assert "MLPerf" not in f"{fixed}{grown}"
    names = {row["Name"] for row in minutes["data"]["values"]}
    assert {name.split(", ")[2] for name in names} == {"v1.0", "v1.1", "v2.0"}
    assert "BERT-Large, PopART, v1.1, ×1 ×2" in names
    assert {row["Name"] for row in grown["data"]["values"]} == {"ResNet-50 v1.5", "Mini DALL-E"}
    batches = {row["Batch over the smallest machine"] for row in fixed["data"]["values"]}
    assert all(abs(batch - 1) <= 0.02 for batch in batches)
