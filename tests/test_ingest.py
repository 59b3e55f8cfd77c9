"""The dataset as a whole: what the carried documents print is in it, once, exact, and traceable."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import PAGE, PAGE_ID, PAPER_ID, RAW, ROOT, Ask, edit, reseal, run_cli, run_process
from ipu_results.schema import TABLES

COUNTS = {
    "ogb_lsc": 2,
    "bow_training": 64,
    "bow_inference": 37,
    "mlperf_v2_training": 11,
    "pod_training": 62,
    "pod_time_to_result": 1,
    "pod_inference": 71,
}
FIGURE_HEADERS = {
    "Throughput (items/sec)": ("throughput", Decimal(1)),
    "Latency (ms)": ("latency_ms", Decimal(1)),
    "Time to Train (mins)": ("time_to_train_s", Decimal(60)),
    "Time To Result (secs)": ("time_to_result_s", Decimal(1)),
    "Batch Size": ("batch_size", Decimal(1)),
}
PAPER = {
    2: (1.36, 1474.16, 6.51),
    4: (1.94, 2063.03, 7.80),
    6: (2.82, 2131.01, 7.87),
    8: (3.32, 2409.79, 9.07),
    10: (4.13, 2421.82, 9.68),
    12: (4.75, 2526.35, 9.49),
}


class Cells(HTMLParser):
    """A second, independent reading of the page: nothing of the pipeline's own reader."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.tables[-1][-1][-1] += data


def printed_tables() -> list[list[list[str]]]:
    parser = Cells()
    parser.feed((RAW / PAGE).read_text(encoding="utf-8"))
    return parser.tables


def test_every_table_of_the_page_has_its_rows(ask: Ask) -> None:
    found = ask(f"SELECT table_name, count(*) FROM results WHERE document_id = '{PAGE_ID}' GROUP BY ALL")
    assert dict(found) == COUNTS
    assert sum(COUNTS.values()) == 248


def test_every_printed_figure_of_the_page_is_in_results_once_and_exact(ask: Ask) -> None:
    figures = 0
    for name, (header, *rows) in zip(COUNTS, printed_tables(), strict=True):
        for column, (field, factor) in FIGURE_HEADERS.items():
            if column not in header:
                continue
            where = f"document_id = '{PAGE_ID}' AND table_name = '{name}'"
            stored = ask(f"SELECT {field} FROM results WHERE {where} ORDER BY row_number")
            texts = [row[header.index(column)].replace(",", "") for row in rows]
            assert [value for (value,) in stored] == [float(Decimal(text) * factor) if text else None for text in texts]
            figures += sum(map(bool, texts))
    assert figures == 236 + 104 + 228 + 11 + 1  # throughput, latency, batch, minutes, seconds


def test_the_challenge_results_are_exact(ask: Ask) -> None:
    columns = "model, dataset, item, throughput, time_to_train_s, quality_metric, quality_value, ranking, benchmark"
    assert ask(f"SELECT {columns} FROM results WHERE table_name = 'ogb_lsc' ORDER BY row_number") == [
        ("GPS++", "PCQM4Mv2", "graph", 17800.0, 85380.0, "MAE", 0.0719, "First", "ogb-lsc"),
        ("TransE (256)", "WikiKG90Mv2", "triple", 1260000.0, 42600.0, "MRR", 0.2562, "First", "ogb-lsc"),
    ]


def test_the_paper_gives_six_results_and_eighteen_figures(ask: Ask) -> None:
    figures = "batch_size, latency_ms, throughput, efficiency"
    rows = ask(f"SELECT {figures} FROM results WHERE table_name = 'qwant_c2' ORDER BY row_number")
    assert {batch: figures for batch, *figures in rows} == {batch: list(figures) for batch, figures in PAPER.items()}
    setup = "platform, chip, chip_count, sdk_version, framework, compute_precision, item, model, precision"
    assert ask(f"SELECT DISTINCT {setup} FROM results WHERE table_name = 'qwant_c2'") == [
        ("C2", "GC2", 2, "1.0.136", "PopART", "mixed", "image", "ResNeXt101", None)
    ]
    assert ask("SELECT DISTINCT batch_size / micro_batch_size FROM results WHERE table_name = 'qwant_c2'") == [(2.0,)]


def test_blank_is_not_unknown(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM quarantine") == [(0,)]
    tgn = (
        "SELECT dataset, batch_size, precision, throughput FROM results WHERE model = 'TGN' AND platform = '1x Bow IPU'"
    )
    assert ask(tgn) == [(None, None, None, 31617.0)]


def test_older_pages_and_comparators_are_results_of_their_publishers(ask: Ask) -> None:
    assert ask("SELECT publisher, count(*) FROM results GROUP BY ALL ORDER BY 1") == [
        ("Graphcore", 298),
        ("MLCommons", 270),
        ("NVIDIA", 212),
        ("Qwant", 6),
        ("local", 30),
    ]
    lines = "SELECT count(*), count(DISTINCT result_id) FROM source_rows WHERE document_id = 'nvidia-a100-comparators'"
    assert ask(lines) == [(284, 212)]
    assert ask("SELECT count(*) FROM results WHERE table_name = 'bow_training_history'") == [(50,)]
    kept = "SELECT DISTINCT sdk_version FROM results WHERE document_id = 'graphcore-performance-2022-03'"
    assert ask(kept) == [("Pre-SDK2.5",)]


def test_every_source_row_is_accounted_for(ask: Ask) -> None:
    by_document = "SELECT document_id, count(*), count(*) FILTER (status = 'accepted') FROM source_rows GROUP BY ALL"
    assert all(rows == accepted for _, rows, accepted in ask(by_document))
    assert ask("SELECT count(*) FROM source_rows") == [
        (248 + 18 + 50 + 284 + 262 + 2760 + 8 + 65 + 17 + 5 + 30 + 246 + 116 + 17,)
    ]
    orphaned = (
        "SELECT table_name, count(*) FROM source_rows s ANTI JOIN results r USING (result_id) GROUP BY ALL ORDER BY 1"
    )
    assert ask(orphaned) == [
        ("claims", 116),
        ("configurations", 246),
        ("contradictions", 17),
        ("mlperf_ids", 17),
        ("mlperf_runs", 2825),
        ("runs", 5),
    ]


def test_every_figure_of_results_is_a_cell_times_its_factor(ask: Ask) -> None:
    """Report, don't repair: no figure stands in results that cells do not lead to, and the other way round."""
    columns = (
        "throughput",
        "latency_ms",
        "efficiency",
        "time_to_train_s",
        "time_to_result_s",
        "quality_value",
        "batch_size",
    )
    for column in columns:
        join = f"results r JOIN cells c ON r.result_id = c.result_id AND c.column_name = '{column}'"
        held = ask(f"SELECT count(*) FROM results WHERE {column} IS NOT NULL")[0][0]
        cited = ask(
            f"SELECT count(DISTINCT r.result_id) FROM {join} WHERE c.value IS NOT NULL AND r.{column} IS NOT NULL"
        )
        wrong = ask(
            f"SELECT r.{column}, c.raw_text FROM {join} WHERE c.value IS NOT NULL AND "
            f"abs(r.{column} - c.value * c.factor) > 1e-9 * r.{column}"
        )
        assert held > 0
        assert cited == [(held,)]
        assert wrong == []


def test_a_conversion_is_recorded_with_unit_and_factor(ask: Ask) -> None:
    found = ask(
        "SELECT c.raw_text, c.value, c.unit, c.factor, r.time_to_train_s, c.locator "
        "FROM cells c JOIN results r USING (result_id) "
        "WHERE r.origin = 'published' AND r.mlperf_id = '2.0-2047' AND c.column_name = 'time_to_train_s'"
    )
    assert found == [("19.64", 19.64, "mins", 60.0, 1178.4, "table 4, row 1, column 10 (Time to Train (mins))")]


def test_a_locator_leads_back_to_the_cell(ask: Ask) -> None:
    """Every cell of the page is found where its locator says, by the second reading of the page."""
    tables = printed_tables()
    cells = ask(f"SELECT locator, raw_text FROM cells WHERE document_id = '{PAGE_ID}'")
    place = re.compile(r"table (\d+), row (\d+), column (\d+) \((.+)\)")
    for locator, text in cells:
        found = place.fullmatch(str(locator))
        assert found
        table, row, column = (int(found.group(i)) for i in (1, 2, 3))
        assert tables[table - 1][row][column - 1] == text
        assert tables[table - 1][0][column - 1] == found.group(4)
    assert len(cells) == sum(len(row) for table in tables for row in table[1:])


def test_the_committed_dataset_is_what_the_documents_give(ask: Ask) -> None:
    """The repository itself is the published dataset: a rebuild has the same rows."""
    done = run_cli(
        "query", "--warehouse", ROOT / "warehouse", "--format", "json", "SELECT * FROM build ORDER BY table_name"
    )
    assert done.returncode == 0, done.stderr
    committed = {row["table_name"]: (row["row_count"], row["rows_sha256"]) for row in json.loads(done.stdout)}
    assert {
        name: (count, digest) for name, count, digest in ask("SELECT table_name, row_count, rows_sha256 FROM build")
    } == committed


UNKNOWN = [  # each in a row of its own
    ("<td>Bow Pod64</td><td>SDK 3.0</td>", "<td>Bow Pod65</td><td>SDK 3.0</td>", "unknown-platform", "Bow Pod65"),
    (
        "<td>PyTorch</td><td>Wikipedia</td><td>65,536</td>",
        "<td>JAX</td><td>Wikipedia</td><td>65,536</td>",
        "unknown-framework",
        "JAX",
    ),
    ("<td>16.16</td><td>3,656</td>", "<td>8.8</td><td>3,656</td>", "unknown-precision", "8.8"),
    ("<td>BERT Base</td>", "<td>BERT Huge</td>", "unknown-model", "BERT Huge"),
    ("<td>4,387</td>", "<td>4,3Z7</td>", "unreadable-figure", "4,3Z7"),
    ("<td>65,280</td>", "<td>652,80</td>", "unreadable-figure", "652,80"),
]


def test_an_unknown_word_quarantines_its_row_and_no_other(page: Path) -> None:
    for old, new, _, _ in UNKNOWN:
        edit(page, PAGE, old, new)
    target = page.parent / "warehouse"
    done = run_cli("ingest", "--strict", "--raw", page, "--warehouse", target)
    assert done.returncode == 1, done.stderr
    assert f" {248 - len(UNKNOWN)} " in next(line for line in done.stdout.splitlines() if PAGE_ID in line)
    found = run_cli("query", "--warehouse", target, "--format", "json", "SELECT reason, message, raw FROM quarantine")
    rows = json.loads(found.stdout)
    assert len(rows) == len(UNKNOWN)
    for _, _, reason, word in UNKNOWN:
        assert word in done.stderr
        assert [row["reason"] for row in rows if word in row["message"] and word in row["raw"]] == [reason]


def test_an_unknown_unit_quarantines_every_row_under_it(page: Path) -> None:
    edit(page, PAGE, "<th>Time To Result (secs)</th>", "<th>Time To Result (fortnights)</th>")
    done = run_cli("ingest", "--raw", page, "--warehouse", page.parent / "warehouse")
    assert done.returncode == 0
    assert "fortnights" in done.stderr
    assert "unknown-unit" in done.stderr


def test_a_row_one_cell_short_is_quarantined(page: Path) -> None:
    edit(page, PAGE, "<td>PopART</td><td>Wikipedia</td><td>54,784</td>", "<td>PopART</td><td>54,784</td>")
    done = run_cli("ingest", "--raw", page, "--warehouse", page.parent / "warehouse")
    assert done.returncode == 0
    assert "table 2, row 1: 8 cells under a header of 9 (row-width)" in done.stderr


def test_a_repeated_row_is_told_and_counted(page: Path) -> None:
    line = next(line for line in (page / PAGE).read_text().splitlines() if "<td>5,201</td>" in line)  # the table's last
    edit(page, PAGE, line, f"{line}\n{line}")
    sidecar = page / f"{PAGE}.toml"
    sidecar.write_text(sidecar.read_text().replace("rows = 37,", "rows = 38,"))
    target = page.parent / "warehouse"
    assert run_cli("ingest", "--raw", page, "--warehouse", target).returncode == 0
    found = run_cli(
        "query",
        "--warehouse",
        target,
        "--format",
        "csv",
        "SELECT status, count(*) FROM source_rows GROUP BY 1 ORDER BY 1",
    )
    assert found.stdout.split() == ["status,count_star()", "accepted,248", "duplicate,1"]


def test_rows_that_contradict_each_other_are_both_quarantined(page: Path) -> None:
    line = next(line for line in (page / PAGE).read_text().splitlines() if "<td>5,201</td>" in line)  # the table's last
    edit(page, PAGE, line, f"{line}\n{line.replace('<td>5,201</td>', '<td>5,202</td>')}")
    sidecar = page / f"{PAGE}.toml"
    sidecar.write_text(sidecar.read_text().replace("rows = 37,", "rows = 38,"))
    done = run_cli("ingest", "--raw", page, "--warehouse", page.parent / "warehouse")
    assert done.returncode == 0
    assert done.stderr.count("conflicting-rows") == 2


def without_table(text: str, number: int) -> str:
    start, stop = [found.span() for found in re.finditer(r"<table>.*?</table>", text, re.S)][number]
    return text[:start] + text[stop:]


def without_line(text: str, word: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if word not in line)


BROKEN: dict[str, tuple[Callable[[str], str], str]] = {
    "a renamed header": (lambda text: text.replace("<th>Precision</th>", "<th>Format</th>", 1), "'Format'"),
    "a header short of a name": (lambda text: text.replace("<th>Precision</th>", "", 1), "lacks 'Precision'"),
    "a header twice": (lambda text: text.replace("<th>Dataset</th>", "<th>Model</th>", 1), "repeats 'Model'"),
    "a lost table": (lambda text: without_table(text, 5), "pod_time_to_result: is not there"),
    "a table without rows": (lambda text: without_line(text, "<td>MCMC TFP</td>"), "the table has no row"),
    "a lost row": (lambda text: without_line(text, "<td>31,617</td>"), "has 63 rows, the sidecar promises 64"),
    "a truncated page": (lambda text: text[: len(text) // 2], "truncated"),
    "a page without its end": (lambda text: text.replace("</html>", ""), "truncated"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_document_stops_the_build_and_the_old_one_stays(page: Path, built: Path, what: str) -> None:
    change, word = BROKEN[what]
    before = {path.name: path.read_bytes() for path in built.iterdir()}
    (page / PAGE).write_text(change((page / PAGE).read_text()))
    reseal(page, PAGE)
    done = run_cli("ingest", "--raw", page, "--warehouse", built)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {PAGE_ID}: ")
    assert len(done.stderr.splitlines()) == 1
    assert word in done.stderr
    assert {path.name: path.read_bytes() for path in built.iterdir()} == before


def test_a_document_that_was_changed_behind_its_sidecar_stops_the_build(page: Path) -> None:
    path = page / PAGE
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if "Yolo v4" in line)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    path.write_text("".join(lines))
    done = run_cli("ingest", "--raw", page, "--warehouse", page.parent / "warehouse")
    assert done.returncode == 1
    assert "sha256" in done.stderr
    assert PAGE_ID in done.stderr


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b"<html><body>502 Bad Gateway</body></html>", "not a PDF"),
        (bytes(range(256)) * 64, "not a PDF"),
    ],
)
def test_a_paper_that_is_no_pdf_stops_the_build(raw: Path, content: bytes, word: str) -> None:
    file = "qwant/resnext101-c2-2020-02-28.pdf"
    (raw / file).write_bytes(content)
    reseal(raw, file)
    done = run_cli("ingest", "--raw", raw, "--warehouse", raw.parent / "warehouse")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {PAPER_ID}: ")
    assert word in done.stderr
    assert not (raw.parent / "warehouse" / "results.parquet").exists()


def test_a_document_over_the_limit_is_refused(raw: Path) -> None:
    done = run_cli("ingest", "--raw", raw, "--warehouse", raw.parent / "warehouse", "--max-size", "0.02")
    assert done.returncode == 1
    assert "the limit is 20,000" in done.stderr


def test_the_same_documents_give_the_same_bytes_anywhere(warehouse: Path, tmp_path: Path) -> None:
    """Another order of files, locale, time zone and hash seed."""
    other = tmp_path / "raw"
    for path in sorted(RAW.rglob("*"), reverse=True):
        if path.is_file() and "__pycache__" not in path.parts:
            target = other / path.relative_to(RAW)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    env = {"PYTHONHASHSEED": "42", "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = run_process("ingest", "--raw", other, "--warehouse", tmp_path / "warehouse", env=env)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in warehouse.glob("*.parquet"))
    assert len(names) == len(TABLES)
    for name in names:
        assert (tmp_path / "warehouse" / name).read_bytes() == (warehouse / name).read_bytes(), name


def test_a_file_without_a_sidecar_is_named(page: Path) -> None:
    (page / "graphcore" / "stray.html").write_text("<html></html>")
    done = run_cli("ingest", "--raw", page, "--warehouse", page.parent / "warehouse")
    assert done.returncode == 0
    assert "no sidecar speaks of graphcore/stray.html" in done.stderr


def test_one_document_under_two_names_is_refused(raw: Path) -> None:
    for suffix in ("", ".toml"):
        shutil.copyfile(raw / f"{PAGE}{suffix}", raw / "graphcore" / f"again.html{suffix}")
    sidecar = raw / "graphcore" / "again.html.toml"
    sidecar.write_text(sidecar.read_text().replace(PAGE_ID, "another-name"))
    done = run_cli("ingest", "--raw", raw, "--warehouse", raw.parent / "warehouse")
    assert done.returncode == 1
    assert "has the same bytes as" in done.stderr


def test_a_figure_of_nothing_is_quarantined(page: Path) -> None:
    edit(page, PAGE, "<td>22,759</td>", "<td>0</td>")
    done = run_cli("ingest", "--raw", page, "--warehouse", page.parent / "warehouse")
    assert done.returncode == 0
    assert "throughput-out-of-range" in done.stderr
