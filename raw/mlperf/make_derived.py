"""Derive the figures of this folder from the official logs: `python raw/mlperf/make_derived.py CHECKOUTS [TARGET]`.

CHECKOUTS holds `training_results_v<round>` of each round, at the commit that the round's sidecars name. Only figures
are written. The logs that the sidecar lists as missing are left out, so that a complete checkout gives the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ipu_results.kit.files import write_atomically
from ipu_results.kit.text import format_records
from ipu_results.mlperf.records import COLUMNS, GENERATED, entry_record, run_records
from ipu_results.mlperf.round import score_path
from ipu_results.mlperf.rules import round_key

HERE = Path(__file__).resolve().parent
TABLES = ("entries", "runs")


def list_rounds() -> list[str]:
    """Return the rounds that have a sidecar here, in order."""
    names = (path.name for path in HERE.glob("training-v*-entries.csv.toml"))
    return sorted(
        (match[1] for name in names if (match := re.match(r"training-v([\d.]+)-", name))),
        key=round_key,
    )


def derive(checkouts: Path, target: Path = HERE, rounds: Iterable[str] | None = None) -> None:
    """Write `training-v<round>-entries.csv` and `-runs.csv` of each round; here also update the sidecars."""
    for round_ in rounds or list_rounds():
        folder = checkouts / f"training_results_v{round_}"
        sidecar = tomllib.loads(
            (HERE / f"training-v{round_}-entries.csv.toml").read_text(encoding="utf-8")
        )
        check_commit(folder, sidecar.get("commit"))
        scored = score_path(str(folder), missing=sidecar.get("missing", ())).entries
        records = {
            "entries": [entry_record(entry) for entry in scored],
            "runs": [record for entry in scored for record in run_records(entry)],
        }
        for table, rows in records.items():
            file = target / f"training-v{round_}-{table}.csv"
            data = format_rows(f"mlperf_{table}", rows)
            write_atomically(file, data)
            if target == HERE:
                update_sidecar(file, data, f"mlperf_{table}", len(rows))


def format_rows(table: str, records: Sequence[dict[str, Any]]) -> bytes:
    """Write records as CSV, without the columns that follow from others."""
    columns = [column for column in COLUMNS[table] if column not in GENERATED[table]]
    text = format_records(
        "csv", columns, ([record[column] for column in columns] for record in records)
    )
    return f"{text}\n".encode(errors="backslashreplace")


def check_commit(folder: Path, commit: str | None) -> None:
    """Refuse a clone that is at another commit than the sidecar's; a folder without git is trusted."""
    if commit and (folder / ".git").exists():
        command = ["git", "-C", folder, "rev-parse", "HEAD"]
        head = subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
        if head != commit:
            raise SystemExit(f"{folder} is at {head}; run `git -C {folder} checkout {commit}`")


def update_sidecar(file: Path, data: bytes, table: str, rows: int) -> None:
    """Write digest and number of rows into the sidecar of a file."""
    path = file.with_name(f"{file.name}.toml")
    text = path.read_text(encoding="utf-8")
    text = re.sub(
        r'^sha256 = ".*"$', f'sha256 = "{hashlib.sha256(data).hexdigest()}"', text, flags=re.M
    )
    text = re.sub(
        rf"^{table} = \{{ rows = \d+ \}}$", f"{table} = {{ rows = {rows} }}", text, flags=re.M
    )
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    derive(Path(sys.argv[1]), *map(Path, sys.argv[2:3]))
