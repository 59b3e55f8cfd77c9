"""Other sweeps on this machine: two at once slow each other down, and neither could tell why.

Each sweep holds a lock on a file of its own in a folder that all users share. The system releases the lock when the
process dies, so a file without a holder is a dead sweep's.
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
# Another sweep that looks whether this one is alive holds its lock for a moment.
ANNOUNCE_S = 5.0
LOOK_S = 0.05


class Companions:
    """The sweeps beside the one of this name. `reason` says why they cannot be known, None when they can."""

    def __init__(self, folder: Path, run_id: str, reason: str | None = None) -> None:
        self._folder, self._run_id, self.reason = folder, run_id, reason

    def others(self) -> list[str]:
        """Run ids of the other living sweeps, in order. Files of dead ones are removed where that is allowed."""
        if self.reason:
            return []
        paths = (path for path in sorted(self._folder.glob(f"*{SUFFIX}")) if path.stem != self._run_id)
        return [path.stem for path in paths if _alive(path)]


def _alive(path: Path) -> bool:
    lock = FileLock(path, timeout=LOOK_S, poll_interval=LOOK_S / 5, mode=0o666, preserve_lock_file=True)
    try:
        lock.acquire()
    except (Timeout, PermissionError):  # another user's file cannot be told dead, so it counts
        return True
    except OSError:
        return False
    try:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    finally:
        lock.release()
    return False


def folder() -> Path:
    """Where the sweeps of this machine announce themselves."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else Path(tempfile.gettempdir()) / FOLDER


@contextmanager
def announced(run_id: str) -> Iterator[Companions]:
    """Tell other sweeps of this one while the block runs. Raises DamagedRunError when that run is being measured already.

    A folder that cannot be written to does not stop a sweep: its companions are then unknown, with the reason.
    """
    place, reason = folder(), None
    path = place / f"{run_id}{SUFFIX}"
    lock = FileLock(path, timeout=ANNOUNCE_S, mode=0o666, preserve_lock_file=True)
    try:
        _make(place)
        lock.acquire()
    except Timeout as error:
        raise DamagedRunError("another sweep is at it", place=run_id) from error
    except OSError as error:
        reason = f"the folder of the locks cannot be used: {error.strerror or type(error).__name__}"
    try:
        yield Companions(place, run_id, reason)
    finally:
        if lock.is_locked:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            lock.release()


def _make(place: Path) -> None:
    """Create the folder for all users; as in the temporary folder itself, each removes only what is their own."""
    if not place.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            place.chmod(0o1777)
