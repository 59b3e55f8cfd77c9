"""Write scores as flat records, the same in a table, CSV, JSON, Parquet and a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING, Any

from ipu_results.ground.text import escape_unprintable, format_records
from ipu_results.mlperf.score import ScoredEntry, TrainingRun

if TYPE_CHECKING:
    import pandas as pd

Record = dict[str, Any]
QUALITIES = ("quality", "second_quality")

REPOSITORY = "https://github.com/mlcommons/training_results_v{round}"
NOT_VERIFIED = "computed from the logs by ipu-results, result not verified by MLCommons Association"
CITE = f"Minutes {NOT_VERIFIED}. To cite them, use the attribution of --format csv, json or parquet."
MAIN_COLUMNS = (
    *("round", "submitter", "division", "system", "benchmark", "accelerators", "accelerator", "framework"),
    *("n_runs", "n_success", "minutes", "path"),
)
COLUMNS = {
    "mlperf_entries": (
        *MAIN_COLUMNS,
        *("submitter_folder", "logs_expected", "logs_present", "logs_missing"),
        *("no_score_reason", "availability", "status", "nodes", "scaling_factor"),
        *("run_minutes_min", "run_minutes_max", "run_minutes_cv"),
        *("global_batch_size", "convergence_unit", "epochs_to_converge", "samples_to_converge", "tokens_to_converge"),
        *("quality_metric", "quality_target", "quality_reached", "quality_check"),
        *("second_quality_metric", "second_quality_target", "second_quality_reached"),
        *("host_processor", "host_processors_per_node", "operating_system", "other_software", "energy_j"),
        *("system_path", "system_sha256", "scaling_sha256", "attribution"),
    ),
    "mlperf_runs": (
        *("round", "path", "file", "minutes", "status", "counted", "reason", "init_minutes"),
        *("global_batch_size", "epochs", "samples", "tokens", "quality_reached", "second_quality_reached"),
        *("seed", "seeds", "energy_j", "lines", "sha256"),
    ),
}
GENERATED = ("attribution",)  # columns that follow from others and are not in derived files


def entry_record(scored: ScoredEntry, retrieved: date | None = None) -> Record:
    """Return one entry. Minutes are unrounded; per-run figures are as logged, without the scaling factor."""
    entry, system = scored.entry, scored.system
    record = {
        "round": entry.round,
        "submitter": system.submitter or entry.submitter,
        "division": system.division,
        "system": system.name,
        "benchmark": scored.benchmark,
        "accelerators": system.accelerators,
        "accelerator": system.accelerator,
        "framework": system.framework,
        "n_runs": len(scored.runs),
        "n_success": scored.n_success,
        "minutes": scored.minutes,
        "path": entry.path,
        "submitter_folder": entry.submitter,
        "logs_expected": scored.logs_expected,
        "logs_present": len(entry.logs),
        "logs_missing": len(entry.missing),
        "no_score_reason": scored.reason,
        "availability": system.availability,
        "status": system.status,
        "nodes": system.nodes,
        "scaling_factor": scored.scaling_factor,
        "run_minutes_min": scored.run_minutes_min,
        "run_minutes_max": scored.run_minutes_max,
        "run_minutes_cv": scored.run_minutes_cv,
        "global_batch_size": scored.global_batch_size,
        "convergence_unit": scored.convergence_unit,
        "epochs_to_converge": scored.epochs_to_converge,
        "samples_to_converge": scored.samples_to_converge,
        "tokens_to_converge": scored.tokens_to_converge,
        **_quality_record(scored),
        "host_processor": system.host_processor,
        "host_processors_per_node": system.host_processors_per_node,
        "operating_system": system.operating_system,
        "other_software": system.other_software,
        "energy_j": scored.energy_j,
        "system_path": f"{entry.submitter}/systems/{entry.system}.json",
        "system_sha256": system.sha256,
        "scaling_sha256": scored.scaling_sha256,
    }
    return record | {"attribution": format_attribution(record, None, retrieved)}


def _quality_record(scored: ScoredEntry) -> Record:
    record: Record = {"quality_check": scored.quality.check}
    for index, prefix in enumerate(QUALITIES):
        target = scored.targets[index] if len(scored.targets) > index else None
        record[f"{prefix}_metric"] = None if target is None else target.metric
        record[f"{prefix}_target"] = None if target is None else target.target
        record[f"{prefix}_reached"] = None if target is None else scored.quality.values[index]
    return {name: record[name] for name in COLUMNS["mlperf_entries"] if name in record}


def run_records(scored: ScoredEntry) -> list[Record]:
    """Return one record for each log of the entry."""
    return [_run_record(scored, run) for run in scored.runs]


def _run_record(scored: ScoredEntry, run: TrainingRun) -> Record:
    reached = [*run.quality.values, None, None]
    return {
        "round": scored.entry.round,
        "path": scored.entry.path,
        "file": run.file,
        "minutes": run.log.minutes,
        "status": run.log.status,
        "counted": run.counted,
        "reason": run.reason,
        "init_minutes": run.log.init_minutes,
        "global_batch_size": run.log.global_batch_size,
        "epochs": run.convergence.epochs,
        "samples": run.convergence.samples,
        "tokens": run.convergence.tokens,
        "quality_reached": reached[0],
        "second_quality_reached": reached[1],
        "seed": run.log.seed,
        "seeds": run.log.seeds,
        "energy_j": run.energy_j,
        "lines": run.log.lines,
        "sha256": run.log.sha256,
    }


def format_attribution(entry: Mapping[str, Any], mlperf_id: str | None, retrieved: date | None) -> str:
    """Describe how to cite an entry with all that MLCommons requires.

    `entry` has the columns of MAIN_COLUMNS; `mlperf_id` includes its confidence, as `2.0-2047 (printed)`.
    """
    round_ = entry["round"]
    where = REPOSITORY.format(round=round_) if round_ else "the official results"
    what = f"MLPerf Training v{round_ or ' unknown'} {entry['division'] or 'division unknown'} {entry['benchmark']}"
    day = f"retrieved {retrieved}" if retrieved else "day of retrieval not known"
    id_ = f"MLPerf ID {mlperf_id or 'not known'}"
    return f"{what}, {entry['submitter']}, {where}, {entry['path']}; {id_}; {day}; {NOT_VERIFIED}"


def format_scores(kind: str, name: str, records: Sequence[Record]) -> bytes:
    """Format records of the table `name` as `table`, `csv`, `json` or `parquet`.

    The table has the columns of MAIN_COLUMNS for entries, and how to cite them.
    """
    if kind == "parquet":
        return _format_parquet(name, records)
    columns, cite = COLUMNS[name], ""
    if kind == "table":
        columns = MAIN_COLUMNS if name == "mlperf_entries" else columns
        records, cite = _map_texts(records, escape_unprintable), f"\n{CITE}"
    text = format_records(kind, columns, ([record[column] for column in columns] for record in records))
    return f"{text}{cite}\n".encode(errors="backslashreplace")


def build_entry_frame(records: Sequence[Record]) -> pd.DataFrame:
    """Return records of entries as a frame with the dtypes of the table `mlperf_entries`."""
    from ipu_results.schema import table  # noqa: PLC0415  (a worker must not load pandas)
    from ipu_results.schema.frames import build_frame  # noqa: PLC0415

    frame = build_frame(table("mlperf_entries"), _map_texts(records, _escape_surrogates))
    return frame[list(COLUMNS["mlperf_entries"])]


def _format_parquet(name: str, records: Sequence[Record]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  (a worker must not load it)
    import pyarrow.parquet as pq  # noqa: PLC0415

    from ipu_results.schema import arrow_schema, table  # noqa: PLC0415

    types = arrow_schema(table(name))
    schema = pa.schema([types.field(column).with_nullable(True) for column in COLUMNS[name]])
    out = BytesIO()
    pq.write_table(
        pa.Table.from_pylist(_map_texts(records, _escape_surrogates), schema=schema), out, compression="zstd"
    )
    return out.getvalue()


def _escape_surrogates(text: str) -> str:
    """Escape what UTF-8 cannot hold: names of files and texts of logs may have it."""
    return text.encode(errors="backslashreplace").decode()


def _map_texts(records: Iterable[Record], change: Callable[[str], str]) -> list[Record]:
    return [
        {name: change(value) if isinstance(value, str) else value for name, value in record.items()}
        for record in records
    ]
