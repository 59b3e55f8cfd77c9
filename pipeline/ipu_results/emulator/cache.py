"""Plans on disk, so that a fresh process searches only what no process has searched before."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

import msgspec
from filelock import FileLock, Timeout

from ipu_results.emulator import split
from ipu_results.emulator.split import Plan, Shape
from ipu_results.emulator.target import Target

FOLDER = "IPU_RESULTS_CACHE"  # environment variable that names another folder
SEARCH = ("split.py", "codelets.py")
WAIT = 5.0  # seconds for another process that writes
Known = dict[Shape, Plan]


def folder() -> Path:
    from platformdirs import user_cache_path  # noqa: PLC0415 (seldom needed)

    told = os.environ.get(FOLDER)
    return Path(told) if told else user_cache_path("ipu-results", appauthor=False)


@cache
def search_version() -> str:
    """Changes with the code of the search: a plan is never read back into another one."""
    code = [(files("ipu_results.emulator") / name).read_bytes() for name in SEARCH]
    return hashlib.sha256(b"\n".join(code)).hexdigest()[:12]


class Plans:
    """`split.plan` that remembers. A target is a file named by its constants and the search; `save` adds what is new.

    The disk is a help and never a need: a file that is damaged counts as absent and is written anew, a folder that
    cannot be read or written is passed over.
    """

    def __init__(self, where: Path | None = None) -> None:
        self._where = folder() if where is None else where
        self._known: dict[str, Known] = {}
        self._new: dict[str, Known] = {}

    def __call__(self, shape: Shape, target: Target) -> Plan:
        known = self._known.get(target.digest)
        if known is None:
            known = self._known[target.digest] = _read(self.path(target.digest))
        found = known.get(shape)
        if found is None:
            found = known[shape] = self._new.setdefault(target.digest, {})[shape] = split.plan(shape, target)
        return found

    def path(self, digest: str) -> Path:
        return self._where / f"plans-{digest}-{search_version()}.json"

    def save(self) -> None:
        """Add what is new to what another process may have written meanwhile."""
        for digest, found in self._new.items():
            try:
                _add(self.path(digest), found)
            except (OSError, Timeout):
                continue
        self._new.clear()


@contextmanager
def saved() -> Iterator[Plans]:
    """The process's plans, saved at the end, also of work that failed or was interrupted half-way."""
    plans = _shared(folder())
    try:
        yield plans
    finally:
        plans.save()


@cache
def _shared(where: Path) -> Plans:
    return Plans(where)


def _read(path: Path) -> Known:
    """The first line is the sha256 of the rest."""
    try:
        seal, _, data = path.read_bytes().partition(b"\n")
        if seal.decode() != hashlib.sha256(data).hexdigest():
            return {}
        return dict(msgspec.json.decode(data, type=list[tuple[Shape, Plan]]))
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        return {}


def _add(path: Path, found: Known) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock"), timeout=WAIT):
        data = msgspec.json.encode(list((_read(path) | found).items()))
        draft = path.with_name(f".{uuid4().hex}.part")
        try:
            draft.write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
