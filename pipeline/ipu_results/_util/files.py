"""Files of the user: written whole or not at all, and never into what is only read."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from ipu_results.errors import IpuResultsError


def is_inside(out: Path, folder: str) -> bool:
    """Whether a file would lie in a folder, or be it."""
    target, root = Path(os.path.realpath(out)), Path(os.path.realpath(folder))
    return target == root or root in target.parents


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file in one step; a device or pipe is written to. Raises IpuResultsError naming it."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise IpuResultsError(f"cannot be written: {error.strerror}", place=str(path)) from error


def _replace(target: Path, data: bytes) -> None:
    draft = target.with_name(f".{uuid4().hex}.part")
    try:
        draft.write_bytes(data)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
