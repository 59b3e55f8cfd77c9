"""The MCP server on stdin and stdout."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from ipu_results._util.version import read_version
from ipu_results.errors import IpuResultsError
from ipu_results.mcp_server.record import FIGURES, Record, open_record
from ipu_results.mcp_server.refusal import NEXT_STEPS, RefusalError
from ipu_results.mcp_server.sql import SqlWorker, run_sql
from ipu_results.mcp_server.tools import TOOLS, load_descriptions

NAME = "ipu-results"
MAX_WORD = 200  # characters of an argument that is a text
MAX_PROBLEM = 300


def serve(warehouse: Path) -> None:
    """Serve until stdin ends. Raises WarehouseError for a folder without a dataset."""
    record = open_record(warehouse)
    worker = SqlWorker(record)

    def end(*_: Any) -> None:
        worker.kill()
        os.write(sys.stderr.fileno(), b"error: interrupted\n")
        os._exit(1)  # there is nothing to clean up, and the thread that reads stdin cannot be stopped

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
    """Return the JSON Schema of a tool's arguments."""
    own = load_descriptions()["tools"][name]
    arguments = {**own.get("arguments", {}), **(load_descriptions()["conditions"] if own.get("conditions") else {})}
    return {
        "type": "object",
        "properties": {key: _build_argument(argument) for key, argument in arguments.items()},
        "required": own.get("required", []),
        "additionalProperties": False,
    }


def _build_argument(argument: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"maxLength": MAX_WORD, **argument} if "string" in argument.get("type", "") else dict(argument)
    return schema | {"enum": list(FIGURES)} if schema.pop("figures", False) else schema


def _build_server(record: Record, worker: SqlWorker) -> Server[Any]:
    async def list_tools(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe_tool(name) for name in load_descriptions()["tools"]])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        cancelled = threading.Event()
        task = partial(answer, record, worker, params.name, params.arguments or {}, cancelled)
        try:
            result = await anyio.to_thread.run_sync(task, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            worker.cancel(cancelled)
            raise
        text = json.dumps(result, ensure_ascii=False)
        content: list[Any] = [types.TextContent(type="text", text=text)]
        refused = result["status"] != "answered"
        return types.CallToolResult(content=content, structured_content=result, is_error=refused)

    return Server(
        NAME,
        version=read_version(),
        instructions=load_descriptions()["instructions"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _describe_tool(name: str) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
    description = load_descriptions()["tools"][name]["description"]
    return types.Tool(name=name, description=description, input_schema=build_schema(name), annotations=hints)


def answer(
    record: Record,
    worker: SqlWorker,
    name: str,
    arguments: Mapping[str, Any],
    cancelled: threading.Event | None = None,
) -> dict[str, Any]:
    """Answer one call, or return why it is refused. An argument that is null counts as not stated."""
    try:
        if name not in load_descriptions()["tools"]:
            raise RefusalError("wrong-input", f"unknown tool {name[:MAX_WORD]!r}")
        stated = {key: _to_integer(value) for key, value in arguments.items() if value is not None}
        _check(name, stated)
        result = run_sql(record, worker, stated, cancelled) if name == "sql" else TOOLS[name](record, stated)
    except RefusalError as error:
        return {"status": "refused", "code": error.code, "reason": error.reason, "next_step": error.next_step}
    except IpuResultsError as error:
        return {
            "status": "refused",
            "code": "wrong-input",
            "reason": str(error),
            "next_step": NEXT_STEPS["wrong-input"],
        }
    return {"status": "answered", **result}


def _to_integer(value: Any) -> Any:
    """Return a whole number as an integer: JSON does not tell 4.0 from 4."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    problems = sorted(jsonschema.Draft202012Validator(build_schema(name)).iter_errors(arguments), key=str)
    if problems:
        where = "".join(f"{part}: " for part in problems[0].absolute_path)
        raise RefusalError("wrong-input", f"{where}{problems[0].message[:MAX_PROBLEM]}")
