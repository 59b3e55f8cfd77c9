"""The summarizer of mlperf-logging, whole; the score and the scaling factor of each benchmark folder are written down.

A script for an interpreter that has mlperf-logging: `mlperf_official.py OUT FOLDER RULESET CSV`.
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
    found: dict[str, dict[str, float | None]] = {}
    compute = summarizer._compute_strong_score_standalone

    def recorded(benchmark: str, system: str, has_power: bool, folder: str, *rest: Any, **options: Any) -> Any:
        told = compute(benchmark, system, has_power, folder, *rest, **options)
        found[folder] = {"minutes": told[-3], "scaling_factor": told[-1]}
        return told

    summarizer._compute_strong_score_standalone = recorded
    sys.argv = ["result_summarizer", f"{folder}/{{*}}", "training", ruleset, "--csv", csv]
    try:
        summarizer.main()
    finally:
        told = {"version": version("mlperf-logging"), "entries": found}
        Path(out).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
