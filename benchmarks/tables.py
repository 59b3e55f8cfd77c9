"""A table shaped like `results`, made by DuckDB: the DuckDB file, the Parquet file and the SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
from ipu_results.schema import sql_table, table

from benchmarks.child import Step
from benchmarks.environment import peak_mb
from benchmarks.generate import BOW, CHIPS, CLASSIC, DATASETS, FRAMEWORKS, LENGTHS, MODELS, PRECISIONS

DUCKDB, PARQUET, SQLITE = "results.duckdb", "results.parquet", "results.sqlite"
RESULTS = table("results")
BATCH = 50_000
INDEXES = (
    "CREATE UNIQUE INDEX by_id ON results (result_id)",
    "CREATE INDEX by_configuration ON results (model, platform, framework, task)",
    "CREATE INDEX by_machine ON results (platform, task)",
    "CREATE INDEX by_day ON results (published_on)",
    "ANALYZE",
)
SQLITE_TYPES = {"integer": "INTEGER", "double": "REAL", "boolean": "INTEGER"}

PICKS = f"""
    SELECT i, hash(i) AS h, {{models}}[1 + pick(i, 1, {len(MODELS)})] AS model,
        {{speeds}}[1 + pick(i, 1, {len(MODELS)})] AS speed, pick(i, 2, 2) = 0 AS bow, 1 + pick(i, 3, 3) AS size,
        CAST(2 ** pick(i, 4, 5) AS BIGINT) AS step, pick(i, 5, 4) < 3 AS inference, pick(i, 6, 1000) AS noise,
        {{lengths}}[1 + pick(i, 7, 3)] AS length, pick(i, 8, 1000000) AS h8, pick(i, 9, 1000000) AS h9,
        pick(i, 10, 1000000) AS h10
    FROM range({{rows}}) AS numbers(i)"""
FIGURES = """
    SELECT *, round(speed * {chips}[size] ** 0.9 * step ** 0.55 * (0.8 + 0.4 * noise / 1000)
        * CASE WHEN bow THEN 1.33 ELSE 1 END, 1) AS throughput FROM picks"""
FILLED = {
    "result_id": "format('{{:016x}}', h)",
    "origin": "'published'",
    "publisher": "'Graphcore'",
    "document_id": "'generated-' || (i // 10000)",
    "table_name": "CASE WHEN bow THEN 'bow_' ELSE 'pod_' END || if(inference, 'inference', 'training')",
    "row_number": "1 + i % 10000",
    "published_on": "DATE '2020-01-01' + h8 % 1400",
    "task": "CASE WHEN inference THEN 'inference' ELSE 'training' END",
    "model": "model",
    "variant": "'SL' || length || ', configuration ' || (i // 5)",
    "dataset": "{datasets}[1 + h9 % {dataset_count}]",
    "platform": "CASE WHEN bow THEN {bow}[size] ELSE {classic}[size] END",
    "chip": "CASE WHEN bow THEN 'Bow' ELSE 'GC200' END",
    "chip_count": "{chips}[size]",
    "sdk_version": "'2.' || (h10 % 7) || '.0'",
    "framework": "{frameworks}[1 + h9 // 16 % 3]",
    "precision": "{precisions}[1 + h8 // 2048 % 3]",
    "activation_bits": "16",
    "weight_bits": "16",
    "batch_size": "step * {chips}[size]",
    "throughput": "throughput",
    "item": "'item'",
    "latency_ms": "CASE WHEN inference THEN round(1600 * step * {chips}[size] / throughput, 2) END",
}
KEYS = "SELECT result_id FROM results WHERE document_id = 'generated-0' AND row_number IN (7, 77, 777)"


def build(rows: int, folder: str) -> Iterator[Step]:
    """Write the three files; a step for each part, and at last keys that stand in the table."""
    where = Path(folder)
    with duckdb.connect(str(where / DUCKDB)) as connection:
        yield _step("DuckDB file with its key", where / DUCKDB, fill_results, connection, rows)
        yield _step("Parquet file", where / PARQUET, _fill_parquet, connection, where / PARQUET)
        with sqlite3.connect(where / SQLITE) as lite:
            yield _step("SQLite file", where / SQLITE, _fill_sqlite, connection, lite)
            yield _step("SQLite indexes", where / SQLITE, _index_sqlite, lite)
        found = connection.execute(KEYS).fetchall()
    yield {"part": "keys", "ids": sorted(key for (key,) in found)}


def _step(part: str, path: Path, make, *arguments) -> Step:  # type: ignore[no-untyped-def]
    start = time.perf_counter()
    make(*arguments)
    taken = time.perf_counter() - start
    return {"part": part, "seconds": taken, "megabytes": path.stat().st_size / 1e6, "peak": peak_mb()}


def fill_results(connection: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Make the table and fill it with generated rows."""
    create, *_ = sql_table(RESULTS)
    connection.execute(
        "\n".join(line for line in create.splitlines() if "FOREIGN KEY" not in line).replace(",\n)", "\n)")
    )
    connection.execute("CREATE TEMP MACRO pick(i, salt, n) AS CAST(hash(16 * i + salt) % n AS INTEGER)")
    words = {
        "models": _list(list(MODELS)),
        "speeds": _list(list(MODELS.values())),
        "lengths": _list(LENGTHS),
        "chips": _list(CHIPS),
        "bow": _list(BOW),
        "classic": _list(CLASSIC),
        "datasets": _list(DATASETS),
        "dataset_count": len(DATASETS),
        "frameworks": _list(FRAMEWORKS),
        "precisions": _list(PRECISIONS),
        "rows": rows,
    }
    chosen = ", ".join(f"{text} AS {name}" for name, text in FILLED.items())
    query = f"WITH picks AS ({PICKS}), figures AS ({FIGURES}) SELECT {chosen} FROM figures".format(**words)
    connection.execute(f"INSERT INTO results BY NAME {query}")
    connection.execute("CHECKPOINT")


def _list(values: Sequence[str | int]) -> str:
    return f"[{', '.join(map(repr, values))}]"


def _fill_parquet(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    connection.execute(f"COPY results TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def _fill_sqlite(connection: duckdb.DuckDBPyConnection, lite: sqlite3.Connection) -> None:
    """Days as ISO text; the columns that are null throughout are there, and left out of the INSERT."""
    lite.execute("PRAGMA journal_mode = OFF")
    lite.execute("PRAGMA synchronous = OFF")
    lines = (f"{column.name} {SQLITE_TYPES.get(column.kind, 'TEXT')}" for column in RESULTS.columns)
    lite.execute(f"CREATE TABLE results ({', '.join(lines)})")
    names = list(FILLED)
    texts = ", ".join(f"CAST({name} AS VARCHAR)" if name == "published_on" else name for name in names)
    rows = connection.execute(f"SELECT {texts} FROM results")
    insert = f"INSERT INTO results ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    while batch := rows.fetchmany(BATCH):
        lite.executemany(insert, batch)
    lite.commit()


def _index_sqlite(lite: sqlite3.Connection) -> None:
    for statement in INDEXES:
        lite.execute(statement)
    lite.commit()
