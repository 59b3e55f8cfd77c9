"""Bow over Classic: which rows pair, what the mean is, and what the naive join would make of it."""

from __future__ import annotations

from math import exp, log
from typing import Any

import pytest
from analysis_support import asked, made_up
from conftest import Ask

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


def mean(pairs: tuple[tuple[int, int], ...]) -> float:
    return exp(sum(log(bow / classic) for bow, classic in pairs) / len(pairs))


# the committed rows


@pytest.mark.parametrize(("chips", "pairs"), [(16, ON_16), (256, ON_256)])
def test_the_mean_of_matched_rows(ask: Ask, chips: int, pairs: tuple[tuple[int, int], ...]) -> None:
    assert ask(MEAN.format("generations", chips)) == [(pytest.approx(mean(pairs)), len(pairs))]


def test_what_the_means_are(ask: Ask) -> None:
    """1.38 on 16 chips beside a clock ratio of 1.85 / 1.33, 1.25 on 256."""
    assert mean(ON_16) == pytest.approx(1.38, abs=0.005)
    assert mean(ON_256) == pytest.approx(1.25, abs=0.005)
    assert ask("SELECT DISTINCT clock_ratio FROM generations") == [(pytest.approx(1.85 / 1.33),)]
    assert ask("SELECT count(*) FROM generations") == [(15,)]


def test_the_naive_join_says_something_else(ask: Ask) -> None:
    found, pairs = ask(MEAN.format("generations_naive", 16))[0]
    assert pairs == 207
    assert found == pytest.approx(1.5125, abs=0.0005)
    ends = ask("SELECT min(throughput_ratio), max(throughput_ratio) FROM generations_naive WHERE chip_count = 16")
    # GPT2-Large at sequence length 1024 over GPT2-Medium at 128; BERT-Large phase 1, packed, over fine-tuning.
    assert ends == [(pytest.approx(178 / 2540), pytest.approx(6044 / 744))]


def test_a_batch_that_differs_keeps_a_pair_out(ask: Ask) -> None:
    """ResNet-50 in TensorFlow1: 44,059 at batch 3,520 with SDK 3.0 is no match for 30,690 at batch 1,920."""
    pair = "bow_throughput = 44059 AND classic_throughput = 30690"
    assert ask(f"SELECT count(*) FROM generations WHERE {pair}") == [(0,)]
    found = ask(f"SELECT throughput_ratio, same_test, same_batch, near_sdk FROM generations_naive WHERE {pair}")
    assert found == [(pytest.approx(44059 / 30690), True, False, False)]


def test_a_row_on_two_page_versions_pairs_once(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM results WHERE throughput = 44059") == [(2,)]
    assert ask("SELECT count(DISTINCT bow_result_id) FROM generations_naive WHERE bow_throughput = 44059") == [(1,)]
    assert ask("SELECT count(*) - count(DISTINCT (bow_result_id, classic_result_id)) FROM generations_naive") == [(0,)]


def test_unknown_items_keep_mini_dall_e_out(ask: Ask) -> None:
    row = f"model = 'Mini DALL-E' AND near_sdk AND {SAME}"
    found = ask(f"SELECT throughput_ratio, same_item FROM generations_naive WHERE {row}")
    assert found == [(pytest.approx(1855 / 815), False)]
    assert ask("SELECT count(*) FROM generations WHERE item IS NULL") == [(0,)]


def test_no_flagged_row_and_no_mlperf_in_the_match(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM generations WHERE errors > 0") == [(0,)]
    assert ask("SELECT count(*) > 0 FROM generations_naive WHERE errors > 0") == [(True,)]
    for side in ("bow", "classic"):
        other = f"SELECT count(*) FROM generations_naive JOIN results ON {side}_result_id = result_id"
        assert ask(f"{other} WHERE benchmark IS NOT NULL OR origin <> 'published'") == [(0,)]


def test_the_pairs_are_those_of_rule_r07(ask: Ask) -> None:
    """The rule pairs rows of one page version whatever their SDK; each flagged ratio is one of these."""
    flagged = ask("""
        SELECT count(*), count(n.bow_result_id) FROM flags f
        LEFT JOIN generations_naive n
            ON n.bow_result_id = f.result_id AND same_test AND same_framework AND same_precision AND same_batch
            AND f.message LIKE printf('%.3g', throughput_ratio) || ' times%'
        WHERE f.rule = 'R07'
    """)
    assert flagged == [(8, 8)]


# made-up rows

BOW = {
    "origin": "published",
    "publisher": "Graphcore",
    "task": "training",
    "model": "Net",
    "platform": "Bow Pod16",
    "chip_count": 16,
    "framework": "PyTorch",
    "precision": "16.16",
    "batch_size": 64,
    "sdk_version": "2.5.0",
    "item": "image",
    "throughput": 140.0,
}
CLASSIC = {**BOW, "platform": "IPU-POD16", "sdk_version": "2.4.0", "throughput": 100.0}


def ratios(*rows: dict[str, Any], flags: tuple[dict[str, str], ...] = ()) -> list[float]:
    return [ratio for (ratio,) in asked(made_up(rows, flags), "SELECT throughput_ratio FROM generations ORDER BY 1")]


def test_a_pair() -> None:
    assert ratios(BOW, CLASSIC) == [1.4]


@pytest.mark.parametrize(
    "other",
    [
        {"task": "inference"},
        {"variant": "SL512"},
        {"dataset": "Generated"},
        {"framework": "TensorFlow2"},
        {"precision": "16.32"},
        {"batch_size": 128},
        {"batch_size": None},
        {"chip_count": 64},
        {"item": None},
        {"benchmark": "mlperf-training"},
        {"origin": "emulated"},
        {"sdk_version": "2.3.0"},
        {"sdk_version": "3.4"},
        {"sdk_version": None},
    ],
    ids=str,
)
def test_what_keeps_a_pair_apart(other: dict[str, Any]) -> None:
    assert ratios(BOW, {**CLASSIC, **other}) == []


@pytest.mark.parametrize(
    ("bow", "classic", "near"),
    [
        ("Pre-SDK2.5", "2.4.0", True),
        ("Pre-SDK2.5", "2.3.0", True),
        ("Pre-SDK2.5", "2.2.0", False),
        ("3.0", "2.4.0", False),
        ("2.4.1", "2.4.0", True),
        ("2.10", "2.9", True),
        ("2.10", "2.1", False),
    ],
)
def test_what_is_nearly_one_sdk(bow: str, classic: str, near: bool) -> None:
    assert bool(ratios({**BOW, "sdk_version": bow}, {**CLASSIC, "sdk_version": classic})) == near


def test_an_error_flag_keeps_a_pair_apart() -> None:
    assert ratios(BOW, CLASSIC, flags=({"result_id": "1", "rule": "R04", "severity": "error"},)) == []


def test_two_networks_under_one_name_are_no_pair() -> None:
    network = {"result_id": "1", "rule": "R20", "severity": "warn", "column_name": "model", "suggested": "Net-32x8d"}
    assert ratios(BOW, CLASSIC, flags=(network,)) == []


@pytest.mark.parametrize(
    ("latency_ms", "basis", "ratio"),
    [(32.0, "per-batch", 0.5), (32.0, "per-item", None), (32.0, None, None), (120.0, "per-batch", None)],
    ids=["one depth", "another basis", "no basis", "three batches in flight beside one"],
)
def test_a_latency_beside_another_basis_or_depth_gives_no_ratio(
    latency_ms: float, basis: str | None, ratio: float | None
) -> None:
    """Batch 64 at 2,000 items/s takes 32 ms with one batch in flight, at 1,000 items/s 64 ms."""
    timed = {"task": "inference", "batch_size": 64, "latency_basis": "per-batch"}
    bow = {**BOW, **timed, "throughput": 2000.0, "latency_ms": latency_ms, "latency_basis": basis}
    classic = {**CLASSIC, **timed, "throughput": 1000.0, "latency_ms": 64.0}
    assert asked(made_up([bow, classic]), "SELECT latency_ratio FROM generations_naive") == [(ratio,)]
