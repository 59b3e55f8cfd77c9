"""Make a release: copy and check the tables, decide the version, write every file, check all, and put it in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ipu_results.errors import ReleaseError
from ipu_results._util.text import format_json
from ipu_results.release import card, croissant, datapackage, dictionary, facts, texts
from ipu_results.release import version as versions
from ipu_results.release.contents import unlike_build
from ipu_results.release.database import read_definitions
from ipu_results.release.decision import Decision, decide
from ipu_results.release.folder import replacing, writing
from ipu_results.release.names import CITATION, CROISSANT, DERIVED, FORMAT, PACKAGE, RELEASE
from ipu_results.release.sums import SUMS, digest, write_sums
from ipu_results.release.verify import check
from ipu_results.store.query import finish_interrupted_build, read_build_id
from ipu_results._util.sql import get_first_line
from ipu_results.store.files import DATABASE, get_parquet_name
from ipu_results.store.digest import digest_rows
from ipu_results.store.duckdb_file import write_duckdb
from ipu_results.schema import TABLES

Progress = Callable[[str, str], None]
Counts = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Asked:
    """`version` None takes the least that the change allows; `previous` None is the release that stands in `out`."""

    warehouse: Path
    out: Path
    published_on: date
    version: str | None = None
    previous: Path | None = None
    corrections: Path | None = None
    wait_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Published:
    """`seal` is the digest of SHA256SUMS, which binds every other file."""

    decision: Decision
    build_id: str
    rows: int
    files: int
    bytes: int
    seal: str


def publish(asked: Asked, progress: Progress = lambda *_: None) -> Published:
    """Make the folder `out` a release of the warehouse, all or nothing.

    Raises ReleaseError where the version is too low, where rows vanished without a correction, or where the folder is
    in the way; WarehouseError where the warehouse is incomplete or of two builds.
    """
    given = None if asked.version is None else versions.parse(asked.version, "--version")
    finish_interrupted_build(asked.warehouse)
    with replacing(asked.out, asked.wait_s) as new:
        progress("copy", "tables")
        tables, told, build_id = _copied(asked.warehouse, new, asked.out)
        with writing(asked.out):
            _write_database(new / DATABASE, tables)
        previous = asked.previous or (asked.out if (asked.out / RELEASE).exists() else None)
        progress("compare", str(previous or ""))
        decision = decide(previous, new, given, asked.corrections, again=asked.previous is None)
        progress("write", "files")
        with writing(asked.out):
            _write(new, tables, told, build_id, decision, asked.published_on)
        progress("verify", "files")
        if problems := check(new):
            raise ReleaseError(f"the new release does not pass its own check: {problems[0].line}", place=str(asked.out))
        files = list(new.iterdir())
        size, seal = sum(path.stat().st_size for path in files), digest(new / SUMS)
    return Published(decision, build_id, sum(one["rows"] for one in told.values()), len(files), size, seal)


def _copied(warehouse: Path, new: Path, out: Path) -> tuple[dict[str, pa.Table], Counts, str]:
    """The tables of the warehouse with rows and digest, and the build id.

    They are copied first and then read, so that a build at the same time mixes nothing.
    """
    read_build_id(warehouse)
    for table in TABLES:
        found = _bytes(warehouse / get_parquet_name(table.name))
        with writing(out):
            (new / get_parquet_name(table.name)).write_bytes(found)
    build_id = read_build_id(new)
    tables = {table.name: _read(new / get_parquet_name(table.name)) for table in TABLES}
    told = {name: {"rows": arrow.num_rows, "rows_sha256": digest_rows(arrow)} for name, arrow in tables.items()}
    if unlike := unlike_build(tables[DERIVED].to_pylist(), told, build_id):
        raise ReleaseError("holds other rows than its build says; build it again", place=f"{warehouse}/{unlike[0]}")
    return tables, told, build_id


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReleaseError(f"cannot be read: {error.strerror}", place=str(path)) from error


def _read(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ReleaseError(f"cannot be read: {get_first_line(error)}", place=path.name) from error


def _write_database(path: Path, tables: Mapping[str, pa.Table]) -> None:
    try:
        write_duckdb(path, tables)
    except duckdb.Error as error:
        raise ReleaseError(f"cannot be made: {get_first_line(error)}", place=path.name) from error


def _write(
    new: Path, tables: Mapping[str, pa.Table], told: Counts, build_id: str, decision: Decision, published_on: date
) -> None:
    """Every file beside the Parquet ones and the DuckDB file."""
    for name, arrow in tables.items():
        texts.write_csv(arrow, new / f"{name}.csv")
    columns = {table.name: [one.name for one in table.columns if one.kind == "text"] for table in TABLES}
    found, formulas = facts.ask(new / DATABASE, columns)
    views = read_definitions(new / DATABASE)
    known = facts.Facts(str(decision.version), published_on, build_id, told, views, found, formulas, decision.applied)
    pages = {
        "README.md": card.page(known),
        "DICTIONARY.md": dictionary.page(known),
        CITATION: texts.citation(known.version, published_on),
        "LICENSE": texts.licence(),
        "CHANGELOG.md": texts.changelog(),
        "environment.json": texts.environment(),
        PACKAGE: datapackage.package(known, new),
        CROISSANT: croissant.metadata(known, new),
        RELEASE: _release(known, decision),
    }
    for name, text in pages.items():
        if text is not None:
            (new / name).write_text(text, encoding="utf-8", newline="")
    write_sums(new)


def _release(known: facts.Facts, decision: Decision) -> str:
    told = {
        "format": FORMAT,
        "name": "ipu-results",
        "version": known.version,
        "published_on": known.published_on.isoformat(),
        "build_id": known.build_id,
        "previous": decision.previous,
        "least_version": decision.least,
        "changes": [change._asdict() for change in decision.changes],
        "corrections": [one.record() for one in decision.applied],
        "tables": known.tables,
        "views": known.views,
    }
    return format_json(told) + "\n"
