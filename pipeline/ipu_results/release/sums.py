"""SHA256SUMS: the digest of every other file of a release, as `sha256sum -c` reads it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SUMS = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_][A-Za-z0-9_.-]*)")


@dataclass(frozen=True, slots=True)
class Sums:
    """Digests by file name; `faults` tell of lines that are not exactly as we write them."""

    digests: Mapping[str, str]
    faults: tuple[str, ...] = ()


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(folder: Path) -> None:
    """Name every file of the folder, sorted."""
    names = sorted(path.name for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{digest(folder / name)}  {name}\n" for name in names]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8", newline="")


def read_sums(path: Path) -> Sums:
    """What the file says. Nothing is passed over: one byte that is not as we write it is a fault."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    faults, found = [], {}
    *lines, rest = text.split("\n")
    if rest:
        faults.append("does not end in a line break")
    for number, line in enumerate([*lines, rest] if rest else lines, 1):
        if not (told := LINE.fullmatch(line)):
            faults.append(f"line {number} is no digest and name")
        elif told[2] in found:
            faults.append(f"line {number} names {told[2]} again")
        else:
            found[told[2]] = told[1]
    if list(found) != sorted(found):
        faults.append("is not sorted")
    return Sums(found, tuple(faults))
