"""Replace the folder of a release as a whole.

A new release is written to a hidden work folder next to the target, brought to disk, and put in
place by two renames: the old release moves into the work folder, then the new one moves to the
target. Between the two the target is missing for a moment. A process killed there leaves both
releases whole; the next `publish`, `verify` or `diff` puts the old one back
(`finish_interrupted_publish`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb

from ipu_results.errors import ReleaseError, WarehouseError
from ipu_results.kit.files import sync_to_disk
from ipu_results.record.store.transaction import lock_folder
from ipu_results.release.files import CHECKSUMS, RELEASE, SIGNATURE, list_files, read_checksums
from ipu_results.schema import DETAIL

RECOVERY_WAIT_S = 10.0  # for `verify` and `diff`, which have no option for it


def get_work_folder(out: Path) -> Path:
    """Return the hidden folder next to a release in which the next one is prepared."""
    return out.parent / f".{out.name}.publishing"


@contextmanager
def replace_release(out: Path, wait_s: float) -> Iterator[Path]:
    """Yield an empty folder that becomes `out` when the block ends without an error.

    Raises ReleaseError if `out` holds anything but a release, or another process publishes there
    longer than `wait_s`.
    """
    # a link stays, and the folder that it leads to is replaced
    out = Path(os.path.realpath(out))
    work = get_work_folder(out)
    new = work / "new"
    # before the lock, which makes a folder beside `out`: what is no release gets none
    _assert_release(out)
    with _lock(out, wait_s):
        _recover(out)
        # another process may have changed it before the lock
        names = _assert_release(out)
        if names:
            digests, _ = read_checksums(out / CHECKSUMS)
            belonging = {CHECKSUMS, SIGNATURE, *digests}
            # what someone else put there would be lost
            for name in sorted(names - belonging):
                message = f"holds {name}, which does not belong to the release there"
                raise ReleaseError(message, place=str(out))
        try:
            (new / DETAIL).mkdir(parents=True)
            yield new
            # before the renames, which may reach the disk first
            for path in list_files(new).values():
                sync_to_disk(path)
            sync_to_disk(new / DETAIL)
            sync_to_disk(new)
            if out.exists():
                os.replace(out, work / "old")
            os.replace(new, out)
        except (OSError, duckdb.Error) as error:  # DuckDB has its own error for a full disk
            message = f"could not be written, the old content stays: {error}"
            raise ReleaseError(message, place=str(out)) from error
        finally:
            # removes the old release, or puts it back if the new one is not in its place
            _recover(out)
        sync_to_disk(out.parent)


def finish_interrupted_publish(out: Path) -> None:
    """Put the old release back if a publish was killed between its two renames.

    Raises ReleaseError if that is not possible, or if another process is at work there for too
    long.
    """
    out = Path(os.path.realpath(out))
    if _is_interrupted(out):
        with _lock(out, RECOVERY_WAIT_S):
            _recover(out)


def _assert_release(out: Path) -> set[str]:
    """Raise ReleaseError unless the folder is absent, empty or a release; return the names of its
    files.

    It is safe while another process publishes there.
    """
    try:
        names = set(list_files(out))
    except FileNotFoundError:
        return set()
    except NotADirectoryError as error:
        raise ReleaseError("is not a folder", place=str(out)) from error
    if names and not {RELEASE, CHECKSUMS} <= names:
        message = "is not empty and not a release; choose another folder with --out"
        raise ReleaseError(message, place=str(out))
    return names


@contextmanager
def _lock(out: Path, wait_s: float) -> Iterator[None]:
    # The stack keeps the block out of the `try`: an error of the block may be a WarehouseError too.
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(get_work_folder(out), wait_s))
        except WarehouseError as error:
            raise ReleaseError(error.message, place=str(out)) from error
        yield


def _is_interrupted(out: Path) -> bool:
    """Return whether the old release is in the work folder and nothing is in its place."""
    # an empty folder is no release
    is_in_place = out.exists() and any(out.iterdir())
    return (get_work_folder(out) / "old").exists() and not is_in_place


def _recover(out: Path) -> None:
    """Put an old release back that a failure or a kill left out of its place, and remove all other
    remains.
    """
    work = get_work_folder(out)
    if _is_interrupted(out):
        try:
            os.replace(work / "old", out)
        except OSError as error:
            message = (
                f"the old release is in {work / 'old'}, the next publish puts it back: {error}"
            )
            raise ReleaseError(message, place=str(out)) from error
    # what cannot be removed now is removed by the next publish
    for name in ("new", "old"):
        shutil.rmtree(work / name, ignore_errors=True)
