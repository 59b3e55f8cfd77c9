"""List and read a results checkout in a folder.

Only what the layout names is read, and no link out of the folder is followed.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fnmatch import filter as match_names
from functools import lru_cache
from io import FileIO
from pathlib import Path

from ipu_results.errors import DocumentTooLargeError, UnrecognisedDocumentError, WorkerError
from ipu_results.kit.files import join_path
from ipu_results.kit.limits import MAX_SMALL
from ipu_results.mlperf.entries import LOG_PATTERN, MAX_DEPTH, POWER_FOLDER, FileFinding
from ipu_results.mlperf.log import CHUNK, Log, read_log
from ipu_results.mlperf.rules import parse_round

# A pipe must not block, and a link is looked at before it is followed.
OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
LOG_SUFFIXES = (".txt", ".log")  # of a log that is passed alone, whatever its name


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths relative to the root, folders with a slash at the end, and what was not followed."""

    paths: tuple[str, ...]
    findings: tuple[FileFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class LocalTree:
    """The folder of a round, or of several, to which another process may be sent.

    `part` is what was asked for of it, such as a submitter's folder; empty for all of it. `loose`
    are logs in the folder `part` outside the layout of a round.
    """

    root: str
    part: str = ""
    loose: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder's own name; for a link that names no round, the name of its target."""
        name = Path(self.root).name
        if parse_round(name):
            return name
        return Path(self.root).resolve().name

    def listing(self) -> Listing:
        if not os.path.isdir(self.root):
            raise UnrecognisedDocumentError(_explain_no_folder(self.root), document=self.root)
        walk = _Walk(self.root)
        if self.part:
            walk.descend("", [self.part.split("/")[0]])
            # a log may be the part itself
            part = f"{self.part}/"
            walk.paths = [path for path in walk.paths if f"{path}/".startswith(part)]
        else:
            walk.descend("", walk.list_folders(""))
        return Listing(tuple(walk.paths), tuple(walk.findings))

    def check_visible(self, folder: str) -> None:
        """Raise WorkerError on a machine that does not see a folder that was listed."""
        path = os.path.join(self.root, folder)
        if not os.path.isdir(path):
            raise WorkerError(f"is not seen by a worker on {socket.gethostname()}", document=path)

    def chunks(self, path: str) -> Iterator[bytes]:
        with closing(_open(self.root, path)) as file:
            while chunk := file.read(CHUNK):
                yield chunk

    def log(self, path: str) -> Log:
        return read_log(self.chunks(path))

    def small_file(self, path: str) -> bytes | None:
        """Return the bytes of a file, None without such a file.

        Raises OSError, DocumentTooLargeError.
        """
        data = b""
        try:
            with closing(self.chunks(path)) as chunks:  # type: ignore[type-var]
                for chunk in chunks:
                    data += chunk
                    if len(data) > MAX_SMALL:
                        raise DocumentTooLargeError(f"is larger than {MAX_SMALL:,} bytes")
        except FileNotFoundError:
            return None
        return data


def find_tree(path: str) -> LocalTree:
    """Return the checkout that a path is or is in: that of a submitter, a system, a benchmark or a
    log; or logs outside the layout of one.
    """
    if not path:  # an abspath of nothing is the current folder
        return LocalTree(path)
    asked = Path(os.path.abspath(path))
    if any(asked.glob("*/results")) or any(asked.glob("*/*/results")):
        return LocalTree(str(asked))
    # a submitter holds it, and a log is three folders below it
    candidates = [asked / "results", asked, *asked.parents[:3]]
    for results in candidates:
        if results.name == "results" and results.is_dir():
            root = results.parents[1]
            return LocalTree(str(root), asked.relative_to(root).as_posix())
    if asked.is_file() and asked.suffix in LOG_SUFFIXES:
        folder = asked.parent
        return LocalTree(str(folder.parent), part=folder.name, loose=(asked.name,))
    if asked.is_dir():
        logs = match_names(sorted(os.listdir(asked)), LOG_PATTERN)
        if logs:
            return LocalTree(str(asked.parent), part=asked.name, loose=tuple(logs))
    return LocalTree(str(asked))


def _explain_no_folder(path: str) -> str:
    readable = "pass a folder or a tar archive (.tar, .tar.gz, .tar.xz)"
    if path.endswith(f"{os.sep}-"):
        return f"standard input cannot be read; {readable}"
    if path.endswith(".zip"):
        return f"a zip archive cannot be read; {readable}"
    if os.path.exists(path):
        return "is a file that is not a tar archive; pass a folder"
    return "does not exist"


def _open(root: str, path: str) -> FileIO:
    folder, name = os.path.split(path)
    try:
        descriptor = os.open(os.path.join(_resolve_folder(root, folder), name), OPEN_FLAGS)
    except OSError as error:
        if error.errno != errno.ELOOP:  # O_NOFOLLOW says so of a link
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


# the logs of an entry are read one after the other
_resolve_folder = lru_cache(maxsize=64)(_resolve)


def _is_within(root: str, full: str) -> bool:
    inner = os.path.realpath(full)
    outer = os.path.realpath(root)
    return os.path.commonpath([inner, outer]) == outer


class _Walk:
    """Lists what the layout names and no more: a checkout also holds the submitters' code."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.paths: list[str] = []
        self.findings: list[FileFinding] = []

    def descend(self, folder: str, names: list[str], depth: int = 1) -> None:
        """Add the submitters among the folders `names` of a folder, and in these."""
        for name in names:
            path = join_path(folder, name)
            inner = self.list_folders(path)
            if "results" in inner:
                self._add_results(f"{path}/results", 0)
            if "systems" in inner:
                self._add_files(f"{path}/systems", ".json")
            is_submitter = "results" in inner or "systems" in inner
            if not is_submitter and depth < MAX_DEPTH:
                self.descend(path, inner, depth + 1)

    def _add_results(self, folder: str, depth: int) -> None:
        """Add what is in a folder of results: its depth is 1 for a system, 2 for a benchmark, 4 for
        the power logs of a run.
        """
        # a folder without files is an entry, too: one whose logs are missing
        if depth in (1, 2):
            self.paths.append(f"{folder}/")
        if depth > 0:
            self._add_files(folder, ".txt")
        is_power = depth == 3 and folder.endswith(f"/{POWER_FOLDER}")
        if depth < 3 or is_power:
            for name in self.list_folders(folder):
                self._add_results(f"{folder}/{name}", depth + 1)

    def _add_files(self, folder: str, suffix: str) -> None:
        """Add the files of a folder. Those that cannot be read too: reading them shows why."""
        for entry in self._scan(folder):
            if entry.name.endswith(suffix) and not os.path.isdir(entry.path):
                self.paths.append(f"{folder}/{entry.name}")

    def list_folders(self, path: str) -> list[str]:
        names = []
        for entry in self._scan(path):
            problem = self._find_problem(entry)
            if problem:
                self.findings.append(FileFinding(join_path(path, entry.name), problem))
            elif os.path.isdir(entry.path):
                names.append(entry.name)
        return names

    def _scan(self, path: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self.root, path)) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.findings.append(FileFinding(path or ".", f"cannot be listed: {error.strerror}"))
            return []

    def _find_problem(self, entry: os.DirEntry[str]) -> str | None:
        """Return what is wrong with a link to a folder."""
        if not entry.is_symlink():
            return None
        if os.path.isdir(entry.path) and not _is_within(self.root, entry.path):
            return "is a link out of the folder; not followed"
        # A link with a suffix was a file, which is listed with the files.
        if "." not in entry.name and not os.path.exists(entry.path):
            return "is a broken link; not read"
        return None
