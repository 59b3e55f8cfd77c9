"""Serve the record to programs and agents."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ipu_results.cli.common import Command, echo_text, warehouse_option


@click.command(cls=Command, extra="mcp")
@warehouse_option
def mcp(warehouse: Path) -> None:
    """Answer questions of an agent or a program over the Model Context Protocol (MCP), on stdin and stdout.

    A client such as an assistant starts this command and calls its tools: overview, find, provenance, compare,
    compare_run, claims, check_claimed_figure and sql. Nothing is written, and no file but the dataset is read. What may
    not be compared is refused with a reason. It ends when stdin does.

    \b
    Example:
      ipu-results mcp --warehouse warehouse
    """
    from ipu_results.errors import import_extra

    import_extra("mcp")
    from ipu_results.serve.server import serve

    if sys.stdin.isatty():
        echo_text("serving MCP on stdin and stdout, for a client that starts this command; Ctrl-D ends it", err=True)
    serve(warehouse)
