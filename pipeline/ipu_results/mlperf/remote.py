"""A results checkout at any URL that fsspec reads: object storage, a web server, an archive within another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from ipu_results.errors import ClusterError, MissingExtraError, UnrecognisedDocumentError
from ipu_results.mlperf.layout import Finding
from ipu_results.mlperf.lines import CHUNK
from ipu_results.mlperf.tree import Listing, LocalTree, Tree, Walk


def is_url(path: str) -> bool:
    return "://" in path or "::" in path


def open_tree(url: str) -> Tree:
    """The tree at a URL; a local one is a local folder. Raises MissingExtraError, UnrecognisedDocumentError."""
    files, root = _file_system(url)
    return LocalTree(root) if getattr(files, "local_file", False) else RemoteTree(url)


def open_remote(url: str) -> BinaryIO:
    """One file at a URL. Raises MissingExtraError, UnrecognisedDocumentError, OSError."""
    files, path = _file_system(url)
    return cast(BinaryIO, _as_os_error(lambda: files.open(path, "rb", block_size=CHUNK)))


@dataclass(frozen=True, slots=True)
class RemoteTree:
    """Only the URL is sent to another process, so `memory://`, which lies in one process alone, refuses to be sent."""

    url: str

    @property
    def name(self) -> str:
        return self.url.split("::")[-1].rstrip("/").rsplit("/", 1)[-1]

    def listing(self) -> Listing:
        """Raises MissingExtraError, and UnrecognisedDocumentError for what is no folder, or is the folder of one submitter."""
        files, root = _file_system(self.url)
        try:
            is_folder = files.isdir(root)
        except Exception as error:
            raise UnrecognisedDocumentError(f"cannot be read: {_told(error)}", document=self.url) from error
        if not is_folder:
            raise UnrecognisedDocumentError("is no folder", document=self.url)
        return _RemoteWalk(self.url).listing()

    def chunks(self, path: str) -> Iterator[bytes]:
        files, root = _file_system(self.url)
        file = _as_os_error(lambda: files.open(_join(root, path), "rb", block_size=CHUNK))
        with closing(file):
            while chunk := _as_os_error(lambda: file.read(CHUNK)):
                yield chunk

    def __reduce__(self) -> tuple[type[RemoteTree], tuple[str]]:
        if any(part.startswith("memory:") for part in self.url.split("::")):
            raise ClusterError("lies in one process, no other can read it; use --workers 1", document=self.url)
        return RemoteTree, (self.url,)


class _RemoteWalk(Walk):
    """Lists folder by folder: on object storage `find` would go through the submitters' code too."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.files, self.start = _file_system(url)

    def _names(self, path: str, folders: bool, suffix: str = "") -> list[str]:
        try:
            found = self.files.ls(_join(self.start, path), detail=True)
        except Exception as error:
            self.findings.append(Finding(path or ".", f"cannot be listed: {_told(error)}"))
            return []
        here = _join(self.start, path).strip("/")
        names = {str(one["name"]).strip("/").rsplit("/", 1)[-1]: one for one in found if _path(one) != here}
        wanted = [name for name, one in sorted(names.items()) if name.endswith(suffix)]
        return [name for name in wanted if self._is_wanted(path, name, names[name], folders)]

    def _is_wanted(self, path: str, name: str, one: dict[str, Any], folders: bool) -> bool:
        kind = "other" if one.get("islink") else one.get("type")
        if kind not in ("file", "directory") and not folders:
            self.findings.append(Finding(_join(path, name), "is a link or no regular file: not read"))
        return kind == ("directory" if folders else "file")


def _file_system(url: str) -> tuple[Any, str]:
    """Fsspec keeps one file system per address and process, so asking again costs nothing."""
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("a URL needs fsspec: pip install 'ipu-results[remote]'", document=url) from error
    try:
        files, root = url_to_fs(url)
    except Exception as error:
        raise UnrecognisedDocumentError(f"cannot be opened: {_told(error)}", document=url) from error
    return files, str(root)


def _as_os_error(act: Any) -> Any:
    """A file system raises errors of its own, of any class; to a reader each is one file that cannot be read."""
    try:
        return act()
    except OSError:
        raise
    except Exception as error:
        raise OSError(_told(error)) from error


def _path(one: dict[str, Any]) -> str:
    return str(one["name"]).strip("/")


def _join(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}" if root and path else root or path


def _told(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
