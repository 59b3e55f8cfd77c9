"""Write the texts of a release: README.md, DICTIONARY.md, citation, licence, changelog and environment.

The same code and the same tables give the same bytes, so `verify` compares the files of a release of its own code.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from ipu_results.check.rules import RULES
from ipu_results.errors import ReleaseError
from ipu_results.ground.files import CHECKOUT, PACKAGE, SCHEMA, hash_file, read_version
from ipu_results.ground.text import escape_markdown, format_code, format_json, format_markdown_table
from ipu_results.release import files
from ipu_results.release.croissant import format_croissant
from ipu_results.release.datapackage import format_package
from ipu_results.release.files import CITATION, ReleaseStats
from ipu_results.release.snapshot import KNOWN_TABLES
from ipu_results.store.files import get_parquet_name
from ipu_results.store.tables import count_formulas

DISTRIBUTION = "ipu-results"
REPOSITORY_FILES = (CITATION, "LICENSE-DATA", "CHANGELOG.md")
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def format_texts(release_version: str, published_on: str) -> dict[str, str]:
    """Return citation, licence of the data and changelog by file name.

    Raises ReleaseError without the files of the repository: a wheel cannot publish.
    """
    return {
        CITATION: _format_citation(release_version, published_on),
        "LICENSE": _read_repository_file("LICENSE-DATA"),
        "CHANGELOG.md": _read_repository_file("CHANGELOG.md"),
    }


def _format_citation(release_version: str, published_on: str) -> str:
    """Return CITATION.cff of the repository with the version and date of the release."""
    text = _read_repository_file(CITATION)
    for name, value in (("version", release_version), ("date-released", published_on)):
        text = re.sub(rf"(?m)^{name}:.*$", f"{name}: {value}", text)
    return text


def _read_repository_file(name: str) -> str:
    try:
        return (CHECKOUT / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ReleaseError(f"cannot be read, publish from a clone: {error.strerror}", place=name) from error


def format_environment() -> str:
    """Return Python, the kind of system and the installed packages as JSON; nothing that names a machine or user."""
    environment = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: _get_version(name) for name in (DISTRIBUTION, *_list_requirements())},
    }
    return format_json(environment) + "\n"


def _list_requirements() -> list[str]:
    try:
        requirements = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        requirements = ["duckdb", "pandas", "pyarrow"]
    matches = (REQUIREMENT_NAME.match(line) for line in requirements if "extra ==" not in line)
    return sorted(match[0] for match in matches if match)


def _get_version(name: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(name)
    return None


CODE = ("check/rules", "ground", "release", "schema", "store")
SUFFIXES = frozenset({".py", ".md", ".json", ".html", ".toml", ".sql"})


def format_files(
    release: Mapping[str, Any], stats: ReleaseStats, tables: Mapping[str, pa.Table], folder: Path
) -> dict[str, str]:
    """Return each text file but the tables and checksums, by name; `release` is the content of release.json."""
    return {
        **format_texts(release["version"], release["published_on"]),
        **format_pages(release, stats, tables, folder),
        files.ENVIRONMENT: format_environment(),
        files.RELEASE: format_json(release) + "\n",
    }


def format_pages(
    release: Mapping[str, Any], stats: ReleaseStats, tables: Mapping[str, pa.Table], folder: Path
) -> dict[str, str]:
    """Return the files that depend on the tables and on the code alone, by name."""
    return {
        "README.md": format_card(release, stats, sum(map(count_formulas, tables.values()))),
        "DICTIONARY.md": format_dictionary(release, stats),
        files.PACKAGE: format_package(release, stats, folder),
        files.CROISSANT: format_croissant(release, folder),
    }


def describe_generator() -> dict[str, str | None]:
    """Return the version of this package, and digests of its code and of the repository's texts (null in a wheel)."""
    texts = [CHECKOUT / name for name in REPOSITORY_FILES]
    return {
        "version": read_version(),
        "code_sha256": _digest(_list_code()),
        "texts_sha256": _digest(zip(REPOSITORY_FILES, texts, strict=True)) if all(map(Path.is_file, texts)) else None,
    }


def _list_code() -> Iterator[tuple[str, Path]]:
    """Yield name and path of every file that decides what a release holds."""
    for folder, root in (*((PACKAGE / name, PACKAGE) for name in CODE), (SCHEMA, SCHEMA)):
        for path in sorted(folder.rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path.relative_to(root).as_posix(), path


def _digest(paths: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in paths:
        digest.update(f"{name} {hash_file(path)}\n".encode())
    return digest.hexdigest()


DEFAULT_CONFIGURATION = "results"
TEMPLATES = Path(__file__).with_name("templates")


def format_card(release: Mapping[str, Any], stats: ReleaseStats, formulas: int) -> str:
    """Return README.md; `release` is the content of release.json, `formulas` how many texts CSV marks."""
    descriptions = {table: text for table, column, _, _, text in stats["columns"] if not column}
    tables, views = (
        [(format_code(name), entry["rows"], descriptions.get(name, "")) for name, entry in release[key].items()]
        for key in ("tables", "view_files")
    )
    return (
        (TEMPLATES / "card.md")
        .read_text(encoding="utf-8")
        .format(
            configurations=_format_configurations(release),
            empty=_format_empty(release),
            version=release["version"],
            published_on=release["published_on"],
            build_id=release["build_id"][:12],
            results=sum(count for *_, count in stats["origins"]),
            documents=stats["documents"][0][0],
            tables=format_markdown_table(("table", "rows", "one row is"), tables),
            views=format_markdown_table(("view", "rows", "what it shows"), views),
            origins=format_markdown_table(("origin", "task", "results"), stats["origins"]),
            source_rows=format_markdown_table(("source rows", "count"), stats["source_rows"]),
            flags=_format_flags(stats),
            quarantine=_format_quarantine(stats),
            verdicts=format_markdown_table(("verdict", "claims"), stats["verdicts"]),
            formulas=_format_formulas(formulas),
            corrections=_format_corrections(release["corrections"]),
            licences=_format_licences(stats),
        )
    )


def _format_configurations(release: Mapping[str, Any]) -> str:
    """Return a configuration of `datasets.load_dataset` per table and view, without those that have no row."""
    names = [name for name, entry in _list_relations(release) if entry["rows"]]
    default = {DEFAULT_CONFIGURATION: "  default: true\n"}
    return "".join(
        f"- config_name: {name}\n{default.get(name, '')}  data_files: {get_parquet_name(name)}\n" for name in names
    )


def _format_empty(release: Mapping[str, Any]) -> str:
    """Return a sentence on the tables that `datasets` cannot load."""
    if names := [format_code(name) for name, entry in _list_relations(release) if not entry["rows"]]:
        return f"`datasets` loads no table without rows, so it has no configuration of {', '.join(names)}.\n"
    return ""


def _list_relations(release: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [*release["tables"].items(), *release["view_files"].items()]


def _format_flags(stats: ReleaseStats) -> str:
    titles = {rule.id: rule.title for rule in RULES}
    rows = ((rule, titles.get(rule, ""), *counts) for rule, *counts in stats["flags"])
    return format_markdown_table(("rule", "what it finds", "severity", "flags", "results"), rows)


def _format_quarantine(stats: ReleaseStats) -> str:
    if rows := stats["quarantine"]:
        total = sum(count for _, count in rows)
        return f"{total} rows were not accepted.\n\n" + format_markdown_table(("reason", "rows"), rows)
    return "no source row was refused."


def _format_formulas(count: int) -> str:
    if not count:
        return "No text begins with `=`, `+`, `-`, `@` or a tab, so no spreadsheet takes one for a formula."
    return (
        f"{count:,} texts begin with `=`, `+`, `-`, `@` or a tab, which a spreadsheet may take for a formula. In "
        "the CSV files they have an apostrophe in front; figures and the other formats do not."
    )


def _format_corrections(corrections: Sequence[Mapping[str, Any]]) -> str:
    if not corrections:
        return ""
    keys = (", ".join(f"{name} = {value}" for name, value in entry["key"].items()) for entry in corrections)
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
    lines = ((escape_markdown(licence), escape_markdown("; ".join(names))) for licence, names in documents.items())
    return "".join(f"- {licence}: {names}.\n" for licence, names in lines)


def format_dictionary(release: Mapping[str, Any], stats: ReleaseStats) -> str:
    """Return DICTIONARY.md: every table, view and macro with every column and its unit."""
    counts = {**release["tables"], **release["view_files"]}
    parts = [(TEMPLATES / "dictionary.md").read_text(encoding="utf-8").format(version=release["version"])]
    for name, rows in groupby(stats["columns"], key=lambda row: row[0]):
        first, *columns = rows
        parts += _format_relation(counts.get(name), first, columns)
    return "\n".join(parts)


def _format_relation(
    counts: Mapping[str, Any] | None, first: Sequence[Any], columns: Sequence[Sequence[Any]]
) -> Iterator[str]:
    name, _, kind, _, description = first
    rows = f", {counts['rows']:,} rows" if counts else ""
    yield f"## {kind.capitalize()} `{name}`{rows}\n"
    yield f"{escape_markdown(description)}\n"
    if table := KNOWN_TABLES.get(name):
        yield f"Key: {', '.join(map(format_code, table.key))}.\n"
        if links := [f"`{column.name}` → `{column.references}`" for column in table.columns if column.references]:
            yield f"References: {', '.join(links)}.\n"
    body = ((format_code(column), *values) for _, column, *values in columns)
    yield format_markdown_table(("column", "type", "unit", "what it holds"), body)
