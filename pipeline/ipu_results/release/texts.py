"""Write the texts of a release: README.md, DICTIONARY.md, descriptors, citation, licence, changelog
and environment.

The same code and the same tables give the same bytes.
"""

from __future__ import annotations

import platform
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import duckdb
import pyarrow as pa

from ipu_results.errors import ReleaseError
from ipu_results.kit.files import CHECKOUT, DISTRIBUTION
from ipu_results.kit.text import (
    escape_markdown,
    format_code,
    format_json,
    format_markdown_table,
)
from ipu_results.record.check.rules import RULES
from ipu_results.record.store.files import get_parquet_name
from ipu_results.record.store.tables import count_formulas
from ipu_results.release import files
from ipu_results.release.descriptors import format_croissant, format_package
from ipu_results.release.files import CITATION, RELEASE, Counts, ReleaseRecord, get_counts
from ipu_results.release.snapshot import KNOWN_TABLES
from ipu_results.schema import qualify

# By the name in a release: the file of the repository that it is made from.
REPOSITORY_TEXTS = {CITATION: CITATION, "LICENSE": "LICENSE-DATA", "CHANGELOG.md": "CHANGELOG.md"}
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
DEFAULT_TABLE = "results"  # that `datasets` loads where none is named
TEMPLATES = Path(__file__).with_name("templates")
RELATIONS = "SELECT schema_name, table_name, type, description FROM relations"
COLUMNS = "SELECT table_name, column_name, type, unit, description FROM columns"
SOURCES = "SELECT title, url FROM documents WHERE url <> '' ORDER BY document_id"
ORIGINS = "SELECT origin, task, count(*) FROM results GROUP BY ALL ORDER BY ALL"
SOURCE_ROWS = "SELECT status, count(*) FROM source_rows GROUP BY ALL ORDER BY ALL"
VERDICTS = "SELECT verdict, count(*) FROM claims GROUP BY ALL ORDER BY 2 DESC, 1"
REASONS = "SELECT reason, count(*) FROM quarantine GROUP BY ALL ORDER BY ALL"
FLAGS = """
    SELECT rule, severity, count(*), count(DISTINCT result_id) FROM flags
    GROUP BY ALL ORDER BY ALL
"""
LICENCES = """
    SELECT licence, string_agg(document, '; ' ORDER BY document_id)
    FROM (
        SELECT licence, document_id, document_id || ' (' || publisher || ')' AS document
        FROM documents
    )
    GROUP BY licence ORDER BY min(document_id)
"""


def format_files(
    release: ReleaseRecord,
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, pa.Table],
    folder: Path,
) -> dict[str, str]:
    """Return each text file but the tables and checksums, by name.

    `connection` reads the DuckDB file. Raises ReleaseError without the files of the repository: a
    wheel cannot publish.
    """
    sources = connection.execute(SOURCES).fetchall()
    # texts that a spreadsheet takes for formulas
    formulas = sum(map(count_formulas, tables.values()))
    return {
        **_read_repository_texts(release),
        "README.md": _format_card(release, connection, formulas),
        "DICTIONARY.md": _format_dictionary(release, connection),
        files.PACKAGE: format_package(release, sources, folder),
        files.CROISSANT: format_croissant(release, folder),
        files.ENVIRONMENT: _format_environment(),
        RELEASE: format_json(release) + "\n",
    }


def _read_repository_texts(release: ReleaseRecord) -> dict[str, str]:
    """Return citation, licence of the data and changelog by name, the citation with version and
    date of the release.
    """
    texts = {}
    try:
        for name, source in REPOSITORY_TEXTS.items():
            texts[name] = (CHECKOUT / source).read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot be read, publish from a clone: {error.strerror}"
        raise ReleaseError(message, place=Path(error.filename).name) from error
    # the repository has version and date of the release before; the new ones replace both
    without_date = re.sub(r"(?m)^date-released:.*\n", "", texts[CITATION])
    lines = f"version: {release['version']}\ndate-released: {release['published_on']}"
    texts[CITATION] = re.sub(r"(?m)^version:.*$", lines, without_date)
    return texts


def _format_environment() -> str:
    """Return Python, the kind of system and the installed packages as JSON; nothing that names a
    machine or user.
    """
    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        # a checkout that was never installed
        requirements = ["duckdb", "pandas", "pyarrow"]
    names = []
    for requirement in requirements:
        # what only an extra needs has no part in a release
        is_of_extra = "extra ==" in requirement
        match = REQUIREMENT_NAME.match(requirement)
        if match and not is_of_extra:
            names.append(match[0])
    packages: dict[str, str | None] = {}
    for name in [DISTRIBUTION, *sorted(names)]:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    environment = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": packages,
    }
    return format_json(environment) + "\n"


def _format_card(
    release: ReleaseRecord, connection: duckdb.DuckDBPyConnection, formulas: int
) -> str:
    """Return README.md; `formulas` is how many texts CSV marks."""
    descriptions = {}
    for schema, name, _, description in connection.execute(RELATIONS).fetchall():
        descriptions[qualify(schema, name)] = description

    def format_relations(kind: str, about: str, counts: Counts) -> str:
        rows = []
        for name, count in counts.items():
            rows.append((format_code(name), count["rows"], descriptions.get(name, "")))
        return format_markdown_table((kind, "rows", about), rows)

    def format_query(header: Sequence[str], sql: str) -> str:
        return format_markdown_table(header, connection.execute(sql).fetchall())

    tables = release["tables"]
    [[unusable]] = connection.execute("SELECT count(*) FROM results WHERE NOT usable").fetchall()
    return _read_template("card.md").format(
        configurations=_format_configurations(release),
        empty=_format_empty(release),
        version=release["version"],
        published_on=release["published_on"],
        build_id=release["build_id"][:12],
        results=tables["results"]["rows"],
        unusable=unusable,
        documents=tables["documents"]["rows"],
        tables=format_relations("table", "one row is", tables),
        views=format_relations("view", "what it shows", release["view_files"]),
        origins=format_query(("origin", "task", "results"), ORIGINS),
        source_rows=format_query(("source rows", "count"), SOURCE_ROWS),
        flags=_format_flags(connection),
        quarantine=_format_quarantine(connection, tables["quarantine"]["rows"]),
        verdicts=format_query(("verdict", "claims"), VERDICTS),
        formulas=_format_formulas(formulas),
        corrections=_format_corrections(release),
        licences=_format_licences(connection),
    )


def _read_template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _format_configurations(release: ReleaseRecord) -> str:
    """Return the configurations of `datasets.load_dataset`, in YAML: a table that has rows each."""
    lines = []
    for name, count in get_counts(release).items():
        if count["rows"]:
            lines.append(f"- config_name: {name}\n")
            if name == DEFAULT_TABLE:
                lines.append("  default: true\n")
            lines.append(f"  data_files: {get_parquet_name(name)}\n")
    return "".join(lines)


def _format_empty(release: ReleaseRecord) -> str:
    names = []
    for name, count in get_counts(release).items():
        if not count["rows"]:
            names.append(format_code(name))
    if not names:
        return ""
    listed = ", ".join(names)
    return f"`datasets` loads no table without rows, so it has no configuration of {listed}.\n"


def _format_flags(connection: duckdb.DuckDBPyConnection) -> str:
    titles = {rule.id: rule.title for rule in RULES}
    rows = []
    for rule, *counted in connection.execute(FLAGS).fetchall():
        rows.append((rule, titles.get(rule, ""), *counted))
    return format_markdown_table(("rule", "what it finds", "severity", "flags", "results"), rows)


def _format_quarantine(connection: duckdb.DuckDBPyConnection, total: int) -> str:
    if not total:
        return "no source row was refused."
    table = format_markdown_table(("reason", "rows"), connection.execute(REASONS).fetchall())
    return f"{total} rows were not accepted.\n\n{table}"


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


def _format_corrections(release: ReleaseRecord) -> str:
    rows = []
    for entry in release["corrections"]:
        key = ", ".join(f"{name} = {value}" for name, value in entry["key"].items())
        table = format_code(entry["table"])
        rows.append((table, key or "the whole table", entry["rows"], entry["reason"]))
    if not rows:
        return ""
    listed = format_markdown_table(("table", "key", "rows", "reason"), rows)
    return f"## Rows removed since the previous release\n\n{listed}\n"


def _format_licences(connection: duckdb.DuckDBPyConnection) -> str:
    lines = []
    for licence, documents in connection.execute(LICENCES).fetchall():
        lines.append(f"- {escape_markdown(licence)}: {escape_markdown(documents)}.\n")
    return "".join(lines)


def _format_dictionary(release: ReleaseRecord, connection: duckdb.DuckDBPyConnection) -> str:
    """Return DICTIONARY.md: every table, view and macro with every column and its unit."""
    counts = get_counts(release)
    columns = defaultdict(list)
    for relation, column, *others in connection.execute(COLUMNS).fetchall():
        columns[relation].append((format_code(column), *others))
    parts = [_read_template("dictionary.md").format(version=release["version"])]
    for schema, name, kind, description in connection.execute(RELATIONS).fetchall():
        sql_name = qualify(schema, name)
        size = ""
        # a view without files is not counted
        if sql_name in counts:
            size = f", {counts[sql_name]['rows']:,} rows"
        parts.append(f"## {kind.capitalize()} `{sql_name}`{size}\n")
        parts.append(f"{escape_markdown(description)}\n")
        parts += _format_links(sql_name)
        header = ("column", "type", "unit", "what it holds")
        # the table `columns` names a relation without its schema
        parts.append(format_markdown_table(header, columns[name]))
    return "\n".join(parts)


def _format_links(sql_name: str) -> list[str]:
    """Return the key of a table and what its columns refer to; nothing for a view."""
    if sql_name not in KNOWN_TABLES:
        return []
    table = KNOWN_TABLES[sql_name]
    lines = [f"Key: {', '.join(map(format_code, table.key))}.\n"]
    links = []
    for column in table.columns:
        if column.references:
            links.append(f"`{column.name}` → `{column.references}`")
    if links:
        lines.append(f"References: {', '.join(links)}.\n")
    return lines
