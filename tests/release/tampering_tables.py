"""Tampering with DuckDB, Parquet and views that `verify` must find: name, change of a folder, part
of the message.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from ipu_results.schema import sql_table, table
from ipu_results.store.files import DATABASE, digest_rows
from ipu_results.store.tables import write_csv

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


def recreate(old: str, new: str, rows: str = "FROM copied", name: str = "flags") -> Tamper:
    """Create a table again from a changed definition, with its rows and comments."""
    create, *comments = sql_table(table(name))
    assert old in create
    drop = f"CREATE TEMP TABLE copied AS FROM {name}; DROP TABLE {name}"
    return run_sql(drop, create.replace(old, new, 1), f"INSERT INTO {name} {rows}", *comments)


def store_again(folder: Path) -> None:
    """Write the DuckDB file in the newest storage format, which older versions cannot open."""
    old, new = folder / DATABASE, folder / "new.duckdb"
    with duckdb.connect() as connection:
        connection.execute(
            f"ATTACH '{old}' AS old (READ_ONLY); ATTACH '{new}' AS new (STORAGE_VERSION 'latest')"
        )
        connection.execute("COPY FROM DATABASE old TO new")
    os.replace(new, old)


FOREIGN_KEY = "FOREIGN KEY (result_id) REFERENCES results (result_id)"
DOUBLED = "SELECT * REPLACE (2 * throughput AS throughput) FROM results"
DATABASE_KINDS: list[Kind] = [
    ("figure", run_sql("UPDATE results SET throughput = 2 * throughput"), "rows of results differ"),
    (
        "null filled",
        run_sql("UPDATE models SET item_note = '' WHERE item_note IS NULL"),
        "rows of models differ",
    ),
    ("row deleted", run_sql("DELETE FROM flags WHERE rule = 'R09'"), "rows of flags differ"),
    ("order of rows", recreate("(", "(", "FROM copied ORDER BY ALL DESC"), "rows of flags differ"),
    ("no primary key", recreate("PRIMARY KEY (", "UNIQUE ("), "keys or required"),
    (
        "other primary key",
        recreate("PRIMARY KEY (rule, ", "PRIMARY KEY (message, rule, "),
        "keys or required",
    ),
    ("no NOT NULL", recreate("message VARCHAR NOT NULL", "message VARCHAR"), "keys or required"),
    (
        "more NOT NULL",
        run_sql("ALTER TABLE detail.register ALTER reason SET NOT NULL"),
        "keys or required",
    ),
    (
        "no foreign key",
        recreate(f",\n  {FOREIGN_KEY}", "", name="mlperf_entries"),
        "foreign keys of mlperf_entries.csv",
    ),
    (
        "unique",
        recreate("PRIMARY KEY", "UNIQUE (rule, result_id, column_name, message), PRIMARY KEY"),
        "keys or req",
    ),
    ("check", recreate("PRIMARY KEY", "CHECK (rule != 'R99'), PRIMARY KEY"), "keys or required"),
    (
        "default",
        run_sql("ALTER TABLE flags ALTER suggested SET DEFAULT 'x'"),
        "default or generated column",
    ),
    (
        "type",
        recreate("suggested VARCHAR", "suggested BLOB"),
        "columns of flags differ from the data dictionary",
    ),
    (
        "case of a column",
        recreate("message VARCHAR", '"Message" VARCHAR'),
        "columns of flags differ",
    ),
    (
        "column added",
        run_sql("ALTER TABLE build ADD COLUMN more INTEGER"),
        "columns of build differ",
    ),
    ("schema", run_sql("CREATE SCHEMA s"), "has the schema s"),
    (
        "schema with a table",
        run_sql("CREATE SCHEMA s; CREATE TABLE s.models AS FROM models"),
        "columns of s.models",
    ),
    ("sequence", run_sql("CREATE SEQUENCE s"), "has the sequence s"),
    ("index", run_sql("CREATE INDEX i ON flags (rule)"), "has the index i"),
    ("type added", run_sql("CREATE TYPE mood AS ENUM ('x')"), "has the type mood"),
    ("view added", run_sql("CREATE VIEW more AS FROM results"), "definition of more differs"),
    ("macro added", run_sql("CREATE MACRO more(a) AS a + 1"), "definition of more differs"),
    ("table added", run_sql("CREATE TABLE more AS FROM models"), "columns of more differ"),
    ("table dropped", run_sql("DROP TABLE detail.register"), "detail.register"),
    ("comment of a table", run_sql("COMMENT ON TABLE flags IS 'x'"), "comment of flags differs"),
    (
        "comment of a column",
        run_sql("COMMENT ON COLUMN flags.rule IS 'x'"),
        "comment of flags.rule",
    ),
    ("comment of a view", run_sql("COMMENT ON VIEW latest IS 'x'"), "comment of latest"),
    (
        "comment of a view's column",
        run_sql("COMMENT ON COLUMN latest.result_id IS 'x'"),
        "comment of latest.result_id",
    ),
    (
        "comment of a macro",
        run_sql("COMMENT ON MACRO TABLE per_dollar IS 'x'"),
        "comment of per_dollar",
    ),
    (
        "view redefined",
        run_sql(f"CREATE OR REPLACE VIEW latest AS {DOUBLED}"),
        "definition of latest differs",
    ),
    (
        "view of fewer columns",
        run_sql("CREATE OR REPLACE VIEW latest AS SELECT result_id FROM results"),
        "columns of latest differ",
    ),
    ("view dropped", run_sql("DROP VIEW provenance"), "definition of provenance differs"),
    (
        "view as a table",
        run_sql("DROP VIEW provenance; CREATE TABLE provenance AS FROM cells"),
        "provenance",
    ),
    (
        "other parameters",
        run_sql("CREATE OR REPLACE MACRO per_dollar(x) AS TABLE FROM results"),
        "per_dollar",
    ),
    ("newest storage format", store_again, "needs DuckDB"),
    ("no database", lambda folder: replace_file(folder / DATABASE, b"none"), "cannot be opened"),
    (
        "cut",
        lambda folder: replace_file(folder / DATABASE, (folder / DATABASE).read_bytes()[:20_000]),
        DATABASE,
    ),
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


def edit_field(column: str, edit: Callable[[pa.Field], pa.Field], name: str = "flags") -> Tamper:
    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index(column)
        return rows.cast(rows.schema.set(at, edit(rows.schema.field(at))))

    return edit_parquet(name, change)


def edit_metadata(name: str = "flags", **changes: str | None) -> Tamper:
    def change(rows: pa.Table) -> pa.Table:
        metadata = {
            key.decode(): value.decode() for key, value in rows.schema.metadata.items()
        } | changes
        return rows.replace_schema_metadata(
            {key: value for key, value in metadata.items() if value is not None}
        )

    return edit_parquet(name, change)


def cast_column(column: str, kind: pa.DataType, name: str = "flags") -> Tamper:
    return edit_field(column, lambda field: field.with_type(kind), name)


def state(column: str, key: bytes, name: str = "flags") -> Tamper:
    return edit_field(
        column, lambda field: field.with_metadata({**field.metadata, key: b"s"}), name
    )


def reverse(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))


DESCRIBED = {"description": "x"}
PARQUET_KINDS: list[Kind] = [
    (
        "figure",
        edit_values("throughput", lambda them: [2 * them[0], *them[1:]], "results"),
        "rows differ",
    ),
    (
        "last bit",
        edit_values("throughput", lambda them: [them[0] * (1 + 2**-52), *them[1:]], "results"),
        "rows differ",
    ),
    (
        "null as empty text",
        edit_values("suggested", lambda them: [it or "" for it in them]),
        "rows differ",
    ),
    ("row removed", edit_parquet("flags", lambda rows: rows.slice(1)), "rows differ"),
    ("order of rows", edit_parquet("models", reverse), "rows differ from models.parquet"),
    ("column removed", edit_parquet("flags", lambda rows: rows.drop_columns("suggested")), "flags"),
    (
        "order of columns",
        edit_parquet("flags", lambda rows: rows.select(rows.column_names[::-1])),
        "flags",
    ),
    (
        "int32",
        cast_column("row_number", pa.int32(), "results"),
        "columns differ from the data dictionary",
    ),
    (
        "large text",
        cast_column("message", pa.large_string()),
        "columns differ from the data dictionary",
    ),
    ("dictionary encoding", cast_column("rule", pa.dictionary(pa.int32(), pa.string())), "flags"),
    (
        "nullable",
        edit_field("message", lambda field: field.with_nullable(True)),
        "nullability of message",
    ),
    (
        "description changed",
        edit_field("rule", lambda field: field.with_metadata(DESCRIBED)),
        "metadata of rule",
    ),
    (
        "description removed",
        edit_field("rule", lambda field: field.remove_metadata()),
        "metadata of rule",
    ),
    (
        "unit changed",
        state("latency_ms", b"unit", "results"),
        "columns differ from the data dictionary",
    ),
    ("metadata of a column added", state("rule", b"note"), "metadata of rule"),
    ("description of the table", edit_metadata(description="x"), "description of the table"),
    ("no description of the table", edit_metadata(description=None), "description of the table"),
    ("build id", edit_metadata(build_id="0" * 64), "build id differs"),
    ("no build id", edit_metadata(build_id=None), "build id differs"),
    ("metadata of the table added", edit_metadata(note="x"), "has other metadata"),
    ("no metadata for pandas", edit_metadata(pandas=None), "metadata for pandas"),
    ("metadata for pandas emptied", edit_metadata(pandas="{}"), "metadata for pandas"),
    (
        "type for pandas",
        edit_parquet(
            "results",
            lambda rows: rows.replace_schema_metadata(
                {
                    **rows.schema.metadata,
                    b"pandas": rows.schema.metadata[b"pandas"].replace(b'"Int64"', b'"int64"'),
                }
            ),
        ),
        "metadata for pandas",
    ),
    (
        "no Arrow schema",
        edit_parquet("flags", lambda rows: rows, store_schema=False),
        "flags.parquet",
    ),
    (
        "not Parquet",
        lambda folder: replace_file(folder / "flags.parquet", b"PAR1"),
        "flags.parquet: cannot be read",
    ),
    (
        "another table",
        lambda it: replace_file(it / "flags.parquet", (it / "models.parquet").read_bytes()),
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


def drop_view(folder: Path) -> None:
    """Remove the files of a view and what states them."""
    record = read_record(folder)
    del record["view_files"]["latest"]
    write_record(folder, "release.json", record)
    for suffix in ("parquet", "csv"):
        (folder / f"latest.{suffix}").unlink()


OTHER_ROWS = "rows differ from those of the view"
VIEW_KINDS: list[Kind] = [
    ("figure", forge_view("inference", double_throughput), f"inference.parquet: {OTHER_ROWS}"),
    (
        "row removed",
        forge_view("measurements", lambda rows: rows.slice(1)),
        f"measurements.parquet: {OTHER_ROWS}",
    ),
    ("order of rows", forge_view("measurements", reverse), f"measurements.parquet: {OTHER_ROWS}"),
    (
        "Parquet alone",
        edit_parquet("provenance", lambda rows: rows.slice(1)),
        "provenance.csv: rows differ",
    ),
    ("CSV alone", lambda folder: replace_file(folder / "latest.csv", b"x\n1\n"), "latest.csv"),
    (
        "emptied",
        forge_view("provenance", lambda rows: rows.slice(0, 0)),
        f"provenance.parquet: {OTHER_ROWS}",
    ),
    ("not stated", drop_view, "datapackage.json: describes latest.csv"),
    ("build id", edit_metadata("latest", build_id="0" * 64), "latest.parquet: build id differs"),
    (
        "unit",
        edit_field("latency_ms", lambda field: field.with_metadata(DESCRIBED), "latest"),
        "latest.parquet",
    ),
]
