"""Open DuckDB engines and databases, and run SQL in them: one reading statement of a user, or those
of a build.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import MappingProxyType
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from ipu_results.errors import QueryError
from ipu_results.kit.renamed import describe_column, describe_relation

T = TypeVar("T")
R = TypeVar("R")
Connection = duckdb.DuckDBPyConnection

HINT = re.compile(r"^\s*((?:Did you mean|Candidate)[^\n]*(?:\n\t[^\n]+)*)", re.MULTILINE)
READ_ONLY = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN})
READING = "BEGIN TRANSACTION READ ONLY"
DEFECT = "DuckDB fails on this statement by a defect of its own"
INTERRUPT_EVERY_S = 0.2
IS_MACRO = (
    "SELECT 1 FROM duckdb_functions() WHERE function_type = 'table_macro' AND function_name = ?"
)
# Where another schema has a relation. `stored` is not named: it holds what was read from files.
OTHER_SCHEMAS = """
    SELECT schema_name FROM (
        SELECT schema_name, view_name AS name FROM duckdb_views() WHERE NOT internal
        UNION
        SELECT schema_name, table_name FROM duckdb_tables()
    )
    WHERE name = $1 AND schema_name NOT IN ('main', 'stored')
    ORDER BY 1
"""
UNKNOWN_COLUMN = re.compile(r'[Cc]olumn (?:named )?"(\w+)"')
COLUMNS_OF = """
    SELECT table_name, list(column_name)
    FROM duckdb_columns()
    WHERE NOT internal AND list_contains($1, table_name)
    GROUP BY table_name
    ORDER BY table_name
"""
Settings = dict[str, str | bool | int | float | list[str]]
LOCKDOWN: Settings = {
    "enable_external_access": "false",
    "lock_configuration": "true",
}
# One thread gives sums and rows that tie in ORDER BY one order on every machine, and more make
# small tables slower.
ENGINE: Settings = {"threads": 1}
# the database of the published tables
ATTACHED = "warehouse"
# the database of what a build has not completed yet
STAGED = "staged"


class WriteRefusedError(QueryError):
    """The statement is not one that only reads."""


def run_query(connection: Connection, sql: str, max_rows: int | None = None) -> pa.Table:
    """Return the result of one reading statement, its first `max_rows` rows where a number is
    stated.

    Raises QueryError for wrong SQL, for a statement that writes, and for two result columns of the
    same name.
    """
    with _read_only(connection, sql) as statement:
        relation = connection.sql(statement)
        _check_names(relation.columns)  # before `limit`, which renames repeated ones
        if max_rows is not None:
            relation = relation.limit(max_rows)
        return relation.to_arrow_table()


@contextmanager
def open_engine(
    tables: Mapping[str, pa.Table] = MappingProxyType({}),
) -> Iterator[Connection]:
    """Give a connection to a database in memory that holds `tables`, for the stages of one build.

    A name may have a schema in front.
    """
    with attach_tables(":memory:") as engine:
        for name, rows in tables.items():
            if schema := name.rpartition(".")[0]:
                engine.execute(f"CREATE SCHEMA IF NOT EXISTS {ATTACHED}.{schema}")
            create_table(engine, f"{ATTACHED}.{name}", rows)
        yield engine


@contextmanager
def attach_tables(
    path: str, options: str = "", limits: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Connection]:
    """Give a connection to which a new database, `:memory:` or a file, is attached as ATTACHED.

    `limits` are settings of DuckDB such as `memory_limit`.
    """
    # DuckDB 1.2.2 cannot read a file of several checkpoints by a later version: the caller writes
    # one, at the end.
    settings = {**ENGINE, "checkpoint_threshold": "1TB", **limits}
    with duckdb.connect(config=settings) as engine:
        quoted = path.replace("'", "''")
        engine.execute(f"ATTACH '{quoted}' AS {ATTACHED} {options}")
        for name, value in LOCKDOWN.items():  # an attached file stays open
            engine.execute(f"SET {name} = {value}")
        yield engine
        engine.execute(f"DETACH {ATTACHED}")


@contextmanager
def open_database(engine: Connection, name: str, *schemas: str) -> Iterator[Connection]:
    """Give a cursor with a database in memory of its own, in which names are made and looked up.

    It is gone at the end.
    """
    with engine.cursor() as cursor:
        cursor.execute(f"ATTACH ':memory:' AS {name}")
        cursor.execute(f"USE {name}")
        for schema in schemas:
            cursor.execute(f"CREATE SCHEMA {schema}")
        yield cursor
        cursor.execute("USE memory")
        cursor.execute(f"DETACH {name}")


def map_statements(
    connection: Connection,
    database: str,
    function: Callable[[Connection, T], R],
    tasks: Iterable[T],
    *,
    reading: bool = False,
) -> list[R]:
    """Call a function with a cursor of the database and each task, on every core at once; with
    `reading`, each cursor is in a transaction of its own.

    Most statements of a build take longer to plan than to run, and one thread makes a plan. A
    statement that lacked memory beside others is run again, alone. Results are in the order of the
    tasks. The first error in this order is raised, that of memory after all others.
    """
    # queries need none of this
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415
    from queue import SimpleQueue  # noqa: PLC0415

    from ipu_results.kit.parallel import count_cores  # noqa: PLC0415

    cores = count_cores()
    free: SimpleQueue[Connection] = SimpleQueue()

    def run(task: T) -> R | duckdb.OutOfMemoryException:
        cursor = free.get()
        try:
            return function(cursor, task)
        except duckdb.OutOfMemoryException as error:
            return error
        finally:
            free.put(cursor)

    with ExitStack() as stack:
        for _ in range(cores):
            cursor = stack.enter_context(connection.cursor())
            cursor.execute(f"USE {database}")
            if reading:
                stack.enter_context(begin_reading(cursor))
            free.put(cursor)
        every_task = list(tasks)
        with ThreadPoolExecutor(cores) as pool:
            outcomes = list(pool.map(run, every_task))
        alone = free.get()
        results: list[R] = []
        for task, outcome in zip(every_task, outcomes, strict=True):
            if isinstance(outcome, duckdb.OutOfMemoryException):
                results.append(function(alone, task))
            else:
                results.append(outcome)
        return results


def create_table(connection: Connection, name: str, rows: pa.Table) -> None:
    """Create a table with these rows.

    DuckDB plans by its statistics, which Arrow rows that are registered lack.
    """
    _run_on(connection, rows, f"CREATE TABLE {name} AS FROM incoming")


def insert_rows(connection: Connection, name: str, rows: pa.Table) -> None:
    """Insert rows into a table, by the names of its columns."""
    _run_on(connection, rows, f"INSERT INTO {name} BY NAME FROM incoming")


def _run_on(connection: Connection, incoming: pa.Table, statement: str) -> None:
    connection.register("incoming", incoming)
    connection.execute(statement)
    connection.unregister("incoming")


PIECE_ROWS = 20_480  # read at once, ten of DuckDB's vectors: 10 MB of `cells` as pandas has them


def read_pieces(connection: Connection, relation: str) -> Iterator[pa.Table]:
    """Yield the rows of a relation, PIECE_ROWS at a time: all of them need not fit into memory."""
    reader = connection.sql(f"FROM {relation}").to_arrow_reader(PIECE_ROWS)
    for batch in reader:
        yield pa.Table.from_batches([batch])


@contextmanager
def begin_reading(connection: Connection) -> Iterator[None]:
    """Open one read-only transaction for many statements: one of its own costs each as much as its
    own work.
    """
    connection.execute(READING)
    try:
        yield
    finally:
        # a statement that meets a defect of DuckDB ends the database
        with suppress(duckdb.FatalException):
            connection.execute("ROLLBACK")


def fetch_rows(connection: Connection, sql: str) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """Return column names with SQL types, and the rows, of one reading statement, within
    `begin_reading`.
    """
    try:
        rows = connection.execute(_parse_statement(sql)).fetchall()
    except duckdb.Error as error:
        # an error ends the transaction, and the hints need one
        connection.execute(f"ROLLBACK; {READING}")
        if isinstance(error, duckdb.OutOfMemoryException):
            raise  # no fault of the statement: alone it may fit
        raise QueryError(_explain(connection, error, sql)) from error
    names = []
    kinds = {}
    for column in connection.description or ():
        names.append(column[0])
        kinds[column[0]] = str(column[1])
    _check_names(names)
    return kinds, rows


@contextmanager
def limit_time(connection: Connection, seconds: float) -> Iterator[None]:
    """Interrupt the statements of a connection once `seconds` have passed: they raise
    duckdb.InterruptException.
    """
    done = threading.Event()

    def interrupt() -> None:
        wait = seconds
        while not done.wait(wait):
            connection.interrupt()  # again and again: it stops what is running, not what comes next
            wait = INTERRUPT_EVERY_S

    watcher = threading.Thread(target=interrupt, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextmanager
def _read_only(connection: Connection, sql: str) -> Iterator[duckdb.Statement]:
    """Parse one reading statement and open a read-only transaction for it."""
    try:
        statement = _parse_statement(sql)
        with begin_reading(connection):
            yield statement
    except duckdb.Error as error:
        raise QueryError(_explain(connection, error, sql)) from error


def _parse_statement(sql: str) -> duckdb.Statement:
    try:
        # UTF-8 typed in another locale has its bytes as surrogates
        sql = sql.encode(errors="surrogateescape").decode()
    except UnicodeError as error:
        raise QueryError("the statement is not valid UTF-8: type it again in UTF-8") from error
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"expected one statement, got {len(statements)}")
    [statement] = statements
    if statement.type not in READ_ONLY:
        raise WriteRefusedError(
            f"the warehouse is read-only: {statement.type.name.lower()} is refused"
        )
    return statement


def _explain(connection: Connection, error: duckdb.Error, sql: str) -> str:
    """Return the first line of an error with a hint: the new name of an old one, the names that may
    be meant, or how to call a macro.
    """
    message = get_first_line(error)
    if isinstance(error, duckdb.InternalException):
        return f"{DEFECT}: write it in another way ({message})"
    hints = [" ".join(hint.split()) for hint in HINT.findall(str(error))]
    missing = re.search(r"Table with name (\w+) does not exist", message)
    if missing is None:
        new_name = _describe_column(connection, message, sql)
    else:
        name = missing[1]
        # a view with parameters is a table macro
        if connection.execute(IS_MACRO, [name]).fetchone():
            return f"{name} has parameters: write FROM {name}()"
        schema = connection.execute(OTHER_SCHEMAS, [name]).fetchone()
        if schema:
            return f"{name} is in the schema {schema[0]}: write FROM {schema[0]}.{name}"
        new_name = describe_relation(name)
        hints.append("(SHOW ALL TABLES lists all)")
    if new_name:
        return f"{message.rstrip('!')}: {new_name}"
    return " ".join([message, *hints])


def _describe_column(connection: Connection, message: str, sql: str) -> str:
    """Say what the unknown column of a message was renamed to in the relations of a statement."""
    column = UNKNOWN_COLUMN.search(message)
    if column is None:
        return ""
    words = re.findall(r"\w+", sql)
    for relation, names in connection.execute(COLUMNS_OF, [words]).fetchall():
        if renamed := describe_column(column[1], relation, names):
            return renamed
    return ""


def _check_names(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise QueryError(f"two columns are called {name}; rename one of them with AS")


def get_first_line(error: BaseException) -> str:
    """Return the first line of an error's message that is not blank, else the name of its type."""
    message = str(error).strip()
    return message.splitlines()[0].strip() if message else type(error).__name__
