"""Serve the record to programs and agents."""

from __future__ import annotations

from pathlib import Path

import click

from ipu_results.cli.common import Command, warehouse_option


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
    from ipu_results._util.extras import import_extra

    import_extra("mcp")
    from ipu_results.mcp_server.server import serve

    serve(warehouse)
