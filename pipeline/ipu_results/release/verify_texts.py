"""Check what only the code that made a release knows: the bytes of its text files, its views and its dictionary.

If other code made it, these checks are left out, and `list_unchecked` says so.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import msgspec
import pyarrow as pa

from ipu_results.ground.text import format_json
from ipu_results.release import files
from ipu_results.release.card import describe_generator, format_environment, format_pages, format_texts
from ipu_results.release.files import CITATION, RELEASE
from ipu_results.release.folder import Problem
from ipu_results.release.snapshot import read_json
from ipu_results.schema import TABLES, VIEWS, Table, View, dictionary_rows
from ipu_results.schema.frames import arrow_schema
from ipu_results.store.duckdb_file import STORAGE_VERSION, write_duckdb
from ipu_results.store.files import DATABASE
from ipu_results.store.tables import write_csv

EXPECTED_MACRO = "macro_of_this_code"
ENVIRONMENT_VALUE = re.compile(r"[\w.+-]+")
SIGN_HINT = "only a signature of SHA256SUMS shows that no one else rewrote the whole release"


def list_unchecked(folder: Path, release: Mapping[str, Any]) -> list[str]:
    """Describe what a verification could not find, one line each."""
    made_by, here = release.get("generator"), describe_generator()
    stated = made_by if isinstance(made_by, dict) else {}
    is_own = is_own_code(release)
    lines = []
    if not is_own:
        version = stated.get("version") or "an earlier version"
        lines.append(
            f"not checked: {version} of ipu-results or changed code made this release, {here['version']} is here, so "
            "the bytes of text files were not compared"
        )
    if is_own and not _has_own_texts(release):
        lines.append(f"not checked: {CITATION}, LICENSE and CHANGELOG.md are not those of this clone")
    if is_own and not has_own_duckdb(folder):
        versions = f"DuckDB {_read_duckdb_version(folder)} wrote this release, {duckdb.__version__} is here"
        lines.append(f"not checked: {versions}, so the SQL of views and their files were compared with {RELEASE} alone")
    if (folder / files.SIGNATURE).exists():
        lines.append(f"not checked: {files.SIGNATURE}; check it with: ssh-keygen -Y verify")
    else:
        lines.append(f"not signed: {SIGN_HINT}")
    return lines


def is_own_code(release: Mapping[str, Any]) -> bool:
    """Return whether the code that runs made the release, as far as release.json can be believed."""
    stated, here = release.get("generator"), describe_generator()
    return isinstance(stated, dict) and all(stated.get(key) == here[key] for key in ("version", "code_sha256"))


def _has_own_texts(release: Mapping[str, Any]) -> bool:
    digest = describe_generator()["texts_sha256"]
    return digest is not None and release["generator"].get("texts_sha256") == digest


def has_own_duckdb(folder: Path) -> bool:
    """Return whether the DuckDB that is here wrote the release: another may store the SQL of a view differently."""
    return bool(_read_duckdb_version(folder) == duckdb.__version__)


def _read_duckdb_version(folder: Path) -> Any:
    return read_json(folder / files.ENVIRONMENT).get("packages", {}).get("duckdb")


def check_environment(folder: Path) -> Iterator[Problem]:
    """Yield whether environment.json has another form than `publish` writes. Its values cannot be checked."""
    data = (folder / files.ENVIRONMENT).read_bytes()
    stated, expected = msgspec.json.decode(data), msgspec.json.decode(format_environment())
    values = [value for name, value in stated.items() if name != "packages"] + list(stated["packages"].values())
    is_canonical = data == f"{format_json(stated)}\n".encode()
    are_texts = all(value is None or ENVIRONMENT_VALUE.fullmatch(value) for value in values)
    if list(stated) != list(expected) or not is_canonical or not are_texts:
        yield Problem(files.ENVIRONMENT, "is not as publish writes it")


def check_texts(
    folder: Path, release: Mapping[str, Any], tables: Mapping[str, pa.Table], connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    """Yield each text file whose bytes are not those that this code writes for these tables."""
    texts = format_pages(release, files.query_release_stats(connection), tables, folder)
    texts[RELEASE] = format_json(release) + "\n"
    if _has_own_texts(release):
        texts |= format_texts(release["version"], release["published_on"])
    for name, text in texts.items():
        if (folder / name).read_bytes() != text.encode():
            yield Problem(name, "is not as publish writes it for these tables")
    for name, rows in tables.items():
        buffer = io.BytesIO()
        write_csv(rows, buffer)
        if (folder / f"{name}.csv").read_bytes() != buffer.getbuffer():
            yield Problem(f"{name}.csv", "is not as publish writes it for these rows")


def check_definitions(
    folder: Path, release: Mapping[str, Any], dictionary: pa.Table, connection: duckdb.DuckDBPyConnection
) -> Iterator[Problem]:
    """Yield each view, macro and row of the data dictionary that is not that of this code."""
    relations: list[Table | View] = [*TABLES, *VIEWS]
    if dictionary.to_pylist() != [row for relation in relations for row in dictionary_rows(relation)]:
        yield Problem(files.DICTIONARY_TABLE, "the data dictionary is not that of this code")
    expected = _hash_own_definitions() if has_own_duckdb(folder) else release["views"]
    for name in sorted(expected.keys() | release["views"].keys()):
        if expected.get(name) != release["views"].get(name):
            yield Problem(RELEASE, f"definition of {name} is not that of this code")
    for view in VIEWS:
        if view.parameters and not _has_same_defaults(connection, view.name, view.sql, view.parameters):
            yield Problem(DATABASE, f"defaults of {view.name} are not those of this code")
    version = files.read_storage_version(connection)
    if version is not None and not version.startswith(STORAGE_VERSION):
        yield Problem(DATABASE, f"needs DuckDB {version}, not {STORAGE_VERSION}")


def _hash_own_definitions() -> dict[str, str]:
    """Return the digests of the views and macros that this code writes, as its DuckDB stores them in a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE
        write_duckdb(path, {table.name: arrow_schema(table).empty_table() for table in TABLES})
        return files.read_definitions(path)


def _has_same_defaults(connection: duckdb.DuckDBPyConnection, name: str, sql: str, parameters: Any) -> bool:
    """Return whether a macro gives the same rows without arguments: DuckDB does not show its defaults."""
    defaults = ", ".join(f"{parameter} := {default}" for parameter, default in parameters)
    connection.execute(f"CREATE TEMP MACRO {EXPECTED_MACRO}({defaults}) AS TABLE {sql}")
    try:
        rows, expected = (
            Counter(connection.execute(f"FROM {macro}()").fetchall()) for macro in (name, f"temp.{EXPECTED_MACRO}")
        )
    finally:
        connection.execute(f"DROP MACRO TABLE temp.{EXPECTED_MACRO}")
    return rows == expected
