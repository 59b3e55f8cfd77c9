"""From the C2 to the IPU-M2000: per chip, at equal micro-batch, on one network."""

from __future__ import annotations

from pathlib import Path

import altair
import pytest
from ipu_results.analyses.resnext101 import C2_TO_M2000

from tests.analyses.analysis_support import changed, flag_result, load
from tests.conftest import Query

EQUAL = "pairing = 'equal micro-batch'"
BEST = "pairing = 'best of each'"


def test_ratios_at_equal_micro_batch(query: Query) -> None:
    """Printed: batch 2, 4, 8 on two chips and 4, 8, 16 on four."""
    columns = "c2_micro_batch_size, m2000_micro_batch_size, ratio"
    assert query(f"SELECT {columns} FROM c2_to_m2000 WHERE {EQUAL} ORDER BY 1") == [
        (1, 1, pytest.approx((4483 / 4) / (1474.16 / 2))),
        (2, 2, pytest.approx((6435 / 4) / (2063.03 / 2))),
        (4, 4, pytest.approx((9705 / 4) / (2409.79 / 2))),
    ]


def test_ratio_of_the_best_rows_and_peaks(query: Query) -> None:
    columns = "c2_micro_batch_size, m2000_micro_batch_size, ratio, peak_ratio, tile_cycles_ratio, ratio_over_peak"
    [row] = query(f"SELECT {columns} FROM c2_to_m2000 WHERE {BEST}")
    ratio, peak = (17176 / 4) / (2526.35 / 2), 249.65 / 124.5
    assert row == pytest.approx((6, 16, ratio, peak, (1472 * 1.33) / (1216 * 1.6), ratio / peak), rel=1e-3)


def test_batches_in_flight_and_time_between_batches(query: Query) -> None:
    columns = "c2_batch_period_ms, m2000_batch_period_ms, c2_batches_in_flight, m2000_batches_in_flight"
    [row] = query(f"SELECT {columns} FROM c2_to_m2000 WHERE {EQUAL} AND c2_micro_batch_size = 1")
    assert row == pytest.approx((2000 / 1474.16, 4000 / 4483, 1474.16 * 1.36 / 2000, 4483 * 2.66 / 4000))


def test_only_published_rows_of_one_network(query: Query) -> None:
    """No 32x8d row of PyTorch and nothing emulated, which would all have a partner."""
    assert query("SELECT pairing, count(*), count(ratio) FROM c2_to_m2000 GROUP BY 1 ORDER BY 1") == [
        ("C2 alone", 3, 0),
        ("IPU-M2000 alone", 2, 0),
        ("best of each", 1, 1),
        ("equal micro-batch", 3, 3),
    ]
    assert query(
        "SELECT DISTINCT r.origin, r.publisher, r.framework, r.task FROM c2_to_m2000 v "
        "JOIN results r ON r.result_id IN (v.c2_result_id, v.m2000_result_id) ORDER BY 2"
    ) == [("published", "Graphcore", "TensorFlow1", "inference"), ("published", "Qwant", "PopART", "inference")]


def test_network_is_that_of_the_result_not_of_the_framework(warehouse: Path) -> None:
    swap = (
        "UPDATE results SET network = CASE network WHEN 'ResNeXt101-32x4d' THEN 'ResNeXt101-32x8d' "
        "ELSE 'ResNeXt101-32x4d' END WHERE model = 'ResNeXt101' AND platform = 'IPU-M2000'"
    )
    sql = f"SELECT m2000_framework, ratio FROM c2_to_m2000 WHERE {EQUAL} AND c2_micro_batch_size = 1"
    with changed(warehouse, swap) as database:
        assert database.query(sql) == [("PyTorch", pytest.approx((3395 / 4) / (1474.16 / 2)))]
    with changed(warehouse, "UPDATE results SET network = model") as database:
        assert database.query("SELECT count(*) FROM c2_to_m2000") == [(0,)]


def test_flagged_row_is_not_the_best(warehouse: Path) -> None:
    with changed(warehouse, flag_result("throughput = 17176")) as database:
        assert database.query(f"SELECT m2000_throughput_per_chip FROM c2_to_m2000 WHERE {BEST}") == [(13693 / 4,)]
        assert database.query("SELECT count(*) FROM c2_to_m2000 WHERE errors > 0") == [(1,)]


def test_summary_and_chart(warehouse: Path) -> None:
    frames = load(warehouse, C2_TO_M2000)
    summary = C2_TO_M2000.summarise(frames)
    assert "1.52 at 1 (1,121 against 737 images/s)" in summary
    assert "Best against best, the ratio is 3.40" in summary
    assert "1.36 ms stand for 1.0 batches in flight, and the IPU-M2000's 2.66 ms for 3.0" in summary
    left, _ = C2_TO_M2000.build_chart(altair, frames).to_dict()["hconcat"]
    assert sorted((point["machine"], point["micro_batch"]) for point in left["data"]["values"]) == [
        *(("C2", size) for size in (1, 2, 3, 4, 5, 6)),
        *(("IPU-M2000", size) for size in (1, 2, 4, 8, 16)),
    ]
