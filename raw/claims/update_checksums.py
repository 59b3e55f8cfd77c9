"""Bring the checksums in the sidecars of this folder up to date: `python raw/claims/update_checksums.py [FOLDER]`.

Rewrites in each `<file>.csv.toml` the digest and the rows of its file and the digests of the SQL files that it names.
All else in a sidecar is written by hand.
"""

from __future__ import annotations

import csv
import hashlib
import re
import sys
from pathlib import Path

TABLE = re.compile(
    r"^(claims|contradictions|contradicted|claim_conditions) = \{.*\}$", re.MULTILINE
)
HERE = Path(__file__).resolve().parent


def digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def update_sidecar(sidecar: str, file: Path) -> str:
    """Return the text of a sidecar with what it says of the file's bytes, rows and SQL files brought up to date."""
    with file.open(newline="", encoding="utf-8") as source:
        rows = list(csv.DictReader(source))
    names = sorted({f"sql/{row['recomputation']}.sql" for row in rows if row.get("recomputation")})
    attached = "".join(f'"{name}" = "{digest(file.parent / name)}"\n' for name in names)
    sidecar = re.sub(r'(?m)^sha256 = ".*"$', f'sha256 = "{digest(file)}"', sidecar, count=1)
    sidecar = re.sub(
        r"(?m)^(claims|contradictions|contradicted|claim_conditions) = \{.*\}$",
        rf"\1 = {{ rows = {len(rows)} }}",
        sidecar,
        count=1,
    )
    return sidecar.partition("[attachments]")[0] + "[attachments]\n" + attached


def update_checksums(folder: Path = HERE) -> None:
    """Rewrite the sidecars of a folder. Nothing is written unless every file and every SQL file can be read."""
    sidecars = {
        path: update_sidecar(path.read_text(encoding="utf-8"), path.with_suffix(""))
        for path in folder.glob("*.toml")
    }
    for path, text in sidecars.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    update_checksums(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
