"""Check a release: first every byte, then every row in three formats and what the descriptions say of both.

A file is opened only when its digest is right, so that no reader meets damage.
"""

from __future__ import annotations

import os
from pathlib import Path

from ipu_results.errors import UnreadableReleaseError
from ipu_results._util.text import escape_unprintable
from ipu_results.release.contents import Contents
from ipu_results.release.names import CITATION, CROISSANT, PACKAGE, RELEASE
from ipu_results.release.problem import Problem, Problems, guarded
from ipu_results.release.sums import SUMS, digest, read_sums
from ipu_results.store.files import DATABASE

NEEDED = (RELEASE, PACKAGE, CROISSANT, CITATION, DATABASE, "README.md", "DICTIONARY.md", "LICENSE", "environment.json")


def check(folder: Path) -> list[Problem]:
    """All that is wrong with a release. Raises UnreadableReleaseError where there is no such folder."""
    problems = check_sums(folder)
    bad = frozenset(problem.path for problem in problems)
    if not bad & {RELEASE, PACKAGE, CROISSANT} and _is_plain(folder / SUMS):
        problems += guarded(RELEASE, lambda: Contents.read(folder, bad).problems())
    return problems


def check_sums(folder: Path) -> list[Problem]:
    """Missing, extra and changed files."""
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    sums = folder / SUMS
    if not _is_plain(sums):
        return [Problem(SUMS, "is no plain file" if os.path.lexists(sums) else "is missing")]
    return guarded(SUMS, lambda: _against_sums(folder))


def _against_sums(folder: Path) -> Problems:
    sums = read_sums(folder / SUMS)
    yield from (Problem(SUMS, fault) for fault in sums.faults)
    there = {path.name: path for path in sorted(folder.iterdir()) if path.name != SUMS}
    for name in sorted(set(NEEDED) - sums.digests.keys()):
        yield Problem(name, f"is not named in {SUMS}")
    for name, told in sums.digests.items():
        if name not in there:
            yield Problem(name, "is missing")
        elif not _is_plain(there[name]):
            yield Problem(name, "is no plain file")
        elif digest(there[name]) != told:
            yield Problem(name, f"has another sha256 than {SUMS} says")
    extra = (escape_unprintable(name) for name in there if name not in sums.digests)
    yield from (Problem(name, "does not belong to the release") for name in extra)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
