"""Rules about the public configuration behind a row, and about what the machine can do."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.cases import every_case
from tests.record.check import rules_support as real
from tests.record.check.rules_support import (
    change,
    change_results,
    configure,
    find,
    find_places,
    pick,
    run,
)


def test_exact_configuration_warns_and_suggests_its_batch() -> None:
    parts = dict.fromkeys(("micro_batch_size", "replicas", "gradient_accumulation", "note"))
    data = pick(real.CLIP, configured=True)
    exact = configure(data, real.CLIP, match_confidence="exact", **parts)
    [(severity, _, _, message, suggested)] = find("R13", exact)
    assert message.endswith("(exact match) gives 690")
    assert (severity, suggested) == ("warn", "690")


@every_case(__file__, "precision")
def test_settings_decide_which_precision_fits(
    printed: str, settings: str | None, suggested: list[str]
) -> None:
    """Each flag suggests a precision, or none."""
    data = change(pick(real.GPT2_TRAINING, configured=True), real.GPT2_TRAINING, precision=printed)
    flags = find("R23", configure(data, real.GPT2_TRAINING, precision_flags=settings or None))
    assert [suggestion or "" for *_, suggestion in flags] == suggested


RESNET_POD = "pod_inference 19-26"


def test_depth_is_compared_with_the_next_row_where_no_configuration_says_more() -> None:
    assert find("R05", pick(RESNET_POD, configured=True)) == []
    assert find_places("R05", pick(RESNET_POD)) == ["pod_inference 23"]


def test_latencies_of_an_item_have_no_depth() -> None:
    assert run(pick(real.FASTSPEECH), "R02", "R05", "R24", "R25").empty


def test_several_batches_in_flight_are_told_where_one_is_timed() -> None:
    data = pick(real.YOLO_BOW, configured=True)
    assert len(find("R25", data)) == 8
    assert find("R25", change_results(data, latency_basis="several-in-flight")) == []


def test_latency_is_per_item_only_where_a_configuration_says_so() -> None:
    rows = (real.FASTSPEECH, real.EFFICIENTDET)
    per_batch = change_results(pick(*rows, configured=True), latency_basis="per-batch")
    for data in (pick(*rows), per_batch):
        messages = run(data, "R01")["message"]
        assert len(messages) == 4
        assert messages.str.contains("if the printed value is per item").all()


@pytest.mark.parametrize(
    "values",
    [
        {"match_confidence": "weak"},
        {"benchmark": "another"},
        {"tag": "v2.3.0"},
        {"latency_definition": "another way of timing"},
    ],
)
def test_row_of_another_configuration_is_no_sibling(values: dict[str, Any]) -> None:
    data = configure(pick(RESNET_POD, configured=True), "pod_inference 21", **values)
    assert find_places("R24", data) == ["pod_inference 22"]


def test_two_siblings_are_too_few_to_judge_a_depth() -> None:
    assert find("R24", pick("pod_inference 22-24", configured=True)) == []
    assert find_places("R24", pick("pod_inference 22-25", configured=True)) == ["pod_inference 22"]


@every_case(__file__, "no_evidence")
def test_configuration_without_evidence_flags_nothing(
    rule: str, row: str, column: str, value: Any
) -> None:
    data = pick(row, configured=True)
    assert find(rule, data) != []
    assert find(rule, configure(data, row, **{column: value})) == []


def test_cell_of_another_document_is_not_a_printed_one() -> None:
    data = pick(real.FASTSPEECH)
    cells = data["cells"]
    # the others: micro-batch and latency basis
    own = cells["document_id"] == data["results"]["document_id"][0]
    assert len(cells) == own.sum() + 8
    pd.testing.assert_frame_equal(run(data | {"cells": cells[own]}), run(data))


# plausibility


@every_case(__file__, "peak")
def test_flops_above_the_peak(row: str, texts: dict[str, str], message: str) -> None:
    assert find("R21", change(pick(row), row, **texts)) == [
        ("error", row, "throughput", message, None)
    ]


@every_case(__file__, "unknown_limit")
def test_unknown_limit_flags_nothing(row: str, texts: dict[str, str]) -> None:
    assert find("R21", change(pick(row), row, **texts, throughput="9,000,000")) == []


@every_case(__file__, "rating")
def test_power_above_the_rating(texts: dict[str, str], messages: list[str]) -> None:
    flags = find("R22", change(pick(real.PAPER), "qwant_c2 4", **texts))
    assert flags == [("warn", "qwant_c2 4", "efficiency", message, None) for message in messages]


CHIPS = {
    "power_scope": "device",
    "chip": "GC200",
    "chip_count": 1,
    "throughput": 64.99,
    "efficiency": 4.08 / 3600,
}


@every_case(__file__, "scope")
def test_power_above_what_the_scope_names(
    column: str, change: dict[str, Any], message: str | None, without: list[str] | None
) -> None:
    """A figure is flagged in a column, or in none."""
    values = CHIPS | change | dict.fromkeys(without or ())
    data = change_results(pick("qwant_c2 4"), **{name: [value] for name, value in values.items()})
    hits = find("R29", data)
    expected = [("error", column)] if column else []
    assert [(severity, where) for severity, _, where, *_ in hits] == expected
    assert all(message in (None, told) for *_, told, _ in hits)
