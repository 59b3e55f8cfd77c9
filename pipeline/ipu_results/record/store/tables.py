"""Write the checked frames as Parquet and DuckDB files, published together or not at all.

A release has CSV, too, which is written so that a spreadsheet can open it safely.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Protocol

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from ipu_results.errors import WarehouseError
from ipu_results.kit.sql import ATTACHED, Connection, open_engine
from ipu_results.kit.text import FORMULA, mark_formula, unmark_formula
from ipu_results.record.store.files import (
    BUILD_ID,
    DATABASE,
    add_checksum,
    get_parquet_name,
    join_fields,
)
from ipu_results.record.store.query import (
    check_keys,
    create_database,
    define_database,
    define_tables,
    insert_tables,
)
from ipu_results.record.store.transaction import stage_files
from ipu_results.schema import DETAIL, TABLES, table
from ipu_results.schema.frames import (
    build_frame,
    decode_schema,
    file_schema,
    round_derived_columns,
    to_arrow,
)
from ipu_results.schema.records import BuildRow

MAX_BLOCK = 2**31 - 1  # bytes; pyarrow reads no row that is longer than a block
# a double that prints without a point
WHOLE = r"^-?\d+$"
FORMULA_START = f"^{FORMULA.pattern}"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
FIRST_ROWS = 80  # polars guesses types from the first 100 rows, those moved to the front among them


def put_telling_rows_first(table: pa.Table) -> pa.Table:
    """Move rows to the front so that no column of texts begins with numbers alone: polars ignores
    quotes.

    Each such column brings the first of its rows that is not a number.
    """
    moved = []
    for column in _list_text_columns(table):
        first = pc.match_substring_regex(column.slice(0, FIRST_ROWS), NUMBER)
        # none if all of them are null
        if pc.all(first, skip_nulls=True, min_count=1).as_py():
            is_number = pc.match_substring_regex(column, NUMBER)
            if not pc.all(is_number).as_py():
                moved.append(pc.index(is_number, value=False).as_py())
    if not moved:
        return table
    order = dict.fromkeys([*moved, *range(table.num_rows)])  # each row once
    return table.take(list(order))


def _list_text_columns(table: pa.Table) -> list[pa.ChunkedArray]:
    """Return the columns of texts, not encoded."""
    texts = []
    for field, column in zip(decode_schema(table.schema), table.columns, strict=True):
        if pa.types.is_string(field.type):
            texts.append(column.cast(pa.string()))
    return texts


def write_csv(table: pa.Table, file: Path | BinaryIO) -> None:
    r"""Write UTF-8 with a line break after each row; a null is empty, an empty text is `""`,
    figures are exact.

    Readers that guess types from the first rows get the right ones: every text is quoted, and a
    whole number in a column of decimals ends in `.0`, and rows with a text come before those with
    numbers alone in its place. A text that a spreadsheet takes for a formula has an apostrophe in
    front.
    """
    if isinstance(file, Path):
        with file.open("wb") as opened:
            write_csv(table, opened)
        return
    rows = put_telling_rows_first(table)
    header = _quote(pa.array(rows.column_names, pa.string()))
    file.write(",".join(header.to_pylist()).encode() + b"\n")
    for lines in join_fields(rows, _format_cells, ",", ""):
        # Arrow joins the texts of a list: here of one that has all lines
        one_list = pa.ListArray.from_arrays([0, len(lines)], lines)
        [text] = pc.binary_join(one_list, "\n")
        file.write(text.as_buffer())
        file.write(b"\n")


def _format_cells(column: pa.Array) -> pa.Array:
    """Return the texts of a column as CSV has them, null for a null."""
    if pa.types.is_string(column.type):
        return _quote(_map_formulas(column, mark_formula))
    texts = column.cast(pa.string())
    if not pa.types.is_floating(column.type):
        return texts
    is_whole = pc.match_substring_regex(texts, WHOLE)
    return pc.if_else(is_whole, pc.binary_join_element_wise(texts, ".0", ""), texts)


def _quote(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")


def read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    """Read what `write_csv` wrote, in the given types.

    Raises pyarrow.ArrowException for anything else.
    """
    if not schema.names:
        return schema.empty_table()
    block_size = min(max(path.stat().st_size, 1), MAX_BLOCK)
    # empty without quotes is null, and "" a text; a line break in quotes is part of it
    rows = csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=block_size),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true"],
            false_values=["false"],
        ),
    )
    for position, field in enumerate(rows.schema):
        if pa.types.is_string(field.type):
            texts = _map_formulas(rows.column(position), unmark_formula)
            rows = rows.set_column(position, field, texts)
    return rows


def count_formulas(table: pa.Table) -> int:
    """Return how many texts `write_csv` marks."""
    count = 0
    for column in _list_text_columns(table):
        for text in column.filter(_may_be_formula(column)).to_pylist():
            if text != mark_formula(text):
                count += 1
    return count


def _may_be_formula(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.fill_null(pc.match_substring_regex(texts, FORMULA_START), False)


def _map_formulas(texts: pa.Array, function: Callable[[str], str]) -> pa.Array:
    """Apply a function to the texts that may begin a formula, marked or not."""
    indices = pc.indices_nonzero(_may_be_formula(texts)).to_pylist()
    if not indices:
        return texts
    mapped = texts.to_pylist()
    for index in indices:
        mapped[index] = function(mapped[index])
    return pa.array(mapped, texts.type)


BUILD_TABLE = "build"
CONTENT_TABLES = [each for each in TABLES if each.name != BUILD_TABLE]

Frames = Mapping[str, pd.DataFrame | pa.Table]


class TableStore(Protocol):
    """Where a build puts the rows of its published tables as soon as they are complete."""

    @property
    def engine(self) -> Connection:
        """The database engine with the tables."""

    def add(self, frames: Frames) -> None:
        """Add rows to tables."""

    def wait(self) -> None:
        """Return when the engine has all rows that were added."""


class MemoryStore:
    """Keeps the tables in memory, for a build that is looked at and not written."""

    def __init__(self, engine: Connection) -> None:
        self.engine = engine
        define_tables(engine)

    def add(self, frames: Frames) -> None:
        insert_tables(self.engine, build_arrow_tables(frames))

    def wait(self) -> None:
        """They are there."""

    def fetch(self, name: str) -> pa.Table:
        """Return the rows of a table."""
        rows = self.engine.sql(f"FROM {ATTACHED}.{table(name).sql_name}").to_arrow_table()
        return to_arrow(table(name), rows)


@contextmanager
def open_memory_store() -> Iterator[MemoryStore]:
    with open_engine() as engine:
        yield MemoryStore(engine)


class WarehouseWriter:
    """Replaces the files of a warehouse by those of one build, all or nothing.

    The caller holds the lock.

    The DuckDB file is the database that the stages share. A thread fills it and writes the Parquet
    files meanwhile: all this needs little Python. A build that ends before `finish` leaves the old
    one.
    """

    def __init__(self, warehouse: Path, limits: Mapping[str, str] = MappingProxyType({})) -> None:
        self._warehouse = warehouse
        self._limits = limits
        self._stack = ExitStack()
        self._files: dict[str, TableFile] = {}

    def __enter__(self) -> WarehouseWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def start(self) -> None:
        """Begin tables without rows."""
        with self._name_errors():
            self._staging = self._stack.enter_context(stage_files(self._warehouse))
            (self._staging / DETAIL).mkdir()
            # what does not fit into memory; gone with the staging folder if the process dies
            spill = {"temp_directory": str(self._staging / "spill")}
            database = create_database(self._staging / DATABASE, {**spill, **self._limits})
            self._engine = self._stack.enter_context(database)
            # one thread: what is added comes after what it refers to, in the same order each time
            self._pool = self._stack.enter_context(ThreadPoolExecutor(max_workers=1))
            for definition in TABLES:
                path = self._staging / get_parquet_name(definition.sql_name)
                self._files[definition.sql_name] = TableFile(path, file_schema(definition))
        self._filled = self._pool.submit(define_database, self._engine)

    @property
    def engine(self) -> Connection:
        """The database, with all rows that were added."""
        self.wait()
        return self._engine

    def wait(self) -> None:
        """Wait for the thread that writes."""
        with self._name_errors():
            self._filled.result()

    def add(self, frames: Frames) -> None:
        """Begin to write rows; those that were added before are written first."""
        tables = build_arrow_tables(frames)
        before = self._filled
        self._filled = self._pool.submit(self._write, tables)
        with self._name_errors():
            before.result()  # else rows that wait would fill the memory

    def _write(self, tables: Mapping[str, pa.Table]) -> None:
        insert_tables(self._engine, tables)
        for sql_name, rows in tables.items():
            self._files[sql_name].append(rows)

    def finish(self, inputs_digest: str) -> str:
        """Put the new build in place of the old one and return its id.

        Raises WarehouseError if the disk is full or the folder is not writable, GateError for a
        broken key.
        """
        with self._name_errors():
            check_keys(self.engine)
            build_id = hash_build(self._engine, inputs_digest)
            counts = {sql_name: file.rows for sql_name, file in self._files.items()}
            self._write({BUILD_TABLE: describe_build(counts, build_id)})
            for file in self._files.values():
                file.close(build_id)
            self._stack.close()
        return build_id

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, MemoryError, pa.ArrowException, duckdb.Error) as error:
            message = f"could not be written, the old build stays: {error}"
            raise WarehouseError(message, place=str(self._warehouse)) from error


def build_arrow_tables(frames: Frames) -> dict[str, pa.Table]:
    """Return tables as Arrow, by the name that statements use; computed doubles are rounded.

    Raises GateError if another value would have to change.
    """
    tables = {}
    for name, frame in frames.items():
        definition = table(name)
        tables[definition.sql_name] = round_derived_columns(definition, to_arrow(definition, frame))
    return tables


class TableFile:
    """The Parquet file of a table or view, filled piece by piece.

    The same bytes for the same pieces within one environment.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._path = path
        self._schema = decode_schema(schema)
        self._writer = pq.ParquetWriter(
            path, self._schema, compression="zstd", write_page_checksum=True, store_schema=False
        )

    def append(self, rows: pa.Table) -> None:
        """Write rows, whose texts may be encoded."""
        self.rows += len(rows)
        self._writer.write_table(rows.cast(self._schema))

    def close(self, build_id: str) -> None:
        """Complete the file with the id of its build."""
        metadata = {**self._schema.metadata, BUILD_ID.encode(): build_id.encode()}
        schema = self._schema.with_metadata(metadata)
        # as Arrow stores it, which does so before there is an id
        stored = base64.b64encode(schema.serialize())
        self._writer.add_key_value_metadata({"ARROW:schema": stored, **schema.metadata})
        self._writer.close()
        add_checksum(self._path)


def write_table_file(path: Path, rows: pa.Table, build_id: str) -> None:
    """Write the Parquet file of a table or view of one build."""
    file = TableFile(path, rows.schema)
    file.append(rows)
    file.close(build_id)


def hash_build(engine: Connection, inputs_digest: str) -> str:
    """Return the id of a build: a digest of its inputs and of the rows of its tables, in any order.

    It tells two builds apart, also where only the code changed between them. The digests of rows
    that a release states are those of `digest_rows`, which takes ten times as long.
    """
    lines = [inputs_digest]
    for definition in CONTENT_TABLES:
        columns = ", ".join(definition.names)
        statement = f"SELECT bit_xor(hash({columns})) FROM {ATTACHED}.{definition.sql_name}"
        [(rows_hash,)] = engine.execute(statement).fetchall()
        lines.append(f"{definition.name} {rows_hash}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def describe_build(counts: Mapping[str, int], build_id: str) -> pa.Table:
    """Return the table `build`: the other tables with their number of rows, which `counts` has by
    the name that statements use, and the id.
    """
    build: list[BuildRow] = []
    for definition in CONTENT_TABLES:
        rows = counts[definition.sql_name]
        build.append({"table_name": definition.name, "row_count": rows, "build_id": build_id})
    build.sort(key=itemgetter("table_name"))
    return to_arrow(table(BUILD_TABLE), build_frame(table(BUILD_TABLE), build))
