"""The pages on what others measured: every row of their views, exact, with its place, flags and
reason.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from typing import Any

import duckdb
import pytest
from ipu_results.doors.site.evidence import (
    _describe_scope,
    build_energy_page,
    build_microbenchmark_pages,
    build_peak_pages,
    build_replication_pages,
)
from ipu_results.doors.site.page import Page, format_number
from ipu_results.kit.sql import run_query

from tests.conftest import list_rows

CHARTS = [
    {"name": name, "finding": f"F {name}.", "caveats": ["C."], "size": ["1", "1"]}
    for name in ("replications", "roofline", "sdk_effect")
]


FIGURE = re.compile(r'(?:show=|\.html#|<tr id=")(r[0-9a-f]{16})')


ROW = re.compile(r'<tr id="(r[0-9a-f]{16})">(.*?)</tr>')
PRINTED = """
    SELECT result_id, raw_text FROM cells SEMI JOIN microbenchmarks ON microbenchmark_id = result_id
    WHERE column_name = 'value'
"""
FLAGGED = """
    SELECT result_id, rule, message
    FROM flags SEMI JOIN microbenchmarks ON microbenchmark_id = result_id
"""


def read_rows(page: Page) -> list[list[str]]:
    """Read the cells of all tables of a page."""
    rows = []
    for row in re.findall("<tr>(.*?)</tr>", page.content):
        cells = re.findall("<td>(.*?)</td>", row)
        if cells:
            rows.append(list(map(unescape, cells)))
    return rows


def list_figures(*pages: Page) -> Counter[str]:
    """Count the links to each figure: to its panel, or to its row of a page of microbenchmarks."""
    return Counter(FIGURE.findall("".join(page.content for page in pages)))


def select(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    return run_query(connection, sql).to_pylist()


def select_ids(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    return [name for (name,) in list_rows(connection, sql)]


def test_every_pair_is_shown_with_both_places_and_the_reason_why_it_does_not_count(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    pages = list(build_replication_pages(connection, CHARTS))
    for page, machines in zip(pages, ("IPU", "other"), strict=True):
        where = f"WHERE machines = '{machines}'"
        pairs = select(connection, f"FROM replications {where}")
        expected = Counter(row["first_result_id"] for row in pairs)
        expected.update(row["second_result_id"] for row in pairs)
        assert list_figures(page) == expected
        counted, others = page.content.split("shown and not counted</h2>")
        assert len(FIGURE.findall(counted)) == 2 * sum(row["counts"] for row in pairs)
        for reason in {row["reason"] for row in pairs if row["reason"]}:
            assert f"<h3>{reason[0].upper()}{reason[1:]}</h3>" in unescape(others)
        for row in read_rows(page):
            if len(row) == 8:
                assert "<small>" in row[2]
                assert "<small>" in row[3]
        summary = f"FROM detail.replication_summary {where} AND vendor_part = 'all'"
        for group in select(connection, summary):
            text = f"of {group['counted']} counted pairs, {group['within_5_percent']} agree"
            assert f"{group['parties'].capitalize()}: {text}" in page.description
    assert 'src="chart/replications.svg"' in pages[0].content
    for page in build_replication_pages(connection, []):
        assert "chart/" not in page.content


def test_energy_page_holds_usable_rows_by_scope_and_says_that_no_comparison_can_be_quoted(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    page = build_energy_page(connection)
    scopes = dict(
        list_rows(connection, "SELECT result_id, power_scope FROM energy_per_item WHERE usable")
    )
    assert list_rows(connection, "FROM detail.energy_ipu_gpu") == []
    assert list_figures(page) == Counter(scopes.keys())
    assert "IPU next to GPU" not in page.content
    assert "None of the 51 comparisons of an IPU with a GPU in ResNet-50 v1.5" in page.content
    assert "✖" not in page.content
    _, *sections = page.content.split("<h2>")
    assert len(sections) == len(set(scopes.values())) > 1
    for section in sections:
        assert len({scopes[key] for key in FIGURE.findall(section)}) == 1
    assert "Left out as not usable: 74 rows" in page.content


@pytest.mark.parametrize(
    ("ipu", "gpu", "sentence"),
    [
        ("board", "device", "is a lower bound of GPU device over IPU device"),
        ("device", "board", "is an upper bound of GPU device over IPU device"),
        ("wall", "wall", "In 2 rows, both energies are of the wall"),
        ("not stated", "wall", "the ratio cannot be read."),
    ],
)
def test_sentence_on_two_scopes_says_what_the_ratio_bounds(
    ipu: str, gpu: str, sentence: str
) -> None:
    assert sentence in _describe_scope(2, ipu, gpu)


def test_share_of_peak_of_every_counted_result_is_on_the_page_of_its_chip(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    *chips, overview = build_peak_pages(connection, CHARTS)
    rows = select(connection, "FROM peak_shares WHERE usable")
    ceilings = select_ids(connection, "SELECT microbenchmark_id FROM detail.ceilings")
    figures = list_figures(*chips)
    for key in ceilings:
        del figures[key]
    assert figures == Counter(row["result_id"] for row in rows)
    titles = {page.title.removeprefix("Share of peak: ") for page in chips}
    assert titles == {row["chip"] for row in rows}
    assert set(ceilings) <= list_figures(overview).keys()
    items = dict(list_rows(connection, "SELECT result_id, item FROM results"))
    shown = re.compile(r"show=(\w+)\.throughput\">[\d,.]+ (\w+)s/s")
    for page in (overview, *chips):
        assert all(items[key] == unit for key, unit in shown.findall(page.content))
    assert sum(len(shown.findall(page.content)) for page in chips) == len(rows)
    assert {unit for _, unit in shown.findall(overview.content)} >= {"image", "sequence"}
    best = {}
    for row in read_rows(overview):
        if len(row) == 5:
            [chip] = re.findall(">([^<]+)<", row[0])
            best[chip] = row[2].partition(" %")[0]
    for chip in ("GC200", "Bow", "C600"):
        clean = [row for row in rows if row["chip"] == chip and not row["precision_doubtful"]]
        highest = max(row["datasheet_share"] or 0 for row in clean)
        assert float(best[chip]) == pytest.approx(100 * highest, rel=1e-2)
        assert highest < 1


def test_every_microbenchmark_has_its_printed_text_place_and_flags(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    *pages, overview = build_microbenchmark_pages(connection)
    table = select(connection, "FROM microbenchmarks")
    assert list_figures(*pages) == Counter(row["microbenchmark_id"] for row in table)
    paths = {page.path for page in pages}
    assert len(paths) == len(pages) == overview.content.count('href="microbenchmark/')
    rows = {}
    for page in pages:
        rows |= {key: unescape(cells) for key, cells in ROW.findall(page.content)}
    for row in table:
        cells = rows[row["microbenchmark_id"]]
        assert row["place"] in cells
        assert row["chip"] in cells
        assert f"<td>{format_number(row['canonical_value'])} " in cells
    printed = list_rows(connection, PRINTED)
    assert len(printed) > 1000
    for key, text in printed:
        assert f">{text}" in rows[key]
    flags = list_rows(connection, FLAGGED)
    assert flags
    for key, rule, message in flags:
        assert f"{rule}</strong>" in rows[key]
        assert message in rows[key]
