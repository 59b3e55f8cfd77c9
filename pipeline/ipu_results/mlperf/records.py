"""What is told of entries and runs: flat records, the same in CSV, JSON and Parquet, with the columns of two tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from ipu_results.mlperf.score import Run, Scored

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


def entry_record(one: Scored, retrieved: date | None = None) -> Record:
    """One entry. Minutes are unrounded; per-run figures are as logged, without the scaling factor."""
    entry, system = one.entry, one.system
    record = {
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
    }
    return record | {"attribution": attribution(record, None, retrieved)}


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


def attribution(entry: Mapping[str, Any], told: str | None, retrieved: date | None) -> str:
    """How a figure of an entry must be cited: version, division, benchmark, submitter, source, id, day, and its mark.

    `entry` has the columns of the contract; `told` is its MLPerf id and how sure that is.
    """
    round_ = entry["round"]
    where = REPOSITORY.format(round=round_) if round_ else "the official results"
    what = f"MLPerf Training v{round_ or ' unknown'} {entry['division'] or 'division unknown'} {entry['benchmark']}"
    day = f"retrieved {retrieved}" if retrieved else "day of retrieval not told"
    id_ = f"MLPerf ID {told}" if told else "MLPerf ID not known"
    return f"{what}, {entry['submitter']}, {where}, {entry['path']}; {id_}; {day}; {NOT_VERIFIED}"
