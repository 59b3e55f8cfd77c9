"""Other sweeps on this machine: two at once slow each other down, and neither could know why.

Each sweep holds a lock on a file of its own in a folder that all users share. The system releases the lock when the
process dies, so a file without a holder belongs to a dead sweep.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ipu_results.errors import DamagedRunError

VARIABLE = "IPU_RESULTS_LOCKS"
FOLDER = "ipu-results-sweeps"
SUFFIX = ".lock"
# A sweep that checks whether another one is alive holds its lock for a moment: waiting must outlast that.
ANNOUNCE_S = 5.0
CHECK_S = 0.05


class ConcurrentSweeps:
    """The sweeps other than the one of this name. `reason` says why they cannot be known, None when they can."""

    def __init__(self, folder: Path, run_id: str, reason: str | None = None) -> None:
        self._folder, self._run_id, self.reason = folder, run_id, reason

    def list_others(self) -> list[str]:
        """Return the run ids of the other living sweeps, in order; remove files of dead ones where that is allowed."""
        if self.reason:
            return []
        paths = (path for path in sorted(self._folder.glob(f"*{SUFFIX}")) if path.stem != self._run_id)
        return [path.stem for path in paths if _is_alive(path)]


def _is_alive(path: Path) -> bool:
    lock = FileLock(path, timeout=CHECK_S, poll_interval=CHECK_S / 5, mode=0o666, preserve_lock_file=True)
    try:
        lock.acquire()
    except (Timeout, PermissionError):  # another user's file may belong to a living sweep, so it counts
        return True
    except OSError:
        return False
    try:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    finally:
        lock.release()
    return False


def get_locks_folder() -> Path:
    """Return the folder in which the sweeps of this machine announce themselves."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(tempfile.gettempdir()) / FOLDER


@contextmanager
def announce_sweep(run_id: str) -> Iterator[ConcurrentSweeps]:
    """Announce a sweep to the others while the block runs. Raises DamagedRunError for a run that is being measured.

    A folder that cannot be written to does not stop a sweep: the others are then unknown, with the reason.
    """
    folder, reason = get_locks_folder(), None
    path = folder / f"{run_id}{SUFFIX}"
    lock = FileLock(path, timeout=ANNOUNCE_S, mode=0o666, preserve_lock_file=True)
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):
                folder.chmod(0o1777)  # for all users; as in /tmp, each removes only what is their own
        lock.acquire()
    except Timeout as error:
        raise DamagedRunError("another sweep is measuring it", place=run_id) from error
    except OSError as error:
        reason = f"the folder of the locks cannot be used: {error.strerror or type(error).__name__}"
    try:
        yield ConcurrentSweeps(folder, run_id, reason)
    finally:
        if lock.is_locked:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            lock.release()
