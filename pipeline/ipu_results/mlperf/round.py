"""Score a whole round: find its entries, read their logs in a pool of workers, and score each entry here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from ipu_results.errors import DocumentError, UnrecognisedDocumentError
from ipu_results.ground.parallel import ProcessPool, TaskPool
from ipu_results.mlperf.archive import Progress, has_archive_suffix, open_local, read_archive
from ipu_results.mlperf.entries import POWER_FOLDER, Entry, Finding, Inventory, System, find_entries, read_system
from ipu_results.mlperf.log import Log, read_log
from ipu_results.mlperf.power import Power, read_power
from ipu_results.mlperf.rules import Rules, load_rules
from ipu_results.mlperf.score import ScoredEntry, find_shared_logs, score_entry
from ipu_results.mlperf.tree import Listing, LocalTree, Tree, is_url, open_file, open_tree, read_small_file

Logs = Mapping[str, Log]  # by file name
Powers = Mapping[str, Power]  # by file name of the log

HERE = ProcessPool(1)


@dataclass(frozen=True, slots=True)
class EntryTask:
    """The logs of one entry, for a worker, with what else is in its folder and about its system."""

    tree: Tree
    entry: Entry
    digests: bool


@dataclass(frozen=True, slots=True)
class ScoredRound:
    """All entries under one path, and the findings about it and them."""

    entries: tuple[ScoredEntry, ...]
    findings: tuple[Finding, ...]


def is_single_archive(path: str) -> bool:
    """Return whether `path` is read as one stream; `tar://…::…` reaches into an archive as into a folder."""
    return has_archive_suffix(path) and not os.path.isdir(path) and ("::" not in path or os.path.exists(path))


def local_root(path: str) -> str | None:
    """Return the local folder or file that `path` is read from, None where it is elsewhere."""
    if not _is_remote(path):
        return path
    tree = open_tree(path) if not has_archive_suffix(path) else None
    return tree.root if isinstance(tree, LocalTree) else None


def score_path(
    path: str,
    pool: TaskPool = HERE,
    *,
    digests: bool = False,
    round_: str | None = None,
    missing: Iterable[str] = (),
    progress: Progress = lambda *_: None,
) -> ScoredRound:
    """Score every entry under a folder or URL, or in a tar archive, which is read in one pass and without `pool`.

    `round_` is the round of a checkout whose name has none, `digests` adds the sha256 of each log, `progress` counts
    entries or megabytes of an archive. `missing` are logs that are left out as if their content were absent; an entry
    with such a log has no score. Raises UnrecognisedDocumentError without any entry, DocumentTooLargeError and
    DamagedDocumentError for an archive, and what the pool raises.
    """
    if not is_single_archive(path):
        tree = open_tree(path) if _is_remote(path) else LocalTree(os.path.abspath(path) if path else path)
        return score_tree(tree, pool, digests=digests, round_=round_, missing=missing, progress=progress)
    contents = read_archive(path, open_file if _is_remote(path) else open_local, digests=digests, progress=progress)
    rules, name = load_rules(), round_ or PurePosixPath(path).name
    inventory = take_inventory(contents.listing(), rules, name, missing)
    scored = []
    for entry in inventory.entries:
        logs = {log: contents.log(f"{entry.full_path}/{log}") for log in entry.logs}
        powers = _read_powers(entry, lambda path: iter((contents.small_file(path) or b"",)))
        scored.append(_score(entry, logs, powers, contents.small_file, rules))
    return _collect(inventory, scored)


def score_tree(
    tree: Tree,
    pool: TaskPool = HERE,
    *,
    digests: bool = False,
    round_: str | None = None,
    missing: Iterable[str] = (),
    progress: Progress = lambda *_: None,
) -> ScoredRound:
    """Score every entry under `tree`, as `score_path` does."""
    rules = load_rules()
    inventory = take_inventory(tree.listing(), rules, round_ or tree.name, missing)
    tasks = [EntryTask(tree, entry, digests) for entry in inventory.entries]
    scored: dict[Entry, ScoredEntry] = {}
    small_file = partial(read_small_file, tree)
    with closing(pool.map_unordered(read_entry, tasks, _data_check(tasks))) as results:
        for done, (entry, logs, powers) in enumerate(results, start=1):
            # Scored at once: thousands of logs with their evaluations need not be in memory.
            scored[entry] = _score(entry, logs, powers, small_file, rules)
            progress(done, len(tasks))
    return _collect(inventory, [scored[entry] for entry in inventory.entries])


def take_inventory(listing: Listing, rules: Rules, name: str, missing: Iterable[str] = ()) -> Inventory:
    """Find the entries of a listing. Raises UnrecognisedDocumentError without any."""
    inventory = find_entries(listing.paths, rules, name, missing)
    findings = (*listing.findings, *inventory.findings)
    if not inventory.entries:
        reasons = "; ".join(str(finding) for finding in findings[:3])
        message = f"has no entry <submitter>/results/<system>/<benchmark>{f' ({reasons})' if reasons else ''}"
        raise UnrecognisedDocumentError(message, document=name)
    return Inventory(inventory.entries, findings)


def read_entry(task: EntryTask) -> tuple[Entry, Logs, Powers]:
    """Read the logs of one entry, in whatever process."""
    paths = {name: f"{task.entry.full_path}/{name}" for name in task.entry.logs}
    logs = {name: read_log(task.tree.chunks(path), digest=task.digests) for name, path in paths.items()}
    return task.entry, logs, _read_powers(task.entry, task.tree.chunks)


def _read_powers(entry: Entry, chunks: Callable[[str], Iterator[bytes]]) -> Powers:
    """Read the power of each log of an entry that has power logs, none for another entry."""
    if not entry.power:
        return {}
    files: dict[str, list[str]] = {}
    for path in entry.power:
        folder, _, name = path.partition("/")
        files.setdefault(folder, []).append(name)
    return {
        log: read_power(
            (name, chunks(f"{entry.full_path}/{POWER_FOLDER}/{folder}/{name}")) for name in files.get(folder, ())
        )
        for log in entry.logs
        for folder in [log.split(".")[0]]
    }


def _data_check(tasks: Iterable[EntryTask]) -> Callable[[], str] | None:
    """Return a check for workers: one that does not see the data would find every log to be missing."""
    task = next((task for task in tasks if task.entry.logs), None)
    return None if task is None else partial(_explain_unseen, task)


def _explain_unseen(task: EntryTask) -> str:
    """Return why the first log of an entry cannot be read on this machine; empty where it can."""
    try:
        for _ in task.tree.chunks(f"{task.entry.full_path}/{task.entry.logs[0]}"):
            break
    except OSError as error:
        return f"it does not see the data: {error}"
    return ""


def _collect(inventory: Inventory, entries: Sequence[ScoredEntry]) -> ScoredRound:
    """Collect entries and findings; what holds for a system is said once, and not for each of its benchmarks."""
    findings = [*inventory.findings, *(finding for scored in entries for finding in scored.findings)]
    return ScoredRound(tuple(entries), tuple(dict.fromkeys([*findings, *find_shared_logs(entries)])))


def _score(
    entry: Entry, logs: Logs, powers: Powers, small_file: Callable[[str], bytes | None], rules: Rules
) -> ScoredEntry:
    try:
        system = read_system(small_file(entry.system_path), rules)
    except (OSError, DocumentError) as error:
        system = System(findings=(f"cannot be read; the system is unknown: {_describe(error)}",))
    scaling, findings = None, []
    try:
        scaling = small_file(entry.scaling_path)
    except (OSError, DocumentError) as error:
        scaling, findings = b"", [Finding(entry.scaling_path, f"cannot be read: {_describe(error)}")]
    scored = score_entry(entry, logs, system, scaling, rules, powers)
    return replace(scored, scaling_sha256=None, findings=(*findings, *scored.findings)) if findings else scored


def _describe(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _is_remote(path: str) -> bool:
    return is_url(path) and not os.path.exists(path)
