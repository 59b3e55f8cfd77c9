"""What share of its peak each chip reaches: the ceilings that were measured, and a page of results for each chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.site.chart_pages import format_picture
from ipu_results.site.claims import VALUE, Evidence, format_computed, format_number
from ipu_results.site.compare_pages import format_slug
from ipu_results.site.html import Markup, format_table, join, link, list_items, tag
from ipu_results.site.page import Page

PATH, NAME, FOLDER = "peak.html", "roofline", "peak"
TITLE = "What share of its peak does each chip reach?"
CEILINGS = "FROM ceilings ORDER BY chip, component, operation, publisher"
SHARES = """
    SELECT s.*, r.item, greatest(coalesce(s.datasheet_share, 0), coalesce(s.measured_share, 0)) AS share
    FROM peak_shares s
    JOIN (SELECT result_id, item FROM results) r USING (result_id)
    ORDER BY chip, datasheet_share DESC NULLS LAST, document_id, table_name, row_number, result_id
"""
NOTES = (
    "Operations are counted from the network: two per multiply-accumulate, and three times as many in training.",
    "No count, no row. No stated precision or peak, no share.",
    "A share above 1 is impossible: the printed precision, or the figure, is wrong. Rule R21 flags it.",
    "“Width in doubt”: the same document prints the same throughput at another width.",
)
Row = Mapping[str, Any]


def build_peak_pages(connection: duckdb.DuckDBPyConnection, charts: Sequence[Mapping[str, Any]]) -> Iterator[Page]:
    """Yield a page for each chip with counted results, then the overview with the chart where `charts` has it."""
    evidence = Evidence(connection, ("throughput", VALUE))
    ceilings, shares = (run_query(connection, sql).to_pylist() for sql in (CEILINGS, SHARES))
    overview = []
    for chip, group in groupby(shares, key=lambda row: str(row["chip"])):
        rows = list(group)
        page = _build_chip(chip, rows, [row for row in ceilings if row["chip"] == chip], evidence)
        yield page
        overview.append(_format_best(page, rows, evidence))
    description = (
        f"Achieved FLOP/s of {len(shares)} results on {len(overview)} chips, with the peaks measured and stated."
    )
    content = join(
        tag("p", description, class_="finding"),
        *(join(tag("p", chart["finding"]), format_picture(chart)) for chart in charts if chart["name"] == NAME),
        tag("h2", "The highest share of each chip"),
        tag(
            "p",
            "Of the datasheet's peak at the printed precision, without rows that a flag or the width puts in doubt.",
        ),
        format_table(["Chip", "Results", "Highest share", "Throughput per chip", "Work"], overview),
        tag("h2", "Measured ceilings"),
        _format_ceilings(ceilings, evidence, ""),
        tag("h2", "How to read it"),
        list_items(*NOTES),
    )
    yield Page(PATH, TITLE, description, content, f"#/charts/{NAME}", card=(description,))


def _build_chip(chip: str, rows: Sequence[Row], ceilings: Sequence[Row], evidence: Evidence) -> Page:
    description = f"{len(rows)} results on {chip} with achieved FLOP/s and share of peak."
    headings = ["Work", "Machine", "Precision", "Batch", "Throughput", "TFLOP/s a chip", "Of datasheet", "Of measured"]
    headings += ["FLOP/byte", "Publisher"]
    content = join(
        tag("p", link("../peak.html", "All chips")),
        join(tag("h2", "Measured ceilings"), _format_ceilings(ceilings, evidence, "../")) if ceilings else None,
        tag("h2", "Results"),
        format_table(headings, [_format_row(row, evidence) for row in rows]),
        list_items(*NOTES),
    )
    path = f"{FOLDER}/{format_slug(chip)}.html"
    return Page(path, f"Share of peak: {chip}", description, content, f"#/charts/{NAME}", card=(description,))


def _format_row(row: Row, evidence: Evidence) -> list[str]:
    doubt = " (width in doubt)" if row["precision_doubtful"] else ""
    return [
        _describe_work(row),
        f"{row['platform']}, {row['framework'] or 'framework not stated'}",
        f"{row['effective_precision'] or 'not stated'}{doubt}",
        str(row["batch_size"] or ""),
        evidence.format_figure(row["result_id"], "throughput", f"{_format_throughput(row)} a chip", "../"),
        format_computed(row["achieved_tflops"]),
        _format_share(row["datasheet_share"], row["datasheet_peak_tflops"]),
        _format_share(row["measured_share"], row["measured_peak_tflops"]),
        format_computed(row["intensity"]),
        f"{row['publisher']} ({row['relationship'] or 'relationship not known'})",
    ]


def _format_throughput(row: Row) -> str:
    return f"{format_computed(row['throughput_per_chip'], 5)} {row['item'] or 'item'}s/s"


def _describe_work(row: Row) -> str:
    return ", ".join(filter(None, (row["network"], row["variant"], row["task"])))


def _format_share(share: float | None, peak: float | None) -> str:
    return "" if share is None else f"{format_computed(100 * share)} % of {format_computed(peak, 5)}"


def _format_best(page: Page, rows: Sequence[Row], evidence: Evidence) -> list[str]:
    """Format the line of a chip: its highest share among rows without a doubt."""
    clean = [row for row in rows if not row["errors"] and not row["precision_doubtful"] and row["datasheet_share"]]
    chip = link(page.path, rows[0]["chip"])
    if not clean:
        return [chip, str(len(rows)), "no peak or precision known", "", ""]
    best = clean[0]  # rows are ordered by share
    figure = evidence.format_figure(best["result_id"], "throughput", _format_throughput(best))
    share = _format_share(best["datasheet_share"], best["datasheet_peak_tflops"])
    return [chip, str(len(rows)), f"{share} TFLOP/s", figure, f"{_describe_work(best)}, {best['publisher']}"]


def _format_ceilings(rows: Sequence[Row], evidence: Evidence, up: str) -> Markup:
    headings = ["Chip", "Resource", "Operation", "Measured", "Stated", "Share", "Publisher"]
    cells = [
        [
            row["chip"],
            row["component"],
            row["operation"],
            evidence.format_figure(
                row["microbenchmark_id"], VALUE, f"{format_number(row['measured'])} {row['unit']}", up
            ),
            f"{format_number(row['stated'])} {row['unit']}: {row['stated_source']}" if row["stated"] else "",
            f"{format_computed(100 * row['share'])} %" if row["share"] else "",
            row["publisher"],
        ]
        for row in rows
    ]
    return format_table(headings, cells)
