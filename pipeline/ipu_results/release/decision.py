"""Which version a release gets, measured against the one before, and which corrections it needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipu_results.errors import CorrectionsError, ReleaseError
from ipu_results.release import corrections
from ipu_results.release import version as versions
from ipu_results.release.compare import compare
from ipu_results.release.names import RELEASE
from ipu_results.release.side import Side, read_side
from ipu_results.release.verify import check_sums


@dataclass(frozen=True, slots=True)
class Decision:
    """The version, the least that was allowed, what changed, and the corrections that were needed."""

    version: versions.Version
    least: str | None = None
    previous: Mapping[str, Any] | None = None
    changes: Sequence[versions.Change] = ()
    applied: Sequence[corrections.Applied] = ()
    unused: Sequence[corrections.Correction] = ()


def decide(
    previous: Path | None, new: Path, given: versions.Version | None, file: Path | None, *, again: bool
) -> Decision:
    """The version that the change since the previous release asks for, or the given one where it is no lower.

    With `again` the same tables make the previous release once more. Raises ReleaseError where the version is too low
    or rows vanished, CorrectionsError for a corrections file that does not hold.
    """
    listed = corrections.load(file) if file else []
    if previous is None:
        if file:
            message = "corrects nothing: there is no previous release; name one with --previous"
            raise CorrectionsError(message, place=str(file))
        return Decision(given or versions.parse(versions.FIRST))
    if previous.is_dir() and not (previous / RELEASE).exists():
        raise ReleaseError(f"is no release: it has no {RELEASE}", place=str(previous))
    if problems := check_sums(previous):
        raise ReleaseError(f"is damaged: {problems[0].line}", place=str(previous))
    old = read_side(previous)
    before = versions.parse(str(old.told.get("version")), str(previous / RELEASE))
    difference = compare(old, read_side(new), limit=0)
    applied = corrections.apply(listed, difference)
    used = {one.correction.number for one in applied}
    unused = [one for one in listed if one.number not in used]
    if again and difference.is_empty and given in (None, before):
        return _again(old, before, unused)
    changes = versions.changes(difference)
    least = versions.least(before, changes)
    if given is not None:
        versions.assert_allowed(given, least, before, changes)
    told = {"version": str(before), "build_id": old.told.get("build_id")}
    return Decision(given or least, str(least), told, changes, applied, unused)


def _again(old: Side, version: versions.Version, unused: Sequence[corrections.Correction]) -> Decision:
    """What was decided for a release that is made once more, of the same tables and in its own place."""
    told = old.told
    try:
        changes = [versions.Change(**change) for change in told["changes"]]
        applied = [corrections.Applied.read(*one) for one in enumerate(told["corrections"], 1)]
        return Decision(version, told["least_version"], told["previous"], changes, applied, unused)
    except (LookupError, TypeError, ValueError) as error:
        raise ReleaseError("is not as publish writes it", place=str(old.path / RELEASE)) from error
