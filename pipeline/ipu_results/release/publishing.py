"""Publish a release: copy and check the tables, decide the version, write and verify every file,
put it in place.

One JSON file in the repository says what the release changed, for the page, the feed and whoever
reads there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ipu_results.errors import ReleaseError
from ipu_results.kit.files import hash_file, open_regular_file, write_atomically
from ipu_results.kit.sql import get_first_line
from ipu_results.kit.text import format_count, format_json, to_json_value
from ipu_results.record.store.files import DATABASE, digest_rows, get_csv_name, get_parquet_name
from ipu_results.record.store.query import (
    MixedBuildsError,
    read_build_id,
    read_one_build,
    read_parquet,
    read_view,
    write_duckdb,
)
from ipu_results.record.store.tables import write_csv, write_table_file
from ipu_results.release import files
from ipu_results.release.diff import ReleaseDiff, diff_releases
from ipu_results.release.diff_report import count_figures, list_figure_changes, list_reported_tables
from ipu_results.release.files import open_database, read_definitions, replace_release
from ipu_results.release.texts import describe_generator, format_files
from ipu_results.release.verify import list_build_differences, verify_release
from ipu_results.release.version import (
    REPOSITORY_VERSION,
    ReleaseDecision,
    decide_release,
    get_level,
    list_changes,
    parse_version,
)
from ipu_results.schema import FILE_VIEWS, TABLES
from ipu_results.schema.frames import encode_texts

MAX_NAMES = 8  # in a sentence
COUNTED = ("results", "documents", "claims", "quarantine")


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """What to publish, and where to.

    Without a `version` it is `default_version`, and without both the lowest that the change allows.
    Without `previous` the release in `out` is the previous one. `corrections` is a TOML file;
    `wait_s` is how long to wait for another process that publishes there. `record` is a folder for
    `<version>.json`, which says what changed; none is written if the tables did not change.
    """

    warehouse: Path
    out: Path
    published_on: date
    version: str | None = None
    previous: Path | None = None
    corrections: Path | None = None
    wait_s: float = 60.0
    record: Path | None = None
    default_version: str | None = None


@dataclass(frozen=True, slots=True)
class PublishedRelease:
    """A release that is in place; `checksum` is the sha256 of SHA256SUMS, which covers every other
    file.
    """

    decision: ReleaseDecision
    build_id: str
    rows: int
    files: int
    size_bytes: int
    checksum: str


def publish(
    request: ReleaseRequest, progress: files.Progress = lambda *_: None
) -> PublishedRelease:
    """Make the folder `out` a release of the warehouse, all or nothing.

    Raises ReleaseError if the version is too low, rows vanished without a correction, or `out`
    holds something else; WarehouseError if the warehouse is incomplete or mixes two builds.
    """
    version = None if request.version is None else parse_version(request.version, "--version")
    default = None
    if request.default_version is not None:
        default = parse_version(request.default_version, REPOSITORY_VERSION)
    with replace_release(request.out, request.wait_s) as new:
        progress("copy", "tables")
        tables, build_id = read_one_build(
            request.warehouse, lambda warehouse: _copy_tables(warehouse, new)
        )
        write_duckdb(new / DATABASE, tables)
        progress("evaluate", "views")
        views = _evaluate_views(new / DATABASE)
        counts = _check_build(request.warehouse, tables, views, build_id)
        progress("compare", str(request.previous or request.out))
        decision = decide_release(
            new,
            request.out,
            request.previous,
            version,
            request.corrections,
            request.published_on,
            default,
        )
        progress("write", "files")
        release = {
            "format": files.FORMAT,
            "name": "ipu-results",
            "version": str(decision.version),
            "published_on": request.published_on.isoformat(),
            "build_id": build_id,
            "generator": describe_generator(),
            "previous": decision.previous,
            "least_version": decision.lowest,
            "changes": [change._asdict() for change in decision.changes],
            "corrections": decision.corrections,
            "tables": {name: counts[name] for name in tables},
            "views": read_definitions(new / DATABASE),
            "view_files": {name: counts[name] for name in views},
        }
        for name, rows in views.items():
            write_table_file(new / get_parquet_name(name), rows, build_id)
        _write_files(new, {**tables, **views}, release)
        if problems := verify_release(new, progress):
            raise ReleaseError(
                f"the new release fails verification: {problems[0].line}", place=str(request.out)
            )
        record = None if request.record is None else _describe_changes(request, new, release)
        sizes = [path.stat().st_size for path in files.list_files(new).values()]
        checksum = hash_file(new / files.CHECKSUMS)
    if request.record and record:
        write_record(request.record, record)
    rows = sum(counts[name]["rows"] for name in tables)
    return PublishedRelease(decision, build_id, rows, len(sizes), sum(sizes), checksum)


def _describe_changes(
    request: ReleaseRequest, new: Path, release: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what the new release changed since the previous one, None if it repeats that one."""
    previous = request.previous or (request.out if (request.out / files.RELEASE).exists() else None)
    if previous is None:
        return describe_release(release, None)
    diff = diff_releases(previous, new)
    return (
        None
        if diff.old.metadata.get("version") == release["version"]
        else describe_release(release, diff)
    )


def _copy_tables(warehouse: Path, new: Path) -> tuple[dict[str, pa.Table], str]:
    """Return the tables and their build id, and write the bytes that were read, so that no other
    build mixes in.
    """
    read_build_id(warehouse)
    tables = {}
    for table in TABLES:
        name = get_parquet_name(table.sql_name)
        path = warehouse / name
        try:
            with open_regular_file(path) as file:
                data = file.read()
        except OSError as error:
            raise ReleaseError(
                f"cannot be read: {get_first_line(error)}", place=str(path)
            ) from error
        (new / name).write_bytes(data)
        tables[table.sql_name] = read_parquet(path, data=data)
    try:
        return tables, read_build_id(new)
    except MixedBuildsError as error:
        raise MixedBuildsError(error.message, place=str(warehouse)) from error


def _evaluate_views(database: Path) -> dict[str, pa.Table]:
    """Return the rows of each view that gets files, with encoded texts: a quarter of the memory.

    Raises ReleaseError, naming the view, if one cannot be evaluated.
    """
    views = {}
    with open_database(database) as connection:
        for view in FILE_VIEWS:
            try:
                views[view.sql_name] = encode_texts(read_view(connection, view))
            except (duckdb.Error, pa.ArrowException) as error:
                message = f"cannot be evaluated: {get_first_line(error)}"
                raise ReleaseError(message, place=view.sql_name) from error
    return views


def _check_build(
    warehouse: Path, tables: Mapping[str, pa.Table], views: Mapping[str, pa.Table], build_id: str
) -> dict[str, dict[str, Any]]:
    """Return row count and digest by table and view.

    Raises ReleaseError if the table `build` states other row counts.
    """
    relations = {**tables, **views}
    counts = {
        name: {"rows": rows.num_rows, "rows_sha256": digest_rows(rows)}
        for name, rows in relations.items()
    }
    counts_of_tables = {name: counts[name] for name in tables}
    build = tables[files.BUILD_TABLE].to_pylist()
    if different := list_build_differences(build, counts_of_tables, build_id):
        message = (
            "rows differ from what its build recorded; build it again with: ipu-results ingest"
        )
        raise ReleaseError(message, place=f"{warehouse}/{different[0]}")
    return counts


def _write_files(new: Path, tables: Mapping[str, pa.Table], release: Mapping[str, Any]) -> None:
    """Write every file but the Parquet files and the DuckDB file; `release` is the content of
    release.json.
    """
    for name, rows in tables.items():
        write_csv(rows, new / get_csv_name(name))
    with open_database(new / DATABASE) as connection:
        texts = format_files(release, connection, tables, new)
    for name, text in texts.items():
        (new / name).write_text(text, encoding="utf-8", newline="")
    files.write_checksums(new)


def describe_release(release: Mapping[str, Any], diff: ReleaseDiff | None) -> dict[str, Any]:
    """Return version, date, a summary in sentences and the changed figures; `release` is what
    release.json holds.
    """
    return {
        "version": release["version"],
        "published_on": release["published_on"],
        "build_id": release["build_id"],
        "previous": None if diff is None else diff.old.name,
        "level": None if diff is None else get_level(list_changes(diff)),
        "summary": [_summarise_first(release)] if diff is None else list(_summarise(diff)),
        "corrections": release["corrections"],
        "figures_changed": (
            []
            if diff is None
            else [to_json_value(it._asdict()) for it in list_figure_changes(diff)]
        ),
        "rows": (
            {}
            if diff is None
            else {table.name: table.rows._asdict() for table in list_reported_tables(diff)}
        ),
    }


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write `<version>.json` into a folder, as a whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{record['version']}.json", f"{format_json(record)}\n".encode())


def _summarise_first(release: Mapping[str, Any]) -> str:
    counts = [
        f"{release['tables'][name]['rows']:,} {name}"
        for name in COUNTED
        if name in release["tables"]
    ]
    return f"First release: {_join(counts)}."


def _summarise(diff: ReleaseDiff) -> Iterator[str]:
    """Yield sentences, figures first."""
    figures = sum(map(count_figures, list_reported_tables(diff)))
    yield f"{format_count(figures, 'figure')} changed." if figures else "No figure changed."
    tables = list_reported_tables(diff)
    for table in tables:
        counts = (("new", table.rows.added), ("removed", table.rows.removed))
        if parts := [f"{count:,} {what}" for what, count in counts if count]:
            yield f"Rows of {table.name}: {' and '.join(parts)}."
    for what, names in (
        ("New tables", [table.name for table in diff.added]),
        ("Removed tables", [table.name for table in diff.removed]),
        (
            "New columns",
            [f"{table.name}.{name}" for table in tables for name in table.columns_added],
        ),
        (
            "Removed columns",
            [f"{table.name}.{name}" for table in tables for name in table.columns_removed],
        ),
        ("Other definitions of views", list(diff.views)),
    ):
        if names:
            yield f"{what}: {_join(names)}."


def _join(names: list[str]) -> str:
    more = [f"{len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    *first, last = [*names[:MAX_NAMES], *more]
    return f"{', '.join(first)} and {last}" if first else last
