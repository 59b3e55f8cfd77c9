"""Put a folder of files in the place of another in one step, whatever kills the process and whoever else is at work.

All work is done in a hidden folder beside the target. Where the system can exchange two names in one step the target
is whole at every moment; elsewhere it is missing for as long as two renames take, and the next run puts it back.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipu_results.errors import ReleaseError, WarehouseError
from ipu_results.release.names import RELEASE
from ipu_results.release.sums import SUMS, read_sums
from ipu_results._util.files import sync_to_disk
from ipu_results.store.transaction import lock_folder

AT_FDCWD, RENAME_EXCHANGE = -100, 2


def work_folder(out: Path) -> Path:
    return out.parent / f".{out.name}.publishing"


@contextmanager
def replacing(out: Path, wait_s: float) -> Iterator[Path]:
    """A fresh folder that takes the target's place when the block ends without an error.

    Raises ReleaseError where the target is something else than a release, and where another process publishes there.
    """
    out = Path(os.path.realpath(out))
    work = work_folder(out)
    _assert_release(out)
    with _locked(work, wait_s, out):
        _recover(out, work)
        _assert_replaceable(out)
        new = work / "new"
        try:
            with writing(out):
                new.mkdir()
            yield new
            with writing(out):
                for path in new.iterdir():
                    sync_to_disk(path)
                sync_to_disk(new)
                _swap(new, out, work / "old")
            _settle(out)
        finally:
            _recover(out, work)


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Raises ReleaseError where the system refuses to write, as long as the target is still what it was."""
    try:
        yield
    except OSError as error:
        raise ReleaseError(f"could not be written, what was there stays: {error}", place=str(out)) from error


def _assert_replaceable(out: Path) -> None:
    """Raises ReleaseError unless the folder is absent, empty, or holds a release and nothing else."""
    _assert_release(out)
    names = {path.name for path in out.iterdir()} if out.exists() else set()
    if names and (foreign := sorted(names - {SUMS, *read_sums(out / SUMS).digests})):
        raise ReleaseError(f"holds {foreign[0]}, which is no part of the release there", place=str(out))


def _assert_release(out: Path) -> None:
    """The part of it that may be asked while another process publishes there."""
    try:
        names = {path.name for path in out.iterdir()}
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise ReleaseError("is no folder", place=str(out)) from error
    if names and not {RELEASE, SUMS} <= names:
        raise ReleaseError("is not empty and holds no release; name another folder with --out", place=str(out))


@contextmanager
def _locked(work: Path, wait_s: float, out: Path) -> Iterator[None]:
    try:
        with lock_folder(work, wait_s):
            yield
    except WarehouseError as error:
        if error.place != str(work):
            raise
        raise ReleaseError(error.message, place=str(out)) from error


def _recover(out: Path, work: Path) -> None:
    """What a failure or a killed process left: an old release out of its place goes back, all else goes."""
    old = work / "old"
    try:
        if old.exists() and _is_vacant(out):
            os.replace(old, out)
    except OSError as error:
        message = f"what was there is in {old}, the next publish puts it back: {error}"
        raise ReleaseError(message, place=str(out)) from error
    for path in (work / "new", old):
        shutil.rmtree(path, ignore_errors=True)


def _is_vacant(out: Path) -> bool:
    return not out.exists() or not any(out.iterdir())


def _swap(new: Path, out: Path, old: Path) -> None:
    """Where it ends between the two renames, `_recover` puts the old folder back."""
    if _is_vacant(out):
        os.replace(new, out)
    elif not _exchange(new, out):
        os.replace(out, old)
        os.replace(new, out)


def _settle(out: Path) -> None:
    try:
        sync_to_disk(out.parent)
    except OSError as error:
        raise ReleaseError(f"is the new release, which may not be on disk yet: {error}", place=str(out)) from error


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    found = rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)
    return bool(found == 0)
