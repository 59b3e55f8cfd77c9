"""Mistakes that everybody makes, and honest runs: what `compare` says of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ipu_results.kit.text import find_nearest_words
from ipu_results.schema.accelerators import find_accelerator, load_accelerators

from tests.doors.comparison.comparison_support import compare_many, compare_one

REFUSED = ("implausible", "doubtful")
MIN_NAMED, MAX_DOUBTED = 36, 2

BOW = {"model": "resnet50", "platform": "bow-2000", "batch_size": 4, "precision": "16.16"}
M2000 = {"model": "resnet50", "platform": "ipu-m2000", "batch_size": 16, "precision": "16.16"}
C2 = {"model": "resnext101-32x4d", "platform": "c2", "batch_size": 4}
A100 = {
    "model": "resnet50",
    "platform": "1x A100-40GB (DGX A100)",
    "batch_size": 16,
    "precision": "mixed",
}
BERT = {
    "model": "bert-large",
    "platform": "bow-2000",
    "batch_size": 4,
    "precision": "16.16",
    "sequence_length": 128,
}
MLPERF = {
    **{
        "model": "resnet50",
        "platform": "bow pod16",
        "benchmark": "mlperf-training",
        "division": "closed",
    },
    "mlperf_round": "2.0",
}


def new(chip: str, chip_count: int = 1, **conditions: Any) -> dict[str, Any]:
    """Return the conditions of a machine that the record has never seen."""
    return {
        "model": "resnet50",
        "batch_size": 16,
        "precision": "fp16",
        "chip": chip,
        "chip_count": chip_count,
        **conditions,
    }


H200 = new("H200")
SECONDS, MICROSECONDS, BATCHES = "in seconds", "in microseconds", "batches per second"
OF_CHIP, MORE = "one chip", "more chips"

MISTAKES: list[tuple[dict[str, Any], str]] = [
    # a latency in seconds, with a throughput and alone
    ({**BOW, "throughput": 9297, "latency_ms": 0.00058, "latency_basis": "per-batch"}, SECONDS),
    ({**BOW, "latency_ms": 0.00058}, SECONDS),
    ({**M2000, "throughput": 14321, "latency_ms": 0.00269}, SECONDS),
    ({**A100, "throughput": 1903, "latency_ms": 0.00847, "latency_basis": "per-batch"}, SECONDS),
    ({**BERT, "latency_ms": 0.0014}, SECONDS),
    ({**H200, "throughput": 9000, "latency_ms": 0.0018, "latency_kind": "isolated"}, SECONDS),
    ({**H200, "latency_ms": 0.0018}, SECONDS),
    ({**new("MI300X"), "latency_ms": 0.002}, SECONDS),
    ({**new("A100-SXM4-80GB", batch_size=128), "latency_ms": 0.011}, SECONDS),
    ({**new("TPU v5e", precision="bf16", batch_size=64), "latency_ms": 0.012}, SECONDS),
    # a latency in microseconds
    ({**BOW, "latency_ms": 580, "latency_basis": "per-batch"}, MICROSECONDS),
    ({**H200, "latency_ms": 2300}, MICROSECONDS),
    # the latency of an item called that of a batch
    ({**M2000, "throughput": 14321, "latency_ms": 0.17}, "latency that of an item"),
    ({**H200, "throughput": 9000, "latency_ms": 0.111}, "latency that of an item"),
    # batches per second
    ({**M2000, "throughput": 1012.9}, BATCHES),
    ({**A100, "throughput": 119}, BATCHES),
    ({**BOW, "throughput": 2324}, BATCHES),
    ({**H200, "throughput": 562}, BATCHES),
    ({**new("L40S"), "throughput": 320}, BATCHES),
    ({**new("MI300X", batch_size=64), "throughput": 250}, BATCHES),
    ({**H200, "throughput": 562, "latency_ms": 1.8}, BATCHES),
    # one chip for the system
    ({**M2000, "throughput": 4051}, OF_CHIP),
    ({**BOW, "throughput": 2324}, OF_CHIP),
    ({**new("H200", 8, batch_size=128), "throughput": 9000}, OF_CHIP),
    ({**new("A100-SXM4-80GB", 8, batch_size=128), "throughput": 2200}, OF_CHIP),
    # the system for one chip
    (
        {**M2000, "chip_count": 1, "platform": "GC200 IPU", "throughput": 160000, "batch_size": 4},
        MORE,
    ),
    ({**H200, "throughput": 171000}, MORE),
    ({**new("L4", batch_size=32), "throughput": 24000}, MORE),
    ({**new("A100-SXM4-80GB"), "throughput": 60000}, MORE),
    # FP16 called FP32, and INT8 called FP16
    ({**BOW, "throughput": 9297, "precision": "fp32"}, "called FP32"),
    ({**M2000, "throughput": 16207, "precision": "fp32"}, "called FP32"),
    ({**H200, "throughput": 99000, "precision": "fp32"}, "called FP32"),
    ({**new("V100-SXM2-16GB", batch_size=64, precision="fp32"), "throughput": 2400}, "called FP32"),
    ({**new("T4", batch_size=64), "throughput": 10000}, "called FP16"),
    # no warm-up
    ({**M2000, "throughput": 14321, "latency_ms": 15, "latency_max_ms": 4312}, "warm-up"),
    ({**H200, "throughput": 1066, "latency_ms": 15, "latency_max_ms": 4312}, "warm-up"),
    # power in other units and of other things
    ({**C2, "throughput": 1900, "power_w": 0.19}, "kilowatts"),
    ({**H200, "throughput": 9000, "power_w": 0.65}, "kilowatts"),
    ({**H200, "throughput": 9000, "power_w": 5200, "power_scope": "device"}, MORE),
    # minutes in seconds
    ({**MLPERF, "minutes": 19.6 * 60}, "in seconds"),
]

HONEST: list[dict[str, Any]] = [
    {**BOW, "throughput": 9100, "latency_ms": 0.59, "latency_basis": "per-batch"},
    {**BOW, "throughput": 11900, "latency_ms": 1.7, "latency_basis": "several-in-flight"},
    {**BOW, "throughput": 6200},
    {**M2000, "throughput": 13900, "latency_ms": 2.8},
    {**M2000, "throughput": 16400},
    {**M2000, "throughput": 11000, "latency_ms": 1.45, "latency_kind": "amortised"},
    {**M2000, "batch_size": 64, "throughput": 26000},
    {**M2000, "batch_size": 4, "latency_ms": 0.54, "latency_basis": "per-batch"},
    {**M2000, "batch_size": 16, "throughput": 5300, "precision": "fp32"},
    {**C2, "throughput": 1900, "latency_ms": 2.1, "latency_kind": "amortised"},
    {**C2, "throughput": 1850, "power_w": 190},
    {**A100, "throughput": 2100, "latency_ms": 7.6},
    {**A100, "throughput": 2500},
    {**A100, "batch_size": 256, "throughput": 2600},
    {**A100, "precision": "TF32", "throughput": 1400},
    {**BERT, "throughput": 2700, "latency_ms": 1.5},
    {**BERT, "batch_size": 8, "throughput": 3500},
    {**MLPERF, "minutes": 20.5},
    {**H200, "throughput": 3100, "latency_ms": 5.2},  # eager PyTorch
    {**H200, "throughput": 9400, "latency_ms": 1.7, "latency_basis": "per-batch"},
    {**H200, "batch_size": 256, "throughput": 21000, "latency_ms": 12.2},
    {**H200, "batch_size": 1, "throughput": 190, "latency_ms": 5.3},
    {**H200, "batch_size": 1, "throughput": 1400, "latency_ms": 0.71},
    {**H200, "throughput": 9400, "power_w": 590, "power_scope": "device"},
    {**H200, "throughput": 9400, "power_w": 1900, "power_scope": "wall"},
    {**H200, "precision": "int8", "batch_size": 128, "throughput": 45000},
    {**H200, "precision": "fp32", "batch_size": 128, "throughput": 3600},
    {**new("H200", 8, batch_size=128), "throughput": 30000},
    {
        **new("H200", 8, batch_size=2048),
        "throughput": 165000,
        "power_w": 5100,
        "power_scope": "device",
    },
    {**new("L4", batch_size=32), "throughput": 2300, "power_w": 71, "power_scope": "board"},
    {**new("L40S"), "throughput": 5200, "latency_ms": 3.1},
    {**new("MI300X", batch_size=64), "throughput": 9000},
    {**new("A100-SXM4-80GB", batch_size=128), "throughput": 2400},
    {**new("A100-SXM4-80GB", 8, batch_size=1024), "throughput": 19500},
    {**new("Tesla T4", batch_size=32), "throughput": 1050, "latency_ms": 30.4},
    {**new("V100-SXM2-16GB", batch_size=64, precision="fp32"), "throughput": 380},
    {**new("TPU v5e", precision="bf16", batch_size=64), "latency_ms": 11},
    {**new("Gaudi2", precision="bf16"), "throughput": 5500, "latency_ms": 2.9},
    {**new("H100 PCIe", model="efficientnet-b0"), "throughput": 4100, "latency_ms": 3.9},
    {
        "model": "resnet50",
        "batch_size": 16,
        "precision": "fp32",
        "throughput": 51,
        "latency_ms": 313,
    },  # a processor
]


def test_mistakes_are_refused_or_doubted_by_name(warehouse: Path) -> None:
    missed = []
    comparisons = compare_many(warehouse, [figures for figures, _ in MISTAKES])
    for (figures, name), comparison in zip(MISTAKES, comparisons, strict=True):
        messages = [
            comparison.verdict,
            *(check.message for check in comparison.checks if check.outcome in REFUSED),
        ]
        if comparison.status not in REFUSED or not any(name in message for message in messages):
            missed.append(f"{name}: {figures}: {comparison.verdict}")
    assert len(MISTAKES) >= 40
    assert len(MISTAKES) - len(missed) >= MIN_NAMED, "\n".join(missed)


def test_honest_runs_are_not_refused(warehouse: Path) -> None:
    comparisons = list(zip(HONEST, compare_many(warehouse, HONEST), strict=True))
    assert len(HONEST) >= 40
    assert [
        f"{figures}: {own.verdict}" for figures, own in comparisons if own.status == "implausible"
    ] == []
    doubted = [
        f"{figures}: {own.verdict}" for figures, own in comparisons if own.status == "doubtful"
    ]
    assert len(doubted) <= MAX_DOUBTED, "\n".join(doubted)


@pytest.mark.parametrize(("chips", "named"), [(3, False), (4, True)])
def test_figure_may_be_that_of_one_chip_from_four_chips(
    warehouse: Path, chips: int, named: bool
) -> None:
    own = compare_one(warehouse, **new("H200", chips, batch_size=128), throughput=4500)
    verdict = own.verdict
    assert (OF_CHIP in verdict) == named


def test_every_limit_has_its_document_and_25_chips_have_both() -> None:
    chips = load_accelerators()
    assert all(bool(own.peaks) == ("read on" in own.peak_document) for own in chips)
    assert all((own.power_w is not None) == ("read on" in own.power_document) for own in chips)
    assert sum(bool(own.peaks and own.power_w) for own in chips) >= 25


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("NVIDIA H200-SXM5-141GB", "H200 SXM"),
        ("NVIDIA Blackwell GPU (B200-SXM-180GB)", "B200"),
        ("NVIDIA A100 - PCIe - 80 GB", "A100 PCIe"),
        ("8xH200", "H200 SXM"),
        ("Intel(R) Gaudi(R) 2 AI Accelerator", "Gaudi2"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA RTX A5000", None),
        ("GC200", None),
    ],
)
def test_chips_are_joined_by_the_words_of_their_names(name: str, chip: str | None) -> None:
    accelerator = find_accelerator(name)
    assert (accelerator and accelerator.chip) == chip


def test_nearest_words_have_the_parts_of_a_word() -> None:
    machines = ["NVIDIA H200-SXM5-141GB", "GH200-480GB", "RTX A1000", "A100-80GB", "C2", "C600"]
    assert find_nearest_words("h200", machines) == ["NVIDIA H200-SXM5-141GB"]
    assert find_nearest_words("a100", machines) == ["A100-80GB"]
    assert find_nearest_words("c2", machines) == ["C2"]
    assert find_nearest_words("BERT", ["ALBERT-Base", "BERT-Large", "BERT-Base"]) == [
        "BERT-Base",
        "BERT-Large",
    ]
    assert find_nearest_words("resnet5O", ["UNet", "ResNet-50 v1.5"], 1) == ["ResNet-50 v1.5"]
