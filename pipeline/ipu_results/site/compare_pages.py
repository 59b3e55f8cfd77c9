"""A static page for each two machines that share tests, by the rules of the interactive comparison."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any
from urllib.parse import urlencode

import duckdb

from ipu_results.comparison.comparable import MEASURES, Measure
from ipu_results.comparison.measurement import COMPARISON
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_count
from ipu_results.site.html import format_table, join, link, list_items, tag
from ipu_results.site.page import Page

MIN_TESTS = 3  # shared by two machines that have a page
DIGITS, MAX_DIGITS_BELOW = 3, 100  # of a ratio, which is whole from there on


Pair = tuple[Measure, dict[str, Any]]
CONDITIONS: Mapping[str, str] = COMPARISON["conditions"]
RULES = (
    "Two figures are compared if network, task, training phase, sequence length, sparsity and unit are the same.",
    "Latencies need the same batch size and basis as well.",
    "MLPerf minutes are compared with MLPerf minutes of the same network, division and dataset only.",
    "Of all pairs of one test, the one with the fewest differences is shown. What differs can be the reason.",
    "Emulated and submitted results, rows with an error flag or a doubt, and repeated rows are left out.",
)


def build_compare_pages(connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    """Yield a page for each two machines with MIN_TESTS shared tests or more, then the list of all."""
    pairs: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for measure in MEASURES:
        for row in run_query(connection, _format_query(measure)).to_pylist():
            pairs[row["left_platform"], row["right_platform"]].append((measure, row))
    ordered = (_order(left, right, rows) for (left, right), rows in sorted(pairs.items()) if len(rows) >= MIN_TESTS)
    pages = [_build_page(left, right, rows) for left, right, rows in ordered]
    yield from pages
    items = [join(link(page.path, page.title), f" {page.description}") for page in pages]
    description = f"{len(pages)} pairs of machines side by side on the tests that they share."
    yield Page("compare.html", "Machines compared", description, list_items(*items), "#/compare")


def _order(left: str, right: str, rows: list[Pair]) -> tuple[str, str, list[Pair]]:
    """Put the machine with the better figures on the left, by the first measure that both have."""
    first = rows[0][0]
    if median(_compute_ratio(measure, row) for measure, row in rows if measure is first) >= 1:
        return left, right, rows
    names = {"left": "right", "right": "left"}
    swapped = [
        (measure, {f"{names[side]}_{column}": row[f"{side}_{column}"] for side in names for column in _list_columns()})
        for measure, row in rows
    ]
    return right, left, swapped


def _format_query(measure: Measure) -> str:
    """Format the statement that selects one pair of rows for each test that two machines share."""
    better = "DESC" if measure.higher_is_better else "ASC"
    conditions = [name for name in CONDITIONS if name not in measure.test]
    differences = " + ".join(f"(l.{name} IS DISTINCT FROM r.{name})::INT" for name in conditions)
    same = " AND ".join(f"l.{name} IS NOT DISTINCT FROM r.{name}" for name in measure.test)
    sides = (
        f"{side}.{name} AS {word}_{name}" for side, word in (("l", "left"), ("r", "right")) for name in _list_columns()
    )
    tests = ", ".join(f"l.{name}" for name in measure.test)
    return f"""
        WITH machines AS (SELECT DISTINCT platform FROM record WHERE origin = 'published'),
        comparable AS (
            SELECT r.*, {measure.column} AS figure FROM record r JOIN machines USING (platform)
            WHERE {measure.format_condition()}
        )
        SELECT {", ".join(sides)}
        FROM comparable l JOIN comparable r ON l.platform < r.platform AND {same}
        QUALIFY row_number() OVER (
            PARTITION BY l.platform, r.platform, {tests}
            ORDER BY {differences}, l.figure {better}, r.figure {better}, l.result_id, r.result_id
        ) = 1
        ORDER BY ALL
    """


def _list_columns() -> list[str]:
    names = ["platform", "figure", "result_id", "item", "network", "task", "phase", "sequence_length", "division"]
    return [*names, *CONDITIONS]


def _compute_ratio(measure: Measure, row: Mapping[str, Any]) -> float:
    """Compute how many times as good the figure of the left machine is."""
    left, right = row["left_figure"], row["right_figure"]
    return float(left / right if measure.higher_is_better else right / left)


def _build_page(left: str, right: str, rows: list[Pair]) -> Page:
    tables = []
    for measure in MEASURES:
        shown = [row for each, row in rows if each is measure]
        if shown:
            ordered = sorted(shown, key=lambda row: -_compute_ratio(measure, row))
            headings = ["Test", left, right, "Times as fast", "What differs"]
            tables += [tag("h2", measure.title), format_table(headings, [_format_row(measure, row) for row in ordered])]
    content = join(*tables, tag("h2", "What is compared, and what is not"), list_items(*RULES))
    path = f"compare/{format_slug(left)}-vs-{format_slug(right)}.html"
    title, description = f"{left} against {right}", _describe(left, right, rows)
    query = f"#/compare?{urlencode({'a': left, 'b': right})}"
    return Page(path, title, description, join(tag("p", description), content), query, card=(description,))


def _describe(left: str, right: str, rows: list[Pair]) -> str:
    parts = []
    for measure in MEASURES:
        ratios = sorted(_compute_ratio(measure, row) for each, row in rows if each is measure)
        if ratios:
            ends = f" ({format_ratio(ratios[0])} to {format_ratio(ratios[-1])})" if len(ratios) > 1 else ""
            tests = format_count(len(ratios), "test")
            parts.append(f"{measure.title.lower()} {format_ratio(median(ratios))}× as good, median of {tests}{ends}")
    same = all(row["left_chips"] == row["right_chips"] for _, row in rows)
    note = "" if same else " The machines have different numbers of chips."
    return f"{left} over {right}: {'; '.join(parts)}.{note}"


def format_ratio(ratio: float) -> str:
    """Format a ratio, with three digits below 100."""
    return f"{ratio:#.{DIGITS}g}" if ratio < MAX_DIGITS_BELOW else f"{ratio:,.0f}"


def _format_row(measure: Measure, row: Mapping[str, Any]) -> list[str]:
    tokens = row["left_sequence_length"]
    details = [row["left_task"], row["left_phase"], f"{tokens} tokens" if tokens else None]
    details += [f"batch {row['left_batch_size']}"] if measure.column == "latency_ms" else []
    details += [row["left_division"]] if measure.column == "minutes" else []
    test = f"{row['left_network']}, {', '.join(filter(None, details))}"
    return [
        test,
        _format_figure(measure, row, "left"),
        _format_figure(measure, row, "right"),
        f"{format_ratio(_compute_ratio(measure, row))}×",
        "; ".join(_list_differences(measure, row)) or "nothing that is known",
    ]


def _format_figure(measure: Measure, row: Mapping[str, Any], side: str) -> str:
    figure = f"{row[f'{side}_figure']:,.15g}"
    unit = f"{row[f'{side}_item']}s/s" if measure.column == "throughput" and row[f"{side}_item"] else measure.unit
    return link(f"../r/{row[f'{side}_result_id']}.json", f"{figure} {unit}")


def _list_differences(measure: Measure, row: Mapping[str, Any]) -> list[str]:
    names = [name for name in CONDITIONS if name not in measure.test and row[f"left_{name}"] != row[f"right_{name}"]]
    return [
        f"{CONDITIONS[name]} {row[f'left_{name}'] or 'unknown'} / {row[f'right_{name}'] or 'unknown'}" for name in names
    ]


def format_slug(name: str) -> str:
    """Format a name as part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
