"""Print what mlperf-logging reads from each log, as JSON; runs in an interpreter that has it and
not this package.
"""

import json
import logging
import os
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

from mlperf_logging.rcp_checker import rcp_checker
from mlperf_logging.result_summarizer import result_summarizer

MS = 1000.0


def read(path: Path, ruleset: str) -> dict[str, object]:
    figures: dict[str, object] = {}
    for name, use_train_samples in (("progress", False), ("train_samples", True)):
        try:
            not_converged, figure, _, _ = rcp_checker.read_submission_file(
                str(path), ruleset, use_train_samples
            )
            figures[name] = None if not_converged else figure
        except Exception as error:
            figures[name] = f"{type(error).__name__}: {error}"
    if (path.parent / "power").is_dir():
        try:
            figures["watts"] = result_summarizer._compute_total_power(
                str(path.parent), str(path), MS, ruleset
            )
        except Exception as error:
            figures["watts"] = f"{type(error).__name__}: {error}"
    return figures


logging.disable(logging.CRITICAL)
root = Path(sys.argv[1])
with redirect_stdout(sys.stderr):
    figures = {}
    for log in sorted(root.glob("**/results/*/*/result_*.txt")):
        match = re.search(r"training_results_v(\d+\.\d+)", str(log))
        figures[os.path.relpath(log, root)] = read(log, f"{match[1]}.0" if match else "")
json.dump(figures, sys.stdout)
