"""Describe in one JSON file what a release changed, for the page, the feed and whoever reads the repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ipu_results.ground.files import write_atomically
from ipu_results.ground.text import format_count, format_json, to_json_value
from ipu_results.release.diff import ReleaseDiff, TableDiff
from ipu_results.release.figure_changes import count_figures, list_figure_changes, list_reported_tables
from ipu_results.release.version import get_level, list_changes

MAX_NAMES = 8  # in a sentence
COUNTED = ("results", "documents", "claims", "quarantine")


def describe_release(release: Mapping[str, Any], diff: ReleaseDiff | None) -> dict[str, Any]:
    """Return version, date, a summary in sentences and the changed figures; `release` is what release.json holds."""
    return {
        "version": release["version"],
        "published_on": release["published_on"],
        "build_id": release["build_id"],
        "previous": None if diff is None else diff.old.name,
        "level": None if diff is None else get_level(list_changes(diff)),
        "summary": list(_summarise_first(release) if diff is None else _summarise(diff)),
        "corrections": release["corrections"],
        "figures_changed": [] if diff is None else [_describe(change) for change in list_figure_changes(diff)],
        "rows": {} if diff is None else {table.name: table.rows._asdict() for table in list_reported_tables(diff)},
    }


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write `<version>.json` into a folder, as a whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{record['version']}.json", f"{format_json(record)}\n".encode())


def _describe(change: Any) -> dict[str, Any]:
    return {name: to_json_value(value) for name, value in change._asdict().items()}


def _summarise_first(release: Mapping[str, Any]) -> Iterator[str]:
    counts = [f"{release['tables'][name]['rows']:,} {name}" for name in COUNTED if name in release["tables"]]
    yield f"First release: {_join(counts)}."


def _summarise(diff: ReleaseDiff) -> Iterator[str]:
    """Yield sentences, figures first."""
    figures = sum(map(count_figures, list_reported_tables(diff)))
    yield f"{format_count(figures, 'figure')} changed." if figures else "No figure changed."
    tables = list_reported_tables(diff)
    yield from filter(None, map(_summarise_rows, tables))
    if diff.added:
        yield f"New tables: {_join([table.name for table in diff.added])}."
    if diff.removed:
        yield f"Removed tables: {_join([table.name for table in diff.removed])}."
    for what, columns in (
        ("New", [f"{table.name}.{name}" for table in tables for name in table.columns_added]),
        ("Removed", [f"{table.name}.{name}" for table in tables for name in table.columns_removed]),
    ):
        if columns:
            yield f"{what} columns: {_join(columns)}."
    if diff.views:
        yield f"Other definitions of views: {_join(list(diff.views))}."


def _summarise_rows(table: TableDiff) -> str | None:
    counts = (("new", table.rows.added), ("removed", table.rows.removed))
    parts = [f"{count:,} {what}" for what, count in counts if count]
    return f"Rows of {table.name}: {' and '.join(parts)}." if parts else None


def _join(names: list[str]) -> str:
    more = [f"{len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    *first, last = [*names[:MAX_NAMES], *more]
    return f"{', '.join(first)} and {last}" if first else last
