"""List and read a results checkout in a local folder: only what the layout names, and no link out of it."""

from __future__ import annotations

import errno
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Protocol

from ipu_results.errors import DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.mlperf.entries import Finding, parse_round
from ipu_results.mlperf.log import CHUNK

MAX_SMALL = 1_000_000  # bytes of a description or a scaling file
# A pipe must not block, and a link is looked at before it is followed.
OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
PARTS = ("results", "systems")


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths relative to the root, folders with a slash at the end, and what was not followed."""

    paths: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


class Tree(Protocol):
    """A folder of results, here or elsewhere; another process to which it is sent reads the same files."""

    @property
    def name(self) -> str: ...

    def listing(self) -> Listing: ...

    def chunks(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a file. Raises OSError."""
        ...


def read_small_file(tree: Tree, path: str) -> bytes | None:
    """Return the bytes of a file, None without such a file. Raises OSError, DocumentTooLargeError."""
    data = b""
    try:
        with closing(tree.chunks(path)) as chunks:  # type: ignore[type-var]
            for chunk in chunks:
                data += chunk
                if len(data) > MAX_SMALL:
                    raise DocumentTooLargeError(f"is larger than {MAX_SMALL:,} bytes")
    except FileNotFoundError:
        return None
    return data


@dataclass(frozen=True, slots=True)
class LocalTree:
    root: str

    @property
    def name(self) -> str:
        """The folder's own name; for a link that names no round, the name of its target."""
        name = Path(self.root).name
        return name if parse_round(name) else Path(self.root).resolve().name

    def listing(self) -> Listing:
        """List the round. Raises UnrecognisedDocumentError for a file or one submitter's folder."""
        if not os.path.isdir(self.root):
            raise UnrecognisedDocumentError("is not a folder", document=self.root)
        return _LocalWalk(self.root).listing()

    def chunks(self, path: str) -> Iterator[bytes]:
        with closing(_open(self.root, path)) as file:
            while chunk := file.read(CHUNK):
                yield chunk


def _open(root: str, path: str) -> FileIO:
    folder, name = os.path.split(path)
    try:
        descriptor = os.open(os.path.join(_resolve_folder(root, folder), name), OPEN_FLAGS)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        descriptor = os.open(_resolve(root, path), OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file", path)
    return FileIO(descriptor)


def _resolve(root: str, path: str) -> str:
    """Return the path without links. Raises OSError where it leads out of the tree."""
    full = os.path.join(root, path)
    if not _is_within(root, full):
        raise OSError(errno.EPERM, "leads out of the folder; not followed", path)
    return os.path.realpath(full)


_resolve_folder = lru_cache(maxsize=64)(_resolve)


def _is_within(root: str, full: str) -> bool:
    inner, outer = os.path.realpath(full), os.path.realpath(root)
    return os.path.commonpath([inner, outer]) == outer


class Walk(ABC):
    """Lists what the layout names and no more: a checkout also holds the submitters' code."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.paths: list[str] = []
        self.findings: list[Finding] = []

    @abstractmethod
    def _list_names(self, path: str, folders: bool, suffix: str = "") -> list[str]:
        """Return the sorted names of the folders, or else files, in a folder; what cannot be read is a finding."""

    def listing(self) -> Listing:
        """List the round. Raises UnrecognisedDocumentError for the folder of one submitter."""
        top = self._list_names("", True)
        if set(PARTS) <= set(top):
            raise UnrecognisedDocumentError("is the folder of one submitter; pass the one above it", document=self.root)
        for name in top:
            if not self._add_submitter(name):
                for inner in self._list_names(name, True):
                    self._add_submitter(f"{name}/{inner}")
        return Listing(tuple(self.paths), tuple(self.findings))

    def _add_submitter(self, path: str) -> bool:
        """Add one submitter's results and systems; return False where the folder is not a submitter's."""
        inner = self._list_names(path, True)
        if "results" in inner:
            self._add_results(f"{path}/results")
        if "systems" in inner:
            self.paths.append(f"{path}/systems/")
            self.paths += [f"{path}/systems/{name}" for name in self._list_names(f"{path}/systems", False, ".json")]
        return not set(PARTS).isdisjoint(inner)

    def _add_results(self, path: str) -> None:
        self.paths.append(f"{path}/")
        for system in self._list_names(path, True):
            self.paths.append(f"{path}/{system}/")
            for folder in self._list_names(f"{path}/{system}", True):
                inner = f"{path}/{system}/{folder}"
                self.paths.append(f"{inner}/")
                self.paths += [f"{inner}/{name}" for name in self._list_names(inner, False, ".txt")]

    def _add_finding(self, folder: str, name: str, message: str) -> None:
        self.findings.append(Finding(f"{folder}/{name}" if folder else name, message))


class _LocalWalk(Walk):
    def _list_names(self, path: str, folders: bool, suffix: str = "") -> list[str]:
        names = []
        try:
            with os.scandir(os.path.join(self.root, path)) as entries:
                names = [
                    entry.name
                    for entry in entries
                    if entry.name.endswith(suffix) and self._is_listed(entry, path, folders)
                ]
        except OSError as error:
            self.findings.append(Finding(path or ".", f"cannot be listed: {error.strerror}"))
        return sorted(names)

    def _is_listed(self, entry: os.DirEntry[str], path: str, folders: bool) -> bool:
        """List files that cannot be read too, since reading shows why, but no link to a folder out of the tree."""
        is_link = entry.is_symlink()
        is_folder = os.path.isdir(entry.path) if is_link else entry.is_dir()
        if folders and is_link and not os.path.exists(entry.path) and "." not in entry.name:
            self._add_finding(path, entry.name, "is a broken link; not read")
        if not (is_folder and is_link) or _is_within(self.root, entry.path):
            return is_folder == folders
        if folders:
            self._add_finding(path, entry.name, "is a link out of the folder; not followed")
        return False
