"""Rules about throughput, latency and batch, on rows of the performance page of 2023-07-04."""

from __future__ import annotations

import pytest

from tests.record.check import rules_support as real
from tests.record.check.rules_support import change, find, find_brief, find_places, pick


def test_one_batch_in_flight_is_reached_within_the_printed_digits() -> None:
    data = pick("bow_inference 4-6")
    reached = {"batch_size": "100", "throughput": "1,000", "latency_ms": "95"}
    data = change(data, "bow_inference 4", **reached)
    data = change(data, "bow_inference 5", **reached | {"latency_ms": "94.99"})
    data = change(data, "bow_inference 6", **reached | {"throughput": "0"})
    assert find_places("R01", data) == ["bow_inference 5"]


@pytest.mark.parametrize(
    ("latency", "severity"), [("1.32", "error"), ("1.34", "warn")]
)  # within the repeatability
def test_latency_that_falls_with_the_batch(latency: str, severity: str) -> None:
    data = change(
        pick("bow_inference 4-6"), "bow_inference 5", throughput="9,000", latency_ms=latency
    )
    message = f"latency falls as the batch grows: {latency} ms at batch 8, 1.36 at 4"
    assert find("R02", data) == [(severity, "bow_inference 5", "latency_ms", message, None)]
    assert find("R02", pick(real.BERT_LARGE, real.EFFICIENTNET_B0, real.RESNEXT)) == []
    below = change(pick("bow_inference 4-6"), "bow_inference 5", latency_ms=latency)  # R01 says why
    assert (find("R02", below), find_places("R01", below)) == ([], ["bow_inference 5"])


def test_curve_ends_where_anything_but_the_batch_changes() -> None:
    data = change(
        pick("bow_inference 4-5"), "bow_inference 5", throughput="2,700", latency_ms="1.2"
    )
    data = change(data, "bow_inference 4", throughput="9,000")
    data = change(data, "bow_inference 5", batch_size="5", latency_ms="1.90")
    falls = change(data, "bow_inference 4", latency_ms="2.00")
    for rule in ("R02", "R03", "R05"):
        assert find_places(rule, falls) == ["bow_inference 5"]
        assert find(rule, change(falls, "bow_inference 5", framework="PyTorch")) == []


@pytest.mark.parametrize(
    ("rows", "flags"),
    [
        (
            (real.YOLO_BOW, real.YOLO_POD),
            ["error pod_inference 68 batch_size 8", "error pod_inference 69 batch_size 16"],
        ),
        # without the other machine, the variants only suggest
        ((real.YOLO_POD,), ["warn pod_inference 68 batch_size 8"]),
        # without variants, either machine may be wrong
        (
            ("bow_inference 25", "pod_inference 68"),
            ["warn bow_inference 25 batch_size 4", "warn pod_inference 68 batch_size 8"],
        ),
        # siblings that agree
        ((real.YOLO_BOW,), []),
        (("bow_inference 19-24", "pod_inference 62-67"), []),
        ((real.FASTSPEECH, real.BERT_LARGE, real.EFFICIENTNET_B0, real.RESNEXT), []),
    ],
)
def test_batch_that_contradicts_its_siblings(rows: tuple[str, ...], flags: list[str]) -> None:
    assert find_brief("R04", pick(*rows)) == flags


@pytest.mark.parametrize(
    "texts",
    [{"batch_size": "128"}, {"batch_size": ""}, {"precision": "16.32"}, {"framework": "PopART"}],
)
def test_generations_are_compared_on_the_same_work_only(texts: dict[str, str]) -> None:
    data = change(pick(*real.RESNET_256), "pod_inference 25", **texts)
    assert find("R06", data) == find("R07", data) == []


def test_unknown_batches_are_not_the_same_batch() -> None:
    row = "pod_training 1"
    gcn = {"model": "Cluster-GCN", "variant": "", "framework": "TensorFlow2", "dataset": "PPI"}
    gcn |= {"precision": "16.16", "platform": "IPU-M2000", "throughput": "784,439"}
    data = change(pick(real.CLUSTER_GCN, row), row, **gcn, batch_size="")
    assert find("R06", data) == find("R07", data) == []


@pytest.mark.parametrize(
    "texts",
    [
        {"batch_size": "63"},
        {"batch_size": ""},
        {"precision": "16.32"},
        {"framework": "PyTorch"},
        {"dataset": "other"},
    ],
)
def test_frameworks_are_compared_in_the_same_row_only(texts: dict[str, str]) -> None:
    data = pick("pod_inference 39", "pod_inference 47")
    assert find_places("R26", data) == ["pod_inference 39"]
    assert find("R26", change(data, "pod_inference 47", **texts)) == []
