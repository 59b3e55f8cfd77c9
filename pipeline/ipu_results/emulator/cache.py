"""Keep split plans on disk, so that a new process searches only what no process has searched before."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from ipu_results.emulator import split
from ipu_results.emulator.split import ConvolutionShape, SplitPlan
from ipu_results.emulator.target import Target
from ipu_results.errors import IpuResultsError
from ipu_results.ground.files import write_atomically

CACHE_VARIABLE = "IPU_RESULTS_CACHE"  # environment variable that names another folder
SEARCH_MODULES = ("split.py", "codelets.py")
LOCK_TIMEOUT_S = 5.0
Plans = dict[ConvolutionShape, SplitPlan]


def get_cache_folder() -> Path:
    from platformdirs import user_cache_path  # noqa: PLC0415 (seldom needed)

    folder = os.environ.get(CACHE_VARIABLE)
    return Path(folder) if folder else user_cache_path("ipu-results", appauthor=False)


@cache
def compute_search_version() -> str:
    """Hash the code of the search: a plan is never read back into a search that has changed."""
    code = [(files("ipu_results.emulator") / name).read_bytes() for name in SEARCH_MODULES]
    return hashlib.sha256(b"\n".join(code)).hexdigest()[:12]


class PlanCache:
    """A `plan_split` that remembers: one file per target and version of the search. `save` adds what is new.

    The disk only saves time. A damaged file counts as absent and is replaced, and a folder that cannot be read or
    written is ignored.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = get_cache_folder() if folder is None else folder
        self._known: dict[str, Plans] = {}
        self._new: dict[str, Plans] = {}

    def __call__(self, shape: ConvolutionShape, target: Target) -> SplitPlan:
        known = self._known.get(target.digest)
        if known is None:
            known = self._known[target.digest] = _read(self.path(target.digest))
        plan = known.get(shape)
        if plan is None:
            plan = known[shape] = self._new.setdefault(target.digest, {})[shape] = split.plan_split(shape, target)
        return plan

    def path(self, digest: str) -> Path:
        return self._folder / f"plans-{digest}-{compute_search_version()}.json"

    def save(self) -> None:
        """Add what is new to what another process may have written meanwhile."""
        for digest, plans in self._new.items():
            try:
                _add(self.path(digest), plans)
            except (OSError, Timeout, IpuResultsError):
                continue
        self._new.clear()


@contextmanager
def open_plan_cache() -> Iterator[PlanCache]:
    """Yield the process's cache and save it at the end, after a failure or an interrupt too."""
    plans = _share_cache(get_cache_folder())
    try:
        yield plans
    finally:
        plans.save()


@cache
def _share_cache(folder: Path) -> PlanCache:
    return PlanCache(folder)


def _read(path: Path) -> Plans:
    """Read a file whose first line is the sha256 of the rest."""
    try:
        checksum, _, data = path.read_bytes().partition(b"\n")
        if checksum.decode() != hashlib.sha256(data).hexdigest():
            return {}
        return dict(msgspec.json.decode(data, type=list[tuple[ConvolutionShape, SplitPlan]]))
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        return {}


def _add(path: Path, plans: Plans) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock"), timeout=LOCK_TIMEOUT_S):
        data = msgspec.json.encode(list((_read(path) | plans).items()))
        write_atomically(path, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
