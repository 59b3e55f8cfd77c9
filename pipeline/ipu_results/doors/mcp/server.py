"""The tools that a program can call: each takes the record and checked arguments, and returns an
answer.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from ipu_results.doors.cite.citation import describe_dataset, describe_dataset_briefly
from ipu_results.doors.cite.facts import FIGURES as PRINTED
from ipu_results.doors.comparison.expect import expect_rows
from ipu_results.doors.comparison.statements import Row
from ipu_results.doors.mcp.answers import (
    ALL_FIGURES,
    FIGURES,
    NEAREST,
    ORIGINS,
    Record,
    get_unit,
    list_not_printed,
    open_record,
    suggest,
)
from ipu_results.doors.mcp.brief import (
    MAX_BRIEF,
    NOT_STATED,
    SHOWN,
    describe_claims,
    drop_empty,
    shorten_cell,
    write_line,
)
from ipu_results.doors.mcp.claimed import check_claimed_figure
from ipu_results.doors.mcp.names import list_named, name_part
from ipu_results.doors.mcp.pairs import compare_run, compare_two
from ipu_results.doors.mcp.ranking import get_share, is_divided, rank_rows
from ipu_results.doors.mcp.refusal import (
    CODES,
    WORDS,
    Answer,
    RefusalError,
    join_refusals,
)
from ipu_results.doors.mcp.selection import keep_within_latency, require_figure, select_rows
from ipu_results.doors.mcp.sql import SqlWorker, is_damage, run_sql
from ipu_results.errors import IpuResultsError
from ipu_results.kit.files import read_version
from ipu_results.kit.sql import run_query
from ipu_results.kit.text import find_nearest_words, to_json_value
from ipu_results.record.store.query import read_build_id
from ipu_results.schema import TABLES, VIEWS, quote
from ipu_results.schema.usable import describe_unusable
from ipu_results.schema.vocabulary import normalise_name

NAME = "ipu-results"
DEFAULT_RESULTS = 10
# rows of a brief answer that leaves some out: the next best is of interest, the next newest is not
MAX_UNRANKED, MAX_RANKED = 1, 2
COUNTS = """
    SELECT relationship, interest, origin, task, count(*) AS results
    FROM results
    GROUP BY ALL
    ORDER BY ALL
"""
SQL_PARTS = {"tables": "tables_for_sql", "views": "views_for_sql"}
MAX_PARTIES = 3
# a percentage is one: 40% is neither 40 nor 40x
WORD = re.compile(r"[0-9]+(?:[.][0-9]+)?%|[^\W_]+(?:[.][0-9]+[a-z]*)?")
PERCENT = re.compile(r"\s*(%|per\s?cent\b)")
TITLE = re.compile(" “[^”]*”,(?=.*https?:)")  # of a document whose address follows
MAX_NAME = 200  # characters of a tool that there is not
MAX_PROBLEM = 300


def overview(record: Record, part: str = "summary") -> Answer:
    """Describe the record: a summary that names its parts, one of them, or all."""
    platforms = {row["platform"] for row in record.rows}
    measured = {row["platform"] for row in record.rows if row["relationship"] != "official"}
    cited = describe_dataset(record.shown_version)
    parts: Answer = {
        "models": sorted({row["model"] for row in record.rows}),
        "platforms": sorted(measured),
        "tables": {table.sql_name: table.description for table in TABLES},
        "views": {view.sql_name: view.description for view in VIEWS},
        "refusal_codes": CODES,
        "rules": WORDS["instructions"],
    }
    answer: Answer = {"dataset": cited}
    if part in ("summary", "all"):
        with record.connection.cursor() as cursor:
            counts = run_query(cursor, COUNTS)
        rows = [list(row.values()) for row in counts.to_pylist()]
        answer["results"] = {"columns": counts.column_names, "rows": rows}
        answer["origins"] = ORIGINS
        answer["figures"] = {name: get_unit(name) for name in FIGURES}
        answer["parts"] = {name: len(value) for name, value in parts.items() if name != "rules"}
        answer["not_usable"] = describe_unusable([row["unusable"] for row in record.rows])
        answer["platforms_with_official_entries_only"] = len(platforms - measured)
        answer["next"] = (
            "overview with part lists names; find with conditions gives rows; provenance gives the"
            " printed cell"
        )
    for name, value in parts.items():
        if part == name and name in SQL_PARTS:  # the table relations has the others
            answer[SQL_PARTS[name]] = {key: _cut_sentence(text) for key, text in value.items()}
        elif part in (name, "all"):
            answer[SQL_PARTS.get(name, name)] = value
    answer["citation"] = f"{cited}. Each answer about results cites their sources."
    return answer


def _cut_sentence(text: str) -> str:
    """Return the first sentence of a description."""
    return text.partition(". ")[0].removesuffix(".")


def find(
    record: Record,
    figure: str | None = None,
    order: str | None = None,
    chips_basis: str | None = None,
    limit: int | None = None,
    max_latency_ms: float | None = None,
    **conditions: Any,
) -> Answer:
    """Find usable results by conditions, ranked by a figure where `order` is stated.

    An order that is a figure ranks by it, the best first. `max_latency_ms` keeps the rows that
    print a latency up to it.
    """
    figure = _find_ranked_figure(figure, order)
    selection = select_rows(record, conditions)
    assumed = list(selection.assumed)
    names = ALL_FIGURES if figure is None else (figure,)
    if max_latency_ms is not None:
        selection = keep_within_latency(record, selection, max_latency_ms)
        names = (*names, "latency_ms")
    rows = selection.rows
    counts: Answer = {}
    if figure is not None:
        rows = require_figure(record, selection, figure)
        counts["rows_without_this_figure"] = len(selection.rows) - len(rows)
    if order is None:
        rows = sorted(
            rows, key=lambda row: (str(row["published_on"] or ""), row["result_id"]), reverse=True
        )
        counts["measured_by"] = _count_parties(rows)
    elif figure is None:
        printed = [name for name in FIGURES if any(row[name] is not None for row in rows)]
        step = f"state figure to rank by: these rows print {', '.join(printed)}"
        raise RefusalError("wrong-input", "order needs figure", step)
    else:
        with_sparse = "sparsity" in conditions
        ranking = rank_rows(
            record.connection, rows, figure, order, chips_basis, with_sparse=with_sparse
        )
        rows = ranking.rows
        chips_basis = ranking.basis
        assumed += ranking.assumed
        counts["not_ranked"] = ranking.not_ranked
    is_cut = record.is_brief and limit is None
    shown = rows[: _limit(record, limit)]
    if is_cut and order is not None:
        shown = rows[:MAX_RANKED]
    elif is_cut and len(rows) > MAX_BRIEF:
        shown = rows[:MAX_UNRANKED]
    ids = [row["result_id"] for row in shown]
    results, citation = record.load(ids, names, cited=1 if is_cut else None)
    if figure is not None and order is not None and is_divided(figure, chips_basis):
        for row, result in zip(shown, results, strict=True):
            result["figures"][figure]["per_chip"] = get_share(row, figure, chips_basis)
    answer = {
        "rows_that_fit": len(rows),
        "assumed": assumed,
        **counts,
        "left_out": selection.left_out,
        "results": results,
        "citation": citation,
    }
    if record.is_brief:
        answer["rows_without_this_figure"] = None
        answer["left_out"] = selection.left_out_doubtful
    return _write_later_rows(answer, shown) if is_cut else answer


def _find_ranked_figure(figure: str | None, order: str | None) -> str | None:
    """Return the figure to rank by, which an order may name."""
    if order not in FIGURES:
        return figure
    if figure not in (None, order):
        raise RefusalError("wrong-input", f"figure is {figure}, and order {order}")
    return order


def _write_later_rows(answer: Answer, rows: Sequence[Row]) -> Answer:
    """Write the rows after the first as lines."""
    first, *later = answer["results"]
    lines = []
    for row, result in zip(rows[1:], later, strict=True):
        is_other = row["publisher"] != rows[0]["publisher"]
        lines.append(write_line(result, first, row["publisher"] if is_other else ""))
    return {**answer, "results": [first], "then": lines}


def _count_parties(rows: Sequence[Row]) -> dict[str, int]:
    """Count the rows of each publisher, of official ones of each submitter, the most first; none
    where there is one.
    """
    counts = Counter(row["submitter"] or row["publisher"] or NOT_STATED for row in rows)
    if len(counts) == 1:
        return {}
    shown = dict(counts.most_common(MAX_PARTIES))
    others = len(counts) - len(shown)
    if others:
        shown[f"{others} others"] = len(rows) - sum(shown.values())
    return shown


def _limit(record: Record, stated: int | None) -> int:
    return stated or (MAX_BRIEF if record.is_brief else DEFAULT_RESULTS)


def provenance(record: Record, result_id: str) -> Answer:
    """Say where each figure of a result or microbenchmark was printed."""
    # get_row refuses a microbenchmark, which has a provenance
    row = record.sources.get(result_id) or record.get_row(result_id)
    results, citation = record.load([result_id], ())
    cells = record.query("serve/printed.sql", result_id=result_id)
    kept = cells
    if record.is_brief:
        kept = [shorten_cell(cell) for cell in cells if cell["column_name"] in PRINTED]
    return {
        "figures": to_json_value(kept),
        "cells_left_out": len(cells) - len(kept),
        "not_printed": list_not_printed(row),
        "results": results,
        "citation": citation,
    }


def claims(
    record: Record,
    text: str = "",
    model: str | None = None,
    limit: int | None = None,
    **stated: str,
) -> Answer:
    """List claims of documents with their verdicts; `stated` are columns of them."""
    rows = record.query("serve/claims.sql")
    if model is not None:
        stated["model_printed"] = model
    rows, assumed = _keep_claims(rows, stated)
    words = _split_words(text)
    fitting = []
    for row in rows:
        known_words = _split_words(f"{row['claim']} {row['figure']} {row['subject']}")
        if all(_begins_any(word, known_words) for word in words):
            fitting.append(row)
    if not fitting:
        raise _refuse_claims(rows, text)
    shown = fitting[: _limit(record, limit)]
    if record.is_brief and limit is None and len(fitting) > MAX_BRIEF:
        shown = fitting[:MAX_RANKED]
    cited = shown[:1] if record.is_brief else shown
    sources = list(dict.fromkeys(row["source"] for row in cited))
    if record.is_brief:
        citation = f"{TITLE.sub('', sources[0])}. {describe_dataset_briefly(record.shown_version)}"
    else:
        citation = "\n".join([*sources, f"In: {NAME}, {record.shown_version}."])
    return {
        "assumed": assumed,
        "rows_that_fit": len(fitting),
        "claims": describe_claims(shown, is_brief=record.is_brief),
        "citation": citation,
    }


def _keep_claims(
    rows: Sequence[Answer], stated: Mapping[str, str]
) -> tuple[list[Answer], list[str]]:
    """Keep the claims that have the stated words, and say which models a part of a name means.

    Raises RefusalError that names all words that no claim has.
    """
    kept = list(rows)
    assumed = []
    refusals = []
    for name in ("claim_id", "verdict", "document_id", "model_printed"):
        if name not in stated:
            continue
        word = stated[name]
        known = {row[name] for row in rows if row[name]}
        meant = {other for other in known if normalise_name(other) == normalise_name(word)}
        if not meant and name == "model_printed":
            meant = {other for other in known if name_part(word, other)}
            assumed.append(f"model {word}: {list_named(meant)}")
        if not meant:
            reason = f"no claim has {name} {word!r}"
            refusals.append(RefusalError("unknown-word", reason, suggest(word, known)))
        kept = [row for row in kept if row[name] in meant]
    if refusals:
        raise join_refusals(refusals)
    return kept, assumed


def _split_words(text: str) -> list[str]:
    """Split a text into its words and numbers, without case, signs and spaces before them."""
    return WORD.findall(PERCENT.sub("%", text.casefold()))


def _begins_any(word: str, others: Sequence[str]) -> bool:
    """Return whether a number is one of some words, or a word begins one of them."""
    if word.rstrip("%").replace(".", "").isdigit():
        return any(word == other.rstrip("x") for other in others)
    return any(other.startswith(word) for other in others)


def _refuse_claims(rows: Sequence[Row], text: str) -> RefusalError:
    """Refuse a text that no claim has; say how many claims have each of its words."""
    counts = []
    for word in _split_words(text):
        found = 0
        for row in rows:
            words = _split_words(f"{row['claim']} {row['figure']} {row['subject']}")
            found += _begins_any(word, words)
        counts.append(f"{word} {found}")
    reason = "no claim fits"
    if text and rows:
        reason = f"no claim has all words of text; claims with each: {', '.join(counts)}"
    step = "state fewer words; claims with limit 150 and no other argument lists all"
    return RefusalError("no-match", reason, step)


def expect(record: Record, result_id: str) -> Answer:
    """Say what a third party will measure where a maker printed a figure."""
    row = record.get_row(result_id)
    with record.connection.cursor() as cursor:
        answers = expect_rows(cursor, f"result_id = {quote(result_id)}")
    if not answers:
        who = f"{result_id} ({row['relationship'] or 'publisher unknown'}, {row['origin']})"
        reason = f"{who} has not been printed by a maker of chips; only such figures have an answer"
        raise RefusalError("no-pairs", reason)
    expected = answers[result_id]
    if isinstance(expected, str):
        raise RefusalError("no-pairs", f"{result_id}: {expected}")
    pairs = list(expected.nearest)
    if record.is_brief:
        pairs = [{name: pair[name] for name in SHOWN["pair"]} for pair in pairs[:MAX_BRIEF]]
    others = [pair["second_result_id"] for pair in pairs]
    citable = [other for other in others if other in record.sources]
    citation = record.cite([result_id, *citable])
    return {**expected.to_record(), "nearest": pairs, "citation": citation}


TOOLS: Mapping[str, Callable[..., Answer]] = {
    "overview": overview,
    "find": find,
    "provenance": provenance,
    "compare": compare_two,
    "compare_run": compare_run,
    "claims": claims,
    "check_claimed_figure": check_claimed_figure,
    "expect": expect,
    "sql": run_sql,
}


class RecordOpener:
    """Opens the record at the first call: a client that starts all its servers calls few."""

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse
        self._lock = threading.Lock()  # a client may call two tools at once
        self._record: Record | None = None

    def open(self) -> Record:
        """Return the record. Raises WarehouseError."""
        with self._lock:
            if self._record is None:
                self._record = open_record(self._warehouse)
            return self._record


def serve(warehouse: Path) -> None:
    """Serve until stdin ends. Raises WarehouseError for a folder without a dataset."""
    read_build_id(warehouse)
    worker = SqlWorker(warehouse)

    def end(*_: object) -> None:
        worker.kill()
        os.write(sys.stderr.fileno(), b"error: interrupted\n")
        # there is nothing to clean up, and the thread that reads stdin cannot be stopped
        os._exit(1)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        anyio.run(_serve, _build_server(RecordOpener(warehouse), worker))
    finally:
        worker.stop()


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def build_schema(name: str) -> Answer:
    """Return the JSON Schema of a tool's arguments."""
    tool = WORDS["tools"][name]
    conditions = WORDS["conditions"] if tool.get("has_conditions") else {}
    arguments = {**conditions, **tool.get("arguments", {})}
    if name != "overview":
        arguments["detail"] = WORDS["detail"]
    return {
        "type": "object",
        "properties": arguments,
        "required": tool.get("required", []),
        "additionalProperties": False,
    }


def _build_server(opener: RecordOpener, worker: SqlWorker) -> Server[Any]:
    # a client may call such tools without asking its user
    hints = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, open_world_hint=False
    )
    tools = [
        types.Tool(
            name=name,
            description=WORDS["tools"][name]["description"],
            input_schema=build_schema(name),
            annotations=hints,
        )
        for name in TOOLS
    ]

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        cancelled = threading.Event()
        arguments = params.arguments or {}
        task = partial(_open_and_answer, opener, worker, params.name, arguments, cancelled)
        try:
            result = await anyio.to_thread.run_sync(task, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            worker.cancel(cancelled)
            raise
        # as text alone: every client reads it, and with structured content an agent reads all twice
        text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            is_error=result["status"] != "answered",
        )

    return Server(
        NAME,
        version=read_version(),
        instructions=WORDS["instructions"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _open_and_answer(
    opener: RecordOpener,
    worker: SqlWorker,
    name: str,
    arguments: Answer,
    cancelled: threading.Event,
) -> Answer:
    try:
        record = opener.open()
    except IpuResultsError as error:
        return RefusalError("rebuilt", str(error)).to_answer()
    return answer(record, worker, name, arguments, cancelled)


def answer(
    record: Record,
    worker: SqlWorker,
    name: str,
    arguments: Answer,
    cancelled: threading.Event | None = None,
) -> Answer:
    """Answer one call, or return why it is refused.

    An argument that is null counts as not stated.
    """
    try:
        stated = _check_arguments(name, arguments)
        is_brief = stated.pop("detail", "brief") == "brief"
        if name == "sql":
            stated |= {"worker": worker, "cancelled": cancelled}
        result = TOOLS[name](record.brief if is_brief else record, **stated)
    except RefusalError as error:
        return error.to_answer()
    except IpuResultsError as error:
        code = "rebuilt" if is_damage(error) else "wrong-input"
        return RefusalError(code, str(error)).to_answer()
    if is_brief and name not in ("overview", "sql"):  # where null is a value
        short = {key: drop_empty(value) for key, value in result.items()}
        required = WORDS["returns"][name]
        result = {key: value for key, value in short.items() if value or key in required}
    return {"status": "answered", **result}


def _check_arguments(name: str, arguments: Answer) -> Answer:
    """Return the arguments that are stated. Raises RefusalError for a wrong one."""
    if name not in TOOLS:
        raise RefusalError("wrong-input", f"unknown tool {name[:MAX_NAME]!r}")
    stated: Answer = {}
    for key, value in arguments.items():
        if isinstance(value, float) and value.is_integer():  # JSON does not tell 4.0 from 4
            stated[key] = int(value)
        elif value is not None:
            stated[key] = value
    schema = build_schema(name)
    problems = _name_unknown_arguments(stated, schema["properties"])
    validator = jsonschema.Draft202012Validator({**schema, "additionalProperties": True})
    for problem in sorted(validator.iter_errors(stated), key=str):
        where = "".join(f"{part}: " for part in problem.absolute_path)
        problems.append(f"{where}{problem.message[:MAX_PROBLEM]}")
    if problems:
        raise RefusalError("wrong-input", "; ".join(problems))
    return stated


def _name_unknown_arguments(stated: Answer, known: Answer) -> list[str]:
    """Name the arguments that a tool does not have, each with the nearest that it has."""
    problems = []
    for name in stated:
        if name not in known:
            meant = WORDS["synonyms"].get(name)
            near = [meant] if meant in known else find_nearest_words(name, list(known), NEAREST)
            hint = f", nearest: {', '.join(near)}" if near else ""
            problems.append(f"no argument {name[:MAX_NAME]!r}{hint}")
    return problems
