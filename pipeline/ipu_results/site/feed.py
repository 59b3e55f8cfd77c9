"""What machines read about the site: the map of pages, the feed of releases, and a guide for language models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from ipu_results.site.page import Page

DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'
FEED_TITLE = "ipu-results: releases"
Record = Mapping[str, Any]


def format_sitemap(paths: Iterable[str], base_url: str) -> str:
    """Format `sitemap.xml`, which needs absolute addresses."""
    lines = "".join(f"<url><loc>{escape(f'{base_url}{path}')}</loc></url>\n" for path in paths)
    return f'{DECLARATION}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{lines}</urlset>\n'


def format_feed(records: Sequence[Record], base_url: str) -> str:
    """Format `feed.xml`, an Atom feed with an entry for each release, the newest first."""
    newest = records[0]["published_on"] if records else "1970-01-01"
    head = (
        f"<title>{escape(FEED_TITLE)}</title><id>{escape(base_url)}</id>"
        f"<updated>{_format_time(newest)}</updated><author><name>ipu-results</name></author>"
        f'<link rel="self" href={quoteattr(f"{base_url}feed.xml")}/><link href={quoteattr(base_url)}/>'
    )
    entries = "\n".join(_format_entry(record, base_url) for record in records)
    return f'{DECLARATION}<feed xmlns="http://www.w3.org/2005/Atom">\n{head}\n{entries}\n</feed>\n'


def _format_entry(record: Record, base_url: str) -> str:
    address = f"{base_url}changed.html#{record['version']}"
    return (
        f"<entry><title>Release {escape(record['version'])}</title><id>{escape(address)}</id>"
        f"<link href={quoteattr(address)}/><updated>{_format_time(record['published_on'])}</updated>"
        f"<summary>{escape(' '.join(record['summary']))}</summary></entry>"
    )


def _format_time(day: str) -> str:
    return f"{escape(day)}T00:00:00Z"


def format_guide(pages: Sequence[Page], files: Sequence[str], base_url: str) -> str:
    """Format `llms.txt`: what the site is, its lists, and where the data are."""
    lists = "\n".join(f"- [{page.title}]({base_url}{page.path}): {page.description}" for page in pages)
    tables = ", ".join(files)
    return (
        "# ipu-results\n\n"
        "> The open, verified record of Graphcore IPU performance: every printed figure with the place it was printed "
        "at, claims recomputed from these figures, and flags for doubtful ones.\n\n"
        "Figures with origin `emulated` are calculated, not measured. Rows with error flags are kept as printed and "
        "should not be quoted without their flag. Quote a figure with its unit, machine, batch size and source.\n\n"
        f"## Pages\n\n{lists}\n\n"
        "## Data\n\n"
        f"- [One JSON file per result]({base_url}r/schema.json): r/<result_id>.json, described by this JSON Schema\n"
        f"- Parquet files in {base_url}data/parquet/: {tables}\n"
    )
