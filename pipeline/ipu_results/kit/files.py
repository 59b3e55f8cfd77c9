"""Write files whole or not at all, and locate those that travel with the package.

An installed wheel carries schema and dataset inside the package. In a checkout they are in folders
next to the source root. The version of the package is that of the dataset inside it and of its next
release.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tomllib
from collections.abc import Mapping
from errno import EINVAL, EISDIR
from io import BufferedReader
from pathlib import Path
from typing import Any
from uuid import uuid4

from ipu_results.errors import IpuResultsError

# by the letter that `ls -l` begins a line with
KINDS = {"l": "link", "p": "named pipe", "s": "socket", "c": "device", "b": "device"}
UNFINISHED = ".unfinished"  # ends the folder name of a run in progress
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
NON_BLOCKING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class DamagedCommitWarning(UserWarning):
    """The commit file of an interrupted build cannot be read, so the build was discarded."""


def open_regular_file(path: Path, *, follow_links: bool = True) -> BufferedReader:
    """Open a file for reading, and refuse what a read could wait for without end.

    Raises OSError, also for a named pipe, a socket, a device or a folder, and for a link if links
    are not followed.
    """
    # opening some devices has an effect
    _assert_regular(os.stat(path, follow_symlinks=follow_links))
    flags = os.O_RDONLY | NON_BLOCKING
    if not follow_links:
        flags |= NO_FOLLOW
    descriptor = os.open(path, flags)
    try:
        _assert_regular(os.fstat(descriptor))  # the path may be another file by now
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def read_up_to(path: Path, count: int, *, follow_links: bool = True) -> bytes:
    """Return the first bytes of a regular file: one more than a limit, and a file is too large.

    Raises OSError as `open_regular_file` does.
    """
    with open_regular_file(path, follow_links=follow_links) as file:
        return file.read(count)


def _assert_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.filemode(status.st_mode)[0], "special file")
        raise OSError(EINVAL, f"it is a {kind}, not a regular file")


def hash_file(path: Path) -> str:
    """Return the sha256 of a regular file in hex. Raises OSError as `open_regular_file` does."""
    with open_regular_file(path) as file:
        return str(hashlib.file_digest(file, "sha256").hexdigest())


def is_inside(path: Path, folder: str) -> bool:
    """Return whether a path lies in a folder or is that folder, links resolved."""
    target = Path(os.path.realpath(path))
    root = Path(os.path.realpath(folder))
    return target == root or root in target.parents


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file in one step. A device or pipe is written to directly.

    Raises IpuResultsError that names the file.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{uuid4().hex}.part")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        try:
            draft.write_bytes(data)
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise IpuResultsError(f"cannot be written: {error.strerror}", place=str(path)) from error


def write_folder(target: Path, files: Mapping[str, bytes], work: Path) -> None:
    """Make a folder with these files in one step; `work`, next to it, holds them until all are on
    disk.

    A process killed before the last step leaves `work`, which the next call replaces. Raises
    IpuResultsError.
    """
    try:
        work.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        for name, data in files.items():
            (work / name).write_bytes(data)
            sync_to_disk(work / name)
        sync_to_disk(work)
        os.rename(work, target)
        sync_to_disk(target.parent)
    except OSError as error:
        shutil.rmtree(work, ignore_errors=True)
        raise IpuResultsError(f"cannot be written: {error.strerror}", place=str(target)) from error


def sync_to_disk(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]


def find_folder(packaged: str, checkout: str) -> Path:
    """Return the folder of the wheel if there is one, else that of the checkout."""
    installed = PACKAGE / packaged
    return installed if installed.is_dir() else CHECKOUT / checkout


SCHEMA = find_folder("_schema", "schema")
DATASET = find_folder("_data", "warehouse")


def load_schema_file(path: str) -> dict[str, Any]:
    """Load a TOML file under `schema/`, such as `vocabulary/units.toml`."""
    return tomllib.loads((SCHEMA / path).read_text(encoding="utf-8"))


def list_in_order(kind: str, folder: str, suffix: str) -> list[str]:
    """Return the names of a list of `schema/order.toml`, and after them, sorted, the files of the
    folder that it does not name.

    So a new file is used without being named anywhere. Its place matters where others read it.
    """
    listed: list[str] = load_schema_file("order.toml")[kind]
    known = {name.rpartition(".")[2] for name in listed}
    found = {path.stem for path in (SCHEMA / folder).glob(f"*{suffix}")}
    return [*listed, *sorted(found - known)]


DISTRIBUTION = "ipu-results"
PROJECT = CHECKOUT / "pyproject.toml"


def read_version() -> str:
    """Return the version of the checkout, else the installed one, such as `1.0.0`."""
    if PROJECT.is_file():
        project = tomllib.loads(PROJECT.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == DISTRIBUTION:
            return str(project["version"])
    from importlib.metadata import version  # noqa: PLC0415  (takes 20 ms)

    return version(DISTRIBUTION)


def join_path(root: str, path: str) -> str:
    if not root:
        return path
    if not path:
        return root
    return f"{root.rstrip('/')}/{path}"
