"""Check a release: first every byte, then every row in three formats and what the descriptions say of both.

A file is opened only when its digest is right, so that no reader meets damage.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.errors import ReleaseUnreadable
from pipeline.present import printable
from pipeline.publish.contents import CITATION, CROISSANT, Contents
from pipeline.publish.problem import Problem, Problems, guarded
from pipeline.publish.side import PACKAGE, RELEASE
from pipeline.publish.sums import SUMS, digest, read_sums
from pipeline.write import DATABASE

NEEDED = (RELEASE, PACKAGE, CROISSANT, CITATION, DATABASE, "README.md", "DICTIONARY.md", "LICENSE", "environment.json")


def check(folder: Path) -> list[Problem]:
    """All that is wrong with a release. Raises ReleaseUnreadable where there is no such folder."""
    problems = check_sums(folder)
    bad = frozenset(problem.path for problem in problems)
    if not bad & {RELEASE, PACKAGE, CROISSANT} and (folder / SUMS).is_file():
        problems += guarded(RELEASE, lambda: Contents.read(folder, bad).problems())
    return problems


def check_sums(folder: Path) -> list[Problem]:
    """Missing, extra and changed files."""
    if not folder.is_dir():
        raise ReleaseUnreadable("no such folder", place=str(folder))
    if not (folder / SUMS).is_file():
        return [Problem(SUMS, "is missing")]
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
        elif there[name].is_symlink() or not there[name].is_file():
            yield Problem(name, "is no plain file")
        elif digest(there[name]) != told:
            yield Problem(name, f"has another sha256 than {SUMS} says")
    extra = (printable(name) for name in there if name not in sums.digests)
    yield from (Problem(name, "does not belong to the release") for name in extra)
