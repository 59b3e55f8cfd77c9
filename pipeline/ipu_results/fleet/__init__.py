"""Merge the run folders of many machines into one: each is verified in a staging folder and then
appears in one rename.

Data only: nothing of a run is executed, and nothing that a source names is followed out of it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from ipu_results.build import IngestConfig, load_document
from ipu_results.check.conservation import check_expected_tables
from ipu_results.check.gate import gate_results
from ipu_results.errors import (
    CatalogueError,
    DamagedRunError,
    DocumentTooLargeError,
    FetchError,
    IpuResultsError,
)
from ipu_results.fleet.folders import (
    ATTACHMENTS,
    FILES,
    POINTS,
    RECORD,
    Folder,
    LocalFolder,
    RemoteFolder,
    RunFolder,
    Status,
    WebFolder,
    find_run_folders,
    open_folder,
)
from ipu_results.ground.files import describe_error, hide_secrets, sync_to_disk
from ipu_results.ground.limits import MAX_BYTES, MAX_RUN_FILE_BYTES
from ipu_results.link.configurations import build_run_frames
from ipu_results.normalise.by_source import get_run_id
from ipu_results.runner.config import RUNS
from ipu_results.schema.vocabulary import load_vocabulary
from ipu_results.sources.catalogue import COLLECTING, RUN, UNFINISHED, load_catalogue
from ipu_results.submission.refusals import check_text

__all__ = ["CollectedRun", "collect"]

TEXT_FAULTS = ("control-characters", "markup")  # of a text that a page or a terminal acts on
CHUNK = 2**20
LOCK = ".lock"
LOCK_TIMEOUT_S = 60.0  # another collector holds the lock for one rename
WORKERS = 8  # runs that are copied at once

FAULTS = ("conflict", "refused", "failed")
Progress = Callable[[int, int], None]  # runs done, runs found so far


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """What became of one run of one source; `digest` covers all its files, `reason` says why it was
    not taken.

    Status: added; present, with the same files; unfinished; conflict, another run of the same id is
    in place; refused, its files are not those of a run; failed, it could not be read.
    """

    source: str
    run_id: str
    status: Status
    digest: str | None = None
    size: int | None = None
    reason: str | None = None


Staged = tuple[CollectedRun, Path | None]  # the verified copy of a run that is to be added


def collect(
    sources: Sequence[str],
    into: Path = RUNS,
    *,
    conflicts: Path | None = None,
    workers: int = WORKERS,
    progress: Progress = lambda *_: None,
) -> list[CollectedRun]:
    """Add the runs of folders or URLs to `into`, and return what became of each, in the order of
    the sources.

    A run in place is never changed. A run of the same id with other files stays where it is;
    `conflicts` is a folder to copy it to, as `<run_id>-<digest>`. Collectors may run at once. A
    killed one leaves nothing in place half-written; the next one removes what it staged. Raises
    IpuResultsError where `into` cannot be written.
    """
    outcomes: list[CollectedRun] = []
    pool = ThreadPoolExecutor(workers, thread_name_prefix="collect")
    with _open_staging(into) as staging:
        try:
            tasks = [
                task for source in sources for task in _begin_source(source, staging, into, pool)
            ]
            for task in tasks:
                outcome, copy = task.result() if isinstance(task, Future) else task
                outcomes.append(_publish(outcome, copy, into, conflicts) if copy else outcome)
                progress(len(outcomes), len(tasks))
        finally:
            pool.shutdown(cancel_futures=True)
    return outcomes


def _begin_source(
    source: str, staging: Path, into: Path, pool: ThreadPoolExecutor
) -> Iterator[Staged | Future[Staged]]:
    """Yield a task for each run of a source, and what is known at once."""
    failed, holds_runs = CollectedRun(hide_secrets(source), "", "failed"), False
    try:
        folder = open_folder(source)
        for run in find_run_folders(folder):
            holds_runs = True
            where = f"{folder.place.rstrip('/')}/{run.path}" if run.path else folder.place
            if run.fault is None:
                yield pool.submit(_stage, folder, run, where, staging, into)
            else:
                yield CollectedRun(where, run.name, run.status, reason=run.fault), None
        if not holds_runs:
            yield (
                replace(
                    failed, reason="holds no run; name a folder of run folders, or one of them"
                ),
                None,
            )
    except (OSError, IpuResultsError) as error:
        reason = (
            error.message
            if isinstance(error, IpuResultsError)
            else f"cannot be listed: {describe_error(error)}"
        )
        yield replace(failed, reason=hide_secrets(reason)), None


class _SourceError(Exception):
    """A file that the source does not give."""


def _stage(folder: Folder, run: RunFolder, where: str, staging: Path, into: Path) -> Staged:
    """Copy and verify a run; return the copy only if it is to be added."""
    raw = staging / uuid4().hex
    outcome, copy = CollectedRun(where, run.name, "refused"), raw / run.name
    staged: Path | None = None
    same = False
    try:
        copy.mkdir(parents=True)
        digests = {
            name: _copy_file(folder, f"{run.path}/{name}".lstrip("/"), copy / name)
            for name in FILES
        }
        size = sum((copy / name).stat().st_size for name in FILES)
        with suppress(
            OSError, DamagedRunError
        ):  # nothing in place, or no whole run: `_publish` reports it
            same = not _list_differing(into / run.name, digests)
        if not same:  # else it was verified when it was added
            check_run(raw, run.name)
            for path in (*copy.iterdir(), copy):
                sync_to_disk(path)
            staged = copy
        outcome = replace(
            outcome,
            status="present" if same else "added",
            digest=compute_run_digest(digests),
            size=size,
        )
    except _SourceError as error:
        outcome = replace(outcome, status="failed", reason=hide_secrets(str(error)))
    except OSError as error:
        raise DamagedRunError(
            f"cannot be staged: {describe_error(error)}", document=run.name
        ) from error
    except IpuResultsError as error:
        outcome = replace(outcome, reason=str(error))
    finally:
        if staged is None:
            shutil.rmtree(raw, ignore_errors=True)
    return outcome, staged


def _copy_file(folder: Folder, path: str, target: Path) -> str:
    """Copy a file; return its sha256. Raises _SourceError, DocumentTooLargeError, OSError."""
    limit, size = MAX_RUN_FILE_BYTES if target.name in ATTACHMENTS else MAX_BYTES, 0
    with target.open("w+b") as out:
        if isinstance(folder, WebFolder):
            try:
                folder.copy_file(path, out, limit)
            except FetchError as error:
                raise _SourceError(f"{target.name} cannot be read: {error}") from error
        else:
            for chunk in _read_chunks(folder, path, target.name):
                size += len(chunk)
                if size > limit:
                    raise DocumentTooLargeError(
                        f"is larger than {limit:,} bytes", document=target.name
                    )
                out.write(chunk)
        out.seek(0)
        return hashlib.file_digest(out, "sha256").hexdigest()


def _read_chunks(folder: LocalFolder | RemoteFolder, path: str, name: str) -> Iterator[bytes]:
    try:
        with folder.open_file(path) as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except Exception as error:  # those of a remote file system may be of any class
        raise _SourceError(f"{name} cannot be read: {describe_error(error)}") from error


def compute_run_digest(digests: Mapping[str, str]) -> str:
    """Return the SHA-256 of what `sha256sum` prints for the files of a run, in the order of their
    names.
    """
    return hashlib.sha256(
        "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()
    ).hexdigest()


def check_run(raw: Path, run_id: str) -> None:
    """Check the only run under `raw`: every file is in a sidecar with its digest, and the run can
    be ingested.

    Raises IpuResultsError that names document and place.
    """
    documents = load_catalogue(raw)
    if tuple(sorted(document.path.name for document in documents)) != (POINTS, RECORD):
        raise CatalogueError(f"describes other documents than {POINTS} and {RECORD}", place=run_id)
    vocabulary, config = load_vocabulary(), IngestConfig()
    loaded = []
    for document in documents:
        if document.kind != RUN or get_run_id(document) != run_id:
            raise CatalogueError(
                f"is not a document of the run {run_id}", document=document.document_id
            )
        for name in ("title", "note", "licence"):
            _check_text(getattr(document, name), name, document.document_id)
        loaded.append(load_document(document, vocabulary, config))  # compares every digest
        check_expected_tables(document, loaded[-1].parsed)
    attached = {path.name for document in documents for path in document.attached}
    if attached != set(ATTACHMENTS):
        message = (
            f"attaches {', '.join(sorted(attached)) or 'nothing'}, not {' and '.join(ATTACHMENTS)}"
        )
        raise CatalogueError(message, place=run_id)
    build_run_frames(
        [own.normalised for own in loaded], {}, {}
    )  # the record is that of these points
    results, accepted = gate_results([own.normalised for own in loaded])
    if results.empty:
        rejected = [row.message for own in accepted for row in own.rejected]
        raise DamagedRunError(
            f"no point of it makes a result: {', '.join(rejected[:1])}", document=run_id
        )
    for column, texts in results.select_dtypes(exclude="number").items():
        for text in {text for text in texts if isinstance(text, str)}:
            _check_text(text, str(column), run_id)
    if len(origins := sorted(set(results["origin"]))) > 1:
        raise DamagedRunError(f"mixes origins: {', '.join(origins)}", document=run_id)


def _check_text(text: str, name: str, document: str) -> None:
    """Raise DamagedRunError for a text that hides something, or that a terminal or a page would act
    on.
    """
    for fault in check_text(text, name, len(text)):
        if fault.reason in TEXT_FAULTS:
            raise DamagedRunError(f"{name} {fault.message}", document=document)


def _publish(outcome: CollectedRun, copy: Path, into: Path, conflicts: Path | None) -> CollectedRun:
    """Rename a verified run into place, unless its id is taken."""
    target, unfinished = into / outcome.run_id, into / f"{outcome.run_id}{UNFINISHED}"
    try:
        with _lock(into):
            if os.path.lexists(target):
                reason = _compare_in_place(target, copy)
            elif unfinished.is_dir():
                reason = f"{unfinished.name} is in {into}: finish or remove that one"
            else:
                os.rename(copy, target)
                sync_to_disk(into)
                return outcome
        if reason is None:
            return replace(outcome, status="present")
        if conflicts is not None:
            _keep_apart(copy, conflicts / f"{outcome.run_id}-{(outcome.digest or '')[:12]}")
            reason += f"; kept in {conflicts}"
        return replace(outcome, status="conflict", reason=reason)
    except OSError as error:
        raise DamagedRunError(
            f"cannot be written: {describe_error(error)}", place=str(target)
        ) from error
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)


def _compare_in_place(target: Path, copy: Path) -> str | None:
    """Return what is in place instead of the copied run, None where it is the same."""
    try:
        differing = _list_differing(
            target, {name: _hash((copy / name).open("rb")) for name in FILES}
        )
    except (OSError, DamagedRunError) as error:
        what = (
            error.message
            if isinstance(error, DamagedRunError)
            else f"cannot be read: {describe_error(error)}"
        )
        return f"{target} is in place and {what}"
    if not differing:
        return None
    return (
        f"another run of this id is in {target.parent}: {', '.join(differing)} differ; the source"
        " keeps its own"
    )


def _list_differing(target: Path, digests: Mapping[str, str]) -> list[str]:
    """List the files of the run in place that differ.

    Raises OSError, DamagedRunError where it is not whole.
    """
    if target.is_symlink():
        raise DamagedRunError("is a link")
    folder = LocalFolder(str(target))
    if {name for name in folder.list_entries("") if not name.startswith(".")} != set(FILES):
        raise DamagedRunError("is not a whole run")
    return [name for name in FILES if digests[name] != _hash(folder.open_file(name))]


def _hash(file: BufferedReader) -> str:
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _keep_apart(copy: Path, target: Path) -> None:
    """Copy a run that was not taken to a folder of its own, unless it is there already."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{uuid4().hex}.part")
    try:
        shutil.copytree(copy, draft)
        os.rename(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _lock(into: Path) -> Iterator[None]:
    """Hold the lock of the folder, which the system releases if the process dies."""
    lock = FileLock(into / COLLECTING / LOCK, timeout=LOCK_TIMEOUT_S, preserve_lock_file=True)
    try:
        lock.acquire()
    except Timeout as error:
        message = f"another collector has held its lock for {LOCK_TIMEOUT_S:g} s; try again"
        raise DamagedRunError(message, place=str(into)) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _open_staging(into: Path) -> Iterator[Path]:
    """Give a staging folder of our own, and remove those of dead collectors."""
    own = into / COLLECTING / uuid4().hex
    alive = FileLock(own.with_suffix(LOCK), preserve_lock_file=True)
    try:
        (into / COLLECTING).mkdir(parents=True, exist_ok=True)
        with _lock(into):
            _remove_dead(into / COLLECTING)
            own.mkdir()
            alive.acquire()
    except OSError as error:
        raise DamagedRunError(
            f"cannot be written: {describe_error(error)}", place=str(into)
        ) from error
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        Path(alive.lock_file).unlink(missing_ok=True)
        alive.release()


def _remove_dead(folder: Path) -> None:
    for path in folder.iterdir():
        if not path.is_dir() or path.is_symlink():
            continue
        lock = FileLock(path.with_suffix(LOCK), timeout=0, preserve_lock_file=True)
        try:
            lock.acquire()
        except Timeout:
            continue  # its collector is alive
        shutil.rmtree(path, ignore_errors=True)
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
