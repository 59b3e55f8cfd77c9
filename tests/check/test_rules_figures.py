"""Rules about throughput, latency and batch, on rows of the performance page of 2023-07-04."""

from __future__ import annotations

import pandas as pd
import pytest
from ipu_results.check.rules.little import find_median_of_others

from tests.check import rules_support as real
from tests.check.rules_support import change, change_vocabulary, find, find_places, pick


def test_latency_below_the_period() -> None:
    end = "items, one item on each chip; at least {} ms per batch if the printed value is per item"
    assert find("R01", pick(real.FASTSPEECH)) == [
        (
            *("error", "bow_inference 35", "latency_ms"),
            "0.25 batches in flight: throughput 4354 × latency 0.92 ms / batch 16; 4.01 " + end.format(3.67),
            "at least 3.67",
        ),
        (
            *("error", "bow_inference 36", "latency_ms"),
            "0.125 batches in flight: throughput 4949 × latency 0.81 ms / batch 32; 4.01 " + end.format(6.47),
            "at least 6.47",
        ),
        (
            *("error", "bow_inference 37", "latency_ms"),
            "0.0667 batches in flight: throughput 5201 × latency 0.77 ms / batch 60; 4 " + end.format(11.5),
            "at least 11.5",
        ),
    ]
    assert (
        find(
            "R01",
            pick("bow_inference 34", real.BERT_LARGE, real.EFFICIENTNET_B0, real.RESNEXT, real.YOLO_POD, real.DINO),
        )
        == []
    )


def test_one_batch_in_flight_is_reached_within_the_printed_digits() -> None:
    data = pick("bow_inference 4-6")
    for row, throughput, latency in ((4, "1,000", "95"), (5, "1,000", "94.99"), (6, "0", "95")):
        data = change(data, f"bow_inference {row}", batch_size="100", throughput=throughput, latency_ms=latency)
    assert find_places("R01", data) == ["bow_inference 5"]


def describe_fall(figures: str) -> str:
    return f"latency falls as the batch grows: {figures}"


def test_latency_that_falls_with_the_batch() -> None:
    data = change(pick("bow_inference 4-6"), "bow_inference 5", throughput="9,000", latency_ms="1.32")
    assert find("R02", data) == [
        ("error", "bow_inference 5", "latency_ms", describe_fall("1.32 ms at batch 8, 1.36 at 4"), None)
    ]
    assert find("R02", pick(real.BERT_LARGE, real.EFFICIENTNET_B0, real.RESNEXT)) == []
    below = change(pick("bow_inference 4-6"), "bow_inference 5", latency_ms="1.32")  # R01 says why
    assert (find("R02", below), find_places("R01", below)) == ([], ["bow_inference 5"])


def test_fall_within_the_repeatability_of_timings_only_warns() -> None:
    data = change(pick("bow_inference 4-6"), "bow_inference 5", throughput="9,000", latency_ms="1.34")
    assert find("R02", data) == [
        ("warn", "bow_inference 5", "latency_ms", describe_fall("1.34 ms at batch 8, 1.36 at 4"), None)
    ]


def test_curve_ends_where_anything_but_the_batch_changes() -> None:
    data = change(pick("bow_inference 4-5"), "bow_inference 5", throughput="2,700", latency_ms="1.2")
    data = change(data, "bow_inference 4", throughput="9,000")
    data = change(data, "bow_inference 5", batch_size="5", latency_ms="1.90")
    falls = change(data, "bow_inference 4", latency_ms="2.00")
    for rule in ("R02", "R03", "R05"):
        assert find_places(rule, falls) == ["bow_inference 5"]
        assert find(rule, change(falls, "bow_inference 5", framework="PyTorch")) == []


def test_throughput_that_falls_with_the_batch() -> None:
    fall = "throughput falls by {} % as the batch grows: {} items/s at batch {}, {} at {}"
    assert find("R03", pick(real.EFFICIENTNET_B0)) == [
        ("warn", "pod_inference 41", "throughput", fall.format(19.7, 69852, 144, 86986, 128), None),
        ("warn", "pod_inference 42", "throughput", fall.format(11.7, 61714, 196, 69852, 144), None),
    ]
    assert find("R03", pick(real.FASTSPEECH, real.BERT_LARGE, real.RESNEXT)) == []


def test_batch_that_contradicts_its_siblings() -> None:
    assert find("R04", pick(real.YOLO_BOW, real.YOLO_POD)) == [
        (
            *("error", "pod_inference 68", "batch_size"),
            "3.23 batches in flight at batch 4, 1.48 on Bow-2000 at batch 8; 1.61 if the batch were 8 here too",
            "8",
        ),
        (
            *("error", "pod_inference 69", "batch_size"),
            "7.05 batches in flight at batch 4, 1.68 on Bow-2000 at batch 16; 1.76 if the batch were 16 here too",
            "16",
        ),
    ]
    # without the other machine, the variants only suggest
    assert find("R04", pick(real.YOLO_POD)) == [
        (
            *("warn", "pod_inference 68", "batch_size"),
            "3.23 batches in flight at batch 4, 1.75 in the other variants on IPU-M2000; "
            "1.61 if the batch were 8, the only one printed there that agrees",
            "8",
        )
    ]
    # without variants, either machine may be wrong
    flags = find("R04", pick("bow_inference 25", "pod_inference 68"))
    assert [(severity, place, suggested) for severity, place, _, _, suggested in flags] == [
        ("warn", "bow_inference 25", "4"),
        ("warn", "pod_inference 68", "8"),
    ]


def test_median_of_others_leaves_out_each_value_itself() -> None:
    values = pd.Series([5.0, 1.0, 2.0, 8.0, 3.0, 7.0], index=[10, 4, 7, 1, 0, 3])
    groups = pd.Series(["a", "a", "a", "b", "a", "c"], index=values.index)
    expected = [values[(groups == groups[row]) & (values.index != row)].median() for row in values.index]
    assert expected[:3] == [2.0, 3.0, 3.0]
    pd.testing.assert_series_equal(find_median_of_others(values, groups), pd.Series(expected, index=values.index))


def test_siblings_that_agree_are_not_flagged() -> None:
    assert find("R04", pick(real.YOLO_BOW)) == []
    assert find("R04", pick("bow_inference 19-24", "pod_inference 62-67")) == []
    assert find("R04", pick(real.FASTSPEECH, real.BERT_LARGE, real.EFFICIENTNET_B0, real.RESNEXT)) == []


def test_jump_of_the_pipeline_depth() -> None:
    assert find("R05", pick(real.RESNEXT)) == [
        ("warn", "pod_inference 35", "latency_ms", "4.92 batches in flight at batch 64, 0.985 at 16", None)
    ]
    assert find("R05", pick(real.BERT_LARGE, real.EFFICIENTNET_B0, "pod_inference 32-34")) == []


def test_newer_machine_that_is_slower() -> None:
    end = "at the same batch 256"
    assert find("R06", pick(*real.RESNET_256)) == [
        (
            *("warn", "bow_inference 12", "latency_ms"),
            f"later than the generation before: 26.16 ms on Bow-2000, 25.13 on IPU-M2000 {end} (1.04 times)",
            None,
        ),
        (
            *("warn", "bow_inference 12", "throughput"),
            f"slower than the generation before: 46174 items/s on Bow-2000, 49816 on IPU-M2000 {end} (0.927 times)",
            None,
        ),
    ]
    assert find("R07", pick(*real.RESNET_256)) == [
        (
            *("info", "bow_inference 12", "throughput"),
            "0.927 times the throughput of the generation before, expected 1.15 to 1.53: 46174 items/s on Bow-2000, "
            "49816 on IPU-M2000",
            None,
        )
    ]
    for rule in ("R06", "R07"):
        assert find(rule, pick(real.YOLO_BOW, real.YOLO_POD)) == []


@pytest.mark.parametrize(
    "texts", [{"batch_size": "128"}, {"batch_size": ""}, {"precision": "16.32"}, {"framework": "PopART"}]
)
def test_generations_are_compared_on_the_same_work_only(texts: dict[str, str]) -> None:
    data = change(pick(*real.RESNET_256), "pod_inference 25", **texts)
    assert find("R06", data) == find("R07", data) == []


def test_unknown_batches_are_not_the_same_batch() -> None:
    gcn = {"model": "Cluster-GCN", "variant": "", "framework": "TensorFlow2", "dataset": "PPI", "precision": "16.16"}
    data = change(
        pick(real.CLUSTER_GCN, "pod_training 1"), "pod_training 1", **gcn, batch_size="", throughput="784,439"
    )
    data = change(data, "pod_training 1", platform="IPU-M2000")
    assert find("R06", data) == find("R07", data) == []


def test_throughput_per_chip_that_grows_with_the_machine() -> None:
    assert find("R08", pick(real.DINO, real.VIT)) == [
        (
            *("warn", "bow_training 55", "throughput"),
            "123 % of the throughput per chip of Bow Pod16: 53.7 items/s per chip (batch 3200, SDK 3.2), "
            "43.5 there (batch 3200, SDK 3.3)",
            None,
        )
    ]
    assert (
        find("R08", pick(real.FASTSPEECH, real.BERT_LARGE, real.RESNEXT, real.EFFICIENTNET_B0)) == []
    )  # points of a curve


def test_framework_that_is_far_ahead_of_another() -> None:
    data = pick("pod_inference 12-18", "pod_inference 21-35", real.EFFICIENTNET_B0, "pod_inference 38-61")
    flags = find("R26", data)
    assert [place for _, place, *_ in flags] == ["pod_inference 38", "pod_inference 39", "pod_inference 40"]
    assert flags[1] == (
        *("info", "pod_inference 39", "throughput"),
        "1.66 times the throughput of TensorFlow1 in the same row: 71839 items/s with PyTorch, 43351 with TensorFlow1 "
        "at batch 64",
        None,
    )


@pytest.mark.parametrize(
    "texts",
    [{"batch_size": "63"}, {"batch_size": ""}, {"precision": "16.32"}, {"framework": "PyTorch"}, {"dataset": "other"}],
)
def test_frameworks_are_compared_in_the_same_row_only(texts: dict[str, str]) -> None:
    data = pick("pod_inference 39", "pod_inference 47")
    assert find_places("R26", data) == ["pod_inference 39"]
    assert find("R26", change(data, "pod_inference 47", **texts)) == []


def test_networks_under_one_name_are_not_the_same_row() -> None:
    data = pick("pod_inference 29", "pod_inference 34")
    assert find("R26", data) == []
    assert find_places("R26", change_vocabulary(data, identities=())) == ["pod_inference 29"]
