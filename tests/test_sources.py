"""What is particular to one kind of document: comparators have one figure a line, older pages words of their own."""

from __future__ import annotations

import pytest
from ipu_results.normalise import NormalisedDocument

from tests.reading_support import normalise_table, rejections

HEADER = ["repo", "path", "commit", "commit_date", "system", "model", "task", "precision", "batch", "metric", "value"]
LINE = dict(
    zip(
        HEADER,
        [
            "NVIDIA/DeepLearningExamples",
            "PyTorch/Classification/README.md",
            "b2e7f4a284",
            "2020-11-03",
            "1x A100-SXM4-40GB (DGX A100)",
            "ResNeXt101-32x4d",
            "inference",
            "TF32",
            "128",
            "throughput img/s",
            "371",
        ],
        strict=True,
    )
)
HISTORY = [
    "model",
    "variant",
    "platform",
    "sdk_version",
    "framework",
    "dataset",
    "batch_size",
    "precision",
    "throughput (items/s)",
]


def comparators(*lines: dict[str, str]) -> NormalisedDocument:
    return normalise_table("comparators", "nvidia_a100", HEADER, *([*{**LINE, **line}.values()] for line in lines))


def test_a_line_of_comparators() -> None:
    [result] = comparators({}).results
    values = {name: str(value) for name, value in result.values.items() if name not in ("result_id", "publisher")}
    assert (
        values.items()
        >= {
            "published_on": "2020-11-03",
            "task": "inference",
            "model": "ResNeXt101-32x4d",
            "framework": "PyTorch",
            "compute_precision": "TF32",
            "batch_size": "128",
            "throughput": "371.0",
            "item": "image",
            "chip": "A100-40GB",
            "chip_count": "1",
        }.items()
    )
    assert [cell.raw_text for cell in result.cells] == list(LINE.values())


def test_throughput_and_latency_of_one_configuration_are_one_result() -> None:
    latency = {"metric": "avg latency ms", "value": "8.5"}
    normalised = comparators({}, {"batch": "256", "value": "400"}, latency, {**latency, "batch": "512"})
    told = [
        [result.values.get(name) for name in ("batch_size", "throughput", "latency_ms")]
        for result in normalised.results
    ]
    assert told == [[128, 371.0, 8.5], [256, 400.0, None], [512, None, 8.5]]
    assert [number for _, number, _ in normalised.results[0].accepted] == [1, 3]
    assert len(normalised.results[0].cells) == 2 * len(HEADER)


def test_two_throughputs_of_one_configuration_contradict_each_other() -> None:
    normalised = comparators({}, {"value": "372"}, {"metric": "avg latency ms", "value": "8.5"})
    assert normalised.results == []
    assert [(number, reason) for number, reason, _ in rejections(normalised)] == [
        (number, "conflicting-rows") for number in (1, 2, 3)
    ]


def test_a_line_printed_twice_is_a_repetition() -> None:
    [result] = comparators({}, {}).results
    assert ([number for _, number, _ in result.accepted], [number for _, number, _ in result.repeated]) == ([1], [2])


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        ({"metric": "speed"}, "unknown-metric", "unknown metric 'speed'"),
        ({"task": "baking"}, "unknown-task", "unknown task 'baking'"),
        ({"value": "3 71"}, "unreadable-figure", "'3 71' is not a figure"),
        ({"commit_date": "3 Nov"}, "unreadable-date", "'3 Nov' is not a date"),
    ],
)
def test_a_line_that_cannot_be_placed_is_rejected_naming_the_word(
    line: dict[str, str], reason: str, message: str
) -> None:
    normalised = comparators(line, {})
    assert rejections(normalised) == [(1, reason, message)]
    assert len(normalised.results) == 1


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [
        ({"system": "9x Toaster"}, "platform", "9x Toaster"),
        ({"model": "ToastNet"}, "model", "ToastNet"),
        ({"precision": "FP4"}, "compute_precision", "FP4"),
        ({"batch": "128 (TF) / 256 (AMP) /GPU"}, "batch_size", None),
        ({"path": "MxNet/README.md"}, "framework", None),
        ({"path": "TensorFlow2/x"}, "framework", "TensorFlow2"),
        ({"path": "TensorFlow/x"}, "framework", "TensorFlow1"),
        ({"precision": "mixed+XLA"}, "compute_precision", "mixed"),
        ({"task": "training (TF2)"}, "task", "training"),
    ],
)
def test_words_of_comparators_are_kept_as_printed(line: dict[str, str], column: str, value: str | None) -> None:
    [result] = comparators(line).results
    assert result.values.get(column) == value
    assert list({**LINE, **line}.values()) == [cell.raw_text for cell in result.cells]


def test_an_older_page_keeps_its_own_words() -> None:
    row = ["ToastNet", "", "Toaster-64", "Pre-SDK2.5", "Toast", "Bread", "1,920", "4.4", "42029"]
    [result] = normalise_table("page-history", "bow_training_history", HISTORY, row).results
    names = [
        "model",
        "platform",
        "sdk_version",
        "framework",
        "dataset",
        "batch_size",
        "compute_precision",
        "throughput",
    ]
    assert [result.values.get(name) for name in names] == [
        "ToastNet",
        "Toaster-64",
        "Pre-SDK2.5",
        "Toast",
        "Bread",
        1920,
        "4.4",
        42029.0,
    ]
    assert not {"variant", "chip", "precision"} & result.values.keys()


@pytest.mark.parametrize("text", ["42,02", "4O", "about 5"])
def test_a_figure_of_an_older_page_is_still_a_figure(text: str) -> None:
    row = ["GPT2", "", "Bow Pod16", "SDK 3.3", "PyTorch", "W", "8", "16.16", text]
    normalised = normalise_table("page-history", "bow_training_history", HISTORY, row)
    assert rejections(normalised) == [(1, "unreadable-figure", f"{text!r} is not a figure")]
