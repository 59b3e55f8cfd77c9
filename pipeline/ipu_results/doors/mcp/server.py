"""The tools that a program can call: each takes the record and checked arguments, and returns an
answer.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from ipu_results.doors.cite.citation import describe_dataset
from ipu_results.doors.cite.facts import FIGURES as FIGURE_COLUMNS
from ipu_results.doors.comparison.expect import expect_rows
from ipu_results.doors.comparison.statements import Row
from ipu_results.doors.mcp.answers import (
    ALL_FIGURES,
    FIGURES,
    ORIGINS,
    Record,
    get_unit,
    list_not_printed,
    open_record,
)
from ipu_results.doors.mcp.brief import (
    MAX_BRIEF,
    SHOWN,
    drop_empty,
    shorten_cell,
    write_line,
)
from ipu_results.doors.mcp.claimed import check_claimed_figure
from ipu_results.doors.mcp.claims import claims
from ipu_results.doors.mcp.names import NEAREST, NOT_STATED
from ipu_results.doors.mcp.pairs import compare_run, compare_two
from ipu_results.doors.mcp.ranking import Ranking, rank_rows
from ipu_results.doors.mcp.refusal import CODES, WORDS, Answer, RefusalError
from ipu_results.doors.mcp.rows import get_column, list_values, pick
from ipu_results.doors.mcp.selection import (
    keep_within_latency,
    list_printed,
    require_figure,
    select_rows,
)
from ipu_results.doors.mcp.sql import run_sql
from ipu_results.doors.mcp.worker import SqlWorker, is_damage
from ipu_results.errors import IpuResultsError
from ipu_results.kit.files import read_version
from ipu_results.kit.text import find_nearest_words, to_json_value
from ipu_results.record.store.query import read_build_id
from ipu_results.schema import TABLES, VIEWS, quote
from ipu_results.schema.usable import describe_unusable

DEFAULT_RESULTS = 10
# Rows of a brief answer that does not show all: the second best is of interest, and the second
# newest is not.
NEWEST_SHOWN = 1
BEST_SHOWN = 2
# the keys of these parts in an answer
SQL_PARTS = {"tables": "tables_for_sql", "views": "views_for_sql"}
NULL_IS_A_VALUE = ("overview", "sql")  # the tools in whose answers it is
MAX_PARTIES = 3
MAX_NAME = 200  # characters that are repeated of an unknown name
MAX_PROBLEM = 300  # and of what is wrong with an argument


def overview(record: Record, part: str = "summary") -> Answer:
    """Describe the record: a summary that names its parts, one of them, or all."""
    platforms = list_values(record.rows, "platform")
    unofficial = [row for row in record.rows if row["relationship"] != "official"]
    named = list_values(unofficial, "platform")
    cited = describe_dataset(record.shown_version)
    parts: Answer = {
        "models": sorted(list_values(record.rows, "model")),
        "platforms": sorted(named),
        "tables": {table.sql_name: table.description for table in TABLES},
        "views": {view.sql_name: view.description for view in VIEWS},
        "refusal_codes": CODES,
        "rules": WORDS["instructions"],
    }
    answer: Answer = {"dataset": cited}
    if part in ("summary", "all"):
        counts = record.query("serve/counts.sql")
        answer["results"] = {
            "columns": list(counts[0]) if counts else [],
            "rows": [list(row.values()) for row in counts],
        }
        answer["origins"] = ORIGINS
        answer["figures"] = {name: get_unit(name) for name in FIGURES}
        answer["parts"] = {name: len(value) for name, value in parts.items() if name != "rules"}
        answer["not_usable"] = describe_unusable(get_column(record.rows, "unusable"))
        answer["platforms_with_official_entries_only"] = len(platforms) - len(named)
        answer["next"] = (
            "overview with part lists names; find with conditions gives rows; provenance gives the"
            " printed cell"
        )
    if part in SQL_PARTS:
        # the first sentence of each: a table of the record, relations, has the others
        for name, text in parts[part].items():
            parts[part][name] = text.split(". ")[0].removesuffix(".")
    for name, value in parts.items():
        if part in (name, "all"):
            answer[SQL_PARTS.get(name, name)] = value
    answer["citation"] = f"{cited}. Each answer about results cites their sources."
    return answer


def find(
    record: Record,
    figure: str | None = None,
    order: str | None = None,
    chips_basis: str | None = None,
    limit: int | None = None,
    max_latency_ms: float | None = None,
    **conditions: Any,
) -> Answer:
    """Find usable results by conditions.

    With `order` they are ranked by a figure; an order that is a figure ranks by it, the best first.
    `max_latency_ms` keeps the rows that print a latency up to it.
    """
    figure = _find_ranked_figure(figure, order)
    selection = select_rows(record, conditions)
    shown_figures = ALL_FIGURES if figure is None else (figure,)
    if max_latency_ms is not None:
        selection = keep_within_latency(record, selection, max_latency_ms)
        shown_figures = (*shown_figures, "latency_ms")
    rows = selection.rows
    counts: Answer = {}
    if figure is not None:
        rows = require_figure(record, selection, figure)
        if not record.is_brief:
            counts["rows_without_this_figure"] = len(selection.rows) - len(rows)
    if order is None:
        ranking = Ranking(sorted(rows, key=_get_day_and_id, reverse=True))
        counts["measured_by"] = _count_parties(ranking.rows)
    elif figure is None:
        step = f"state figure to rank by: {list_printed(rows)}"
        raise RefusalError("wrong-input", "order needs figure", step)
    else:
        ranking = rank_rows(
            record.connection,
            rows,
            figure,
            order,
            chips_basis,
            with_sparse="sparsity" in conditions,
        )
        counts["not_ranked"] = ranking.not_ranked
    later_as_lines = record.is_brief and limit is None
    if limit is None:
        limit = _count_shown(record, len(ranking.rows), is_ranked=order is not None)
    shown = ranking.rows[:limit]
    cited = 1 if later_as_lines else limit
    results, citation = record.load(shown, shown_figures, cited)
    for result in results:
        if result["result_id"] in ranking.shares:
            result["figures"][figure]["per_chip"] = ranking.shares[result["result_id"]]
    left_out = selection.left_out
    if record.is_brief:
        left_out = selection.left_out_doubtful
    answer = {
        "rows_that_fit": len(ranking.rows),
        "assumed": [*selection.assumed, *ranking.assumed],
        **counts,
        "left_out": left_out,
        "results": results,
        "citation": citation,
    }
    if later_as_lines:
        answer["results"] = results[:1]
        answer["then"] = _write_later_rows(results, shown)
    return answer


def _find_ranked_figure(figure: str | None, order: str | None) -> str | None:
    """Return the figure to rank by, which an order may name."""
    if order not in FIGURES:
        return figure
    if figure not in (None, order):
        raise RefusalError("wrong-input", f"figure is {figure}, and order {order}")
    return order


def _count_shown(record: Record, found: int, *, is_ranked: bool) -> int:
    """Return how many rows an answer shows, unless a limit is stated."""
    if not record.is_brief:
        return DEFAULT_RESULTS
    if is_ranked:
        return BEST_SHOWN
    if found > MAX_BRIEF:
        return NEWEST_SHOWN
    return MAX_BRIEF


def _get_day_and_id(row: Row) -> tuple[str, str]:
    return (str(row["published_on"] or ""), row["result_id"])


def _write_later_rows(results: Sequence[Answer], rows: Sequence[Row]) -> list[str]:
    """Write the rows after the first as lines."""
    lines = []
    for result, row in zip(results[1:], rows[1:], strict=True):
        publisher = "" if row["publisher"] == rows[0]["publisher"] else row["publisher"]
        lines.append(write_line(result, results[0], publisher))
    return lines


def _count_parties(rows: Sequence[Row]) -> dict[str, int]:
    """Count the rows of each submitter or publisher, the most first; empty where all are of one."""
    counts = Counter(row["submitter"] or row["publisher"] or NOT_STATED for row in rows)
    if len(counts) == 1:
        return {}
    shown = dict(counts.most_common(MAX_PARTIES))
    others = len(counts) - len(shown)
    if others:
        shown[f"{others} others"] = len(rows) - sum(shown.values())
    return shown


def provenance(record: Record, result_id: str) -> Answer:
    """Say where each figure of a result or microbenchmark was printed."""
    row = record.get_source(result_id)
    results, citation = record.load([row], ())
    cells = record.query("serve/printed.sql", result_id=result_id)
    kept = cells
    if record.is_brief:
        kept = [shorten_cell(cell) for cell in cells if cell["column_name"] in FIGURE_COLUMNS]
    return {
        "figures": to_json_value(kept),
        "cells_left_out": len(cells) - len(kept),
        "not_printed": list_not_printed(row),
        "results": results,
        "citation": citation,
    }


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
        pairs = [pick(pair, SHOWN["pair"]) for pair in pairs[:MAX_BRIEF]]
    cited = [result_id, *get_column(pairs, "second_result_id")]
    citation = record.cite([each for each in cited if each in record.sources])
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
        anyio.run(_serve, _build_server(warehouse, worker))
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
    if name != "overview":  # which has part instead
        arguments["detail"] = WORDS["detail"]
    return {
        "type": "object",
        "properties": arguments,
        "required": tool.get("required", []),
        "additionalProperties": False,
    }


def _build_server(warehouse: Path, worker: SqlWorker) -> Server[Any]:
    lock = threading.Lock()  # a client may call two tools at once
    # at the first call: a client that starts all its servers calls few
    open_once = cache(partial(open_record, warehouse))

    def open_and_answer(name: str, arguments: Answer, cancelled: threading.Event) -> Answer:
        try:
            with lock:
                record = open_once()
        except IpuResultsError as error:
            return RefusalError("rebuilt", str(error)).to_answer()
        return answer(record, worker, name, arguments, cancelled)

    # a client may call such tools without asking its user
    hints = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, open_world_hint=False
    )
    tools = []
    for name in TOOLS:
        tool = types.Tool(
            name=name,
            description=WORDS["tools"][name]["description"],
            input_schema=build_schema(name),
            annotations=hints,
        )
        tools.append(tool)

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        cancelled = threading.Event()
        arguments = params.arguments or {}
        task = partial(open_and_answer, params.name, arguments, cancelled)
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
        "ipu-results",
        version=read_version(),
        instructions=WORDS["instructions"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


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
        if is_brief:
            record = record.brief
        result = TOOLS[name](record, **stated)
    except RefusalError as error:
        return error.to_answer()
    except IpuResultsError as error:
        code = "wrong-input"
        if is_damage(error):
            code = "rebuilt"  # which asks to build the dataset again
        return RefusalError(code, str(error)).to_answer()
    if is_brief and name not in NULL_IS_A_VALUE:
        result = _drop_empty_parts(result, WORDS["returns"][name])
    return {"status": "answered", **result}


def _drop_empty_parts(whole: Answer, required: Collection[str]) -> Answer:
    """Leave out what is null, empty or zero, but not what every answer of a tool has."""
    short = {}
    for name, value in whole.items():
        kept = drop_empty(value)
        if kept or name in required:
            short[name] = kept
    return short


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
    del schema["additionalProperties"]  # the unknown ones are named
    validator = jsonschema.Draft202012Validator(schema)
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
        if name in known:
            continue
        near = find_nearest_words(name, list(known), NEAREST)
        synonym = WORDS["synonyms"].get(name)
        if synonym in known:
            near = [synonym]
        hint = f", nearest: {', '.join(near)}" if near else ""
        problems.append(f"no argument {name[:MAX_NAME]!r}{hint}")
    return problems
