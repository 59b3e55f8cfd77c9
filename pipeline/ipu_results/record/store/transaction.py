"""Publish a folder of files all or nothing, even if the process is killed or others run at the same
time.

Files are built in a staging folder inside the target. Once all are complete and on disk, a commit
file names them. From then on the next process finishes the renames; before that it discards the
staging folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ipu_results.errors import WarehouseError
from ipu_results.kit.files import DamagedCommitWarning, open_regular_file, sync_to_disk
from ipu_results.record.store.files import COMMIT, LOCK, STAGING

FILE_NAME = re.compile(r"(?:\w+/)?\w[\w.-]*", re.ASCII)
"""A file of a build: at the top, or in one folder."""


@contextmanager
def lock_folder(target: Path, wait_s: float) -> Iterator[None]:
    """Hold the target's lock, which the system releases if the process dies.

    Raises WarehouseError if it is busy.
    """
    lock = FileLock(target / LOCK, timeout=wait_s)
    try:
        target.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        message = (
            f"another process has been building it for more than {wait_s:g} s; try again, or"
            " wait with --wait"
        )
        raise WarehouseError(message, place=str(target)) from error
    except OSError as error:
        raise WarehouseError(f"cannot be written: {error.strerror}", place=str(target)) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def stage_files(target: Path) -> Iterator[Path]:
    """Give a fresh staging folder; its files replace those of the target if the block ends without
    an error.

    The caller holds the lock. A failure before all files are complete leaves the target unchanged.
    A failure during the renames after that raises WarehouseError, and the next command finishes
    them.
    """
    recover(target)
    staging = target / STAGING
    staging.mkdir()  # inside the target: a rename must not cross file systems
    try:
        yield staging
        _commit(staging)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    try:
        recover(target)
    except OSError as error:
        message = (
            "the new build is complete but not all in place; the next command finishes it:"
            f" {error.strerror}"
        )
        raise WarehouseError(message, place=str(target)) from error


def recover(target: Path) -> None:
    """Finish the renames of a committed staging folder, discard an uncommitted one.

    The caller holds the lock.

    A damaged commit file commits nothing: a DamagedCommitWarning says so, and the folder is
    discarded.
    """
    staging = target / STAGING
    if os.path.lexists(staging / COMMIT):
        _finish_renames(staging, target)
    # a link is removed, and not what it leads to
    if staging.is_dir() and not staging.is_symlink():
        shutil.rmtree(staging)
    else:
        staging.unlink(missing_ok=True)


def _finish_renames(staging: Path, target: Path) -> None:
    try:
        names = _read_commit(staging)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"{staging / COMMIT} is damaged ({reason}); the unfinished build was discarded"
        warnings.warn(message, DamagedCommitWarning, stacklevel=3)
        return
    for name in names:
        # those that are gone were moved before the process died
        if (staging / name).exists():
            (target / name).parent.mkdir(exist_ok=True)
            os.replace(staging / name, target / name)
    _sync_folders(target, names)


def _sync_folders(root: Path, names: Iterable[str]) -> None:
    """Flush the names in the folders that hold these files."""
    for folder in {(root / name).parent for name in names}:
        sync_to_disk(folder)


def _read_commit(staging: Path) -> list[str]:
    """Return the names in a commit file.

    Raises ValueError unless it lists plain names of regular files, of which some are in a folder.
    """
    with open_regular_file(staging / COMMIT) as file:
        names = json.loads(file.read().decode("utf-8"))
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError("it is not a list of file names")
    for name in names:
        if not FILE_NAME.fullmatch(name) or name == COMMIT:
            raise ValueError(f"{name!r} is not the name of a file of a build")
        path = staging / name
        is_link = path.parent.is_symlink() or path.is_symlink()
        if is_link or (path.exists() and not path.is_file()):
            raise ValueError(f"{name!r} is not a regular file")
    return names


def _commit(staging: Path) -> None:
    """Bring every file to disk, then name them in a commit file that appears whole."""
    files = sorted(path for path in staging.rglob("*") if path.is_file())
    # contents first, then the names of the files, then the one name that counts
    for path in files:
        sync_to_disk(path)
    names = [path.relative_to(staging).as_posix() for path in files]
    _sync_folders(staging, names)
    draft = staging / f"{COMMIT}.part"
    draft.write_text(json.dumps(names), encoding="utf-8")
    sync_to_disk(draft)
    os.replace(draft, staging / COMMIT)
    sync_to_disk(staging)
