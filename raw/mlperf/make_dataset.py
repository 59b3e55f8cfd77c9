"""Write the official scores of all rounds as a dataset of their own: `python raw/mlperf/make_dataset.py TARGET`.

TARGET gets `mlperf-training.parquet` with every entry of the warehouse under the names of MLPerf, a
`results_summary.json` for each round in the shape that MLCommons publishes for Inference, and `README.md`, the card.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import ipu_results
import pandas as pd
from ipu_results.kit.files import read_version, write_atomically
from ipu_results.kit.text import format_markdown_table
from ipu_results.mlperf.records import COLUMNS, format_scores
from ipu_results.mlperf.rules import round_key
from ipu_results.schema import table

ENTRIES = "mlperf_entries"
CARD = """\
---
pretty_name: MLPerf Training, recomputed scores
license: cc-by-4.0
tags: [mlperf, benchmark, training-time, gpu, ipu, tpu]
configs: [{{config_name: default, data_files: {file}}}]
---
# MLPerf Training {first} to {last}: every official score, recomputed

One row is an entry: a benchmark on a system of a submitter. {entries:,} entries of {rounds} rounds, {scored:,} of them
with a score, from {runs:,} logs, with its interval, the speed apart from luck and what is odd about it.

* **Where from.** `minutes` is computed from the official logs by the official rule. The {published} `minutes_published`
  are printed by a document, for entries whose logs are missing, and not recomputed.
* **What for.** Compare within a round, benchmark and division; `comparable_rounds` says between which rounds, too.
  Leave out rows that are not `usable`: they repeat another entry.
* **What not.** Results are not verified by MLCommons Association, and compliance is not checked. v0.5, v0.6 and v6.0
  are not in it.
* **Cite** the text in `attribution`. MLPerf is a trademark of MLCommons. The logs are under Apache-2.0, the figures
  under CC-BY-4.0.
* **Version** {version}; sha256 of the file: `{digest}`.

`results_summary_v<round>.json` has the entries of a round with a score, in the keys that MLCommons publishes for
Inference.

{columns}"""


def make_dataset(target: Path) -> None:
    """Write the dataset to a folder."""
    definition = table(ENTRIES)
    named = {column.name: column.header or column.name for column in definition.columns}
    entries = ipu_results.load(ENTRIES).rename(columns=named)
    target.mkdir(parents=True, exist_ok=True)
    file = target / "mlperf-training.parquet"
    entries.to_parquet(file, compression="zstd", index=False)
    rounds = sorted(entries["round"].unique(), key=round_key)
    for round_ in rounds:
        scored = entries[(entries["round"] == round_) & entries["minutes"].notna()]
        data = format_scores("summary", ENTRIES, list_records(scored))
        write_atomically(target / f"results_summary_v{round_}.json", data)
    rows = [
        (f"`{named[column.name]}`", column.kind, column.unit, column.description)
        for column in definition.columns
    ]
    card = CARD.format(
        file=file.name,
        first=f"v{rounds[0]}",
        last=f"v{rounds[-1]}",
        entries=len(entries),
        rounds=len(rounds),
        scored=entries["minutes"].count(),
        runs=entries["logs_present"].sum(),
        published=entries["minutes_published"].count(),
        version=read_version(),
        digest=hashlib.sha256(file.read_bytes()).hexdigest(),
        columns=format_markdown_table(("column", "type", "unit", "meaning"), rows),
    )
    write_atomically(target / "README.md", card.encode())


def list_records(entries: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as the command has them: null is None."""
    columns = entries[list(COLUMNS[ENTRIES])].astype(object)
    return columns.where(columns.notna(), None).to_dict("records")


if __name__ == "__main__":
    make_dataset(Path(sys.argv[1]))
