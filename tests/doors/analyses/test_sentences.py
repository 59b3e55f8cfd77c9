"""What an answer says, and its chart shows, when the record changes: the built rows with some
changed, and made-up ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.doors.analyses.analysis_support import (
    PUBLISHED,
    TRAINED,
    changed,
    flag_result,
    make_warehouse,
)

SCALED = "model = 'ResNet-50 v1.5' AND framework = 'TensorFlow1'"
RESNEXT = "task = 'inference' AND model_printed LIKE 'ResNeXt101%'"
GPU_ROW = "platform = '8x A100-80GB (DGX A100)' AND model = 'ResNet-50 v1.5' AND throughput = 16621"


@pytest.mark.parametrize(
    ("name", "statement", "before", "after"),
    [
        (
            "scaling",
            flag_result(f"{SCALED} AND platform = 'IPU-POD16' AND throughput = 30690"),
            "65 % on 256 (from 63 % to 74 %, 3 tests of 1 network)",
            "on 256 (from 63 % to 65 %, 2 tests of 1 network)",
        ),
        (
            "scaling",
            f"UPDATE results SET batch_size = NULL WHERE {SCALED} AND platform = 'IPU-POD256'",
            "(ResNet-50 v1.5 alone, 3 tests)",
            "(ResNet-50 v1.5 alone, 2 tests)",
        ),
        ("per_dollar", flag_result(GPU_ROW), "on 3 priced pairs", "on 1 priced pairs"),
        (
            "per_dollar",
            "UPDATE platforms SET list_price_usd = NULL WHERE platform = 'IPU-POD16'",
            "At list prices of June 2021, a dollar buys",
            "16 IPUs tie with 8 A100 in MLPerf training per dollar at $188,693",
        ),
        (
            "resnext101",
            "UPDATE results SET model = model_printed",
            "47 rows of ResNeXt101-32x4d",
            "15 rows of a model that no source states",
        ),
        (
            "resnext101",
            flag_result(f"{RESNEXT} AND throughput = 17176"),
            "Left out as not usable: 20 rows.",
            "Left out as not usable: 21 rows.",
        ),
        (
            "resnext101",
            f"DELETE FROM results WHERE {RESNEXT} AND origin = 'measured'",
            "Measured here are 10 points",
            "This warehouse has no run of this project's own.",
        ),
        (
            "resnext101",
            f"DELETE FROM results WHERE {RESNEXT} AND origin = 'emulated'",
            "This is not evidence",
            "This warehouse has no emulated points.",
        ),
        (  # whatever the other batches are
            "resnext101",
            f"UPDATE results SET latency_ms = 2 * latency_ms WHERE {RESNEXT} AND origin = 'emulated'",
            "by 2 % in the median and 6 % at most",
            "by 97 % in the median and 111 % at most",
        ),
        (
            "latency_bounded",
            "DELETE FROM results WHERE throughput IS NULL AND platform = '1x A100-40GB'",
            "83 rows print a latency and no throughput (BERT-Base, BERT-Large, EfficientNet-B7,",
            "3 rows print a latency and no throughput (EfficientNet-B7, EfficientNetB0_small and",
        ),
        (
            "c2_to_m2000",
            flag_result("throughput = 17176"),
            "Best against best, the ratio is 3.40",
            "Best against best, the ratio is 2.71",
        ),
    ],
)
def test_changed_record_changes_the_sentence(
    warehouse: Path, name: str, statement: str, before: str, after: str
) -> None:
    with changed(warehouse) as database:
        assert before in database.answer(name).summary
    with changed(warehouse, statement) as database:
        summary = database.answer(name).summary
    assert before not in summary
    assert after in summary


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


POPART = {**TRAINED, "framework": "PopART", "sdk_version": "3.0", "throughput": 100.0}
PYTORCH = {**POPART, "framework": "PyTorch", "throughput": 90.0}
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
    assert (
        "TensorFlow1 over PyTorch is 0.50 (2 pairs, 0.50 to 0.50) where PyTorch keeps fewer batches"
        " in flight (3.0 against 5.0) and 0.50 (one pair) where PyTorch keeps more batches in"
        " flight (3.0 against 2.0)." in make_warehouse(rows).answer("framework_effect").summary
    )


# charts


@pytest.mark.parametrize(
    ("rows", "works", "drawn"), [(3, 1, True), (2, 1, False), (8, 8, True), (9, 9, False)]
)
def test_panel_has_three_rows_or_more_and_at_most_eight_variants(
    rows: int, works: int, drawn: bool
) -> None:
    row = {**PUBLISHED, "task": "inference", "platform": "IPU-M2000", "batch_size": 8}
    row |= {"throughput": 100.0, "latency_ms": 1.0}
    points = [{**row, "variant": f"SL{1 + at % works}"} for at in range(rows)]
    points += [{**row, "model_printed": "Other"}] * 3
    panels = make_warehouse(points).draw("latency_bounded")["concat"]
    assert [panel["title"] for panel in panels] == [*(["Net"] if drawn else []), "Other"]


def test_emulated_points_are_hollow_dashed_and_labelled(warehouse: Path) -> None:
    with changed(warehouse) as database:
        chart = database.draw("resnext101")
    assert "EMULATED, not measured" in chart["title"]["subtitle"][1]
    for panel in chart["concat"]:
        lines, solid, hollow, _, word = panel["layer"]
        assert solid["transform"] == [{"filter": "datum.origin != 'emulated'"}]
        assert hollow["transform"] == [{"filter": "datum.origin == 'emulated'"}]
        assert (solid["mark"]["filled"], "filled" in hollow["mark"]) == (True, False)
        dashes = lines["encoding"]["strokeDash"]["scale"]
        assert dict(zip(dashes["domain"], dashes["range"], strict=True))["emulated"] == [4, 3]
        assert word["encoding"]["text"]["field"] == "word"
        rows = panel["data"]["values"]
        assert [row["origin"] for row in rows if row["word"]] == ["emulated"]
        curves = {(row["curve"], row["origin"]) for row in rows}
        assert len(curves) == len({curve for curve, _ in curves})


def test_each_tie_is_on_its_line(warehouse: Path) -> None:
    with changed(warehouse) as database:
        panels = database.draw("per_dollar")["concat"]
    for panel in panels:
        ties = {row["Name"]: row["Price of a tie (USD)"] for row in panel["data"]["values"]}
        lines: list[dict[str, Any]] = panel["layer"][2]["data"]["values"]
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
