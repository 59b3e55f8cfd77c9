"""Who owns a folder of submissions, an ORCID iD or a name, and whether a bundle is here already."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipu_results.schema.vocabulary import normalise_name
from ipu_results.submission.bundle import Bundle, make_slug
from ipu_results.submission.contents import DESCRIPTION, KNOWN, SIDECAR
from ipu_results.submission.fault import Fault
from ipu_results.submission.lay import SUBMISSIONS, format_sidecar, get_folder

PERSON = ("name", "orcid", "account")


def check_owner(
    bundle: Bundle, raw: Path, publishers: frozenset[str], account: str | None, place: str | None
) -> Iterator[Fault]:
    """Yield what is wrong with whose bundle it says it is; `place` is its `<who>/<id>` in a folder of submissions.

    `account` is the account that hands it in, None where it is not known. A damaged description here raises
    nothing: its folder still has an owner, whom no other bundle can be.
    """
    submission = bundle.submission
    who = submission.who
    own = f"{submission.folder}/{submission.id}"
    if place is not None and place != own:
        yield Fault("out-of-place", f"belongs in {SUBMISSIONS}/{own}", place)
    if {normalise_name(who.name), submission.folder} & {
        form(name) for name in publishers for form in (normalise_name, make_slug)
    }:
        message = f"{who.name} publishes figures that the record has from elsewhere; use your own name and affiliation"
        yield Fault("owner", message, f"{DESCRIPTION}, who.name")
    if account is not None and (who.account or "").casefold() != account.casefold():
        message = f"is {who.account or 'not stated'}, but {account} hands the bundle in (submit --account {account})"
        yield Fault("owner", message, f"{DESCRIPTION}, who.account")
    for folder, other in _list_others(raw):
        if folder == submission.folder and (differing := _list_differing(other, who)):
            message = f"{SUBMISSIONS}/{folder} belongs to somebody with another {' and '.join(differing)}"
            yield Fault("owner", f"{message}; add --orcid or --account as before, or use another name", DESCRIPTION)
            break
        if folder != submission.folder and who.orcid and other.get("orcid") == who.orcid:
            yield Fault("owner", f"is that of {SUBMISSIONS}/{folder}", f"{DESCRIPTION}, who.orcid")
            break


def check_present(bundle: Bundle, raw: Path, path: Path) -> Iterator[Fault]:
    """Yield a fault for a bundle that `raw` has elsewhere, and for a sidecar that does not follow from it."""
    folder = get_folder(raw, bundle.submission)
    if folder.is_dir() and folder.resolve() != path.resolve():
        yield Fault("duplicate", f"is here already: {SUBMISSIONS}/{bundle.submission.folder}/{bundle.submission.id}")
    sidecar = bundle.files.get(SIDECAR)
    if sidecar is not None and sidecar != format_sidecar(bundle):
        yield Fault("unknown-file", "is not the sidecar of this bundle; leave it out", SIDECAR)


def is_laid(raw: Path, place: str, files: dict[str, bytes]) -> bool:
    """Return whether `raw` has the same files of a bundle at `<who>/<id>`."""
    folder = raw / SUBMISSIONS / place
    present = {name: (folder / name).read_bytes() for name in KNOWN if (folder / name).is_file()}
    return bool(present) and present == files


def _list_others(raw: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the folder and the submitter of each bundle in `raw`."""
    for path in sorted((raw / SUBMISSIONS).glob(f"*/*/{DESCRIPTION}")):
        try:
            who = tomllib.loads(path.read_text(encoding="utf-8")).get("who")
        except (OSError, ValueError, RecursionError):
            who = None
        yield path.parent.parent.name, who if isinstance(who, dict) else {}


def _list_differing(other: dict[str, Any], who: Any) -> list[str]:
    """Return what tells two submitters apart: a stated ORCID or account that the other has not, or else the name."""
    stated = [name for name in PERSON if other.get(name) is not None or getattr(who, name) is not None]
    return [name for name in stated if other.get(name) != getattr(who, name)]
