"""A results checkout in a local folder: only what the layout names is listed, links out of it are not followed."""

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
from ipu_results.mlperf.layout import Finding, round_of
from ipu_results.mlperf.lines import CHUNK

MAX_SMALL = 1_000_000
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
PARTS = ("results", "systems")


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths relative to the root, folders with a slash at the end, and what was not followed."""

    paths: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


class Tree(Protocol):
    """Where a checkout lies. It can be sent to another process, which reads the same files."""

    @property
    def name(self) -> str: ...

    def listing(self) -> Listing: ...

    def chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of a file. Raises OSError."""
        ...


def small_file(tree: Tree, path: str) -> bytes | None:
    """The bytes of a file, None where there is none. Raises OSError, DocumentTooLargeError."""
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
        """The folder's own name, or of a link, where it names no round, that of the folder behind it."""
        given, behind = Path(self.root).name, Path(self.root).resolve().name
        return given if round_of(given) else behind

    def listing(self) -> Listing:
        """Raises UnrecognisedDocumentError for what is no folder, or is the folder of one submitter."""
        if not os.path.isdir(self.root):
            raise UnrecognisedDocumentError("is no folder", document=self.root)
        return _LocalWalk(self.root).listing()

    def chunks(self, path: str) -> Iterator[bytes]:
        with closing(_open(self.root, path)) as file:
            while chunk := file.read(CHUNK):
                yield chunk


def _open(root: str, path: str) -> FileIO:
    folder, name = os.path.split(path)
    try:
        descriptor = os.open(os.path.join(_real_folder(root, folder), name), FLAGS)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        descriptor = os.open(_real(root, path), FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file", path)
    return FileIO(descriptor)


def _real(root: str, path: str) -> str:
    """The path without links. Raises OSError where it leads out of the tree."""
    full = os.path.join(root, path)
    if not _is_within(root, full):
        raise OSError(errno.EPERM, "leads out of the tree: not followed", path)
    return os.path.realpath(full)


_real_folder = lru_cache(maxsize=64)(_real)


def _is_within(root: str, full: str) -> bool:
    inner, outer = os.path.realpath(full), os.path.realpath(root)
    return os.path.commonpath([inner, outer]) == outer


class Walk(ABC):
    """Goes as deep as the layout says and no deeper."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.paths: list[str] = []
        self.findings: list[Finding] = []

    @abstractmethod
    def _names(self, path: str, folders: bool, suffix: str = "") -> list[str]:
        """The names in a folder, of folders or else of files; what cannot be read is a finding."""

    def listing(self) -> Listing:
        """Raises UnrecognisedDocumentError for the folder of one submitter."""
        top = self.folders("")
        if set(PARTS) <= set(top):
            raise UnrecognisedDocumentError("is the folder of one submitter; give the one above it", document=self.root)
        for name in top:
            if not self.submitter(name):
                for inner in self.folders(name):
                    self.submitter(f"{name}/{inner}")
        return Listing(tuple(self.paths), tuple(self.findings))

    def submitter(self, path: str) -> bool:
        """List one submitter's results and systems; False where the folder is none."""
        inner = self.folders(path)
        if not set(PARTS) & set(inner):
            return False
        if "results" in inner:
            self._results(f"{path}/results")
        if "systems" in inner:
            self.paths.append(f"{path}/systems/")
            self.paths += [f"{path}/systems/{name}" for name in self._names(f"{path}/systems", False, ".json")]
        return True

    def _results(self, path: str) -> None:
        self.paths.append(f"{path}/")
        for system in self.folders(path):
            self.paths.append(f"{path}/{system}/")
            for folder in self.folders(f"{path}/{system}"):
                inner = f"{path}/{system}/{folder}"
                self.paths.append(f"{inner}/")
                self.paths += [f"{inner}/{name}" for name in self._names(inner, False, ".txt")]

    def folders(self, path: str) -> list[str]:
        return self._names(path, True)


class _LocalWalk(Walk):
    def _names(self, path: str, folders: bool, suffix: str = "") -> list[str]:
        names = []
        try:
            with os.scandir(os.path.join(self.root, path)) as entries:
                names = [
                    entry.name
                    for entry in entries
                    if entry.name.endswith(suffix) and self._is_wanted(entry, path, folders)
                ]
        except OSError as error:
            self.findings.append(Finding(path or ".", f"cannot be listed: {error.strerror}"))
        return sorted(names)

    def _is_wanted(self, entry: os.DirEntry[str], path: str, folders: bool) -> bool:
        """A file that is a link out of the tree, or no file, is listed: reading it tells why it is not read."""
        is_folder = os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()
        if folders and entry.is_symlink() and not os.path.exists(entry.path) and "." not in entry.name:
            self._tell(path, entry, "is a broken link: not read")
        if not (is_folder and entry.is_symlink()) or _is_within(self.root, entry.path):
            return is_folder == folders
        if folders:
            self._tell(path, entry, "is a link out of the tree: not followed")
        return False

    def _tell(self, path: str, entry: os.DirEntry[str], message: str) -> None:
        self.findings.append(Finding(f"{path}/{entry.name}" if path else entry.name, message))
