"""The command line. Nothing imports it; each command imports what it needs when it is called."""

from __future__ import annotations

import click

from ipu_results.doors.cli.common import Group
from ipu_results.doors.cli.compare import cite, compare
from ipu_results.doors.cli.dataset import analyse, claims, mcp, query
from ipu_results.doors.cli.emulator import predict
from ipu_results.doors.cli.ingest import add, extract, ingest, mlperf
from ipu_results.doors.cli.publish import check_submission, diff, publish, submit, verify
from ipu_results.doors.cli.sweep import sweep


@click.group(
    cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="ipu-results", prog_name="ipu-results")
def main() -> None:
    """Query, build and check the verified record of what AI accelerators were said and measured to
    do, deepest on Graphcore IPUs.

    \b
    Start with:
      ipu-results ingest
      ipu-results query "SELECT model, platform, throughput FROM inference LIMIT 5"
    """


SECTIONS = {
    "Use the dataset": (query, analyse, claims, compare, cite, mcp),
    "Predict and measure": (predict, sweep),
    "Hand figures in": (submit, check_submission),
    "Make the dataset": (ingest, add, extract, mlperf),
    "Release it": (publish, verify, diff),
}
for section, commands in SECTIONS.items():
    for command in commands:
        main.add_to_section(section, command)
