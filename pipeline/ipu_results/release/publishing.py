"""Publish a release: copy and check the tables, decide the version, write and verify every file,
put it in place.

One JSON file in the repository says what the release changed, for the page, the feed and whoever
reads there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

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
from ipu_results.release.certificates import write_certificates
from ipu_results.release.database import open_database, read_definitions
from ipu_results.release.decision import (
    ReleaseDecision,
    ReleaseRequest,
    decide_release,
    get_old_release,
    get_stated_version,
)
from ipu_results.release.diff import ReleaseDiff, diff_releases
from ipu_results.release.diff_report import (
    count_all_figures,
    list_figure_changes,
    list_reported_tables,
)
from ipu_results.release.files import ReleaseRecord, RowCount
from ipu_results.release.replacing import replace_release
from ipu_results.release.texts import format_files
from ipu_results.release.verify import list_build_differences, verify_release
from ipu_results.release.version import get_level, list_changes
from ipu_results.schema import FILE_VIEWS, TABLES
from ipu_results.schema.frames import encode_texts

MAX_NAMES = 8  # in a sentence
COUNTED = ("results", "documents", "claims", "quarantine")  # in the summary of a first release


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


class ChangeRecord(TypedDict):
    """What `<version>.json` says of a release; `rows` has counts by table that differs."""

    version: str
    published_on: str
    build_id: str
    previous: str | None
    level: str | None
    summary: list[str]
    corrections: list[dict[str, Any]]
    figures_changed: list[Any]
    rows: dict[str, dict[str, int]]


def publish(
    request: ReleaseRequest, progress: files.Progress = lambda *_: None
) -> PublishedRelease:
    """Make the folder `out` a release of the warehouse, all or nothing.

    Raises ReleaseError if the version is too low, rows vanished without a correction, or `out`
    holds something else; WarehouseError if the warehouse is incomplete or mixes two builds.
    """
    # a malformed version is refused before anything is read
    get_stated_version(request)
    with replace_release(request.out, request.wait_s) as new:
        progress("copy", "tables")
        # copied again if another `ingest` replaces the warehouse meanwhile
        copy_tables = partial(_copy_tables, new=new)
        tables, build_id = read_one_build(request.warehouse, copy_tables)
        write_duckdb(new / DATABASE, tables)
        progress("evaluate", "views")
        # from the file that is published, so that it gives the same rows to its readers
        views = _evaluate_views(new / DATABASE)
        table_counts = _count_rows(tables)
        _check_build(request.warehouse, tables[files.BUILD_TABLE], table_counts, build_id)
        progress("compare", str(request.previous or request.out))
        decision = decide_release(new, request)
        progress("write", "files")
        release: ReleaseRecord = {
            "format": files.FORMAT,
            "name": "ipu-results",
            "version": str(decision.version),
            "published_on": request.published_on.isoformat(),
            "build_id": build_id,
            "previous": decision.previous,
            "least_version": decision.lowest,
            "changes": [change._asdict() for change in decision.changes],
            "corrections": decision.corrections,
            "tables": table_counts,
            "views": read_definitions(new / DATABASE),
            "view_files": _count_rows(views),
        }
        # the Parquet files of tables are those of the warehouse
        for name, rows in views.items():
            write_table_file(new / get_parquet_name(name), rows, build_id)
        _write_files(new, {**tables, **views}, release)
        problems = verify_release(new, progress)
        if problems:
            message = f"the new release fails verification: {problems[0].line}"
            raise ReleaseError(message, place=str(request.out))
        # in the block `out` still holds the previous release
        changes = None
        if request.record:
            changes = _describe_changes(request, new, release)
        sizes = [path.stat().st_size for path in files.list_files(new).values()]
        checksum = hash_file(new / files.CHECKSUMS)
    # None if the previous release was published again
    if request.record and changes:
        _write_changes(request.record, changes)
    return PublishedRelease(
        decision,
        build_id,
        rows=sum(count["rows"] for count in table_counts.values()),
        files=len(sizes),
        size_bytes=sum(sizes),
        checksum=checksum,
    )


def _copy_tables(warehouse: Path, new: Path) -> tuple[dict[str, pa.Table], str]:
    """Return the tables and their build id, and write the bytes that were read, so that no other
    build mixes in.
    """
    # raises WarehouseError if a file is missing or of another build
    read_build_id(warehouse)
    tables = {}
    for table in TABLES:
        name = get_parquet_name(table.sql_name)
        path = warehouse / name
        try:
            with open_regular_file(path) as file:
                data = file.read()
        except OSError as error:
            message = f"cannot be read: {get_first_line(error)}"
            raise ReleaseError(message, place=str(path)) from error
        # a table is made of the bytes that are copied: the file may be another one by now
        (new / name).write_bytes(data)
        tables[table.sql_name] = read_parquet(path, data=data)
    try:
        build_id = read_build_id(new)
    except MixedBuildsError as error:
        # the user knows the warehouse, and not the work folder with the copy
        raise MixedBuildsError(error.message, place=str(warehouse)) from error
    return tables, build_id


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


def _count_rows(relations: Mapping[str, pa.Table]) -> dict[str, RowCount]:
    counts: dict[str, RowCount] = {}
    for name, rows in relations.items():
        counts[name] = {"rows": rows.num_rows, "rows_sha256": digest_rows(rows)}
    return counts


def _check_build(warehouse: Path, build: pa.Table, counts: files.Counts, build_id: str) -> None:
    """Raise ReleaseError if the table `build` states other row counts."""
    # a file of the warehouse may have been replaced by hand
    for name in list_build_differences(build.to_pylist(), counts, build_id):
        message = (
            "rows differ from what its build recorded; build it again with: ipu-results ingest"
        )
        raise ReleaseError(message, place=f"{warehouse}/{name}")


def _write_files(new: Path, tables: Mapping[str, pa.Table], release: ReleaseRecord) -> None:
    """Write every file but the Parquet files and the DuckDB file; `release` is the content of
    release.json.
    """
    for name, rows in tables.items():
        write_csv(rows, new / get_csv_name(name))
    with open_database(new / DATABASE) as connection:
        texts = format_files(release, connection, tables, new)
        write_certificates(connection, new)
    for name, text in texts.items():
        (new / name).write_text(text, encoding="utf-8", newline="")
    files.write_checksums(new)


def _describe_changes(
    request: ReleaseRequest, new: Path, release: ReleaseRecord
) -> ChangeRecord | None:
    """Return what the new release changed since the previous one, None if it repeats that one."""
    record: ChangeRecord = {
        "version": release["version"],
        "published_on": release["published_on"],
        "build_id": release["build_id"],
        "previous": None,
        "level": None,
        "summary": [_summarise_first(release)],
        "corrections": release["corrections"],
        "figures_changed": [],
        "rows": {},
    }
    previous = get_old_release(request)
    if previous is None:
        return record
    diff = diff_releases(previous, new)
    # the same version is the same tables, published again
    if diff.old.metadata.get("version") == release["version"]:
        return None
    record["previous"] = diff.old.name
    record["level"] = get_level(list_changes(diff))
    record["summary"] = list(_summarise(diff))
    for change in list_figure_changes(diff):
        record["figures_changed"].append(to_json_value(change._asdict()))
    for table in list_reported_tables(diff):
        record["rows"][table.name] = table.rows._asdict()
    return record


def _write_changes(folder: Path, record: ChangeRecord) -> None:
    """Write `<version>.json` into a folder, as a whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{record['version']}.json", f"{format_json(record)}\n".encode())


def _summarise_first(release: ReleaseRecord) -> str:
    counts = [f"{release['tables'][name]['rows']:,} {name}" for name in COUNTED]
    return f"First release: {_join(counts)}."


def _summarise(diff: ReleaseDiff) -> Iterator[str]:
    """Yield sentences, figures first."""
    figures = count_all_figures(diff)
    if figures:
        yield f"{format_count(figures, 'figure')} changed."
    else:
        yield "No figure changed."
    columns_added = []
    columns_removed = []
    for table in list_reported_tables(diff):
        counts = []
        if table.rows.added:
            counts.append(f"{table.rows.added:,} new")
        if table.rows.removed:
            counts.append(f"{table.rows.removed:,} removed")
        if counts:
            yield f"Rows of {table.name}: {' and '.join(counts)}."
        for column in table.columns_added:
            columns_added.append(f"{table.name}.{column}")
        for column in table.columns_removed:
            columns_removed.append(f"{table.name}.{column}")
    lists = {
        "New tables": [table.name for table in diff.added],
        "Removed tables": [table.name for table in diff.removed],
        "New columns": columns_added,
        "Removed columns": columns_removed,
        "Other definitions of views": diff.views,
    }
    for what, names in lists.items():
        if names:
            yield f"{what}: {_join(names)}."


def _join(names: Sequence[str]) -> str:
    listed = list(names[:MAX_NAMES])
    if len(names) > MAX_NAMES:
        listed.append(f"{len(names) - MAX_NAMES} more")
    if len(listed) == 1:
        return listed[0]
    return f"{', '.join(listed[:-1])} and {listed[-1]}"
