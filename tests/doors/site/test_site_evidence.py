"""The pages on what others measured: every row of their views, exact, with its place, flags and
reason.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape

import duckdb
import pyarrow.parquet as pq
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

from tests.conftest import COMMITTED

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
    rows = re.findall("<tr>(.*?)</tr>", page.content)
    return [
        [unescape(cell) for cell in re.findall("<td>(.*?)</td>", row)]
        for row in rows
        if "<td>" in row
    ]


def list_figures(pages: list[Page]) -> Counter[str]:
    """Count the links to each figure: to its panel, or to its row of a page of microbenchmarks."""
    return Counter(key for page in pages for key in FIGURE.findall(page.content))


def test_every_pair_is_shown_with_both_places_and_the_reason_why_it_does_not_count(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    summary = "FROM detail.replication_summary WHERE machines = '{}' AND vendor_part = 'all'"
    pages = list(build_replication_pages(connection, CHARTS))
    for page, machines in zip(pages, ("IPU", "other"), strict=True):
        pairs = run_query(
            connection, f"FROM replications WHERE machines = '{machines}'"
        ).to_pylist()
        expected = Counter(
            row[f"{side}_result_id"] for row in pairs for side in ("first", "second")
        )
        assert list_figures([page]) == expected
        counted, others = page.content.split("shown and not counted</h2>")
        assert len(FIGURE.findall(counted)) == 2 * sum(row["counts"] for row in pairs)
        for reason in {row["reason"] for row in pairs if row["reason"]}:
            assert f"<h3>{reason[0].upper()}{reason[1:]}</h3>" in unescape(others)
        assert all(
            "<small>" in cell for row in read_rows(page) if len(row) == 8 for cell in row[2:4]
        )
        for group in run_query(connection, summary.format(machines)).to_pylist():
            text = f"of {group['counted']} counted pairs, {group['within_5_percent']} agree"
            assert f"{group['parties'].capitalize()}: {text}" in page.description
    assert 'src="chart/replications.svg"' in pages[0].content
    assert not any("chart/" in page.content for page in build_replication_pages(connection, []))


def test_energy_page_holds_usable_rows_by_scope_and_says_that_no_comparison_can_be_quoted(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    page = build_energy_page(connection)
    rows = run_query(connection, "FROM energy_per_item WHERE usable").to_pylist()
    pairs = run_query(connection, "FROM detail.energy_ipu_gpu").to_pylist()
    expected = Counter(row["result_id"] for row in rows)
    expected += Counter(row[f"{side}_result_id"] for row in pairs for side in ("ipu", "gpu"))
    assert list_figures([page]) == expected
    assert not pairs
    assert "IPU next to GPU" not in page.content
    assert (
        "None of the 51 comparisons of an IPU with a GPU in ResNet-50 v1.5 training" in page.content
    )
    assert "✖" not in page.content
    scopes = dict.fromkeys(row["power_scope"] for row in rows)
    assert page.content.count("<h2>") == len(scopes) > 1
    for section in page.content.split("<h2>")[1:]:
        own = {row["power_scope"] for row in rows if row["result_id"] in FIGURE.findall(section)}
        assert len(own) == 1
    assert "Left out as not usable: 74 rows" in page.content


def test_sentence_on_two_scopes_says_what_the_ratio_bounds() -> None:
    assert "is a lower bound of GPU device over IPU device" in _describe_scope(1, "board", "device")
    assert "is an upper bound of GPU device over IPU device" in _describe_scope(
        1, "device", "board"
    )
    same = _describe_scope(2, "wall", "wall")
    assert same.startswith("In 2 rows, both energies are of the wall")
    assert _describe_scope(1, "not stated", "wall").endswith("the ratio cannot be read.")


def test_share_of_peak_of_every_counted_result_is_on_the_page_of_its_chip(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    *chips, overview = build_peak_pages(connection, CHARTS)
    rows = run_query(connection, "FROM peak_shares WHERE usable").to_pylist()
    ceilings = Counter(
        row["microbenchmark_id"]
        for row in run_query(connection, "FROM detail.ceilings").to_pylist()
    )
    figures = list_figures(list(chips))
    assert Counter({key: n for key, n in figures.items() if key not in ceilings}) == Counter(
        row["result_id"] for row in rows
    )
    assert {page.title.removeprefix("Share of peak: ") for page in chips} == {
        row["chip"] for row in rows
    }
    assert ceilings.keys() <= list_figures([overview]).keys()
    best = {
        row[0].split(">")[1].split("<")[0]: row[2] for row in read_rows(overview) if len(row) == 5
    }
    items = {
        row["result_id"]: row["item"] for row in run_query(connection, "FROM results").to_pylist()
    }
    shown = [
        re.findall(r"show=(\w+)\.throughput\">[\d,.]+ (\w+)s/s", page.content)
        for page in (overview, *chips)
    ]
    assert sum(map(len, shown[1:])) == len(rows)
    assert all(items[key] == unit for own in shown for key, unit in own)
    assert {unit for _, unit in shown[0]} >= {"image", "sequence"}
    for chip in ("GC200", "Bow", "C600"):
        clean = [row for row in rows if row["chip"] == chip and not row["precision_doubtful"]]
        highest = max(row["datasheet_share"] or 0 for row in clean)
        assert float(best[chip].split(" %")[0]) == pytest.approx(100 * highest, rel=1e-2)
        assert highest < 1


def test_every_microbenchmark_has_its_printed_text_place_and_flags(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    *pages, overview = build_microbenchmark_pages(connection)
    table = pq.read_table(COMMITTED / "microbenchmarks.parquet").to_pylist()
    assert list_figures(list(pages)) == Counter(row["microbenchmark_id"] for row in table)
    assert (
        len({page.path for page in pages})
        == len(pages)
        == overview.content.count('href="microbenchmark/')
    )
    rows = {key: cells for page in pages for key, cells in re.findall(ROW, page.content)}
    for row in table:
        cells = unescape(rows[row["microbenchmark_id"]])
        assert row["place"] in cells
        assert row["chip"] in cells
        assert f"<td>{format_number(row['canonical_value'])} " in cells
    printed = run_query(connection, PRINTED).to_pylist()
    assert len(printed) > 1000
    assert all(f">{cell['raw_text']}" in unescape(rows[cell["result_id"]]) for cell in printed)
    flags = run_query(connection, FLAGGED).to_pylist()
    assert flags
    for flag in flags:
        cells = unescape(rows[flag["result_id"]])
        assert f"{flag['rule']}</strong>" in cells
        assert flag["message"] in cells
