"""Rules over what the cells print and what surrounds a row; every row is one of the page of 2023-07-04."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules_support import (
    BERT_BASE,
    CLIP,
    CLUSTER_GCN,
    EFFICIENTDET,
    EFFICIENTNET_B0,
    EFFICIENTNET_B4,
    FASTPITCH,
    FASTSPEECH,
    GPT2,
    GPT2_TRAINING,
    MCMC,
    MLPERF_ROWS,
    OGB_ROWS,
    RESNET_256,
    RESNEXT,
    RESNEXT_TENSORFLOW,
    TGN,
    UNET,
    VIT,
    YOLO_BOW,
    Printed,
    found,
    rows,
)


def blank(severity: str, place: str, column: str, header: str) -> tuple[str, str, str, str, None]:
    return (severity, place, column, f"the cell under the header {header} is blank", None)


def test_blank_cell() -> None:
    assert found("R09", TGN + CLUSTER_GCN + UNET + MCMC) == [
        blank("warn", "bow_training 36", "batch_size", "Batch Size"),
        blank("warn", "bow_training 36", "dataset", "Dataset"),
        blank("warn", "bow_training 36", "precision", "Precision"),
        blank("warn", "bow_training 37", "batch_size", "Batch Size"),
        blank("info", "bow_training 37", "variant", "Variant"),
        blank("warn", "bow_inference 32", "latency_ms", "Latency (ms)"),
        blank("info", "bow_inference 32", "variant", "Variant"),
        blank("warn", "pod_time_to_result 1", "batch_size", "Batch Size"),
        blank("info", "pod_time_to_result 1", "variant", "Variant"),
    ]


def test_a_table_without_a_printed_header_promises_nothing() -> None:
    elsewhere = [replace(row, document="transcription") for row in TGN + CLUSTER_GCN]
    assert found("R09", elsewhere) == []
    assert found("R09", GPT2 + OGB_ROWS + MLPERF_ROWS) == []


def test_unit_is_not_the_columns() -> None:
    assert found("R10", FASTPITCH) == [
        (
            "error",
            "bow_training 35",
            "throughput",
            "the variant cell prints a unit, frames/s: the throughput counts frames per second",
            "frame",
        )
    ]


def test_items_that_no_source_states() -> None:
    assert found("R10", CLUSTER_GCN) == [
        (
            "warn",
            "bow_training 37",
            "throughput",
            "no source says what the 684439 items per second of Cluster-GCN are",
            None,
        )
    ]


def test_a_slash_is_not_a_rate() -> None:
    assert found("R10", CLIP[:1] + EFFICIENTDET + GPT2 + MCMC) == []
    assert [flag[0] for flag in found("R10", CLIP[1:])] == ["warn"]


@pytest.mark.parametrize("text", ["sentences/sec", "in frames / second", "clips/s, packed"])
def test_other_forms_of_a_rate(text: str) -> None:
    row = FASTPITCH[0]
    printed = [replace(row, cells=(row.cells[0], text, *row.cells[2:]))]
    assert [flag[0] for flag in found("R10", printed)] == ["error"]


def test_row_contradicts_its_section() -> None:
    message = "Bow Pod16, while the section around the table speaks of Bow-2000"
    assert found("R11", GPT2 + FASTSPEECH + FASTPITCH) == [
        ("warn", f"bow_inference {number}", "platform", message, None) for number in (1, 2, 3)
    ]


def test_repeated_figure() -> None:
    assert found("R14", GPT2 + GPT2_TRAINING) == [
        (
            "info",
            "bow_inference 2",
            "throughput",
            "337 is also printed by an unrelated row: bow_training row 27 (GPT2, Bow Pod16)",
            None,
        ),
        (
            "info",
            "bow_training 27",
            "throughput",
            "337 is also printed by an unrelated row: bow_inference row 2 (GPT2, Bow Pod16)",
            None,
        ),
    ]


def _repeating(*figures: str) -> list[Printed]:
    models = ("ViT", "DINO", "MAE", "ViT")
    lines = [
        f"{model} | Pre-Training | Bow Pod16 | SDK 3.3 | PyTorch | ImageNet1k | 65,536 | 16.16 | {figure}"
        for model, figure in zip(models, figures, strict=False)
    ]
    return rows("bow_training", *lines)


def test_a_repeated_figure_names_the_first_and_counts_the_rest() -> None:
    others = [
        message.split(": ")[1] for _, _, _, message, _ in found("R14", _repeating("7,608", "7608", "7,608", "7,608"))
    ]
    assert others == [
        "bow_training row 2 (DINO, Bow Pod16) and 1 more",
        "bow_training row 1 (ViT, Bow Pod16) and 2 more",
        "bow_training row 1 (ViT, Bow Pod16) and 2 more",
        "bow_training row 2 (DINO, Bow Pod16) and 1 more",
    ]


def test_short_figures_and_related_rows_may_repeat() -> None:
    assert found("R14", _repeating("97", "97", "97")) == []
    assert found("R14", _repeating("9,000", "9,000", "0.077", "0.077")) == []
    assert found("R14", [_repeating("7,608")[0], _repeating("1", "1", "1", "7,608")[3]]) == []
    assert found("R14", [_repeating("7,608")[0], replace(_repeating("1", "7,608")[1], document="another")]) == []


def test_name_variants() -> None:
    spellings = "ResNet-50 v1.5: ResNet-50v1.5, ResNet50 v1.5"
    assert found("R16", RESNET_256[:1] + MLPERF_ROWS) == [
        (
            "info",
            "bow_inference 12",
            "model",
            f"ResNet-50v1.5 is one of several printed names of {spellings}",
            "ResNet-50 v1.5",
        ),
        (
            "info",
            "mlperf_v2_training 2",
            "model",
            f"ResNet50 v1.5 is one of several printed names of {spellings}",
            "ResNet-50 v1.5",
        ),
    ]
    assert found("R16", EFFICIENTDET + FASTSPEECH) == [
        (
            "info",
            "bow_inference 27",
            "framework",
            "TF2 w/Keras is one of several printed names of TensorFlow2: TF2 w/Keras, TensorFlow2",
            "TensorFlow2",
        )
    ]


def test_one_name_alone_is_no_variant() -> None:
    assert found("R16", RESNET_256 + TGN + VIT + RESNEXT) == []


def test_older_sdk() -> None:
    printed = EFFICIENTNET_B4 + VIT + TGN + GPT2_TRAINING
    message = "SDK 3.0, older than 3.3, the most common one of its table"
    assert found("R17", printed) == [
        ("info", "bow_training 47", "sdk_version", message, None),
        ("info", "bow_training 49", "sdk_version", message, None),
    ]
    assert found("R17", FASTSPEECH + RESNEXT) == []


def _with_sdk(*versions: str) -> list[Printed]:
    lines = [f"ViT | Pre-Training | Bow Pod16 | {sdk} | PyTorch | ImageNet1k | 64 | 16.16 | 1" for sdk in versions]
    return rows("bow_training", *lines)


@pytest.mark.parametrize(
    ("versions", "older"),
    [
        (("SDK 3.9", "SDK 3.10", "SDK 3.10"), [1]),
        (("SDK 3.0", "SDK 3.1"), [1]),
        (("SDK 2.4", "SDK 2.4.0"), []),
        (("Pre-SDK2.5", "SDK 2.5"), [1]),
        (("Pre-SDK2.5", "SDK 2.4.0"), [2]),
        (("Pre-SDK2.5", "Pre-SDK2.5"), []),
        (("nightly", "SDK 2.5", ""), []),
    ],
)
def test_versions_compare_as_numbers(versions: tuple[str, ...], older: list[int]) -> None:
    printed = _with_sdk(*(version or "nightly" for version in versions))
    assert [place for _, place, *_ in found("R17", printed)] == [f"bow_training {number}" for number in older]


def test_mixed_precision_group() -> None:
    mixed = "in a group of rows that mixes 16.16 and 16.32: same model, variant and platform"
    assert found("R18", EFFICIENTNET_B4 + VIT + TGN) == [
        ("info", "bow_training 47", "precision", f"16.16 {mixed}", None),
        ("info", "bow_training 48", "precision", f"16.32 {mixed}", None),
    ]


def test_lost_trailing_zero() -> None:
    assert found("R19", BERT_BASE + FASTSPEECH) == [
        (
            "info",
            "bow_inference 8",
            "latency_ms",
            "0.6 has 1 of the column's usual 2 decimals: a trailing zero is lost",
            "0.60",
        )
    ]
    assert found("R19", MLPERF_ROWS + OGB_ROWS + EFFICIENTNET_B0) == []


def test_lost_thousands_mark() -> None:
    bare = replace(BERT_BASE[1], cells=(*BERT_BASE[1].cells[:8], "28069", "1141"))
    assert found("R19", [bare, *FASTSPEECH]) == [
        (
            "info",
            "bow_inference 9",
            "latency_ms",
            "1141 has 0 of the column's usual 2 decimals: a trailing zero is lost",
            "1141.00",
        ),
        (
            "info",
            "bow_inference 9",
            "throughput",
            "28069 has no thousands mark, other figures of the column have one",
            "28,069",
        ),
    ]
    assert found("R19", [bare]) == []
    assert found("R19", [replace(row, document="transcription") for row in (bare, *FASTSPEECH)]) == []


def test_model_identity() -> None:
    assert found("R20", RESNEXT[:1] + RESNEXT_TENSORFLOW + VIT) == [
        (
            "warn",
            "pod_inference 32",
            "model",
            "ResNeXt101 names several networks; here ResNeXt101-32x8d ran (88.8 M parameters): "
            "graphcore/examples v2.4.0, "
            "applications/pytorch/cnns/models/models.py: resnext101 is torchvision's resnext101_32x8d",
            "ResNeXt101-32x8d",
        ),
        (
            "info",
            "pod_inference 27",
            "model",
            "ResNeXt101 names several networks; here ResNeXt101-32x4d ran (44.2 M parameters): "
            "graphcore/examples v2.4.0, "
            "applications/tensorflow/cnns/training/Models/resnext.py: 32 groups of 4 channels by default",
            "ResNeXt101-32x4d",
        ),
    ]
    assert found("R20", RESNEXT, identities=[]) == []
    assert found("R20", YOLO_BOW) == []
