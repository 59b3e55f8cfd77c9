"""Derive the figures of this folder from the official logs: `python raw/mlperf/make_derived.py V2.0 V1.0 [TARGET]`.

V2.0 and V1.0 are checkouts or archives of the official results. Only the figures of the logs are written.
"""

from __future__ import annotations

import sys
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from ipu_results._util.files import write_atomically
from ipu_results.mlperf.records import entry_record, format_scores, run_records
from ipu_results.mlperf.round import score_path

RETRIEVED = date(2026, 11, 21)
HERE = Path(__file__).resolve().parent
KEPT = {
    "2.0": ("*",),
    "1.0": ("Graphcore/*", "NVIDIA/results/dgxa100_*/bert", "NVIDIA/results/dgxa100_*/resnet"),
}


def derive(sources: dict[str, str], target: Path = HERE) -> None:
    """Write `training-v<round>-entries.csv` and `-runs.csv` for each round of KEPT from the official results."""
    for round_, patterns in KEPT.items():
        scored = score_path(sources[round_], digests=True).entries
        kept = [entry for entry in scored if any(fnmatchcase(entry.entry.path, pattern) for pattern in patterns)]
        tables = {
            "entries": [entry_record(entry, RETRIEVED) for entry in kept],
            "runs": [record for entry in kept for record in run_records(entry)],
        }
        for name, records in tables.items():
            data = format_scores("csv", f"mlperf_{name}", records)
            write_atomically(target / f"training-v{round_}-{name}.csv", data)


if __name__ == "__main__":
    derive({"2.0": sys.argv[1], "1.0": sys.argv[2]}, Path(sys.argv[3]) if len(sys.argv) > 3 else HERE)
