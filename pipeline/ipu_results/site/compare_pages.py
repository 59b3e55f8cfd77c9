"""A static page for each two machines that share tests, by the rules of the interactive comparison."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import duckdb

from ipu_results.comparison.comparable import MEASURES, Measure
from ipu_results.comparison.measurement import COMPARISON
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_count
from ipu_results.site.page import Page, build_page, format_slug

MIN_TESTS = 3  # shared by two machines that have a page: fewer say little about either


CONDITIONS: Mapping[str, str] = COMPARISON["conditions"]
SHOWN = ("platform", "result_id", "item", "network", "task", "phase", "sequence_length", "division", *CONDITIONS)
Row = dict[str, Any]


def build_compare_pages(connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    """Yield a page for each two machines with MIN_TESTS shared tests or more, then the list of all."""
    machines: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for measure in MEASURES:
        for row in run_query(connection, _format_query(measure)).to_pylist():
            machines[row["left"]["platform"], row["right"]["platform"]].append({**row, "measure": measure})
    pages = [_build_page(rows) for _, rows in sorted(machines.items()) if len(rows) >= MIN_TESTS]
    yield from pages
    yield build_page("compare.html", "compare.html", card=(), pages=pages)


def _format_query(measure: Measure) -> str:
    """Format the statement that selects one pair of rows for each test that two machines share."""
    conditions = [name for name in CONDITIONS if name not in measure.test]
    differences = " + ".join(f"(l.{name} IS DISTINCT FROM r.{name})::INT" for name in conditions)
    same = " AND ".join(f"l.{name} IS NOT DISTINCT FROM r.{name}" for name in measure.test)
    tests = ", ".join(f"l.{name}" for name in measure.test)
    better = "DESC" if measure.higher_is_better else "ASC"
    return f"""
        WITH machines AS (SELECT DISTINCT platform FROM record WHERE origin = 'published'),
        comparable AS (
            SELECT {", ".join(dict.fromkeys((*SHOWN, *measure.test)))}, {measure.column} AS figure
            FROM record r JOIN machines USING (platform) WHERE {measure.format_condition()}
        )
        SELECT l AS "left", r AS "right"
        FROM comparable l JOIN comparable r ON l.platform < r.platform AND {same}
        QUALIFY row_number() OVER (
            PARTITION BY l.platform, r.platform, {tests}
            ORDER BY {differences}, l.figure {better}, r.figure {better}, l.result_id, r.result_id
        ) = 1
        ORDER BY l.platform, l.figure, l.result_id, r.platform, r.figure, r.result_id
    """


def _build_page(rows: list[Row]) -> Page:
    """Build the page of two machines, the one with the better figures in the first measure that both have first."""
    better = median(_compute_ratio(row) for row in rows if row["measure"] is rows[0]["measure"]) >= 1
    ordered = rows if better else [{**row, "left": row["right"], "right": row["left"]} for row in rows]
    left, right = (ordered[0][side]["platform"] for side in ("left", "right"))
    groups = [(measure, [row for row in ordered if row["measure"] is measure]) for measure in MEASURES]
    return build_page(
        "comparison.html",
        f"compare/{format_slug(left)}-vs-{format_slug(right)}.html",
        left=left,
        right=right,
        tables=[_build_table(measure, own) for measure, own in groups if own],
        same_chips=all(row["left"]["chips"] == row["right"]["chips"] for row in rows),
    )


def _build_table(measure: Measure, rows: Sequence[Row]) -> dict[str, Any]:
    """Collect the rows of one measure, the highest ratio first, with their ratios, tests and differences."""
    shown = sorted(({**row, "ratio": _compute_ratio(row)} for row in rows), key=lambda row: -float(row["ratio"]))
    for row in shown:
        row |= {"test": _describe_test(measure, row["left"]), "differences": _list_differences(row)}
    return {
        "measure": measure,
        "rows": shown,
        "tests": format_count(len(shown), "test"),
        "median": median(row["ratio"] for row in shown),
        "low": shown[-1]["ratio"],
        "high": shown[0]["ratio"],
    }


def _compute_ratio(row: Row) -> float:
    """Compute how many times as good the figure of the left machine is."""
    left, right = row["left"]["figure"], row["right"]["figure"]
    return float(left / right if row["measure"].higher_is_better else right / left)


def _describe_test(measure: Measure, row: Row) -> str:
    details = [row["task"], row["phase"], f"{row['sequence_length']} tokens" if row["sequence_length"] else None]
    details += [f"batch {row['batch_size']}"] if measure.column == "latency_ms" else []
    details += [row["division"]] if measure.column == "minutes" else []
    return f"{row['network']}, {', '.join(filter(None, details))}"


def _list_differences(row: Row) -> list[str]:
    left, right = row["left"], row["right"]
    names = [name for name in CONDITIONS if name not in row["measure"].test and left[name] != right[name]]
    return [f"{CONDITIONS[name]} {left[name] or 'unknown'} / {right[name] or 'unknown'}" for name in names]
