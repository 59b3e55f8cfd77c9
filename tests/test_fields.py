"""What each cell says: columns of `results`, figures with their units, and words that the vocabulary must know."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.normalise.fields import CONVERTERS, NOT_GIVEN, CellContext, convert_cell
from ipu_results.normalise.values import UnreadableCellError
from ipu_results.schema.vocabulary import normalise_name

from tests.reading_support import (
    GPT2,
    INFERENCE,
    MLPERF,
    OGB,
    TRAINING,
    UNET,
    WORDS,
    normalise_page,
    normalise_table,
    rejections,
)

STRICT = CellContext(WORDS, None, True)


def said(field: str, text: str, unit: str | None = None, *, strict: bool = True) -> dict[str, Any]:
    return dict(convert_cell(field, text, CellContext(WORDS, unit, strict)).values)


# --- words


@pytest.mark.parametrize(
    ("field", "text", "values"),
    [
        ("platform", "Bow Pod16", {"platform": "Bow Pod16", "chip": "Bow", "chip_count": 16}),
        ("platform", "bow-pod 16", {"platform": "Bow Pod16", "chip": "Bow", "chip_count": 16}),
        ("platform", "IPU-POD16 Classic", {"platform": "IPU-POD16", "chip": "GC200", "chip_count": 16}),
        ("platform", "1x GC200 IPU", {"platform": "GC200 IPU", "chip": "GC200", "chip_count": 1}),
        ("model", "BERT Large", {"model": "BERT-Large", "item": "sequence"}),
        ("model", "BERT Large SL128", {"model": "BERT-Large", "item": "sequence", "variant": "SL128"}),
        ("framework", "TF2 w/Keras", {"framework": "TensorFlow2"}),
        ("framework", "onnxruntime", {"framework": "ONNX Runtime"}),
        ("framework", "OpenVINO", {"framework": "OpenVINO"}),
        ("model", "resnext101-32x4d", {"model": "ResNeXt101-32x4d", "item": "image"}),
        ("model", "resnext101-32x8d", {"model": "ResNeXt101-32x8d", "item": "image"}),
        ("model", "resnet50", {"model": "ResNet-50 v1.5", "item": "image"}),
        ("model", "efficientnet-b4", {"model": "EfficientNet-B4", "item": "image"}),
        ("framework", "Pytorch Geometric", {"framework": "PyTorch Geometric"}),
        ("sdk_version", "SDK 2.4.0", {"sdk_version": "2.4.0"}),
        ("precision", "16.32", {"precision": "16.32", "activation_bits": 16, "weight_bits": 32}),
        ("variant", "frames/s", {"variant": "frames/s", "item": "frame"}),
        ("variant", "SL128", {"variant": "SL128"}),
        ("dataset", "WikiKG90Mv2", {"dataset": "WikiKG90Mv2"}),
        ("division", "Closed", {"division": "closed"}),
        ("mlperf_id", "2.0-2047", {"mlperf_id": "2.0-2047", "mlperf_round": "2.0"}),
        (
            "quality_target",
            "75.90% classification",
            {"quality_target": "75.90% classification", "quality_metric": "classification"},
        ),
        ("quality_value", "0.0719 MAE", {"quality_value": 0.0719, "quality_metric": "MAE"}),
    ],
)
def test_words(field: str, text: str, values: dict[str, Any]) -> None:
    assert said(field, text) == values


@pytest.mark.parametrize("field", sorted(CONVERTERS))
@pytest.mark.parametrize("text", ["", *sorted(NOT_GIVEN)])
def test_blank_and_not_given_fill_nothing(field: str, text: str) -> None:
    assert convert_cell(field, text, STRICT) == ((), None, None, None)


UNKNOWN = [
    (0, "model", "GPT5", "unknown model 'GPT5' in model"),
    (2, "platform", "Colossus", "unknown platform 'Colossus' in platform"),
    (3, "sdk-version", "Pre-SDK2.5", "unknown sdk-version 'Pre-SDK2.5' in sdk_version"),
    (4, "framework", "JAX", "unknown framework 'JAX' in framework"),
    (7, "precision", "8.16", "unknown precision '8.16' in precision"),
]


@pytest.mark.parametrize(("column", "kind", "text", "message"), UNKNOWN)
def test_an_unknown_word_on_the_vendors_page_rejects_its_row_alone(
    column: int, kind: str, text: str, message: str
) -> None:
    row = [*GPT2[:column], text, *GPT2[column + 1 :]]
    normalised = normalise_page(row, GPT2)
    [rejected] = normalised.rejected
    assert (rejected.reason, rejected.message, rejected.row_number) == (f"unknown-{kind}", message, 1)
    assert rejected.locator == f"bow_training, row 1, column {column + 1} ({TRAINING[column]})"
    assert rejected.raw == dict(zip(TRAINING, row, strict=True))
    assert [result.values["row_number"] for result in normalised.results] == [2]


@pytest.mark.parametrize(("column", "kind", "text", "message"), UNKNOWN)
def test_the_same_word_in_an_older_page_is_kept_as_printed(column: int, kind: str, text: str, message: str) -> None:
    header = ["model", "variant", "platform", "sdk_version", "framework", "dataset", "batch_size", "precision"]
    row = [*GPT2[:column], text, *GPT2[column + 1 :]]
    normalised = normalise_table("page-history", "bow_training_history", [*header, "throughput (items/s)"], row)
    assert normalised.rejected == []
    field = "compute_precision" if kind == "precision" else header[column]
    assert normalised.results[0].values[field] == text, message


@pytest.mark.parametrize("kind", ["platforms", "models"])
def test_no_printed_name_stands_for_two_things(kind: str) -> None:
    key, rows = {"platforms": ("platform", WORDS.platform_rows()), "models": ("model", WORDS.model_rows())}[kind]
    names = [
        name
        for row in rows
        for name in {normalise_name(name) for name in [row[key], *row.get("spellings", []), *row.get("variants", {})]}
    ]
    assert len(set(names)) == len(names)


# --- figures


@pytest.mark.parametrize(
    ("field", "text", "unit", "value", "figure", "factor"),
    [
        ("throughput", "1,260,000", "items/sec", 1_260_000.0, 1_260_000.0, 1.0),
        ("latency_ms", "1.36", "ms", 1.36, 1.36, 1.0),
        ("latency_ms", "1,234.5", "us", 1.2345, 1234.5, 0.001),
        ("latency_ms", "1,234.5", "µs", 1.2345, 1234.5, 0.001),
        ("latency_ms", "1,234.5", "\u03bcs", 1.2345, 1234.5, 0.001),
        ("latency_ms", "0.29", "s", 290.0, 0.29, 1000.0),
        ("time_to_train_s", "19.64", "mins", 1178.4, 19.64, 60.0),
        ("time_to_train_s", "23h 43m", None, 85_380.0, 85_380.0, 1.0),
        ("time_to_train_s", "11h 50m", "mins", 42_600.0, 42_600.0, 1.0),
        ("time_to_result_s", "49", "secs", 49.0, 49.0, 1.0),
        ("efficiency", "6.51", "images/second/watt", 6.51, 6.51, 1.0),
    ],
)
def test_figures_are_exact_after_a_recorded_factor(
    field: str, text: str, unit: str | None, value: float, figure: float, factor: float
) -> None:
    converted = convert_cell(field, text, CellContext(WORDS, unit, True))
    assert (dict(converted.values)[field], converted.figure, converted.factor) == (value, figure, factor)


@pytest.mark.parametrize("unit", ["images/second", "img/s", "IMAGES/S"])
def test_a_unit_that_names_its_item(unit: str) -> None:
    assert said("throughput", "5", unit) == {"throughput": 5.0, "item": "image"}


@pytest.mark.parametrize(("unit", "message"), [("parsecs", "unknown unit 'parsecs' for latency_ms"), (None, "no unit")])
def test_a_unit_that_is_not_known_or_not_given(unit: str | None, message: str) -> None:
    with pytest.raises(UnreadableCellError, match=message) as caught:
        said("latency_ms", "5", unit)
    assert caught.value.reason == "unknown-unit"


@pytest.mark.parametrize("unit", ["ms", "items/sec"])
def test_a_unit_of_another_measure_is_not_taken(unit: str) -> None:
    other = "throughput" if unit == "ms" else "latency_ms"
    with pytest.raises(UnreadableCellError, match=repr(unit)):
        said(other, "5", unit)


def test_microseconds_in_the_header_are_recorded_and_exact() -> None:
    row = [*UNET[:9], "1,360"]
    normalised = normalise_page(row, header=[*INFERENCE[:9], "Latency (us)"], name="bow_inference")
    [result] = normalised.results
    cell = result.cells[9]
    assert result.values["latency_ms"] == 1.36
    assert (cell.column_name, cell.raw_text, cell.value, cell.unit, cell.factor) == (
        "latency_ms",
        "1,360",
        1360.0,
        "us",
        0.001,
    )


@pytest.mark.parametrize("header", ["Throughput (furlongs)", "Throughput"])
def test_an_unknown_unit_in_the_header_rejects_every_row(header: str) -> None:
    normalised = normalise_page(GPT2, [*GPT2[:8], "7"], header=[*TRAINING[:8], header])
    assert normalised.results == []
    unit = "unknown unit 'furlongs'" if "(" in header else "no unit"
    assert rejections(normalised) == [(n, "unknown-unit", f"{unit} for throughput") for n in (1, 2)]


def test_a_batch_size_in_some_unit_is_not_a_batch_size() -> None:
    normalised = normalise_page(GPT2, header=[*TRAINING[:6], "Batch Size (k)", *TRAINING[7:]])
    assert rejections(normalised) == [(1, "unknown-unit", "unknown unit 'k' for batch_size")]


@pytest.mark.parametrize("text", ["4,4O7", "600,00", "10^6", "1,590 (est.)", "9" * 400])
def test_a_figure_that_is_none_rejects_its_row_naming_cell_and_word(text: str) -> None:
    normalised = normalise_page(GPT2, [*GPT2[:8], text])
    [rejected] = normalised.rejected
    assert (rejected.reason, rejected.locator) == (
        "unreadable-figure",
        "bow_training, row 2, column 9 (Throughput (items/sec))",
    )
    assert repr(text) in rejected.message
    assert len(normalised.results) == 1


@pytest.mark.parametrize("batch", ["16.16", "0", "-4", "4 x 2", "9" * 400])
def test_a_batch_size_that_is_none(batch: str) -> None:
    assert [reason for _, reason, _ in rejections(normalise_page([*GPT2[:6], batch, *GPT2[7:]]))] == [
        "unreadable-figure"
    ]


# --- whole rows


def test_a_whole_row_of_the_mlperf_table() -> None:
    row = "Closed|ResNet50 v1.5|75.90% classification|Bow Pod16|SDK 2.5.1|TensorFlow|2.0-2047|ImageNet2012|16.16|19.64"
    [result] = normalise_page(row.split("|"), header=MLPERF, name="mlperf_v2_training").results
    values = {name: value for name, value in result.values.items() if name not in ("result_id", "published_on")}
    assert values == {
        "origin": "published",
        "publisher": "Somebody",
        "document_id": "a-document",
        "table_name": "mlperf_v2_training",
        "row_number": 1,
        "task": "training",
        "benchmark": "mlperf-training",
        "division": "closed",
        "model": "ResNet-50 v1.5",
        "item": "image",
        "quality_target": "75.90% classification",
        "quality_metric": "classification",
        "platform": "Bow Pod16",
        "chip": "Bow",
        "chip_count": 16,
        "sdk_version": "2.5.1",
        "framework": "TensorFlow",
        "mlperf_id": "2.0-2047",
        "mlperf_round": "2.0",
        "dataset": "ImageNet2012",
        "precision": "16.16",
        "activation_bits": 16,
        "weight_bits": 16,
        "time_to_train_s": 1178.4,
    }
    assert [cell.raw_text for cell in result.cells] == row.split("|")
    assert [cell.header for cell in result.cells] == MLPERF


def test_a_row_with_a_duration_and_a_quality() -> None:
    row = "PCQM4Mv2|GPS++|Bow Pod16|SDK 3.0|TensorFlow2|17,800|23h 43m|0.0719 MAE|First"
    [result] = normalise_page(row.split("|"), header=OGB, name="ogb_lsc").results
    told = [result.values[name] for name in ("time_to_train_s", "throughput", "quality_value", "quality_metric")]
    assert told == [85_380.0, 17_800.0, 0.0719, "MAE"]


def test_the_item_printed_in_the_variant_cell_holds() -> None:
    row = ["FastPitch", "frames/s", *GPT2[2:]]
    [result] = normalise_page(row).results
    assert (result.values["variant"], result.values["item"]) == ("frames/s", "frame")


def test_a_blank_figure_is_a_cell_and_no_value() -> None:
    [result] = normalise_page(UNET, header=INFERENCE, name="bow_inference").results
    assert "latency_ms" not in result.values
    assert (result.cells[9].raw_text, result.cells[9].value) == ("", None)


@given(st.sampled_from(sorted(CONVERTERS)), st.text(max_size=20), st.booleans(), st.sampled_from([None, "ms", "mins"]))
def test_any_text_is_converted_or_unreadable(field: str, text: str, strict: bool, unit: str | None) -> None:
    with suppress(UnreadableCellError):
        converted = convert_cell(field, text, CellContext(WORDS, unit, strict))
        assert all(value is not None for name, value in converted.values if name != "division")
