"""Build the static pages of the site: text that needs no script, previews, and what machines read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from ipu_results.errors import WarehouseError
from ipu_results.ground.charts import render_specification
from ipu_results.schema import TABLES
from ipu_results.site.changed import RECORDS, build_changed_page, read_records
from ipu_results.site.chart_pages import build_chart_pages, format_csv
from ipu_results.site.claim_pages import build_claim_pages
from ipu_results.site.compare_pages import build_compare_pages
from ipu_results.site.energy_page import build_energy_page
from ipu_results.site.feed import format_feed, format_guide, format_sitemap
from ipu_results.site.html import format_page, format_table, join, link, list_items, tag
from ipu_results.site.microbenchmarks import build_microbenchmark_pages
from ipu_results.site.page import Page
from ipu_results.site.peak_pages import build_peak_pages
from ipu_results.site.preview import draw_card, draw_chart
from ipu_results.site.replication_page import build_replication_pages
from ipu_results.site.results import build_result_files, format_schema
from ipu_results.store.files import get_parquet_name

PREVIEWS = "preview"
LISTS = (
    *("replications.html", "energy.html", "peak.html", "microbenchmarks.html", "charts.html", "claims.html"),
    *("compare.html", "downloads.html", "changed.html"),
)
HOME = (
    "The open, verified record of how fast Graphcore's IPU, an AI processor, was: every figure that was printed, with "
    "the place it was printed at, claims recomputed, and doubtful figures flagged."
)


def build_pages(
    connection: duckdb.DuckDBPyConnection,
    charts: Sequence[dict[str, Any]],
    start: Mapping[str, Any],
    base_url: str = "",
    records: Path = RECORDS,
) -> dict[str, str | bytes]:
    """Build the static files of the site by their place in it; `start` is what the start page shows.

    Absolute addresses, and with them `sitemap.xml`, `feed.xml` and the preview images, need a `base_url`. Raises
    WarehouseError for a base_url that is not an address, and for a broken record of a release.
    """
    base_url, version = _check_base_url(base_url), start["build"]["version"]
    history = read_records(records)
    names = [get_parquet_name(table.name) for table in TABLES]
    pages = [*build_chart_pages(charts), *build_claim_pages(connection), *build_compare_pages(connection)]
    pages += [*build_replication_pages(connection, charts), build_energy_page(connection)]
    pages += [*build_peak_pages(connection, charts), *build_microbenchmark_pages(connection)]
    pages += [_build_downloads(names), build_changed_page(history, version)]
    lists = sorted((page for page in pages if page.path in LISTS), key=lambda page: LISTS.index(page.path))
    results = build_result_files(connection, version)
    files: dict[str, str | bytes] = {f"r/{key}.json": text for key, text in results}
    files["r/schema.json"] = format_schema()
    for chart in charts:
        files[f"chart/{chart['name']}.csv"] = format_csv(chart)
        files[f"chart/{chart['name']}.svg"] = render_specification(chart["specification"], ".svg")
    if base_url:
        files |= _draw_previews(pages, charts)
        files["sitemap.xml"] = format_sitemap(["", *(page.path for page in pages)], base_url)
        files["feed.xml"] = format_feed(history, base_url)
    files["llms.txt"] = format_guide(lists, names, base_url)
    files["data/noscript.html"] = _format_home(start, lists)
    return files | {page.path: _format(page, base_url) for page in pages}


def _check_base_url(base_url: str) -> str:
    if base_url and not base_url.startswith(("https://", "http://")):
        raise WarehouseError(f"base URL {base_url!r} is not an http address; write https://example.org/ipu-results/")
    return f"{base_url.rstrip('/')}/" if base_url else ""


def _name_preview(page: Page) -> str:
    return page.image or (f"{PREVIEWS}/{page.path.removesuffix('.html')}.jpg" if page.card else "")


def _draw_previews(pages: Iterable[Page], charts: Iterable[dict[str, Any]]) -> dict[str, bytes]:
    cards = {_name_preview(page): draw_card(page.title, page.card) for page in pages if page.card}
    return cards | {f"chart/{chart['name']}.png": draw_chart(chart["specification"]) for chart in charts}


def _format(page: Page, base_url: str) -> str:
    image = _name_preview(page)
    return format_page(
        page.path, page.title, page.description, page.content, live=page.live, base_url=base_url, image=image
    )


def _build_downloads(names: Iterable[str]) -> Page:
    tables = {table.name: table for table in TABLES}
    rows = [[link(f"data/parquet/{name}", name), tables[name.removesuffix(".parquet")].description] for name in names]
    content = join(
        tag(
            "p", "Every table is a Parquet file, which pandas, Polars, R, DuckDB and spreadsheets with an add-on read."
        ),
        format_table(["File", "What it holds"], rows),
        tag(
            "p",
            "Each result is a JSON file as well, r/ and its id, described by ",
            link("r/schema.json", "a schema"),
            ".",
        ),
    )
    return Page(
        "downloads.html", "Downloads", f"The {len(rows)} tables of the dataset as Parquet files.", content, "#/"
    )


def _format_home(start: Mapping[str, Any], lists: Iterable[Page]) -> str:
    """Format what a browser without scripts shows instead of the interactive page: the same findings."""
    build = start["build"]
    state = f"release {build['version']}" if build["version"] else "unreleased"
    findings = [
        join(tag("strong", f"{finding['title']} {finding['figure']}. "), f"{finding['text']} ", _link_static(finding))
        for finding in start["findings"]
    ]
    return tag(
        "main",
        tag("h1", "ipu-results"),
        tag("p", HOME),
        tag("p", f"As of {build['as_of']}, {state}. ", link(start["repository"], "Source code and documents"), "."),
        tag("h2", "What was found"),
        list_items(*findings),
        tag("h2", "Pages that need no scripts"),
        list_items(*(join(link(page.path, page.title), f": {page.description}") for page in lists)),
        class_="noscript",
    )


def _link_static(finding: Mapping[str, Any]) -> str:
    """Link the static page of the view that a finding links, where there is one."""
    view, _, name = finding["link"].removeprefix("#/").partition("/")
    folders = {"charts": "chart", "claims": "claim"}
    return link(f"{folders[view]}/{name}.html", finding["link_text"]) if name and view in folders else ""
