"""Microbenchmarks: the data of the filtered view, loaded on that view only, and a static page for each operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

import duckdb

from ipu_results.check.rules import RULES
from ipu_results.ground.sql import run_query
from ipu_results.site.claims import VALUE, Evidence, format_unit
from ipu_results.site.compare_pages import format_slug
from ipu_results.site.encode import encode_query
from ipu_results.site.html import Markup, format_table, join, link, tag
from ipu_results.site.page import Page

PATH, FOLDER = "microbenchmarks.html", "microbenchmark"
TITLE = "Microbenchmarks"
ORDER = "ORDER BY operation, device, document_id, row_number, microbenchmark_id"
# With the figure as printed, its line in our transcription, and its place in the source, from the cell itself.
ROWS = f"""
    SELECT m.microbenchmark_id, m.device, m.operation, m.metric, m.shape, m.precision, m.statistic, m.device_count,
        c.raw_text, m.unit, m.value, m.canonical_value, m.canonical_unit, m.sdk_version, m.conditions, m.relationship,
        m.publisher, m.document_id, m.place, c.locator
    FROM microbenchmarks m
    LEFT JOIN cells c ON c.result_id = m.microbenchmark_id AND c.column_name = '{VALUE}'
    {ORDER}
"""
FLAGS = """
    SELECT f.result_id, f.rule, f.severity, f.column_name, f.message, f.suggested
    FROM flags f SEMI JOIN microbenchmarks m ON m.microbenchmark_id = f.result_id ORDER BY ALL
"""
DOCUMENTS = """
    SELECT document_id, title, publisher, published_on::VARCHAR AS published_on, url, licence, file FROM documents
    SEMI JOIN microbenchmarks USING (document_id) ORDER BY document_id
"""
Row = Mapping[str, Any]


def build_microbenchmarks(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect the figures with their printed texts and places, their documents and flags."""
    flags = run_query(connection, FLAGS).to_pylist()
    titles = {rule.id: rule.title for rule in RULES}
    return {
        "rows": encode_query(connection, ROWS, compact=True),
        "documents": run_query(connection, DOCUMENTS).to_pylist(),
        "flags": [{**flag, "title": titles[flag["rule"]]} for flag in flags],
    }


def build_microbenchmark_pages(connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    """Yield a page for each operation, then the list of all."""
    evidence = Evidence(connection, ())
    documents = {row["document_id"]: row for row in run_query(connection, DOCUMENTS).to_pylist()}
    rows = sorted(run_query(connection, ROWS).to_pylist(), key=_name_page)
    lines = []
    for path, group in groupby(rows, key=_name_page):  # STREAM Triad and STREAM triad share a page
        own = list(group)
        operation = _join({row["operation"] for row in own})
        page = _build_operation(path, operation, own, documents, evidence)
        yield page
        devices, metrics = ({row[name] for row in own} for name in ("device", "metric"))
        sources = sorted({documents[row["document_id"]]["publisher"] for row in own})
        count = f"{len(own):,}"
        lines.append([link(page.path, operation), count, _join(devices), _join(metrics), ", ".join(sources)])
    description = (
        f"{len(rows):,} figures that are not a network's, of {len(lines)} operations, each with page and table."
    )
    content = join(
        tag("p", description, class_="finding"),
        tag(
            "p", link("index.html#/microbenchmarks", "Filter them by device, operation and metric"), " (needs scripts)."
        ),
        format_table(["Operation", "Figures", "Devices", "Metrics", "Publishers"], lines),
    )
    yield Page(PATH, TITLE, description, content, "#/microbenchmarks", card=(description,))


def _name_page(row: Row) -> str:
    return f"{FOLDER}/{format_slug(row['operation'])}.html"


def _join(words: set[Any]) -> str:
    return ", ".join(sorted(map(str, words)))


def _build_operation(
    path: str, operation: str, rows: Sequence[Row], documents: Mapping[str, Row], evidence: Evidence
) -> Page:
    ordered = sorted(rows, key=lambda row: str(row["document_id"]))
    tables = [
        join(
            tag("h2", documents[name]["publisher"]),
            tag("p", link(documents[name]["url"] or "", documents[name]["title"])),
            _format_rows(list(own), evidence),
        )
        for name, own in groupby(ordered, key=lambda row: str(row["document_id"]))
    ]
    description = f"{len(rows):,} figures of {operation} on {_join({row['device'] for row in rows})}."
    names = sorted({row["operation"] for row in rows})
    live = f"#/microbenchmarks?{urlencode({'operation': names}, doseq=True)}"
    content = join(tag("p", link(f"../{PATH}", "All microbenchmarks")), *tables)
    return Page(path, f"Microbenchmark: {operation}", description, content, live, card=(description,))


def _format_rows(rows: Sequence[Row], evidence: Evidence) -> Markup:
    headings = ["Device", "What", "Figure as printed", "Place in the source"]
    cells = [
        [
            row["device"] if (row["device_count"] or 1) == 1 else f"{row['device_count']} × {row['device']}",
            ", ".join(
                filter(None, (row[name] for name in ("metric", "statistic", "precision", "shape", "conditions")))
            ),
            join(_link(row), evidence.format_flags(row["microbenchmark_id"])),
            row["place"],
        ]
        for row in rows
    ]
    return format_table(headings, cells)


def _link(row: Row) -> Markup:
    address = f"../index.html#/microbenchmarks?show={row['microbenchmark_id']}"
    return link(address, f"{row['raw_text'] or row['value']} {format_unit(row['unit'])}".strip())
