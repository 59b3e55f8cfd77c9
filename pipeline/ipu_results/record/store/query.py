"""Open the warehouse for reading: the DuckDB file if it is built, else the committed Parquet files.

The DuckDB file is written here, too: tables, in a release with comments, and the views.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results.errors import GateError, WarehouseError
from ipu_results.kit.files import open_regular_file
from ipu_results.kit.sql import (
    ATTACHED,
    ENGINE,
    LOCKDOWN,
    Connection,
    attach_tables,
    create_table,
    get_first_line,
    insert_rows,
)
from ipu_results.kit.statements import define_macros, execute_text
from ipu_results.record.store.files import (
    BUILD_ID,
    DATABASE,
    get_parquet_name,
    is_damaged,
    is_pending,
)
from ipu_results.schema import (
    DETAIL,
    RULES_SCHEMA,
    SHARED,
    TABLES,
    VIEWS,
    View,
    sql_faults,
    sql_table,
    sql_view,
)

STORAGE_VERSION = "v1.2.0"
# bytes, the minimum: the tables are small, and each column takes at least one block
BLOCK_SIZE = 16_384


def read_view(connection: Connection, view: View) -> pa.Table:
    """Return the rows of a view as the files of a release hold them, in their order."""
    # querying alone needs no pandas
    from ipu_results.schema.frames import file_schema  # noqa: PLC0415

    return connection.sql(view.rows_sql).to_arrow_table().cast(file_schema(view.file_table))


def write_duckdb(path: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write one database file with all published tables and views."""
    with create_database(path) as engine:
        define_database(engine, with_comments=True)
        insert_tables(engine, tables)


@contextmanager
def create_database(
    path: Path, limits: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Connection]:
    """Give an engine whose tables are those of a new database file, for DuckDB 1.2.2 and later.

    `limits` are settings of DuckDB such as `memory_limit`.

    At the end the file is complete. It has no write-ahead log, since a build deletes the file of
    one that died.
    """
    str(path).encode()  # raises UnicodeEncodeError, where DuckDB fails without saying why
    options = (
        f"(STORAGE_VERSION '{STORAGE_VERSION}', BLOCK_SIZE {BLOCK_SIZE}, RECOVERY_MODE"
        " no_wal_writes)"
    )
    with attach_tables(str(path), options, limits) as engine:
        yield engine
        engine.execute(f"CHECKPOINT {ATTACHED}")


def define_tables(engine: Connection) -> None:
    """Create the published tables in the attached database, in their schemas."""
    with _begin_writing(engine) as connection:
        connection.execute(f"CREATE SCHEMA {DETAIL}")
        for table in TABLES:
            connection.execute(sql_table(table)[0])


def define_database(engine: Connection, with_comments: bool = False) -> None:
    """Create the published tables and views in the attached file, in their schemas.

    Comments are for those who get a release: they take twice as long as all else here, and
    `columns` has them too.
    """
    define_tables(engine)
    relations = (*VIEWS, *SHARED)
    with _begin_writing(engine) as connection:
        connection.execute(f"CREATE SCHEMA {RULES_SCHEMA}")
        define_macros(connection)  # for quality rules, which a reader may paste
        for view in relations:
            execute_text(connection, view.path, sql_view(view)[0])
    if not with_comments:
        return
    definitions = [sql_table(table) for table in TABLES]
    definitions += [sql_view(view) for view in relations]
    for statements in definitions:
        # each comment copies its table until the transaction ends
        with _begin_writing(engine) as connection:
            for comment in statements[1:]:
                connection.execute(comment)


def insert_tables(engine: Connection, tables: Mapping[str, pa.Table]) -> None:
    """Insert rows into the attached database, all or none.

    `tables` has them by the name that statements use.
    """
    with _begin_writing(engine) as connection:
        for sql_name, rows in tables.items():
            insert_rows(connection, sql_name, rows)


def check_keys(engine: Connection) -> None:
    """Prove the keys of the attached tables, and that what they refer to is there.

    Raises GateError that names the first row that breaks one.
    """
    faults: list[str] = []
    for table in TABLES:
        faults += sql_faults(table)
    with engine.cursor() as connection:
        connection.execute(f"USE {ATTACHED}")
        found = connection.execute(" UNION ALL ".join(faults) + " LIMIT 1").fetchone()
    if found is not None:
        raise GateError(f"a key does not hold: {found[0]}")


@contextmanager
def _begin_writing(engine: Connection) -> Iterator[Connection]:
    """Give a cursor in a transaction on the attached file, which is committed unless the block
    fails.
    """
    with engine.cursor() as connection:
        connection.execute(f"USE {ATTACHED}")
        connection.begin()
        yield connection
        connection.commit()


# DuckDB looks up the columns of USING when it lists tables; without it the tables are the same
USING = re.compile(r"\bUSING\s*\([^()]*\)", re.IGNORECASE)
LISTING = re.compile(
    r"duckdb_|pragma_|sqlite_|pg_|information_schema|(?<!^)\b(?:show|describe)\b", re.IGNORECASE
)
"""What lists the relations that there are."""
NAMES_ALONE = re.compile(r"\s*show\s+tables\s*;?\s*", re.IGNORECASE)
MACROS = {view.sql_name for view in VIEWS if view.parameters}
BUILD = "build"  # the table of the build's id
STORED = "stored"  # schema of the tables that are read from Parquet files
INGEST = "ipu-results ingest"
BUILD_AGAIN = f"build again with: {INGEST}"
MAX_TRIES = 5
RETRY_S = 0.1  # while another process replaces the files

T = TypeVar("T")


class MixedBuildsError(WarehouseError):
    """The files are of two builds: briefly while another process publishes, or for good."""


@contextmanager
def open_warehouse(warehouse: Path, statement: str = "") -> Iterator[Connection]:
    """Give a connection that can read the warehouse and nothing else, closed at the end.

    With a `statement`, Parquet files that it does not read may be left out.
    Raises WarehouseError if nothing is built, a file is damaged, or the files are of two builds.
    """
    with connect_warehouse(warehouse, {}, statement) as connection:
        yield connection


def connect_warehouse(
    warehouse: Path, limits: Mapping[str, str | int] = MappingProxyType({}), statement: str = ""
) -> Connection:
    """Connect as `open_warehouse` does; the caller closes the connection.

    `limits` are settings of DuckDB such as `memory_limit`, which no statement can then change.
    """
    return read_one_build(warehouse, lambda folder: _connect_once(folder, limits, statement))


def read_one_build(warehouse: Path, read: Callable[[Path], T]) -> T:
    """Return what `read` returns, and call it again if it meets two builds: another process may be
    replacing files.
    """
    # the last try is below: its error is the answer
    for _ in range(MAX_TRIES - 1):
        finish_interrupted_build(warehouse)
        try:
            return read(warehouse)
        except MixedBuildsError:
            time.sleep(RETRY_S)
    finish_interrupted_build(warehouse)
    return read(warehouse)


def _connect_once(warehouse: Path, limits: Mapping[str, str | int], statement: str) -> Connection:
    database = warehouse / DATABASE
    build_id = read_build_id(warehouse)
    try:
        if database.exists():
            settings = {**ENGINE, **LOCKDOWN, **limits}
            connection = duckdb.connect(str(database), read_only=True, config=settings)
        else:
            connection = _load_parquet(warehouse, limits, statement)
    except duckdb.Error as error:
        raise _describe_failure(error, database) from error
    try:
        builds = connection.execute("SELECT min(build_id), max(build_id) FROM build").fetchall()
    except duckdb.Error as error:
        connection.close()
        raise _describe_failure(error, database) from error
    if builds != [(build_id, build_id)]:
        connection.close()
        raise _describe_mixed(warehouse, f"{DATABASE} and the Parquet files")
    return connection


def _describe_failure(error: duckdb.Error, database: Path) -> WarehouseError:
    return WarehouseError(f"cannot be opened: {get_first_line(error)}", place=str(database))


def _describe_mixed(folder: Path, files: str) -> MixedBuildsError:
    message = f"{files} are of two builds; {BUILD_AGAIN}"
    return MixedBuildsError(message, place=str(folder))


def finish_interrupted_build(warehouse: Path) -> None:
    """Move the files of a build into place whose process died between its commit and its last
    rename.
    """
    if not is_pending(warehouse):
        return
    # querying alone needs no filelock
    from ipu_results.record.store.transaction import lock_folder, recover  # noqa: PLC0415

    try:
        with lock_folder(warehouse, wait_s=10.0):
            recover(warehouse)
    except OSError as error:
        message = f"a build was interrupted and cannot be finished here: {error.strerror}"
        raise WarehouseError(message, place=str(warehouse)) from error


def read_build_id(warehouse: Path) -> str:
    """Return the build id that all Parquet files carry.

    Raises WarehouseError if one is missing or they differ.
    """
    paths = [warehouse / get_parquet_name(table.sql_name) for table in TABLES]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        lack = f"{missing[0]} is missing"
        if missing == [path.name for path in paths]:
            lack = "contains no dataset"
        raise WarehouseError(f"{lack}; build it with: {INGEST}", place=str(warehouse))
    build_id = _read_build_id_of(paths[0])
    for path in paths[1:]:
        check_build_id(path, build_id, paths[0].name)
    return build_id


def check_build_id(path: Path, build_id: str, other: str = "the tables") -> None:
    """Raise MixedBuildsError if a Parquet file is of another build than `other`, WarehouseError if
    it is damaged.
    """
    if _read_build_id_of(path) != build_id:
        raise _describe_mixed(path.parent, f"{other} and {path.name}")


def _read_build_id_of(path: Path) -> str:
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise WarehouseError(f"cannot be read: {get_first_line(error)}", place=path.name) from error
    return str(metadata.get(BUILD_ID.encode(), b"").decode(errors="replace"))


def _load_parquet(warehouse: Path, limits: Mapping[str, str | int], statement: str) -> Connection:
    """Connect to the tables of the Parquet files, in memory, with the views; its cursors see them
    too.

    Those that the statement does not read are left out: they take half of the time of a command.
    The published names are views of tables in a schema of their own, because DuckDB refuses to
    write to a view.
    """
    connection = duckdb.connect(config={**ENGINE, **LOCKDOWN, **limits})
    with connection.cursor() as loading:  # where no progress bar gets into the answer on stdout
        define_macros(loading)
        is_listing = NAMES_ALONE.fullmatch(statement)
        names = {BUILD} if is_listing else _list_relations(loading, statement)
        loading.begin()  # one transaction for all: each of its own takes as long as the statement
        for schema in (STORED, DETAIL, RULES_SCHEMA):
            loading.execute(f"CREATE SCHEMA {schema}")
        for table in TABLES:
            if table.sql_name in names:
                texts = [column.name for column in table.columns if column.kind == "text"]
                rows = read_parquet(warehouse / get_parquet_name(table.sql_name), None, texts)
                create_table(loading, f"{STORED}.{table.name}", rows)
                loading.execute(f"CREATE VIEW {table.sql_name} AS FROM {STORED}.{table.name}")
        for view in (*VIEWS, *SHARED):
            if view.sql_name in names:
                # the comments after it are for those who get the DuckDB file
                loading.execute(sql_view(view)[0])
        if is_listing:
            # the statement reads none of them, and to define them takes longer than all else
            listed = {relation.sql_name for relation in (*TABLES, *VIEWS)}
            for name in sorted(listed - names - MACROS):
                loading.execute(f"CREATE VIEW {name} AS SELECT NULL AS unread")
        loading.commit()
    return connection


def _list_relations(connection: Connection, statement: str) -> set[str]:
    """Return the relations that a statement reads with what these read, or all where it may look at
    others.
    """
    views = {view.sql_name: view.sql for view in (*VIEWS, *SHARED)}
    known = {table.sql_name for table in TABLES} | views.keys()
    read = {BUILD}  # its id is compared with that of the files
    statements = [statement]
    try:
        while statements:
            sql = USING.sub("ON true", statements.pop())
            # raises for a macro, and for NATURAL JOIN, whose columns are not there yet
            listed = connection.get_table_names(sql, qualified=True)
            without_aliases = {name.partition(" AS ")[0] for name in listed}
            names = without_aliases - read
            read |= names
            statements += [views[name] for name in names & views.keys()]
    except (duckdb.Error, TypeError):  # the latter for a text in another encoding
        return known
    reads_others = not read <= known
    reads_none = read == {BUILD}
    if reads_others or reads_none or LISTING.search(statement):
        return known
    return read


def read_parquet(
    path: Path,
    columns: list[str] | None = None,
    texts: Sequence[str] = (),
    data: bytes | None = None,
) -> pa.Table:
    """Read a table and verify all bytes of its file, `data` if these are read.

    Raises WarehouseError with its name.

    `texts` repeat in many rows and stay dictionary-encoded, which takes a third of the time.
    """
    with open_parquet(path, texts, data) as file:
        return file.read(columns=columns, use_threads=False)


@contextmanager
def open_parquet(
    path: Path, texts: Sequence[str] = (), data: bytes | None = None
) -> Iterator[pq.ParquetFile]:
    """Open a file whose checksum is right or that has none; an error in the block is one of the
    file, too.
    """
    try:
        if data is None:
            with open_regular_file(path) as opened:
                data = opened.read()
        if is_damaged(data):
            raise OSError(f"its checksum is wrong; restore it, or build it again with: {INGEST}")
        # `pq.read_table` makes a dataset of the file first
        with pq.ParquetFile(
            pa.BufferReader(data), read_dictionary=list(texts), page_checksum_verification=True
        ) as file:
            yield file
    except (OSError, LookupError, pa.ArrowException) as error:
        raise WarehouseError(f"cannot be read: {get_first_line(error)}", place=path.name) from error
