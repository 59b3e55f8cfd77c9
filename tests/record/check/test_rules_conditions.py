"""Rules on conditions: each sees one that is planted, and none in a near miss or in the rows as
printed.
"""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.planted_errors import Tables
from tests.record.check.rules_support import (
    change,
    change_results,
    configure,
    find,
    find_places,
    pick,
)

TRAINING = "pod_training 1-62"
INFERENCE = "pod_inference 1-71"
PAGES = ("bow_training 1-18", "bow_training_history 1-19")  # of three dates


def set_in(data: Tables, place: str, **values: Any) -> Tables:
    """Set columns of one row that no cell of its table prints."""
    table, number = place.split()
    results = data["results"]
    own = (results["table_name"] == table) & (results["row_number"] == int(number))
    columns = {name: results[name].mask(own, value) for name, value in values.items()}
    return change_results(data, **columns)


def find_columns(rule_id: str, data: Tables) -> list[tuple[str, str]]:
    return [(place, column) for _, place, column, *_ in find(rule_id, data)]


def test_generation_of_one_row_alone_is_flagged() -> None:
    printed = pick(INFERENCE)
    once = change(printed, "pod_inference 14", platform="Bow-2000")
    message = "Bow in this row alone; the 70 others of its table have GC200"
    assert find("R49", once) == [("warn", "pod_inference 14", "platform", message, None)]
    assert find("R49", change(once, "pod_inference 15", platform="Bow-2000")) == []
    assert find("R49", printed) == []


@pytest.mark.parametrize(
    ("column", "value"),
    [("task", "inference"), ("item", "image"), ("dataset_printed", "COCO 2017")],
)
def test_condition_of_one_row_alone_is_flagged_in_its_column(column: str, value: str) -> None:
    data = set_in(pick(TRAINING), "pod_training 4", **{column: value})
    assert find_columns("R49", data) == [("pod_training 4", column)]


def test_condition_alone_in_the_record_needs_two_documents() -> None:
    row = "bow_inference 12"  # ResNet-50, as are the other two of its table and those of NVIDIA
    one_document = pick("bow_inference 10-12", "pod_inference 12-26")
    assert find("R50", set_in(one_document, row, item="sequence")) == []
    two_documents = pick("bow_inference 10-12", "nvidia_a100 83-130")
    changed = set_in(two_documents, row, item="sequence")
    [(severity, place, column, message, _)] = find("R50", changed)
    assert (severity, place, column) == ("warn", row, "item")
    assert message.startswith("sequence in this row alone; the ")
    assert find("R50", two_documents) == []


def test_set_up_that_a_table_prints_twice_is_flagged() -> None:
    printed = pick(TRAINING)
    once = change(printed, "pod_training 10", framework="TensorFlow 1")
    assert find_places("R51", once) == ["pod_training 10", "pod_training 11"]
    # another pair: the table prints set-ups more than once
    assert find("R51", change(once, "pod_training 13", framework="TensorFlow 1")) == []
    # curves are set-ups that are printed more than once
    assert find("R51", pick(INFERENCE)) == []
    assert find("R51", printed) == []


def test_of_one_set_up_the_row_unlike_its_network_is_flagged_alone() -> None:
    data = change(pick(TRAINING), "pod_training 30", platform="IPU-POD128")
    assert find_places("R51", data) == ["pod_training 30"]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("sdk_version", {"sdk_version": "SDK 2.3.0"}),
        ("framework", {"framework": "PopART"}),
        ("platform", {"platform": "IPU-POD64"}),
        ("variant", {"variant": "Ph1 Pre-Training (SL512)"}),
    ],
)
def test_condition_that_the_configuration_contradicts(column: str, texts: dict[str, str]) -> None:
    row = "pod_training 2"
    printed = pick(row, configured=True)
    changed = change(printed, row, **texts)
    assert find_columns("R52", changed) == [(row, column)]
    assert find("R52", configure(changed, row, match_confidence="likely")) == []
    assert find("R52", printed) == []


def test_task_that_the_configuration_contradicts() -> None:
    row = "pod_training 2"
    data = set_in(pick(row, configured=True), row, task="inference")
    assert find_columns("R52", data) == [(row, "task")]


def test_figure_that_another_page_prints_with_another_condition() -> None:
    printed = pick(*PAGES)
    changed = change(printed, "bow_training 1", sdk_version="SDK 3.3")
    [(severity, _, column, message, _), other] = find("R53", changed)
    assert (severity, column, other[2]) == ("warn", "sdk_version", "sdk_version")
    assert message.startswith("3.3, where bow_training_history row 1 (BERT-Large, Bow Pod16) of ")
    assert message.endswith(
        " prints 3.1 for the same figure, 6,044, and no other condition differs"
    )
    # two conditions that differ: another run, whose figure agrees by chance
    assert find("R53", change(changed, "bow_training 1", framework="PyTorch")) == []
    assert find("R53", printed) == []
