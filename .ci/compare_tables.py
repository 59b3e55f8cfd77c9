"""Compare all committed tables and views of two commits field by field, from git objects alone.

usage: python .ci/compare_tables.py BASE [HEAD] [--allow-digests] [--allow-reworded] [--names]

Compares names and order of columns, types, units, order of rows and every value, doubles bit by
bit. A relation is found by its name, wherever its file is: in warehouse/ or in warehouse/detail/.
Rows of a table are matched by its key in BASE; a view has no key, so its rows are matched by
position. A view without a file is evaluated from the committed tables by the code of its commit.
--allow-digests permits a change of digests of rows and builds, --allow-reworded of columns that
hold sentences. What changed on purpose is listed in GONE, NEW and CHANGED. Exits 1 if anything else
differs.
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
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from renamed import compare_rows, find_reason, rename_tables

ROOT = Path.cwd()  # tests run it in a repository of their own
DIGESTS = frozenset({"build.rows_sha256", "build.build_id"})
PROSE = frozenset(
    """
    claims.baseline claims.claim claims.interpretation claims.not_recomputable claims.place claims.recomputation_sql
    claims.recomputed claims.subject columns.description contradictions.recomputation_sql contradictions.recomputed
    contradictions.resolution contradictions.what flags.message flags.suggested recomputations.arithmetic
    recomputations.baseline
    """.split()
)
METADATA = {"(build_id)": "digests", "(description)": "reworded"}  # of files and of their columns
GONE = {
    "capture_differences": "the command `fetch` went, which was to fill it: it had no row",
    "build.rows_sha256": "`publish` states the digests of rows, in release.json",
}
NEW = {"columns.schema_name": "a relation is in the schema main or detail"}
CHANGED = {"build.(description)": "it lists tables alone: `publish` writes the files of views"}
PLANNED = {**GONE, **NEW, **CHANGED}
BUILD, DICTIONARY = "build", "columns"
MAP_OF_NAMES = "schema/renamed.toml"
SQL_TEXTS = ("recomputation_sql",)  # columns in which a moved relation has its schema in front
SCHEMA_IN_FRONT = r"\bdetail\."
# Runs in the code of either commit: names that every version has.
EVALUATE = """
import sys
from pathlib import Path
import ipu_results
import pyarrow.parquet as pq
from ipu_results.schema import VIEWS
folder = Path(sys.argv[1])
with ipu_results.connect(folder / "warehouse") as connection:
    for view in VIEWS:
        rows = connection.sql(view.rows_sql).to_arrow_table()
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
    if missing := views - tables.keys():
        evaluated = evaluate_views(commit)
        tables |= {name: evaluated[name] for name in missing}
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


def leave_out_planned(tables: dict[str, pa.Table], names: Collection[str]) -> dict[str, pa.Table]:
    """Return the tables without what went or came on purpose: relations, columns, and the rows
    about them of the dictionary and of the table `build`.

    `names` are the tables of HEAD.
    """
    kept = {}
    for name, rows in tables.items():
        if name not in PLANNED:
            columns = [each for each in rows.column_names if f"{name}.{each}" not in PLANNED]
            kept[name] = rows.select(columns)
    if rows := kept.get(DICTIONARY):
        described = pc.binary_join_element_wise(rows["table_name"], rows["column_name"], ".")
        planned = pc.or_(
            pc.is_in(described, pa.array([*PLANNED, f"{BUILD}."], pa.string())),
            pc.is_in(rows["table_name"], pa.array(PLANNED, pa.string())),
        )
        kept[DICTIONARY] = rows.filter(pc.invert(planned))
    if rows := kept.get(BUILD):
        # how many rows the dictionary has is no longer what it was
        listed = pa.array({*names} - {DICTIONARY}, pa.string())
        kept[BUILD] = rows.filter(pc.is_in(rows["table_name"], listed))
    return kept


def strip_schemas(rows: pa.Table) -> pa.Table:
    """Return a table whose SQL texts name every relation without its schema."""
    for name in SQL_TEXTS:
        if name in rows.column_names:
            position = rows.column_names.index(name)
            texts = pc.replace_substring_regex(rows[name], SCHEMA_IN_FRONT, "")
            rows = rows.set_column(position, rows.schema.field(name), texts)
    return rows


def read_key(commit: str, name: str) -> list[str]:
    """Return the key of a table; empty for a view."""
    path = f"schema/tables/{name}.toml"
    if path not in list_files(commit, "schema/tables", ".toml"):
        return []
    key = tomllib.loads(run_git("show", f"{commit}:{path}").decode())["key"]
    assert isinstance(key, list)
    return key


def match_rows(
    old: pa.Table, new: pa.Table, key: list[str]
) -> tuple[pa.Table, pa.Table, Counter[str]]:
    """Return the rows that both have, in one order, and what is different about the rows
    themselves.
    """
    counts: Counter[str] = Counter()
    if key and set(key) <= set(new.column_names):
        first, second = (
            [*zip(*(table[name].to_pylist() for name in key), strict=True)] for table in (old, new)
        )
        if len(set(first)) < len(first) or len(set(second)) < len(second):
            counts["(rows of equal key)"] = 1
        at = {row: position for position, row in enumerate(second)}
        common = [(position, at[row]) for position, row in enumerate(first) if row in at]
        counts["(rows)"] = len(set(first) ^ set(second))
        counts["(order of rows)"] = int(sorted(common, key=lambda pair: pair[1]) != common)
        old_rows, new_rows = (
            pa.array([pair[side] for pair in common], pa.int64()) for side in (0, 1)
        )
        return old.take(old_rows), new.take(new_rows), +counts
    counts["(rows)"] = abs(len(old) - len(new))
    shorter = min(len(old), len(new))
    return old.slice(0, shorter), new.slice(0, shorter), +counts


def count_differences(old: pa.ChunkedArray, new: pa.ChunkedArray) -> int:
    """Return in how many rows two columns differ; nulls are equal to each other only, and so is
    each NaN.
    """
    if not old.type.equals(new.type):
        return len(old)
    first, second = old.combine_chunks(), new.combine_chunks()
    if pa.types.is_floating(old.type):  # −0 is not 0, and NaN is itself
        first, second = (column.view(f"int{old.type.bit_width}") for column in (first, second))
    unlike = pc.fill_null(pc.not_equal(first, second), False)
    return int(pc.sum(pc.or_(unlike, pc.xor(first.is_null(), second.is_null()))).as_py() or 0)


def compare_table(old: pa.Table, new: pa.Table, key: list[str]) -> tuple[int, Counter[str]]:
    """Return the number of fields compared, and the number of differences by column or, in
    brackets, by aspect.
    """
    changed: Counter[str] = Counter()
    if old.column_names != new.column_names:
        changed["(columns)"] = len(set(old.column_names) ^ set(new.column_names)) or 1
    left, right = ({**(part.schema.metadata or {})} for part in (old, new))
    # pandas states its version, and the types again
    for entry in (left.keys() | right.keys()) - {b"pandas"}:
        changed[f"({entry.decode()})"] += left.get(entry) != right.get(entry)
    old, new, rows = match_rows(old, new, key)
    shared = [column for column in old.column_names if column in new.column_names]
    for column in shared:
        field, other = old.schema.field(column), new.schema.field(column)
        changed["(types)"] += not field.equals(other)
        for entry in (b"description", b"unit"):
            changed[f"({entry.decode()})"] += (field.metadata or {}).get(entry) != (
                other.metadata or {}
            ).get(entry)
        changed[column] = count_differences(old[column], new[column])
    return len(old) * len(shared), +(changed + rows)


def classify_difference(name: str, column: str) -> str:
    """Return the kind of a difference: digests, reworded or CHANGED."""
    if f"{name}.{column}" in DIGESTS:
        return "digests"
    return "reworded" if f"{name}.{column}" in PROSE else METADATA.get(column, "CHANGED")


def compare_names(base: str, head: str) -> int:
    """Compare two commits under the names of the second and return the exit status."""
    names = tomllib.loads(run_git("show", f"{head}:{MAP_OF_NAMES}").decode())
    total, relations, failed = 0, 0, False
    counts: Counter[str] = Counter()
    for name, old, new in rename_tables(read_tables(base), read_tables(head), names):
        size, differences = compare_rows(old, new, read_key(head, name))
        total += size
        relations += 1
        for column, count in sorted(differences.items()):
            reason = find_reason(name, column)
            if column == "(rounded)":
                counts["rounded to 12 digits"] += count
            elif f"{name}.{column}" in PROSE:
                counts["reworded"] += count
            elif reason is None:
                failed = True
                print(f"CHANGED {name}.{column}: {count}")
            else:
                print(f"changed on purpose: {name}.{column}: {count}: {reason}")
    for kind, count in counts.items():
        print(f"permitted {kind}: {count}")
    outcome = "they differ" if failed else "every other field equal"
    print(f"{total:,} fields of {relations} tables and views compared: {outcome}")
    return int(failed)


def main() -> int:
    """Compare every table and view of two commits and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base")
    parser.add_argument("head", nargs="?", default="HEAD")
    parser.add_argument(
        "--allow-digests", dest="allowed", action="append_const", const="digests", default=[]
    )
    parser.add_argument("--allow-reworded", dest="allowed", action="append_const", const="reworded")
    parser.add_argument("--names", action="store_true")
    options = parser.parse_args()
    if options.names:
        return compare_names(options.base, options.head)
    read_base, read_head = read_tables(options.base), read_tables(options.head)
    tables = [Path(name).stem for name in list_files(options.head, "schema/tables", ".toml")]
    base = leave_out_planned(read_base, tables)
    head = leave_out_planned(read_head, tables)
    for what, planned in (("gone", GONE), ("new", NEW), ("changed", CHANGED)):
        for name, reason in planned.items():
            print(f"{what} on purpose: {name}: {reason}")
    for name in sorted(base.keys() ^ head.keys()):
        print(f"{'MISSING' if name in base else 'NEW'} {name}")
    total, failed, permitted = 0, bool(base.keys() ^ head.keys()), Counter[str]()
    for name in sorted(base.keys() & head.keys()):
        sides = strip_schemas(base[name]), strip_schemas(head[name])
        size, changed = compare_table(*sides, read_key(options.base, name))
        total += size
        for column, count in sorted(changed.items()):
            kind = classify_difference(name, column)
            if f"{name}.{column}" in CHANGED:
                continue
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
