"""List and read a results checkout at any URL that fsspec knows: object storage, a web server, inside an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, TypeVar, cast

from ipu_results.errors import ClusterError, MissingExtraError, UnrecognisedDocumentError
from ipu_results.mlperf.entries import Finding
from ipu_results.mlperf.log import CHUNK
from ipu_results.mlperf.tree import Listing, LocalTree, Tree, walk

T = TypeVar("T")


def is_url(path: str) -> bool:
    return "://" in path or "::" in path


def open_tree(url: str) -> Tree:
    """Return the tree at a URL, a LocalTree for a local one. Raises MissingExtraError, UnrecognisedDocumentError."""
    files, root = _connect(url)
    return LocalTree(root) if getattr(files, "local_file", False) else RemoteTree(url)


def open_file(url: str) -> BinaryIO:
    """Open one file at a URL. Raises MissingExtraError, UnrecognisedDocumentError, OSError."""
    files, path = _connect(url)
    return cast(BinaryIO, _call(lambda: files.open(path, "rb", block_size=CHUNK)))


@dataclass(frozen=True, slots=True)
class RemoteTree:
    """Only the URL is sent to another process, so a `memory://` URL, which one process alone sees, cannot be sent."""

    url: str

    @property
    def name(self) -> str:
        return self.url.split("::")[-1].rstrip("/").rsplit("/", 1)[-1]

    def listing(self) -> Listing:
        """List the round. Raises MissingExtraError, UnrecognisedDocumentError for a file or one submitter's folder."""
        files, root = _connect(self.url)
        try:
            is_folder = files.isdir(root)
        except Exception as error:
            raise UnrecognisedDocumentError(f"cannot be read: {_describe(error)}", document=self.url) from error
        if not is_folder:
            raise UnrecognisedDocumentError("is not a folder", document=self.url)
        findings: list[Finding] = []
        return walk(self.url, partial(_list_remote, files, root, findings), findings)

    def chunks(self, path: str) -> Iterator[bytes]:
        files, root = _connect(self.url)
        file = _call(lambda: files.open(_join(root, path), "rb", block_size=CHUNK))
        with closing(file):
            while chunk := _call(lambda: file.read(CHUNK)):
                yield chunk

    def __reduce__(self) -> tuple[type[RemoteTree], tuple[str]]:
        if any(part.startswith("memory:") for part in self.url.split("::")):
            raise ClusterError("is visible to one process only; use --workers 1", document=self.url)
        return RemoteTree, (self.url,)


def _list_remote(files: Any, start: str, findings: list[Finding], path: str, folders: bool, suffix: str) -> list[str]:
    """List folder by folder: on object storage `find` would go through the submitters' code too."""
    folder = _join(start, path)
    try:
        listed = files.ls(folder, detail=True)
    except Exception as error:
        findings.append(Finding(path or ".", f"cannot be listed: {_describe(error)}"))
        return []
    kinds = {str(item["name"]).strip("/"): "other" if item.get("islink") else item.get("type") for item in listed}
    kinds.pop(folder.strip("/"), None)
    names = []
    for full, kind in sorted(kinds.items()):
        name = full.rsplit("/", 1)[-1]
        if kind == ("directory" if folders else "file") and name.endswith(suffix):
            names.append(name)
        elif kind not in ("file", "directory") and not folders and name.endswith(suffix):
            findings.append(Finding(_join(path, name), "is a link or not a regular file; not read"))
    return names


def _connect(url: str) -> tuple[Any, str]:
    """Return the file system and the path in it; fsspec keeps one file system per address and process."""
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415  (optional)
    except ImportError as error:
        raise MissingExtraError("a URL needs fsspec: pip install 'ipu-results[remote]'", document=url) from error
    try:
        files, root = url_to_fs(url)
    except Exception as error:
        raise UnrecognisedDocumentError(f"cannot be opened: {_describe(error)}", document=url) from error
    return files, str(root)


def _call(operation: Callable[[], T]) -> T:
    """Turn the errors of a file system, which may be of any class, into OSError: a file that cannot be read."""
    try:
        return operation()
    except OSError:
        raise
    except Exception as error:
        raise OSError(_describe(error)) from error


def _join(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}" if root and path else root or path


def _describe(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
