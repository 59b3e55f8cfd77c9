"""Replace the folder of a release as a whole, and check its bytes.

A new release is written to a hidden work folder next to the target, brought to disk, and put in place by two renames:
the old release moves into the work folder, then the new one moves to the target. Between the two the target is missing
for a moment. A process killed there leaves both releases whole; the next `publish`, `verify` or `diff` puts the old one
back (`finish_interrupted_publish`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from ipu_results.errors import IpuResultsError, ReleaseError, UnreadableReleaseError, WarehouseError
from ipu_results.ground.files import hash_file, sync_to_disk
from ipu_results.ground.sql import get_first_line
from ipu_results.ground.text import escape_unprintable
from ipu_results.release import files
from ipu_results.release.files import CHECKSUMS, CITATION, CROISSANT, PACKAGE, RELEASE, SIGNATURE, read_checksums
from ipu_results.store.files import DATABASE
from ipu_results.store.transaction import lock_folder

PAGES = ("README.md", "DICTIONARY.md", "LICENSE", "CHANGELOG.md", files.ENVIRONMENT)
REQUIRED = {RELEASE, PACKAGE, CROISSANT, CITATION, DATABASE, *PAGES}
UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(pa.ArrowException, duckdb.Error),
)


class Problem(NamedTuple):
    """Something wrong with a release, and the file or table that it was found in."""

    path: str
    message: str

    @property
    def line(self) -> str:
        """The problem as one line that is safe to print."""
        return escape_unprintable(f"{self.path}: {self.message}")


def collect(path: str, problems: Iterator[Problem]) -> list[Problem]:
    """Run checks; what cannot even be read is one more problem and ends them."""
    collected: list[Problem] = []
    try:
        collected.extend(problems)
    except IpuResultsError as error:
        collected.append(Problem(Path(error.place).name if error.place else path, error.message))
    except UNREADABLE as error:
        collected.append(Problem(path, f"cannot be checked: {type(error).__name__}: {get_first_line(error)}"))
    return collected


def check_files(folder: Path) -> list[Problem]:
    """List missing, extra and changed files, by SHA256SUMS."""
    finish_interrupted_publish(folder)
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    return collect(CHECKSUMS, _compare_checksums(folder))


def _compare_checksums(folder: Path) -> Iterator[Problem]:
    path = folder / CHECKSUMS
    if not _is_plain_file(path):
        yield Problem(CHECKSUMS, "is not a plain file" if os.path.lexists(path) else "is missing")
        return
    digests, is_canonical = files.read_checksums(path)
    if not is_canonical:
        yield Problem(CHECKSUMS, "is not as publish writes it: one line a file, sorted, two blanks after the sha256")
    paths = {path.name: path for path in folder.iterdir() if path.name != CHECKSUMS}
    for name in sorted(REQUIRED - digests.keys()):
        yield Problem(name, f"is not listed in {CHECKSUMS}")
    for name, digest in digests.items():
        if name not in paths:
            yield Problem(name, "is missing")
        elif not _is_plain_file(paths[name]):
            yield Problem(name, "is not a plain file")
        elif hash_file(paths[name]) != digest:
            yield Problem(name, f"sha256 differs from {CHECKSUMS}")
    for name in sorted(paths.keys() - digests.keys()):
        if name != SIGNATURE or not _is_plain_file(paths[name]):
            yield Problem(escape_unprintable(name), "does not belong to the release")


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


RECOVERY_WAIT_S = 10.0


def get_work_folder(out: Path) -> Path:
    """Return the hidden folder next to a release in which the next one is prepared."""
    return out.parent / f".{out.name}.publishing"


@contextmanager
def replace_release(out: Path, wait_s: float) -> Iterator[Path]:
    """Yield an empty folder that becomes `out` when the block ends without an error.

    Raises ReleaseError if `out` holds anything but a release, or another process publishes there longer than `wait_s`.
    """
    out = Path(os.path.realpath(out))
    work = get_work_folder(out)
    new = work / "new"
    _assert_release(out)
    with _lock(out, wait_s):
        _recover(out)
        _assert_only_release(out)
        try:
            new.mkdir()
            yield new
            for path in (*new.iterdir(), new):
                sync_to_disk(path)
            if out.exists():
                os.replace(out, work / "old")
            os.replace(new, out)
        except (OSError, duckdb.Error) as error:  # DuckDB reports a full disk as an error of its own
            raise ReleaseError(f"could not be written, the old content stays: {error}", place=str(out)) from error
        finally:
            _recover(out)
        sync_to_disk(out.parent)


def finish_interrupted_publish(out: Path) -> None:
    """Put the old release back if a publish was killed between its two renames.

    Raises ReleaseError if that is not possible, or if another process is at work there for too long.
    """
    out = Path(os.path.realpath(out))
    if _is_interrupted(out):
        with _lock(out, RECOVERY_WAIT_S):
            _recover(out)


def _assert_only_release(out: Path) -> None:
    """Raise ReleaseError unless the folder is absent, empty, or holds a release and nothing else."""
    names = _assert_release(out)
    if names and (foreign := sorted(names - {CHECKSUMS, SIGNATURE, *read_checksums(out / CHECKSUMS)[0]})):
        raise ReleaseError(f"holds {foreign[0]}, which does not belong to the release there", place=str(out))


def _assert_release(out: Path) -> set[str]:
    """Do the part of the check that is safe while another process publishes there, and return the file names."""
    try:
        names = {path.name for path in out.iterdir()}
    except FileNotFoundError:
        return set()
    except NotADirectoryError as error:
        raise ReleaseError("is not a folder", place=str(out)) from error
    if names and not {RELEASE, CHECKSUMS} <= names:
        raise ReleaseError("is not empty and not a release; choose another folder with --out", place=str(out))
    return names


@contextmanager
def _lock(out: Path, wait_s: float) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(get_work_folder(out), wait_s))
        except WarehouseError as error:
            raise ReleaseError(error.message, place=str(out)) from error
        yield


def _is_interrupted(out: Path) -> bool:
    """Return whether the old release is in the work folder and nothing is in its place."""
    return (get_work_folder(out) / "old").exists() and not (out.exists() and any(out.iterdir()))


def _recover(out: Path) -> None:
    """Put an old release back that a failure or a kill left out of its place, and remove all other remains."""
    work = get_work_folder(out)
    if _is_interrupted(out):
        try:
            os.replace(work / "old", out)
        except OSError as error:
            message = f"the old release is in {work / 'old'}, the next publish puts it back: {error}"
            raise ReleaseError(message, place=str(out)) from error
    for name in ("new", "old"):
        shutil.rmtree(work / name, ignore_errors=True)
