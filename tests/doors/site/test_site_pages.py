"""The static pages of the site: one for each claim and chart, and what machines read."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import duckdb
import pytest
from ipu_results.doors.analyses import load_analysis
from ipu_results.doors.site.charts import build_chart, format_csv
from ipu_results.doors.site.page import ENVIRONMENT, build_page, format_page
from ipu_results.doors.site.pages import build_pages
from ipu_results.errors import WarehouseError
from ipu_results.kit.sql import run_query
from ipu_results.record.check.rules import RULES

EVIL = '"><script>alert(1)</script>&'
BASE = "https://example.org/ipu"
START = {
    "build": {"version": None, "as_of": "2026-11-22"},
    "repository": "https://example.org/repository",
    "findings": [
        {
            "title": "Q?",
            "figure": "2×",
            "text": "T.",
            "objection": "O.",
            "link": "#/charts/sdk_effect",
            "link_text": "More",
        }
    ],
}
RECORD = {
    "version": "1.9.0",
    "published_on": "2026-01-02",
    "summary": ["No figure changed.", f"Rows of results: 3 new {EVIL}."],
    "corrections": [],
    "figures_changed": [{"model": "BERT", "old": 1.5, "new": 2.5}],
}
Files = Mapping[str, Any]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    for version in ("1.9.0", "1.10.0"):
        text = json.dumps({**RECORD, "version": version})
        (folder / f"{version}.json").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def charts(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    return [build_chart(connection, load_analysis("sdk_effect"))]


@pytest.fixture(scope="module")
def files(
    connection: duckdb.DuckDBPyConnection, charts: list[dict[str, Any]], records: Path
) -> Files:
    return build_pages(connection, charts, START, records=records)


def list_pages(files: Files) -> dict[str, str]:
    return {
        name: text
        for name, text in files.items()
        if name.endswith(".html") and not name.startswith("data/")
    }


def test_every_claim_and_chart_has_a_page_with_a_title_and_tags_of_its_own(
    files: Files, charts: list[dict[str, Any]], connection: duckdb.DuckDBPyConnection
) -> None:
    pages = list_pages(files)
    for claim in run_query(connection, "FROM claims").to_pylist():
        text = pages[f"claim/{claim['claim_id']}.html"]
        assert f"<title>{claim['claim']} · ipu-results</title>" in unescape(text)
        assert f'property="og:title" content="{claim["claim"]}"' in unescape(text)
        assert claim["figure"] in unescape(text)
    assert charts[0]["finding"] in unescape(pages["chart/sdk_effect.html"])
    assert re.search(r'<img [^>]*width="\d+" height="\d+">', pages["chart/sdk_effect.html"])
    assert all('property="og:description"' in text for text in pages.values())
    assert (
        len({re.search("<title>.*</title>", text)[0] for text in pages.values()}) > len(pages) - 25
    )  # type: ignore[index]


def test_pages_have_no_absolute_address_of_the_site_without_its_base(files: Files) -> None:
    assert not {"sitemap.xml", "feed.xml"} & files.keys()
    assert not any(name.endswith((".png", ".jpg")) for name in files)
    for text in list_pages(files).values():
        assert "og:url" not in text
        assert 'rel="canonical"' not in text
        assert "<script" not in text
    assert "](claims.html)" in files["llms.txt"]


def test_each_rule_has_its_statement_on_the_page_of_rules(files: Files) -> None:
    page = str(files["rules.html"])
    for rule in RULES:
        assert f'<h2 id="{rule.id}">' in page
        assert rule.statement in unescape(page)


@pytest.mark.slow
def test_base_address_adds_sitemap_feed_and_previews(
    connection: duckdb.DuckDBPyConnection, charts: list[dict[str, Any]], records: Path
) -> None:
    files = build_pages(connection, charts, START, BASE, records)
    addresses = {
        element.text
        for element in ET.fromstring(files["sitemap.xml"]).iter()
        if element.tag.endswith("loc")
    }
    assert addresses == {f"{BASE}/", *(f"{BASE}/{name}" for name in list_pages(files))}
    for name, text in list_pages(files).items():
        assert f'property="og:url" content="{BASE}/{name}"' in text
        for image in re.findall(r'property="og:image" content="([^"]+)"', text):
            content = files[image.removeprefix(f"{BASE}/")]
            assert content.startswith(b"\x89PNG")
            assert len(content) < 600_000
    previewed = [name for name, text in list_pages(files).items() if "og:image" in text]
    assert previewed == ["chart/sdk_effect.html"]
    feed = ET.fromstring(files["feed.xml"])
    titles = [element.text for element in feed.iter() if element.tag.endswith("title")]
    assert titles[1:] == ["Release 1.10.0", "Release 1.9.0"]  # the newest first
    with pytest.raises(WarehouseError, match="not an http address"):
        build_pages(connection, charts, START, "example.org", records)


def test_changes_are_those_of_the_records_and_a_broken_one_is_refused(
    files: Files,
    connection: duckdb.DuckDBPyConnection,
    charts: list[dict[str, Any]],
    tmp_path: Path,
) -> None:
    page = files["changed.html"]
    assert page.index("1.10.0, 2026-01-02") < page.index("1.9.0, 2026-01-02")
    assert "No figure changed." in page
    assert EVIL not in page
    assert EVIL in unescape(page)
    assert "<td>BERT</td><td>1.5</td><td>2.5</td>" in page
    (tmp_path / "1.0.0.json").write_text('{"version": "1.0.0"}', encoding="utf-8")
    with pytest.raises(WarehouseError, match="has no published_on"):
        build_pages(connection, charts, START, records=tmp_path)


def test_hostile_text_and_addresses_stay_text() -> None:
    chart: dict[str, Any] = dict.fromkeys(("name", "question", "finding"), EVIL)
    chart |= {"figures": [EVIL], "caveats": [EVIL], "numbers": [], "size": ["1", "1"]}
    page = format_page(build_page("chart.html", "chart/b.html", chart=chart))
    assert "<script" not in page
    assert 'href="../page.css"' in page
    link = ENVIRONMENT.get_template("macros.html").module.link
    assert link("javascript:alert(1)", "x") == "x"
    assert (
        link("https://example.org/?a=1&b", "x") == '<a href="https://example.org/?a=1&amp;b">x</a>'
    )


def test_numbers_of_a_chart_are_exact_and_lead_to_their_results(
    charts: list[dict[str, Any]], connection: duckdb.DuckDBPyConnection
) -> None:
    [table] = charts[0]["numbers"]
    throughput = table["headings"].index("Throughput (items/s)")
    printed = run_query(connection, "SELECT result_id, throughput FROM results").to_pylist()
    exact = {row["result_id"]: row["throughput"] for row in printed}
    assert len(table["ids"]) == len(set(table["ids"])) > 20
    assert all(
        exact[key] == row[throughput] for key, row in zip(table["ids"], table["rows"], strict=True)
    )
    lines = format_csv(charts[0]).splitlines()
    assert len(lines) == len(table["rows"]) + 1
    assert lines[1].endswith(table["ids"][0])
