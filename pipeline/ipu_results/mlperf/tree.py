"""List and read a results checkout in a folder.

Only what the layout names is read, and no link out of the folder is followed.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from fnmatch import filter as match_names
from functools import lru_cache, partial
from io import FileIO
from pathlib import Path

from ipu_results.errors import DocumentTooLargeError, UnrecognisedDocumentError, WorkerError
from ipu_results.ground.files import join_path
from ipu_results.ground.limits import MAX_SMALL
from ipu_results.mlperf.entries import (
    LOG_PATTERN,
    MAX_DEPTH,
    POWER_FOLDER,
    FileFinding,
)
from ipu_results.mlperf.log import CHUNK
from ipu_results.mlperf.rules import parse_round

# A pipe must not block, and a link is looked at before it is followed.
OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
PARTS = ("results", "systems")
LOG_SUFFIXES = (".txt", ".log")

# of a path, whether folders or else files, and their suffix
ListNames = Callable[[str, bool, str], list[str]]


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths relative to the root, folders with a slash at the end, and what was not followed."""

    paths: tuple[str, ...]
    findings: tuple[FileFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class LocalTree:
    """The folder of a round, or of several, to which another process may be sent.

    `part` is what was asked for of it, such as a submitter's folder; empty for all of it. `logs`
    are files in the folder `part` outside the layout of a round.
    """

    root: str
    part: str = ""
    logs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder's own name; for a link that names no round, the name of its target."""
        name = Path(self.root).name
        return name if parse_round(name) else Path(self.root).resolve().name

    def listing(self) -> Listing:
        if not os.path.isdir(self.root):
            raise UnrecognisedDocumentError(_explain_no_folder(self.root), document=self.root)
        findings: list[FileFinding] = []
        return walk(partial(_list_names, self.root, findings), findings, self.part)

    def check_visible(self, folder: str) -> None:
        """Raise WorkerError on a machine that does not see a folder that was listed."""
        path = os.path.join(self.root, folder)
        if not os.path.isdir(path):
            raise WorkerError(f"is not seen by a worker on {socket.gethostname()}", document=path)

    def chunks(self, path: str) -> Iterator[bytes]:
        with closing(_open(self.root, path)) as file:
            while chunk := file.read(CHUNK):
                yield chunk


def find_tree(path: str) -> LocalTree:
    """Return the checkout that a path is or is in: that of a submitter, a system, a benchmark or a
    log; or logs outside the layout of one.
    """
    if not path:
        return LocalTree(path)
    asked = Path(os.path.abspath(path))
    if any(asked.glob("*/results")) or any(asked.glob("*/*/results")):
        return LocalTree(str(asked))
    for results in (asked / "results", asked, *asked.parents[:3]):
        if results.name == "results" and results.is_dir():
            root = results.parents[1]
            return LocalTree(str(root), asked.relative_to(root).as_posix())
    if asked.is_file() and asked.suffix in LOG_SUFFIXES:
        return LocalTree(str(asked.parents[1]), asked.parent.name, (asked.name,))
    names = sorted(os.listdir(asked)) if asked.is_dir() else []
    if logs := match_names(names, LOG_PATTERN):
        return LocalTree(str(asked.parent), asked.name, tuple(logs))
    return LocalTree(str(asked))


def read_small_file(tree: LocalTree, path: str) -> bytes | None:
    """Return the bytes of a file, None without such a file.

    Raises OSError, DocumentTooLargeError.
    """
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


def _explain_no_folder(path: str) -> str:
    if path.endswith((os.sep + "-", ".zip")):
        what = "standard input" if path.endswith("-") else "a zip archive"
        return f"{what} cannot be read; pass a folder or a tar archive (.tar, .tar.gz, .tar.xz)"
    return (
        "is a file that is not a tar archive; pass a folder"
        if os.path.exists(path)
        else "does not exist"
    )


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


def _list_names(
    root: str, findings: list[FileFinding], path: str, folders: bool, suffix: str
) -> list[str]:
    names = []
    try:
        with os.scandir(os.path.join(root, path)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                is_listed, problem = _check_name(root, entry, folders)
                if is_listed and entry.name.endswith(suffix):
                    names.append(entry.name)
                if problem:
                    findings.append(FileFinding(join_path(path, entry.name), problem))
    except OSError as error:
        findings.append(FileFinding(path or ".", f"cannot be listed: {error.strerror}"))
    return names


def _check_name(root: str, entry: os.DirEntry[str], folders: bool) -> tuple[bool, str | None]:
    """Return whether a name is listed, and what is wrong with it.

    Files that cannot be read are listed, since reading shows why; links to folders out of the tree
    are not.
    """
    is_link = entry.is_symlink()
    is_folder = os.path.isdir(entry.path) if is_link else entry.is_dir()
    if is_folder and is_link and not _is_within(root, entry.path):
        return False, "is a link out of the folder; not followed" if folders else None
    # A link with a suffix was a file, which is listed with the files.
    is_broken = folders and is_link and not os.path.exists(entry.path) and "." not in entry.name
    return is_folder == folders, "is a broken link; not read" if is_broken else None


def walk(list_names: ListNames, findings: list[FileFinding], part: str = "") -> Listing:
    """List what the layout names and no more: a checkout also holds the submitters' code.

    `list_names` adds to `findings`. `part` is a path from a submitter on, of which alone is listed.
    """
    paths: list[str] = []

    def descend(folder: str, names: list[str], depth: int) -> None:
        for name in names:
            path = join_path(folder, name)
            inner = list_names(path, True, "")
            if not _add_submitter(path, inner, paths, list_names) and depth < MAX_DEPTH:
                descend(path, inner, depth + 1)

    descend("", [part.split("/", maxsplit=1)[0]] if part else list_names("", True, ""), 1)
    listed = [path for path in paths if f"{path}/".startswith(f"{part}/")] if part else paths
    return Listing(tuple(listed), tuple(findings))


def _add_submitter(path: str, inner: list[str], paths: list[str], list_names: ListNames) -> bool:
    """Add one submitter's results and systems; return False where the folder is not a submitter's."""

    def add_folder(folder: str, depth: int) -> None:
        """Add a folder of results: its depth is 1 for a system, 2 for a benchmark, 4 for the power
        logs of a run.
        """
        if depth < 3:
            paths.append(f"{folder}/")
        if depth > 0:
            paths.extend(f"{folder}/{name}" for name in list_names(folder, False, ".txt"))
        if depth < 3 or (depth == 3 and folder.endswith(f"/{POWER_FOLDER}")):
            for name in list_names(folder, True, ""):
                add_folder(f"{folder}/{name}", depth + 1)

    if "results" in inner:
        add_folder(f"{path}/results", 0)
    if "systems" in inner:
        paths.append(f"{path}/systems/")
        paths += [
            f"{path}/systems/{name}" for name in list_names(f"{path}/systems", False, ".json")
        ]
    return not set(PARTS).isdisjoint(inner)
