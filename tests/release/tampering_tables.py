"""Tampering with DuckDB, Parquet and views that `verify` must find: name, change of a folder, part
of the message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from ipu_results.record.store.files import DATABASE, digest_rows
from ipu_results.record.store.tables import write_csv

from tests.release.release_support import read_record, replace_file, write_record

Tamper = Callable[[Path], object]
Kind = tuple[str, Tamper, str]
Record = dict[str, Any]


# DuckDB


def run_sql(*statements: str) -> Tamper:
    """Change the DuckDB file, which is copied first: the folder holds hard links."""

    def change(folder: Path) -> None:
        path = folder / DATABASE
        replace_file(path, path.read_bytes())
        with duckdb.connect(str(path)) as connection:
            for statement in statements:
                connection.execute(statement)

    return change


DOUBLED = "SELECT * REPLACE (2 * throughput AS throughput) FROM results"
DATABASE_KINDS: list[Kind] = [
    (
        "figure",
        run_sql("UPDATE microbenchmarks SET value = 2 * value"),
        "rows of microbenchmarks differ",
    ),
    (
        "order of rows",
        run_sql(
            "CREATE TEMP TABLE copied AS FROM flags ORDER BY ALL DESC",
            "DELETE FROM flags",
            "INSERT INTO flags FROM copied",
        ),
        "rows of flags differ",
    ),
    ("macro added", run_sql("CREATE MACRO more(a) AS a + 1"), "definition of more differs"),
    ("table dropped", run_sql("DROP TABLE detail.register"), "detail.register"),
    (
        "view redefined",
        run_sql(f"CREATE OR REPLACE VIEW latest AS {DOUBLED}"),
        "definition of latest differs",
    ),
    (
        "other parameters",
        run_sql("CREATE OR REPLACE MACRO per_dollar(x) AS TABLE FROM results"),
        "per_dollar",
    ),
    ("no database", lambda folder: replace_file(folder / DATABASE, b"none"), "cannot be opened"),
]


# Parquet


def edit_parquet(name: str, edit: Callable[[pa.Table], pa.Table], **options: Any) -> Tamper:
    def change(folder: Path) -> None:
        path = folder / f"{name}.parquet"
        rows = edit(pq.read_table(path))
        path.unlink()
        pq.write_table(rows, path, **options)

    return change


def edit_values(column: str, edit: Callable[[list[Any]], list[Any]], name: str = "flags") -> Tamper:
    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(column)
        field = rows.schema.field(at)
        return rows.set_column(at, field, pa.array(edit(rows[column].to_pylist()), field.type))

    return edit_parquet(name, change)


def forge_build_id(rows: pa.Table) -> pa.Table:
    return rows.replace_schema_metadata({**rows.schema.metadata, b"build_id": b"0" * 64})


def reverse(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))


PARQUET_KINDS: list[Kind] = [
    (
        "last bit",
        edit_values(
            "throughput", lambda values: [values[0] * (1 + 2**-52), *values[1:]], "results"
        ),
        "rows differ",
    ),
    (
        "null as empty text",
        edit_values("suggested", lambda values: [value or "" for value in values]),
        "rows differ",
    ),
    ("order of rows", edit_parquet("models", reverse), "rows differ from models.parquet"),
    ("build id", edit_parquet("flags", forge_build_id), "build id differs"),
    (
        "not Parquet",
        lambda folder: replace_file(folder / "flags.parquet", b"PAR1"),
        "flags.parquet: cannot be read",
    ),
    (
        "another table",
        lambda folder: replace_file(
            folder / "flags.parquet", (folder / "models.parquet").read_bytes()
        ),
        "flags",
    ),
]


# files of views


def forge_view(name: str, edit: Callable[[pa.Table], pa.Table]) -> Tamper:
    """Change Parquet, CSV and the digest that release.json states of a view."""

    def change(folder: Path) -> None:
        edit_parquet(name, edit, compression="zstd", write_page_checksum=True)(folder)
        rows = pq.read_table(folder / f"{name}.parquet")
        (folder / f"{name}.csv").unlink()
        write_csv(rows, folder / f"{name}.csv")
        record = read_record(folder)
        record["view_files"][name] = {"rows": rows.num_rows, "rows_sha256": digest_rows(rows)}
        write_record(folder, "release.json", record)

    return change


def double_throughput(rows: pa.Table) -> pa.Table:
    at = rows.schema.get_field_index("throughput")
    return rows.set_column(at, rows.schema.field(at), pc.multiply(rows["throughput"], 2.0))


OTHER_ROWS = "rows differ from those of the view"
VIEW_KINDS: list[Kind] = [
    ("figure", forge_view("inference", double_throughput), f"inference.parquet: {OTHER_ROWS}"),
    (
        "Parquet alone",
        edit_parquet("provenance", lambda rows: rows.slice(1)),
        "provenance.csv: rows differ",
    ),
    ("CSV alone", lambda folder: replace_file(folder / "latest.csv", b"x\n1\n"), "latest.csv"),
]
