"""Ask the tools what a reader asked who had seen neither code nor tests, and how an answer is put."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from ipu_results.comparison.expect import Expectation, expect_rows

from tests.conftest import ROOT, Query

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from ipu_results.serve.answers import Record
from ipu_results.serve.server import answer
from ipu_results.serve.sql import SqlWorker

VISITORS = tomllib.loads((ROOT / "tests/data/mcp_visitors.toml").read_text(encoding="utf-8"))[
    "question"
]


@pytest.mark.parametrize("entry", VISITORS, ids=[entry["ask"] for entry in VISITORS])
def test_a_question_of_a_visitor_is_answered(
    entry: Mapping[str, Any], record: Record, worker: SqlWorker
) -> None:
    text = json.dumps(answer(record, worker, entry["tool"], entry["arguments"]), ensure_ascii=False)
    assert not [words for words in entry["expect"] if words not in text], text[:500]


def test_what_a_third_party_will_measure_is_that_of_compare(
    record: Record, worker: SqlWorker, query: Query
) -> None:
    for company, is_known in (("NVIDIA", True), ("Dell", False)):
        [(result_id,)] = query(f"""
            SELECT min(result_id) FROM mlperf_entries
            WHERE company = '{company}' AND round = '2.0' AND benchmark = 'ssd' AND chip_count = 8
        """)
        actual = answer(record, worker, "expect", {"result_id": result_id})
        if is_known:
            [expected] = expect_rows(
                record.connection.cursor(), f"result_id = '{result_id}'"
            ).values()
            assert isinstance(expected, Expectation)
            assert actual["intervals"] == expected.to_record()["intervals"]
            assert all(pair["second_result_id"] in actual["citation"] for pair in actual["nearest"])
        else:
            assert actual["code"] == "no-pairs"
            assert "not the maker" in actual["reason"]


ROW = {"model": "resnet50", "platform": "ipu-m2000", "batch_size": 4, "framework": "TensorFlow1"}
MAX_ROW, MAX_BRIEF, MAX_RUN = 600, 850, 1060  # bytes


def test_an_answer_is_brief_and_the_whole_is_on_request(record: Record, worker: SqlWorker) -> None:
    brief, whole = (
        answer(record, worker, "find", {**ROW, **own}) for own in ({}, {"detail": "whole"})
    )
    assert len(json.dumps(brief, ensure_ascii=False).encode()) < MAX_BRIEF
    (row,), (all_,) = brief["results"], whole["results"]
    assert len(json.dumps(row).encode()) < MAX_ROW
    assert {name: own["as_printed"] for name, own in row["figures"].items()} == {
        name: own["as_printed"] for name, own in all_["figures"].items()
    }
    assert row["conditions"].items() <= all_["conditions"].items()
    assert all_["figures"]["throughput"]["place"] in whole["citation"]
    assert len(all_["flags"]) == 2  # two remarks, no error
    assert "flags" not in row
    flagged = answer(
        record,
        worker,
        "find",
        {"model": "FastSpeech2", "platform": "Bow-2000", "usable": False},
    )
    errors = [
        flag
        for own in flagged["results"]
        for flag in own.get("flags", [])
        if flag["severity"] == "error"
    ]
    assert errors
    assert all(f"Quality rule {flag['rule']} " in flagged["citation"] for flag in errors)


def test_computed_minutes_are_shown_without_digits_that_no_clock_resolves(
    record: Record, worker: SqlWorker
) -> None:
    conditions = {
        "model": "BERT",
        "platform": "Bow Pod16",
        "mlperf_round": "2.0",
        "division": "closed",
    }
    actual = answer(
        record, worker, "find", {**conditions, "submitter": "Graphcore", "figure": "minutes"}
    )
    shown = {
        row["figures"]["minutes"]["as_printed"]
        for row in actual["results"]
        if row["origin"] == "official"
    }
    assert shown == {"20.6538896 min", "20.7469063 min"}
    claim = {
        **conditions,
        "figure": "minutes",
        "value": "20.65",
        "unit": "min",
        "submitter": "Graphcore",
    }
    actual = answer(record, worker, "check_claimed_figure", claim)
    assert "the record has 20.6538896 min (" in actual["statement"]
    assert actual["nearest"][0]["recorded"] == pytest.approx(20.653889583333335, rel=1e-11)


def test_texts_name_arguments_of_the_tools(record: Record, worker: SqlWorker) -> None:
    calls = (
        {
            "model": "resnet50",
            "batch_size": 16,
            "throughput": 90_000,
            "chip": "H200",
            "chip_count": 1,
            "precision": "fp16",
            "latency_ms": 0.0018,
        },
        {"model": "BERT-Large", "platform": "Bow-2000", "batch_size": 8, "throughput": 900},
        {"model": "BERT-Large", "platform": "Bow Pod16", "task": "training", "minutes": 20.0},
        {"model": "resnet50", "platform": "H200", "throughput": 9000},
        {"throughput": 9000},
    )
    texts = [json.dumps(answer(record, worker, "compare_run", call)) for call in calls]
    assert not [text for text in texts if "--" in text]
    assert "State latency_ms in milliseconds" in texts[0]
    assert "no model; state model, such as resnet50" in texts[-1]


def test_a_claimed_rate_has_the_unit_of_the_other_tools(record: Record, worker: SqlWorker) -> None:
    claim = {
        "model": "resnet50",
        "platform": "ipu-m2000",
        "figure": "throughput",
        "value": "7152",
        "unit": "images/s",
    }
    statement = answer(record, worker, "check_claimed_figure", claim)["statement"]
    assert statement.startswith("7152 images/s: the record has 7152 images/s (")


def test_a_brief_comparison_has_the_nearest_row_and_the_whole_on_request(
    record: Record, worker: SqlWorker
) -> None:
    run = {
        "model": "resnet50",
        "batch_size": 16,
        "platform": "ipu-m2000",
        "throughput": 4051,
        "precision": "16.16",
    }
    brief, whole = (
        answer(record, worker, "compare_run", {**run, "detail": detail})
        for detail in ("brief", "whole")
    )
    assert brief == answer(record, worker, "compare_run", run)
    assert len(json.dumps(brief, ensure_ascii=False).encode()) < MAX_RUN
    assert (brief["verdict"], brief["assumed"]) == (whole["verdict"], whole["assumed"])
    [nearest] = brief["nearest"]
    first, *others = whole["nearest"]
    assert (nearest["result_id"], nearest["ratios"][0]["ratio"]) == (
        first["result_id"],
        first["ratios"][0]["ratio"],
    )
    assert brief["more_groups"] == [match["group"] for match in others]
    assert len(whole["results"]) == len(whole["nearest"]) > 1
    assert {"doubtful", "impossible"}.isdisjoint(
        check["outcome"] for check in whole["plausibility"]
    )
    assert brief["plausibility"] == []
