"""The folder that runs are collected from, on a disk or at a URL: what it lists, and one file of
it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Literal, cast
from urllib.parse import quote, unquote, urljoin, urlsplit

from lxml import html

from ipu_results.errors import DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.ground.files import (
    call_remote,
    connect_url,
    hide_secrets,
    is_url,
    join_path,
    open_regular_file,
)
from ipu_results.ground.limits import MAX_LISTING_BYTES, MAX_RUN_DEPTH, MAX_RUN_FOLDERS
from ipu_results.schema import table
from ipu_results.sources.catalogue import UNFINISHED
from ipu_results.sources.download import ANYTHING, TransferOptions, download

RUN_ID = table("runs").column("run_id").pattern or ""
RECORD, POINTS, JOURNAL = "record.json", "points.csv", "journal.jsonl"
ATTACHMENTS = ("blocks.jsonl", "stamps.parquet")
FILES = (RECORD, POINTS, f"{RECORD}.toml", f"{POINTS}.toml", *ATTACHMENTS)

Kind = Literal["file", "folder", "link", "other"]
Status = Literal["added", "present", "unfinished", "conflict", "refused", "failed"]


class LocalFolder:
    """A folder on a disk. No link below it is followed. Methods raise OSError.

    Paths are relative to the folder, names joined by a slash; "" is the folder itself. `place` is
    what the outcomes call it, without secrets; `name` is its own, and the run's where it is a run
    folder.
    """

    def __init__(self, root: str) -> None:
        self.place = root
        self._root = os.path.realpath(root)
        self.name = os.path.basename(self._root)

    def list_entries(self, path: str) -> dict[str, Kind]:
        """Return the kinds of what is in a folder, by name."""
        with os.scandir(os.path.join(self._root, path)) as entries:
            return {entry.name: _get_kind(entry) for entry in entries}

    def open_file(self, path: str) -> BufferedReader:
        place = Path(self._root, path)
        if os.path.realpath(place.parent) != str(
            place.parent
        ):  # it may be another folder than the listed one by now
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return open_regular_file(place, follow_links=False)


def _get_kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


class RemoteFolder:
    """The same at a URL.

    Names come from the server: only the last part of one counts, below the folder it lists.
    """

    def __init__(self, url: str) -> None:
        self.place = hide_secrets(url)
        self._files, self._root = connect_url(url)
        self.name = self._root.rstrip("/").rsplit("/", 1)[-1]

    def list_entries(self, path: str) -> dict[str, Kind]:
        folder = join_path(self._root, path)
        kinds: dict[str, Kind] = {"directory": "folder", "file": "file"}
        entries: dict[str, Kind] = {}
        for item in call_remote(lambda: self._files.ls(folder, detail=True)):
            before, _, name = str(item["name"]).rstrip("/").rpartition("/")
            if name and before.strip("/") == folder.strip("/"):
                entries[name] = (
                    "link" if item.get("islink") else kinds.get(str(item.get("type")), "other")
                )
        return entries

    def open_file(self, path: str) -> BinaryIO:
        return cast(
            BinaryIO, call_remote(lambda: self._files.open(join_path(self._root, path), "rb"))
        )


class WebFolder:
    """The same on a web server, by the links of its listing; requests are those of `fetch`, with
    its limits.
    """

    def __init__(self, url: str) -> None:
        self.place = hide_secrets(url)
        if urlsplit(url).query:
            raise UnrecognisedDocumentError(
                "has a query; name the address of a folder alone", document=self.place
            )
        self._url = f"{url.partition('#')[0].rstrip('/')}/"
        self.name = unquote(self._url).rstrip("/").rsplit("/", 1)[-1]

    def list_entries(self, path: str) -> dict[str, Kind]:
        """Return the kinds of what is in a folder. Raises FetchError, OSError."""
        url = join_path(self._url, quote(f"{path}/" if path else ""))
        page = download(url, "text/html", TransferOptions(MAX_LISTING_BYTES)).data
        folder, entries = urlsplit(url), dict[str, Kind]()
        for link in call_remote(lambda: html.document_fromstring(page).xpath("//a/@href")):
            try:
                target = urlsplit(urljoin(url, str(link)))
            except ValueError:  # not an address
                continue
            before, _, name = target.path.rstrip("/").rpartition("/")
            is_below = target[:2] == folder[:2] and unquote(f"{before}/") == unquote(folder.path)
            if is_below and name and not target.query:
                entries[unquote(name)] = "folder" if target.path.endswith("/") else "file"
        return entries

    def copy_file(self, path: str, out: BinaryIO, max_bytes: int) -> None:
        """Copy a file. Raises FetchError, and OSError where the copy cannot be written."""
        download(join_path(self._url, quote(path)), ANYTHING, TransferOptions(max_bytes, out=out))


Folder = LocalFolder | RemoteFolder | WebFolder


def open_folder(source: str) -> Folder:
    """Return the folder at a path or URL.

    Raises MissingExtraError, UnrecognisedDocumentError for a bad URL.
    """
    if not is_url(source):
        return LocalFolder(source)
    if re.match(r"(?i)https?://", source):
        return WebFolder(source)
    if re.search(r"(?i)https?://|webdav|github:", source):
        message = "leads to a web server in another way; name its address alone"
        raise UnrecognisedDocumentError(message, document=hide_secrets(source))
    files, root = connect_url(source)
    return LocalFolder(root) if getattr(files, "local_file", False) else RemoteFolder(source)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder that may hold a run: its path, its entries, and why it is not one."""

    path: str
    name: str
    entries: Mapping[str, Kind]
    fault: str | None = None
    status: Status = "refused"


def find_run_folders(folder: Folder) -> Iterator[RunFolder]:
    """Yield each run at or below the folder, in the order of the names, and what looks like one and
    is none.

    Raises OSError for a folder that cannot be listed, DocumentTooLargeError for one with too many
    below it.
    """
    waiting = [("", folder.name, 0)]
    seen, deepest = -1, ""  # the source is not below itself
    while waiting:
        path, name, depth = waiting.pop()
        if (seen := seen + 1) + len(waiting) > MAX_RUN_FOLDERS:
            raise DocumentTooLargeError(
                f"has more than {MAX_RUN_FOLDERS:,} folders below it", document=folder.place
            )
        entries = folder.list_entries(path)
        if (
            re.fullmatch(RUN_ID, name)
            or name.endswith(UNFINISHED)
            or {RECORD, POINTS} <= set(entries)
        ):
            yield _describe_run(path, name, entries)
            continue
        below = []
        for entry, kind in sorted(entries.items(), reverse=True):
            own = join_path(path, entry)
            if (entry.startswith(".") and entry != "..") or kind not in ("link", "folder"):
                continue
            if (
                kind == "link"
                or entry == ".."
                or not entry.isprintable()
                or set(entry) & {"/", "\\"}
            ):
                yield RunFolder(
                    own,
                    entry,
                    {},
                    "is a link; not followed" if kind == "link" else "has a hostile name",
                )
            elif depth == MAX_RUN_DEPTH:
                deepest = deepest or own
            else:
                below.append((own, entry, depth + 1))
        waiting += below
    if deepest:
        fault = (
            f"is more than {MAX_RUN_DEPTH} folders below the source: not searched; name a folder"
            " nearer to it"
        )
        yield RunFolder(deepest, deepest.rsplit("/", 1)[-1], {}, fault)


def _describe_run(path: str, name: str, entries: Mapping[str, Kind]) -> RunFolder:
    run = RunFolder(path, name, entries)
    if name.endswith(UNFINISHED) or (JOURNAL in entries and RECORD not in entries):
        fault = (
            "is unfinished: its journal has no end; finish it there with sweep --resume, then"
            " collect again"
        )
        return replace(run, name=name.removesuffix(UNFINISHED), fault=fault, status="unfinished")
    if not re.fullmatch(RUN_ID, name):
        return replace(
            run, fault=f"is not the id of a run: rename the folder to the run_id in its {RECORD}"
        )
    if odd := sorted(entry for entry, kind in entries.items() if kind != "file"):
        what = "a link" if entries[odd[0]] == "link" else "not a regular file"
        return replace(run, fault=f"{odd[0]!r} is {what}: a run has files only")
    if extra := sorted(entry for entry in set(entries) - set(FILES) if not entry.startswith(".")):
        return replace(
            run,
            fault=(
                f"{extra[0]!r} is not a file of a run; remove it there, or collect from a clean"
                " copy"
            ),
        )
    if missing := sorted(set(FILES) - set(entries)):
        return replace(run, fault=f"is incomplete: it has no {missing[0]}", status="unfinished")
    return run
