"""Compare all committed tables and views of two commits field by field, from git objects alone.

usage: python .ci/compare_tables.py BASE [HEAD] [--allow-digests] [--allow-reworded]

Compares names and order of columns, types, units, order of rows and every value, doubles bit by
bit. A relation is found by its name, wherever its file is: in warehouse/ or in warehouse/detail/.
Rows of a table are matched by its key in BASE; a view has no key, so its rows are matched by
position. A view without a file is evaluated from the committed tables by the code of its commit.
--allow-digests permits a change of digests of rows and builds, --allow-reworded of columns that
hold sentences. Exits 1 if anything else differs.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path.cwd()  # tests run it in a repository of their own
# columns and metadata that may change with --allow-digests and --allow-reworded
DIGESTS = ("build.build_id",)
PROSE = (
    "claims.baseline",
    "claims.claim",
    "claims.interpretation",
    "claims.not_recomputable",
    "claims.place",
    "claims.recomputation_sql",
    "claims.recomputed",
    "claims.subject",
    "columns.description",
    "contradictions.recomputation_sql",
    "contradictions.recomputed",
    "contradictions.resolution",
    "contradictions.what",
    "flags.message",
    "flags.suggested",
    "recomputations.arithmetic",
    "recomputations.baseline",
)
METADATA = {"(build_id)": "digests", "(description)": "reworded"}  # of files and of their columns
# Runs in the code of either commit: names that every version has.
EVALUATE = """
import sys
from pathlib import Path
import ipu_results
import pyarrow.parquet as pq
from ipu_results.schema import VIEWS
from ipu_results.schema.frames import file_schema
folder = Path(sys.argv[1])
with ipu_results.connect(folder / "warehouse") as connection:
    for view in VIEWS:
        rows = connection.sql(view.rows_sql).to_arrow_table()
        rows = rows.cast(file_schema(view.file_table))  # with the units of its columns
        pq.write_table(rows, folder / f"{view.name}.parquet")
"""


def run_git(*args: str) -> bytes:
    """Return the output of a git command that reads objects."""
    return subprocess.run(["git", *args], capture_output=True, check=True, cwd=ROOT).stdout


def list_files(commit: str, folder: str, suffix: str) -> list[str]:
    """Return the files of one kind that a commit has in a folder and the folders in it."""
    names = run_git("ls-tree", "-r", "--name-only", commit, f"{folder}/").decode().split()
    return [name for name in names if name.endswith(suffix)]


def read_tables(commit: str) -> dict[str, pa.Table]:
    """Return every table and view of a commit by name; raise CalledProcessError for an unknown
    commit.
    """
    tables = {}
    for name in list_files(commit, "warehouse", ".parquet"):
        tables[Path(name).stem] = pq.read_table(io.BytesIO(run_git("show", f"{commit}:{name}")))
    views = {Path(name).stem for name in list_files(commit, "schema/views", ".sql")}
    if views - tables.keys():
        tables = evaluate_views(commit) | tables
    return tables


def evaluate_views(commit: str) -> dict[str, pa.Table]:
    """Evaluate the views of a commit from its committed tables, by its own code."""
    with TemporaryDirectory() as folder:
        archive = run_git("archive", commit, "pipeline", "schema", "warehouse", "pyproject.toml")
        with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
            opened.extractall(folder, filter="data")
        environment = {**os.environ, "PYTHONPATH": f"{folder}/pipeline"}
        command = [sys.executable, "-c", EVALUATE, folder]
        subprocess.run(command, check=True, cwd=folder, env=environment)
        return {path.stem: pq.read_table(path) for path in Path(folder).glob("*.parquet")}


def read_key(commit: str, name: str) -> list[str]:
    """Return the key of a table; empty for a view."""
    path = f"schema/tables/{name}.toml"
    if path not in list_files(commit, "schema/tables", ".toml"):
        return []
    key = tomllib.loads(run_git("show", f"{commit}:{path}").decode())["key"]
    assert isinstance(key, list)
    return key


class Rows(NamedTuple):
    """The rows that two tables share, in one order, and how many differences others make."""

    old: pa.Table
    new: pa.Table
    differences: Counter[str]


def match_rows(old: pa.Table, new: pa.Table, key: list[str]) -> Rows:
    """Match rows by their key, or by their position where they have none in common."""
    counts: Counter[str] = Counter()
    if not key or not set(key).issubset(new.column_names):
        counts["(rows)"] = abs(len(old) - len(new))
        shorter = min(len(old), len(new))
        return Rows(old.slice(0, shorter), new.slice(0, shorter), counts)
    old_positions = find_positions(old, key)
    new_positions = find_positions(new, key)
    has_repeated = len(old_positions) < len(old) or len(new_positions) < len(new)
    counts["(rows of equal key)"] = int(has_repeated)
    counts["(rows)"] = len(old_positions.keys() ^ new_positions.keys())
    shared = [row for row in old_positions if row in new_positions]
    old_order = [old_positions[row] for row in shared]
    new_order = [new_positions[row] for row in shared]
    counts["(order of rows)"] = int(new_order != sorted(new_order))
    old_rows = old.take(pa.array(old_order, pa.int64()))
    return Rows(old_rows, new.take(pa.array(new_order, pa.int64())), counts)


def find_positions(table: pa.Table, key: list[str]) -> dict[tuple[object, ...], int]:
    """Return the position of each key in a table."""
    positions = {}
    for position, row in enumerate(table.select(key).to_pylist()):
        positions[tuple(row.values())] = position
    return positions


def count_differences(old: pa.ChunkedArray, new: pa.ChunkedArray) -> int:
    """Return in how many rows two columns differ; nulls are equal to each other only, and so is
    each NaN.
    """
    if not old.type.equals(new.type):
        return len(old)
    first = old.combine_chunks()
    second = new.combine_chunks()
    if pa.types.is_floating(old.type):  # −0 is not 0, and NaN is itself
        bits = f"int{old.type.bit_width}"
        first = first.view(bits)
        second = second.view(bits)
    differ = pc.fill_null(pc.not_equal(first, second), False)
    one_is_null = pc.xor(first.is_null(), second.is_null())
    return int(pc.sum(pc.or_(differ, one_is_null)).as_py() or 0)


def compare_table(old: pa.Table, new: pa.Table, key: list[str]) -> tuple[int, Counter[str]]:
    """Return the number of fields compared, and the number of differences by column or, in
    brackets, by aspect.
    """
    changed: Counter[str] = Counter()
    if old.column_names != new.column_names:
        changed["(columns)"] = len(set(old.column_names) ^ set(new.column_names)) or 1
    changed += compare_metadata(old.schema.metadata, new.schema.metadata)
    rows = match_rows(old, new, key)
    shared = [column for column in old.column_names if column in new.column_names]
    for column in shared:
        old_field = old.schema.field(column)
        new_field = new.schema.field(column)
        changed["(types)"] += not old_field.equals(new_field)
        changed += compare_metadata(old_field.metadata, new_field.metadata)
        changed[column] = count_differences(rows.old[column], rows.new[column])
    return len(rows.old) * len(shared), +(changed + rows.differences)


def compare_metadata(
    old: dict[bytes, bytes] | None, new: dict[bytes, bytes] | None
) -> Counter[str]:
    """Count the entries that differ, but for that of pandas: it has its version and types again."""
    before = old or {}
    after = new or {}
    changed: Counter[str] = Counter()
    for entry in (before.keys() | after.keys()) - {b"pandas"}:
        changed[f"({entry.decode()})"] += before.get(entry) != after.get(entry)
    return changed


def classify_difference(name: str, column: str) -> str:
    """Return the kind of a difference: digests, reworded or CHANGED."""
    if f"{name}.{column}" in DIGESTS:
        return "digests"
    if f"{name}.{column}" in PROSE:
        return "reworded"
    return METADATA.get(column, "CHANGED")


def main() -> int:
    """Compare every table and view of two commits and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base")
    parser.add_argument("head", nargs="?", default="HEAD")
    for kind in ("digests", "reworded"):
        parser.add_argument(
            f"--allow-{kind}", dest="allowed", action="append_const", const=kind, default=[]
        )
    options = parser.parse_args()
    base = read_tables(options.base)
    head = read_tables(options.head)
    for name in sorted(base.keys() ^ head.keys()):
        print(f"{'MISSING' if name in base else 'NEW'} {name}")
    failed = base.keys() != head.keys()
    total = 0
    permitted: Counter[str] = Counter()
    for name in sorted(base.keys() & head.keys()):
        size, changed = compare_table(base[name], head[name], read_key(options.base, name))
        total += size
        for column, count in sorted(changed.items()):
            kind = classify_difference(name, column)
            if kind in options.allowed:
                permitted[kind] += count
            else:
                failed = True
                print(f"{kind} {name}.{column}: {count}")
    for kind, count in permitted.items():
        print(f"permitted {kind}: {count}")
    outcome = "they differ" if failed else "every field equal"
    print(f"{total:,} fields of {len(base)} tables and views compared: {outcome}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
