"""All static files of the site: the pages, their previews, and what machines read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ipu_results.doors.charts import render_specification
from ipu_results.doors.site import evidence
from ipu_results.doors.site.charts import ChartData, format_csv
from ipu_results.doors.site.page import build_page, format_page, render
from ipu_results.doors.site.start import StartData
from ipu_results.errors import WarehouseError
from ipu_results.kit.files import CHECKOUT
from ipu_results.kit.sql import Connection
from ipu_results.record.store.files import get_parquet_name
from ipu_results.release.files import read_json
from ipu_results.schema import TABLES

RECORDS = CHECKOUT / "docs" / "releases"
REQUIRED = ("version", "published_on", "summary")  # of the record of a release
MAX_FIGURES = 100  # of a release, in the table of what changed
CHART_SCALE = 1.0  # pixels of a preview per unit of the drawing: most sites show it smaller
# The lists by their importance to a reader who sees nothing else.
LISTS = (
    "replications",
    "energy",
    "peak",
    "microbenchmarks",
    "charts",
    "claims",
    "rules",
    "downloads",
    "changed",
)

Record = dict[str, Any]  # of a release, which may be of an earlier version: see `docs/releases`


def build_pages(
    connection: Connection,
    charts: Sequence[ChartData],
    start: StartData,
    base_url: str = "",
    records: Path = RECORDS,
    downloads: Sequence[object] = (),
) -> dict[str, str | bytes]:
    """Build the static files of the site by their place in it.

    Absolute addresses, and with them `sitemap.xml`, `feed.xml` and the preview images, need a
    `base_url`. Raises WarehouseError for a base_url that is not an address, and for a broken record
    of a release.
    """
    if base_url and not base_url.startswith(("https://", "http://")):
        raise WarehouseError(
            f"base URL {base_url!r} is not an http address; write https://example.org/ipu-results/"
        )
    base_url = f"{base_url.rstrip('/')}/" if base_url else ""
    history = read_records(records)
    files: dict[str, str | bytes] = {}
    pages = []
    sized = []
    for chart in charts:
        path = f"chart/{chart['name']}"
        picture = _sign(chart, start)
        drawing = render_specification(picture, ".svg")
        files[f"{path}.csv"] = format_csv(chart)
        files[f"{path}.svg"] = drawing
        if base_url:
            files[f"{path}.png"] = render_specification(picture, ".png", CHART_SCALE)
        shown = {**chart, "size": _read_size(drawing)}
        sized.append(shown)
        pages.append(build_page("chart.html", f"{path}.html", image=f"{path}.png", chart=shown))
    pages.append(build_page("charts.html", "charts.html", charts=sized))
    pages += evidence.build_claim_pages(connection)
    pages += evidence.build_replication_pages(connection, sized)
    pages.append(evidence.build_energy_page(connection))
    pages += evidence.build_peak_pages(connection, sized)
    pages += evidence.build_microbenchmark_pages(connection)
    pages.append(evidence.build_rules_page(connection))
    pages.append(build_page("downloads.html", "downloads.html", downloads=downloads))
    changes = [_list_changes(record) for record in history]
    version = start["build"]["version"]
    pages.append(build_page("changed.html", "changed.html", records=changes, version=version))
    by_path = {page.path: page for page in pages}
    lists = [by_path[f"{name}.html"] for name in LISTS]
    if base_url:
        files["sitemap.xml"] = render("sitemap.xml", pages=pages, base_url=base_url)
        files["feed.xml"] = render("feed.xml", records=history, base_url=base_url)
    tables = [get_parquet_name(table.sql_name) for table in TABLES]
    files["llms.txt"] = render("llms.txt", pages=lists, files=tables, base_url=base_url)
    files["data/noscript.html"] = render("home.html", start=start, pages=lists)
    for page in pages:
        files[page.path] = format_page(page, base_url)
    return files


def _sign(chart: ChartData, start: StartData) -> dict[str, Any]:
    """Return the drawing of a chart with a line that says where it is from."""
    build = start["build"]
    release = f"release {build['version']}" if build["version"] else "unreleased"
    lines = [f"ipu-results, {release} of {build['as_of']}, CC-BY-4.0, {start['repository']}"]
    if "mlperf" in chart["name"]:
        lines.append("Computed from MLPerf logs, and not verified by MLCommons Association")
    title = chart["specification"]["title"]
    signed = {**title, "subtitle": [*title.get("subtitle", []), *lines]}
    return {**chart["specification"], "title": signed}


def _read_size(svg: bytes) -> list[str]:
    """Return width and height of an image, which keep room for it until it is loaded."""
    return re.findall(r'\b(?:width|height)="([^"]+)"', svg.partition(b">")[0].decode())


def read_records(folder: Path = RECORDS) -> list[Record]:
    """Read the records of all releases, the newest first.

    Raises WarehouseError for a broken one.
    """
    records = []
    for path in folder.glob("*.json"):
        record = read_json(path)
        if missing := [name for name in REQUIRED if name not in record]:
            raise WarehouseError(f"has no {missing[0]}", place=str(path))
        records.append(record)
    return sorted(records, key=lambda record: _read_numbers(record["version"]), reverse=True)


def _read_numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _list_changes(record: Record) -> Record:
    """List what the page shows of a record: its first changed figures as a table, and how many more
    there are.
    """
    figures = record.get("figures_changed") or []
    names = list(dict.fromkeys(name for figure in figures for name in figure))
    rows = []
    for figure in figures[:MAX_FIGURES]:
        rows.append([_format_value(figure.get(name)) for name in names])
    return {
        **record,
        "level": record.get("level"),
        "corrections": list(map(_format_value, record.get("corrections") or [])),
        "headings": [name.replace("_", " ") for name in names],
        "rows": rows,
        "more": max(0, len(figures) - MAX_FIGURES),
    }


def _format_value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        stated = {name: each for name, each in value.items() if each not in (None, "")}
        return "; ".join(f"{name}: {_format_value(each)}" for name, each in stated.items())
    return json.dumps(value, ensure_ascii=False)
