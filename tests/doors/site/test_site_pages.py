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
from ipu_results.record.check.rules import RULES

from tests.conftest import list_rows

EVIL = '"><script>alert(1)</script>&'
BASE = "https://example.org/ipu"
FINDING = {"title": "Q?", "figure": "2×", "text": "T.", "objection": "O."}
FINDING |= {"link": "#/charts/sdk_effect", "link_text": "More"}
START = {
    "build": {"version": None, "as_of": "2026-11-22"},
    "repository": "https://example.org/repository",
    "findings": [FINDING],
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
    pages = {}
    for name, text in files.items():
        if name.endswith(".html") and not name.startswith("data/"):
            pages[name] = text
    return pages


def test_every_claim_and_chart_has_a_page_with_a_title_and_tags_of_its_own(
    files: Files, charts: list[dict[str, Any]], connection: duckdb.DuckDBPyConnection
) -> None:
    pages = list_pages(files)
    for name, claim, figure in list_rows(connection, "SELECT claim_id, claim, figure FROM claims"):
        text = unescape(pages[f"claim/{name}.html"])
        assert f"<title>{claim} · ipu-results</title>" in text
        assert f'property="og:title" content="{claim}"' in text
        assert figure in text
    chart = unescape(pages["chart/sdk_effect.html"])
    assert charts[0]["finding"] in chart
    assert re.search(r'<img [^>]*width="\d+" height="\d+">', chart)
    titles = set()
    for text in pages.values():
        assert 'property="og:description"' in text
        titles.update(re.findall("<title>.*</title>", text))
    assert len(titles) > len(pages) - 25


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
    pages = list_pages(files)
    addresses = set(re.findall("<loc>(.*?)</loc>", files["sitemap.xml"]))
    assert addresses == {f"{BASE}/", *(f"{BASE}/{name}" for name in pages)}
    previewed = []
    for name, text in pages.items():
        assert f'property="og:url" content="{BASE}/{name}"' in text
        for image in re.findall(rf'property="og:image" content="{BASE}/([^"]+)"', text):
            previewed.append(name)
            assert files[image].startswith(b"\x89PNG")
            assert len(files[image]) < 600_000
    assert previewed == ["chart/sdk_effect.html"]
    titles = re.findall("<title>(.*?)</title>", files["feed.xml"])
    assert titles[1:] == ["Release 1.10.0", "Release 1.9.0"]  # the newest first
    for name in ("sitemap.xml", "feed.xml"):
        ET.fromstring(files[name])
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
    ids = table["ids"]
    throughput = table["headings"].index("Throughput (items/s)")
    exact = dict(list_rows(connection, "SELECT result_id, throughput FROM results"))
    assert len(ids) == len(set(ids)) > 20
    assert [exact[key] for key in ids] == [row[throughput] for row in table["rows"]]
    _, *lines = format_csv(charts[0]).splitlines()
    assert len(lines) == len(ids)
    assert lines[0].endswith(ids[0])
