"""From the C2 to the IPU-M2000: per chip, at equal micro-batch, on one network."""

from __future__ import annotations

from pathlib import Path

import altair
import pytest
from altered_support import altered
from conftest import Ask
from ipu_results.analyses import c2_to_m2000, rows
from ipu_results.analyses.analysis import Frames
from ipu_results.store.query import open_warehouse

EQUAL = "pairing = 'equal micro-batch'"


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    with open_warehouse(warehouse) as connection:
        return rows(connection, c2_to_m2000.ANALYSIS)


def test_equal_micro_batches(ask: Ask) -> None:
    """Printed: batch 2, 4, 8 on two chips and 4, 8, 16 on four."""
    found = ask(f"SELECT c2_micro_batch_size, m2000_micro_batch_size, ratio FROM c2_to_m2000 WHERE {EQUAL} ORDER BY 1")
    assert found == [
        (1, 1, pytest.approx((4483 / 4) / (1474.16 / 2))),
        (2, 2, pytest.approx((6435 / 4) / (2063.03 / 2))),
        (4, 4, pytest.approx((9705 / 4) / (2409.79 / 2))),
    ]


def test_equal_batches_of_the_machines_would_give_another_answer(ask: Ask) -> None:
    naive = (4483 / 4) / (2063.03 / 2)
    assert all(ratio > 1.3 * naive for (ratio,) in ask(f"SELECT ratio FROM c2_to_m2000 WHERE {EQUAL}"))


def test_best_against_best(ask: Ask) -> None:
    columns = "c2_micro_batch_size, m2000_micro_batch_size, ratio, peak_ratio, tile_cycles_ratio, ratio_over_peak"
    [row] = ask(f"SELECT {columns} FROM c2_to_m2000 WHERE pairing = 'best of each'")
    ratio, peak = (17176 / 4) / (2526.35 / 2), 249.65 / 124.5
    assert row == pytest.approx((6, 16, ratio, peak, (1472 * 1.33) / (1216 * 1.6), ratio / peak), rel=1e-3)


def test_latencies_stand_beside_the_batches_in_flight(ask: Ask) -> None:
    columns = "c2_batch_period_ms, m2000_batch_period_ms, c2_batches_in_flight, m2000_batches_in_flight"
    [row] = ask(f"SELECT {columns} FROM c2_to_m2000 WHERE {EQUAL} AND c2_micro_batch_size = 1")
    assert row == pytest.approx((2000 / 1474.16, 4000 / 4483, 1474.16 * 1.36 / 2000, 4483 * 2.66 / 4000))


def test_the_rows(ask: Ask) -> None:
    assert ask("SELECT pairing, count(*), count(ratio) FROM c2_to_m2000 GROUP BY 1 ORDER BY 1") == [
        ("C2 alone", 3, 0),
        ("IPU-M2000 alone", 2, 0),
        ("best of each", 1, 1),
        ("equal micro-batch", 3, 3),
    ]


def test_only_published_rows_of_the_one_network(ask: Ask) -> None:
    """No 32x8d row of PyTorch, nothing emulated, which would all have found a partner."""
    found = ask(
        "SELECT DISTINCT r.origin, r.publisher, r.framework, r.task FROM c2_to_m2000 v "
        "JOIN results r ON r.result_id IN (v.c2_result_id, v.m2000_result_id) ORDER BY 2"
    )
    assert found == [
        ("published", "Graphcore", "TensorFlow1", "inference"),
        ("published", "Qwant", "PopART", "inference"),
    ]


def test_what_ran_is_taken_from_the_flag_and_not_from_the_framework(warehouse: Path) -> None:
    swapped = (
        "UPDATE flags SET suggested = CASE suggested WHEN 'ResNeXt101-32x4d' THEN 'ResNeXt101-32x8d' "
        "ELSE 'ResNeXt101-32x4d' END WHERE rule = 'R20' AND result_id IN "
        "(SELECT result_id FROM results WHERE platform = 'IPU-M2000')"
    )
    asked = f"SELECT m2000_framework, ratio FROM c2_to_m2000 WHERE {EQUAL} AND c2_micro_batch_size = 1"
    with altered(warehouse, swapped) as found:
        assert found.rows(asked) == [("PyTorch", pytest.approx((3395 / 4) / (1474.16 / 2)))]
    with altered(warehouse, "DELETE FROM flags WHERE rule = 'R20'") as found:
        assert found.rows("SELECT count(*) FROM c2_to_m2000") == [(0,)]


def test_a_flagged_row_is_no_best(warehouse: Path) -> None:
    flag = (
        "INSERT INTO flags BY NAME SELECT 'R01' AS rule, 'error' AS severity, result_id FROM results "
        "WHERE throughput = 17176"
    )
    asked = "SELECT m2000_throughput_per_chip FROM c2_to_m2000 WHERE pairing = 'best of each'"
    with altered(warehouse, flag) as found:
        assert found.rows(asked) == [(13693 / 4,)]
        assert found.rows("SELECT count(*) FROM c2_to_m2000 WHERE errors > 0") == [(1,)]


def test_the_paragraph(frames: Frames) -> None:
    told = c2_to_m2000.told(frames)
    assert "1.52 times at 1 (1,121 against 737 images/s)" in told
    assert "Best against best it is 3.40 times" in told
    assert "1.36 ms stand for 1.0 batches in flight, the IPU-M2000's 2.66 ms for 3.0" in told


def test_the_chart_draws_each_row_once(frames: Frames) -> None:
    left, _ = c2_to_m2000.chart(altair, frames).to_dict()["hconcat"]
    points = left["data"]["values"]
    assert sorted((point["machine"], point["micro_batch"]) for point in points) == [
        *(("C2", size) for size in (1, 2, 3, 4, 5, 6)),
        *(("IPU-M2000", size) for size in (1, 2, 4, 8, 16)),
    ]
