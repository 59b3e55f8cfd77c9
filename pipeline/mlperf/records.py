"""What is told of entries and runs: flat records, the same in CSV, JSON and Parquet, with the columns of two tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pipeline.mlperf.score import Run, Scored

Record = dict[str, Any]

REPOSITORY = "https://github.com/mlcommons/training_results_v{round}"
NOT_VERIFIED = "computed from the logs by ipu-results, result not verified by MLCommons Association"
CITE = f"Minutes {NOT_VERIFIED}. Cite as the attribution of --format csv, json or parquet says."
CONTRACT = (
    *("round", "submitter", "division", "system", "benchmark", "accelerators", "accelerator", "framework"),
    *("n_runs", "n_success", "minutes", "path"),
)
COLUMNS = {
    "mlperf_entries": (
        *CONTRACT,
        *("no_score_reason", "availability", "status", "nodes", "scaling_factor"),
        *("run_minutes_min", "run_minutes_max", "run_minutes_cv"),
        *("global_batch_size", "epochs_to_converge", "samples_to_converge"),
        *("system_path", "system_sha256", "scaling_sha256", "attribution"),
    ),
    "mlperf_runs": (
        *("round", "path", "file", "minutes", "status", "counted", "reason", "init_minutes"),
        *("global_batch_size", "epochs", "samples", "lines", "sha256"),
    ),
}


def entry_record(one: Scored) -> Record:
    """One entry. Minutes are unrounded; per-run figures are as logged, without the scaling factor."""
    entry, system = one.entry, one.system
    return {
        "round": entry.round,
        "submitter": entry.submitter,
        "division": system.division,
        "system": system.name,
        "benchmark": one.benchmark,
        "accelerators": system.accelerators,
        "accelerator": system.accelerator,
        "framework": system.framework,
        "n_runs": len(one.runs),
        "n_success": one.n_success,
        "minutes": one.minutes,
        "path": entry.path,
        "no_score_reason": one.reason,
        "availability": system.availability,
        "status": system.status,
        "nodes": system.nodes,
        "scaling_factor": one.scaling_factor,
        "run_minutes_min": one.run_minutes_min,
        "run_minutes_max": one.run_minutes_max,
        "run_minutes_cv": one.run_minutes_cv,
        "global_batch_size": one.global_batch_size,
        "epochs_to_converge": one.epochs_to_converge,
        "samples_to_converge": one.samples_to_converge,
        "system_path": f"{entry.submitter}/systems/{entry.system}.json",
        "system_sha256": system.sha256,
        "scaling_sha256": one.scaling_sha256,
        "attribution": attribution(one),
    }


def run_records(one: Scored) -> Iterable[Record]:
    """One log of the entry each."""
    return (_run_record(one, run) for run in one.runs)


def _run_record(one: Scored, run: Run) -> Record:
    return {
        "round": one.entry.round,
        "path": one.entry.path,
        "file": run.file,
        "minutes": run.log.minutes,
        "status": run.log.status,
        "counted": run.counted,
        "reason": run.reason,
        "init_minutes": run.log.init_minutes,
        "global_batch_size": run.log.global_batch_size,
        "epochs": run.epochs,
        "samples": run.samples,
        "lines": run.log.lines,
        "sha256": run.sha256,
    }


def attribution(one: Scored) -> str:
    """How a figure of this entry must be cited; the date is that on which the reader took the logs."""
    round_ = one.entry.round or "(round unknown)"
    where = REPOSITORY.format(round=round_) if one.entry.round else "the official results"
    told = (f"MLPerf Training v{round_}", one.system.division or "division unknown", one.benchmark)
    return f"{' '.join(told)}, {one.entry.submitter}, {where}, {one.entry.path}; {NOT_VERIFIED}"
