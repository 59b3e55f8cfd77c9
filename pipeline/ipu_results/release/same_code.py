"""Compare a release with what this code writes for its tables.

What this code made is written again and compared byte for byte. Of a release of other code this is
left out, and `list_limitations` says so.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.kit.text import escape_unprintable
from ipu_results.record.store.files import BUILD_ID, DATABASE, get_csv_name, get_parquet_name
from ipu_results.record.store.query import STORAGE_VERSION, write_duckdb
from ipu_results.record.store.tables import write_csv
from ipu_results.release.database import list_catalog, open_database, read_storage_version
from ipu_results.release.descriptors import FILE_TABLES
from ipu_results.release.files import (
    CITATION,
    DICTIONARY_TABLES,
    ENVIRONMENT,
    RELEASE,
    SIGNATURE,
    ReleaseRecord,
    read_json,
    read_release,
)
from ipu_results.release.problems import Problem
from ipu_results.release.texts import describe_generator, format_pages, format_texts
from ipu_results.schema import TABLES, VIEWS, Table, View, describe_relation, list_dictionary_rows
from ipu_results.schema.frames import PANDAS_METADATA, arrow_schema, file_schema

SIGN_HINT = "only a signature of SHA256SUMS shows that no one else rewrote the whole release"


def list_limitations(folder: Path) -> list[str]:
    """Describe what a verification of this release could not find, one line each."""
    release = read_release(folder)
    here = describe_generator()
    lines = []
    if not is_own_code(release):
        stated = release.get("generator")
        version = stated.get("version") if isinstance(stated, dict) else None
        lines.append(
            f"not checked: {version or 'an earlier version'} of ipu-results or changed code made"
            f" this release, {here['version']} is here, so texts, descriptors and definitions were"
            " not compared"
        )
    else:
        if not _has_own_texts(release):
            lines.append(
                f"not checked: {CITATION}, LICENSE and CHANGELOG.md are not those of this clone"
            )
        if not has_own_duckdb(folder):
            lines.append(
                f"not checked: DuckDB {_read_duckdb_version(folder)} wrote this release,"
                f" {duckdb.__version__} is here, so the definitions in {DATABASE} and the files of"
                " views were not compared"
            )
    if (folder / SIGNATURE).exists():
        lines.append(f"not checked: {SIGNATURE}; check it with: ssh-keygen -Y verify")
    else:
        lines.append(f"not signed: {SIGN_HINT}")
    return lines


def is_own_code(release: ReleaseRecord) -> bool:
    """Return whether the code that runs made the release, as far as release.json can be believed."""
    stated = release.get("generator")
    here = describe_generator()
    if not isinstance(stated, dict):
        return False
    return all(stated.get(key) == here[key] for key in ("version", "code_sha256"))


def _has_own_texts(release: ReleaseRecord) -> bool:
    digest = describe_generator()["texts_sha256"]
    return digest is not None and release["generator"].get("texts_sha256") == digest


def has_own_duckdb(folder: Path) -> bool:
    """Return whether the DuckDB that is here wrote the release: another may store the SQL of a view
    differently.
    """
    return bool(_read_duckdb_version(folder) == duckdb.__version__)


def _read_duckdb_version(folder: Path) -> Any:
    return read_json(folder / ENVIRONMENT).get("packages", {}).get("duckdb")


def check_texts(
    folder: Path,
    release: ReleaseRecord,
    tables: Mapping[str, pa.Table],
    connection: duckdb.DuckDBPyConnection,
) -> Iterator[Problem]:
    """Yield each text file whose bytes are not those that this code writes for these tables."""
    texts = format_pages(release, connection, tables, folder)
    if _has_own_texts(release):
        texts |= format_texts(release)
    for name, text in texts.items():
        if (folder / name).read_bytes() != text.encode():
            yield Problem(name, "is not as publish writes it for these tables")
    for name, rows in tables.items():
        buffer = io.BytesIO()
        write_csv(rows, buffer)
        if (folder / get_csv_name(name)).read_bytes() != buffer.getbuffer():
            yield Problem(get_csv_name(name), "is not as publish writes it for these rows")


def check_catalog(connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    """Yield what the DuckDB file defines otherwise than this code, with the same DuckDB."""
    stated = list_catalog(connection)
    expected = _list_own_catalog()
    for kind, name in sorted(stated.keys() | expected.keys()):
        if stated.get((kind, name), "") != expected.get((kind, name), ""):
            what = escape_unprintable(f"{kind} {name}")
            yield Problem(DATABASE, f"{what} is not as publish writes it")
    version = read_storage_version(connection)
    if version is not None and not version.startswith(STORAGE_VERSION):
        yield Problem(DATABASE, f"needs DuckDB {version}, not {STORAGE_VERSION}")


def _list_own_catalog() -> dict[tuple[str, str], str | None]:
    """Return the definitions that this code writes, as its DuckDB stores them in a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE
        write_duckdb(path, {table.sql_name: arrow_schema(table).empty_table() for table in TABLES})
        with open_database(path) as connection:
            return list_catalog(connection)


def check_schemas(tables: Mapping[str, pa.Table]) -> Iterator[Problem]:
    """Yield each table whose Parquet file has other columns, texts or units than this code
    defines, and a data dictionary of others.
    """
    for table in FILE_TABLES:
        if table.sql_name not in tables:
            yield Problem(RELEASE, f"does not list {table.sql_name}")
            continue
        schema = tables[table.sql_name].schema
        expected = file_schema(table)
        stated = {key: text for key, text in schema.metadata.items() if key != BUILD_ID.encode()}
        same_metadata = without_versions(stated) == without_versions(expected.metadata)
        if not same_metadata or not schema.equals(expected.with_metadata(schema.metadata), True):
            path = get_parquet_name(table.sql_name)
            yield Problem(path, "columns or their descriptions are not those of this code")
    relations: list[Table | View] = [*TABLES, *VIEWS]
    dictionary = {
        "relations": list(map(describe_relation, relations)),
        "columns": [row for relation in relations for row in list_dictionary_rows(relation)],
    }
    for name in DICTIONARY_TABLES:
        if tables[name].to_pylist() != dictionary[name]:
            yield Problem(name, "the data dictionary is not that of this code")


def without_versions(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return the metadata of a Parquet file without the versions of the packages that wrote it."""
    texts = {key.decode(): text.decode(errors="replace") for key, text in metadata.items()}
    pandas = json.loads(texts.pop(PANDAS_METADATA.decode(), "{}"))
    for name in ("pandas_version", "creator"):
        pandas.pop(name, None)
    return {**texts, "pandas": pandas}
