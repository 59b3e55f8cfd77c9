"""The only place of the goldens that knows how the package is made: adapt this file when modules
are renamed.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import ipu_results
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
# The modules of docs/reference/python-api.md and the names that it documents in each
PUBLIC = {
    "ipu_results.add": (
        "AddConfig",
        "SourceDraft",
        "SourcePreview",
        "add_source",
        "preview_source",
    ),
    "ipu_results.build": ("IngestConfig", "IngestSummary", "ingest"),
    "ipu_results.release": ("ReleaseRequest", "diff_releases", "publish", "verify_release"),
    "ipu_results.runner": ("Progress", "SweepConfig", "SweepResult", "resume_sweep", "run_sweep"),
}


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
    yield (
        path,
        sorted(
            name
            for option in group.params
            for name in (*option.opts, *option.secondary_opts)
            if name[0] == "-"
        ),
    )
    if isinstance(group, Group):
        for name in group.list_commands(Context(group)):
            yield from list_commands(group.get_command(Context(group), name), (*path, name))


def read_generated(every: int) -> Iterator[tuple[str, str]]:
    """Read each n-th of the generated documents; yield a name that holds the digest of the input,
    and a text.
    """
    random = Random(SEED)
    for number in range(DOCUMENTS):
        recipe = draw_recipe(random)
        if number % every == 0:
            data, tables = build_document(recipe)
            yield (
                f"{number:04} {recipe.dialect} {hash_short(data)}",
                read_bytes(data, tables[0].header.reader),
            )


def hash_short(data: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415

    return sha256(data).hexdigest()[:12]


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
    content = {
        "tables": [
            [table.name, *table.columns, *(row.cells for row in table.rows)]
            for table in parsed.tables
        ],
        "problems": [
            [own.table_name, own.row_number, own.reason, own.message] for own in parsed.problems
        ],
        "cells": [[cell[name] for name in CELL] for cell in rows.cells.to_pylist()],
        "quarantine": [
            [own.table_name, own.row_number, own.reason, own.message] for own in rows.rejected
        ],
    }
    return json.dumps(content, ensure_ascii=False, indent=1, default=str)


async def _ask_all(
    warehouse: str, calls: Sequence[Mapping[str, Any]]
) -> tuple[list[Any], list[Any]]:
    from mcp import Client  # noqa: PLC0415  (an extra)
    from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415

    args = ["-m", "ipu_results", "mcp", "--warehouse", warehouse]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "pipeline")}
    async with Client(StdioServerParameters(command=sys.executable, args=args, env=env)) as client:
        tools = [tool.model_dump(mode="json") for tool in (await client.list_tools()).tools]
        return tools, [
            json.loads((await client.call_tool(own["tool"], own["arguments"])).content[0].text)
            for own in calls
        ]


def ask_all(warehouse: str, calls: Sequence[Mapping[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Ask the MCP server over its stdin and stdout; return the tools that it lists, and the
    answers.
    """
    return asyncio.run(_ask_all(warehouse, calls))


def list_names() -> Iterator[tuple[str, str]]:
    """Yield each public Python name with its signature and the first line of its documentation."""
    for module, names in ({"ipu_results": tuple(ipu_results.__all__)} | PUBLIC).items():
        for name in names:
            yield f"{module}.{name}", _describe(getattr(import_module(module), name))
    errors = import_module("ipu_results.errors")
    for name, error in sorted(vars(errors).items()):
        if inspect.isclass(error) and issubclass(error, Exception):
            yield (
                f"ipu_results.errors.{name}",
                " < ".join(own.__name__ for own in error.__mro__[:-2]),
            )


def _describe(value: Any) -> str:
    public = (
        [name for name in dir(value) if not name.startswith("_")] if inspect.isclass(value) else []
    )
    return "\n".join(
        [str(inspect.signature(value)), (inspect.getdoc(value) or "").split("\n")[0], *public]
    )
