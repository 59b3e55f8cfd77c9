"""The dataset as a whole: everything that the documents print is in it once, exact and traceable."""

from __future__ import annotations

import re
import shutil
from decimal import Decimal
from html import unescape
from pathlib import Path

import pytest
from ipu_results import build
from ipu_results.record.read import dispatch
from ipu_results.record.store.cache import Cache
from ipu_results.record.store.files import DATABASE
from ipu_results.schema import TABLES

from benchmarks.large import write_document
from tests.cases import read_cases
from tests.conftest import (
    PAGE,
    PAGE_ID,
    RAW,
    ROOT,
    Query,
    copy_documents,
    edit,
    find_error,
    get_error,
    query_rows,
    read_files,
    reseal,
    run_ingest,
    run_process,
    select_figure,
    sign,
)

PAGE_TABLES = (
    "ogb_lsc",
    "bow_training",
    "bow_inference",
    "mlperf_v2_training",
    "pod_training",
    "pod_time_to_result",
    "pod_inference",
)
FIGURE_HEADERS = {
    "Throughput (items/sec)": ("throughput", Decimal(1)),
    "Latency (ms)": ("latency_ms", Decimal(1)),
    "Time to Train (mins)": ("time_to_train_s", Decimal(60)),
    "Time To Result (secs)": ("time_to_result_s", Decimal(1)),
    "Batch Size": ("batch_size", Decimal(1)),
}


def parse_page() -> list[list[list[str]]]:
    """Read the page a second time, independently of the pipeline's reader."""
    text = (RAW / PAGE).read_text(encoding="utf-8")
    return [
        [
            [unescape(cell) for cell in re.findall(r"<t[dh]>(.*?)</t[dh]>", row)]
            for row in re.findall(r"<tr>.*?</tr>", table)
        ]
        for table in re.findall(r"<table>.*?</table>", text, re.S)
    ]


# golden tables


def test_every_printed_figure_of_the_page_is_in_results_once_and_exact(query: Query) -> None:
    figures = 0
    for name, (header, *rows) in zip(PAGE_TABLES, parse_page(), strict=True):
        for column, (field, factor) in FIGURE_HEADERS.items():
            if column not in header:
                continue
            stored = query(
                f"SELECT {select_figure(field)} FROM results r WHERE document_id = '{PAGE_ID}'"
                f" AND table_name = '{name}' ORDER BY row_number"
            )
            texts = [row[header.index(column)].replace(",", "") for row in rows]
            assert [value for (value,) in stored] == [
                float(Decimal(text) * factor) if text else None for text in texts
            ]
            figures += sum(map(bool, texts))
    assert figures == 236 + 104 + 228 + 11 + 1  # throughput, latency, batch, minutes, seconds


def test_challenge_results_are_exact(query: Query) -> None:
    assert query("""
        SELECT model, dataset, item, throughput, time_to_train_s, f.scope, f.value, benchmark
        FROM results
        JOIN figures f USING (result_id)
        WHERE table_name = 'ogb_lsc'
        ORDER BY row_number
    """) == [
        ("GPS++", "PCQM4Mv2", "graph", 17800.0, 85380.0, "MAE", 0.0719, "ogb-lsc"),
        ("TransE (256)", "WikiKG90Mv2", "triple", 1260000.0, 42600.0, "MRR", 0.2562, "ogb-lsc"),
    ]
    ranks = "SELECT raw_text FROM cells WHERE column_name = 'ranking'"
    assert query(ranks) == [("First",), ("First",)]


def test_every_source_row_is_accounted_for(query: Query) -> None:
    assert query("SELECT count(*) FROM source_rows WHERE status <> 'accepted'") == [(0,)]
    without = "FROM source_rows s ANTI JOIN results r USING (result_id) GROUP BY ALL"
    assert dict(query(f"SELECT table_name, count(*) {without}")) == {
        "claim_conditions": 16,
        "claims": 143,
        "configurations": 326,
        "contradicted": 111,
        "contradictions": 98,
        "facts": 184,
        "microbenchmarks": 6657,
        "mlperf_entries": 28,
        "mlperf_ids": 17,
        "mlperf_published": 16,
        "mlperf_rcp": 498,
        "mlperf_runs": 20_746,
        "peak_sources": 285,
        "runs": 11,
    }


def test_every_figure_of_results_is_a_cell_times_its_factor(query: Query) -> None:
    for column in (
        "batch_size",
        "throughput",
        "latency_ms",
        "efficiency",
        "time_to_train_s",
        "time_to_result_s",
        "quality_value",
    ):
        join = f"results r JOIN cells c ON r.result_id = c.result_id AND c.column_name = '{column}'"
        figure = select_figure(column)
        [(stored,)] = query(f"SELECT count({figure}) FROM results r")
        cited = (
            f"SELECT count(DISTINCT r.result_id) FROM {join}"
            f" WHERE c.value IS NOT NULL AND {figure} IS NOT NULL"
        )
        assert query(cited) == [(stored,)] > [(0,)]
        apart = f"c.value IS NOT NULL AND abs({figure} - c.value * c.factor) > 1e-9 * {figure}"
        assert query(f"SELECT {figure}, c.raw_text FROM {join} WHERE {apart}") == []


def test_locator_leads_back_to_the_printed_cell(query: Query) -> None:
    tables = parse_page()
    cells = query(f"SELECT locator, raw_text FROM cells WHERE document_id = '{PAGE_ID}'")
    for locator, text in cells:
        place = re.fullmatch(r"table (\d+), row (\d+), column (\d+) \((.+)\)", locator)
        assert place
        number, row, column = map(int, place.groups()[:3])
        header, *rows = tables[number - 1]
        assert (rows[row - 1][column - 1], header[column - 1]) == (text, place[4])
    assert len(cells) == sum(len(row) for table in tables for row in table[1:])


def test_committed_dataset_is_what_the_documents_give(query: Query) -> None:
    rows = "SELECT table_name, row_count, build_id FROM build ORDER BY 1"
    assert query_rows(ROOT / "warehouse", rows) == query(rows)


@pytest.mark.slow
def test_same_documents_give_the_same_bytes_anywhere(warehouse: Path, tmp_path: Path) -> None:
    """Build with another order of files, locale, time zone and hash seed."""
    other = tmp_path / "raw"
    for path in sorted(RAW.rglob("*"), reverse=True):
        if path.is_file() and "__pycache__" not in path.parts:
            target = other / path.relative_to(RAW)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    env = {"PYTHONHASHSEED": "42", "TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = run_process("ingest", "--raw", other, "--warehouse", tmp_path / "warehouse", env=env)
    assert done.returncode == 0, done.stderr
    expected = read_files(warehouse)
    made = read_files(tmp_path / "warehouse")
    assert len(expected) == len(TABLES) + 1
    assert {name for name in expected if made[name] != expected[name]} <= {DATABASE}


# rows that are not accepted

REFUSED = read_cases(__file__)["refused"]


def find_line(raw: Path, text: str) -> str:
    """Return the one line of the page with a text."""
    lines = (raw / PAGE).read_text(encoding="utf-8").splitlines(keepends=True)
    [line] = [line for line in lines if text in line]
    return line


def test_refused_row_is_quarantined_for_its_reason_and_no_other(page: Path) -> None:
    for case in REFUSED:
        edit(page, PAGE, case["old"], case["new"])
    # the table's last
    line = find_line(page, "<td>5,201</td>")
    edit(page, PAGE, line, line + line)
    line = find_line(page, "<td>31,617</td>")
    edit(page, PAGE, line, line + line.replace("31,617", "31,618"))
    sidecar = page / f"{PAGE}.toml"
    text = sidecar.read_text().replace("rows = 37,", "rows = 38,")
    sidecar.write_text(text.replace("rows = 64", "rows = 65"))
    (page / "graphcore" / "stray.html").write_text("<html></html>")
    assert "the words that say what its figures mean are no longer those" in get_error(page)
    sign(page)

    done = run_ingest(page, "--strict")
    assert done.returncode == 1
    assert (page.parent / "warehouse" / "results.parquet").exists(), done.stderr
    quarantined = "SELECT reason, message, locator FROM quarantine"
    quarantine = query_rows(page.parent / "warehouse", quarantined)
    expected = [case["reason"] for case in REFUSED] + ["conflicting-rows"] * 2
    assert sorted(reason for reason, *_ in quarantine) == sorted(expected)
    for case in REFUSED:
        told = [reason for reason, message, _ in quarantine if case["word"] in message]
        assert told == [case["reason"]]
    findings = done.stderr.splitlines()
    for reason, message, locator in quarantine:
        assert f"finding: quarantined: {PAGE_ID}: {locator}: {message} ({reason})" in findings
    assert "finding: not ingested: graphcore/stray.html has no sidecar" in findings
    unknown = [line for line in findings if line.startswith("finding: unknown ")]
    assert len(unknown) == sum(reason.startswith("unknown-") for reason in expected)
    assert len(findings) == len(unknown) + len(quarantine) + 1
    status = "SELECT status, count(*) FROM source_rows GROUP BY 1 ORDER BY 1"
    assert query_rows(page.parent / "warehouse", status) == [
        ("accepted", 250 - 1 - len(expected)),
        ("duplicate", 1),
        ("quarantined", len(expected)),
    ]


# documents that stop the build


TEXT = (RAW / PAGE).read_text(encoding="utf-8")
LAST_ROW = find_line(RAW, "<td>31,617</td>")
LOST_TABLE = re.findall(r"<table>.*?</table>", TEXT, re.S)[5]
BROKEN = {
    "a renamed header": ("<th>Precision</th>", "<th>Format</th>", "'Format'"),
    "a lost table": (LOST_TABLE, "", "pod_time_to_result: is missing, the sidecar expects 1"),
    "a lost row": (LAST_ROW, "", "has 63 rows, the sidecar expects 64"),
    "a row more": (LAST_ROW, LAST_ROW * 2, "has 65 rows, the sidecar expects 64"),
    "a truncated page": (TEXT[len(TEXT) // 2 :], "", "ends in the middle"),
}


@pytest.mark.parametrize(("old", "new", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_document_stops_the_build(page: Path, old: str, new: str, message: str) -> None:
    edit(page, PAGE, old, new)
    line = find_error(page)
    assert line.startswith(f"error: {PAGE_ID}: ")
    assert message in line


LARGE_ROWS = 20_000


def test_error_at_the_end_of_a_large_document_names_document_and_line(tmp_path: Path) -> None:
    write_document(tmp_path / "raw", LARGE_ROWS)
    with (tmp_path / "raw" / "large.csv").open("a", encoding="utf-8") as file:
        file.write('"never closed\n')
    reseal(tmp_path / "raw", "large.csv")
    message = f"line {LARGE_ROWS + 2}: is not CSV: unexpected end of data"
    assert find_error(tmp_path / "raw") == f"error: large: {message}"


@pytest.mark.parametrize(
    ("function", "place"),
    [
        ("read_document", "large: read"),
        ("normalise", "large: normalise"),
        ("build_source_frames", "large: check"),
        ("find_flags", "check"),
    ],
)
def test_document_too_large_for_the_memory_is_named_with_the_stage(
    function: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    write_document(tmp_path / "raw", LARGE_ROWS // 100)
    monkeypatch.setattr(build, function, fail)
    reason = "MemoryError: free memory, raise --memory-limit, or divide the document"
    assert get_error(tmp_path / "raw") == f"error: {place}: {reason}"


def test_too_low_a_memory_limit_is_one_line_and_leaves_the_old_build(tmp_path: Path) -> None:
    write_document(tmp_path / "raw", LARGE_ROWS // 10)
    assert run_ingest(tmp_path / "raw").returncode == 0
    before = read_files(tmp_path / "warehouse")
    done = run_ingest(tmp_path / "raw", "--memory-limit", "4MB")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "memory" in line.casefold()
    assert read_files(tmp_path / "warehouse") == before


def test_memory_limit_that_is_no_size_is_refused(tmp_path: Path) -> None:
    done = run_ingest(tmp_path / "raw", "--memory-limit", "much")
    assert done.returncode == 2
    assert "'much' is not a size such as 2GB" in done.stderr


def test_build_id_covers_the_statements_that_a_build_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = tmp_path / "schema"
    shutil.copytree(ROOT / "schema", schema)
    monkeypatch.setattr(build, "SCHEMA", schema)
    ids = {build.digest_inputs([], {})}
    changed = (
        "macros.sql",
        "claims/departures.sql",
        "derived/results.sql",
        "links/added.sql",
        "rules/R47-suspect.sql",
    )
    for path in changed:
        with (schema / path).open("a", encoding="utf-8") as file:
            file.write("-- changed\n")
        ids.add(build.digest_inputs([], {}))
    assert len(ids) == 1 + len(changed)


def test_document_whose_reader_fails_is_told_and_the_others_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw"
    write_document(raw, 3)
    copy_documents(raw, PAGE)

    def fail(*_: object, **__: object) -> None:
        raise NotImplementedError("oklch")

    # another test may have read the page in this process
    monkeypatch.setattr(build, "open_cache", lambda _: Cache(tmp_path / ".cache", "code"))
    monkeypatch.setattr(dispatch, "read_html", fail)
    done = run_ingest(raw)
    reason = "the reader failed: NotImplementedError: oklch"
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {PAGE_ID}: {reason} (--debug shows where)\n")
    documents = query_rows(raw.parent / "warehouse", "SELECT DISTINCT document_id FROM results")
    assert documents == [("large",)]
    assert "in fail\n" in run_ingest(raw, "--debug").stderr
