"""Score results where the rest of the package is not installed: `python -m ipu_results.mlperf
PATH`.

It needs msgspec and numpy alone. `ipu-results mlperf` has more forms of output and more workers.
"""

from __future__ import annotations

import argparse
import sys

from ipu_results.errors import IpuResultsError
from ipu_results.mlperf.records import entry_records, format_scores, run_records
from ipu_results.mlperf.round import score_path
from ipu_results.mlperf.rules import parse_round


def _parse_version(text: str) -> str:
    version = parse_round(text)
    if version is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a round such as 2.0")
    return version


def main() -> int:
    parser = argparse.ArgumentParser("python -m ipu_results.mlperf", description=__doc__)
    parser.add_argument("path", metavar="PATH", help="a round, a part of one, or an archive")
    parser.add_argument("--format", choices=["csv", "json", "summary"], default="csv")
    parser.add_argument("--runs", action="store_true", help="one record per log")
    parser.add_argument("--round", type=_parse_version, help="round of PATH, if no folder names it")
    parser.add_argument("--ruleset", type=_parse_version, help="round whose rules hold")
    given = parser.parse_args()
    try:
        scored = score_path(given.path, round_=given.round, ruleset=given.ruleset)
    except IpuResultsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for finding in scored.findings:
        print(f"finding: {finding}", file=sys.stderr)
    if given.runs:
        table = "mlperf_runs"
        records = [record for entry in scored.entries for record in run_records(entry)]
    else:
        table = "mlperf_entries"
        records = entry_records(scored.entries, given.ruleset)
    sys.stdout.buffer.write(format_scores(given.format, table, records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
