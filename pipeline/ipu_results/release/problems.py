"""What a check of a release reports, and the check of its bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from ipu_results._util.files import hash_file
from ipu_results._util.sql import get_first_line
from ipu_results._util.text import escape_unprintable
from ipu_results.errors import IpuResultsError, UnreadableReleaseError
from ipu_results.release import files
from ipu_results.release.files import CHECKSUMS, CITATION, CROISSANT, PACKAGE, RELEASE, SIGNATURE
from ipu_results.release.folder import finish_interrupted_publish
from ipu_results.store.files import DATABASE

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
