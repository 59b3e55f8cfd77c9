"""Score a whole round, and write the scores as flat records.

Its entries are found from the paths, their logs are read here or by an executor, and each entry is
scored here. The records are the same in a table, CSV, JSON, Parquet and a data frame. A worker
imports this module: what it does not need, such as pandas, is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import date
from io import BytesIO
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ipu_results.errors import DocumentError, UnrecognisedDocumentError
from ipu_results.kit.files import load_schema_file
from ipu_results.kit.parallel import run_tasks
from ipu_results.kit.text import escape_unprintable, format_json, format_records
from ipu_results.mlperf.archive import ArchiveContents, Progress, is_archive, read_archive
from ipu_results.mlperf.entries import (
    NO_ROUND,
    OTHER_SUITE,
    POWER_FOLDER,
    Entry,
    FileFinding,
    RoundInventory,
    System,
    find_entries,
    read_system,
)
from ipu_results.mlperf.log import Log, RunPower, describe_error
from ipu_results.mlperf.power import read_power
from ipu_results.mlperf.rules import (
    BETWEEN_FINDINGS,
    NOT_VERIFIED,
    REPOSITORY,
    Rules,
    format_attribution,
    load_rules,
    summarise_findings,
)
from ipu_results.mlperf.score import (
    ScoredEntry,
    TrainingRun,
    find_shared_logs,
    score_entry,
    select_used,
)
from ipu_results.mlperf.tree import LocalTree, find_tree

if TYPE_CHECKING:
    import pandas as pd

    from ipu_results.schema import Table

Logs = Mapping[str, Log]  # by file name


@dataclass(frozen=True, slots=True)
class EntryTask:
    """The logs of one entry, for a worker, with what else is in its folder and about its system."""

    tree: LocalTree | ArchiveContents
    entry: Entry

    def name(self) -> str:
        return self.entry.full_path


@dataclass(frozen=True, slots=True)
class ScoredRound:
    """All entries under one path, and the findings about it and them."""

    entries: tuple[ScoredEntry, ...]
    findings: tuple[FileFinding, ...]


def _ignore_progress(_: int, __: int) -> None:
    pass


def score_path(
    path: str,
    executor: Executor | None = None,
    *,
    round_: str | None = None,
    ruleset: str | None = None,
    missing: Iterable[str] = (),
    progress: Progress = _ignore_progress,
) -> ScoredRound:
    """Score every entry under a folder, or in a tar archive, which is read in one pass and
    without `executor`, the workers that read logs: this process does where there is none.

    `round_` is the round of a checkout whose name has none, `ruleset` the round whose rules hold
    where it is not the entry's own. `progress` counts entries, or megabytes of an archive.
    `missing` are logs that are left out as if their content were absent; an entry with such a log
    has no score. Raises UnrecognisedDocumentError without any entry, DocumentTooLargeError and
    DamagedDocumentError for an archive, and what `run_tasks` raises.
    """
    rules = load_rules(ruleset)
    tree: LocalTree | ArchiveContents
    if is_archive(path):
        tree = read_archive(path, progress)
        executor, progress = None, _ignore_progress
    else:
        tree = find_tree(path)
    inventory = take_inventory(tree, rules, round_ or tree.name, missing)
    tasks = [EntryTask(tree, entry) for entry in inventory.entries]
    scored: dict[Entry, ScoredEntry] = {}
    read = read_entry if executor is None else read_sent_entry
    with closing(run_tasks(read, tasks, executor, EntryTask.name)) as results:
        for done, (entry, logs) in enumerate(results, start=1):
            # Scored at once: thousands of logs with their evaluations need not be in memory.
            scored[entry] = _score(entry, logs, tree.small_file, rules)
            progress(done, len(tasks))
    return _collect(inventory, [scored[entry] for entry in inventory.entries])


def take_inventory(
    tree: LocalTree | ArchiveContents, rules: Rules, name: str, missing: Iterable[str]
) -> RoundInventory:
    """Find the entries of a tree. Raises UnrecognisedDocumentError without any."""
    if isinstance(tree, LocalTree) and tree.loose:
        return _take_loose(tree, rules, name)
    listing = tree.listing()
    inventory = find_entries(listing.paths, rules, name, missing)
    findings = (*listing.findings, *inventory.findings)
    if not inventory.entries:
        reasons = "; ".join(str(finding) for finding in findings[:3])
        message = (
            "has no entry"
            f" <submitter>/results/<system>/<benchmark>{f' ({reasons})' if reasons else ''}"
        )
        raise UnrecognisedDocumentError(message, document=name)
    return RoundInventory(inventory.entries, findings)


def _take_loose(tree: LocalTree, rules: Rules, name: str) -> RoundInventory:
    """Return the entry that logs outside the layout of a round are."""
    if suite := rules.find_other_suite([tree.part]):
        raise UnrecognisedDocumentError(OTHER_SUITE.format(suite), document=tree.part)
    entry = Entry("", rules.find_round([name]), "", "", tree.part, tree.loose, loose=tree.part)
    unnamed = () if entry.round else (FileFinding(tree.part, NO_ROUND),)
    return RoundInventory((entry,), unnamed)


def read_entry(task: EntryTask) -> tuple[Entry, Logs]:
    """Read the logs of one entry."""
    tree, entry = task.tree, task.entry
    logs = {name: tree.log(f"{entry.full_path}/{name}") for name in entry.logs}
    if entry.power:
        logs = {name: replace(log, power=_read_power(task, name)) for name, log in logs.items()}
    return entry, logs


def read_sent_entry(task: EntryTask) -> tuple[Entry, Logs]:
    """Read the logs of one entry in another process.

    Raises WorkerError on a machine without the data, to which every log would seem to be missing.
    """
    if isinstance(task.tree, LocalTree):
        task.tree.check_visible(task.entry.full_path)
    return read_entry(task)


def _read_power(task: EntryTask, name: str) -> RunPower:
    """Read the power logs of the run with a log."""
    folder = f"{name.split('.', maxsplit=1)[0]}/"
    place = f"{task.entry.full_path}/{POWER_FOLDER}"
    paths = [path for path in task.entry.power if path.startswith(folder)]
    return read_power(
        (path.removeprefix(folder), task.tree.chunks(f"{place}/{path}")) for path in paths
    )


def _collect(inventory: RoundInventory, entries: Sequence[ScoredEntry]) -> ScoredRound:
    """Collect entries and findings; what holds for a system is said once, and not for each of its
    benchmarks.
    """
    findings = chain(
        inventory.findings,
        *(scored.findings for scored in entries),
        find_shared_logs(entries),
    )
    return ScoredRound(tuple(entries), tuple(dict.fromkeys(findings)))


def _score(
    entry: Entry,
    logs: Logs,
    small_file: Callable[[str], bytes | None],
    rules: Rules,
) -> ScoredEntry:
    try:
        system = read_system(small_file(entry.system_path), rules)
    except (OSError, DocumentError) as error:
        system = System(
            findings=(f"cannot be read; the system is unknown: {describe_error(error)}",)
        )
    try:
        return score_entry(entry, logs, system, small_file(entry.scaling_path), rules)
    except (OSError, DocumentError) as error:
        finding = FileFinding(entry.scaling_path, f"cannot be read: {describe_error(error)}")
        # no bytes hold no factor: it has no score
        scored = score_entry(entry, logs, system, b"", rules)
        return replace(scored, scaling_sha256=None, findings=(finding, *scored.findings))


Record = dict[str, Any]
NO_SUMMARY: Record = {}

CITE = (
    f"Minutes {NOT_VERIFIED}. To cite them, use the attribution of --format csv, json or parquet."
)
MAIN_COLUMNS = tuple(
    "round submitter division system benchmark accelerators accelerator framework n_runs n_success"
    " minutes path".split()
)
SUMMARY = tuple(  # of an entry, by the module `summary`
    "distinct_logs shared_logs distinct_seeds normalised reference_to_converge reference_method"
    " expected_scaling_factor minutes_per_sample minutes_per_sample_low minutes_per_sample_high"
    " speed_runs startup_minutes wait_minutes no_speed_reason minutes_low minutes_high"
    " interval_method interval_runs no_interval_reason".split()
)
ENTRY_COLUMNS = tuple(
    "submitter_folder logs_expected logs_present logs_missing no_score_reason availability"
    " status nodes scaling_factor run_minutes_min run_minutes_max run_minutes_cv"
    " global_batch_size convergence_unit epochs_to_converge samples_to_converge"
    " tokens_to_converge quality_metric quality_target quality_reached quality_check"
    " second_quality_metric second_quality_target second_quality_reached host_processor"
    " host_processors_per_node operating_system other_software accelerator_memory"
    " accelerator_memory_type accelerator_interconnect host_memory host_network hardware_notes"
    " software_notes energy_j system_path system_sha256 scaling_sha256 findings"
    " attribution".split()
)
RUN_COLUMNS = tuple(
    "round path file minutes status counted reason init_minutes global_batch_size epochs samples"
    " tokens quality_reached second_quality_reached seed seeds energy_j lines sha256 evaluations"
    " minutes_per_sample minutes_per_sample_error startup_minutes wait_minutes no_speed_reason"
    " findings".split()
)
COLUMNS = {
    "mlperf_entries": (*MAIN_COLUMNS, *ENTRY_COLUMNS, *SUMMARY),
    "mlperf_runs": RUN_COLUMNS,
}
# columns that follow from others and are not in derived files
GENERATED = {"mlperf_entries": ("findings", "attribution", *SUMMARY), "mlperf_runs": ()}


def entry_records(
    entries: Sequence[ScoredEntry], ruleset: str | None = None, retrieved: date | None = None
) -> list[Record]:
    """Return a record for each entry, with what the runs of all of them say."""
    # Imported here: it loads numpy, which a worker must not.
    from ipu_results.mlperf.summary import summarise_entries  # noqa: PLC0415

    summaries = summarise_entries(entries, load_rules(ruleset))
    return [entry_record(each, retrieved, summaries[each.entry]) for each in entries]


def entry_record(
    scored: ScoredEntry, retrieved: date | None = None, summary: Record = NO_SUMMARY
) -> Record:
    """Return one entry, with the columns of a summary where there is one.

    Minutes are unrounded; per-run figures are as logged, without the scaling factor.
    """
    entry = scored.entry
    system = scored.system
    convergence = scored.convergence
    quality = scored.quality
    columns = COLUMNS["mlperf_entries"]
    named_alike = asdict(system) | {
        name: getattr(scored, name) for name in columns if hasattr(scored, name)
    }
    record = (
        named_alike
        | summary
        | {
            "round": entry.round,
            "submitter": system.submitter or entry.submitter or None,
            "system": system.name,
            "n_runs": len(scored.runs),
            "path": entry.path,
            "submitter_folder": entry.submitter,
            "logs_present": len(entry.logs),
            "logs_missing": len(entry.missing),
            "no_score_reason": scored.reason,
            "findings": summarise_findings(
                scored.scaling_factor,
                None if scored.minutes is None else summary.get("expected_scaling_factor"),
                [run.findings for run in scored.runs],
                [run.log.seed for run in scored.runs],
                [run.log.minutes for run in select_used(scored.runs)],
            ),
            "convergence_unit": convergence.unit,
            "epochs_to_converge": convergence.epochs,
            "samples_to_converge": convergence.samples,
            "tokens_to_converge": convergence.tokens,
            "quality_check": quality.check,
            "system_path": entry.system_file,
            "system_sha256": system.sha256,
        }
    )
    reached = zip(quality.targets, quality.values, strict=True)
    for prefix, (target, value) in zip(("quality", "second_quality"), reached, strict=False):
        record[f"{prefix}_metric"] = target.metric
        record[f"{prefix}_target"] = target.target
        record[f"{prefix}_reached"] = value
    record["attribution"] = format_attribution(record, None, retrieved)
    # without a summary, what `make_derived.py` keeps
    return {name: record.get(name) for name in columns if summary or name not in SUMMARY}


def run_records(scored: ScoredEntry) -> list[Record]:
    """Return one record for each log of the entry."""
    return [_run_record(scored.entry, run) for run in scored.runs]


def _run_record(entry: Entry, run: TrainingRun) -> Record:
    reached = [*run.quality.values, None, None]  # most benchmarks have one target, none has three
    record = (asdict(run.log) | asdict(run.convergence) | asdict(run.speed)) | {
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
    return {name: record[name] for name in COLUMNS["mlperf_runs"]}


def format_scores(kind: str, name: str, records: Sequence[Record]) -> bytes:
    """Format records of the table `name` as `table`, `csv`, `json` or `parquet`, or those of entries
    as the `summary` that MLCommons publishes of a round of Inference.

    The table has the columns of MAIN_COLUMNS for entries, and how to cite them.
    """
    if kind == "parquet":
        return _format_parquet(name, records)
    if kind == "summary":
        return f"{format_json([_summarise_record(record) for record in records])}\n".encode()
    columns = COLUMNS[name]
    cite = ""
    if kind == "table":
        columns = MAIN_COLUMNS if name == "mlperf_entries" else columns
        records = _map_texts(records, escape_unprintable)
        cite = f"\n{CITE}"
    text = format_records(
        kind, columns, ([record[column] for column in columns] for record in records)
    )
    return f"{text}{cite}\n".encode(errors="backslashreplace")


def _summarise_record(record: Record) -> Record:
    """Return an entry in the shape of Inference; null is what training has nothing for."""
    keys = load_schema_file("vocabulary/mlperf.toml")["results_summary"]
    summary = {key: record.get(column) for key, column in keys.items()}
    platform = PurePosixPath(record["system_path"]).stem
    url = f"{REPOSITORY.format(round=record['round'])}/tree/main/"
    id_ = ("training", record["division"], record["submitter_folder"], platform)
    reached = record["quality_reached"]
    return summary | {
        "Suite": "training",
        "Platform": platform,
        "Accuracy": None if reached is None else f"{record['quality_metric']}: {reached}",
        "version": f"v{record['round']}",
        "has_power": record["energy_j"] is not None,
        "Details": url + record["system_path"],
        "Code": f"{url}{record['submitter_folder']}/benchmarks",
        "Unique ID (e.g. for Audit)": "/".join(map(str, id_)),
        "Performance_Units": "min.",
    }


def build_score_frame(name: str, records: Sequence[Record]) -> pd.DataFrame:
    """Return records of a table as a frame with its dtypes, under the names that MLPerf uses."""
    from ipu_results.schema.frames import build_frame  # noqa: PLC0415  (loads pandas)

    return build_frame(_define_columns(name), _map_texts(records, _escape_surrogates))


def _define_columns(name: str) -> Table:
    """Return a table with the columns of its records, under the names that MLPerf uses."""
    from ipu_results.schema import table  # noqa: PLC0415

    columns = {column.header or column.name: column for column in table(name).columns}
    named = [replace(columns[column], name=column, required=False) for column in COLUMNS[name]]
    return replace(table(name), columns=tuple(named))


def _format_parquet(name: str, records: Sequence[Record]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  (a worker must not load it)
    import pyarrow.parquet as pq  # noqa: PLC0415

    from ipu_results.schema.frames import arrow_schema  # noqa: PLC0415

    rows = _map_texts(records, _escape_surrogates)
    out = BytesIO()
    schema = pa.schema(list(arrow_schema(_define_columns(name))))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out, compression="zstd")
    return out.getvalue()


def _escape_surrogates(text: str) -> str:
    """Escape what UTF-8 cannot hold: names of files and texts of logs may have it."""
    return text.encode(errors="backslashreplace").decode()


def _map_texts(records: Iterable[Record], change: Callable[[str], str]) -> list[Record]:
    return [
        {name: change(value) if isinstance(value, str) else value for name, value in record.items()}
        for record in records
    ]
