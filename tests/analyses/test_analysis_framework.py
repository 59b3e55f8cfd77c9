"""The framework alone: pairs of rows of one test on one machine."""

from __future__ import annotations

from typing import Any

import pytest
from ipu_results.analyses.ratios import FRAMEWORK

from tests.analyses.analysis_support import OTHER_TEST, TRAINED, Database, make_warehouse
from tests.conftest import Query

# the committed rows


def test_ratios_of_printed_figures(query: Query) -> None:
    row = "framework = 'PyTorch' AND platform = 'IPU-POD64' ORDER BY throughput_ratio"
    assert query(f"SELECT throughput_ratio, base_framework, batch_size FROM framework_effect WHERE {row}") == [
        (pytest.approx(12251 / 14189), "PopART", 65536),
        (pytest.approx(3611 / 4003), "PopART", 16384),
    ]
    largest = "model = 'ResNet-50 v1.5' AND batch_size = 256"
    assert query(f"SELECT throughput_ratio FROM framework_effect WHERE {largest}") == [(pytest.approx(40085 / 49816),)]


def test_pairs_by_framework_and_network(query: Query) -> None:
    """ResNeXt101 on IPU-M2000 is 32x4d in TensorFlow1, and 32x8d with twice the work in PyTorch."""
    counts = "SELECT framework, base_framework, same_network, count(*) FROM framework_effect GROUP BY ALL ORDER BY ALL"
    assert query(counts) == [
        ("PyTorch", "PopART", True, 10),
        ("TensorFlow1", "PyTorch", False, 4),
        ("TensorFlow1", "PyTorch", True, 9),
        ("TensorFlow2", "TensorFlow1", True, 2),
    ]
    networks = query("SELECT DISTINCT model, network, base_network FROM framework_effect WHERE NOT same_network")
    assert networks == [("ResNeXt101", "ResNeXt101-32x4d", "ResNeXt101-32x8d")]


def test_excluded_rows(query: Query) -> None:
    """EfficientNet on IPU-POD16 differs in precision and batch: 16.32 at 1,024 in PyTorch, 16.16 at 6,144."""
    assert query("SELECT count(*) FROM framework_effect WHERE variant = 'G16-EfficientNet'") == [(0,)]
    for column in ("result_id", "base_result_id"):
        joined = f"SELECT count(*) FROM framework_effect e JOIN results r ON r.result_id = e.{column}"
        assert query(f"{joined} WHERE benchmark IS NOT NULL OR origin <> 'published'") == [(0,)]


def test_batches_in_flight_split_the_pairs(query: Query) -> None:
    """ResNet-50 on IPU-M2000: 16,207 images/s at 2.95 ms and 14,321 at 2.69 ms with batch 16."""
    columns = "SELECT batches_in_flight, base_batches_in_flight FROM framework_effect"
    assert query(f"{columns} WHERE model = 'ResNet-50 v1.5' AND batch_size = 16") == [
        (pytest.approx(16207 * 2.95 / 16000), pytest.approx(14321 * 2.69 / 16000))
    ]
    assert query(
        "SELECT base_batches_in_flight < batches_in_flight, count(*), round(geomean(throughput_ratio), 2) "
        "FROM framework_effect WHERE same_network AND task = 'inference' GROUP BY 1 ORDER BY 1"
    ) == [(False, 6, 0.71), (True, 3, 1.05)]


# made-up rows

POPART = {**TRAINED, "framework": "PopART", "sdk_version": "3.0", "throughput": 100.0}
PYTORCH = {**POPART, "framework": "PyTorch", "throughput": 90.0}
FASTER = [POPART, PYTORCH, {**POPART, "variant": "b"}, {**PYTORCH, "variant": "b", "throughput": 500.0}]
PAIRS = "SELECT framework, base_framework, throughput_ratio, same_network, errors FROM framework_effect ORDER BY ALL"


def summarise(database: Database) -> str:
    return FRAMEWORK.summarise({"framework_effect": database.frame("framework_effect")})


@pytest.mark.parametrize("more", [[], [{**POPART, "document_id": "page-1"}]], ids=["one page", "repeated by a page"])
def test_each_pair_appears_once(more: list[dict[str, Any]]) -> None:
    assert make_warehouse([*more, PYTORCH, POPART]).query(PAIRS) == [("PyTorch", "PopART", 0.9, True, 0)]


@pytest.mark.parametrize(
    "other",
    [
        *OTHER_TEST,
        {"publisher": "NVIDIA"},
        {"platform": "Bow Pod64"},
        {"framework": "PopART"},
        {"precision": None},
        {"sdk_version": "3.1"},
        {"item": "row"},
    ],
    ids=str,
)
def test_any_other_difference_makes_no_pair(other: dict[str, Any]) -> None:
    assert make_warehouse([POPART, {**PYTORCH, **other}]).query(PAIRS) == []


def test_flagged_row_is_marked_and_not_summarised() -> None:
    database = make_warehouse(FASTER, [{"result_id": "3", "rule": "R10", "severity": "error"}])
    assert [row[2:] for row in database.query(PAIRS)] == [(0.9, True, 0), (5.0, True, 1)]
    assert "0.90 (one pair) for PyTorch over PopART in training" in summarise(database)
    assert "5.00" not in summarise(database)


def test_mean_excludes_another_network() -> None:
    other = {**FASTER[3], "network": "Net-32x8d"}
    summary = summarise(make_warehouse([*FASTER[:3], other]))
    assert "0.90 (one pair) for PyTorch over PopART in training" in summary
    assert "Excluded is Net at 5.00" in summary


def test_summary_compares_batches_in_flight() -> None:
    pytorch = {**POPART, "task": "inference", "framework": "PyTorch", "latency_ms": 1920.0}  # three batches in flight
    rows = []
    for variant, depth in (("a", 2), ("b", 5), ("c", 5)):
        other = {"framework": "TensorFlow1", "throughput": 50.0, "latency_ms": depth * 64 * 1000 / 50}
        rows += [{**pytorch, "variant": variant}, {**pytorch, **other, "variant": variant}]
    assert (
        "TensorFlow1 over PyTorch is 0.50 (2 pairs, 0.50 to 0.50) where PyTorch keeps fewer batches in flight (3.0 "
        "against 5.0) and 0.50 (one pair) where PyTorch keeps more batches in flight (3.0 against 2.0)."
    ) in summarise(make_warehouse(rows))
