"""Latency-bounded throughput: which row wins a bound, and which may not."""

from __future__ import annotations

from typing import Any

import pytest
from analysis_support import asked, made_up
from conftest import Ask

POINT = {
    "origin": "published",
    "publisher": "Graphcore",
    "task": "inference",
    "model": "Net",
    "platform": "IPU-M2000",
    "chip_count": 4,
    "batch_size": 8,
    "item": "image",
}
BEST = "SELECT bound_ms, throughput FROM latency_bounded ORDER BY ALL"


def point(throughput: float, latency: float, **other: Any) -> dict[str, Any]:
    return {**POINT, "throughput": throughput, "latency_ms": latency, **other}


# the committed rows


def test_every_inference_row_with_both_figures_is_a_point(ask: Ask) -> None:
    """108 rows of the page less 4 without latency, 6 of the paper, 72 of NVIDIA's with a throughput, local ones."""
    counts = ask("SELECT origin, count(*) FROM latency_front GROUP BY origin ORDER BY origin")
    assert counts[2] == ("published", 108 - 4 + 6 + 72)
    assert ask("SELECT count(*) FROM latency_front") == ask(
        "SELECT count(*) FROM inference WHERE throughput IS NOT NULL AND latency_ms IS NOT NULL"
    )


def test_bounds_of_efficientnet_b0(ask: Ask) -> None:
    """IPU-M2000: 8,686 at 0.44 ms; 71,839 at 4.26; 86,986 at 6.77 (batch 128), not 69,852 at 9.15 (batch 144)."""
    row = "network = 'EfficientNet-B0' AND platform = 'IPU-M2000' ORDER BY bound_ms"
    assert ask(f"SELECT bound_ms, throughput, latency_ms FROM latency_bounded WHERE {row}") == [
        (1.0, 8686.0, 0.44),
        (5.0, 71839.0, 4.26),
        (10.0, 86986.0, 6.77),
        (20.0, 86986.0, 6.77),
    ]


def test_batches_in_flight(ask: Ask) -> None:
    found = ask("SELECT DISTINCT batches_in_flight FROM latency_bounded WHERE throughput = 86986")
    assert found[0][0] == pytest.approx(86986 * 6.77 / 1000 / 128)


def test_flagged_rows_stand_in_the_front_view_and_win_nothing(ask: Ask) -> None:
    """Three of FastSpeech2 and three of EfficientDet time an item (R01), two of Yolo v4 misprint the batch (R04)."""
    rows = "SELECT model, count(*) FROM latency_front WHERE errors > 0 GROUP BY model ORDER BY model"
    assert ask(rows) == [
        ("EfficientDet-D0", 1),
        ("EfficientDet-D1", 1),
        ("EfficientDet-D2", 1),
        ("FastSpeech2", 3),
        ("Yolo v4", 2),
    ]
    assert ask("SELECT count(*) FROM latency_front WHERE on_front AND errors > 0") == [(0,)]
    flagged = "(SELECT result_id FROM flags WHERE severity = 'error')"
    assert ask(f"SELECT count(*) FROM latency_bounded WHERE errors > 0 OR result_id IN {flagged}") == [(0,)]


def test_no_latency_of_an_item_and_no_suspect_row_wins_a_bound(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM latency_front WHERE latency_basis = 'per-item'") == [(9,)]
    assert ask("SELECT count(*) FROM latency_bounded WHERE latency_basis = 'per-item'") == [(0,)]
    assert ask("SELECT count(*) FROM latency_front WHERE suspect IS NOT NULL AND on_front") == [(0,)]
    assert ask("SELECT count(*) FROM latency_bounded JOIN results USING (result_id) WHERE suspect IS NOT NULL") == [
        (0,)
    ]


def test_two_networks_under_one_name_share_no_bound(ask: Ask) -> None:
    """ResNeXt101 on IPU-M2000 within 5 ms: 9,705 at batch 16 is 32x4d, 6,483 is 32x8d."""
    found = "SELECT network, throughput FROM latency_bounded WHERE model = 'ResNeXt101' AND platform = 'IPU-M2000'"
    assert ask(f"{found} AND bound_ms = 5 ORDER BY network") == [
        ("ResNeXt101-32x4d", 9705.0),
        ("ResNeXt101-32x8d", 6483.0),
    ]


def test_mlperf_is_nowhere(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM latency_front JOIN results USING (result_id) WHERE benchmark IS NOT NULL") == [
        (0,)
    ]


def test_a_row_of_the_front_is_beaten_by_none(ask: Ask) -> None:
    """Counted the other way round: over every pair of the competing rows of one group."""
    beaten = """
        SELECT count(*) FROM latency_front a JOIN latency_front b USING (origin, network, platform)
        WHERE a.on_front AND b.left_out IS NULL AND a.work IS NOT DISTINCT FROM b.work
            AND b.latency_ms < a.latency_ms AND b.throughput > a.throughput
    """
    assert ask(beaten) == [(0,)]


# made-up rows


def test_the_best_row_within_a_bound() -> None:
    database = made_up([point(100, 0.5), point(300, 4), point(200, 5), point(900, 21)])
    assert asked(database, BEST) == [(1.0, 100.0), (5.0, 300.0), (10.0, 300.0), (20.0, 300.0)]
    front = asked(database, "SELECT throughput FROM latency_front WHERE on_front ORDER BY 1")
    assert front == [(100.0,), (300.0,), (900.0,)]


def test_an_error_flag_takes_a_row_out_and_a_warning_does_not() -> None:
    rows = [point(100, 0.5), point(900, 0.9)]
    said = {"result_id": "1", "rule": "R01"}
    assert asked(made_up(rows, [{**said, "severity": "warn"}]), BEST)[0] == (1.0, 900.0)
    database = made_up(rows, [{**said, "severity": "error"}])
    assert asked(database, BEST)[0] == (1.0, 100.0)
    assert asked(database, "SELECT throughput, left_out, on_front FROM latency_front ORDER BY 1") == [
        (100.0, None, True),
        (900.0, "error", False),
    ]


@pytest.mark.parametrize("doubt", [{"latency_basis": "per-item"}, {"suspect": "drift"}])
def test_a_doubtful_row_wins_nothing(doubt: dict[str, str]) -> None:
    assert asked(made_up([point(100, 0.5), point(900, 0.9, **doubt)]), BEST)[0] == (1.0, 100.0)


@pytest.mark.parametrize(
    "other", [{"origin": "emulated"}, {"platform": "C2"}, {"variant": "SL128"}, {"item": "row"}, {"model": "Nett"}]
)
def test_what_makes_another_group(other: dict[str, str]) -> None:
    database = made_up([point(100, 0.5), point(900, 0.9, **other)])
    assert asked(database, "SELECT count(*) FROM latency_bounded WHERE bound_ms = 1") == [(2,)]
    assert asked(database, "SELECT count(*) FROM latency_front WHERE on_front") == [(2,)]


@pytest.mark.parametrize("other", [{"variant": "lowest latency config"}, {"framework": "PyTorch"}, {"batch_size": 16}])
def test_what_makes_no_other_group(other: dict[str, Any]) -> None:
    database = made_up([point(100, 0.9), point(900, 0.5, **other)])
    assert asked(database, "SELECT throughput FROM latency_front WHERE on_front") == [(900.0,)]
