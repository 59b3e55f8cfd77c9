"""Bow over Classic: which rows are paired, the means, and what the naive join shows."""

from __future__ import annotations

from math import exp, log
from typing import Any

import pytest

from tests.analyses.analysis_support import OTHER_TEST, TRAINED, make_warehouse
from tests.conftest import Query

MEAN = "SELECT exp(avg(ln(throughput_ratio))), count(*) FROM {} WHERE chip_count = {}"
# Bow and Classic figures as printed on the page of March 2022 and under pod_training: equal in all but the machine.
ON_16 = (
    (5179, 3738),  # BERT-Large phase 1, PopART, batch 65,536
    (5125, 3704),  # the same, TensorFlow1, batch 65,600
    (1470, 1063),  # phase 2, PopART, 16,384
    (1420, 1025),  # phase 2, TensorFlow1, 16,400
    (8936, 6379),  # EfficientNet-B4, TensorFlow1, 6,144
    (12221, 9023),  # ResNeXt101, TensorFlow1, 768
    (42029, 30690),  # ResNet-50, TensorFlow1, 1,920
)
ON_256 = ((117641, 87968), (425514, 365040))
SAME = "same_test AND same_framework AND same_precision AND same_batch"

# the committed rows


@pytest.mark.parametrize(("chips", "pairs", "rounded"), [(16, ON_16, 1.38), (256, ON_256, 1.25)])
def test_mean_of_matched_rows(query: Query, chips: int, pairs: tuple[tuple[int, int], ...], rounded: float) -> None:
    mean = exp(sum(log(bow / classic) for bow, classic in pairs) / len(pairs))
    assert mean == pytest.approx(rounded, abs=0.005)
    assert query(MEAN.format("generations", chips)) == [(pytest.approx(mean), len(pairs))]


def test_clock_ratio_and_number_of_pairs(query: Query) -> None:
    assert query("SELECT DISTINCT clock_ratio FROM generations") == [(pytest.approx(1.85 / 1.33),)]
    assert query("SELECT count(*) FROM generations") == [(15,)]


def test_naive_join_differs(query: Query) -> None:
    """GPT2-Large at sequence length 1024 over GPT2-Medium at 128; BERT-Large phase 1, packed, over fine-tuning."""
    assert query(MEAN.format("generations_naive", 16)) == [(pytest.approx(1.5125, abs=0.0005), 207)]
    extremes = query("SELECT min(throughput_ratio), max(throughput_ratio) FROM generations_naive WHERE chip_count = 16")
    assert extremes == [(pytest.approx(178 / 2540), pytest.approx(6044 / 744))]


def test_different_batch_excludes_a_pair(query: Query) -> None:
    """ResNet-50 in TensorFlow1: 44,059 at batch 3,520 with SDK 3.0 does not match 30,690 at batch 1,920."""
    pair = "bow_throughput = 44059 AND classic_throughput = 30690"
    assert query(f"SELECT count(*) FROM generations WHERE {pair}") == [(0,)]
    columns = "throughput_ratio, same_test, same_batch, near_sdk"
    assert query(f"SELECT {columns} FROM generations_naive WHERE {pair}") == [
        (pytest.approx(44059 / 30690), True, False, False)
    ]


def test_row_of_two_page_versions_is_paired_once(query: Query) -> None:
    assert query("SELECT count(*) FROM results WHERE throughput = 44059") == [(2,)]
    ids = "SELECT count(DISTINCT bow_result_id) FROM generations_naive WHERE bow_throughput = 44059"
    assert query(ids) == [(1,)]
    assert query("SELECT count(*) - count(DISTINCT (bow_result_id, classic_result_id)) FROM generations_naive") == [
        (0,)
    ]


def test_unknown_items_exclude_mini_dall_e(query: Query) -> None:
    row = f"model = 'Mini DALL-E' AND near_sdk AND {SAME}"
    assert query(f"SELECT throughput_ratio, same_item FROM generations_naive WHERE {row}") == [
        (pytest.approx(1855 / 815), False)
    ]
    assert query("SELECT count(*) FROM generations WHERE item IS NULL") == [(0,)]


def test_no_flagged_row_and_no_mlperf(query: Query) -> None:
    assert query("SELECT count(*) FROM generations WHERE errors > 0") == [(0,)]
    assert query("SELECT count(*) > 0 FROM generations_naive WHERE errors > 0") == [(True,)]
    for machine in ("bow", "classic"):
        joined = f"SELECT count(*) FROM generations_naive JOIN results ON {machine}_result_id = result_id"
        assert query(f"{joined} WHERE benchmark IS NOT NULL OR origin <> 'published'") == [(0,)]


def test_pairs_are_those_of_rule_r07(query: Query) -> None:
    """The rule pairs rows of one page version whatever their SDK; each flagged ratio is one of these."""
    assert query(f"""
        SELECT count(*), count(n.bow_result_id) FROM flags f
        LEFT JOIN generations_naive n ON n.bow_result_id = f.result_id AND {SAME}
            AND f.message LIKE printf('%.3g', throughput_ratio) || ' times%'
        WHERE f.rule = 'R07'
    """) == [(8, 8)]


# made-up rows

BOW = {**TRAINED, "chip_count": 16, "framework": "PyTorch", "sdk_version": "2.5.0", "throughput": 140.0}
CLASSIC = {**BOW, "platform": "IPU-POD16", "sdk_version": "2.4.0", "throughput": 100.0}


def ratios(*rows: dict[str, Any], flags: tuple[dict[str, str], ...] = ()) -> list[float]:
    rows_ = make_warehouse(rows, flags).query("SELECT throughput_ratio FROM generations ORDER BY 1")
    return [ratio for (ratio,) in rows_]


@pytest.mark.parametrize(
    "other",
    [
        *OTHER_TEST,
        {"framework": "TensorFlow2"},
        {"chip_count": 64},
        {"item": None},
        {"sdk_version": "2.3.0"},
        {"sdk_version": "3.4"},
    ],
    ids=str,
)
def test_any_other_difference_makes_no_pair(other: dict[str, Any]) -> None:
    assert ratios(BOW, {**CLASSIC, **other}) == []


@pytest.mark.parametrize(
    ("bow", "classic", "near"),
    [
        ("2.5.0", "2.4.0", True),
        ("Pre-SDK2.5", "2.4.0", True),
        ("Pre-SDK2.5", "2.3.0", True),
        ("Pre-SDK2.5", "2.2.0", False),
        ("3.0", "2.4.0", False),
        ("2.4.1", "2.4.0", True),
        ("2.10", "2.9", True),
        ("2.10", "2.1", False),
    ],
)
def test_nearly_the_same_sdk(bow: str, classic: str, near: bool) -> None:
    assert ratios({**BOW, "sdk_version": bow}, {**CLASSIC, "sdk_version": classic}) == ([1.4] if near else [])


def test_error_and_another_network_make_no_pair() -> None:
    assert ratios(BOW, CLASSIC, flags=({"result_id": "1", "rule": "R04", "severity": "error"},)) == []
    assert ratios(BOW, {**CLASSIC, "network": "Net-32x8d"}) == []


@pytest.mark.parametrize(
    ("latency_ms", "basis", "ratio"),
    [(32.0, "per-batch", 0.5), (32.0, "per-item", None), (32.0, None, None), (120.0, "per-batch", None)],
    ids=["same depth", "another basis", "no basis", "three batches in flight against one"],
)
def test_latency_ratio_needs_one_basis_and_depth(latency_ms: float, basis: str | None, ratio: float | None) -> None:
    """Batch 64 at 2,000 items/s takes 32 ms with one batch in flight, at 1,000 items/s 64 ms."""
    timed = {"task": "inference", "latency_basis": "per-batch"}
    bow = {**BOW, **timed, "throughput": 2000.0, "latency_ms": latency_ms, "latency_basis": basis}
    classic = {**CLASSIC, **timed, "throughput": 1000.0, "latency_ms": 64.0}
    assert make_warehouse([bow, classic]).query("SELECT latency_ratio FROM generations_naive") == [(ratio,)]
