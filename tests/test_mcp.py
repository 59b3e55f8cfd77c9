"""Ask the MCP server through the real protocol: forty questions answered exactly, twenty traps refused for the reason."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Query
from ipu_results.mcp_server.refusal import CODES

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from ipu_results.mcp_server.record import Record, open_record
from ipu_results.mcp_server.server import answer
from ipu_results.mcp_server.sql import SqlWorker
from mcp import Client
from mcp.client.stdio import StdioServerParameters

DATA = tomllib.loads((ROOT / "tests/data/mcp_questions.toml").read_text(encoding="utf-8"))
QUESTIONS, TRAPS = DATA["question"], DATA["trap"]
CITED = ("find", "provenance", "compare", "compare_run", "check_claimed_figure")
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


@pytest.fixture(scope="session")
def record(warehouse: Path) -> Record:
    return open_record(warehouse)


@pytest.fixture(scope="session")
def worker(record: Record) -> Iterator[SqlWorker]:
    worker = SqlWorker(record)
    yield worker
    worker.stop()


def parse(text: str) -> float:
    return float(text.replace(",", ""))


def test_there_are_forty_questions_and_twenty_traps() -> None:
    assert (len({describe(entry) for entry in QUESTIONS}), len({describe(entry) for entry in TRAPS})) == (40, 20)
    assert {entry["code"] for entry in TRAPS} <= set(CODES)


@pytest.mark.parametrize("entry", [entry for entry in QUESTIONS if "printed" in entry], ids=describe)
def test_expected_values_follow_from_the_printed_cells(entry: Mapping[str, Any], query: Query) -> None:
    column = {"minutes": "time_to_train_s"}.get(entry["figure"], entry["figure"])
    for result_id, printed in zip(entry["result_ids"], entry["printed"], strict=True):
        where = f"result_id = '{result_id}' AND column_name = '{column}'"
        assert {str(text).strip() for (text,) in query(f"SELECT raw_text FROM cells WHERE {where}")} == {printed}
    numbers = [parse(text) for text in entry["printed"]]
    if "divide_by" in entry:
        numbers = [number / chips for number, chips in zip(numbers, entry["divide_by"], strict=True)]
    if "stated" in entry:
        assert entry["value"] == pytest.approx(entry["stated"] / numbers[0], rel=1e-12)
    elif len(numbers) == 2:
        assert entry["value"] == pytest.approx(numbers[0] / numbers[1], rel=1e-12)
    else:
        assert entry["value"] == pytest.approx(numbers[0] * entry.get("factor", 1.0), rel=1e-12)


def get_value(entry: Mapping[str, Any], given: Answer) -> tuple[float, str]:
    """Return the figure and its unit from where an answer of the tool has it."""
    figure, tool = entry["figure"], entry["tool"]
    if tool == "compare":
        return given["ratio"], given["unit"]
    if tool == "compare_run":
        (ratio, *_) = given["nearest"][0]["ratios"]
        return ratio["ratio"], given["results"][0]["figures"][figure]["unit"]
    if tool == "provenance":
        (cell,) = [cell for cell in given["figures"] if cell["column_name"] == figure]
        return parse(cell["raw_text"]), cell["unit"]
    if tool == "check_claimed_figure":
        return given["nearest"][0]["recorded"], given["nearest"][0]["unit"]
    shown = given["results"][0]["figures"][figure]
    return shown["value"], shown["unit"]


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in QUESTIONS if "printed" in entry], ids=describe)
def test_a_figure_is_answered_exactly(entry: Mapping[str, Any], answers: Mapping[str, Answer]) -> None:
    given = answers[describe(entry)]
    assert given["status"] == "answered", given
    value, unit = get_value(entry, given)
    assert value == pytest.approx(entry["value"], rel=1e-12)
    assert unit == entry["unit"]
    ids = [result["result_id"] for result in given["results"]]
    asked = entry["result_ids"]
    assert (ids[: len(asked)] if entry["tool"] in ("check_claimed_figure", "compare_run") else ids) == asked
    assert given.get("verdict", "").startswith(entry.get("verdict", ""))


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in QUESTIONS if entry["tool"] in CITED], ids=describe)
def test_an_answer_says_who_measured_how_and_where(entry: Mapping[str, Any], answers: Mapping[str, Answer]) -> None:
    given = answers[describe(entry)]
    for result in given["results"]:
        assert result["relationship"] in ("vendor", "independent", "official", "own")
        assert f"result {result['result_id']}" in given["citation"]
        assert (result["status"] == "emulated, not measured") == (result["origin"] == "emulated")
        assert isinstance(result["flags"], list)
        assert not {name for name in result["not_printed"] if name in result["figures"]}
        assert all(figure["value"] is not None for figure in result["figures"].values())
    statuses = {result["status"] for result in given["results"]}
    assert entry.get("status") in {*statuses, None}
    if "unverified" in statuses:
        assert "Result not verified by MLCommons Association." in given["citation"]


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for entry in QUESTIONS if "printed" not in entry], ids=describe)
def test_a_question_of_claims_or_sql_is_answered_exactly(
    entry: Mapping[str, Any], answers: Mapping[str, Answer], query: Query
) -> None:
    given, expected = answers[describe(entry)], query(entry["sql"])
    assert given["status"] == "answered", given
    assert given["citation"] or entry["tool"] == "sql"
    if entry["tool"] == "claims":
        ids = entry.get("claim_ids") or [name for (name,) in query(entry["claim_ids_sql"])]
        assert sorted(claim["claim_id"] for claim in given["claims"]) == sorted(ids)
        assert {claim["verdict"] for claim in given["claims"]} == {name for (name,) in expected} == {entry["verdict"]}
    elif entry["tool"] == "overview":
        counted = [tuple(counts.values()) for counts in given["results"]]
        assert sorted(counted, key=str) == sorted(expected, key=str)
    else:
        assert [tuple(row) for row in given["rows"]] == expected
        assert entry.get("remark", given["remarks"][0]) in given["remarks"]


@pytest.mark.slow
@pytest.mark.parametrize("entry", TRAPS, ids=describe)
def test_a_trap_is_refused_for_its_own_reason(entry: Mapping[str, Any], answers: Mapping[str, Answer]) -> None:
    given = answers[describe(entry)]
    assert (given["status"], given["code"]) == ("refused", entry["code"]), given
    assert len(given["reason"]) > 10
