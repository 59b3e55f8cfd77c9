"""All static files of the site: the pages, their previews, and what machines read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from ipu_results.doors.charts import render_specification
from ipu_results.doors.site import evidence
from ipu_results.doors.site.charts import format_csv
from ipu_results.doors.site.page import build_page, format_page, render
from ipu_results.errors import WarehouseError
from ipu_results.kit.files import CHECKOUT
from ipu_results.record.store.files import get_parquet_name
from ipu_results.release.files import read_json
from ipu_results.schema import TABLES

RECORDS = CHECKOUT / "docs" / "releases"
REQUIRED = ("version", "published_on", "summary")  # of the record of a release
MAX_FIGURES = 100  # of a release, in the table of what changed
CHART_SCALE = 1.0  # pixels of a preview per unit of the drawing: most sites show it smaller
# The lists by their importance to a reader who sees nothing else.
LISTS = [
    "replications",
    "energy",
    "peak",
    "microbenchmarks",
    "charts",
    "claims",
    "rules",
    "downloads",
    "changed",
]


def build_pages(
    connection: duckdb.DuckDBPyConnection,
    charts: Sequence[dict[str, Any]],
    start: Mapping[str, Any],
    base_url: str = "",
    records: Path = RECORDS,
    downloads: Sequence[Any] = (),
) -> dict[str, str | bytes]:
    """Build the static files of the site by their place in it; `start` is what the start page
    shows.

    Absolute addresses, and with them `sitemap.xml`, `feed.xml` and the preview images, need a
    `base_url`. Raises WarehouseError for a base_url that is not an address, and for a broken record
    of a release.
    """
    version = start["build"]["version"]
    if base_url and not base_url.startswith(("https://", "http://")):
        raise WarehouseError(
            f"base URL {base_url!r} is not an http address; write https://example.org/ipu-results/"
        )
    base_url = f"{base_url.rstrip('/')}/" if base_url else ""
    history = read_records(records)
    tables = [get_parquet_name(table.sql_name) for table in TABLES]
    pictures = {chart["name"]: _sign(chart, start) for chart in charts}
    drawn = {name: render_specification(picture, ".svg") for name, picture in pictures.items()}
    by_name = {
        name: {**chart, "size": _read_size(drawn[name])}
        for chart in charts
        if (name := chart["name"])
    }
    charts = [*by_name.values()]
    pages = [
        *(
            build_page("chart.html", f"chart/{name}.html", image=f"chart/{name}.png", chart=chart)
            for name, chart in by_name.items()
        ),
        build_page("charts.html", "charts.html", charts=charts),
        *evidence.build_claim_pages(connection),
        *evidence.build_replication_pages(connection, charts),
        evidence.build_energy_page(connection),
        *evidence.build_peak_pages(connection, charts),
        *evidence.build_microbenchmark_pages(connection),
        evidence.build_rules_page(connection),
        build_page("downloads.html", "downloads.html", downloads=downloads),
        build_page(
            "changed.html",
            "changed.html",
            records=[*map(_list_changes, history)],
            version=version,
        ),
    ]
    by_path = {page.path: page for page in pages}
    lists = [by_path[f"{name}.html"] for name in LISTS]
    files: dict[str, str | bytes] = {}
    for name, chart in by_name.items():
        files[f"chart/{name}.csv"] = format_csv(chart)
        files[f"chart/{name}.svg"] = drawn[name]
    if base_url:
        for name, picture in pictures.items():
            files[f"chart/{name}.png"] = render_specification(picture, ".png", CHART_SCALE)
        files["sitemap.xml"] = render("sitemap.xml", pages=pages, base_url=base_url)
        files["feed.xml"] = render("feed.xml", records=history, base_url=base_url)
    files["llms.txt"] = render("llms.txt", pages=lists, files=tables, base_url=base_url)
    files["data/noscript.html"] = render("home.html", start=start, pages=lists)
    return files | {page.path: format_page(page, base_url) for page in pages}


def _sign(chart: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
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


def read_records(folder: Path = RECORDS) -> list[dict[str, Any]]:
    """Read the records of all releases, the newest first.

    Raises WarehouseError for a broken one.
    """
    records = []
    for path in folder.glob("*.json"):
        record = read_json(path)
        if missing := [name for name in REQUIRED if name not in record]:
            raise WarehouseError(f"has no {missing[0]}", place=str(path))
        records.append(record)
    return sorted(
        records, key=lambda record: [*map(int, re.findall(r"\d+", record["version"]))], reverse=True
    )


def _list_changes(record: Mapping[str, Any]) -> dict[str, Any]:
    """List what the page shows of a record: its first changed figures as a table, and how many more
    there are.
    """
    figures = record.get("figures_changed") or []
    names = list(dict.fromkeys(name for figure in figures for name in figure))
    return {
        **record,
        "level": record.get("level"),
        "corrections": [_format_value(each) for each in record.get("corrections") or []],
        "headings": [name.replace("_", " ") for name in names],
        "rows": [
            [_format_value(figure.get(name)) for name in names] for figure in figures[:MAX_FIGURES]
        ],
        "more": max(0, len(figures) - MAX_FIGURES),
    }


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(
            f"{name}: {_format_value(each)}"
            for name, each in value.items()
            if each not in (None, "")
        )
    return (
        ""
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False)
    )
