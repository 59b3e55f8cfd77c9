"""Score a whole round.

Its entries are found from the paths, their logs are read here or by an executor, and each entry is
scored here. A worker imports this module, and so neither numpy nor pandas is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace

from ipu_results.errors import DocumentError, UnrecognisedDocumentError
from ipu_results.kit.parallel import run_tasks
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
from ipu_results.mlperf.rules import Rules, load_rules
from ipu_results.mlperf.score import ScoredEntry, find_shared_logs, score_entry
from ipu_results.mlperf.tree import LocalTree, find_tree

Tree = LocalTree | ArchiveContents
Logs = Mapping[str, Log]  # by file name


@dataclass(frozen=True, slots=True)
class EntryTask:
    """The logs of one entry, for a worker, with what else is in its folder and about its system."""

    tree: Tree
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
    tree: Tree
    if is_archive(path):
        tree = read_archive(path, progress)
        # its logs are read: what is left to do is no progress, and nothing for workers
        progress = _ignore_progress
        executor = None
    else:
        tree = find_tree(path)
    inventory = take_inventory(tree, rules, round_ or tree.name, missing)
    tasks = [EntryTask(tree, entry) for entry in inventory.entries]
    scored: dict[Entry, ScoredEntry] = {}
    read = read_sent_entry if executor else read_entry
    with closing(run_tasks(read, tasks, executor, EntryTask.name)) as results:
        for done, (entry, logs) in enumerate(results, start=1):
            # Scored at once: thousands of logs with their evaluations need not be in memory.
            scored[entry] = _score(entry, logs, tree.small_file, rules)
            progress(done, len(tasks))
    return _collect(inventory, [scored[entry] for entry in inventory.entries])


def take_inventory(tree: Tree, rules: Rules, name: str, missing: Iterable[str]) -> RoundInventory:
    """Find the entries of a tree. Raises UnrecognisedDocumentError without any."""
    if isinstance(tree, LocalTree) and tree.loose:
        return _take_loose(tree, rules, name)
    listing = tree.listing()
    inventory = find_entries(listing.paths, rules, name, missing)
    findings = (*listing.findings, *inventory.findings)
    if not inventory.entries:
        message = "has no entry <submitter>/results/<system>/<benchmark>"
        if findings:
            message += f" ({'; '.join(map(str, findings[:3]))})"
        raise UnrecognisedDocumentError(message, document=name)
    return RoundInventory(inventory.entries, findings)


def _take_loose(tree: LocalTree, rules: Rules, name: str) -> RoundInventory:
    """Return the entry that logs outside the layout of a round are."""
    suite = rules.find_other_suite([tree.part])
    if suite:
        raise UnrecognisedDocumentError(OTHER_SUITE.format(suite), document=tree.part)
    round_ = rules.find_round([name])
    entry = Entry(
        round_folder="",
        round=round_,
        submitter="",
        system="",
        folder=tree.part,
        logs=tree.loose,
        loose=tree.part,
    )
    findings = []
    if round_ is None:
        findings.append(FileFinding(tree.part, NO_ROUND))
    return RoundInventory((entry,), tuple(findings))


def read_entry(task: EntryTask) -> tuple[Entry, Logs]:
    """Read the logs of one entry."""
    entry = task.entry
    logs = {}
    for name in entry.logs:
        log = task.tree.log(f"{entry.full_path}/{name}")
        if entry.power:
            log = replace(log, power=_read_power(task, name))
        logs[name] = log
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
    files = {}
    for path in task.entry.power:
        if path.startswith(folder):
            files[path.removeprefix(folder)] = task.tree.chunks(f"{place}/{path}")
    return read_power(files)


def _collect(inventory: RoundInventory, entries: Sequence[ScoredEntry]) -> ScoredRound:
    """Collect entries and findings; what holds for a system is said once, and not for each of its
    benchmarks.
    """
    findings = list(inventory.findings)
    for scored in entries:
        findings += scored.findings
    findings += find_shared_logs(entries)
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
        message = f"cannot be read; the system is unknown: {describe_error(error)}"
        system = System(findings=(message,))
    try:
        return score_entry(entry, logs, system, small_file(entry.scaling_path), rules)
    except (OSError, DocumentError) as error:
        finding = FileFinding(entry.scaling_path, f"cannot be read: {describe_error(error)}")
        # bytes without a factor, as a score without the factor could be wrong
        scored = score_entry(entry, logs, system, b"", rules)
        return replace(scored, scaling_sha256=None, findings=(finding, *scored.findings))
