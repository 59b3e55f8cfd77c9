"""Publish a folder of files all or nothing, whatever kills the process and whoever else is at work.

Files are built in a staging folder inside the target. Once each is whole and on disk, a commit file names them; from
then on the next process finishes the renames, before it the next process throws the staging folder away.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ipu_results.errors import WarehouseError

LOCK = ".lock"
STAGING = ".staging"
COMMIT = "commit.json"


@contextmanager
def lock_folder(target: Path, wait_s: float) -> Iterator[None]:
    """Hold the target's lock, released by the system when the process dies. Raises WarehouseError when it is busy."""
    lock = FileLock(target / LOCK, timeout=wait_s)
    try:
        target.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        if isinstance(error, Timeout):
            raise WarehouseError(_busy(wait_s), place=str(target)) from error
        raise WarehouseError(f"cannot be written: {error.strerror}", place=str(target)) from error
    try:
        yield
    finally:
        lock.release()


def _busy(wait_s: float) -> str:
    return f"another process has been building it for more than {wait_s:g} s; try again, or wait with --wait"


@contextmanager
def stage_files(target: Path) -> Iterator[Path]:
    """A fresh staging folder; its files replace those of the target when the block ends without an error.

    The caller holds the lock. A failure before all files are whole leaves the target as it was; one in the renames
    after that raises a WarehouseError, and the next command finishes them.
    """
    recover(target)
    staging = target / STAGING
    staging.mkdir()
    try:
        yield staging
        _commit(staging)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    try:
        recover(target)
    except OSError as error:
        message = f"the new build is whole but not all in place; the next command finishes it: {error.strerror}"
        raise WarehouseError(message, place=str(target)) from error


def is_pending(target: Path) -> bool:
    """Whether a process died here in the short time between its commit and its last rename."""
    return (target / STAGING / COMMIT).exists()


def recover(target: Path) -> None:
    """Finish the renames of a committed staging folder, discard one that was not. The caller holds the lock."""
    staging = target / STAGING
    commit = staging / COMMIT
    if commit.exists():
        for name in json.loads(commit.read_text(encoding="utf-8")):
            if (staging / name).exists():
                os.replace(staging / name, target / name)
        sync_to_disk(target)
    if staging.exists():
        shutil.rmtree(staging)


def _commit(staging: Path) -> None:
    """Bring every file to disk, then name them in a commit file that appears whole."""
    names = sorted(path.name for path in staging.iterdir())
    for name in names:
        sync_to_disk(staging / name)
    draft = staging / f"{COMMIT}.part"
    draft.write_text(json.dumps(names), encoding="utf-8")
    sync_to_disk(draft)
    os.replace(draft, staging / COMMIT)
    sync_to_disk(staging)


def sync_to_disk(path: Path) -> None:
    """Bring a file, or the names in a folder, to disk."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
