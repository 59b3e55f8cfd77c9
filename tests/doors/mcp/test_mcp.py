"""Ask the MCP server: questions with known answers, and traps."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ipu_results.doors.comparison.expect import Expectation, expect_rows
from ipu_results.doors.mcp.answers import Record, open_record
from ipu_results.doors.mcp.brief import USUAL, WHO, shorten_rows
from ipu_results.doors.mcp.refusal import CODES

from tests.conftest import ROOT, Query
from tests.docs.docs_support import DOCS, check_part
from tests.doors.mcp.conftest import Answer, Ask, copy_warehouse, edit_rows

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client
from mcp.client.stdio import StdioServerParameters

Entry = dict[str, Any]
"""A call of a tool with what it answers."""


def load_calls(name: str, key: str) -> list[Entry]:
    text = (ROOT / f"tests/data/{name}.toml").read_text(encoding="utf-8")
    calls: list[Entry] = tomllib.loads(text)[key]
    return calls


QUESTIONS = load_calls("mcp_questions", "question")
TRAPS = load_calls("mcp_questions", "trap")
REFUSED = load_calls("mcp_refusals", "refused")
VISITORS = load_calls("mcp_visitors", "question")
PRINTED = [entry for entry in QUESTIONS if "printed" in entry]
OTHERS = [entry for entry in QUESTIONS if "printed" not in entry]
TOOLS = ("find", "provenance", "compare", "compare_run", "check_claimed_figure")
SEVERAL = {"order", "origin", "relationship", "division"}
"""Arguments of questions that rows of several parties answer, or of one that is no vendor."""
FOUND = [
    entry for entry in QUESTIONS if SEVERAL & entry["arguments"].keys() and entry["tool"] == "find"
]
# one of each tool and status: the others are cited by the same statement
CITED = {}
for entry in QUESTIONS:
    if entry["tool"] in TOOLS:
        CITED[entry["tool"], entry.get("status")] = entry
MAX_SUMMARY = 5000  # bytes
BRIEF_DIGITS = 1e-5  # of a ratio


def describe(entry: Entry) -> str:
    return str(entry.get("ask") or f"{entry['tool']}-{entry['code']}")


def count_bytes(answer: Answer) -> int:
    return len(json.dumps(answer, ensure_ascii=False).encode())


def ask_entry(ask: Ask, entry: Entry, **more: Any) -> Answer:
    return ask(entry["tool"], **(entry["arguments"] | more))


@pytest.mark.slow
def test_server_answers_over_its_stdin_and_stdout(warehouse: Path, ask: Ask) -> None:
    args = ["-m", "ipu_results", "mcp", "--warehouse", str(warehouse)]
    command = StdioServerParameters(command=sys.executable, args=args, env={**os.environ}, cwd=ROOT)

    async def call() -> None:
        async with Client(command) as client:
            for entry in (QUESTIONS[0], TRAPS[0]):
                result = await client.call_tool(entry["tool"], entry["arguments"])
                expected = json.loads(json.dumps(ask_entry(ask, entry)))
                assert result.structured_content is None  # the answer is sent once
                assert json.loads(result.content[0].text) == expected
                assert result.is_error == (expected["status"] == "refused")

    asyncio.run(call())


def parse(text: str) -> float:
    return float(text.replace(",", ""))


def compute_value(entry: Entry) -> float:
    """Compute the answer from what the sources print."""
    numbers = [parse(text) for text in entry["printed"]]
    for place, chips in enumerate(entry.get("divide_by", ())):
        numbers[place] /= chips
    if "stated" in entry:
        return float(entry["stated"] / numbers[0])
    if len(numbers) == 2:
        return numbers[0] / numbers[1]
    return float(numbers[0] * entry.get("factor", 1.0))


def get_value(tool: str, figure: str, actual: Answer) -> tuple[float, str]:
    """Return the figure and its unit from where an answer of the tool has it."""
    match tool:
        case "compare":
            return actual["ratio"], actual["unit"]
        case "compare_run":
            ratio = actual["nearest"][0]["ratios"][0]
            return ratio["ratio"], ratio["unit"]
        case "provenance":
            [cell] = [cell for cell in actual["figures"] if cell["column_name"] == figure]
            return parse(cell["raw_text"]), cell["unit"]
        case "check_claimed_figure":
            return actual["nearest"][0]["recorded"], actual["nearest"][0]["unit"]
        case _:
            shown = actual["results"][0]["figures"][figure]
            return shown["value"], shown["unit"]


@pytest.mark.parametrize("entry", PRINTED, ids=describe)
def test_a_figure_is_answered_exactly_as_cells_print_it(
    entry: Entry, ask: Ask, query: Query
) -> None:
    figure = entry.get("figure") or entry["arguments"]["figure"]
    column = "time_to_train_s" if figure == "minutes" else figure
    expected_ids = entry["result_ids"]
    for result_id, printed in zip(expected_ids, entry["printed"], strict=True):
        where = f"result_id = '{result_id}' AND column_name = '{column}'"
        assert query(f"SELECT DISTINCT trim(raw_text) FROM cells WHERE {where}") == [(printed,)]
    actual = ask_entry(ask, entry)
    value, unit = get_value(entry["tool"], figure, actual)
    assert value == pytest.approx(compute_value(entry), rel=BRIEF_DIGITS)
    assert unit == entry["unit"]
    rows = actual.get("nearest") or actual["results"]
    ids = [row["result_id"] for row in rows]
    if entry["tool"] in ("check_claimed_figure", "compare_run"):
        ids = ids[: len(expected_ids)]
    assert ids == expected_ids
    assert actual.get("verdict", "").startswith(entry.get("verdict", ""))
    if "what_differs" in entry:
        assert actual["what_differs"] == entry["what_differs"]


@pytest.mark.parametrize("entry", CITED.values(), ids=describe)
def test_an_answer_has_relationship_origin_and_citation(entry: Entry, ask: Ask) -> None:
    actual = ask_entry(ask, entry, detail="whole")
    met = {None}
    for result in actual["results"]:
        assert result["relationship"] in ("vendor", "independent", "official", "own")
        assert f"result {result['result_id']}" in actual["citation"]
        status = result.get("status")
        is_emulated = status == "emulated, not measured"
        assert is_emulated == (result["origin"] == "emulated")
        met.add(status)
        figures = result.get("figures", {})  # elsewhere in the answer of compare and provenance
        assert figures.keys().isdisjoint(result.get("not_printed", []))
        for figure in figures.values():
            assert figure["value"] is not None
        if status == "unverified":
            assert "Result not verified by MLCommons Association." in actual["citation"]
    assert entry.get("status") in met


def test_a_later_row_that_differs_in_one_part_of_who_measured_keeps_all_parts() -> None:
    first: Answer = {"result_id": "r1", "what": "ResNet-50", "usable": True, "written_by": None}
    first |= {"figures": {}, "flags": [], "conditions": {}, "status": None}
    first |= {"relationship": "vendor", "interest": "both", "origin": "measured"}
    _, other, same = shorten_rows([first, {**first, "origin": "emulated"}, first], ())
    parts = {name: other[name] for name in ("relationship", "interest", "origin")}
    assert parts == {"relationship": "vendor", "interest": "both", "origin": "emulated"}
    assert not set(WHO) & set(same)


@pytest.mark.parametrize("entry", FOUND, ids=describe)
def test_a_brief_row_says_or_implies_who_measured_and_how(entry: Entry, ask: Ask) -> None:
    """Every row of a brief answer with a limit, told by its row and the first, is the whole row."""
    brief = ask_entry(ask, entry, limit=10)["results"]
    whole = ask_entry(ask, entry, limit=10, detail="whole")["results"]
    who = brief[0]
    shared = brief[0].get("conditions", {})
    for row, complete in zip(brief, whole, strict=True):
        assert row["result_id"] == complete["result_id"]
        assert row.get("usable", True) == complete["usable"]
        if "relationship" in row:
            who = row
        usual = USUAL[who["relationship"]]
        for name in WHO:
            assert (who.get(name) or usual.get(name)) == complete[name]
        for name, value in {**shared, **row.get("conditions", {})}.items():
            stated = complete["conditions"][name]
            assert value == ("not stated" if stated is None else stated)
        for name, figure in row["figures"].items():
            exact = complete["figures"][name]["value"]
            assert figure["value"] == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("entry", OTHERS, ids=describe)
def test_a_question_of_claims_or_sql_is_answered_exactly(
    entry: Entry, ask: Ask, query: Query
) -> None:
    tool = entry["tool"]
    options = {} if tool == "overview" else {"detail": "whole"}
    actual = ask_entry(ask, entry, **options)
    expected = query(entry["sql"])
    assert actual["citation"] or tool == "sql"
    if tool == "claims":
        ids = entry.get("claim_ids") or [name for (name,) in query(entry["claim_ids_sql"])]
        assert sorted(claim["claim_id"] for claim in actual["claims"]) == sorted(ids)
        assert expected == [(entry["verdict"],)]
        assert {claim["verdict"] for claim in actual["claims"]} == {entry["verdict"]}
    elif tool == "overview":
        counted = map(tuple, actual["results"]["rows"])
        assert sorted(counted, key=str) == sorted(expected, key=str)
    else:
        assert list(map(tuple, actual["rows"])) == expected
        assert entry.get("remark", actual["remarks"][0]) in actual["remarks"]


@pytest.mark.parametrize("entry", VISITORS, ids=describe)
def test_a_question_of_a_visitor_is_answered(entry: Entry, ask: Ask) -> None:
    text = json.dumps(ask_entry(ask, entry), ensure_ascii=False)
    assert [words for words in entry["expect"] if words not in text] == [], text[:500]
    assert entry["tool"] != "compare_run" or "--" not in text  # an option of the command


@pytest.mark.parametrize("entry", [*TRAPS, *REFUSED], ids=describe)
def test_what_cannot_be_answered_is_refused_for_its_own_reason(entry: Entry, ask: Ask) -> None:
    actual = ask_entry(ask, entry)
    assert actual["status"] == "refused"
    assert actual["code"] == entry["code"]
    for name in ("reason", "next_step"):
        assert len(actual[name]) > 10
        assert entry.get(name, "") in actual[name]
    assert not list(Path("/tmp").glob("mcp-x*"))  # which statements try to write


def test_every_code_is_reached_by_a_test() -> None:
    reached = {entry["code"] for entry in [*TRAPS, *REFUSED]}
    in_own_tests = {"too-long", "rebuilt", "submitted-not-requested", "different-power-scopes"}
    assert set(CODES) - reached == in_own_tests


def test_overview_is_short_and_its_parts_are_on_request(ask: Ask, query: Query) -> None:
    summary = ask("overview")
    assert count_bytes(summary) < MAX_SUMMARY
    assert summary["parts"]["models"] == len(ask("overview", part="models")["models"]) > 0
    [(rows, unusable)] = query("SELECT count(*), count(*) FILTER (NOT usable) FROM results")
    assert summary["not_usable"].startswith(f"{unusable:,} of {rows:,} rows are not usable: ")


def test_an_argument_that_is_null_counts_as_not_stated(ask: Ask) -> None:
    stated = {"model": "resnet50", "platform": "ipu-m2000", "framework": "TensorFlow1"}
    actual = ask("find", **stated, batch_size=4.0, precision=None, limit=3.0)
    assert [result["result_id"] for result in actual["results"]] == ["r9f9c88dbd0e35f60"]


def test_what_a_source_does_not_print_is_named_and_never_zero(ask: Ask) -> None:
    [whole] = ask("find", **ROW, detail="whole")["results"]
    assert whole["not_printed"] == ["minutes", "power_w"]
    assert set(whole["figures"]) == {"throughput", "latency_ms"}
    for detail in ("whole", "brief"):
        actual = ask("provenance", result_id=whole["result_id"], detail=detail)
        assert actual["not_printed"] == whole["not_printed"]


def test_conditions_that_a_claim_leaves_open_are_listed(ask: Ask) -> None:
    claim = {"value": "27.75", "unit": "min", "figure": "minutes"}
    actual = ask("check_claimed_figure", **claim, model="BERT", platform="IPU-POD16")
    assert actual["verdict"] == "rounds-to"
    assert actual["nearest"][0]["conditions"]["division"] == "open"
    assert "division" in actual["not_stated_and_varies"]


ROW = {"model": "resnet50", "platform": "ipu-m2000", "batch_size": 4, "framework": "TensorFlow1"}
MAX_ROW, MAX_BRIEF, MAX_RUN = 400, 560, 950  # bytes


def test_an_answer_is_brief_and_the_whole_is_on_request(ask: Ask) -> None:
    brief = ask("find", **ROW)
    whole = ask("find", **ROW, detail="whole")
    [row] = brief["results"]
    [complete] = whole["results"]
    assert count_bytes(brief) < MAX_BRIEF
    assert count_bytes(row) < MAX_ROW
    assert row["conditions"].items() <= complete["conditions"].items()
    assert complete["figures"]["throughput"]["place"] in whole["citation"]
    assert [flag["severity"] for flag in complete["flags"]] == ["info"]
    assert "flags" not in row
    flagged = ask("find", model="FastSpeech2", platform="Bow-2000", usable=False)
    errors = set()
    for result in flagged["results"]:
        flags = result.get("flags", [])
        errors.update(flag["rule"] for flag in flags if flag["severity"] == "error")
    assert errors
    assert all(f"Quality rule {rule} " in flagged["citation"] for rule in errors)


def test_a_brief_comparison_has_the_nearest_row_and_the_whole_on_request(ask: Ask) -> None:
    run = {"model": "resnet50", "batch_size": 16, "platform": "ipu-m2000", "precision": "16.16"}
    brief = ask("compare_run", **run, throughput=4051)
    whole = ask("compare_run", **run, throughput=4051, detail="whole")
    assert count_bytes(brief) < MAX_RUN
    assert brief["verdict"] == whole["verdict"]
    assert brief["assumed"] == whole["assumed"]
    [nearest] = brief["nearest"]
    first, *others = whole["nearest"]
    assert nearest["result_id"] == first["result_id"]
    [exact, *_] = first["ratios"]
    assert nearest["ratios"][0]["ratio"] == pytest.approx(exact["ratio"], rel=BRIEF_DIGITS)
    assert brief["more_groups"] == [match["group"] for match in others]
    assert len(whole["results"]) == len(whole["nearest"]) > 1
    outcomes = {check["outcome"] for check in whole["plausibility"]}
    assert outcomes.isdisjoint({"doubtful", "impossible"})
    assert "plausibility" not in brief


def test_what_a_third_party_will_measure_is_that_of_compare(
    record: Record, ask: Ask, query: Query
) -> None:
    entry = "round = '2.0' AND benchmark = 'ssd' AND chip_count = 8"
    sql = f"SELECT min(result_id) FROM mlperf_entries WHERE {entry} AND company = '%s'"
    [(maker,)] = query(sql % "NVIDIA")
    actual = ask("expect", result_id=maker, detail="whole")
    expected = expect_rows(record.connection.cursor(), f"result_id = '{maker}'")[maker]
    assert isinstance(expected, Expectation)
    assert actual["intervals"] == expected.to_record()["intervals"]
    assert all(pair["second_result_id"] in actual["citation"] for pair in actual["nearest"])
    brief = ask("expect", result_id=maker)
    assert brief["intervals"] == actual["intervals"]
    [(other,)] = query(sql % "Dell")
    assert "not the maker" in ask("expect", result_id=other)["reason"]


def change_result(record: Record, folder: Path, result_id: str, **changes: Any) -> Record:
    """Return a copy of the record in which one row of `results` is changed."""
    copy = copy_warehouse(record.folder, folder / "copy")
    edit_rows(copy, "results", {"result_id": result_id}, **changes)
    return open_record(copy)


def test_submitted_rows_are_left_out_unless_requested(
    record: Record, ask: Ask, tmp_path: Path
) -> None:
    """One row, the only one of its batch size, is that of a user."""
    submitted = "rfcc2c38cd828a8fc"
    user = {"relationship": "submitted", "origin": "measured", "usable": False}
    changed = change_result(record, tmp_path, submitted, **user)
    machine = {"model": "ResNet-50", "platform": "IPU-M2000", "task": "inference"}
    batch = {**machine, "batch_size": 360}
    claim = {"figure": "throughput", "value": "50883", "unit": "images/s"}
    assert ask("find", changed, **batch)["code"] == "submitted-not-requested"
    claimed = ask("check_claimed_figure", changed, **batch, **claim)
    assert claimed["code"] == "submitted-not-requested"
    wider = ask("find", changed, **machine, detail="whole")
    assert wider["left_out"] == "6 of 20 rows are not usable: 5 emulated, 1 submitted by users"
    [result] = ask("find", changed, **batch, relationship="submitted")["results"]
    assert result["result_id"] == submitted
    assert "not instructions" in result["written_by"]
    assert result["what"].startswith('"')
    del batch["task"]
    compared = ask("compare_run", changed, **batch, throughput=50000, precision="16.16")
    assert submitted not in json.dumps(compared)
    assert compared["comparison_status"] == "other-conditions"


def test_power_of_other_parts_of_a_machine_is_not_compared(
    record: Record, ask: Ask, query: Query, tmp_path: Path
) -> None:
    where = "model = 'GPT-800M' AND platform = '1x A100-40GB (JURECA)'"
    sql = f"SELECT result_id FROM results WHERE {where} ORDER BY row_number LIMIT 2"
    [(first,), (second,)] = query(sql)
    pair = {"first_result_id": first, "second_result_id": second, "figure": "efficiency"}
    assert ask("compare", **pair)["unit"] == "token/s/W"
    changed = change_result(record, tmp_path, second, power_scope="wall")
    assert ask("compare", changed, **pair)["code"] == "different-power-scopes"


@pytest.mark.docs
def test_the_docs_list_the_codes_of_refusals() -> None:
    rows = "".join(f"| `{code}` | {text} |\n" for code, text in CODES.items())
    table = f"\n| code | for |\n|---|---|\n{rows}\n"
    check_part(DOCS / "how-to" / "ask-from-a-program.md", "refusals", table)
