"""The data of the site: complete, exact, reproducible, and safe as script."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from ipu_results.build import IngestConfig, ingest
from ipu_results.doors.analyses import ANALYSES
from ipu_results.doors.site import __main__ as command
from ipu_results.doors.site import build_site, charts
from ipu_results.doors.site.citations import build_mlperf, build_provenance
from ipu_results.doors.site.data import (
    EXAMPLES,
    build_claims,
    build_results,
    build_sql,
    encode_query,
    format_script,
)
from ipu_results.doors.site.start import build_start, read_release
from ipu_results.errors import IpuResultsError
from ipu_results.kit.sql import run_query
from ipu_results.record.store.files import DATABASE
from ipu_results.schema import SHARED, TABLES, VIEWS

from benchmarks.emulator.rows import load_published_rows
from tests.conftest import COMMITTED, PAPER, ROOT, copy_documents, list_rows
from tests.doors.mcp.conftest import copy_warehouse, edit_rows
from tests.release.release_support import PUBLISHED_ON, link_release, locate_table, replace_file

UNSAFE = "[<>&\u2028\u2029]"
EVIL = "</script><script>alert(1)</script><!-- & \u2028"
FAST: dict[str, Callable[..., Any]] = {
    "results": build_results,
    "provenance": build_provenance,
    "mlperf": build_mlperf,
    "claims": build_claims,
    "sql": build_sql,
}


@pytest.fixture(scope="module")
def first_view(connection: duckdb.DuckDBPyConnection) -> Mapping[str, Any]:
    return build_results(connection)


@pytest.fixture
def without_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipu_results.doors.site.build_charts", lambda _: [])
    monkeypatch.setattr("ipu_results.doors.site.SCRIPTS", FAST)


def parse_script(text: str) -> Any:
    """Parse the value in a script, as a browser would."""
    return json.loads(text[text.index("]=") + 2 :].removesuffix(";\n"))


def decode(frame: Mapping[str, Any], name: str) -> list[Any]:
    """Decode a column, as the page does."""
    [column] = [column for column in frame["columns"] if column["name"] == name]
    if "values" not in column and "codes" not in column:
        return list(column["words"])
    is_number = column["kind"] == "number"
    stored = column["values"] if is_number else column["codes"]
    values = []
    for value, length in zip(stored, column.get("runs", [1] * len(stored)), strict=True):
        values += [value] * length
    if is_number:
        return values
    words = [*column["words"], None]  # the code of none is -1
    return [words[code] for code in values]


def decode_rows(frame: Mapping[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """Decode the rows of some columns."""
    return list(zip(*(decode(frame, name) for name in names), strict=True))


def test_script_contains_no_character_that_could_end_it_and_no_nan() -> None:
    text = format_script("x", {EVIL: [EVIL, None, 1.5]})
    assert not re.search(UNSAFE, text)
    assert parse_script(text) == {EVIL: [EVIL, None, 1.5]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        format_script("x", float("nan"))


def test_columns_are_decoded_exactly() -> None:
    """Runs, distinct words, one word for all rows, and none; blank differs from zero."""
    rows = """
        (1, 'b', 'x', NULL, 0, true, ''),
        (1, 'a', 'x', NULL, NULL, NULL, NULL),
        (NULL, 'c', 'x', NULL, 0, NULL, ''),
        (0.1, 'd', 'x', NULL, 0, NULL, '')
    """
    names = "n::DOUBLE AS n, u, s, z::DOUBLE AS z, zero, flag, blank"
    with duckdb.connect() as connection:
        sql = f"SELECT {names} FROM (VALUES {rows}) t(n, u, s, z, zero, flag, blank)"
        frame = encode_query(connection, sql)
    assert decode(frame, "n") == [1, 1, None, 0.1]
    assert decode(frame, "u") == ["b", "a", "c", "d"]
    assert decode(frame, "s") == ["x"] * 4
    assert decode(frame, "z") == [None] * 4
    assert decode(frame, "zero") == [0, None, 0, 0]
    assert decode(frame, "flag") == ["true", None, None, None]
    assert decode(frame, "blank") == ["", None, "", ""]
    assert "codes" not in frame["columns"][1]
    assert "runs" in frame["columns"][2]


def test_findings_of_the_start_page_are_those_of_the_docs(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    docs = (ROOT / "docs/explanation/findings.md").read_text(encoding="utf-8")
    shown = set()
    for statement, figure, objection in re.findall(r"(?m)^\| (.+?) \| (.+?) \| (.+?) \|$", docs):
        shown.add((f"{statement}. {figure}.", f"{objection}."))
    findings = build_start(connection, COMMITTED)["findings"]
    assert 3 <= len(findings) <= 5
    for finding in findings:
        assert (finding["text"], finding["objection"]) in shown
        assert finding["bars"]
        assert all(bar["value"] > 0 for bar in finding["bars"])
    [too_short] = [finding for finding in findings if finding["name"] == "too_short"]
    assert len(too_short["bars"]) == 6


FIGURE = ("row", "metric", "value", "unit", "scope")


def test_every_result_has_its_exact_figures(
    first_view: Mapping[str, Any], connection: duckdb.DuckDBPyConnection
) -> None:
    table = pq.read_table(COMMITTED / "results.parquet")
    frame = first_view["results"]
    columns = {column["name"] for column in frame["columns"]}
    assert columns == {*table.column_names, "family", "processor"}
    for name in ("throughput", "time_to_train_s", "batch_size", "model", "origin", "platform"):
        written = decode_rows(frame, "result_id", name, "latency_ms")
        expected = list_rows(connection, f"SELECT result_id, {name}, latency_ms FROM results")
        assert sorted(written) == sorted(expected), name
    ids = decode(frame, "result_id")
    figures = set()
    for row, *values in decode_rows(first_view["figures"], *FIGURE):
        figures.add((ids[row], *values))
    sql = "SELECT result_id, metric, value, unit, scope FROM figures"
    assert figures == set(list_rows(connection, sql))
    assert len(figures) == first_view["figures"]["rows"]
    assert decode(frame, "document_id")[0] == "graphcore-performance-2023-07-04"
    # as printed, the vendor's newest page first
    assert decode(frame, "row_number")[:3] == [1, 2, 3]


def test_flags_are_those_of_their_rows(
    first_view: Mapping[str, Any], connection: duckdb.DuckDBPyConnection
) -> None:
    ids = decode(first_view["results"], "result_id")
    written = set()
    for row, *values in decode_rows(first_view["flags"], "row", "rule", "severity", "column_name"):
        written.add((ids[row], *values))
    rows = "FROM flags SEMI JOIN results USING (result_id)"  # others are of microbenchmarks
    expected = list_rows(connection, f"SELECT result_id, rule, severity, column_name {rows}")
    assert written == set(expected)
    assert {rule for _, rule, *_ in expected} <= first_view["rules"].keys()


def test_each_analysis_has_its_rows(
    first_view: Mapping[str, Any], connection: duckdb.DuckDBPyConnection
) -> None:
    sets = first_view["sets"]
    names = [analysis.name for analysis in ANALYSES]
    assert list(sets) == list(first_view["questions"]) == names
    assert all(sets.values())
    ids = decode(first_view["results"], "result_id")
    expected = list_rows(connection, "SELECT DISTINCT result_id FROM detail.resnext101")
    assert {(ids[row],) for row in sets["resnext101"]} == set(expected)


def test_every_printed_cell_has_a_document(connection: duckdb.DuckDBPyConnection) -> None:
    tables = build_provenance(connection)
    rows = "FROM cells SEMI JOIN results USING (result_id) WHERE raw_text <> ''"
    assert list_rows(connection, f"SELECT count(*) {rows}") == [(tables["cells"]["rows"],)]
    documents = decode(tables["documents"], "document_id")
    assert set(decode(tables["cells"], "document_id")) <= set(documents)


THROUGHPUTS = {4483, 3395, 86.02, 107.46, 111.07, 127.96}


def test_claim_uses_the_results_and_entries_of_its_recomputation(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    used: dict[str, set[str]] = {}
    for use in build_claims(connection)["uses"]:
        used.setdefault(use["claim_id"], set()).add(use["result_id"])
    entry = "SELECT result_id FROM mlperf_entries WHERE mlperf_id = '2.0-2052'"
    assert [*used["page2023-mlperf-2.0-2052"]] == [key for (key,) in list_rows(connection, entry)]
    results = list_rows(connection, "SELECT result_id, model, throughput FROM results")
    named = [row for row in results if row[0] in used["sdk14-resnext101-inference-throughput"]]
    assert {throughput for *_, throughput in named} == THROUGHPUTS
    assert all(model.startswith("ResNeXt101") for _, model, _ in named)
    assert "mlperf2021-price-half" not in used  # it uses prices alone


def test_example_queries_return_rows(connection: duckdb.DuckDBPyConnection) -> None:
    assert len(EXAMPLES) == 10
    for title, text in EXAMPLES.items():
        assert run_query(connection, text).num_rows, title


def test_every_table_and_view_is_described(connection: duckdb.DuckDBPyConnection) -> None:
    data = build_sql(connection)
    assert list(data["files"]) == [table.sql_name for table in TABLES]
    relations = {relation["table_name"] for relation in data["relations"]}
    assert relations == set(decode(data["columns"], "table_name"))
    assert relations >= {table.name for table in TABLES}
    created = "\n".join(data["views"])
    for view in (*VIEWS, *SHARED):
        name = re.escape(view.sql_name)
        assert re.search(rf"(?m)^CREATE (VIEW|MACRO) {name}\b", created)


@pytest.mark.slow
def test_predictions_are_complete_and_marked_emulated(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "DEFAULT_BATCH_SIZES", {"c2": (2, 12)})
    predictions = charts.build_predictions(connection)
    assert [(row["target"], row["batch_size"]) for row in predictions[:2]] == [
        ("c2", 2),
        ("c2", 12),
    ]
    assert {row["origin"] for row in predictions} == {"emulated"}


@pytest.mark.slow
def test_points_of_the_emulator_are_the_published_rows_and_the_frozen_predictions(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    [panel] = charts.build_predicted(connection)["specification"]["concat"]
    rows = panel["data"]["values"]
    assert len({point["Rows"] for point in rows}) == 4
    published = {}
    emulated = {}
    for point in rows:
        published[point["result_id"]] = point["Published time per batch (ms)"]
        emulated[point["result_id"]] = point["EMULATED time per batch (ms)"]
    assert len(published) == len(rows)
    expected = {row.result_id: row.seconds * 1000 for row in load_published_rows(connection)}
    assert published == pytest.approx(expected, rel=1e-14)
    path = ROOT / "benchmarks" / "emulator" / "data" / "predictions.csv"
    with path.open(encoding="utf-8", newline="") as file:
        frozen = {line["result_id"]: float(line["time_ms"]) for line in csv.DictReader(file)}
    assert {key: emulated[key] for key in frozen} == pytest.approx(frozen, rel=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("without_emulator")
def test_site_is_whole_safe_and_reproducible(tmp_path: Path) -> None:
    release = copy_warehouse(COMMITTED, tmp_path / "release")
    edit_rows(release, "results", {"result_id": "r9f9c88dbd0e35f60"}, variant=EVIL)
    written = build_site(release, tmp_path / "out")
    again = build_site(release, tmp_path / "again")
    scripts = {}
    for path, other in zip(written, again, strict=True):
        if path.suffix == ".duckdb":
            assert read_database(path) == read_database(other)
        else:
            assert path.read_bytes() == other.read_bytes(), path
        if path.suffix == ".js":
            scripts[path.stem] = path.read_text(encoding="utf-8")
    assert set(scripts) == {"start", "charts", "citations", *FAST}
    for name, text in scripts.items():
        assert not re.search(UNSAFE, text), name
    assert EVIL in decode(parse_script(scripts["results"])["results"], "variant")
    assert parse_script(scripts["start"])["build"]["version"] is None
    for table in TABLES:
        copied = locate_table(tmp_path / "out" / "parquet", table.name)
        assert copied.read_bytes() == locate_table(release, table.name).read_bytes()


def read_database(path: Path) -> dict[str, list[Any]]:
    """Read the rows of all tables; the bytes of a DuckDB file differ between two writes."""
    with duckdb.connect(str(path), read_only=True) as database:
        names = [name for (name,) in database.execute("SHOW TABLES").fetchall()]
        return {name: database.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in names}


@pytest.mark.slow
@pytest.mark.usefixtures("without_emulator")
def test_changed_release_is_refused(small_release: Path, tmp_path: Path) -> None:
    release = link_release(small_release, tmp_path / "release")
    done = run_site(release, tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    script = (tmp_path / "out" / "start.js").read_text(encoding="utf-8")
    build = parse_script(script)["build"]
    assert (build["version"], build["as_of"]) == ("1.0.0", PUBLISHED_ON.isoformat())
    replace_file(release / DATABASE, (release / DATABASE).read_bytes() + b"x")
    assert_refused(release, tmp_path / "other", f"{DATABASE}: sha256 differs")


@pytest.mark.slow
def test_site_of_one_document_builds_and_names_what_it_has_no_rows_for(tmp_path: Path) -> None:
    """The record of somebody who has one paper: no MLPerf rows, no pairs, no claims."""
    raw = copy_documents(tmp_path / "raw", PAPER)
    warehouse = tmp_path / "warehouse"
    ingest(IngestConfig(raw, warehouse))
    pages = tmp_path / "pages"
    done = run_site(warehouse, pages / "data", "--pages", pages)
    assert done.exit_code == 0, done.stderr
    for part in ("chart mlperf_noise", "chart mlperf_trends", "chart predicted", "finding bow"):
        assert f"warning: {part} is left out: the record has too few rows for it" in done.stderr
    assert [path.name for path in pages.glob("chart/*.html")] == ["resnext101.html"]
    scripts = {path.stem: path for path in pages.glob("data/*.js")}
    assert {"results", "mlperf", "rankings", "start"} < scripts.keys()
    for path in (*pages.rglob("*.html"), *pages.rglob("*.svg"), *scripts.values()):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\bnan\b|NaN|undefined|\bNone\b", text), path
    assert all(parse_script(path.read_text(encoding="utf-8")) for path in scripts.values())


def test_folder_without_a_release_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, tmp_path / "out", "contains no dataset")
    assert read_release(tmp_path) == {}  # a warehouse that was never published
    (tmp_path / "release.json").write_text("{}", encoding="utf-8")
    with pytest.raises(IpuResultsError, match="has no version"):
        read_release(tmp_path)


def run_site(*args: object) -> Result:
    return CliRunner().invoke(command.main, list(map(str, args)))


def assert_refused(release: Path, out: Path, message: str) -> None:
    done = run_site(release, out)
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("release", "npm", "page"),
    [
        ("missing", "exit 0", "old"),
        ("release", "exit 1", "old"),
        ("release", "echo new > build/new/index.html", "new"),
    ],
    ids=["wrong release", "failing npm", "whole"],
)
def test_make_site_replaces_the_old_site_only_with_a_whole_one(
    tmp_path: Path, release: str, npm: str, page: str
) -> None:
    """Replace npm and Python by scripts."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    dist = tmp_path / "site" / "dist"
    venv = tmp_path / "venv"
    for folder in (tmp_path / "release", dist, venv / "bin"):
        folder.mkdir(parents=True)
    (dist / "index.html").write_text("old\n", encoding="utf-8")
    scripts = {tmp_path / "npm": npm, venv / "bin/python": '[ -d "$3" ] && mkdir -p "$4"'}
    for path, text in scripts.items():
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    args = ["make", "-o", f"{venv}/.user", "site", f"RELEASE={release}", f"VENV={venv}"]
    done = subprocess.run(
        args, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode == 0) == (page == "new"), done.stderr
    assert (dist / "index.html").read_text(encoding="utf-8") == f"{page}\n"
    if page == "new":
        assert (dist / "data").is_dir()
        assert os.listdir(tmp_path / "site") == ["dist"]
