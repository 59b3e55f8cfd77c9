"""Write files whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from ipu_results.errors import IpuResultsError


def is_inside(path: Path, folder: str) -> bool:
    """Return whether a path lies in a folder or is that folder, links resolved."""
    target, root = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    return target == root or root in target.parents


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file in one step. A device or pipe is written to directly.

    Raises IpuResultsError that names the file.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise IpuResultsError(f"cannot be written: {error.strerror}", place=str(path)) from error


def sync_to_disk(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(target: Path, data: bytes) -> None:
    draft = target.with_name(f".{uuid4().hex}.part")
    try:
        draft.write_bytes(data)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
