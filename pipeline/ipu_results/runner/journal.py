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

from ipu_results._util.files import sync_to_disk
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

    def select(self, step: str) -> list[dict[str, Any]]:
        return [entry for entry in self.steps if entry["step"] == step]

    def load(self) -> None:
        """Read what a killed sweep left, up to its last whole line. Raises DamagedRunError for anything else."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise DamagedRunError(f"has no journal: {error.strerror}", document=self.run_id) from error
        self._length = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._length].splitlines(), start=1):
            try:
                self.steps.append({"step": None, **json.loads(line)})
            except (ValueError, TypeError) as error:
                message = f"is not a step of a journal: {error}"
                raise DamagedRunError(message, document=self.run_id, place=f"line {number}") from error

    def append(self, step: str, **values: Any) -> None:
        """Append a step and bring it to disk. Raises DamagedRunError; half a step on a full disk is removed again."""
        line = json.dumps({"step": step, **values}, allow_nan=False).encode() + b"\n"
        try:
            self._write(line)
        except OSError as error:
            message = f"{len(self.steps)} steps are kept, the next cannot be written: {error.strerror}"
            raise DamagedRunError(message, document=self.run_id, place=str(self.folder)) from error
        self._length += len(line)
        self.steps.append(json.loads(line))

    def _write(self, line: bytes) -> None:
        """Write after the last whole line, over what a kill may have left there, or leave the file at that length."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.ftruncate(descriptor, self._length)
            os.lseek(descriptor, self._length, os.SEEK_SET)
            written = 0
            try:
                while written < len(line):
                    written += os.write(descriptor, line[written:])
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, self._length)
                raise
        finally:
            os.close(descriptor)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from going on with this run. Raises DamagedRunError when one does."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / LOCK, timeout=0)
            lock.acquire()
        except Timeout as error:
            raise DamagedRunError("another process is measuring it", document=self.run_id) from error
        except OSError as error:
            raise DamagedRunError(f"cannot be written: {error.strerror}", document=self.run_id) from error
        try:
            yield
        finally:
            lock.release()
            if self._is_empty():
                shutil.rmtree(self.folder, ignore_errors=True)

    def _is_empty(self) -> bool:
        """Report whether nothing was written. A journal that cannot be read is damaged, not empty: it is kept."""
        try:
            return not self.steps and self.path.stat().st_size == 0
        except FileNotFoundError:
            return True
        except OSError:
            return False

    def publish(self, files: Mapping[str, bytes]) -> Path:
        """Publish the files as the finished run, then drop the journal. Raises DamagedRunError, and keeps it then."""
        target, part = self.out / self.run_id, self.folder / PART
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            for name, data in files.items():
                (part / name).write_bytes(data)
                sync_to_disk(part / name)
            sync_to_disk(part)
            os.rename(part, target)
            sync_to_disk(self.out)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise DamagedRunError(f"cannot be written: {error.strerror}", document=self.run_id) from error
        shutil.rmtree(self.folder, ignore_errors=True)
        return target


def list_unfinished(out: Path) -> list[str]:
    """Return the ids of unfinished runs, the latest last; remove what a finished one left behind."""
    run_ids = sorted(path.name.removesuffix(UNFINISHED) for path in out.glob(f"*{UNFINISHED}") if path.is_dir())
    for run_id in run_ids:
        if (out / run_id).is_dir():
            shutil.rmtree(out / f"{run_id}{UNFINISHED}", ignore_errors=True)
    return [run_id for run_id in run_ids if not (out / run_id).is_dir()]
