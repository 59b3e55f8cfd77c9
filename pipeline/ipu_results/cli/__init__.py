"""The command line. Nothing imports it; each command imports what it needs when it is called."""

from __future__ import annotations

import click

from ipu_results.cli.common import Group
from ipu_results.cli.compare import cite, compare, expect, table
from ipu_results.cli.dataset import analyse, claims, mcp, query
from ipu_results.cli.emulator import predict, validate_emulator
from ipu_results.cli.ingest import add, extract, fetch, ingest, mlperf
from ipu_results.cli.publish import check_submission, diff, publish, submit, verify
from ipu_results.cli.sweep import collect, sweep


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="ipu-results", prog_name="ipu-results")
def main() -> None:
    """Query, build and check the open, verified record of Graphcore IPU performance.

    \b
    Start with:
      ipu-results ingest
      ipu-results query "SELECT model, platform, throughput FROM inference LIMIT 5"
    """


COMMANDS = (
    *(query, analyse, claims, compare, expect, cite, table, mcp),  # use the dataset
    *(predict, sweep, collect),  # predict and measure
    *(add, fetch, extract, mlperf, ingest, validate_emulator),  # make it
    *(publish, verify, diff),  # release it
    *(submit, check_submission),  # hand figures in
)
for command in COMMANDS:
    main.add_command(command)
