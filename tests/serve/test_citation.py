"""Cite results and make tables: figures as printed, what must be disclosed, and text that no format
acts on.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results import cite
from ipu_results.errors import QueryError, WarehouseError
from ipu_results.serve import format_cited_table
from ipu_results.serve.cite import FORMATS, REPOSITORY, escape_html, escape_latex, escape_url
from ipu_results.serve.facts import FIGURES, LEGEND, MAX_IDS, load_results, make_label
from ipu_results.store.query import open_warehouse

from tests.conftest import ROOT, Query, run_cli

ATTACK = r'}\input{/etc/passwd}%$^~#&_[2]*{"<script>alert(1)</script>"|`x`' + "\x1b[2J\n\u202e"
UNESCAPED = re.compile(r"(?<!\\)[&%$#_^~]")


def find_id(query: Query, where: str) -> str:
    ((name,),) = query(f"SELECT min(result_id) FROM results WHERE {where}")
    return str(name)


@pytest.fixture(scope="session")
def printed(query: Query) -> str:
    """Return the id of a row of the vendor's page: 7,152 items/sec, 1.66 ms."""
    return find_id(
        query, "network = 'ResNet-50 v1.5' AND platform = 'IPU-M2000' AND throughput = 7152"
    )


@pytest.fixture(scope="session")
def emulated(query: Query) -> str:
    return find_id(query, "origin = 'emulated' AND batch_size = 8")


@pytest.fixture(scope="session")
def official(query: Query) -> str:
    return find_id(query, "origin = 'official' AND mlperf_id = '2.0-2047'")


@pytest.fixture
def hostile(tmp_path: Path, warehouse: Path, printed: str) -> Path:
    """Write a warehouse in which variant, printed text, title and address of one row are hostile."""
    folder = tmp_path / "hostile"
    shutil.copytree(warehouse, folder, ignore=shutil.ignore_patterns("*.duckdb"))

    def edit(name: str, column: str, mask: Any, text: str) -> None:
        rows = pq.read_table(folder / f"{name}.parquet")
        values = pc.if_else(mask(rows), text, rows[column])
        index = rows.column_names.index(column)
        pq.write_table(
            rows.set_column(index, rows.schema.field(index), pa.chunked_array(values)),
            folder / f"{name}.parquet",
        )

    edit("results", "variant", lambda rows: pc.equal(rows["result_id"], printed), ATTACK)
    throughput = lambda rows: pc.and_(  # noqa: E731
        pc.equal(rows["result_id"], printed), pc.equal(rows["column_name"], "throughput")
    )
    edit("cells", "raw_text", throughput, ATTACK)
    page = lambda rows: pc.equal(rows["document_id"], "graphcore-performance-2023-07-04")  # noqa: E731
    edit("documents", "title", page, ATTACK)
    return folder


@pytest.mark.parametrize("output", FORMATS)
def test_citation_has_figures_as_printed_source_place_and_build(
    output: str, printed: str, warehouse: Path, query: Query
) -> None:
    text = cite(printed, format=output, warehouse=warehouse).replace("\\", "")
    ((build_id,),) = query("SELECT DISTINCT build_id FROM build")
    expected = ("7,152 items/sec", "1.66 ms", "row 12", "Graphcore", "Performance Results", printed)
    for part in (
        *expected,
        "www.graphcore.ai/performance-results",
        f"unreleased, build {build_id}",
    ):
        assert part in text
    assert "MLPerf" not in text
    assert "not measured" not in text
    if output == "csl-json":
        dataset, page = json.loads(text)
        assert (dataset["version"], page["issued"], page["accessed"]) == (
            "unreleased",
            {"date-parts": [[2023, 7, 4]]},
            {"date-parts": [[2026, 11, 21]]},
        )
    else:
        assert "2026-11-21" in text


@pytest.mark.slow
def test_release_is_cited_with_version_and_digest(small_release: Path) -> None:
    release = json.loads((small_release / "release.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256((small_release / "SHA256SUMS").read_bytes()).hexdigest()
    name, *_ = pq.read_table(small_release / "results.parquet")["result_id"].to_pylist()
    text = cite(name, format="bibtex", warehouse=small_release)
    assert f"version = {{{release['version']}}}" in text
    assert (
        f"Dataset, CC-BY-4.0, version {release['version']}, sha256 of SHA256SUMS {digest}" in text
    )
    assert "unreleased" not in text


def test_dataset_is_cited_with_year_and_address(
    warehouse: Path, printed: str, query: Query
) -> None:
    ((newest,),) = query("SELECT max(retrieved_on) FROM documents")
    dataset, *_ = cite(printed, format="bibtex", warehouse=warehouse).split("\n\n")
    assert f"  year = {{{newest.year}}}," in dataset
    assert f"  url = {{{REPOSITORY}}}," in dataset
    assert json.loads(cite(printed, format="csl-json", warehouse=warehouse))[0]["URL"] == REPOSITORY
    assert f'url: "{REPOSITORY}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_release_of_another_build_is_not_cited(built: Path, printed: str) -> None:
    (built / "SHA256SUMS").write_text("", encoding="utf-8")
    stated = {"build_id": "0" * 64, "version": "9.0.0", "published_on": "2026-01-01"}
    (built / "release.json").write_text(json.dumps(stated), encoding="utf-8")
    with pytest.raises(WarehouseError, match="names another build"):
        cite(printed, warehouse=built)
    (built / "release.json").write_text("[]", encoding="utf-8")
    with pytest.raises(WarehouseError, match="is not a release"):
        cite(printed, warehouse=built)


@pytest.mark.parametrize("output", FORMATS)
def test_emulated_figure_is_cited_as_emulated(output: str, emulated: str, warehouse: Path) -> None:
    text = cite([emulated], format=output, warehouse=warehouse)
    assert len(re.findall(r"items/s \(emulated, not measured\)", text)) >= 1
    assert not re.search(r"items/s(?! \(emulated|/W)", text)
    assert "Emulated by ipu-results, not measured, calibration c2-" in text.replace("\\", "")


@pytest.mark.parametrize("output", FORMATS)
def test_mlperf_figure_has_the_required_attribution(
    output: str, official: str, warehouse: Path
) -> None:
    text = cite(official, format=output, warehouse=warehouse)
    plain = text.replace(r"\textregistered{}", "®").replace("\\", "")
    assert "19.6351556 min (unverified)" in plain
    for part in (
        "MLPerf® Training v2.0 closed resnet, Graphcore",
        "2.0-2047",
        "retrieved 2026-11-21",
        LEGEND,
    ):
        assert part in plain
    assert plain.count("Result not verified by MLCommons Association.") == 1
    assert "https://github.com/mlcommons/training_results_v2.0" in plain
    assert set(re.findall(r"MLPerf(.)", plain.replace(LEGEND, ""))) == {"®"}


def test_vendor_page_that_quotes_mlperf_has_it_too(query: Query, warehouse: Path) -> None:
    name = find_id(query, "origin = 'published' AND mlperf_id = '2.0-2047'")
    text = cite(name, warehouse=warehouse)
    assert "19.64 mins (unverified)" in text
    assert "MLPerf® Training v2.0 closed resnet, as printed by Graphcore" in text
    assert LEGEND in text


def test_flag_of_the_row_is_disclosed(query: Query, warehouse: Path) -> None:
    ((name, rule),) = query(
        "SELECT result_id, rule FROM flags WHERE severity = 'error' AND rule = 'R01' LIMIT 1"
    )
    assert f"Quality rule {rule} of ipu-results flags an error" in cite(name, warehouse=warehouse)


def test_microbenchmark_is_cited_and_tabled_as_printed(query: Query, warehouse: Path) -> None:
    """Citadel, table 3.1: 15.26 TB/s, which the dataset also holds as 15,260 GB/s."""
    where = "document_id = 'independent-citadel-2019' AND value = 15.26 AND unit = 'TB/s'"
    [(name,)] = query(f"SELECT microbenchmark_id FROM microbenchmarks WHERE {where}")
    text = cite(name, warehouse=warehouse)
    assert "read local memory, bandwidth" in text
    assert (
        "GC2, 1 chip, 1.0.49: value 15.26 TB/s (page 27, table 3.1, row 4, column Bandwidth)"
        in text
    )
    sql = f"SELECT microbenchmark_id AS result_id, device, value FROM microbenchmarks WHERE {where}"
    assert format_cited_table(sql, "markdown", warehouse).startswith(
        "| device | value (TB/s) |\n| --- | --- |\n| GC2<sup>a</sup> | 15.26 |\n"
    )


def test_unknown_id_and_format_are_one_line(warehouse: Path, printed: str) -> None:
    for name in ("0" * 16, "' OR 1=1 --", ""):
        done = run_cli("cite", printed, name, "--warehouse", warehouse)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: unknown result ")
    with pytest.raises(QueryError, match="unknown format 'ris'"):
        cite(printed, format="ris", warehouse=warehouse)
    with pytest.raises(QueryError, match="no result_id to cite"):
        cite([], warehouse=warehouse)


def test_so_many_results_are_cited_at_once_and_not_one_more(query: Query, warehouse: Path) -> None:
    ids = [
        result_id
        for (result_id,) in query(f"SELECT result_id FROM results ORDER BY 1 LIMIT {MAX_IDS + 1}")
    ]
    with open_warehouse(warehouse) as connection:
        assert [result.result_id for result in load_results(connection, ids[:-1])] == ids[:-1]
        with pytest.raises(
            QueryError,
            match=f"{MAX_IDS + 1} results are too many to cite at once, at most {MAX_IDS}",
        ):
            load_results(connection, ids)


def test_results_of_one_source_share_a_footnote_and_an_entry(query: Query, warehouse: Path) -> None:
    names = [
        name
        for (name,) in query(
            "SELECT result_id FROM results WHERE publisher = 'Qwant' ORDER BY batch_size"
        )
    ]
    assert cite(names, warehouse=warehouse).count("[^1]:") == 1
    assert "[^2]" not in cite(names, warehouse=warehouse)
    assert cite(names, format="bibtex", warehouse=warehouse).count("@misc{") == 2
    assert len(json.loads(cite(names, format="csl-json", warehouse=warehouse))) == 2


@pytest.mark.slow
def test_hostile_text_ends_no_row_command_or_entry(hostile: Path, printed: str) -> None:
    sql = (
        "SELECT result_id, variant, throughput, latency_ms FROM results WHERE result_id ="
        f" '{printed}'"
    )
    tex, html, table = (
        format_cited_table(sql, output, hostile) for output in ("latex", "html", "markdown")
    )
    latex, bibtex, markdown = (
        cite(printed, format=name, warehouse=hostile) for name in ("latex", "bibtex", "markdown")
    )
    assert next(line for line in tex.splitlines() if "passwd" in line).count(" & ") == 2
    assert "textbackslash{}input" in tex
    for text in (tex, latex, bibtex):
        assert text.count("{") == text.count("}")
        assert r"\input" not in text
    assert len(re.findall(r"(?m)^@misc\{", bibtex)) == len(re.findall(r"(?m)^\}$", bibtex)) == 2
    assert all(
        "<script" not in page and "&lt;script&gt;" in page for page in (html, table, markdown)
    )
    assert not any(
        sign in text
        for sign in "\x1b\u202e"
        for text in (tex, html, table, latex, bibtex, markdown)
    )
    assert len(re.findall(r"(?<!\\)\|", table.splitlines()[2])) == 4
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
    assert not re.search(r"[<>\"]", escape_html(text))
    assert escape_url(text) == "" or re.fullmatch(r"https?://[!-~]*", escape_url(text))
    assert {
        escape_url(url) for url in ("javascript:alert(1)", "file:///etc/passwd", " https://x")
    } == {""}
    assert escape_url('https://x/a b{c}\\"<') == "https://x/a%20b%7Bc%7D%5C%22%3C"


QUERY = """
    SELECT result_id, model, platform, batch_size, throughput, latency_ms, throughput / chips AS
    per_chip
    FROM results WHERE network = 'ResNeXt101-32x4d' AND batch_size = 8 AND platform IN ('C2',
    'IPU-M2000')
        AND task = 'inference' ORDER BY throughput DESC
"""


def test_table_prints_figures_as_the_source_does(warehouse: Path) -> None:
    lines = format_cited_table(QUERY, "markdown", warehouse).splitlines()
    header, _, vendor, paper, emulator, _, *notes = lines
    assert header == "| model | platform | batch size (item) | throughput | latency | per chip† |"
    assert (
        vendor == "| ResNeXt101<sup>a</sup> | IPU-M2000 | 8 | 6,435 items/sec | 3.71 ms | 1608.75 |"
    )
    assert "| 2409.79 images/second | 3.32 milliseconds per batch |" in paper
    assert "2354.9054446591335 items/s (emulated, not measured)" in emulator
    assert [note[:9] for note in notes if note] == [
        "<sup>a</s",
        "<sup>b</s",
        "<sup>c</s",
        "<sup>†</s",
    ]
    assert "https://arxiv.org/abs/2002.11670, retrieved 2026-11-21" in lines[8]


def test_unit_that_all_rows_share_is_in_the_header(warehouse: Path) -> None:
    columns = "result_id, batch_size, throughput, latency_ms"
    sql = f"SELECT {columns} FROM results WHERE publisher = 'Qwant' ORDER BY batch_size"
    text = format_cited_table(sql, "latex", warehouse)
    assert (
        r"batch size (item) & throughput (images/second) & latency (milliseconds per batch) \\"
        in text
    )
    assert r"2\textsuperscript{a} & 1474.16 & 1.36 \\" in text
    assert text.count(r"\textsuperscript{a} ") == 1 + 6  # six rows, one note
    assert "dagger" not in text


def test_computed_value_is_never_shown_as_printed(warehouse: Path) -> None:
    sql = (
        "SELECT result_id, 2 * throughput AS throughput FROM results WHERE publisher = 'Qwant' AND"
        " batch_size = 2"
    )
    text = format_cited_table(sql, "markdown", warehouse)
    assert "| throughput (item/s)† |" in text
    assert "| 2948.32<sup>a</sup> |" in text
    assert "not printed by the source" in text


PAIR = """
    SELECT {ids}, first_publisher, first_figure, second_publisher, second_figure, ratio
    FROM replications WHERE first_publisher = 'Graphcore' AND first_figure = 4311
"""


def test_each_figure_of_a_pair_is_cited_by_its_own_source(warehouse: Path) -> None:
    sql = PAIR.format(ids="first_result_id, second_result_id")
    header, _, row, *notes = format_cited_table(sql, "markdown", warehouse).splitlines()
    assert (
        "first figure (items/sec) | second publisher | second figure (img/sec) | ratio† |" in header
    )
    assert "| Graphcore<sup>a</sup> | 4,311<sup>a</sup> |" in row
    assert "| 4,200<sup>b</sup> |" in row
    assert [note for note in notes if note.startswith("<sup>a</sup> Graphcore, ")]
    assert [note for note in notes if note.startswith("<sup>b</sup> Texas A")]
    for ids in ("first_result_id AS result_id", "first_result_id", "second_result_id"):
        with pytest.raises(QueryError, match="so that each figure is cited by its own source"):
            format_cited_table(PAIR.format(ids=ids), "markdown", warehouse)
    alone = "SELECT ipu_result_id AS result_id, energy_ratio FROM detail.energy_ipu_gpu LIMIT 1"
    with pytest.raises(
        QueryError, match="select ipu_result_id and gpu_result_id under those names"
    ):
        format_cited_table(alone, "markdown", warehouse)


def test_table_of_energy_discloses_the_flags_of_both_sides(warehouse: Path) -> None:
    columns = (
        "ipu_result_id, gpu_result_id, ipu_energy_per_item_j, gpu_energy_per_item_j, energy_ratio"
    )
    where = "contains(gpu_error_rules, 'R29') AND ipu_error_rules IS NULL"
    for output in ("latex", "markdown", "html"):
        text = format_cited_table(
            f"SELECT {columns} FROM detail.energy_ipu_gpu WHERE {where}", output, warehouse
        )
        assert "Quality rule R29" in text
        assert "ipu energy per item (J)" in text.replace(r"\_", "_").replace("†", "")


def test_header_has_a_plain_label_and_the_unit_of_what_is_computed(warehouse: Path) -> None:
    sql = (
        "SELECT result_id, throughput_per_chip, run_energy_j FROM results WHERE run_energy_j IS NOT"
        " NULL LIMIT 2"
    )
    header = format_cited_table(sql, "markdown", warehouse).splitlines()[0]
    assert header == "| throughput per chip (item/s)† | run energy (Wh) |"
    assert not any(
        "_" in make_label(name) or make_label(name).endswith((" ms", " s", " w", " j"))
        for name in FIGURES
    )


def test_table_of_mlperf_scores_marks_each_and_warns_of_a_mixture(
    warehouse: Path, official: str, printed: str
) -> None:
    where = f"result_id IN ('{official}', '{printed}')"
    sql = f"SELECT result_id, model, minutes, throughput FROM results WHERE {where} ORDER BY 3"
    text = format_cited_table(sql, "html", warehouse)
    assert "<td>19.6351556 (unverified)</td><td></td>" in text
    assert "<th>minutes (min)</th><th>throughput (items/sec)</th>" in text
    assert "MLPerf®" in text
    assert LEGEND in text
    assert "MLCommons does not allow comparing them" in text


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT model FROM results", "must select result_id"),
        ("SELECT result_id FROM results LIMIT 1", "selects result_id alone"),
        ("SELECT result_id, model FROM results", "a table has 1 to 500"),
        ("SELECT NULL AS result_id, 1 AS one", "cannot be cited"),
        ("SELECT 'x' AS result_id, 1 AS one", "unknown result 'x'"),
        ("DROP TABLE results", "read-only"),
    ],
)
def test_query_that_makes_no_table_is_one_line(sql: str, message: str, warehouse: Path) -> None:
    done = run_cli("table", sql, "--warehouse", warehouse)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
