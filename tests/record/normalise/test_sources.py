"""What is particular to one kind of document: comparators print one figure a line, older pages
words of their own.
"""

from __future__ import annotations

import pytest
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.record.normalise.fields import get_column

from tests.cases import every_case
from tests.record.read.reading_support import (
    list_cells,
    list_results,
    normalise_table,
    rejections,
)

LINE = {
    "repo": "NVIDIA/DeepLearningExamples",
    "path": "PyTorch/Classification/README.md",
    "commit": "b2e7f4a284",
    "commit_date": "2020-11-03",
    "system": "1x A100-SXM4-40GB (DGX A100)",
    "model": "ResNeXt101-32x4d",
    "task": "inference",
    "precision": "TF32",
    "batch": "128",
    "metric": "throughput img/s",
    "value": "371",
}
HISTORY = "model variant platform sdk_version framework dataset batch_size precision".split()


def normalise_comparators(*changes: dict[str, str]) -> NormalisedDocument:
    lines = ([*{**LINE, **change}.values()] for change in changes)
    return normalise_table("comparators", "nvidia_a100", list(LINE), *lines)


def test_line_of_comparators_is_one_result() -> None:
    normalised = normalise_comparators({})
    [result] = list_results(normalised)
    expected = {
        "published_on": "2020-11-03",
        "task": "inference",
        "model_printed": "ResNeXt101-32x4d",
        "framework": "PyTorch",
        "precision_printed": "TF32",
        "batch_size": "128",
        "throughput": "371.0",
        "item": "image",
        "chip": "A100-SXM-40GB",
        "chip_count": "1",
    }
    assert {name: str(result[name]) for name in expected} == expected
    assert [cell["raw_text"] for cell in list_cells(normalised)] == list(LINE.values())


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        ({"metric": "speed"}, "unknown-metric", "unknown metric 'speed'"),
        ({"commit_date": "3 Nov"}, "unreadable-date", "'3 Nov' is not a date"),
    ],
)
def test_unplaceable_line_is_rejected_and_the_word_named(
    change: dict[str, str], reason: str, message: str
) -> None:
    normalised = normalise_comparators(change, {})
    assert rejections(normalised) == [(1, reason, message)]
    assert len(normalised.results) == 1


@every_case(__file__, "comparators")
def test_words_of_comparators_are_kept_as_printed(
    change: dict[str, str], column: str, value: str | None
) -> None:
    normalised = normalise_comparators(change)
    [result] = list_results(normalised)
    assert result.get(column) == value
    printed = LINE | change
    assert [cell["raw_text"] for cell in list_cells(normalised)] == list(printed.values())


def test_older_page_keeps_its_own_words() -> None:
    row = ["ToastNet", "", "Toaster-64", "Pre-SDK2.5", "Toast", "Bread", "1,920", "4.4", "42029"]
    header = [*HISTORY, "throughput (items/s)"]
    normalised = normalise_table("performance-csv", "bow_training_history", header, row)
    [result] = list_results(normalised)
    names = [*map(get_column, HISTORY), "throughput"]
    expected = ["ToastNet", None, *row[2:6], 1920, "4.4", 42029.0]
    assert [result.get(name) for name in names] == expected
    assert not {"variant", "chip", "activation_bits"} & result.keys()
