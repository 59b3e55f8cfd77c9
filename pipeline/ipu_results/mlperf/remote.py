"""List and read a results checkout at any URL that fsspec knows: object storage, a web server, inside an archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, cast

from ipu_results._util.remote import call, connect, describe_error, is_url, join_path
from ipu_results.errors import ClusterError, UnrecognisedDocumentError
from ipu_results.mlperf.entries import Finding
from ipu_results.mlperf.log import CHUNK
from ipu_results.mlperf.tree import Listing, LocalTree, Tree, walk

__all__ = ["RemoteTree", "is_url", "open_file", "open_tree"]


def open_tree(url: str) -> Tree:
    """Return the tree at a URL, a LocalTree for a local one. Raises MissingExtraError, UnrecognisedDocumentError."""
    files, root = connect(url)
    return LocalTree(root) if getattr(files, "local_file", False) else RemoteTree(url)


def open_file(url: str) -> BinaryIO:
    """Open one file at a URL. Raises MissingExtraError, UnrecognisedDocumentError, OSError."""
    files, path = connect(url)
    return cast(BinaryIO, call(lambda: files.open(path, "rb", block_size=CHUNK)))


@dataclass(frozen=True, slots=True)
class RemoteTree:
    """Only the URL is sent to another process, so a `memory://` URL, which one process alone sees, cannot be sent."""

    url: str

    @property
    def name(self) -> str:
        return self.url.split("::")[-1].rstrip("/").rsplit("/", 1)[-1]

    def listing(self) -> Listing:
        """List the round. Raises MissingExtraError, UnrecognisedDocumentError for a file or one submitter's folder."""
        files, root = connect(self.url)
        try:
            is_folder = files.isdir(root)
        except Exception as error:
            raise UnrecognisedDocumentError(f"cannot be read: {describe_error(error)}", document=self.url) from error
        if not is_folder:
            raise UnrecognisedDocumentError("is not a folder", document=self.url)
        findings: list[Finding] = []
        return walk(self.url, partial(_list_remote, files, root, findings), findings)

    def chunks(self, path: str) -> Iterator[bytes]:
        files, root = connect(self.url)
        file = call(lambda: files.open(join_path(root, path), "rb", block_size=CHUNK))
        with closing(file):
            while chunk := call(lambda: file.read(CHUNK)):
                yield chunk

    def __reduce__(self) -> tuple[type[RemoteTree], tuple[str]]:
        if any(part.startswith("memory:") for part in self.url.split("::")):
            raise ClusterError("is visible to one process only; use --workers 1", document=self.url)
        return RemoteTree, (self.url,)


def _list_remote(files: Any, start: str, findings: list[Finding], path: str, folders: bool, suffix: str) -> list[str]:
    """List folder by folder: on object storage `find` would go through the submitters' code too."""
    folder = join_path(start, path)
    try:
        listed = files.ls(folder, detail=True)
    except Exception as error:
        findings.append(Finding(path or ".", f"cannot be listed: {describe_error(error)}"))
        return []
    kinds = {str(item["name"]).strip("/"): "other" if item.get("islink") else item.get("type") for item in listed}
    kinds.pop(folder.strip("/"), None)
    names = []
    for full, kind in sorted(kinds.items()):
        name = full.rsplit("/", 1)[-1]
        if kind == ("directory" if folders else "file") and name.endswith(suffix):
            names.append(name)
        elif kind not in ("file", "directory") and not folders and name.endswith(suffix):
            findings.append(Finding(join_path(path, name), "is a link or not a regular file; not read"))
    return names
