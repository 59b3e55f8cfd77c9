"""The page of what each release changed, from the records that `publish --record` writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ipu_results.errors import WarehouseError
from ipu_results.ground.files import CHECKOUT
from ipu_results.release.files import read_json
from ipu_results.site.html import Markup, format_table, join, list_items, tag
from ipu_results.site.page import Page

RECORDS = CHECKOUT / "docs" / "releases"
REQUIRED = ("version", "published_on", "summary")
MAX_FIGURES = 100  # of a release, in the table of the page
Record = Mapping[str, Any]


def read_records(folder: Path = RECORDS) -> list[dict[str, Any]]:
    """Read the records of all releases, the newest first. Raises WarehouseError for a broken one."""
    records = []
    for path in folder.glob("*.json"):
        record = read_json(path)
        if missing := [name for name in REQUIRED if name not in record]:
            raise WarehouseError(f"has no {missing[0]}", place=str(path))
        records.append(record)
    return sorted(records, key=_rank_version, reverse=True)


def _rank_version(record: Record) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", record["version"])]


def build_changed_page(records: Sequence[Record], version: str | None) -> Page:
    """Build the page: for each release what changed in sentences, corrections, and the changed figures."""
    state = f"This site shows release {version}." if version else "This site shows a build that was not released."
    sections = [_format_record(record) for record in records]
    none = None if sections else tag("p", "No release has been recorded yet.")
    title, description = (
        "What changed",
        f"{state} {len(records)} release{'s are' if len(records) != 1 else ' is'} listed.",
    )
    return Page("changed.html", title, description, join(tag("p", state), none, *sections), "#/")


def _format_record(record: Record) -> Markup:
    level = f", a {record['level']} change" if record.get("level") else ""
    figures = record.get("figures_changed") or []
    corrections = [_format_value(each) for each in record.get("corrections") or []]
    headings = list(dict.fromkeys(name for figure in figures for name in figure))
    rows = [[_format_value(figure.get(name)) for name in headings] for figure in figures[:MAX_FIGURES]]
    more = f"and {len(figures) - MAX_FIGURES:,} more." if len(figures) > MAX_FIGURES else None
    return tag(
        "section",
        tag("h2", f"{record['version']}, {record['published_on']}{level}"),
        list_items(*record["summary"]),
        join(tag("h3", "Corrections"), list_items(*corrections)) if corrections else None,
        join(tag("h3", "Changed figures"), format_table([name.replace("_", " ") for name in headings], rows))
        if rows
        else None,
        tag("p", more) if more else None,
        id=record["version"],
    )


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_format_value(each)}" for name, each in value.items() if each not in (None, ""))
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
