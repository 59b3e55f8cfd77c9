"""Run the official summarizer of mlperf-logging and write the score and scaling factor of each
benchmark folder.

A script for an interpreter that has mlperf-logging: `official_child.py OUT FOLDER RULESET CSV`.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mlperf_logging.result_summarizer import result_summarizer as summarizer


def main() -> None:
    out, folder, ruleset, csv = sys.argv[1:]
    entries: dict[str, dict[str, float | None]] = {}
    compute = summarizer._compute_strong_score_standalone

    def compute_and_record(
        benchmark: str, system: str, has_power: bool, folder: str, *rest: Any, **options: Any
    ) -> Any:
        scores = compute(benchmark, system, has_power, folder, *rest, **options)
        entries[folder] = {"minutes": scores[-3], "scaling_factor": scores[-1]}
        return scores

    summarizer._compute_strong_score_standalone = compute_and_record
    sys.argv = ["result_summarizer", f"{folder}/{{*}}", "training", ruleset, "--csv", csv]
    try:
        summarizer.main()
    finally:
        Path(out).write_text(
            json.dumps({"version": version("mlperf-logging"), "entries": entries}), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
