"""The folder that runs are collected from, on a disk or at a URL: what it lists, and one file of it."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, Protocol, cast

from ipu_results.errors import DocumentTooLargeError
from ipu_results.ground.files import NON_BLOCKING
from ipu_results.ground.limits import MAX_RUN_DEPTH, MAX_RUN_FOLDERS
from ipu_results.ground.remote import call, connect, hide_secrets, is_url, join_path
from ipu_results.schema import table
from ipu_results.sources.catalogue import UNFINISHED

RUN_ID = table("runs").column("run_id").pattern or ""
RECORD, POINTS, JOURNAL = "record.json", "points.csv", "journal.jsonl"
ATTACHMENTS = ("blocks.jsonl", "stamps.parquet")
FILES = (RECORD, POINTS, f"{RECORD}.toml", f"{POINTS}.toml", *ATTACHMENTS)
CHUNK = 2**20

Kind = Literal["file", "folder", "link", "other"]


class Folder(Protocol):
    """Paths are relative to the folder, names joined by a slash; "" is the folder itself. Methods raise OSError."""

    place: str
    name: str

    def list_entries(self, path: str) -> dict[str, Kind]: ...

    def open_file(self, path: str) -> BinaryIO: ...


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder that may hold a run: its path, its entries, and why it is not one."""

    path: str
    name: str
    entries: dict[str, Kind]
    fault: str | None = None
    unfinished: bool = False


class LocalFolder:
    """A folder on a disk. No link below it is followed."""

    def __init__(self, root: str) -> None:
        self.place = root
        self._root = os.path.realpath(root)
        self.name = os.path.basename(self._root)

    def list_entries(self, path: str) -> dict[str, Kind]:
        with os.scandir(os.path.join(self._root, path)) as entries:
            return {entry.name: _get_kind(entry) for entry in entries}

    def open_file(self, path: str) -> BinaryIO:
        folder, name = os.path.split(path)
        place = os.open(os.path.join(self._root, folder), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | NON_BLOCKING, dir_fd=place)
        finally:
            os.close(place)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "is not a regular file")
        return os.fdopen(descriptor, "rb")


class RemoteFolder:
    """A folder at a URL. Names come from the server: only the last part of one counts, below the folder it lists."""

    def __init__(self, url: str) -> None:
        self.place = hide_secrets(url)
        self._files, self._root = connect(url)
        self.name = self._root.rstrip("/").rsplit("/", 1)[-1]

    def list_entries(self, path: str) -> dict[str, Kind]:
        folder = join_path(self._root, path)
        listed = call(lambda: self._files.ls(folder, detail=True))
        entries: dict[str, Kind] = {}
        for item in listed:
            before, _, name = str(item["name"]).rstrip("/").rpartition("/")
            if name and before.strip("/") == folder.strip("/"):
                entries[name] = _get_remote_kind(item)
        return entries

    def open_file(self, path: str) -> BinaryIO:
        return cast(BinaryIO, call(lambda: self._files.open(join_path(self._root, path), "rb")))


def open_folder(source: str) -> Folder:
    """Return the folder at a path or URL. Raises MissingExtraError, UnrecognisedDocumentError for a bad URL."""
    if not is_url(source):
        return LocalFolder(source)
    files, root = connect(source)
    return LocalFolder(root) if getattr(files, "local_file", False) else RemoteFolder(source)


def find_run_folders(folder: Folder) -> Iterator[RunFolder]:
    """Yield each run at or below the folder, in the order of the names, and what looks like one and is none.

    Raises OSError for a folder that cannot be listed, DocumentTooLargeError for one with too many below it.
    """
    waiting = [("", folder.name, 0)]
    seen, deepest = 0, ""
    while waiting:
        path, name, depth = waiting.pop()
        if (seen := seen + 1) > MAX_RUN_FOLDERS:
            raise DocumentTooLargeError(f"has more than {MAX_RUN_FOLDERS:,} folders below it", document=folder.place)
        entries = folder.list_entries(path)
        if _is_run_id(name) or name.endswith(UNFINISHED) or {RECORD, POINTS} <= set(entries):
            yield _describe_run(path, name, entries)
            continue
        below = []
        for entry, kind in sorted(entries.items(), reverse=True):
            own = join_path(path, entry)
            if entry.startswith(".") and entry != "..":
                continue
            if kind == "link" or (kind == "folder" and not _is_plain(entry)):
                yield RunFolder(own, entry, {}, "is a link; not followed" if kind == "link" else "has a hostile name")
            elif kind == "folder" and depth == MAX_RUN_DEPTH:
                deepest = deepest or own
            elif kind == "folder":
                below.append((own, entry, depth + 1))
        waiting += below
    if deepest:
        fault = f"is more than {MAX_RUN_DEPTH} folders below the source: not searched; name a folder nearer to it"
        yield RunFolder(deepest, deepest.rsplit("/", 1)[-1], {}, fault)


def _describe_run(path: str, name: str, entries: dict[str, Kind]) -> RunFolder:
    if name.endswith(UNFINISHED) or (JOURNAL in entries and RECORD not in entries):
        fault = "is unfinished: its journal has no end; finish it there with sweep --resume, then collect again"
        return RunFolder(path, name.removesuffix(UNFINISHED), entries, fault, unfinished=True)
    if not _is_run_id(name):
        fault = f"is not the id of a run: rename the folder to the run_id in its {RECORD}"
        return RunFolder(path, name, entries, fault)
    if odd := sorted(entry for entry, kind in entries.items() if kind != "file"):
        what = "a link" if entries[odd[0]] == "link" else "not a regular file"
        return RunFolder(path, name, entries, f"{odd[0]!r} is {what}: a run has files only")
    if extra := sorted(entry for entry in set(entries) - set(FILES) if not entry.startswith(".")):
        fault = f"{extra[0]!r} is not a file of a run; remove it there, or collect from a clean copy"
        return RunFolder(path, name, entries, fault)
    return RunFolder(path, name, entries)


def _is_run_id(name: str) -> bool:

    return re.fullmatch(RUN_ID, name) is not None


def _is_plain(name: str) -> bool:
    return name not in (".", "..") and name.isprintable() and not set(name) & {"/", "\\"}


def _get_kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _get_remote_kind(item: Any) -> Kind:
    if item.get("islink"):
        return "link"
    return {"directory": "folder", "file": "file"}.get(str(item.get("type")), "other")  # type: ignore[return-value]
