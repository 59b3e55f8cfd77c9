"""Compare how far each run trained with the official reader of reference convergence points, and
energies likewise.

`python -m benchmarks.mlperf.convergence CHECKOUTS PYTHON`: CHECKOUTS holds
`training_results_v<round>` folders, PYTHON is an interpreter that has mlperf-logging. The official
reader counts what a log counts under whatever name, so a run agrees if its samples, tokens, epochs
or steps are that figure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from ipu_results.mlperf.round import score_path
from ipu_results.mlperf.score import ScoredEntry, TrainingRun

SCRIPT = Path(__file__).with_name("official_convergence_child.py")
NOT_CONVERGED = 1e9  # what the official reader returns then; tokens are the only figures above
TOLERANCE = 1e-3  # it rounds epochs to three decimals
EXACT = 1e-9


def read_official(python: str, root: Path) -> dict[str, dict[str, Any]]:
    """Return what the official reader and power rule give for each log, by path within `root`."""
    done = subprocess.run([python, "-I", str(SCRIPT), str(root)], capture_output=True, check=True)
    figures: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return figures


def compare(root: Path, python: str) -> Iterator[tuple[str, str, str]]:
    """Yield benchmark, verdict and path of each counted run that the official reader gives a figure
    for.
    """
    official = read_official(python, root)
    for scored in score_path(str(root)).entries:
        for run in scored.runs:
            path = f"{scored.entry.full_path}/{run.file}"
            figure = official.get(path, {})
            if run.counted and isinstance(figure.get("progress"), (int, float)):
                yield scored.benchmark, _judge(scored, run, figure), path
            if run.counted and isinstance(figure.get("watts"), (int, float)) and run.log.minutes:
                watts = (run.log.energy_j or 0) / run.log.minutes / 60
                agrees = abs(watts - figure["watts"]) <= EXACT * figure["watts"]
                yield "energy", "agrees" if agrees else "differs", path


def _judge(scored: ScoredEntry, run: TrainingRun, figure: dict[str, Any]) -> str:
    figures = run.convergence
    batch = run.log.global_batch_size
    ours = [figures.samples, figures.tokens, figures.epochs]
    if figures.unit == "steps" and figures.samples is not None and batch:
        ours.append(figures.samples / batch)
    accepted = [figure["progress"]]
    if scored.benchmark == "bert":
        accepted.append(figure["train_samples"])
    for count, value in product(ours, accepted):
        is_known = count is not None and isinstance(value, (int, float))
        if is_known and abs(count - value) <= TOLERANCE:
            return "agrees"
    if figures.unit in {"evaluations", "samples"}:
        return "counts evaluations or the whole set"
    return "differs"


def main(root: Path, python: str) -> None:
    verdicts = Counter((benchmark, verdict) for benchmark, verdict, _ in compare(root, python))
    for (benchmark, verdict), count in sorted(verdicts.items()):
        print(f"{benchmark:20} {verdict:36} {count:6}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
