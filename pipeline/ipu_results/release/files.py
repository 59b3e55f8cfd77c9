"""Name the files of a release, check their bytes, look into its DuckDB file, and replace the folder
as a whole.

A new release is written to a hidden work folder next to the target, brought to disk, and put in
place by two renames: the old release moves into the work folder, then the new one moves to the
target. Between the two the target is missing for a moment. A process killed there leaves both
releases whole; the next `publish`, `verify` or `diff` puts the old one back
(`finish_interrupted_publish`).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec
import pyarrow as pa

from ipu_results.errors import IpuResultsError, ReleaseError, UnreadableReleaseError, WarehouseError
from ipu_results.kit.files import hash_file, sync_to_disk
from ipu_results.kit.sql import ENGINE, LOCKDOWN, get_first_line
from ipu_results.kit.text import escape_unprintable
from ipu_results.record.store.files import DATABASE, get_csv_name, get_parquet_name
from ipu_results.record.store.transaction import lock_folder
from ipu_results.schema import DETAIL

Progress = Callable[[str, str], None]  # called with a step and what it works on
FORMAT = 1
RELEASE = "release.json"
PACKAGE = "datapackage.json"
CROISSANT = "croissant.json"
CITATION = "CITATION.cff"
ENVIRONMENT = "environment.json"
CHECKSUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"  # the only file that SHA256SUMS does not list
SUFFIXES = (".parquet", ".csv")
IS_NAME = re.compile(r"(?:\w+\.)?\w+", re.ASCII)  # of a table or view, as a statement writes it
BUILD_TABLE = "build"  # derived from the other tables
DICTIONARY_TABLES = ("relations", "columns")  # they follow from the schema
CHECKSUM_LINE = re.compile(r"(?m)^([0-9a-f]{64})  ((?:[a-z]+/)?[A-Za-z0-9_][A-Za-z0-9_.-]*)$")


def list_table_files(tables: Iterable[str]) -> set[str]:
    """Return the files that hold these tables, which are named as in a statement."""
    return {write(name) for name in tables for write in (get_parquet_name, get_csv_name)}


def read_sql_name(file: str) -> str:
    """Return the table or view, as a statement names it, that a file such as `detail/facts.csv`
    holds.
    """
    return file.rpartition(".")[0].replace("/", ".")


def list_files(folder: Path) -> dict[str, Path]:
    """Return what a release holds, by its path in it: the folder `detail` is looked into, no other."""
    found: dict[str, Path] = {}
    for path in folder.iterdir():
        if path.name == DETAIL and path.is_dir() and not path.is_symlink():
            found |= {f"{DETAIL}/{each.name}": each for each in path.iterdir()}
        else:
            found[path.name] = path
    return found


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, empty without the file.

    Raises UnreadableReleaseError for anything else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableReleaseError(
            f"is not a JSON object: {get_first_line(error)}", place=str(path)
        ) from error


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS with every other file of the folder but its signature, sorted, as `sha256sum
    -c` reads it.
    """
    digests = {
        name: hash_file(path)
        for name, path in list_files(folder).items()
        if name not in (CHECKSUMS, SIGNATURE)
    }
    (folder / CHECKSUMS).write_bytes(_format_checksums(digests))


def read_checksums(path: Path) -> tuple[dict[str, str], bool]:
    """Return the digests by file name, and whether every byte is as `write_checksums` writes it."""
    data = path.read_bytes()
    digests = {
        name: digest
        for digest, name in CHECKSUM_LINE.findall(data.decode("utf-8", errors="replace"))
    }
    return digests, data == _format_checksums(digests)


def _format_checksums(digests: Mapping[str, str]) -> bytes:
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


# A relation of another schema than main has its schema in front of its name.
SQL_NAME = "if(schema_name = 'main', {0}, schema_name || '.' || {0})"
DEFINITIONS = f"""
    SELECT name, string_agg(definition, chr(10) ORDER BY definition)
    FROM (
        SELECT {SQL_NAME.format("view_name")} AS name, sql AS definition FROM duckdb_views()
        WHERE NOT internal
        UNION ALL
        SELECT {SQL_NAME.format("function_name")},
            concat_ws(' ', array_to_string(list_sort(parameters), ', '), macro_definition)
        FROM duckdb_functions() WHERE NOT internal
    )
    GROUP BY ALL ORDER BY ALL
"""
CATALOG = f"""
    SELECT 'schema' AS kind, schema_name AS name, comment AS text FROM duckdb_schemas()
    WHERE database_name = current_database()
    UNION ALL
    SELECT 'table', {SQL_NAME.format("table_name")}, concat_ws(' ', sql, comment)
    FROM duckdb_tables() WHERE NOT internal
    UNION ALL
    SELECT 'view', {SQL_NAME.format("view_name")}, concat_ws(' ', sql, comment)
    FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT 'macro', {SQL_NAME.format("function_name")},
        concat_ws(' ', parameters::VARCHAR, macro_definition, comment)
    FROM duckdb_functions() WHERE NOT internal
    UNION ALL
    SELECT 'column', {SQL_NAME.format("table_name")} || '.' || column_name,
        concat_ws(' ', column_index, data_type, column_default, comment)
    FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT 'sequence', sequence_name, sql FROM duckdb_sequences()
    UNION ALL SELECT 'index', index_name, sql FROM duckdb_indexes()
    UNION ALL SELECT 'type', type_name, logical_type FROM duckdb_types() WHERE NOT internal
    UNION ALL
    SELECT 'comment of the database', comment, '' FROM duckdb_databases()
    WHERE database_name = current_database() AND comment IS NOT NULL
    ORDER BY ALL
"""
QUOTED_OR_BLANK = re.compile(r""""([a-z_]+)"|('(?:[^']|'')*'|"(?:[^"]|"")*")|\s+""")


def open_database(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB file read-only, without access to anything else.

    Raises UnreadableReleaseError if it is damaged.

    It has one thread, so that views add up figures in one order.
    """
    try:
        return duckdb.connect(str(path), read_only=True, config={**ENGINE, **LOCKDOWN})
    except duckdb.Error as error:
        raise UnreadableReleaseError(
            f"cannot be opened: {get_first_line(error)}", place=str(path)
        ) from error


def read_definitions(path: Path) -> dict[str, str]:
    """Return the digests of the definitions in a file, none without the file."""
    if not path.exists():
        return {}
    with open_database(path) as connection:
        return hash_definitions(connection)


def hash_definitions(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return a digest of the SQL of each view and macro, the same for every version of DuckDB."""
    return {name: hash_sql(sql) for name, sql in connection.execute(DEFINITIONS).fetchall()}


def list_macros(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Return the names of the views that have parameters."""
    return {name for kind, name in list_catalog(connection) if kind == "macro"}


def list_catalog(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], str | None]:
    """Return all that a DuckDB file holds beside rows, by kind and name: definitions, keys, types
    and comments.
    """
    rows = connection.execute(CATALOG).fetchall()
    return {(kind, name): text for kind, name, text in rows}


def read_storage_version(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return the oldest DuckDB that reads the file, such as `v1.2.0+`, null if this DuckDB does not
    say.
    """
    query = (
        "SELECT tags['storage_version'] FROM duckdb_databases()"
        " WHERE database_name = current_database()"
    )
    ((version,),) = connection.execute(query).fetchall()
    return None if version is None else str(version)


def quote_identifier(name: str) -> str:
    """Return a name as SQL writes it, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def quote_sql_name(name: str) -> str:
    """Return a relation's name, which may have a schema in front, as a statement writes it."""
    return ".".join(map(quote_identifier, name.split(".", 1)))


def hash_sql(sql: str) -> str:
    """Return the sha256 of SQL without blanks outside of quotes and quotes of plain names.

    Versions of DuckDB print other blanks, and each quotes its own keywords, such as "source".
    """
    bare = QUOTED_OR_BLANK.sub(lambda match: match[1] or match[2] or "", sql)
    return hashlib.sha256(bare.encode()).hexdigest()


PAGES = ("README.md", "DICTIONARY.md", "LICENSE", "CHANGELOG.md", ENVIRONMENT)
REQUIRED = {RELEASE, PACKAGE, CROISSANT, CITATION, DATABASE, *PAGES}
UNREADABLE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(pa.ArrowException, duckdb.Error),
)


class Problem(NamedTuple):
    """Something wrong with a release, and the file or table that it was found in."""

    path: str
    message: str

    @property
    def line(self) -> str:
        """The problem as one line that is safe to print."""
        return escape_unprintable(f"{self.path}: {self.message}")


def collect(path: str, problems: Iterator[Problem]) -> list[Problem]:
    """Run checks; what cannot even be read is one more problem and ends them."""
    collected: list[Problem] = []
    try:
        collected.extend(problems)
    except IpuResultsError as error:
        collected.append(Problem(Path(error.place).name if error.place else path, error.message))
    except UNREADABLE as error:
        collected.append(
            Problem(path, f"cannot be checked: {type(error).__name__}: {get_first_line(error)}")
        )
    return collected


def check_files(folder: Path) -> list[Problem]:
    """List missing, extra and changed files, by SHA256SUMS."""
    finish_interrupted_publish(folder)
    if not folder.is_dir():
        raise UnreadableReleaseError("no such folder", place=str(folder))
    return collect(CHECKSUMS, _compare_checksums(folder))


def _compare_checksums(folder: Path) -> Iterator[Problem]:
    path = folder / CHECKSUMS
    if not _is_plain_file(path):
        yield Problem(CHECKSUMS, "is not a plain file" if os.path.lexists(path) else "is missing")
        return
    digests, is_canonical = read_checksums(path)
    if not is_canonical:
        yield Problem(
            CHECKSUMS,
            "is not as publish writes it: one line a file, sorted, two blanks after the sha256",
        )
    paths = list_files(folder)
    del paths[CHECKSUMS]
    for name in sorted(REQUIRED - digests.keys()):
        yield Problem(name, f"is not listed in {CHECKSUMS}")
    for name, digest in digests.items():
        if name not in paths:
            yield Problem(name, "is missing")
        elif not _is_plain_file(paths[name]):
            yield Problem(name, "is not a plain file")
        elif hash_file(paths[name]) != digest:
            yield Problem(name, f"sha256 differs from {CHECKSUMS}")
    for name in sorted(paths.keys() - digests.keys()):
        if name != SIGNATURE or not _is_plain_file(paths[name]):
            yield Problem(escape_unprintable(name), "does not belong to the release")


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


RECOVERY_WAIT_S = 10.0


def get_work_folder(out: Path) -> Path:
    """Return the hidden folder next to a release in which the next one is prepared."""
    return out.parent / f".{out.name}.publishing"


@contextmanager
def replace_release(out: Path, wait_s: float) -> Iterator[Path]:
    """Yield an empty folder that becomes `out` when the block ends without an error.

    Raises ReleaseError if `out` holds anything but a release, or another process publishes there
    longer than `wait_s`.
    """
    out = Path(os.path.realpath(out))
    work = get_work_folder(out)
    new = work / "new"
    _assert_release(out)
    with _lock(out, wait_s):
        _recover(out)
        names = _assert_release(out)
        if names and (
            foreign := sorted(names - {CHECKSUMS, SIGNATURE, *read_checksums(out / CHECKSUMS)[0]})
        ):
            raise ReleaseError(
                f"holds {foreign[0]}, which does not belong to the release there", place=str(out)
            )
        try:
            (new / DETAIL).mkdir(parents=True)
            yield new
            for path in (*list_files(new).values(), new / DETAIL, new):
                sync_to_disk(path)
            if out.exists():
                os.replace(out, work / "old")
            os.replace(new, out)
        except (
            OSError,
            duckdb.Error,
        ) as error:  # DuckDB reports a full disk as an error of its own
            raise ReleaseError(
                f"could not be written, the old content stays: {error}", place=str(out)
            ) from error
        finally:
            _recover(out)
        sync_to_disk(out.parent)


def finish_interrupted_publish(out: Path) -> None:
    """Put the old release back if a publish was killed between its two renames.

    Raises ReleaseError if that is not possible, or if another process is at work there for too
    long.
    """
    out = Path(os.path.realpath(out))
    if _is_interrupted(out):
        with _lock(out, RECOVERY_WAIT_S):
            _recover(out)


def _assert_release(out: Path) -> set[str]:
    """Raise ReleaseError unless the folder is absent, empty or a release; return the names of its
    files.

    It is safe while another process publishes there.
    """
    try:
        names = {*list_files(out)}
    except FileNotFoundError:
        return set()
    except NotADirectoryError as error:
        raise ReleaseError("is not a folder", place=str(out)) from error
    if names and not {RELEASE, CHECKSUMS} <= names:
        raise ReleaseError(
            "is not empty and not a release; choose another folder with --out", place=str(out)
        )
    return names


@contextmanager
def _lock(out: Path, wait_s: float) -> Iterator[None]:
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_folder(get_work_folder(out), wait_s))
        except WarehouseError as error:
            raise ReleaseError(error.message, place=str(out)) from error
        yield


def _is_interrupted(out: Path) -> bool:
    """Return whether the old release is in the work folder and nothing is in its place."""
    return (get_work_folder(out) / "old").exists() and not (out.exists() and any(out.iterdir()))


def _recover(out: Path) -> None:
    """Put an old release back that a failure or a kill left out of its place, and remove all other
    remains.
    """
    work = get_work_folder(out)
    if _is_interrupted(out):
        try:
            os.replace(work / "old", out)
        except OSError as error:
            message = (
                f"the old release is in {work / 'old'}, the next publish puts it back: {error}"
            )
            raise ReleaseError(message, place=str(out)) from error
    for name in ("new", "old"):
        shutil.rmtree(work / name, ignore_errors=True)
