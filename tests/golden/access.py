"""The only place of the goldens that knows how the package is made: adapt this file when modules
are renamed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from click import Context, Group
from click.testing import CliRunner
from ipu_results.doors.cli import main
from ipu_results.errors import DocumentError
from ipu_results.record.normalise import normalise
from ipu_results.record.read.dispatch import read_document
from ipu_results.schema.vocabulary import load_vocabulary

from benchmarks.documents.comparison import DOCUMENTS, SEED
from benchmarks.documents.judge import _make_document as describe_document
from benchmarks.documents.recipes import build_document, draw_recipe

CELL = ("column_name", "header", "raw_text", "value", "unit", "factor", "locator")
ROOT = Path(__file__).resolve().parents[2]


def run_cli(*args: str) -> str:
    """Run the command in this process; return its exit status, stdout and stderr as one text."""
    done = CliRunner().invoke(main, list(args), prog_name="ipu-results")
    parts = [f"exit {done.exit_code}", done.stdout]
    if done.stderr:
        parts += ["--- stderr", done.stderr]
    # with --debug, for a traceback
    if done.exception and not isinstance(done.exception, SystemExit):
        parts.append(f"{type(done.exception).__name__}: {done.exception}")
    return "\n".join(part.rstrip("\n") for part in parts)


def list_commands(
    group: Any = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield every command and subcommand with its options."""
    options: list[str] = []
    for parameter in group.params:
        names = (*parameter.opts, *parameter.secondary_opts)
        options += [name for name in names if name.startswith("-")]
    yield path, sorted(options)
    if isinstance(group, Group):
        context = Context(group)
        for name in group.list_commands(context):
            yield from list_commands(group.get_command(context, name), (*path, name))


def read_generated(every: int) -> Iterator[tuple[str, str]]:
    """Read each n-th of the generated documents; yield a name that holds the digest of the input,
    and a text.
    """
    random = Random(SEED)
    for number in range(DOCUMENTS):
        recipe = draw_recipe(random)
        if number % every == 0:
            data, tables = build_document(recipe)
            digest = sha256(data).hexdigest()[:12]
            name = f"{number:04} {recipe.dialect} {digest}"
            yield name, read_bytes(data, tables[0].header.reader)


def read_bytes(data: bytes, kind: str) -> str:
    """Read a document as `ingest` does: its tables, problems, cells and quarantined rows as JSON,
    or its refusal.
    """
    vocabulary = load_vocabulary()
    try:
        parsed = read_document(data, vocabulary.table_headers, kind)
    except DocumentError as error:
        return f"refused, {type(error).__name__}: {error}"
    rows = normalise(describe_document(kind), parsed, vocabulary)
    content: dict[str, list[Any]] = {"tables": [], "problems": [], "cells": [], "quarantine": []}
    for table in parsed.tables:
        cells = [row.cells for row in table.rows]
        content["tables"].append([table.name, *table.columns, *cells])
    for cell in rows.cells.to_pylist():
        content["cells"].append([cell[name] for name in CELL])
    for name, problems in (("problems", parsed.problems), ("quarantine", rows.rejected)):
        for own in problems:
            content[name].append([own.table_name, own.row_number, own.reason, own.message])
    return json.dumps(content, ensure_ascii=False, indent=1, default=str)


async def _ask_all(
    warehouse: str, calls: Sequence[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    from mcp import Client  # noqa: PLC0415  (an extra)
    from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415

    args = ["-m", "ipu_results", "mcp", "--warehouse", warehouse]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "pipeline")}
    answers = []
    async with Client(StdioServerParameters(command=sys.executable, args=args, env=env)) as client:
        listed = await client.list_tools()
        for call in calls:
            result = await client.call_tool(call["tool"], call["arguments"])
            answers.append(json.loads(result.content[0].text))
    return [tool.model_dump(mode="json") for tool in listed.tools], answers


def ask_all(warehouse: str, calls: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Ask the MCP server over its stdin and stdout; return the tools that it lists, and the
    answers.
    """
    return asyncio.run(_ask_all(warehouse, calls))
