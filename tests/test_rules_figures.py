"""Rules over throughput, latency and batch; every row is one of the performance page of 2023-07-04."""

from __future__ import annotations

import pytest

from tests.rules_support import (
    BERT_LARGE,
    DINO,
    EFFICIENTNET_B0,
    FASTSPEECH,
    RESNET_256,
    RESNEXT,
    VIT,
    YOLO_BOW,
    YOLO_POD,
    Printed,
    found,
    rows,
)


def test_latency_below_period() -> None:
    end = "items, one item on each chip; at least {} ms per batch if the printed value is per item"
    assert found("R01", FASTSPEECH) == [
        (
            "error",
            "bow_inference 35",
            "latency_ms",
            "0.25 batches in flight: throughput 4354 × latency 0.92 ms / batch 16; 4.01 " + end.format(3.67),
            "at least 3.67",
        ),
        (
            "error",
            "bow_inference 36",
            "latency_ms",
            "0.125 batches in flight: throughput 4949 × latency 0.81 ms / batch 32; 4.01 " + end.format(6.47),
            "at least 6.47",
        ),
        (
            "error",
            "bow_inference 37",
            "latency_ms",
            "0.0667 batches in flight: throughput 5201 × latency 0.77 ms / batch 60; 4 " + end.format(11.5),
            "at least 11.5",
        ),
    ]


@pytest.mark.parametrize("printed", [BERT_LARGE, EFFICIENTNET_B0, RESNEXT, YOLO_POD, FASTSPEECH[:1], DINO])
def test_one_or_more_batches_in_flight_are_normal(printed: list[Printed]) -> None:
    assert found("R01", printed) == []


def test_one_batch_in_flight_is_met_within_the_printed_digits() -> None:
    almost = rows(
        "bow_inference",
        "BERT-Large | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 100 | 16.16 | 1,000 | 95",
        "BERT-Large | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 100 | 16.16 | 1,000 | 94.99",
        "BERT-Large | SL128 | Bow-2000 | SDK 3.1 | PopART | SQuAD | 100 | 16.16 | 0 | 95",
    )
    assert [place for _, place, *_ in found("R01", almost)] == ["bow_inference 2"]


def test_latency_falls_with_batch() -> None:
    assert found("R02", FASTSPEECH) == [
        ("error", "bow_inference 35", "latency_ms", _falls("0.92 ms at batch 16, 1.53 at 4"), None),
        ("error", "bow_inference 36", "latency_ms", _falls("0.81 ms at batch 32, 0.92 at 16"), None),
        ("error", "bow_inference 37", "latency_ms", _falls("0.77 ms at batch 60, 0.81 at 32"), None),
    ]
    assert found("R02", BERT_LARGE + EFFICIENTNET_B0 + RESNEXT) == []


def _falls(figures: str) -> str:
    return f"latency falls as the batch grows: {figures}"


def test_a_fall_within_the_repeatability_of_timings_only_warns() -> None:
    printed = rows(
        "bow_inference",
        "ResNet-50v1.5 | | Bow-2000 | SDK 3.3 | PyTorch | ImageNet | 1 | 16.16 | 158.67 | 6.34",
        "ResNet-50v1.5 | | Bow-2000 | SDK 3.3 | PyTorch | ImageNet | 2 | 16.16 | 321.83 | 6.24",
        "ResNet-50v1.5 | | Bow-2000 | SDK 3.3 | PyTorch | ImageNet | 4 | 16.16 | 574.28 | 6.24",
    )
    assert found("R02", printed) == [
        ("warn", "bow_inference 2", "latency_ms", _falls("6.24 ms at batch 2, 6.34 at 1"), None)
    ]


def test_a_curve_ends_where_anything_but_the_batch_changes() -> None:
    other_framework = rows(
        "bow_inference",
        "FastSpeech2 | | Bow-2000 | SDK 3.1 | PyTorch | Synthetic (host-generated) | 16 | 16.16 | 1,354 | 0.92",
        first=35,
    )
    for rule in ("R02", "R03", "R05"):
        assert found(rule, FASTSPEECH[:1] + other_framework) == []


def test_throughput_falls_with_batch() -> None:
    fall = "throughput falls by {} % as the batch grows: {} items/s at batch {}, {} at {}"
    assert found("R03", EFFICIENTNET_B0) == [
        ("warn", "pod_inference 41", "throughput", fall.format(19.7, 69852, 144, 86986, 128), None),
        ("warn", "pod_inference 42", "throughput", fall.format(11.7, 61714, 196, 69852, 144), None),
    ]
    assert found("R03", FASTSPEECH + BERT_LARGE + RESNEXT) == []


def test_batch_contradicts_siblings() -> None:
    assert found("R04", YOLO_BOW + YOLO_POD) == [
        (
            "error",
            "pod_inference 68",
            "batch_size",
            "3.23 batches in flight at batch 4, 1.48 on Bow-2000 at batch 8; 1.61 if the batch were 8 here too",
            "8",
        ),
        (
            "error",
            "pod_inference 69",
            "batch_size",
            "7.05 batches in flight at batch 4, 1.68 on Bow-2000 at batch 16; 1.76 if the batch were 16 here too",
            "16",
        ),
    ]


def test_without_the_other_machine_the_variants_only_suggest() -> None:
    assert found("R04", YOLO_POD) == [
        (
            "warn",
            "pod_inference 68",
            "batch_size",
            "3.23 batches in flight at batch 4, 1.75 in the other variants on IPU-M2000; "
            "1.61 if the batch were 8, the only one printed there that agrees",
            "8",
        )
    ]


def test_without_variants_neither_machine_is_known_to_be_wrong() -> None:
    flags = found("R04", [YOLO_BOW[6], YOLO_POD[6]])
    assert [(severity, place, suggested) for severity, place, _, _, suggested in flags] == [
        ("warn", "bow_inference 25", "4"),
        ("warn", "pod_inference 68", "8"),
    ]


def test_siblings_that_agree_contradict_nothing() -> None:
    assert found("R04", YOLO_BOW) == []
    assert found("R04", YOLO_BOW[:6] + YOLO_POD[:6]) == []
    assert found("R04", FASTSPEECH + BERT_LARGE + EFFICIENTNET_B0 + RESNEXT) == []


def test_pipeline_depth_jump() -> None:
    assert found("R05", RESNEXT) == [
        ("warn", "pod_inference 35", "latency_ms", "4.92 batches in flight at batch 64, 0.985 at 16", None)
    ]
    assert found("R05", BERT_LARGE + EFFICIENTNET_B0 + RESNEXT[:3]) == []


def test_newer_machine_slower() -> None:
    assert found("R06", RESNET_256) == [
        (
            "warn",
            "bow_inference 12",
            "latency_ms",
            "later than the generation before: 26.16 ms on Bow-2000, 25.13 on IPU-M2000 at the same batch 256 "
            "(1.04 times)",
            None,
        ),
        (
            "warn",
            "bow_inference 12",
            "throughput",
            "slower than the generation before: 46174 items/s on Bow-2000, 49816 on IPU-M2000 at the same batch 256 "
            "(0.927 times)",
            None,
        ),
    ]
    assert found("R06", YOLO_BOW + YOLO_POD) == []


def test_generation_ratio() -> None:
    assert found("R07", RESNET_256) == [
        (
            "info",
            "bow_inference 12",
            "throughput",
            "0.927 times the throughput of the generation before, expected 1.15 to 1.53: 46174 items/s on Bow-2000, "
            "49816 on IPU-M2000",
            None,
        )
    ]
    assert found("R07", YOLO_BOW + YOLO_POD) == []


@pytest.mark.parametrize(
    ("change", "to"), [("| 256 |", "| 128 |"), ("| 256 |", "| |"), ("16.16", "16.32"), ("PyTorch", "PopART")]
)
def test_generations_are_compared_on_the_same_row_only(change: str, to: str) -> None:
    bow, pod = RESNET_256
    other = rows("pod_inference", " | ".join(pod.cells).replace(change, to), first=25)
    assert found("R06", [bow, *other]) == found("R07", [bow, *other]) == []


def test_unknown_batches_are_not_the_same_batch() -> None:
    printed = [
        *rows("bow_training", "Cluster-GCN | | Bow-2000 | SDK 3.2 | TensorFlow2 | PPI | | 16.16 | 684,439", first=37),
        *rows("pod_training", "Cluster-GCN | | IPU-M2000 | SDK 2.4.0 | TensorFlow2 | PPI | | 16.16 | 784,439"),
    ]
    assert found("R06", printed) == found("R07", printed) == []


def test_superlinear_scaling() -> None:
    assert found("R08", DINO + VIT) == [
        (
            "warn",
            "bow_training 55",
            "throughput",
            "123 % of the throughput per chip of Bow Pod16: 53.7 items/s per chip (batch 3200, SDK 3.2), "
            "43.5 there (batch 3200, SDK 3.3)",
            None,
        )
    ]


def test_points_of_one_curve_are_no_machines() -> None:
    assert found("R08", FASTSPEECH + BERT_LARGE + RESNEXT + EFFICIENTNET_B0) == []
