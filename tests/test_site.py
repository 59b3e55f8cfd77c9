"""The data of the site: complete, exact, the same at each build, and harmless as script."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from ipu_results._util.sql import run_query
from ipu_results.analyses import ANALYSES
from ipu_results.emulator.published import load_published_rows
from ipu_results.errors import IpuResultsError
from ipu_results.release import Asked, publish
from ipu_results.schema import TABLES
from ipu_results.site import __main__ as command
from ipu_results.site import build, charts, emulated, ledger, provenance, results, sql
from ipu_results.site.frame import frame
from ipu_results.site.script import script
from ipu_results.store.files import DATABASE
from ipu_results.store.query import open_warehouse

from tests.conftest import ROOT

COMMITTED = ROOT / "warehouse"
SITE = ROOT / "site"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
EVIL = "</script><script>alert(1)</script><!-- & \u2028"
LIGHT = (results.data, provenance.data, provenance.logs, ledger.data, sql.data)


@pytest.fixture(scope="module")
def connection():
    with open_warehouse(COMMITTED) as found:
        yield found


@pytest.fixture(scope="module")
def first(connection: duckdb.DuckDBPyConnection) -> Mapping[str, Any]:
    return results.data(connection, None)


def read(path: Path) -> Any:
    """The value in a script, as a browser would have it."""
    text = path.read_text(encoding="utf-8")
    return json.loads(text[text.index("]=") + 2 :].removesuffix(";\n"))


def values(made: Mapping[str, Any], name: str) -> list[Any]:
    (column,) = (one for one in made["columns"] if one["name"] == name)
    if column["kind"] == "number":
        return list(column["values"])
    return [None if code < 0 else column["words"][code] for code in column["codes"]]


def doctored(folder: Path, table: str, column: str, value: str) -> Path:
    """A release in which the first row of a table has another text."""
    shutil.copytree(COMMITTED, folder, ignore=shutil.ignore_patterns("*.duckdb", ".*"))
    path = folder / f"{table}.parquet"
    found = pq.read_table(path)
    texts = [value, *found[column].to_pylist()[1:]]
    place = found.column_names.index(column)
    pq.write_table(found.set_column(place, found.schema.field(column), pa.array(texts, pa.string())), path)
    return folder


def test_a_script_cannot_be_left():
    made = script("x", {EVIL: [EVIL, None, 1.5]})
    assert not set("<>&\u2028\u2029") & set(made)
    assert json.loads(made.split("=", 2)[2].removesuffix(";\n")) == {EVIL: [EVIL, None, 1.5]}


def test_no_figure_is_written_that_is_none():
    with pytest.raises(ValueError, match="not JSON compliant"):
        script("x", float("nan"))


def test_every_result_is_there_with_its_exact_figures(first: Mapping[str, Any]):
    table = pq.read_table(COMMITTED / "results.parquet")
    made = first["results"]
    assert made["rows"] == table.num_rows
    order = {one: row for row, one in enumerate(values(made, "result_id"))}
    places = [order[one] for one in table["result_id"].to_pylist()]
    for name in ("throughput", "latency_ms", "time_to_train_s", "batch_size", "model", "origin", "platform"):
        column = values(made, name)
        assert [column[place] for place in places] == table[name].to_pylist(), name


def test_the_vendors_newest_page_comes_first_as_printed(first: Mapping[str, Any]):
    made = first["results"]
    assert values(made, "document_id")[0] == "graphcore-performance-2023-07-04"
    assert values(made, "row_number")[:3] == [1, 2, 3]


def test_flags_lie_on_their_rows(first: Mapping[str, Any], connection: duckdb.DuckDBPyConnection):
    ids = values(first["results"], "result_id")
    flags = first["flags"]
    columns = (flags["rules"], flags["severities"], flags["columns"])
    made = {(ids[row], *told) for row, *told in zip(flags["rows"], *columns, strict=True)}
    found = run_query(connection, "SELECT result_id, rule, severity, column_name FROM flags").to_pylist()
    assert made == {tuple(flag.values()) for flag in found}
    assert {flag["rule"] for flag in found} <= first["rules"].keys()


def test_each_analysis_has_its_rows(first: Mapping[str, Any], connection: duckdb.DuckDBPyConnection):
    assert list(first["sets"]) == list(first["questions"]) == [one.name for one in ANALYSES]
    assert all(first["sets"].values())
    ids = values(first["results"], "result_id")
    wanted = {row["result_id"] for row in run_query(connection, "SELECT result_id FROM resnext101").to_pylist()}
    assert {ids[row] for row in first["sets"]["resnext101"]} == wanted


def test_every_printed_cell_leads_to_its_document(connection: duckdb.DuckDBPyConnection):
    made = provenance.data(connection)
    (wanted,) = run_query(connection, "SELECT count(*) AS n FROM cells WHERE raw_text <> ''").to_pylist()
    assert made["cells"]["rows"] == wanted["n"]
    assert set(values(made["cells"], "document_id")) <= set(values(made["documents"], "document_id"))


def test_every_log_file_is_there(connection: duckdb.DuckDBPyConnection):
    made = provenance.logs(connection)
    assert made["logs"]["rows"] == pq.read_metadata(COMMITTED / "mlperf_runs.parquet").num_rows
    assert set(values(made["logs"], "path")) == set(values(made["entries"], "path"))
    assert set(values(made["logs"], "counted")) <= {"true", "false"}


def test_a_claim_is_tied_to_the_results_that_it_names(connection: duckdb.DuckDBPyConnection):
    uses = ledger.data(connection)["uses"]
    known = {(use["claim_id"], use["result_id"], use["how"]) for use in uses}
    named = run_query(connection, "SELECT result_id FROM results WHERE mlperf_id = '2.0-2052'").to_pylist()
    for result in named:
        assert ("page2023-mlperf-2.0-2052", result["result_id"], "id") in known
    others = {use["result_id"] for use in uses if use["claim_id"] == "page2023-mlperf-2.0-2052" and use["how"] == "id"}
    assert others == {result["result_id"] for result in named}


def test_a_claim_is_tied_by_a_figure_only_to_its_own_model(connection: duckdb.DuckDBPyConnection):
    claim = "sdk14-resnext101-inference-throughput"
    ids = [use["result_id"] for use in ledger.data(connection)["uses"] if use["claim_id"] == claim]
    sql_ = "SELECT result_id, model, throughput FROM results"
    rows = {row["result_id"]: row for row in run_query(connection, sql_).to_pylist()}
    assert {rows[one]["throughput"] for one in ids} == {4483, 3395, 86.02, 127.96}
    assert all(rows[one]["model"].startswith("ResNeXt101") for one in ids)


def test_the_example_queries_find_rows(connection: duckdb.DuckDBPyConnection):
    assert len(sql.EXAMPLES) == 10
    for title, text in sql.EXAMPLES:
        assert run_query(connection, text).num_rows, title


def test_every_table_and_view_is_described(connection: duckdb.DuckDBPyConnection):
    made = sql.data(connection)
    assert list(made["files"]) == [table.name for table in TABLES]
    described = {one["table_name"] for one in made["columns"]}
    assert {table.name for table in TABLES} <= described
    assert all(text.startswith(("CREATE VIEW", "CREATE MACRO")) for text in made["views"])


def test_charts_hold_question_paragraph_and_data(connection: duckdb.DuckDBPyConnection):
    made = charts.data(connection)
    assert [one["name"] for one in made] == [one.name for one in ANALYSES]
    for one in made:
        assert one["told"]
        assert one["specification"]["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
        committed = json.loads((ROOT / "docs" / "analyses" / f"{one['name']}.vl.json").read_text(encoding="utf-8"))
        assert one["specification"] == committed


def test_predictions_are_emulated_and_complete(connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(emulated, "DEFAULT_BATCH_SIZES", {"c2": (2, 12)})
    made = emulated.data(connection)
    assert [(one["target"], one["batch_size"]) for one in made["predictions"][:2]] == [("c2", 2), ("c2", 12)]
    assert {one["origin"] for one in made["predictions"]} == {"emulated"}
    assert {one["set"] for one in made["points"]} == {"calibration", "resnext", "ten", "honest"}
    published = {row.result_id: row.seconds * 1000 for row in load_published_rows(connection)}
    assert {one["result_id"]: one["published"] for one in made["points"]} == pytest.approx(published, rel=1e-14)
    points = {one["result_id"]: one["emulated"] for one in made["points"]}
    assert len(points) == len(made["points"])
    with (ROOT / "pipeline" / "ipu_results" / "emulator" / "data" / "predictions.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        frozen = {line["result_id"]: float(line["time_ms"]) for line in csv.DictReader(file)}
    assert {one: points[one] for one in frozen} == pytest.approx(frozen, rel=1e-5)


@pytest.mark.parametrize("make", LIGHT, ids=lambda make: f"{make.__module__}.{make.__name__}")
def test_two_builds_give_the_same_script(make: Callable[..., Any]):
    made = []
    for _ in range(2):
        with open_warehouse(COMMITTED) as connection:
            arguments = (connection, None) if make is results.data else (connection,)
            made.append(script("x", make(*arguments)))
    assert made[0] == made[1]


def test_a_built_folder_is_whole_and_its_scripts_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ipu_results.site.folder.SCRIPTS", _without_the_emulator())
    release = doctored(tmp_path / "release", "results", "variant", EVIL)
    written = build(release, tmp_path / "out")
    scripts = [path for path in written if path.suffix == ".js"]
    assert {path.stem for path in scripts} == {"results", "provenance", "mlperf", "claims", "charts", "emulator", "sql"}
    for path in scripts:
        assert not set("<>&\u2028") & set(path.read_text(encoding="utf-8")), path.name
    made = read(tmp_path / "out" / "results.js")
    assert EVIL in values(made["results"], "variant")
    assert made["build"]["version"] is None
    for table in TABLES:
        copied = tmp_path / "out" / "parquet" / f"{table.name}.parquet"
        assert copied.read_bytes() == (release / copied.name).read_bytes()


def _without_the_emulator() -> dict[str, Callable[..., Any]]:
    made = {"provenance": provenance.data, "mlperf": provenance.logs, "claims": ledger.data, "sql": sql.data}
    return {**made, "charts": lambda _: [], "emulator": lambda _: {}}


def test_a_release_is_verified_before_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ipu_results.site.folder.SCRIPTS", _without_the_emulator())
    release = tmp_path / "release"
    publish(Asked(COMMITTED, release, published_on=date(2026, 1, 2)))
    build(release, tmp_path / "out")
    assert read(tmp_path / "out" / "results.js")["build"]["version"] == "1.0.0"
    with duckdb.connect(str(release / DATABASE)) as connection:
        connection.execute("UPDATE results SET throughput = 1")
    done = CliRunner().invoke(command.main, [str(release), str(tmp_path / "other")])
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert f"{DATABASE}: has another sha256" in done.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("release", "npm"), [("no such", "exit 0"), ("of mine", "exit 1")], ids=["wrong", "failing"])
def test_a_site_stays_until_the_new_one_is_whole(tmp_path: Path, release: str, npm: str):
    assert make_site(tmp_path, release, npm).returncode != 0
    assert (tmp_path / "site" / "dist" / "index.html").read_text(encoding="utf-8") == "old"


def test_a_new_site_takes_the_place_of_the_old_one(tmp_path: Path):
    done = make_site(tmp_path, "of mine", "echo new > build/new/index.html")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "dist" / "index.html").read_text(encoding="utf-8") == "new\n"
    assert (tmp_path / "site" / "dist" / "data").is_dir()
    assert os.listdir(tmp_path / "site") == ["dist"]


def make_site(folder: Path, release: str, npm: str) -> subprocess.CompletedProcess[str]:
    """`make site` in a folder with a site and a release `of mine`, where npm and Python are scripts of the test's."""
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "of mine").mkdir()
    (folder / "site" / "dist").mkdir(parents=True)
    (folder / "site" / "dist" / "index.html").write_text("old", encoding="utf-8")
    for path, text in (("npm", npm), ("venv/bin/python", '[ -d "$3" ] && mkdir -p "$4"')):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / path).chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    asked = ["make", "-o", "setup", "site", f"RELEASE={release}", f"VENV={folder / 'venv'}"]
    return subprocess.run(asked, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is no JSON"), ("{", "is no JSON"), ("[]", "is no JSON object"), ("{}", "tells no version")],
)
def test_a_release_that_tells_no_version_is_refused(tmp_path: Path, text: str, said: str):
    (tmp_path / "release.json").write_text(text, encoding="utf-8")
    with pytest.raises(IpuResultsError, match=said):
        results.version(tmp_path)


def test_a_warehouse_that_was_never_published_has_no_version(tmp_path: Path):
    assert results.version(tmp_path) is None


def test_a_folder_without_a_release_is_one_clear_line(tmp_path: Path):
    done = CliRunner().invoke(command.main, [str(tmp_path), str(tmp_path / "out")])
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert "holds no dataset" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_frame_keeps_blank_apart_from_zero():
    with duckdb.connect() as connection:
        made = frame(connection, "SELECT * FROM (VALUES (0, '', true), (NULL, NULL, NULL)) t(n, s, b)")
    assert values(made, "n") == [0, None]
    assert values(made, "s") == ["", None]
    assert values(made, "b") == ["true", None]


def test_the_lock_file_names_no_index():
    lock = json.loads((SITE / "package-lock.json").read_text(encoding="utf-8"))
    packages = [one for name, one in lock["packages"].items() if name]
    assert packages
    assert not [one for one in packages if "resolved" in one]
    assert all(one["integrity"].startswith("sha512-") for one in packages)


BUILT = all(path.exists() for path in (SITE / "node_modules", SITE / "dist" / "app.js", SITE / "dist" / "data"))


@pytest.mark.skipif(not BUILT or not Path(CHROMIUM).exists(), reason="needs `make site` and Chromium")
def test_the_site_in_a_browser():
    env = {**os.environ, "CHROMIUM": CHROMIUM}
    done = subprocess.run(["npm", "test"], cwd=SITE, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
