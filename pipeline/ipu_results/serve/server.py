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
from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Required,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import anyio
import jsonschema
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from pydantic import Field, TypeAdapter

from ipu_results.comparison.expect import expect_rows
from ipu_results.errors import IpuResultsError
from ipu_results.ground.files import read_version
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import to_json_value
from ipu_results.schema import TABLES, VIEWS, quote
from ipu_results.schema.usable import describe_unusable
from ipu_results.serve import CODES, NEXT_STEPS, WORDS, RefusalError
from ipu_results.serve.answers import (
    ALL_FIGURES,
    FIGURES,
    MAX_WORD,
    ORIGINS,
    Conditions,
    Figure,
    LatencyBasis,
    Record,
    Word,
    get_unit,
    list_not_printed,
    open_record,
    require_figure,
    select_rows,
    suggest,
)
from ipu_results.serve.brief import (
    MAX_BRIEF,
    describe_claim,
    drop_empty,
    shorten_cell,
    shorten_pair,
)
from ipu_results.serve.cite import describe_dataset
from ipu_results.serve.facts import FIGURES as PRINTED
from ipu_results.serve.pairs import check_claimed_figure, compare_run, compare_two
from ipu_results.serve.ranking import DIVISIBLE, PER_CHIP, SAME, ChipsBasis, get_share, rank_rows
from ipu_results.serve.sql import DEFAULT_ROWS, MAX_ROWS, SqlWorker, is_damage, run_sql

DEFAULT_RESULTS = 10
SQL_PARTS = {"tables": "tables_for_sql", "views": "views_for_sql"}
MAX_CELLS = 60
MAX_STATEMENT = 20_000  # characters
CLAIMS = """
    SELECT c.*, d.publisher, d.title, d.url, d.published_on
    FROM claims c
    JOIN documents d USING (document_id)
    ORDER BY document_id, claim_id
"""


Detail = Literal["brief", "whole"]
Order = Literal["highest", "lowest", Figure]
Part = Literal["summary", "models", "platforms", "tables", "views", "refusal_codes", "rules", "all"]


def overview(record: Record, part: Part = "summary") -> dict[str, Any]:
    """Describe the record: a summary that names its parts, one of them, or all."""
    platforms = {row["platform"] for row in record.rows if row["relationship"] != "official"}
    counts = Counter((row["relationship"], row["origin"], row["task"]) for row in record.rows)
    cited = describe_dataset(record.version)
    parts: dict[str, Any] = {
        "models": sorted({row["model"] for row in record.rows}),
        "platforms": sorted(platforms),
        "tables": {published.sql_name: published.description for published in TABLES},
        "views": {view.sql_name: view.description for view in VIEWS},
        "refusal_codes": CODES,
        "rules": WORDS["instructions"],
    }
    shown = {
        SQL_PARTS.get(name, name): value for name, value in parts.items() if part in (name, "all")
    }
    summary = {
        "results": [
            {"relationship": who, "origin": how, "task": task, "results": count}
            for (who, how, task), count in sorted(counts.items(), key=str)
        ],
        "origins": ORIGINS,
        "figures": {name: get_unit(name, {"item": None}) for name in FIGURES},
        "parts": {name: len(value) for name, value in parts.items() if name != "rules"},
        "not_usable": describe_unusable(record.rows),
        "platforms_with_official_entries_only": len(
            {row["platform"] for row in record.rows} - platforms
        ),
        "next": (
            "overview with part lists names; find with conditions gives rows; provenance gives the"
            " printed cell"
        ),
    }
    return {
        "dataset": cited,
        **(summary if part in ("summary", "all") else {}),
        **shown,
        "citation": f"{cited}. Each answer about results cites their sources.",
    }


def find(
    record: Record,
    model: Word | None = None,
    figure: Figure | None = None,
    latency_basis: LatencyBasis | None = None,
    order: Order | None = None,
    chips_basis: ChipsBasis = SAME,
    limit: Annotated[int, Field(ge=1, le=50)] | None = None,
    **conditions: Unpack[Conditions],
) -> dict[str, Any]:
    """Find usable results by conditions, ranked by a figure where `order` is stated.

    An order that is a figure ranks by it, the best first.
    """
    column: str | None = figure
    if order in FIGURES:
        column = figure or order
        if column != order:
            raise RefusalError("wrong-input", f"figure is {figure}, and order {order}")
    selection = select_rows(record, {**conditions, "model": model, "latency_basis": latency_basis})
    rows = selection.rows if column is None else require_figure(record, selection, column)
    counts: dict[str, Any] = (
        {"rows_without_this_figure": len(selection.rows) - len(rows)} if column else {}
    )
    if order is None:
        rows = sorted(
            rows, key=lambda row: (str(row["published_on"] or ""), row["result_id"]), reverse=True
        )
    elif column is None:
        raise RefusalError("wrong-input", "order needs figure", "state which figure to rank by")
    else:
        with_sparse = "sparsity" in conditions
        rows, not_ranked = rank_rows(
            record.connection, rows, column, order, chips_basis, with_sparse=with_sparse
        )
        counts["not_ranked"] = not_ranked
    shown = rows[: limit or (MAX_BRIEF if record.is_brief else DEFAULT_RESULTS)]
    results, citation = record.load(
        [row["result_id"] for row in shown], (column,) if column else ALL_FIGURES
    )
    if column in DIVISIBLE and order is not None and chips_basis == PER_CHIP:
        for row, result in zip(shown, results, strict=True):
            result["figures"][column]["per_chip"] = get_share(row, column, chips_basis)
    return {
        "rows_that_fit": len(rows),
        "rows_shown": len(shown),
        **counts,
        "left_out": selection.left_out,
        "results": results,
        "citation": citation,
    }


def provenance(record: Record, result_id: Word) -> dict[str, Any]:
    """Say where each figure of a result or microbenchmark was printed."""
    row = record.sources.get(result_id) or record.get_row(result_id)
    results, citation = record.load([row["result_id"]], ())
    columns = (
        "column_name",
        "header",
        "raw_text",
        "value",
        "unit",
        "factor",
        "document_id",
        "title",
        "source_url",
        "source_locator",
        "locator",
        "locator_in",
    )
    where = f"result_id = {quote(row['result_id'])} ORDER BY cell_number LIMIT {MAX_CELLS}"
    with record.connection.cursor() as cursor:
        cells = run_query(
            cursor, f"SELECT {', '.join(columns)} FROM provenance WHERE {where}"
        ).to_pylist()
    kept = (
        [shorten_cell(cell) for cell in cells if cell["column_name"] in PRINTED]
        if record.is_brief
        else cells
    )
    return {
        "figures": [{name: to_json_value(value) for name, value in cell.items()} for cell in kept],
        "cells_left_out": len(cells) - len(kept),
        "not_printed": list_not_printed(row),
        "results": results,
        "citation": citation,
    }


def claims(
    record: Record,
    text: Word | None = None,
    claim_id: Word | None = None,
    model: Word | None = None,
    verdict: Word | None = None,
    document_id: Word | None = None,
    limit: Annotated[int, Field(ge=1, le=150)] | None = None,
) -> dict[str, Any]:
    """List claims of documents with their verdicts."""
    with record.connection.cursor() as cursor:
        rows = run_query(cursor, CLAIMS).to_pylist()
    stated = {
        "claim_id": claim_id,
        "verdict": verdict,
        "document_id": document_id,
        "model_printed": model,
    }
    for name, value in stated.items():
        if value is not None:
            known = {row[name] for row in rows if row[name]}
            if value not in known:
                raise RefusalError(
                    "unknown-word", f"no claim has {name} {value!r}", suggest(value, known)
                )
            rows = [row for row in rows if row[name] == value]
    if text:
        rows = [
            row
            for row in rows
            if text.casefold() in f"{row['claim']} {row['figure']} {row['subject']}".casefold()
        ]
    if not rows:
        raise RefusalError(
            "no-match", "no claim fits", "claims with limit 150 and no other argument lists all"
        )
    shown = rows[: limit or (MAX_BRIEF if record.is_brief else DEFAULT_RESULTS)]
    citations: dict[str, None] = {}  # each once
    for row in shown:
        day = str(row["published_on"] or "day not known")
        parts = (row["publisher"], f"“{row['title']}”", day, row["url"], row["place"])
        citations[", ".join(filter(None, parts))] = None
    return {
        "rows_that_fit": len(rows),
        "rows_shown": len(shown),
        "claims": [describe_claim(row, is_brief=record.is_brief) for row in shown],
        "citation": "\n".join([*citations, f"In: {NAME}, {record.version}."]),
    }


def expect(record: Record, result_id: Word) -> dict[str, Any]:
    """Say what a third party will measure where a maker printed a figure."""
    row = record.get_row(result_id)
    with record.connection.cursor() as cursor:
        answers = expect_rows(cursor, f"result_id = {quote(row['result_id'])}")
    if not answers:
        who = f"{result_id} ({row['relationship'] or 'publisher unknown'}, {row['origin']})"
        reason = f"{who} has not been printed by a maker of chips; only such figures have an answer"
        raise RefusalError("no-pairs", reason)
    answer = answers[row["result_id"]]
    if isinstance(answer, str):
        raise RefusalError("no-pairs", f"{result_id}: {answer}")
    pairs = (
        [shorten_pair(pair) for pair in answer.nearest[:MAX_BRIEF]]
        if record.is_brief
        else list(answer.nearest)
    )
    others = [
        pair["second_result_id"] for pair in pairs if pair["second_result_id"] in record.sources
    ]
    return {
        **answer.to_record(),
        "nearest": pairs,
        "citation": record.cite([row["result_id"], *others]),
    }


def sql(
    record: Record,
    worker: SqlWorker,
    cancelled: threading.Event | None,
    statement: Annotated[str, Field(max_length=MAX_STATEMENT)],
    max_rows: Annotated[int, Field(ge=1, le=MAX_ROWS)] = DEFAULT_ROWS,
) -> dict[str, Any]:
    """Run one reading statement."""
    return run_sql(record, worker, statement, max_rows, cancelled)


TOOLS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "overview": overview,
    "find": find,
    "provenance": provenance,
    "compare": compare_two,
    "compare_run": compare_run,
    "claims": claims,
    "check_claimed_figure": check_claimed_figure,
    "expect": expect,
    "sql": sql,
}
# of the server, and no arguments of a call
OWN = frozenset({"record", "worker", "cancelled", "return"})


NAME = "ipu-results"
MAX_PROBLEM = 300


def serve(warehouse: Path) -> None:
    """Serve until stdin ends. Raises WarehouseError for a folder without a dataset."""
    record = open_record(warehouse)
    worker = SqlWorker(record)

    def end(*_: Any) -> None:
        worker.kill()
        os.write(sys.stderr.fileno(), b"error: interrupted\n")
        # there is nothing to clean up, and the thread that reads stdin cannot be stopped
        os._exit(1)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        anyio.run(_serve, _build_server(record, worker))
    finally:
        worker.stop()


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def build_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, from the types of its function and the words of
    tools.toml.
    """
    words = WORDS["tools"][name].get("arguments", {})
    parameters = signature(TOOLS[name]).parameters
    kinds: dict[str, Any] = {}
    for key, kind in get_type_hints(TOOLS[name], include_extras=True).items():
        if get_origin(kind) is Unpack:
            (named,) = get_args(kind)
            kinds = get_type_hints(named, include_extras=True) | kinds
            words = WORDS["conditions"] | words if named is Conditions else words
        elif key not in OWN:
            kinds[key] = Required[kind] if parameters[key].default is Parameter.empty else kind
    if name != "overview":
        kinds["detail"] = Detail
        words = {"detail": WORDS["detail"], **words}
    return {
        "type": "object",
        "properties": {key: _build_argument(kind, words.get(key)) for key, kind in kinds.items()},
        "required": [key for key, kind in kinds.items() if get_origin(kind) is Required],
        "additionalProperties": False,
    }


def build_output_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a tool's answer: answered with the keys of tools.toml, or refused
    with a next step.
    """
    refused = ["code", "reason", "next_step"]
    return {
        "type": "object",
        "properties": {
            "status": {"enum": ["answered", "refused"]},
            **{key: {"type": "string"} for key in refused},
        },
        "required": ["status"],
        "oneOf": [
            {"properties": {"status": {"const": "answered"}}, "required": WORDS["returns"][name]},
            {"properties": {"status": {"const": "refused"}}, "required": refused},
        ],
    }


def _build_argument(kind: Any, words: str | None) -> dict[str, Any]:
    """Return the schema of an argument.

    One that is null counts as not stated, so no schema has null.
    """
    own = get_args(kind)[0] if get_origin(kind) in (Required, Union, UnionType) else kind
    schema = TypeAdapter(own).json_schema()
    if get_origin(own) is Literal:
        schema = {"enum": list(get_args(own))}
    return schema | ({"description": words} if words else {})


def _build_server(record: Record, worker: SqlWorker) -> Server[Any]:
    async def list_tools(*_: Any) -> types.ListToolsResult:
        hints = types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, open_world_hint=False
        )
        texts = {name: WORDS["tools"][name]["description"] for name in TOOLS}
        tools = [
            types.Tool(
                name=name,
                description=text,
                input_schema=build_schema(name),
                output_schema=build_output_schema(name),
                annotations=hints,
            )
            for name, text in texts.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        cancelled = threading.Event()
        task = partial(answer, record, worker, params.name, params.arguments or {}, cancelled)
        try:
            result = await anyio.to_thread.run_sync(task, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            worker.cancel(cancelled)
            raise
        text = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
        content: list[Any] = [types.TextContent(type="text", text=text)]
        refused = result["status"] != "answered"
        return types.CallToolResult(content=content, structured_content=result, is_error=refused)

    return Server(
        NAME,
        version=read_version(),
        instructions=WORDS["instructions"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def answer(
    record: Record,
    worker: SqlWorker,
    name: str,
    arguments: Mapping[str, Any],
    cancelled: threading.Event | None = None,
) -> dict[str, Any]:
    """Answer one call, or return why it is refused.

    An argument that is null counts as not stated.
    """
    try:
        if name not in TOOLS:
            raise RefusalError("wrong-input", f"unknown tool {name[:MAX_WORD]!r}")
        stated = {
            # JSON does not tell 4.0 from 4
            key: int(value) if isinstance(value, float) and value.is_integer() else value
            for key, value in arguments.items()
            if value is not None
        }
        if problems := sorted(
            jsonschema.Draft202012Validator(build_schema(name)).iter_errors(stated), key=str
        ):
            where = "".join(f"{part}: " for part in problems[0].absolute_path)
            raise RefusalError("wrong-input", f"{where}{problems[0].message[:MAX_PROBLEM]}")
        source_record = record.brief if stated.pop("detail", "brief") == "brief" else record
        result = TOOLS[name](
            *((source_record, worker, cancelled) if name == "sql" else (source_record,)), **stated
        )
    except RefusalError as error:
        refused = {"code": error.code, "reason": error.reason, "next_step": error.next_step}
        arguments = {"arguments": error.arguments} if error.arguments else {}
        return {"status": "refused", **refused, **arguments}
    except IpuResultsError as error:
        code = "rebuilt" if is_damage(error) else "wrong-input"
        refused = {"code": code, "reason": str(error), "next_step": NEXT_STEPS[code]}
        return {"status": "refused", **refused}
    if source_record.is_brief and name not in ("overview", "sql"):  # where null is a value
        kept = WORDS["returns"][name]
        result = {
            key: own for key, value in result.items() if (own := drop_empty(value)) or key in kept
        }
    return {"status": "answered", **result}
