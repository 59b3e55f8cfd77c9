"""Collect the problems of a release, first those of its bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from ipu_results.errors import IpuResultsError, UnreadableReleaseError
from ipu_results.kit.files import hash_file
from ipu_results.kit.sql import get_first_line
from ipu_results.kit.text import escape_unprintable
from ipu_results.release.files import CHECKSUMS, REQUIRED, SIGNATURE, list_files, read_checksums
from ipu_results.release.replacing import finish_interrupted_publish

# What a reader of files that anyone may have changed raises; anything else is a fault of this code.
UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    pa.ArrowException,
    duckdb.Error,
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
        # what they yield before an error is kept
        collected.extend(problems)
    except IpuResultsError as error:
        place = Path(error.place).name if error.place else path
        collected.append(Problem(place, error.message))
    except UNREADABLE as error:
        message = f"cannot be checked: {type(error).__name__}: {get_first_line(error)}"
        collected.append(Problem(path, message))
    return collected


def check_files(folder: Path, root: str | None = None) -> list[Problem]:
    """List files that are missing, extra or changed according to SHA256SUMS.

    `root` is the sha256 that SHA256SUMS itself must have, None if it is not known.
    """
    finish_interrupted_publish(folder)
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    return collect(CHECKSUMS, _compare_checksums(folder, root))


def _compare_checksums(folder: Path, root: str | None) -> Iterator[Problem]:
    path = folder / CHECKSUMS
    if not os.path.lexists(path):
        yield Problem(CHECKSUMS, "is missing")
        return
    if not _is_plain_file(path):
        yield Problem(CHECKSUMS, "is not a plain file")
        return
    found_root = hash_file(path)
    if root is not None and found_root != root:
        yield Problem(CHECKSUMS, f"has the sha256 {found_root}, {root} was announced")
    digests, is_canonical = read_checksums(path)
    if not is_canonical:
        expected = "one line a file, sorted, two blanks after the sha256"
        yield Problem(CHECKSUMS, f"is not as publish writes it: {expected}")
    paths = list_files(folder)
    del paths[CHECKSUMS]  # it does not list itself
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
        # the signature is made of the checksums, after them
        is_signature = name == SIGNATURE and _is_plain_file(paths[name])
        if not is_signature:
            yield Problem(escape_unprintable(name), "does not belong to the release")


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
