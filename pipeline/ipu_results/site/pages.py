"""All static files of the site: the pages, their previews, and what machines read."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

from ipu_results.comparison.comparable import MEASURES, Measure
from ipu_results.comparison.measurement import COMPARISON
from ipu_results.errors import WarehouseError
from ipu_results.ground.charts import render_specification
from ipu_results.ground.files import CHECKOUT
from ipu_results.ground.sql import run_query
from ipu_results.ground.text import format_count
from ipu_results.release.files import read_json
from ipu_results.schema import TABLES
from ipu_results.site import evidence
from ipu_results.site.charts import format_csv
from ipu_results.site.citations import build_result_files, format_schema
from ipu_results.site.page import Page, build_page, draw_card, format_page, format_slug, render
from ipu_results.store.files import get_parquet_name

RECORDS = CHECKOUT / "docs" / "releases"
REQUIRED = ("version", "published_on", "summary")  # of the record of a release
MAX_FIGURES = 100  # of a release, in the table of what changed
CHART_SCALE = (
    1.0  # pixels of a preview per unit of the drawing; most sites show it smaller than that
)
# The lists by their importance to a reader who sees nothing else.
LISTS = [
    "replications",
    "energy",
    "peak",
    "microbenchmarks",
    "charts",
    "claims",
    "compare",
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
    drawn = {
        chart["name"]: render_specification(chart["specification"], ".svg") for chart in charts
    }
    by_name = {
        name: {**chart, "size": _read_size(drawn[name])}
        for chart in charts
        if (name := chart["name"])
    }
    charts = [*by_name.values()]
    pages = [
        *(
            build_page(
                "chart.html", f"chart/{name}.html", card=(), image=f"chart/{name}.png", chart=chart
            )
            for name, chart in by_name.items()
        ),
        build_page("charts.html", "charts.html", card=(), charts=charts),
        *evidence.build_claim_pages(connection),
        *build_compare_pages(connection),
        *evidence.build_replication_pages(connection, charts),
        evidence.build_energy_page(connection),
        *evidence.build_peak_pages(connection, charts),
        *evidence.build_microbenchmark_pages(connection),
        build_page("downloads.html", "downloads.html", card=(), downloads=downloads),
        build_page(
            "changed.html",
            "changed.html",
            card=(),
            records=[*map(_list_changes, history)],
            version=version,
        ),
    ]
    by_path = {page.path: page for page in pages}
    lists = [by_path[f"{name}.html"] for name in LISTS]
    files: dict[str, str | bytes] = {
        f"r/{key}.json": text for key, text in build_result_files(connection, version)
    }
    files["r/schema.json"] = format_schema()
    for name, chart in by_name.items():
        files[f"chart/{name}.csv"] = format_csv(chart)
        files[f"chart/{name}.svg"] = drawn[name]
    if base_url:
        files |= {
            _name_preview(page): draw_card(page.title, page.card) for page in pages if page.card
        }
        for name, chart in by_name.items():
            files[f"chart/{name}.png"] = render_specification(
                chart["specification"], ".png", CHART_SCALE
            )
        files["sitemap.xml"] = render("sitemap.xml", pages=pages, base_url=base_url)
        files["feed.xml"] = render("feed.xml", records=history, base_url=base_url)
    files["llms.txt"] = render("llms.txt", pages=lists, files=tables, base_url=base_url)
    files["data/noscript.html"] = render("home.html", start=start, pages=lists)
    return files | {page.path: format_page(page, base_url, _name_preview(page)) for page in pages}


def _read_size(svg: bytes) -> list[str]:
    """Return width and height of an image, which keep room for it until it is loaded."""
    return re.findall(r'\b(?:width|height)="([^"]+)"', svg.partition(b">")[0].decode())


def _name_preview(page: Page) -> str:
    return page.image or (f"preview/{page.path.removesuffix('.html')}.jpg" if page.card else "")


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


# A page for each two machines that share tests, by the rules of the interactive comparison

MIN_TESTS = 3  # shared by two machines that have a page: fewer say little about either
CONDITIONS: Mapping[str, str] = COMPARISON["conditions"]
SHOWN = (
    "platform",
    "result_id",
    "item",
    "network",
    "task",
    "phase",
    "sequence_length",
    "division",
    *CONDITIONS,
)
Row = dict[str, Any]


def build_compare_pages(connection: duckdb.DuckDBPyConnection) -> Iterator[Page]:
    """Yield a page for each two machines with MIN_TESTS shared tests or more, then the list of all."""
    machines: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for measure in MEASURES:
        for row in run_query(connection, _format_query(measure)).to_pylist():
            machines[row["left"]["platform"], row["right"]["platform"]].append(
                {**row, "measure": measure}
            )
    pages = [
        _build_comparison_page(rows)
        for _, rows in sorted(machines.items())
        if len(rows) >= MIN_TESTS
    ]
    yield from pages
    yield build_page("compare.html", "compare.html", card=(), pages=pages)


def _format_query(measure: Measure) -> str:
    """Format the statement that selects one pair of rows for each test that two machines share."""
    conditions = _list_conditions(measure)
    differences = " + ".join(f"(l.{name} IS DISTINCT FROM r.{name})::INT" for name in conditions)
    same = " AND ".join(f"l.{name} IS NOT DISTINCT FROM r.{name}" for name in measure.test)
    tests = ", ".join(f"l.{name}" for name in measure.test)
    better = "DESC" if measure.higher_is_better else "ASC"
    return f"""
        WITH machines AS (SELECT DISTINCT platform FROM detail.record WHERE origin = 'published'),
        comparable AS (
            SELECT {", ".join(dict.fromkeys((*SHOWN, *measure.test)))}, {measure.column} AS figure
            FROM detail.record r JOIN machines USING (platform) WHERE {measure.format_condition()}
        )
        SELECT l AS "left", r AS "right"
        FROM comparable l JOIN comparable r ON l.platform < r.platform AND {same}
        QUALIFY row_number() OVER (
            PARTITION BY l.platform, r.platform, {tests}
            ORDER BY {differences}, l.figure {better}, r.figure {better}, l.result_id, r.result_id
        ) = 1
        ORDER BY l.platform, l.figure, l.result_id, r.platform, r.figure, r.result_id
    """


def _list_conditions(measure: Measure) -> list[str]:
    """List the conditions that may differ in a pair; where a latency is timed says nothing of a
    throughput.
    """
    others = set() if measure.column == "latency_ms" else {"latency_scope"}
    return [name for name in CONDITIONS if name not in {*measure.test, *others}]


def _build_comparison_page(rows: list[Row]) -> Page:
    """Build the page of two machines, the one with the better figures in the first measure that
    both have first.
    """
    better = (
        median(_compute_ratio(row) for row in rows if row["measure"] is rows[0]["measure"]) >= 1
    )
    ordered = (
        rows if better else [{**row, "left": row["right"], "right": row["left"]} for row in rows]
    )
    left, right = (ordered[0][side]["platform"] for side in ("left", "right"))
    groups = [
        (measure, [row for row in ordered if row["measure"] is measure]) for measure in MEASURES
    ]
    return build_page(
        "comparison.html",
        f"compare/{format_slug(left)}-vs-{format_slug(right)}.html",
        left=left,
        right=right,
        tables=[_build_measure_table(measure, own) for measure, own in groups if own],
        same_chips=all(row["left"]["chips"] == row["right"]["chips"] for row in rows),
    )


def _build_measure_table(measure: Measure, rows: Sequence[Row]) -> dict[str, Any]:
    """Collect the rows of one measure, the highest ratio first, with their ratios, tests and
    differences.
    """
    shown = sorted(
        ({**row, "ratio": _compute_ratio(row)} for row in rows),
        key=lambda row: -float(row["ratio"]),
    )
    for row in shown:
        left, right = row["left"], row["right"]
        details = [
            left["task"],
            left["phase"],
            f"{left['sequence_length']} tokens" if left["sequence_length"] else None,
        ]
        details += [f"batch {left['batch_size']}"] if measure.column == "latency_ms" else []
        details += [left["division"]] if measure.column == "minutes" else []
        row["test"] = f"{left['network']}, {', '.join(filter(None, details))}"
        names = [name for name in _list_conditions(measure) if left[name] != right[name]]
        row["differences"] = [
            f"{CONDITIONS[name]} {left[name] or 'unknown'} / {right[name] or 'unknown'}"
            for name in names
        ]
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
