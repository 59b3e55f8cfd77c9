"""Write scores as flat records: the same in a table, CSV, JSON, Parquet and a data frame.

The columns are those of `schema/tables`, under the names that MLPerf uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import date
from io import BytesIO
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ipu_results.kit.files import load_schema_file
from ipu_results.kit.text import escape_unprintable, format_json, format_records
from ipu_results.mlperf.entries import Entry
from ipu_results.mlperf.rules import (
    BETWEEN_FINDINGS,
    NOT_VERIFIED,
    REPOSITORY,
    format_attribution,
    load_rules,
    summarise_findings,
)
from ipu_results.mlperf.score import ScoredEntry, TrainingRun, select_used
from ipu_results.mlperf.summary import NO_SUMMARY, Record, summarise_entries

if TYPE_CHECKING:
    import pandas as pd

    from ipu_results.schema import Table

CITE = (
    f"Minutes {NOT_VERIFIED}. To cite them, use the attribution of --format csv, json or parquet."
)
ENTRIES = "mlperf_entries"
RUNS = "mlperf_runs"
# of the table that a terminal shows
MAIN_COLUMNS = (
    "round",
    "submitter",
    "division",
    "system",
    "benchmark",
    "accelerators",
    "accelerator",
    "framework",
    "n_runs",
    "n_success",
    "minutes",
    "path",
)
# what other entries and the reference say of an entry: the module `summary` computes it
SUMMARY = (
    "distinct_logs",
    "shared_logs",
    "distinct_seeds",
    "normalised",
    "reference_to_converge",
    "reference_method",
    "expected_scaling_factor",
    "minutes_per_sample",
    "minutes_per_sample_low",
    "minutes_per_sample_high",
    "speed_runs",
    "startup_minutes",
    "wait_minutes",
    "no_speed_reason",
    "minutes_low",
    "minutes_high",
    "interval_method",
    "interval_runs",
    "no_interval_reason",
)
ENTRY_COLUMNS = (
    "submitter_folder",
    "logs_expected",
    "logs_present",
    "logs_missing",
    "no_score_reason",
    "availability",
    "status",
    "nodes",
    "scaling_factor",
    "run_minutes_min",
    "run_minutes_max",
    "run_minutes_cv",
    "global_batch_size",
    "convergence_unit",
    "epochs_to_converge",
    "samples_to_converge",
    "tokens_to_converge",
    "quality_metric",
    "quality_target",
    "quality_reached",
    "quality_check",
    "second_quality_metric",
    "second_quality_target",
    "second_quality_reached",
    "host_processor",
    "host_processors_per_node",
    "operating_system",
    "other_software",
    "accelerator_memory",
    "accelerator_memory_type",
    "accelerator_interconnect",
    "host_memory",
    "host_network",
    "hardware_notes",
    "software_notes",
    "energy_j",
    "system_path",
    "system_sha256",
    "scaling_sha256",
    "findings",
    "attribution",
)
COLUMNS = {
    ENTRIES: MAIN_COLUMNS + ENTRY_COLUMNS + SUMMARY,
    RUNS: (
        "round",
        "path",
        "file",
        "minutes",
        "status",
        "counted",
        "reason",
        "init_minutes",
        "global_batch_size",
        "epochs",
        "samples",
        "tokens",
        "quality_reached",
        "second_quality_reached",
        "seed",
        "seeds",
        "energy_j",
        "lines",
        "sha256",
        "evaluations",
        "minutes_per_sample",
        "minutes_per_sample_error",
        "startup_minutes",
        "wait_minutes",
        "no_speed_reason",
        "findings",
    ),
}
# columns that follow from others and are not in derived files
GENERATED = {ENTRIES: ("findings", "attribution", *SUMMARY), RUNS: ()}


def entry_records(
    entries: Sequence[ScoredEntry], ruleset: str | None = None, retrieved: date | None = None
) -> list[Record]:
    """Return a record for each entry, with what the runs of all of them say."""
    summaries = summarise_entries(entries, load_rules(ruleset))
    return [entry_record(each, retrieved, summaries[each.entry]) for each in entries]


def entry_record(
    scored: ScoredEntry, retrieved: date | None = None, summary: Record = NO_SUMMARY
) -> Record:
    """Return one entry; without a summary it has the columns that `make_derived.py` keeps.

    Minutes are unrounded; per-run figures are as logged, without the scaling factor.
    """
    entry = scored.entry
    system = scored.system
    used = select_used(scored.runs)
    expected_factor = None
    if scored.minutes is not None:
        expected_factor = summary.get("expected_scaling_factor")
    record: Record = dict.fromkeys(MAIN_COLUMNS + ENTRY_COLUMNS)
    record |= system.texts
    record |= summary
    record |= {
        "round": entry.round,
        "submitter": system.texts.get("submitter") or entry.submitter or None,
        "submitter_folder": entry.submitter,
        "division": system.division,
        "availability": system.availability,
        "accelerators": system.accelerators,
        "nodes": system.nodes,
        "host_processors_per_node": system.host_processors_per_node,
        "benchmark": scored.benchmark,
        "path": entry.path,
        "n_runs": len(scored.runs),
        "n_success": scored.n_success,
        "logs_expected": scored.logs_expected,
        "logs_present": len(entry.logs),
        "logs_missing": len(entry.missing),
        "minutes": scored.minutes,
        "no_score_reason": scored.reason,
        "scaling_factor": scored.scaling_factor,
        "run_minutes_min": scored.run_minutes_min,
        "run_minutes_max": scored.run_minutes_max,
        "run_minutes_cv": scored.run_minutes_cv,
        "global_batch_size": scored.global_batch_size,
        "convergence_unit": scored.convergence.unit,
        "epochs_to_converge": scored.convergence.epochs,
        "samples_to_converge": scored.convergence.samples,
        "tokens_to_converge": scored.convergence.tokens,
        "quality_check": scored.quality.check,
        "energy_j": scored.energy_j,
        "system_path": entry.system_file,
        "system_sha256": system.sha256,
        "scaling_sha256": scored.scaling_sha256,
        "findings": summarise_findings(
            scored.scaling_factor,
            expected_factor,
            [run.findings for run in scored.runs],
            [run.log.seed for run in scored.runs],
            [run.log.minutes for run in used],
        ),
    }
    # most benchmarks have one target, none has three
    prefixes = ("quality", "second_quality")
    quality = scored.quality
    for prefix, target, value in zip(prefixes, quality.targets, quality.values, strict=False):
        record[f"{prefix}_metric"] = target.metric
        record[f"{prefix}_target"] = target.target
        record[f"{prefix}_reached"] = value
    record["attribution"] = format_attribution(record, None, retrieved)
    return record


def run_records(scored: ScoredEntry) -> list[Record]:
    """Return one record for each log of the entry."""
    return [_run_record(scored.entry, run) for run in scored.runs]


def _run_record(entry: Entry, run: TrainingRun) -> Record:
    reached = [*run.quality.values, None, None]  # most benchmarks have one target, none has three
    # their fields are named as the columns are, so most need no line here
    record = asdict(run.log) | asdict(run.convergence) | asdict(run.speed)
    record |= {
        "round": entry.round,
        "path": entry.path,
        "file": run.file,
        "counted": run.counted,
        "reason": run.reason,
        "quality_reached": reached[0],
        "second_quality_reached": reached[1],
        "energy_j": run.log.energy_j,
        "findings": BETWEEN_FINDINGS.join(run.findings) or None,
    }
    return {name: record[name] for name in COLUMNS[RUNS]}


def format_scores(kind: str, name: str, records: Sequence[Record]) -> bytes:
    """Format records of the table `name` as `table`, `csv`, `json` or `parquet`, or those of
    entries as the `summary` that MLCommons publishes of a round of Inference.

    The table has the columns of MAIN_COLUMNS for entries, and how to cite them.
    """
    if kind == "parquet":
        return _format_parquet(name, records)
    if kind == "summary":
        return f"{format_json([_summarise_record(record) for record in records])}\n".encode()
    columns = COLUMNS[name]
    cite = ""
    if kind == "table":
        if name == ENTRIES:
            columns = MAIN_COLUMNS
        # names are those of submitters: one may hold a control code of a terminal
        records = _map_texts(records, escape_unprintable)
        cite = f"\n{CITE}"
    rows = [[record[column] for column in columns] for record in records]
    text = format_records(kind, columns, rows)
    return f"{text}{cite}\n".encode(errors="backslashreplace")


def _summarise_record(record: Record) -> Record:
    """Return an entry in the shape of Inference; null is what training has nothing for."""
    keys = load_schema_file("vocabulary/mlperf.toml")["results_summary"]
    summary = {key: record.get(column) for key, column in keys.items()}
    platform = PurePosixPath(record["system_path"]).stem
    folder = record["submitter_folder"]
    # MLCommons publishes a round in a repository of its own
    url = f"{REPOSITORY.format(round=record['round'])}/tree/main/"
    accuracy = None
    if record["quality_reached"] is not None:
        accuracy = f"{record['quality_metric']}: {record['quality_reached']}"
    return summary | {
        "Suite": "training",
        "Platform": platform,
        "Accuracy": accuracy,
        "version": f"v{record['round']}",
        "has_power": record["energy_j"] is not None,
        "Details": url + record["system_path"],
        "Code": f"{url}{folder}/benchmarks",
        "Unique ID (e.g. for Audit)": f"training/{record['division']}/{folder}/{platform}",
        "Performance_Units": "min.",
    }


def build_score_frame(name: str, records: Sequence[Record]) -> pd.DataFrame:
    """Return records of a table as a frame with its dtypes, under the names that MLPerf uses."""
    from ipu_results.schema.frames import build_frame  # noqa: PLC0415  (loads pandas)

    return build_frame(_define_columns(name), _map_texts(records, _escape_surrogates))


def _define_columns(name: str) -> Table:
    """Return a table with the columns of its records, under the names that MLPerf uses."""
    from ipu_results.schema import table  # noqa: PLC0415

    columns = {}
    for column in table(name).columns:
        columns[column.header or column.name] = column
    named = []
    for header in COLUMNS[name]:
        named.append(replace(columns[header], name=header, required=False))
    return replace(table(name), columns=tuple(named))


def _format_parquet(name: str, records: Sequence[Record]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  (a worker must not load it)
    import pyarrow.parquet as pq  # noqa: PLC0415

    from ipu_results.schema.frames import arrow_schema  # noqa: PLC0415

    # Parquet refuses surrogates
    rows = _map_texts(records, _escape_surrogates)
    out = BytesIO()
    schema = pa.schema(list(arrow_schema(_define_columns(name))))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out, compression="zstd")
    return out.getvalue()


def _escape_surrogates(text: str) -> str:
    """Escape what UTF-8 cannot hold: names of files and texts of logs may have it."""
    return text.encode(errors="backslashreplace").decode()


def _map_texts(records: Iterable[Record], change: Callable[[str], str]) -> list[Record]:
    changed = []
    for record in records:
        texts = {}
        for name, value in record.items():
            if isinstance(value, str):
                texts[name] = change(value)
        changed.append(record | texts)
    return changed
