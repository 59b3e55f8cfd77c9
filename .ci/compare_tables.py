"""Compare the committed tables of two commits field by field.

usage: python .ci/compare_tables.py BASE [HEAD]

A row is matched by the key of its table. Fields that may be reworded are counted apart and never hide a changed figure,
id or verdict. Exits 1 if any other field, row, column or table differs.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "pipeline"))

from ipu_results.schema import TABLES  # noqa: E402

PROSE = {
    ("columns", "description"),
    ("documents", "file"),
    ("documents", "sha256"),  # of a file whose prose was reworded
    *(("flags", name) for name in ("message", "suggested")),
    *(("claims", name) for name in ("claim", "subject", "baseline", "place", "interpretation", "not_recomputable")),
    *((table, name) for table in ("claims", "contradictions") for name in ("recomputed", "recomputation_sql")),
    *(("recomputations", name) for name in ("baseline", "arithmetic")),
    *(("contradictions", name) for name in ("what", "resolution")),
    *(("build", name) for name in ("rows_sha256", "build_id")),  # digests of the above
}


def read_table(commit: str, name: str) -> pd.DataFrame:
    """Read one committed Parquet file; every value becomes its exact text, a null stays null."""
    path = f"{commit}:warehouse/{name}.parquet"
    data = subprocess.run(["git", "show", path], capture_output=True, check=True, cwd=ROOT).stdout
    frame = pq.read_table(io.BytesIO(data)).to_pandas(types_mapper=None)
    return frame.map(lambda value: None if pd.isna(value) else repr(value))


def _is_in(commit: str, name: str) -> bool:
    command = ["git", "cat-file", "-e", f"{commit}:warehouse/{name}.parquet"]
    return subprocess.run(command, capture_output=True, check=False, cwd=ROOT).returncode == 0


def compare(name: str, key: tuple[str, ...], base: str, head: str) -> tuple[int, dict[str, int], dict[str, int]]:
    """Return the number of fields, and the changed fields by column: reworded ones, and all others."""
    old, new = (read_table(commit, name).set_index(list(key)).sort_index() for commit in (base, head))
    changed: dict[str, int] = {}
    if not old.index.equals(new.index):
        changed["(rows)"] = len(old.index.symmetric_difference(new.index)) or 1
        old, new = old.loc[old.index.intersection(new.index)], new.loc[new.index.intersection(old.index)]
    if list(old) != list(new):
        changed["(columns)"] = len(set(old) ^ set(new)) or 1
    reworded: dict[str, int] = {}
    for column in (column for column in old if column in new):
        differs = int((old[column].fillna("\0") != new[column].fillna("\0")).sum())
        if differs:
            (reworded if (name, column) in PROSE else changed)[column] = differs
    return old.size + len(old) * len(key), reworded, changed


def main() -> int:
    """Compare every table of two commits and return the exit status."""
    base, head = [*sys.argv[1:], "HEAD"][:2]
    fields, failed = 0, False
    for table in TABLES:
        if not _is_in(base, table.name):
            print(f"NEW {table.name}")
            continue
        size, reworded, changed = compare(table.name, table.key, base, head)
        fields += size
        failed |= bool(changed)
        for label, counts in (("reworded", reworded), ("CHANGED", changed)):
            for column, count in counts.items():
                print(f"{label} {table.name}.{column}: {count} fields")
    print(f"{fields:,} fields of {len(TABLES)} tables compared: {'they differ' if failed else 'equal'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
