"""Ask the MCP server through the real protocol: questions with known answers, and traps."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ipu_results.comparison.statements import load_rows
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.serve import CODES

from tests.conftest import ROOT, Query
from tests.docs.docs_support import DOCS, check_part

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from ipu_results.serve.answers import Record, open_record
from ipu_results.serve.server import answer, build_output_schema
from ipu_results.serve.sql import SqlWorker
from mcp import Client
from mcp.client.stdio import StdioServerParameters

DATA = tomllib.loads((ROOT / "tests/data/mcp_questions.toml").read_text(encoding="utf-8"))
QUESTIONS, TRAPS = DATA["question"], DATA["trap"]
PRINTED = [entry for entry in QUESTIONS if "printed" in entry]
CITED = ("find", "provenance", "compare", "compare_run", "check_claimed_figure")
MAX_SUMMARY = 5000  # bytes
Answer = dict[str, Any]


def describe(entry: Mapping[str, Any]) -> str:
    return str(entry["ask"])


async def ask_all(warehouse: Path, calls: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Ask every question in one session of the command, over its stdin and stdout."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "ipu_results", "mcp", "--warehouse", str(warehouse)],
        env={**os.environ},
        cwd=ROOT,
    )
    async with Client(command) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        answers = []
        for call in calls:
            assert call["tool"] in names
            result = await client.call_tool(call["tool"], call["arguments"])
            assert json.loads(result.content[0].text) == result.structured_content
            assert result.is_error == (result.structured_content["status"] == "refused")
            answers.append(result.structured_content)
        return answers


@pytest.fixture(scope="session")
def answers(warehouse: Path) -> dict[str, Answer]:
    calls = [*QUESTIONS, *TRAPS]
    return dict(zip(map(describe, calls), asyncio.run(ask_all(warehouse, calls)), strict=True))


def parse(text: str) -> float:
    return float(text.replace(",", ""))


def get_figure(entry: Mapping[str, Any]) -> str:
    return str(entry.get("figure") or entry["arguments"]["figure"])


def compute_value(entry: Mapping[str, Any]) -> float:
    """Compute the answer from what the sources print."""
    numbers = [parse(text) for text in entry["printed"]]
    if "divide_by" in entry:
        numbers = [
            number / chips for number, chips in zip(numbers, entry["divide_by"], strict=True)
        ]
    if "stated" in entry:
        return float(entry["stated"] / numbers[0])
    return (
        numbers[0] / numbers[1]
        if len(numbers) == 2
        else float(numbers[0] * entry.get("factor", 1.0))
    )


@pytest.mark.parametrize("entry", PRINTED, ids=describe)
def test_printed_texts_are_those_of_the_cells(entry: Mapping[str, Any], query: Query) -> None:
    column = {"minutes": "time_to_train_s"}.get(get_figure(entry), get_figure(entry))
    for result_id, printed in zip(entry["result_ids"], entry["printed"], strict=True):
        where = f"result_id = '{result_id}' AND column_name = '{column}'"
        assert {
            str(text).strip() for (text,) in query(f"SELECT raw_text FROM cells WHERE {where}")
        } == {printed}


def get_value(entry: Mapping[str, Any], actual: Answer) -> tuple[float, str]:
    """Return the figure and its unit from where an answer of the tool has it."""
    figure, tool = get_figure(entry), entry["tool"]
    if tool == "compare":
        return actual["ratio"], actual["unit"]
    if tool == "compare_run":
        ratio, *_ = actual["nearest"][0]["ratios"]
        return ratio["ratio"], ratio["unit"]
    if tool == "provenance":
        (cell,) = [cell for cell in actual["figures"] if cell["column_name"] == figure]
        return parse(cell["raw_text"]), cell["unit"]
    if tool == "check_claimed_figure":
        return actual["nearest"][0]["recorded"], actual["nearest"][0]["unit"]
    shown = actual["results"][0]["figures"][figure]
    return shown["value"], shown["unit"]


@pytest.mark.slow
@pytest.mark.parametrize("entry", PRINTED, ids=describe)
def test_a_figure_is_answered_exactly(
    entry: Mapping[str, Any], answers: Mapping[str, Answer]
) -> None:
    actual = answers[describe(entry)]
    assert actual["status"] == "answered", actual
    value, unit = get_value(entry, actual)
    assert value == pytest.approx(compute_value(entry), rel=1e-11)
    assert unit == entry["unit"]
    ids = [
        row["result_id"]
        for row in actual["nearest" if entry["tool"] == "compare_run" else "results"]
    ]
    expected_ids = entry["result_ids"]
    assert (
        ids[: len(expected_ids)]
        if entry["tool"] in ("check_claimed_figure", "compare_run")
        else ids
    ) == expected_ids
    assert actual.get("verdict", "").startswith(entry.get("verdict", ""))
    assert actual.get("what_differs") == entry.get("what_differs", actual.get("what_differs"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", [entry for entry in QUESTIONS if entry["tool"] in CITED], ids=describe
)
def test_an_answer_has_relationship_origin_flags_and_citation(
    entry: Mapping[str, Any], answers: Mapping[str, Answer]
) -> None:
    actual = answers[describe(entry)]
    for result in actual["results"]:
        assert result["relationship"] in ("vendor", "independent", "official", "own")
        assert f"result {result['result_id']}" in actual["citation"]
        assert (result.get("status") == "emulated, not measured") == (
            result["origin"] == "emulated"
        )
        figures = result.get("figures", {})  # elsewhere in the answer of compare and provenance
        assert not figures.keys() & set(result.get("not_printed", []))
        assert all(figure["value"] is not None for figure in figures.values())
    statuses = {result.get("status") for result in actual["results"]}
    assert entry.get("status") in {*statuses, None}
    if "unverified" in statuses:
        assert "Result not verified by MLCommons Association." in actual["citation"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", [entry for entry in QUESTIONS if "printed" not in entry], ids=describe
)
def test_a_question_of_claims_or_sql_is_answered_exactly(
    entry: Mapping[str, Any], answers: Mapping[str, Answer], query: Query
) -> None:
    actual, expected = answers[describe(entry)], query(entry["sql"])
    assert actual["status"] == "answered", actual
    assert actual["citation"] or entry["tool"] == "sql"
    if entry["tool"] == "claims":
        ids = entry.get("claim_ids") or [name for (name,) in query(entry["claim_ids_sql"])]
        assert sorted(claim["claim_id"] for claim in actual["claims"]) == sorted(ids)
        assert (
            {claim["verdict"] for claim in actual["claims"]}
            == {name for (name,) in expected}
            == {entry["verdict"]}
        )
    elif entry["tool"] == "overview":
        counted = [tuple(counts.values()) for counts in actual["results"]]
        assert sorted(counted, key=str) == sorted(expected, key=str)
    else:
        assert [tuple(row) for row in actual["rows"]] == expected
        assert entry.get("remark", actual["remarks"][0]) in actual["remarks"]


def test_answers_have_the_schema_that_their_tool_states(record: Record, worker: SqlWorker) -> None:
    validators = {
        tool: make_validator(tool) for tool in {entry["tool"] for entry in [*QUESTIONS, *TRAPS]}
    }
    for entry in [*QUESTIONS, *TRAPS]:
        actual = json.loads(json.dumps(answer(record, worker, entry["tool"], entry["arguments"])))
        validators[entry["tool"]].validate(actual)


def make_validator(tool: str) -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema := build_output_schema(tool))
    return jsonschema.Draft202012Validator(schema)


def test_overview_is_short_and_its_parts_are_on_request(record: Record, worker: SqlWorker) -> None:
    summary, models = (answer(record, worker, "overview", own) for own in ({}, {"part": "models"}))
    assert len(json.dumps(summary, ensure_ascii=False).encode()) < MAX_SUMMARY
    assert summary["parts"]["models"] == len(models["models"]) > 0
    assert summary["not_usable"].startswith("177 of 3,723 rows are not usable: ")


RUN = {"model": "resnet50", "batch_size": 16}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({**RUN, "platform": "ipu-m2000", "throughput": 1012.9}, "batches per second"),
        (
            {**RUN, "chip": "H200", "chip_count": 1, "precision": "fp16", "latency_ms": 0.0018},
            "in seconds",
        ),
        ({**RUN, "platform": "H200", "throughput": 9000}, "chip 'H200' and chip_count"),
        ({**RUN, "mlperf_round": "banana", "throughput": 9000}, "is unknown"),
    ],
)
def test_a_mistake_in_a_run_is_named(
    arguments: Mapping[str, Any], sentence: str, record: Record, worker: SqlWorker
) -> None:
    actual = answer(record, worker, "compare_run", arguments)
    assert sentence in actual.get("verdict", actual.get("reason", ""))


@pytest.mark.slow
@pytest.mark.parametrize("entry", TRAPS, ids=describe)
def test_a_trap_is_refused_for_its_own_reason(
    entry: Mapping[str, Any], answers: Mapping[str, Answer]
) -> None:
    actual = answers[describe(entry)]
    assert (actual["status"], actual["code"]) == ("refused", entry["code"]), actual
    assert len(actual["reason"]) > 10
    assert len(actual["next_step"]) > 10
    assert entry.get("reason", "") in actual["reason"]
    assert entry.get("next_step", "") in actual["next_step"]


@pytest.mark.parametrize(
    ("figure", "unit", "factor", "item"),
    [
        ("energy_per_item_j", "mJ/image", "1/1000", "image"),
        ("run_energy_j", "Wh", "3600", None),
        ("minutes", "hours", "60", None),
        ("efficiency", "tokens/Wh", "0.0002777777777777777777777777778", "token"),
        ("throughput", "edges/s", "1", "edge"),
    ],
)
def test_a_claim_may_have_any_unit_that_sources_print(
    figure: str, unit: str, factor: str, item: str | None
) -> None:
    assert load_vocabulary().parse_stated_unit(figure, unit) == (Fraction(factor), item)


def refuse(record: Record, worker: SqlWorker, tool: str, **arguments: Any) -> str:
    actual = answer(record, worker, tool, arguments)
    assert actual["status"] == "refused", actual
    return str(actual["code"])


HIGHEST = {"figure": "throughput", "order": "highest"}
LOWEST = {"figure": "minutes", "order": "lowest"}
NO_COUNT = {
    "first_result_id": "rf41aa72a62f05134",
    "second_result_id": "rd085f079129e31ab",
    "chips_basis": "per-chip",
}
NO_POWER = {
    "first_result_id": "r9f9c88dbd0e35f60",
    "second_result_id": "rb20604b6574a4065",
    "figure": "power_w",
}
EMULATED = "emulated-not-measured"
UNIT = "different-units"  # a mega is not a milli
POWER = {"figure": "power_w", "unit": "W"}
REFUSED = (
    ("find", {"model": "resnet50", "platform": "IPU-M9000"}, "unknown-word"),
    ("find", {"model": "resnet50", "batch": 4}, "wrong-input"),
    ("find", {"model": "resnet50", "batch_size": 4.5}, "wrong-input"),
    ("find", {"model": "resnet50", "order": "highest"}, "wrong-input"),
    ("find", {"model": "x" * 201}, "wrong-input"),
    ("find", {"platform": "Bow-2000", **HIGHEST}, "different-networks"),
    ("find", {"model": "ResNet-50", **HIGHEST}, "different-tasks"),
    (
        "find",
        {"model": "ResNet-50", "platform": "IPU-M2000", **LOWEST, "figure": "latency_ms"},
        "different-latencies",
    ),
    (
        "find",
        {"model": "BERT", **LOWEST, "mlperf_round": "1.0", "chip_count": 16},
        "mlperf-divisions",
    ),
    (
        "find",
        {"model": "ResNet-50", "publisher": "Graphcore", "task": "training", **HIGHEST},
        "different-chip-counts",
    ),
    ("find", {"model": "EfficientDet-D0", "platform": "Bow-2000", **HIGHEST}, "flagged"),
    # images of forty sizes
    (
        "find",
        {
            "model": "YOLOv4-P5",
            "platform": "GC200 IPU",
            "figure": "throughput",
            "order": "highest",
            "batch_size": 1,
        },
        "different-workloads",
    ),
    ("provenance", {"result_id": "r0000000000000000"}, "unknown-word"),
    ("provenance", {}, "wrong-input"),
    ("compare", NO_COUNT, "unknown-chip-count"),
    ("compare", NO_POWER, "not-printed"),
    ("compare_run", {"model": "resnet50", "platform": "abacus", "throughput": 1}, "unknown-word"),
    ("compare_run", {"model": "resnet50"}, "wrong-input"),
    (
        "compare_run",
        {
            "model": "BERT-Large",
            "task": "training",
            "platform": "Bow Pod16",
            "throughput": 1,
            "item": "image",
        },
        "different-workloads",
    ),
    (
        "compare_run",
        {"model": "resnet50", "platform": "c2", "batch_size": 4, "power_w": 200.0},
        "different-figures",
    ),
    ("find", {"model": "BERT-Large", "platform": "C2"}, "no-match"),
    ("claims", {"claim_id": "x"}, "unknown-word"),
    ("claims", {"text": "cold fusion"}, "no-match"),
    (
        "check_claimed_figure",
        {"model": "BERT", "figure": "minutes", "value": "-3", "unit": "min"},
        "wrong-input",
    ),
    (
        "check_claimed_figure",
        {"model": "BERT", "figure": "latency", "value": "3", "unit": "ms"},
        "wrong-input",
    ),
    (
        "check_claimed_figure",
        {"model": "BERT", "figure": "run_energy_j", "value": "3", "unit": "MJ"},
        UNIT,
    ),
    (
        "check_claimed_figure",
        {"model": "ResNeXt101-32x4d", "platform": "C2", **POWER, "value": "234"},
        EMULATED,
    ),
    (
        "check_claimed_figure",
        {"model": "ResNet-50", "platform": "Bow-2000", **POWER, "value": "0"},
        "not-printed",
    ),
    ("shell", {}, "wrong-input"),
)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"), REFUSED, ids=[f"{tool}-{code}" for tool, _, code in REFUSED]
)
def test_what_cannot_be_answered_is_refused_with_its_code(
    record: Record, worker: SqlWorker, tool: str, arguments: dict[str, Any], code: str
) -> None:
    assert refuse(record, worker, tool, **arguments) == code


def test_an_argument_that_is_null_counts_as_not_stated(record: Record, worker: SqlWorker) -> None:
    stated = {
        "model": "resnet50",
        "platform": "ipu-m2000",
        "batch_size": 4.0,
        "framework": "TensorFlow1",
    }
    actual = answer(record, worker, "find", {**stated, "precision": None, "limit": 3.0})
    assert [result["result_id"] for result in actual["results"]] == ["r9f9c88dbd0e35f60"]


def test_what_a_source_does_not_print_is_named_and_never_zero(
    record: Record, worker: SqlWorker
) -> None:
    details = (
        {"result_id": "r9f9c88dbd0e35f60", "detail": detail} for detail in ("whole", "brief")
    )
    whole, brief = (answer(record, worker, "provenance", arguments) for arguments in details)
    (result,) = whole["results"]
    assert (
        result["not_printed"]
        == whole["not_printed"]
        == brief["not_printed"]
        == ["minutes", "power_w"]
    )
    assert set(result["figures"]) == {"throughput", "latency_ms"}


def test_a_claim_that_only_flagged_rows_print_is_marked(record: Record, worker: SqlWorker) -> None:
    machine = {"model": "FastSpeech2", "platform": "Bow-2000"}
    claim = {**machine, "figure": "throughput", "value": "4354", "unit": "items/s"}
    actual = answer(record, worker, "check_claimed_figure", claim)
    assert (actual["verdict"], actual["not_usable"]) == ("exact", ["r907bccb80c246a37"])


def test_conditions_that_a_claim_leaves_open_are_listed(record: Record, worker: SqlWorker) -> None:
    claim = {
        "model": "BERT",
        "platform": "IPU-POD16",
        "figure": "minutes",
        "value": "27.75",
        "unit": "min",
    }
    actual = answer(record, worker, "check_claimed_figure", claim)
    assert actual["verdict"] == "rounds-to"
    assert actual["results"][0]["conditions"]["division"] == "open"
    assert sorted(actual["not_stated_and_varies"]["division"]) == ["closed", "open"]


def change_results(record: Record, folder: Path, changes: str, result_id: str) -> Record:
    """Return a copy of the record in which one row of `results` is changed."""
    shutil.copytree(record.folder, folder, ignore=shutil.ignore_patterns("*.duckdb"))
    changed = open_record(folder)
    changed.connection.execute(
        f"UPDATE stored.results SET {changes} WHERE result_id = $1", [result_id]
    )
    scopes = {row["result_id"]: row["scopes"] for row in changed.rows}
    rows = load_rows(changed.connection)
    return replace(changed, rows=[{**row, "scopes": scopes[row["result_id"]]} for row in rows])


@pytest.fixture
def with_submitted(record: Record, tmp_path: Path) -> Record:
    """Return the record with one row as a user's: the only one of its batch size."""
    changes = "relationship = 'submitted', origin = 'measured', usable = FALSE"
    return change_results(record, tmp_path / "copy", changes, "rfcc2c38cd828a8fc")


def test_submitted_rows_are_left_out_unless_requested(
    with_submitted: Record, worker: SqlWorker
) -> None:
    stated = {
        "model": "ResNet-50",
        "platform": "IPU-M2000",
        "task": "inference",
        "batch_size": 360,
    }
    assert refuse(with_submitted, worker, "find", **stated) == "submitted-not-requested"
    claim = {**stated, "figure": "throughput", "value": "50883", "unit": "images/s"}
    assert (
        refuse(with_submitted, worker, "check_claimed_figure", **claim) == "submitted-not-requested"
    )
    wider = answer(with_submitted, worker, "find", {**stated, "batch_size": None})
    assert wider["left_out"] == "6 of 20 rows are not usable: 5 emulated, 1 submitted by users"
    actual = answer(with_submitted, worker, "find", {**stated, "relationship": "submitted"})
    assert [result["result_id"] for result in actual["results"]] == ["rfcc2c38cd828a8fc"]


def test_submitted_rows_do_not_decide_whether_a_run_is_plausible(
    with_submitted: Record, worker: SqlWorker
) -> None:
    run = {
        "model": "resnet50",
        "platform": "ipu-m2000",
        "batch_size": 360,
        "throughput": 50000,
        "precision": "16.16",
    }
    actual = answer(with_submitted, worker, "compare_run", run)
    assert "rfcc2c38cd828a8fc" not in json.dumps(actual)
    assert actual["comparison_status"] == "other-conditions"


@pytest.mark.docs
def test_the_docs_list_the_codes_of_refusals() -> None:
    rows = "".join(f"| `{code}` | {text} |\n" for code, text in CODES.items())
    check_part(
        DOCS / "how-to" / "ask-from-a-program.md",
        "refusals",
        f"\n| code | for |\n|---|---|\n{rows}\n",
    )


def test_power_of_other_parts_of_a_machine_is_not_compared(
    record: Record, worker: SqlWorker, tmp_path: Path
) -> None:
    rows = [
        row
        for row in record.rows
        if row["model"] == "GPT-800M" and row["platform"] == "1x A100-40GB (JURECA)"
    ]
    pair = {
        "first_result_id": rows[0]["result_id"],
        "second_result_id": rows[1]["result_id"],
        "figure": "efficiency",
    }
    assert answer(record, worker, "compare", pair)["unit"] == "token/s/W"
    changes = "power_scope = 'wall'"
    other = change_results(record, tmp_path / "copy", changes, rows[1]["result_id"])
    assert refuse(other, worker, "compare", **pair) == "different-power-scopes"


def test_claimed_figure_is_answered_with_every_printed_digit(
    record: Record, worker: SqlWorker
) -> None:
    stated = {
        "model": "ResNet-50",
        "platform": "2x Bow (Bow Pod64)",
        "figure": "throughput",
        "unit": "images/s",
    }
    own = answer(record, worker, "check_claimed_figure", {**stated, "value": "4798.778947368421"})
    assert (own["verdict"], "the record has 4798.778947368421 " in own["statement"]) == (
        "exact",
        True,
    )
