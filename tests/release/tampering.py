"""The kinds of tampering that `verify` must find, as a table: name, the change of a folder, part of the message."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
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
        connection.execute(f"ATTACH '{old}' AS old (READ_ONLY); ATTACH '{new}' AS new (STORAGE_VERSION 'latest')")
        connection.execute("COPY FROM DATABASE old TO new")
    os.replace(new, old)


DEFAULTS = "ipu_price := NULL"
DATABASE_KINDS: list[Kind] = [
    ("figure", run_sql("UPDATE results SET throughput = 2 * throughput"), "rows of results differ"),
    ("text", run_sql("UPDATE flags SET message = 'other'"), "rows of flags differ"),
    ("null filled", run_sql("UPDATE models SET item_note = '' WHERE item_note IS NULL"), "rows of models differ"),
    ("value emptied", run_sql("UPDATE platforms SET clock_ghz = NULL"), "rows of platforms differ"),
    ("row deleted", run_sql("DELETE FROM flags WHERE rule = 'R09'"), "rows of flags differ"),
    ("row added", run_sql("INSERT INTO models SELECT 'new', * EXCLUDE model FROM models LIMIT 1"), "rows of models"),
    ("order of rows", recreate("(", "(", "FROM copied ORDER BY ALL DESC"), "rows of flags differ"),
    ("no primary key", recreate("PRIMARY KEY (", "UNIQUE ("), "keys or required"),
    ("other primary key", recreate("PRIMARY KEY (rule, ", "PRIMARY KEY (message, rule, "), "keys or required"),
    ("no NOT NULL", recreate("message VARCHAR NOT NULL", "message VARCHAR"), "keys or required"),
    ("more NOT NULL", run_sql("ALTER TABLE capture_differences ALTER captured SET NOT NULL"), "keys or required"),
    (
        "no foreign key",
        recreate(",\n  FOREIGN KEY (result_id) REFERENCES results (result_id)", "", name="configurations"),
        "foreign keys of configurations.csv",
    ),
    ("unique", recreate("PRIMARY KEY", "UNIQUE (rule, result_id, column_name, message), PRIMARY KEY"), "keys or req"),
    ("check", recreate("PRIMARY KEY", "CHECK (rule != 'R99'), PRIMARY KEY"), "keys or required"),
    ("default", run_sql("ALTER TABLE flags ALTER suggested SET DEFAULT 'x'"), "default or generated column"),
    ("type", recreate("suggested VARCHAR", "suggested BLOB"), "columns of flags differ from the data dictionary"),
    ("case of a column", recreate("message VARCHAR", '"Message" VARCHAR'), "columns of flags differ"),
    ("column added", run_sql("ALTER TABLE build ADD COLUMN more INTEGER"), "columns of build differ"),
    ("column dropped", run_sql("ALTER TABLE capture_differences DROP captured"), "columns of capture_differences"),
    ("column renamed", run_sql("ALTER TABLE build RENAME row_count TO rows"), "columns of build differ"),
    ("schema", run_sql("CREATE SCHEMA s"), "has the schema s"),
    ("schema with a table", run_sql("CREATE SCHEMA s; CREATE TABLE s.models AS FROM models"), "columns of s.models"),
    ("sequence", run_sql("CREATE SEQUENCE s"), "has the sequence s"),
    ("index", run_sql("CREATE INDEX i ON flags (rule)"), "has the index i"),
    ("unique index", run_sql("CREATE UNIQUE INDEX u ON models (model)"), "has the index u"),
    ("type added", run_sql("CREATE TYPE mood AS ENUM ('x')"), "has the type mood"),
    ("view added", run_sql("CREATE VIEW more AS FROM results"), "definition of more differs"),
    ("macro added", run_sql("CREATE MACRO more(a) AS a + 1"), "definition of more differs"),
    ("table macro added", run_sql("CREATE MACRO more() AS TABLE FROM results"), "definition of more differs"),
    ("table added", run_sql("CREATE TABLE more AS FROM models"), "columns of more differ"),
    ("table dropped", run_sql("DROP TABLE capture_differences"), "capture_differences"),
    ("table emptied", run_sql("DELETE FROM cells"), "rows of cells differ"),
    ("comment of a table", run_sql("COMMENT ON TABLE flags IS 'x'"), "comment of flags differs"),
    ("comment of a column", run_sql("COMMENT ON COLUMN flags.rule IS 'x'"), "comment of flags.rule"),
    ("comment dropped", run_sql("COMMENT ON COLUMN flags.rule IS NULL"), "comment of flags.rule"),
    ("unit in a comment", run_sql("COMMENT ON COLUMN results.latency_ms IS 'Latency [s]'"), "results.latency_ms"),
    ("comment of a view", run_sql("COMMENT ON VIEW latest IS 'x'"), "comment of latest"),
    ("comment of a view's column", run_sql("COMMENT ON COLUMN latest.result_id IS 'x'"), "comment of latest.result_id"),
    ("comment of a macro", run_sql("COMMENT ON MACRO TABLE per_dollar IS 'x'"), "comment of per_dollar"),
    (
        "view redefined",
        run_sql("CREATE OR REPLACE VIEW latest AS SELECT * REPLACE (2 * throughput AS throughput) FROM results"),
        "definition of latest differs",
    ),
    ("view of fewer columns", run_sql("CREATE OR REPLACE VIEW latest AS SELECT 1 AS id"), "columns of latest differ"),
    ("view dropped", run_sql("DROP VIEW provenance"), "definition of provenance differs"),
    ("view as a table", run_sql("DROP VIEW provenance; CREATE TABLE provenance AS FROM cells"), "provenance"),
    ("macro dropped", run_sql("DROP MACRO TABLE per_dollar"), "definition of per_dollar differs"),
    (
        "macro with other parameters",
        run_sql("CREATE OR REPLACE MACRO per_dollar(x) AS TABLE FROM results"),
        "per_dollar",
    ),
    ("newest storage format", store_again, "needs DuckDB"),
    ("no database", lambda folder: replace_file(folder / DATABASE, b"none"), "cannot be opened"),
    (
        "cut database",
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
        metadata = {key.decode(): value.decode() for key, value in rows.schema.metadata.items()} | changes
        return rows.replace_schema_metadata({key: value for key, value in metadata.items() if value is not None})

    return edit_parquet(name, change)


def cast_column(column: str, kind: pa.DataType, name: str = "flags") -> Tamper:
    return edit_field(column, lambda field: field.with_type(kind), name)


DESCRIBED = {"description": "x"}
PARQUET_KINDS: list[Kind] = [
    ("figure", edit_values("throughput", lambda them: [2 * them[0], *them[1:]], "results"), "rows differ"),
    (
        "last bit of a figure",
        edit_values("throughput", lambda them: [them[0] * (1 + 2**-52), *them[1:]], "results"),
        "rows differ",
    ),
    ("text", edit_values("message", lambda them: ["x", *them[1:]]), "rows differ"),
    ("null as empty text", edit_values("suggested", lambda them: [it or "" for it in them]), "rows differ"),
    ("values exchanged", edit_values("message", lambda them: [*them[1:], them[0]], "flags"), "rows differ"),
    ("row removed", edit_parquet("flags", lambda rows: rows.slice(1)), "rows differ"),
    ("row doubled", edit_parquet("flags", lambda rows: pa.concat_tables([rows, rows.slice(0, 1)])), "rows differ"),
    ("table emptied", edit_parquet("flags", lambda rows: rows.slice(0, 0)), "rows differ"),
    (
        "order of rows",
        edit_parquet("models", lambda rows: rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))),
        "rows differ from models.parquet",
    ),
    ("column removed", edit_parquet("flags", lambda rows: rows.drop_columns("suggested")), "flags"),
    ("column added", edit_parquet("flags", lambda rows: rows.append_column("more", rows["rule"])), "flags"),
    (
        "column renamed",
        edit_parquet("flags", lambda rows: rows.rename_columns(["id", *rows.column_names[1:]])),
        "flags",
    ),
    ("order of columns", edit_parquet("flags", lambda rows: rows.select(rows.column_names[::-1])), "flags"),
    ("int32", cast_column("row_number", pa.int32(), "results"), "columns differ from the data dictionary"),
    ("float32", cast_column("throughput", pa.float32(), "results"), "results"),
    ("large text", cast_column("message", pa.large_string()), "columns differ from the data dictionary"),
    ("timestamp for a date", cast_column("published_on", pa.timestamp("us"), "documents"), "documents"),
    ("figure as text", cast_column("batch_size", pa.string(), "results"), "results"),
    ("dictionary encoding", cast_column("rule", pa.dictionary(pa.int32(), pa.string())), "flags"),
    ("nullable", edit_field("message", lambda field: field.with_nullable(True)), "nullability of message"),
    ("not nullable", edit_field("model", lambda field: field.with_nullable(True), "results"), "nullability of model"),
    ("description changed", edit_field("rule", lambda field: field.with_metadata(DESCRIBED)), "metadata of rule"),
    ("description removed", edit_field("rule", lambda field: field.remove_metadata()), "metadata of rule"),
    (
        "unit changed",
        edit_field("latency_ms", lambda field: field.with_metadata({**field.metadata, b"unit": b"s"}), "results"),
        "columns differ from the data dictionary",
    ),
    (
        "unit added",
        edit_field("rule", lambda field: field.with_metadata({**field.metadata, b"unit": b"s"})),
        "columns differ from the data dictionary",
    ),
    (
        "metadata of a column added",
        edit_field("rule", lambda field: field.with_metadata({**field.metadata, b"note": b"x"})),
        "metadata of rule",
    ),
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
                {**rows.schema.metadata, b"pandas": rows.schema.metadata[b"pandas"].replace(b'"Int64"', b'"int64"')}
            ),
        ),
        "metadata for pandas",
    ),
    ("no Arrow schema", edit_parquet("flags", lambda rows: rows, store_schema=False), "flags.parquet"),
    ("not Parquet", lambda folder: replace_file(folder / "flags.parquet", b"PAR1"), "cannot be checked"),
    (
        "another table's file",
        lambda folder: replace_file(folder / "flags.parquet", (folder / "models.parquet").read_bytes()),
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
    ("row removed", forge_view("measurements", lambda rows: rows.slice(1)), f"measurements.parquet: {OTHER_ROWS}"),
    (
        "order of rows",
        forge_view("measurements", lambda rows: rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))),
        f"measurements.parquet: {OTHER_ROWS}",
    ),
    ("Parquet alone", edit_parquet("provenance", lambda rows: rows.slice(1)), "provenance.csv: rows differ"),
    ("CSV alone", lambda folder: replace_file(folder / "latest.csv", b"x\n1\n"), "latest.csv"),
    ("emptied", forge_view("provenance", lambda rows: rows.slice(0, 0)), f"provenance.parquet: {OTHER_ROWS}"),
    ("not stated", drop_view, "datapackage.json: describes latest.csv"),
    ("build id", edit_metadata("latest", build_id="0" * 64), "latest.parquet: build id differs"),
    ("unit", edit_field("latency_ms", lambda field: field.with_metadata(DESCRIBED), "latest"), "latest.parquet"),
]


# CSV


def edit_csv(edit: Callable[[list[list[str]]], list[list[str]]], name: str = "models") -> Tamper:
    def change(folder: Path) -> None:
        rows = list(csv.reader(io.StringIO((folder / f"{name}.csv").read_text(encoding="utf-8"), newline="")))
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(edit(rows))
        replace_file(folder / f"{name}.csv", out.getvalue().encode())

    return change


def edit_bytes(name: str, edit: Callable[[bytes], bytes]) -> Tamper:
    def change(folder: Path) -> None:
        data = (folder / name).read_bytes()
        assert edit(data) != data, name
        replace_file(folder / name, edit(data))

    return change


def replace_bytes(name: str, old: bytes, new: bytes) -> Tamper:
    return edit_bytes(name, lambda data: data.replace(old, new, 1))


CSV_KINDS: list[Kind] = [
    ("cell", edit_csv(lambda rows: [*rows[:-1], ["x", *rows[-1][1:]]]), "models.csv"),
    ("row removed", edit_csv(lambda rows: rows[:-1]), "models.csv"),
    ("row doubled", edit_csv(lambda rows: [*rows, rows[-1]]), "models.csv"),
    ("order of rows", edit_csv(lambda rows: [rows[0], *rows[:0:-1]]), "models.csv"),
    ("order of columns", edit_csv(lambda rows: [row[::-1] for row in rows]), "models"),
    ("header renamed", edit_csv(lambda rows: [["id", *rows[0][1:]], *rows[1:]]), "models"),
    ("column added", edit_csv(lambda rows: [[*row, "x"] for row in rows]), "models"),
    ("wider row", edit_csv(lambda rows: [*rows[:-1], [*rows[-1], "x"]]), "models"),
    ("null as empty text", replace_bytes("flags.csv", b",\n", b',""\n'), "flags.csv"),
    (
        "decimal as a whole number",
        edit_bytes("results.csv", lambda data: re.sub(rb",(\d+)\.0,", rb",\1,", data, count=1)),
        "results.csv: is not as publish writes it",
    ),
    ("text without quotes", replace_bytes("flags.csv", b'"warn"', b"warn"), "flags.csv: is not as publish writes it"),
    ("figure rounded", replace_bytes("results.csv", b".", b".0"), "results.csv"),
    ("formula unmarked", replace_bytes("claims.csv", b"\"'--", b'"--'), "claims.csv"),
    ("lines of Windows", edit_bytes("models.csv", lambda data: data.replace(b"\n", b"\r\n")), "models.csv"),
    ("byte order mark", edit_bytes("models.csv", lambda data: b"\xef\xbb\xbf" + data), "models.csv"),
    ("blank line at the end", edit_bytes("models.csv", lambda data: data + b"\n"), "models.csv"),
    ("semicolons", edit_bytes("models.csv", lambda data: data.replace(b",", b";")), "models"),
    ("not UTF-8", edit_bytes("models.csv", lambda data: data + b'"\xff"\n'), "models"),
]


# Descriptors


def edit_record(name: str, edit: Callable[[Record], object]) -> Tamper:
    def change(folder: Path) -> None:
        record = read_record(folder, name)
        edit(record)
        write_record(folder, name, record)

    return change


def edit_package(edit: Callable[[Record], object]) -> Tamper:
    return edit_record("datapackage.json", edit)


def edit_resource(edit: Callable[[Record], object], path: str = "results.csv") -> Tamper:
    return edit_package(lambda it: edit(next(entry for entry in it["resources"] if entry["path"] == path)))


def edit_package_field(name: str, edit: Callable[[Record], object], path: str = "results.csv") -> Tamper:
    return edit_resource(lambda it: edit(find(it["schema"]["fields"], name)), path)


def edit_croissant(edit: Callable[[Record], object]) -> Tamper:
    return edit_record("croissant.json", edit)


def edit_croissant_field(name: str, edit: Callable[[Record], object]) -> Tamper:
    return edit_croissant(lambda it: edit(find(find(it["recordSet"], "results")["field"], name)))


def edit_release(edit: Callable[[Record], object]) -> Tamper:
    return edit_record("release.json", edit)


def find(entries: list[Record], name: str) -> Record:
    return next(entry for entry in entries if entry["name"] == name)


def forge_hash(resource: Record) -> None:
    resource["hash"] = "sha256:" + "0" * 64


OTHER = {"name": "x", "path": "https://example.org/x", "title": "x"}
PACKAGE = "datapackage.json"
PACKAGE_KINDS: list[Kind] = [
    ("version", edit_package(lambda it: it.update(version="9.9.9")), "has version 9.9.9"),
    ("created", edit_package(lambda it: it.update(created="2020-01-01T00:00:00Z")), "has date 2020-01-01"),
    ("time of creation", edit_package(lambda it: it.update(created=f"{it['created'][:10]}T01:00:00Z")), PACKAGE),
    ("title", edit_package(lambda it: it.update(title="x")), PACKAGE),
    ("name", edit_package(lambda it: it.update(name="x")), PACKAGE),
    ("licence", edit_package(lambda it: it.update(licenses=[OTHER])), PACKAGE),
    ("licence's address", edit_package(lambda it: it["licenses"][0].update(path="https://example.org")), PACKAGE),
    ("contributors", edit_package(lambda it: it["contributors"].append({"title": "x"})), PACKAGE),
    ("keywords", edit_package(lambda it: it["keywords"].pop()), PACKAGE),
    ("address", edit_package(lambda it: it.update(homepage="https://example.org")), PACKAGE),
    ("source removed", edit_package(lambda it: it["sources"].pop()), PACKAGE),
    ("address of a source", edit_package(lambda it: it["sources"][0].update(path="https://example.org")), PACKAGE),
    ("profile", edit_package(lambda it: it.update({"$schema": "x"})), PACKAGE),
    ("order of resources", edit_package(lambda it: it["resources"].reverse()), PACKAGE),
    ("resource removed", edit_package(lambda it: it["resources"].pop(0)), "does not describe"),
    ("description of a table", edit_resource(lambda it: it.update(description="x")), PACKAGE),
    ("dialect", edit_resource(lambda it: it.update(dialect={"delimiter": ";"})), PACKAGE),
    ("encoding", edit_resource(lambda it: it.update(encoding="latin-1")), PACKAGE),
    ("media type", edit_resource(lambda it: it.update(mediatype="text/plain")), PACKAGE),
    ("format", edit_resource(lambda it: it.update(format="tsv")), PACKAGE),
    ("path", edit_resource(lambda it: it.update(path="https://example.org/results.csv")), "does not describe"),
    ("no resources", edit_package(lambda it: it.pop("resources")), f"{PACKAGE}: cannot be checked: KeyError"),
    ("no sources", edit_package(lambda it: it.pop("sources")), f"{PACKAGE}: lacks sources"),
    ("name of a resource", edit_resource(lambda it: it.update(name="x")), "name of results.csv is wrong"),
    ("bytes", edit_resource(lambda it: it.update(bytes=1)), "size or hash of results.csv"),
    ("hash", edit_resource(lambda it: it.update(hash="sha256:" + "0" * 64)), "size or hash of results.csv"),
    ("primary key", edit_resource(lambda it: it["schema"].update(primaryKey=["model"])), "results"),
    ("no primary key", edit_resource(lambda it: it["schema"].pop("primaryKey")), "primary key of results.csv"),
    ("foreign keys", edit_resource(lambda it: it["schema"].pop("foreignKeys")), "foreign keys of results.csv"),
    ("description of a column", edit_package_field("model", lambda it: it.update(description="x")), PACKAGE),
    ("unit", edit_package_field("latency_ms", lambda it: it.update(unit="s")), "columns of results.csv"),
    ("type of a column", edit_package_field("model", lambda it: it.update(type="integer")), "columns of results.csv"),
    ("limits", edit_package_field("throughput", lambda it: it.update(constraints={"minimum": -1})), PACKAGE),
    ("choices", edit_package_field("origin", lambda it: it["constraints"]["enum"].append("x")), PACKAGE),
    ("required", edit_package_field("model", lambda it: it["constraints"].pop("required")), "required columns"),
    ("missing values", edit_package_field("model", lambda it: it.update(missingValues=["x"])), PACKAGE),
    ("Parquet's hash", edit_resource(forge_hash, "latest.parquet"), "size or hash of latest.parquet"),
    ("Parquet's size", edit_resource(lambda it: it.update(bytes=1), "flags.parquet"), "size or hash of flags.parquet"),
    ("Parquet as a table", edit_resource(lambda it: it.update(type="table"), "flags.parquet"), "type of flags.parquet"),
    ("CSV as a file", edit_resource(lambda it: it.update(type="file")), "type of results.csv"),
    ("no schema", edit_resource(lambda it: it.pop("schema")), "type of results.csv"),
    ("DuckDB's description", edit_resource(lambda it: it.update(description="x"), DATABASE), PACKAGE),
    ("DuckDB's address", edit_resource(lambda it: it.update(path="x.duckdb"), DATABASE), "describes x.duckdb"),
    ("DuckDB removed", edit_package(lambda it: it["resources"].pop()), PACKAGE),
    ("not JSON", edit_bytes(PACKAGE, lambda _: b"{"), "is not a JSON object"),
    ("deep JSON", edit_bytes(PACKAGE, lambda _: b'{"a":' * 10_000), "is not a JSON object"),
]
CROISSANT = "croissant.json"
CROISSANT_KINDS: list[Kind] = [
    ("licence", edit_croissant(lambda it: it.update(license="https://example.org")), CROISSANT),
    ("no licence", edit_croissant(lambda it: it.pop("license")), f"{CROISSANT}: lacks license"),
    ("table removed", edit_croissant(lambda it: it["recordSet"].pop()), "lacks the record set"),
    (
        "column removed",
        edit_croissant(lambda it: find(it["recordSet"], "flags")["field"].pop()),
        "columns of flags are",
    ),
    (
        "file of another folder",
        edit_croissant(lambda it: it["distribution"].append({"contentUrl": "../secret", "sha256": ""})),
        "describes ../secret, which is not a file of a table",
    ),
    ("address", edit_croissant(lambda it: it.update(url="https://example.org")), CROISSANT),
    ("description", edit_croissant(lambda it: it.update(description="x")), CROISSANT),
    ("creator", edit_croissant(lambda it: it["creator"].update(name="x")), CROISSANT),
    ("citation", edit_croissant(lambda it: it.update(citeAs="x")), CROISSANT),
    ("keywords", edit_croissant(lambda it: it["keywords"].append("x")), CROISSANT),
    ("specification", edit_croissant(lambda it: it.update(conformsTo="x")), CROISSANT),
    ("context", edit_croissant(lambda it: it["@context"].update(sc="https://example.org/")), CROISSANT),
    ("version", edit_croissant(lambda it: it.update(version="9.9.9")), "has version 9.9.9"),
    ("date", edit_croissant(lambda it: it.pop("datePublished")), "has date None"),
    (
        "file's address",
        edit_croissant(lambda it: it["distribution"][0].update(contentUrl="https://example.org")),
        "not",
    ),
    ("file's format", edit_croissant(lambda it: it["distribution"][0].update(encodingFormat="text/csv")), CROISSANT),
    ("file's size", edit_croissant(lambda it: it["distribution"][0].update(contentSize="1 B")), CROISSANT),
    ("file's sha256", edit_croissant(lambda it: it["distribution"][0].update(sha256="0" * 64)), "is wrong"),
    ("description of a table", edit_croissant(lambda it: it["recordSet"][0].update(description="x")), CROISSANT),
    ("key", edit_croissant(lambda it: it["recordSet"][0].pop("key")), "key of documents"),
    ("table added", edit_croissant(lambda it: it["recordSet"].append({**it["recordSet"][0], "name": "x"})), "unknown"),
    ("description of a column", edit_croissant_field("model", lambda it: it.update(description="x")), CROISSANT),
    ("unit", edit_croissant_field("latency_ms", lambda it: it.update(description="Latency [s]")), "columns of results"),
    (
        "type of a column",
        edit_croissant_field("model", lambda it: it.update(dataType="cr:Int64")),
        "columns of results",
    ),
    (
        "source of a column",
        edit_croissant_field("model", lambda it: it["source"].update(extract={"column": "variant"})),
        "columns of results",
    ),
    ("reference", edit_croissant_field("document_id", lambda it: it.pop("references")), "references of results"),
]


def forge_history(record: Record) -> None:
    record.update(previous={"version": "0.9.0", "build_id": "0" * 64}, least_version="0.9.1")
    record["changes"] = [{"level": "major", "what": "x"}]


RELEASE = "release.json"
RELEASE_KINDS: list[Kind] = [
    ("version", edit_release(lambda it: it.update(version="9.9.9")), "has version"),
    ("version that is none", edit_release(lambda it: it.update(version="x")), "is not a version"),
    ("control characters", edit_release(lambda it: it.update(version="1\n\x1b[31mOK")), r"has 1\n\x1b"),
    ("no tables", edit_release(lambda it: it.pop("tables")), f"{RELEASE}: cannot be checked: KeyError"),
    ("tables that are none", edit_release(lambda it: it.update(tables=1)), f"{RELEASE}: cannot be checked"),
    ("table of another folder", edit_release(lambda it: it["tables"].update({"../x": {}})), "../x.csv: is missing"),
    ("date", edit_release(lambda it: it.update(published_on="2020-01-01")), "has date"),
    ("build id", edit_release(lambda it: it.update(build_id="0" * 64)), "build id differs"),
    ("rows", edit_release(lambda it: it["tables"]["flags"].update(rows=1)), "rows differ"),
    ("digest", edit_release(lambda it: it["tables"]["flags"].update(rows_sha256="0" * 64)), "rows differ"),
    ("table removed", edit_release(lambda it: it["tables"].pop("flags")), "does not list"),
    ("table added", edit_release(lambda it: it["tables"].update(x={"rows": 0})), "is missing"),
    ("view", edit_release(lambda it: it["views"].update(latest="0" * 64)), "definition of latest"),
    ("key added", edit_release(lambda it: it.update(note="x")), "other keys"),
    ("key removed", edit_release(lambda it: it.pop("name")), "other keys"),
    ("history", edit_release(forge_history), "does not follow 0.9.0"),
    ("change", edit_release(lambda it: it["changes"].append({"level": "patch", "what": "x"})), "without a previous"),
    ("correction", edit_release(lambda it: it["corrections"].append({"table": "x"})), "without a previous"),
    ("format", edit_release(lambda it: it.update(format=2)), "only 1 is supported"),
    ("blanks", edit_bytes(RELEASE, lambda data: json.dumps(json.loads(data)).encode()), "is not as publish writes it"),
]
TEXT_KINDS: list[Kind] = [
    ("figure in README", edit_bytes("README.md", lambda data: data.replace(b" results", b"0 results", 1)), "README.md"),
    ("line in README", edit_bytes("README.md", lambda data: data + b"\nVisit example.org\n"), "README.md"),
    ("unit in DICTIONARY", replace_bytes("DICTIONARY.md", b"| ms |", b"| s |"), "DICTIONARY.md"),
    ("table of a configuration", replace_bytes("README.md", b"data_files: flags", b"data_files: cells"), "README.md"),
    ("configuration removed", replace_bytes("README.md", b"- config_name: flags\n", b""), "README.md"),
    ("address of the dataset", replace_bytes("CITATION.cff", b'url: "https://', b'url: "http://'), "CITATION.cff"),
    ("LICENSE", edit_bytes("LICENSE", lambda _: b"All rights reserved.\n"), "LICENSE"),
    ("CHANGELOG", edit_bytes("CHANGELOG.md", lambda data: data + b"x"), "CHANGELOG.md"),
    ("author", replace_bytes("CITATION.cff", b"The ipu-results authors", b"Somebody"), "CITATION.cff"),
    ("address in the citation", edit_bytes("CITATION.cff", lambda data: data + b"url: https://x\n"), "CITATION.cff"),
    ("version in the citation", replace_bytes("CITATION.cff", b": 1.0.0", b": 1.0.1"), "has version 1.0.1"),
    ("blanks in the environment", edit_bytes("environment.json", lambda data: data + b"\n"), "environment.json"),
    ("host in the environment", edit_record("environment.json", lambda it: it.update(host="x")), "environment.json"),
    (
        "text in the environment",
        edit_record("environment.json", lambda it: it["packages"].update(duckdb="\x1b[2J")),
        "environment.json",
    ),
]


def replace_with_link(folder: Path) -> None:
    shutil.copyfile(folder / "LICENSE", folder.parent / "LICENSE")
    (folder / "LICENSE").unlink()
    (folder / "LICENSE").symlink_to(folder.parent / "LICENSE")


FILE_KINDS: list[Kind] = [
    ("file removed", lambda folder: (folder / "LICENSE").unlink(), "LICENSE"),
    ("table removed", lambda folder: (folder / "flags.csv").unlink(), "flags.csv"),
    ("file added", lambda folder: replace_file(folder / "notes.txt", b"mine"), "notes.txt"),
    ("table added", lambda folder: replace_file(folder / "more.csv", b"mine"), "more.csv"),
    ("link", replace_with_link, "LICENSE"),
    ("files exchanged", lambda folder: exchange(folder / "README.md", folder / "DICTIONARY.md"), "README.md"),
]


def exchange(first: Path, second: Path) -> None:
    data = first.read_bytes()
    replace_file(first, second.read_bytes())
    replace_file(second, data)


GROUPS = {
    "duckdb": DATABASE_KINDS,
    "parquet": PARQUET_KINDS,
    "view": VIEW_KINDS,
    "csv": CSV_KINDS,
    "datapackage": PACKAGE_KINDS,
    "croissant": CROISSANT_KINDS,
    "release": RELEASE_KINDS,
    "text": TEXT_KINDS,
    "files": FILE_KINDS,
}
KINDS = {f"{group}: {name}": (tamper, message) for group, kinds in GROUPS.items() for name, tamper, message in kinds}
assert len(KINDS) == sum(map(len, GROUPS.values()))
