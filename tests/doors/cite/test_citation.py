"""Cite results and make tables: figures as printed, what must be disclosed, and text that no format
acts on.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results import cite
from ipu_results.doors.cite.citation import FORMATS, REPOSITORY, escape_latex, escape_url
from ipu_results.doors.cite.facts import LEGEND
from ipu_results.errors import QueryError, WarehouseError

from tests.cases import every_case, read_cases
from tests.conftest import ROOT, Done, Query, run_cli
from tests.doors.mcp.conftest import copy_warehouse, edit_rows

ATTACK = r'}\input{/etc/passwd}%$^~#&_[2]*{"<script>alert(1)</script>"|`x`' + "\x1b[2J\n\u202e"
UNESCAPED = re.compile(r"(?<!\\)[&%$#_^~]")


def find_id(query: Query, where: str) -> str:
    [(name,)] = query(f"SELECT min(result_id) FROM results WHERE {where}")
    return str(name)


@pytest.fixture(scope="session")
def printed(query: Query) -> str:
    """Return the id of a row of the vendor's page: 7,152 items/sec, 1.66 ms."""
    return find_id(
        query, "model = 'ResNet-50 v1.5' AND platform = 'IPU-M2000' AND throughput = 7152"
    )


@pytest.fixture(scope="session")
def official(query: Query) -> str:
    return find_id(query, "origin = 'official' AND mlperf_id = '2.0-2047'")


@pytest.fixture
def hostile(tmp_path: Path, warehouse: Path, printed: str) -> Path:
    """Write a warehouse in which variant, printed text and title of one row are hostile."""
    folder = copy_warehouse(warehouse, tmp_path / "hostile")
    edit_rows(folder, "results", {"result_id": printed}, variant=ATTACK)
    cell = {"result_id": printed, "column_name": "throughput"}
    edit_rows(folder, "cells", cell, raw_text=ATTACK)
    page = {"document_id": "graphcore-performance-2023-07-04"}
    edit_rows(folder, "documents", page, title=ATTACK)
    return folder


@pytest.mark.slow
def test_release_is_cited_with_version_and_digest(small_release: Path) -> None:
    digest = hashlib.sha256((small_release / "SHA256SUMS").read_bytes()).hexdigest()
    name, *_ = pq.read_table(small_release / "results.parquet")["result_id"].to_pylist()
    text = cite(name, format="bibtex", warehouse=small_release)
    assert "version = {1.0.0}" in text
    assert f"Dataset, CC-BY-4.0, version 1.0.0, sha256 of SHA256SUMS {digest}" in text
    assert "unreleased" not in text


def test_dataset_is_cited_with_year_and_address(
    warehouse: Path, printed: str, query: Query
) -> None:
    [(newest,)] = query("SELECT max(retrieved_on) FROM documents")
    dataset, *_ = cite(printed, format="bibtex", warehouse=warehouse).split("\n\n")
    assert f"  year = {{{newest.year}}},\n  url = {{{REPOSITORY}}}," in dataset
    assert f'url: "{REPOSITORY}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (
            {"build_id": "0" * 64, "version": "9.0.0", "published_on": "2026-01-01"},
            "names another build",
        ),
        ([], "is not a release"),
    ],
)
def test_release_of_another_build_is_not_cited(
    release: object, message: str, built: Path, printed: str
) -> None:
    (built / "SHA256SUMS").touch()
    (built / "release.json").write_text(json.dumps(release), encoding="utf-8")
    with pytest.raises(WarehouseError, match=message):
        cite(printed, warehouse=built)


def test_emulated_figure_is_cited_as_emulated(query: Query, warehouse: Path) -> None:
    text = cite(find_id(query, "origin = 'emulated' AND batch_size = 8"), warehouse=warehouse)
    assert "items/s (emulated, not measured)" in text
    assert not re.search(r"items/s(?! \(emulated|/W)", text)
    assert "Emulated by ipu-results, not measured, calibration c2-" in text.replace("\\", "")


@pytest.mark.parametrize("output", FORMATS)
def test_mlperf_figure_has_the_required_attribution(
    output: str, official: str, warehouse: Path
) -> None:
    text = cite(official, format=output, warehouse=warehouse)
    plain = text.replace(r"\textregistered{}", "®").replace("\\", "")
    assert "19.6351556 min (unverified)" in plain
    assert "MLPerf® Training v2.0 closed resnet, Graphcore" in plain
    assert "2.0-2047" in plain
    assert "retrieved 2026-11-21" in plain
    assert LEGEND in plain
    assert plain.count("Result not verified by MLCommons Association.") == 1
    assert set(re.findall(r"MLPerf(.)", plain.replace(LEGEND, ""))) == {"®"}


def test_vendor_page_that_quotes_mlperf_has_it_too(query: Query, warehouse: Path) -> None:
    name = find_id(query, "origin = 'published' AND mlperf_id = '2.0-2047'")
    text = cite(name, warehouse=warehouse)
    assert "19.64 mins (unverified)" in text
    assert "MLPerf® Training v2.0 closed resnet, as printed by Graphcore" in text
    assert LEGEND in text


def test_microbenchmark_is_cited_as_printed(query: Query, warehouse: Path) -> None:
    """Citadel, table 3.1: 15.26 TB/s, which the dataset also holds as 15,260 GB/s."""
    where = "document_id = 'independent-citadel-2019' AND value = 15.26 AND unit = 'TB/s'"
    [(name,)] = query(f"SELECT microbenchmark_id FROM microbenchmarks WHERE {where}")
    text = cite(name, warehouse=warehouse)
    place = "page 27, table 3.1, row 4, column Bandwidth"
    assert "read local memory, bandwidth" in text
    assert f"GC2, 1 chip, 1.0.49: value 15.26 TB/s ({place})" in text
    sql = f"SELECT microbenchmark_id AS result_id, chip, value FROM microbenchmarks WHERE {where}"
    assert "15.26  [1]\n\n[1] " in query_cited(warehouse, sql).stdout


@pytest.mark.parametrize("name", ["0" * 16, "' OR 1=1 --", ""])
def test_unknown_id_is_one_line(name: str, warehouse: Path, printed: str) -> None:
    done = run_cli("cite", printed, name, "--warehouse", warehouse)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: unknown result ")


def test_unknown_format_and_no_id_are_refused(warehouse: Path, printed: str) -> None:
    with pytest.raises(QueryError, match="unknown format 'ris'"):
        cite(printed, format="ris", warehouse=warehouse)
    with pytest.raises(QueryError, match="no result_id to cite"):
        cite([], warehouse=warehouse)


@pytest.mark.slow
def test_hostile_text_ends_no_row_command_or_entry(hostile: Path, printed: str) -> None:
    sql = f"SELECT result_id, variant, throughput FROM results WHERE result_id = '{printed}'"
    table = query_cited(hostile, sql).stdout
    markdown = cite(printed, warehouse=hostile)
    bibtex = cite(printed, format="bibtex", warehouse=hostile)
    assert "textbackslash{}input" in bibtex
    assert bibtex.count("{") == bibtex.count("}")
    assert r"\input" not in bibtex
    assert len(re.findall(r"(?m)^@misc\{", bibtex)) == len(re.findall(r"(?m)^\}$", bibtex)) == 2
    assert "<script" not in markdown
    assert "&lt;script&gt;" in markdown
    for text in (table, bibtex, markdown):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert json.loads(cite(printed, format="csl-json", warehouse=hostile))[1]["title"] == ATTACK


@given(st.text())
def test_escaped_text_is_inert(text: str) -> None:
    tex = escape_latex(text)
    assert tex.count("{") == tex.count("}")
    assert not UNESCAPED.search(tex)
    commands = r"\\(?:text\w+\{\}|symbol\{34\}|[&%$#_])"
    assert "\\" not in re.sub(commands, "", tex)
    assert not tex.startswith(("[", "*"))
    assert "\n" not in tex
    assert escape_url(text) == "" or re.fullmatch(r"https?://[!-~]*", escape_url(text))
    for url in ("javascript:alert(1)", "file:///etc/passwd", " https://x"):
        assert escape_url(url) == ""
    assert escape_url('https://x/a b{c}\\"<') == "https://x/a%20b%7Bc%7D%5C%22%3C"


MIXED = "MLCommons does not allow comparing them"


def query_cited(warehouse: Path, sql: str, output: str = "table") -> Done:
    return run_cli("query", "--cite", sql, "--format", output, "--warehouse", warehouse)


def test_cited_rows_have_a_footnote_per_source(warehouse: Path) -> None:
    sql = """
        SELECT result_id, platform, throughput
        FROM results
        WHERE model = 'ResNeXt101-32x4d' AND batch_size = 8 AND platform IN ('C2', 'IPU-M2000')
            AND task = 'inference'
        ORDER BY 3 DESC
    """
    rows, first, second, third, values, *_ = query_cited(warehouse, sql).stdout.split("\n\n")
    sources = [line.rsplit("  ", 1)[1] for line in rows.splitlines()]
    assert sources[0] == "source"
    assert sources[2:] == ["[1]", "[2]", "[3] emulated, not measured"]
    assert first.startswith("[1]")
    assert second.startswith("[2]")
    assert "https://arxiv.org/abs/2002.11670, retrieved 2026-11-21" in second
    assert third.startswith("[3]")
    assert "Emulated by ipu-results, not measured, calibration c2-" in third
    assert "Values are those of the query" in values


def test_pair_is_cited_by_the_sources_of_both_sides(warehouse: Path) -> None:
    sql = read_cases(__file__)["pair"]["sql"]
    rows, first, second, _ = query_cited(warehouse, sql).stdout.split("\n\n")
    assert rows.endswith("[1] [2]")
    assert first.startswith("[1] Graphcore, ")
    assert second.startswith("[2] Texas A")


def test_cited_rows_disclose_the_flags_of_both_sides(warehouse: Path) -> None:
    sql = """
        SELECT a.result_id AS first_result_id, b.result_id AS second_result_id
        FROM results a, results b
        JOIN flags f ON f.result_id = b.result_id
        WHERE a.usable AND f.rule = 'R29' AND f.severity = 'error'
        ORDER BY ALL
        LIMIT 1
    """
    for output in ("table", "csv"):
        assert "Quality rule R29" in query_cited(warehouse, sql, output).stdout


def test_cited_mlperf_scores_are_marked_and_a_mixture_is_warned_of(
    warehouse: Path, official: str, printed: str
) -> None:
    where = f"result_id IN ('{official}', '{printed}')"
    sql = f"SELECT result_id, time_to_train_s, throughput FROM results WHERE {where} ORDER BY 2"
    done = query_cited(warehouse, sql)
    assert "[1] unverified\n" in done.stdout
    assert LEGEND in done.stdout
    assert MIXED in done.stdout
    done = query_cited(warehouse, sql, "json")
    assert json.loads(done.stdout)[0]["source"].endswith(" unverified")
    assert MIXED in done.stderr


@every_case(__file__, "refused")
def test_query_that_cannot_be_cited_is_one_line(sql: str, message: str, warehouse: Path) -> None:
    done = query_cited(warehouse, sql)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
