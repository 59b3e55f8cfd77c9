"""Write the texts of a release: README.md, DICTIONARY.md, descriptors, citation, licence, changelog
and environment.

The same code and the same tables give the same bytes. So what a release of this code holds is
checked by writing it again and comparing bytes. Of a release of other code this is left out, and
`list_unchecked` says so.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.errors import ReleaseError
from ipu_results.kit.files import (
    CHECKOUT,
    DISTRIBUTION,
    PACKAGE,
    SCHEMA,
    hash_file,
    read_version,
)
from ipu_results.kit.text import (
    escape_markdown,
    escape_unprintable,
    format_code,
    format_json,
    format_markdown_table,
)
from ipu_results.record.check.rules import RULES
from ipu_results.record.store.files import BUILD_ID, DATABASE, get_csv_name, get_parquet_name
from ipu_results.record.store.query import STORAGE_VERSION, write_duckdb
from ipu_results.record.store.tables import count_formulas, write_csv
from ipu_results.release import files
from ipu_results.release.descriptors import FILE_TABLES, format_croissant, format_package
from ipu_results.release.diff import KNOWN_TABLES
from ipu_results.release.files import CITATION, RELEASE, Problem, read_json
from ipu_results.schema import (
    TABLES,
    VIEWS,
    Table,
    View,
    describe_relation,
    list_dictionary_rows,
    qualify,
)
from ipu_results.schema.frames import PANDAS_METADATA, arrow_schema, file_schema

# By the name in a release: the file of the repository that it is made from.
REPOSITORY_TEXTS = {CITATION: CITATION, "LICENSE": "LICENSE-DATA", "CHANGELOG.md": "CHANGELOG.md"}
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
DEFAULT = {"results": "  default: true\n"}  # the table that `datasets` loads where none is named
TEMPLATES = Path(__file__).with_name("templates")
CODE = ("check", "ground", "release", "schema", "store")
CODE_SUFFIXES = frozenset({".py", ".md", ".json", ".html", ".toml", ".sql"})
RELEASE_STATS = {
    "origins": "SELECT origin, task, count(*) FROM results GROUP BY ALL ORDER BY ALL",
    "documents": "SELECT count(*) FROM documents",
    "source_rows": "SELECT status, count(*) FROM source_rows GROUP BY ALL ORDER BY ALL",
    "flags": (
        "SELECT rule, severity, count(*), count(DISTINCT result_id) FROM flags GROUP BY ALL"
        " ORDER BY ALL"
    ),
    "quarantine": "SELECT reason, count(*) FROM quarantine GROUP BY ALL ORDER BY ALL",
    "verdicts": "SELECT verdict, count(*) FROM claims GROUP BY ALL ORDER BY 2 DESC, 1",
    "licences": (
        "SELECT document_id, title, publisher, licence, url FROM documents ORDER BY document_id"
    ),
    "unusable": "SELECT count(*) FROM results WHERE NOT usable",
    "relations": "SELECT schema_name, table_name, type, description FROM relations",
    "columns": "SELECT table_name, column_name, type, unit, description FROM columns",
}

ReleaseStats = dict[str, list[tuple[Any, ...]]]


def format_files(
    release: Mapping[str, Any],
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, pa.Table],
    folder: Path,
) -> dict[str, str]:
    """Return each text file but the tables and checksums, by name.

    `release` is the content of release.json, `connection` reads the DuckDB file. Raises
    ReleaseError without the files of the repository: a wheel cannot publish.
    """
    return {
        **format_texts(release["version"], release["published_on"]),
        **format_pages(release, connection, tables, folder),
        files.ENVIRONMENT: format_environment(),
    }


def format_texts(release_version: str, published_on: str) -> dict[str, str]:
    """Return citation, licence of the data and changelog by name, the citation with version and
    date of the release.
    """
    try:
        texts = {
            name: (CHECKOUT / source).read_text(encoding="utf-8")
            for name, source in REPOSITORY_TEXTS.items()
        }
    except OSError as error:
        place = Path(error.filename).name
        raise ReleaseError(
            f"cannot be read, publish from a clone: {error.strerror}", place=place
        ) from error
    citation = re.sub(r"(?m)^date-released:.*\n", "", texts[CITATION])  # that of the release before
    stated = f"version: {release_version}\ndate-released: {published_on}"
    texts[CITATION] = re.sub(r"(?m)^version:.*$", stated, citation)
    return texts


def format_pages(
    release: Mapping[str, Any],
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, pa.Table],
    folder: Path,
) -> dict[str, str]:
    """Return the files that depend on the tables and on the code alone, by name."""
    stats = {name: connection.execute(sql).fetchall() for name, sql in RELEASE_STATS.items()}
    sources = [(title, url) for _, title, _, _, url in stats["licences"] if url]
    return {
        "README.md": format_card(release, stats, sum(map(count_formulas, tables.values()))),
        "DICTIONARY.md": format_dictionary(release, stats),
        files.PACKAGE: format_package(release, sources, folder),
        files.CROISSANT: format_croissant(release, folder),
        RELEASE: format_json(release) + "\n",
    }


def format_environment() -> str:
    """Return Python, the kind of system and the installed packages as JSON; nothing that names a
    machine or user.
    """
    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from a checkout that was never installed
        requirements = ["duckdb", "pandas", "pyarrow"]
    names = [
        match[0]
        for line in requirements
        if "extra ==" not in line and (match := REQUIREMENT_NAME.match(line))
    ]
    packages: dict[str, str | None] = dict.fromkeys((DISTRIBUTION, *sorted(names)))
    for name in packages:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    environment = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": packages,
    }
    return format_json(environment) + "\n"


def describe_generator() -> dict[str, str | None]:
    """Return the version of this package, and digests of its code and of the repository's texts
    (null in a wheel).
    """
    texts = [CHECKOUT / name for name in REPOSITORY_TEXTS.values()]
    return {
        "version": read_version(),
        "code_sha256": _digest(_list_code()),
        "texts_sha256": (
            _digest((path.name, path) for path in texts) if all(map(Path.is_file, texts)) else None
        ),
    }


def _list_code() -> Iterator[tuple[str, Path]]:
    """Yield name and path of every file that decides what a release holds."""
    for folder, root in (*((PACKAGE / name, PACKAGE) for name in CODE), (SCHEMA, SCHEMA)):
        for path in sorted(folder.rglob("*")):
            if path.suffix in CODE_SUFFIXES and path.is_file():
                yield path.relative_to(root).as_posix(), path


def _digest(paths: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in paths:
        digest.update(f"{name} {hash_file(path)}\n".encode())
    return digest.hexdigest()


def format_card(release: Mapping[str, Any], stats: ReleaseStats, formulas: int) -> str:
    """Return README.md; `release` is the content of release.json, `formulas` how many texts CSV
    marks.
    """
    descriptions = {qualify(*names): text for *names, _, text in stats["relations"]}
    tables, views = (
        [
            (format_code(name), entry["rows"], descriptions.get(name, ""))
            for name, entry in release[key].items()
        ]
        for key in ("tables", "view_files")
    )
    rows = {
        name: entry["rows"]
        for key in ("tables", "view_files")
        for name, entry in release[key].items()
    }
    empty = ", ".join(format_code(name) for name in rows if not rows[name])
    titles = {rule.id: rule.title for rule in RULES}
    return (
        (TEMPLATES / "card.md")
        .read_text(encoding="utf-8")
        .format(
            # of `datasets.load_dataset`, which needs rows
            configurations="".join(
                f"- config_name: {name}\n{DEFAULT.get(name, '')}  data_files:"
                f" {get_parquet_name(name)}\n"
                for name in filter(rows.get, rows)
            ),
            empty=(
                f"`datasets` loads no table without rows, so it has no configuration of {empty}.\n"
                if empty
                else ""
            ),
            version=release["version"],
            published_on=release["published_on"],
            build_id=release["build_id"][:12],
            results=sum(count for *_, count in stats["origins"]),
            unusable=stats["unusable"][0][0],
            documents=stats["documents"][0][0],
            tables=format_markdown_table(("table", "rows", "one row is"), tables),
            views=format_markdown_table(("view", "rows", "what it shows"), views),
            origins=format_markdown_table(("origin", "task", "results"), stats["origins"]),
            source_rows=format_markdown_table(("source rows", "count"), stats["source_rows"]),
            flags=format_markdown_table(
                ("rule", "what it finds", "severity", "flags", "results"),
                ((rule, titles.get(rule, ""), *counts) for rule, *counts in stats["flags"]),
            ),
            quarantine=_format_quarantine(stats),
            verdicts=format_markdown_table(("verdict", "claims"), stats["verdicts"]),
            formulas=_format_formulas(formulas),
            corrections=_format_corrections(release["corrections"]),
            licences=_format_licences(stats),
        )
    )


def _format_quarantine(stats: ReleaseStats) -> str:
    if rows := stats["quarantine"]:
        total = sum(count for _, count in rows)
        return f"{total} rows were not accepted.\n\n" + format_markdown_table(
            ("reason", "rows"), rows
        )
    return "no source row was refused."


def _format_formulas(count: int) -> str:
    if not count:
        return (
            "No text begins with `=`, `+`, `-`, `@` or a tab, so no spreadsheet takes one for a"
            " formula."
        )
    return (
        f"{count:,} texts begin with `=`, `+`, `-`, `@` or a tab, which a spreadsheet may take for"
        " a formula. In the CSV files they have an apostrophe in front; figures and the other"
        " formats do not."
    )


def _format_corrections(corrections: Sequence[Mapping[str, Any]]) -> str:
    if not corrections:
        return ""
    keys = (
        ", ".join(f"{name} = {value}" for name, value in entry["key"].items())
        for entry in corrections
    )
    rows = (
        (format_code(entry["table"]), key or "the whole table", entry["rows"], entry["reason"])
        for key, entry in zip(keys, corrections, strict=True)
    )
    table = format_markdown_table(("table", "key", "rows", "reason"), rows)
    return f"## Rows removed since the previous release\n\n{table}\n"


def _format_licences(stats: ReleaseStats) -> str:
    documents: dict[str, list[str]] = {}
    for document_id, _, publisher, licence, _ in stats["licences"]:
        documents.setdefault(licence, []).append(f"{document_id} ({publisher})")
    lines = (
        (escape_markdown(licence), escape_markdown("; ".join(names)))
        for licence, names in documents.items()
    )
    return "".join(f"- {licence}: {names}.\n" for licence, names in lines)


def format_dictionary(release: Mapping[str, Any], stats: ReleaseStats) -> str:
    """Return DICTIONARY.md: every table, view and macro with every column and its unit."""
    counts = {**release["tables"], **release["view_files"]}
    parts = [
        (TEMPLATES / "dictionary.md").read_text(encoding="utf-8").format(version=release["version"])
    ]
    columns = defaultdict(list)
    for name, *column in stats["columns"]:
        columns[name].append(column)
    for schema, name, kind, description in stats["relations"]:
        sql_name = qualify(schema, name)
        parts.append(f"## {kind.capitalize()} `{sql_name}`{_format_rows(counts.get(sql_name))}\n")
        parts.append(f"{escape_markdown(description)}\n")
        parts += _format_columns(sql_name, columns[name])
    return "\n".join(parts)


def _format_rows(counts: Mapping[str, Any] | None) -> str:
    return f", {counts['rows']:,} rows" if counts else ""


def _format_columns(sql_name: str, columns: Sequence[Sequence[Any]]) -> Iterator[str]:
    if table := KNOWN_TABLES.get(sql_name):
        yield f"Key: {', '.join(map(format_code, table.key))}.\n"
        if links := [
            f"`{column.name}` → `{column.references}`"
            for column in table.columns
            if column.references
        ]:
            yield f"References: {', '.join(links)}.\n"
    body = ((format_code(column), *values) for column, *values in columns)
    yield format_markdown_table(("column", "type", "unit", "what it holds"), body)


SIGN_HINT = "only a signature of SHA256SUMS shows that no one else rewrote the whole release"


def list_unchecked(folder: Path, release: Mapping[str, Any]) -> list[str]:
    """Describe what a verification could not find, one line each."""
    made_by = release.get("generator")
    here = describe_generator()
    stated = made_by if isinstance(made_by, dict) else {}
    is_own = is_own_code(release)
    lines = []
    if not is_own:
        version = stated.get("version") or "an earlier version"
        lines.append(
            f"not checked: {version} of ipu-results or changed code made this release,"
            f" {here['version']} is here, so texts, descriptors and definitions were not compared"
        )
    if is_own and not _has_own_texts(release):
        lines.append(
            f"not checked: {CITATION}, LICENSE and CHANGELOG.md are not those of this clone"
        )
    if is_own and not has_own_duckdb(folder):
        versions = (
            f"DuckDB {_read_duckdb_version(folder)} wrote this release, {duckdb.__version__} is"
            " here"
        )
        lines.append(
            f"not checked: {versions}, so the definitions in {DATABASE} and the files of views were"
            " not compared"
        )
    if (folder / files.SIGNATURE).exists():
        lines.append(f"not checked: {files.SIGNATURE}; check it with: ssh-keygen -Y verify")
    else:
        lines.append(f"not signed: {SIGN_HINT}")
    return lines


def is_own_code(release: Mapping[str, Any]) -> bool:
    """Return whether the code that runs made the release, as far as release.json can be believed."""
    stated = release.get("generator")
    here = describe_generator()
    return isinstance(stated, dict) and all(
        stated.get(key) == here[key] for key in ("version", "code_sha256")
    )


def _has_own_texts(release: Mapping[str, Any]) -> bool:
    digest = describe_generator()["texts_sha256"]
    return digest is not None and release["generator"].get("texts_sha256") == digest


def has_own_duckdb(folder: Path) -> bool:
    """Return whether the DuckDB that is here wrote the release: another may store the SQL of a view
    differently.
    """
    return bool(_read_duckdb_version(folder) == duckdb.__version__)


def _read_duckdb_version(folder: Path) -> Any:
    return read_json(folder / files.ENVIRONMENT).get("packages", {}).get("duckdb")


def check_texts(
    folder: Path,
    release: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    connection: duckdb.DuckDBPyConnection,
) -> Iterator[Problem]:
    """Yield each text file whose bytes are not those that this code writes for these tables."""
    texts = format_pages(release, connection, tables, folder)
    if _has_own_texts(release):
        texts |= format_texts(release["version"], release["published_on"])
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
    stated = files.list_catalog(connection)
    expected = _list_own_catalog()
    for kind, name in sorted(stated.keys() | expected.keys()):
        if stated.get((kind, name), "") != expected.get((kind, name), ""):
            what = escape_unprintable(f"{kind} {name}")
            yield Problem(DATABASE, f"{what} is not as publish writes it")
    version = files.read_storage_version(connection)
    if version is not None and not version.startswith(STORAGE_VERSION):
        yield Problem(DATABASE, f"needs DuckDB {version}, not {STORAGE_VERSION}")


def _list_own_catalog() -> dict[tuple[str, str], str | None]:
    """Return the definitions that this code writes, as its DuckDB stores them in a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE
        write_duckdb(path, {table.sql_name: arrow_schema(table).empty_table() for table in TABLES})
        with files.open_database(path) as connection:
            return files.list_catalog(connection)


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
    for name in files.DICTIONARY_TABLES:
        if tables[name].to_pylist() != dictionary[name]:
            yield Problem(name, "the data dictionary is not that of this code")


def without_versions(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return the metadata of a Parquet file without the versions of the packages that wrote it."""
    texts = {key.decode(): text.decode(errors="replace") for key, text in metadata.items()}
    pandas = json.loads(texts.pop(PANDAS_METADATA.decode(), "{}"))
    for name in ("pandas_version", "creator"):
        pandas.pop(name, None)
    return {**texts, "pandas": pandas}
