"""The folder of a run: a journal while it is measured, and a finished run that appears whole.

`<run_id>.unfinished/` holds `journal.jsonl`, a line on disk for each finished step. A killed sweep loses the step that
was in flight. A finished run is built within it and renamed in one step.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ipu_results.errors import DamagedRunError
from ipu_results.sources.catalogue import UNFINISHED

JOURNAL = "journal.jsonl"
LOCK = ".lock"
PART = "finished"


class Journal:
    """The steps of one run, each a JSON object with a `step`. Only whole lines count."""

    def __init__(self, folder: Path, run_id: str) -> None:
        self.run_id = run_id
        self.out = folder
        self.folder = folder / f"{run_id}{UNFINISHED}"
        self.steps: list[dict[str, Any]] = []
        self._length = 0

    @property
    def path(self) -> Path:
        return self.folder / JOURNAL

    def of(self, step: str) -> list[dict[str, Any]]:
        return [one for one in self.steps if one["step"] == step]

    def read(self) -> None:
        """Take what a killed sweep left, up to its last whole line. Raises DamagedRunError for anything else."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise DamagedRunError(f"has no journal: {error.strerror}", document=self.run_id) from error
        self._length = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._length].splitlines(), start=1):
            try:
                self.steps.append({"step": None, **json.loads(line)})
            except (ValueError, TypeError) as error:
                raise DamagedRunError(
                    f"is no journal: {error}", document=self.run_id, place=f"line {number}"
                ) from error

    def add(self, step: str, **told: Any) -> None:
        """Append a step and bring it to disk. What a full disk took half of is taken back; DamagedRunError tells."""
        line = json.dumps({"step": step, **told}, allow_nan=False).encode() + b"\n"
        try:
            _append(self.path, line, self._length)
        except OSError as error:
            message = f"{len(self.steps)} steps are kept, the next cannot be written: {error.strerror}"
            raise DamagedRunError(message, document=self.run_id, place=str(self.folder)) from error
        self._length += len(line)
        self.steps.append(json.loads(line))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no other process go on with this run. Raises DamagedRunError when one does."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / LOCK, timeout=0)
            lock.acquire()
        except Timeout as error:
            raise DamagedRunError("another process is at it", document=self.run_id) from error
        except OSError as error:
            raise DamagedRunError(f"cannot be written: {error.strerror}", document=self.run_id) from error
        try:
            yield
        finally:
            lock.release()
            if self._is_empty():
                shutil.rmtree(self.folder, ignore_errors=True)

    def _is_empty(self) -> bool:
        """What cannot be read is not empty: a damaged journal is kept."""
        try:
            return not self.steps and self.path.stat().st_size == 0
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def finish(self, files: Mapping[str, bytes]) -> Path:
        """Publish the files as the finished run and drop the journal. Raises DamagedRunError; the journal stays then."""
        target, part = self.out / self.run_id, self.folder / PART
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            for name, data in files.items():
                _append(part / name, data, 0)
            _sync(part)
            os.rename(part, target)
            _sync(self.out)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise DamagedRunError(f"cannot be written: {error.strerror}", document=self.run_id) from error
        shutil.rmtree(self.folder, ignore_errors=True)
        return target


def unfinished(out: Path) -> list[str]:
    """Ids of runs that were begun and not finished, the latest last; what a finished one left behind is removed."""
    found = sorted(path.name.removesuffix(UNFINISHED) for path in out.glob(f"*{UNFINISHED}") if path.is_dir())
    for run_id in found:
        if (out / run_id).is_dir():
            shutil.rmtree(out / f"{run_id}{UNFINISHED}", ignore_errors=True)
    return [run_id for run_id in found if not (out / run_id).is_dir()]


def _append(path: Path, data: bytes, length: int) -> None:
    """Write after `length` bytes and bring to disk, or leave the file with those alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.ftruncate(descriptor, length)
        os.lseek(descriptor, length, os.SEEK_SET)
        done = 0
        try:
            while done < len(data):
                done += os.write(descriptor, data[done:])
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, length)
            raise
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
