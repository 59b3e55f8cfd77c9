"""The ten questions put to one engine: answers once, then the time of each."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from math import isnan
from pathlib import Path
from typing import Any

from benchmarks.child import Step
from benchmarks.environment import peak_mb
from benchmarks.queries import QUERIES, Query
from benchmarks.tables import DUCKDB, PARQUET, SQLITE

DIGITS = 6


def duckdb_file(folder: str, ids: list[str], repeats: int) -> Iterator[Step]:
    import duckdb  # noqa: PLC0415

    with duckdb.connect(str(Path(folder) / DUCKDB), read_only=True) as connection:
        yield from _asked(lambda sql: connection.execute(sql).fetchall(), ids, repeats)


def duckdb_parquet(folder: str, ids: list[str], repeats: int) -> Iterator[Step]:
    import duckdb  # noqa: PLC0415

    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW results AS SELECT * FROM '{Path(folder) / PARQUET}'")
        yield from _asked(lambda sql: connection.execute(sql).fetchall(), ids, repeats)


def sqlite_file(folder: str, ids: list[str], repeats: int) -> Iterator[Step]:
    with sqlite3.connect(Path(folder) / SQLITE) as connection:
        yield from _asked(lambda sql: connection.execute(sql).fetchall(), ids, repeats)


def pandas_frame(folder: str, ids: list[str], repeats: int) -> Iterator[Step]:
    """Loads, for each question, the columns that it needs, and counts that apart."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    for query in QUERIES:
        loads, runs = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            table = pq.read_table(Path(folder) / PARQUET, columns=list(query.columns))
            frame = table.to_pandas(date_as_object=False, self_destruct=True)
            loads.append(time.perf_counter() - start)
            start = time.perf_counter()
            found = query.frame(frame, tuple(ids))
            runs.append(time.perf_counter() - start)
            del frame, table
        rows = list(found.itertuples(index=False, name=None))
        yield {"query": query.name, "answer": _plain(rows), "seconds": runs, "load": loads, "peak": peak_mb()}


def _asked(ask: Callable[[str], list[tuple[Any, ...]]], ids: list[str], repeats: int) -> Iterator[Step]:
    for query in QUERIES:
        sql = _with_ids(query, ids)
        answer, seconds = ask(sql), []
        for _ in range(repeats):
            start = time.perf_counter()
            ask(sql)
            seconds.append(time.perf_counter() - start)
        yield {"query": query.name, "answer": _plain(answer), "seconds": seconds, "peak": peak_mb()}


def _with_ids(query: Query, ids: Sequence[str]) -> str:
    return query.sql.format(**{f"id{at}": key for at, key in enumerate(ids)})


def _plain(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows as text, doubles to DIGITS digits, in an order that does not depend on the engine."""
    return sorted("|".join(_text(value) for value in row) for row in rows)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, (str, date)):
        return str(value)
    return f"{float(value):.{DIGITS}g}"
