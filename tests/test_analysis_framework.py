"""The framework alone: pairs of rows of one test on one machine."""

from __future__ import annotations

from typing import Any

import pytest
from analysis_support import asked, made_up
from conftest import Ask
from ipu_results.analyses.framework import ANALYSIS

# the committed rows


def test_figures(ask: Ask) -> None:
    row = "framework = 'PyTorch' AND platform = 'IPU-POD64' ORDER BY throughput_ratio"
    found = ask(f"SELECT throughput_ratio, base_framework, batch_size FROM framework_effect WHERE {row}")
    assert found == [
        (pytest.approx(12251 / 14189), "PopART", 65536),
        (pytest.approx(3611 / 4003), "PopART", 16384),
    ]
    largest = "model = 'ResNet-50 v1.5' AND batch_size = 256"
    assert ask(f"SELECT throughput_ratio FROM framework_effect WHERE {largest}") == [(pytest.approx(40085 / 49816),)]


def test_pairs_by_framework(ask: Ask) -> None:
    counted = "SELECT framework, base_framework, same_network, count(*) FROM framework_effect GROUP BY ALL ORDER BY ALL"
    assert ask(counted) == [
        ("PyTorch", "PopART", True, 10),
        ("TensorFlow1", "PyTorch", False, 4),
        ("TensorFlow1", "PyTorch", True, 9),
        ("TensorFlow2", "TensorFlow1", True, 2),
    ]


def test_two_networks_under_one_name_are_marked(ask: Ask) -> None:
    """ResNeXt101 on IPU-M2000: 32x4d in TensorFlow1, 32x8d with twice the work in PyTorch."""
    found = ask("SELECT DISTINCT model, network, base_network FROM framework_effect WHERE NOT same_network")
    assert found == [("ResNeXt101", "ResNeXt101-32x4d", "ResNeXt101-32x8d")]
    assert ask("SELECT count(*) FROM framework_effect WHERE model = 'ResNeXt101' AND same_network") == [(0,)]


def test_efficientnet_in_another_precision_and_batch_is_no_pair(ask: Ask) -> None:
    """G16-EfficientNet on IPU-POD16: 16.32 at batch 1,024 in PyTorch, 16.16 at 6,144 in TensorFlow1."""
    assert ask("SELECT count(*) FROM framework_effect WHERE variant = 'G16-EfficientNet'") == [(0,)]


def test_no_mlperf(ask: Ask) -> None:
    for side in ("result_id", "base_result_id"):
        joined = f"SELECT count(*) FROM framework_effect e JOIN results r ON r.result_id = e.{side}"
        assert ask(f"{joined} WHERE benchmark IS NOT NULL OR origin <> 'published'") == [(0,)]


def test_batches_in_flight_split_the_pairs(ask: Ask) -> None:
    """ResNet-50 on IPU-M2000: 16,207 images/s at 2.95 ms and 14,321 at 2.69 ms with batch 16."""
    columns = "SELECT batches_in_flight, base_batches_in_flight FROM framework_effect"
    assert ask(f"{columns} WHERE model = 'ResNet-50 v1.5' AND batch_size = 16") == [
        (pytest.approx(16207 * 2.95 / 16000), pytest.approx(14321 * 2.69 / 16000))
    ]
    split = "base_batches_in_flight < batches_in_flight"
    assert ask(
        f"SELECT {split}, count(*), round(geomean(throughput_ratio), 2) FROM framework_effect "
        "WHERE same_network AND task = 'inference' GROUP BY 1 ORDER BY 1"
    ) == [(False, 6, 0.71), (True, 3, 1.05)]


# made-up rows

POPART = {
    "origin": "published",
    "publisher": "Graphcore",
    "task": "training",
    "model": "Net",
    "platform": "Bow Pod16",
    "framework": "PopART",
    "precision": "16.16",
    "batch_size": 64,
    "sdk_version": "3.0",
    "item": "image",
    "throughput": 100.0,
}
PYTORCH = {**POPART, "framework": "PyTorch", "throughput": 90.0}
PAIRS = "SELECT framework, base_framework, throughput_ratio, same_network, errors FROM framework_effect ORDER BY ALL"


def test_each_pair_stands_once() -> None:
    assert asked(made_up([PYTORCH, POPART]), PAIRS) == [("PyTorch", "PopART", 0.9, True, 0)]


def test_a_row_repeated_by_another_page_version_pairs_once() -> None:
    assert len(asked(made_up([{**POPART, "document_id": "page-1"}, POPART, PYTORCH]), PAIRS)) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"task": "inference"},
        {"publisher": "NVIDIA"},
        {"variant": "SL512"},
        {"dataset": "Generated"},
        {"platform": "Bow Pod64"},
        {"framework": "PopART"},
        {"precision": "16.32"},
        {"precision": None},
        {"batch_size": 128},
        {"batch_size": None},
        {"sdk_version": "3.1"},
        {"sdk_version": None},
        {"item": "row"},
        {"benchmark": "mlperf-training"},
        {"origin": "measured"},
    ],
    ids=str,
)
def test_what_else_may_not_differ(other: dict[str, Any]) -> None:
    assert asked(made_up([POPART, {**PYTORCH, **other}]), PAIRS) == []


def test_a_flagged_row_is_marked_and_told_of_nowhere() -> None:
    rows = [POPART, PYTORCH, {**POPART, "variant": "b"}, {**PYTORCH, "variant": "b", "throughput": 500.0}]
    database = made_up(rows, [{"result_id": "3", "rule": "R10", "severity": "error"}])
    assert [row[2:] for row in asked(database, PAIRS)] == [(0.9, True, 0), (5.0, True, 1)]
    told = ANALYSIS.told({"framework_effect": database.sql("FROM framework_effect").df()})
    assert "PyTorch over PopART in training 0.90 (one pair)" in told
    assert "5.00" not in told


def test_the_mean_leaves_out_another_network() -> None:
    rows = [POPART, PYTORCH, {**POPART, "variant": "b"}, {**PYTORCH, "variant": "b", "throughput": 500.0}]
    flag = {"result_id": "3", "rule": "R20", "severity": "warn", "column_name": "model", "suggested": "Net-32x8d"}
    told = ANALYSIS.told({"framework_effect": made_up(rows, [flag]).sql("FROM framework_effect").df()})
    assert "PyTorch over PopART in training 0.90" in told
    assert "Not among them is Net at 5.00" in told


def test_the_paragraph_tells_unlike_batches_in_flight() -> None:
    one = {**POPART, "task": "inference", "framework": "PyTorch", "latency_ms": 1.92}  # three batches in flight
    rows = [one]
    for variant, depth in (("a", 2), ("b", 5), ("c", 5)):
        rows += [
            {**one, "variant": variant},
            {**one, "variant": variant, "framework": "TensorFlow1", "throughput": 50.0},
        ]
        rows[-1]["latency_ms"] = depth * 64 * 1000 / 50
        rows[-2]["latency_ms"] = 3 * 64 * 1000 / 100
    told = ANALYSIS.told({"framework_effect": made_up(rows).sql("FROM framework_effect").df()})
    assert (
        "TensorFlow1 over PyTorch is 0.50 (2 pairs, 0.50 to 0.50) where PyTorch keeps fewer in flight (3.0 batches "
        "against 5.0) and 0.50 (one pair) where PyTorch keeps more in flight (3.0 batches against 2.0)"
    ) in told
