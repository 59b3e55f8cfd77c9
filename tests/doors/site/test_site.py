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
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
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
from tests.conftest import COMMITTED, ROOT, copy_documents
from tests.release.release_support import PUBLISHED_ON, link_release, locate_table, replace_file

SITE = ROOT / "site"
EVIL = "</script><script>alert(1)</script><!-- & \u2028"
UNSAFE = set("<>&\u2028\u2029")
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
    (column,) = (column for column in frame["columns"] if column["name"] == name)
    if "values" not in column and "codes" not in column:
        return list(column["words"])
    stored = column["values" if column["kind"] == "number" else "codes"]
    values = [
        value
        for value, length in zip(stored, column.get("runs", [1] * len(stored)), strict=True)
        for _ in range(length)
    ]
    if column["kind"] == "number":
        return values
    return [None if code < 0 else column["words"][code] for code in values]


def test_script_contains_no_character_that_could_end_it_and_no_nan() -> None:
    text = format_script("x", {EVIL: [EVIL, None, 1.5]})
    assert not UNSAFE & set(text)
    assert parse_script(text) == {EVIL: [EVIL, None, 1.5]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        format_script("x", float("nan"))


def test_blank_differs_from_zero() -> None:
    with duckdb.connect() as connection:
        frame = encode_query(
            connection, "SELECT * FROM (VALUES (0, '', true), (NULL, NULL, NULL)) t(n, s, b)"
        )
    assert [decode(frame, name) for name in "nsb"] == [[0, None], ["", None], ["true", None]]


def test_columns_are_decoded_exactly() -> None:
    """Runs, distinct words, one word for all rows, and none."""
    rows = "(1, 'b', 'x', NULL), (1, 'a', 'x', NULL), (NULL, 'c', 'x', NULL), (0.1, 'd', 'x', NULL)"
    with duckdb.connect() as connection:
        query = f"SELECT n::DOUBLE AS n, u, s, z::DOUBLE AS z FROM (VALUES {rows}) t(n, u, s, z)"
        frame = encode_query(connection, query)
    expected = {"n": [1, 1, None, 0.1], "u": list("bacd"), "s": ["x"] * 4, "z": [None] * 4}
    assert {name: decode(frame, name) for name in expected} == expected
    assert "codes" not in frame["columns"][1]
    assert "runs" in frame["columns"][2]


def test_findings_of_the_start_page_are_those_of_the_docs(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    docs = (ROOT / "docs/explanation/findings.md").read_text(encoding="utf-8")
    findings = build_start(connection, COMMITTED)["findings"]
    assert 3 <= len(findings) <= 5
    rows = [line.strip("| ").split(" | ") for line in docs.splitlines() if line.startswith("| ")]
    shown = {(f"{statement}. {figure}.", f"{objection}.") for statement, figure, objection in rows}
    assert {(finding["text"], finding["objection"]) for finding in findings} <= shown
    assert all(finding["bars"] for finding in findings)
    assert all(bar["value"] > 0 for finding in findings for bar in finding["bars"])
    assert [len(finding["bars"]) for finding in findings if finding["name"] == "too_short"] == [6]


def test_every_result_has_its_exact_figures(first_view: Mapping[str, Any]) -> None:
    table = pq.read_table(COMMITTED / "results.parquet")
    frame = first_view["results"]
    assert frame["rows"] == table.num_rows
    ids = decode(frame, "result_id")
    position = {result_id: row for row, result_id in enumerate(ids)}
    rows = [position[result_id] for result_id in table["result_id"].to_pylist()]
    assert {column["name"] for column in frame["columns"]} == {
        *table.column_names,
        "family",
        "processor",
    }
    names = (
        "throughput",
        "latency_ms",
        "time_to_train_s",
        "batch_size",
        "model",
        "origin",
        "platform",
    )
    for name in names:
        values = decode(frame, name)
        assert [values[row] for row in rows] == table[name].to_pylist(), name
    few = first_view["figures"]
    columns = ("row", "metric", "value", "unit", "scope")
    written = list(zip(*(decode(few, name) for name in columns), strict=True))
    expected = pq.read_table(COMMITTED / "figures.parquet").to_pylist()
    assert {(ids[row], *values) for row, *values in written} == {
        (own["result_id"], own["metric"], own["value"], own["unit"], own["scope"])
        for own in expected
    }
    assert len(written) == len(expected)
    assert decode(frame, "document_id")[0] == "graphcore-performance-2023-07-04"
    # as printed, the vendor's newest page first
    assert decode(frame, "row_number")[:3] == [1, 2, 3]


def test_flags_are_those_of_their_rows(
    first_view: Mapping[str, Any], connection: duckdb.DuckDBPyConnection
) -> None:
    ids, flags = decode(first_view["results"], "result_id"), first_view["flags"]
    names = ("row", "rule", "severity", "column_name")
    columns = [decode(flags, name) for name in names]
    written = {(ids[row], *values) for row, *values in zip(*columns, strict=True)}
    rows = "FROM flags SEMI JOIN results USING (result_id)"  # others are of microbenchmarks
    expected = run_query(
        connection, f"SELECT result_id, rule, severity, column_name {rows}"
    ).to_pylist()
    assert written == {tuple(flag.values()) for flag in expected}
    assert {flag["rule"] for flag in expected} <= first_view["rules"].keys()


def test_each_analysis_has_its_rows(
    first_view: Mapping[str, Any], connection: duckdb.DuckDBPyConnection
) -> None:
    assert (
        list(first_view["sets"])
        == list(first_view["questions"])
        == [analysis.name for analysis in ANALYSES]
    )
    assert all(first_view["sets"].values())
    ids = decode(first_view["results"], "result_id")
    expected = {
        row["result_id"]
        for row in run_query(connection, "SELECT result_id FROM detail.resnext101").to_pylist()
    }
    assert {ids[row] for row in first_view["sets"]["resnext101"]} == expected


def test_every_printed_cell_has_a_document(connection: duckdb.DuckDBPyConnection) -> None:
    tables = build_provenance(connection)
    rows = "FROM cells SEMI JOIN results USING (result_id) WHERE raw_text <> ''"
    (expected,) = run_query(connection, f"SELECT count(*) AS n {rows}").to_pylist()
    assert tables["cells"]["rows"] == expected["n"]
    assert set(decode(tables["cells"], "document_id")) <= set(
        decode(tables["documents"], "document_id")
    )


def test_claim_uses_the_results_and_entries_of_its_recomputation(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    uses = build_claims(connection)["uses"]
    entry = run_query(
        connection, "SELECT result_id FROM mlperf_entries WHERE mlperf_id = '2.0-2052'"
    ).to_pylist()
    assert [
        {"result_id": use["result_id"]}
        for use in uses
        if use["claim_id"] == "page2023-mlperf-2.0-2052"
    ] == entry
    used = {
        use["result_id"]
        for use in uses
        if use["claim_id"] == "sdk14-resnext101-inference-throughput"
    }
    rows = run_query(connection, "SELECT result_id, model, throughput FROM results").to_pylist()
    named = [row for row in rows if row["result_id"] in used]
    assert {row["throughput"] for row in named} == {4483, 3395, 86.02, 107.46, 111.07, 127.96}
    assert all(row["model"].startswith("ResNeXt101") for row in named)
    assert "mlperf2021-price-half" not in {use["claim_id"] for use in uses}  # it uses prices alone


def test_example_queries_return_rows(connection: duckdb.DuckDBPyConnection) -> None:
    assert len(EXAMPLES) == 10
    for title, text in EXAMPLES.items():
        assert run_query(connection, text).num_rows, title


def test_every_table_and_view_is_described(connection: duckdb.DuckDBPyConnection) -> None:
    data = build_sql(connection)
    assert list(data["files"]) == [table.sql_name for table in TABLES]
    relations = {relation["table_name"] for relation in data["relations"]}
    assert (
        {table.name for table in TABLES} <= relations == set(decode(data["columns"], "table_name"))
    )
    created = "\n".join(data["views"])
    for view in (*VIEWS, *SHARED):
        assert re.search(
            rf"^CREATE (VIEW|MACRO) {re.escape(view.sql_name)}\b", created, re.MULTILINE
        )


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
    points = {point["result_id"]: point for point in rows}
    assert len(points) == len(rows)
    published = {row.result_id: row.seconds * 1000 for row in load_published_rows(connection)}
    name = "Published time per batch (ms)"
    assert {key: point[name] for key, point in points.items()} == pytest.approx(
        published, rel=1e-14
    )
    path = ROOT / "benchmarks" / "emulator" / "data" / "predictions.csv"
    with path.open(encoding="utf-8", newline="") as file:
        frozen = {line["result_id"]: float(line["time_ms"]) for line in csv.DictReader(file)}
    name = "EMULATED time per batch (ms)"
    assert {key: points[key][name] for key in frozen} == pytest.approx(frozen, rel=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("without_emulator")
def test_site_is_whole_safe_and_reproducible(tmp_path: Path) -> None:
    release = copy_with_text(tmp_path / "release", "results", "variant", EVIL)
    written, again = build_site(release, tmp_path / "out"), build_site(release, tmp_path / "again")
    for path, other in zip(written, again, strict=True):
        if path.suffix == ".duckdb":
            assert read_database(path) == read_database(other)
        else:
            assert path.read_bytes() == other.read_bytes(), path
    scripts = {
        path.stem: path.read_text(encoding="utf-8") for path in written if path.suffix == ".js"
    }
    assert set(scripts) == {"start", "charts", "citations", *FAST}
    for name, text in scripts.items():
        assert not UNSAFE & set(text), name
    data = parse_script(scripts["results"])
    assert EVIL in decode(data["results"], "variant")
    assert parse_script(scripts["start"])["build"]["version"] is None
    for table in TABLES:
        copied = locate_table(tmp_path / "out" / "parquet", table.name)
        assert copied.read_bytes() == locate_table(release, table.name).read_bytes()


def read_database(path: Path) -> dict[str, list[Any]]:
    """Read the rows of all tables; the bytes of a DuckDB file differ between two writes."""
    with duckdb.connect(str(path), read_only=True) as database:
        names = [name for (name,) in database.execute("SHOW TABLES").fetchall()]
        return {name: database.execute(f"FROM {name} ORDER BY ALL").fetchall() for name in names}


def copy_with_text(folder: Path, table: str, column: str, text: str, row: int = 0) -> Path:
    """Copy the warehouse with another text in a row of a table."""
    shutil.copytree(COMMITTED, folder, ignore=shutil.ignore_patterns("*.duckdb", ".*"))
    path = locate_table(folder, table)
    content = pq.read_table(path)
    values = content[column].to_pylist()
    texts = pa.array([*values[:row], text, *values[row + 1 :]], pa.string())
    place = content.column_names.index(column)
    pq.write_table(content.set_column(place, content.schema.field(column), texts), path)
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("without_emulator")
def test_changed_release_is_refused(small_release: Path, tmp_path: Path) -> None:
    release = link_release(small_release, tmp_path / "release")
    done = CliRunner().invoke(command.main, [str(release), str(tmp_path / "out")])
    assert done.exit_code == 0, done.stderr
    script = (tmp_path / "out" / "start.js").read_text(encoding="utf-8")
    build = parse_script(script)["build"]
    assert (build["version"], build["as_of"]) == ("1.0.0", PUBLISHED_ON.isoformat())
    replace_file(release / DATABASE, (release / DATABASE).read_bytes() + b"x")
    assert_refused(release, tmp_path / "other", f"{DATABASE}: sha256 differs")


@pytest.mark.slow
def test_site_of_one_document_builds_and_names_what_it_has_no_rows_for(tmp_path: Path) -> None:
    """The record of somebody who has one paper: no MLPerf rows, no pairs, no claims."""
    raw = copy_documents(tmp_path / "raw", "qwant/resnext101-c2-2020-02-28.pdf")
    ingest(IngestConfig(raw, tmp_path / "warehouse"))
    pages = tmp_path / "pages"
    done = CliRunner().invoke(
        command.main, [*map(str, (tmp_path / "warehouse", pages / "data", "--pages", pages))]
    )
    assert done.exit_code == 0, done.stderr
    for part in ("chart mlperf_noise", "chart mlperf_trends", "chart predicted", "finding bow"):
        assert f"warning: {part} is left out: the record has too few rows for it" in done.stderr
    assert [path.name for path in pages.glob("chart/*.html")] == ["resnext101.html"]
    assert {"results", "mlperf", "rankings", "start"} < {
        path.stem for path in pages.glob("data/*.js")
    }
    for path in (*pages.rglob("*.html"), *pages.rglob("*.svg"), *pages.glob("data/*.js")):
        assert not re.search(
            r"\bnan\b|NaN|undefined|\bNone\b", text := path.read_text(encoding="utf-8")
        ), path
        assert path.suffix != ".js" or parse_script(text)


def test_folder_without_a_release_is_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path, tmp_path / "out", "contains no dataset")


def assert_refused(release: Path, out: Path, message: str) -> None:
    done = CliRunner().invoke(command.main, [str(release), str(out)])
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not out.exists()


def test_release_without_a_version_is_refused(tmp_path: Path) -> None:
    assert read_release(tmp_path) == {}  # a warehouse that was never published
    (tmp_path / "release.json").write_text("{}", encoding="utf-8")
    with pytest.raises(IpuResultsError, match="has no version"):
        read_release(tmp_path)


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
    for folder in (tmp_path / "release", dist, tmp_path / "venv" / "bin"):
        folder.mkdir(parents=True)
    (dist / "index.html").write_text("old\n", encoding="utf-8")
    for path, text in (
        (tmp_path / "npm", npm),
        (tmp_path / "venv/bin/python", '[ -d "$3" ] && mkdir -p "$4"'),
    ):
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    venv = tmp_path / "venv"
    args = ["make", "-o", f"{venv}/.user", "site", f"RELEASE={release}", f"VENV={venv}"]
    done = subprocess.run(
        args, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode == 0) == (page == "new"), done.stderr
    assert (dist / "index.html").read_text(encoding="utf-8") == f"{page}\n"
    if page == "new":
        assert (dist / "data").is_dir()
        assert os.listdir(tmp_path / "site") == ["dist"]
