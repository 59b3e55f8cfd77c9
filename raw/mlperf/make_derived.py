"""Derive the figures of this folder from the official logs: `python raw/mlperf/make_derived.py V2.0 V1.0 [TARGET]`.

V2.0 and V1.0 are checkouts or archives of the official results. Nothing of the logs is carried over but the figures.
"""

from __future__ import annotations

import sys
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from ipu_results._util.files import write_atomically
from ipu_results.mlperf.output import as_bytes
from ipu_results.mlperf.records import entry_record, run_records
from ipu_results.mlperf.scoring import in_processes
from ipu_results.mlperf.sources import score_source

RETRIEVED = date(2026, 11, 21)
HERE = Path(__file__).resolve().parent
KEPT = {
    "2.0": ("*",),
    "1.0": ("Graphcore/*", "NVIDIA/results/dgxa100_*/bert", "NVIDIA/results/dgxa100_*/resnet"),
}


def derive(sources: dict[str, str], target: Path = HERE) -> None:
    """Write `training-v<round>-entries.csv` and `-runs.csv` for each round of KEPT from the official results."""
    for round_, patterns in KEPT.items():
        scored = score_source(
            sources[round_], in_processes(1), digests=True, round_=None, progress=lambda *_: None
        ).entries
        kept = [one for one in scored if any(fnmatchcase(one.entry.path, pattern) for pattern in patterns)]
        entries = [entry_record(one, RETRIEVED) for one in kept]
        runs = [run for one in kept for run in run_records(one)]
        for name, records in (("entries", entries), ("runs", runs)):
            write_atomically(target / f"training-v{round_}-{name}.csv", as_bytes("csv", f"mlperf_{name}", records))


if __name__ == "__main__":
    derive({"2.0": sys.argv[1], "1.0": sys.argv[2]}, Path(sys.argv[3]) if len(sys.argv) > 3 else HERE)
