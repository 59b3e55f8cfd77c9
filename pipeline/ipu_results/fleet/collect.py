"""Copy runs from many folders into one: each is verified in a staging folder and then appears in one rename."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal
from uuid import uuid4

from filelock import FileLock, Timeout

from ipu_results.errors import DamagedRunError, DocumentTooLargeError, IpuResultsError
from ipu_results.fleet.folders import (
    ATTACHMENTS,
    CHUNK,
    FILES,
    Folder,
    LocalFolder,
    RunFolder,
    find_run_folders,
    open_folder,
)
from ipu_results.fleet.verification import check_run, compute_run_digest
from ipu_results.ground.files import sync_to_disk
from ipu_results.ground.limits import MAX_BYTES, MAX_RUN_FILE_BYTES
from ipu_results.ground.remote import describe_error, hide_secrets
from ipu_results.runner import RUNS
from ipu_results.sources.catalogue import COLLECTING, UNFINISHED

LOCK = ".lock"
LOCK_TIMEOUT_S = 60.0  # another collector holds the lock for one rename
WORKERS = 8  # runs that are copied at once

Status = Literal["added", "present", "unfinished", "conflict", "refused", "failed"]
FAULTS = ("conflict", "refused", "failed")
Progress = Callable[[int, int], None]  # runs done, runs found so far


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """What became of one run of one source; `digest` covers all its files, `reason` says why it was not taken.

    Status: added; present, with the same files; unfinished; conflict, another run of the same id is in place; refused,
    its files are not those of a run; failed, it could not be read.
    """

    source: str
    run_id: str
    status: Status
    digest: str | None = None
    size: int | None = None
    reason: str | None = None


def collect(
    sources: Sequence[str],
    into: Path = RUNS,
    *,
    conflicts: Path | None = None,
    workers: int = WORKERS,
    progress: Progress = lambda *_: None,
) -> list[CollectedRun]:
    """Add the runs of folders or URLs to `into`, and return what became of each, in the order of the sources.

    A run in place is never changed. A run of the same id with other files stays where it is; `conflicts` is a folder to
    copy it to, as `<run_id>-<digest>`. Collectors may run at once. A killed one leaves nothing in place half-written;
    the next one removes what it staged. Raises IpuResultsError where `into` cannot be written.
    """
    outcomes: list[CollectedRun] = []
    with _open_staging(into) as staging, _open_pool(workers) as pool:
        tasks: list[CollectedRun | Future[_Staged | CollectedRun]] = []
        for source in sources:
            tasks += _begin_source(source, staging, into, pool)
        for task in tasks:
            staged = task.result() if isinstance(task, Future) else task
            outcomes.append(staged if isinstance(staged, CollectedRun) else _publish(staged, into, conflicts))
            progress(len(outcomes), len(tasks))
    return outcomes


@dataclass(frozen=True, slots=True)
class _Staged:
    """A verified copy of a run."""

    source: str
    run_id: str
    folder: Path
    digest: str
    size: int

    def describe(self, status: Status, reason: str | None = None) -> CollectedRun:
        return CollectedRun(self.source, self.run_id, status, self.digest, self.size, reason)


def _begin_source(
    source: str, staging: Path, into: Path, pool: ThreadPoolExecutor
) -> Iterator[CollectedRun | Future[_Staged | CollectedRun]]:
    """Yield a task for each run of a source, and what is known at once."""
    place, holds_runs = hide_secrets(source), False
    try:
        folder = open_folder(source)
        for run in find_run_folders(folder):
            holds_runs = True
            where = f"{folder.place.rstrip('/')}/{run.path}" if run.path else folder.place
            if run.fault is not None:
                yield CollectedRun(where, run.name, "unfinished" if run.unfinished else "refused", reason=run.fault)
            else:
                yield pool.submit(_stage, folder, run, where, staging, into)
        if not holds_runs:
            yield CollectedRun(place, "", "failed", reason="holds no run; name a folder of run folders, or one of them")
    except (OSError, IpuResultsError) as error:
        reason = error.message if isinstance(error, IpuResultsError) else f"cannot be listed: {describe_error(error)}"
        yield CollectedRun(place, "", "failed", reason=hide_secrets(reason))


def _stage(folder: Folder, run: RunFolder, where: str, staging: Path, into: Path) -> _Staged | CollectedRun:
    """Copy and verify a run."""
    raw = staging / uuid4().hex
    target = raw / run.name
    if missing := sorted(set(FILES) - set(run.entries)):
        return CollectedRun(where, run.name, "unfinished", reason=f"is incomplete: it has no {missing[0]}")
    try:
        target.mkdir(parents=True)
        digests, size = {}, 0
        for name in FILES:
            digests[name], length = _copy_file(folder, f"{run.path}/{name}".lstrip("/"), target / name)
            size += length
        digest = compute_run_digest(digests)
        if _hash_in_place(into, run.name) == digest:  # it was verified when it was added
            return _drop(raw, CollectedRun(where, run.name, "present", digest, size))
        check_run(raw, run.name)
        for path in (*target.iterdir(), target):
            sync_to_disk(path)
    except DocumentTooLargeError as error:
        return _drop(raw, CollectedRun(where, run.name, "refused", reason=str(error)))
    except _SourceError as error:
        return _drop(raw, CollectedRun(where, run.name, "failed", reason=hide_secrets(str(error))))
    except OSError as error:
        raise DamagedRunError(f"cannot be staged: {describe_error(error)}", document=run.name) from error
    except IpuResultsError as error:
        return _drop(raw, CollectedRun(where, run.name, "refused", reason=str(error)))
    return _Staged(where, run.name, target, digest, size)


class _SourceError(Exception):
    """A file that the source does not give."""


def _copy_file(folder: Folder, path: str, target: Path) -> tuple[str, int]:
    """Copy a file; return its sha256 and length. Raises _SourceError, DocumentTooLargeError, OSError."""
    digest, size = hashlib.sha256(), 0
    limit = MAX_RUN_FILE_BYTES if target.name in ATTACHMENTS else MAX_BYTES
    with target.open("wb") as out:
        for chunk in _read_chunks(folder, path, target.name):
            size += len(chunk)
            if size > limit:
                raise DocumentTooLargeError(f"is larger than {limit:,} bytes", document=target.name)
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest(), size


def _read_chunks(folder: Folder, path: str, name: str) -> Iterator[bytes]:
    try:
        with folder.open_file(path) as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except Exception as error:  # those of a remote file system may be of any class
        raise _SourceError(f"{name} cannot be read: {describe_error(error)}") from error


def _drop(folder: Path, outcome: CollectedRun) -> CollectedRun:
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _publish(staged: _Staged, into: Path, conflicts: Path | None) -> CollectedRun:
    """Rename a verified run into place, unless its id is taken."""
    target = into / staged.run_id
    try:
        with _lock(into):
            if os.path.lexists(target):
                reason = _compare_in_place(into, staged)
            elif (into / f"{staged.run_id}{UNFINISHED}").is_dir():
                reason = f"{staged.run_id}{UNFINISHED} is in {into}: finish or remove that one"
            else:
                os.rename(staged.folder, target)
                sync_to_disk(into)
                return staged.describe("added")
        if reason is None:
            return staged.describe("present")
        if conflicts is not None:
            _keep_apart(staged, conflicts)
            reason += f"; kept in {conflicts}"
        return staged.describe("conflict", reason)
    except OSError as error:
        raise DamagedRunError(f"cannot be written: {describe_error(error)}", place=str(target)) from error
    finally:
        shutil.rmtree(staged.folder.parent, ignore_errors=True)


def _hash_in_place(into: Path, run_id: str) -> str | None:
    """Return the digest of the run in place, None for a missing or unfinished one."""
    try:
        return compute_run_digest(_hash_files(into, run_id))
    except (OSError, DamagedRunError):
        return None


def _hash_files(into: Path, run_id: str) -> dict[str, str]:
    """Return the sha256 of each file of the run in place. Raises OSError, DamagedRunError where it is not whole."""
    folder = LocalFolder(str(into))
    if (into / run_id).is_symlink():
        raise DamagedRunError("is a link", place=str(into / run_id))
    if {name for name in folder.list_entries(run_id) if not name.startswith(".")} != set(FILES):
        raise DamagedRunError("is not a whole run", place=str(into / run_id))
    return {name: _hash(folder.open_file(f"{run_id}/{name}")) for name in FILES}


def _compare_in_place(into: Path, staged: _Staged) -> str | None:
    """Return what is in place instead of the staged run, None where it is the same."""
    try:
        digests = _hash_files(into, staged.run_id)
    except (OSError, DamagedRunError) as error:
        what = error.message if isinstance(error, DamagedRunError) else f"cannot be read: {describe_error(error)}"
        return f"{into / staged.run_id} is in place and {what}"
    differ = [name for name in FILES if digests[name] != _hash((staged.folder / name).open("rb"))]
    if not differ:
        return None
    return f"another run of this id is in {into}: {', '.join(differ)} differ; the source keeps its own"


def _hash(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    with file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _keep_apart(staged: _Staged, conflicts: Path) -> None:
    """Copy a run that was not taken to a folder of its own, unless it is there already."""
    target = conflicts / f"{staged.run_id}-{staged.digest[:12]}"
    if target.exists():
        return
    conflicts.mkdir(parents=True, exist_ok=True)
    draft = conflicts / f".{uuid4().hex}.part"
    try:
        shutil.copytree(staged.folder, draft)
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
        raise DamagedRunError(f"cannot be written: {describe_error(error)}", place=str(into)) from error
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


@contextmanager
def _open_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="collect")
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
