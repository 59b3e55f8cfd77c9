"""The commands as a user meets them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ipu_results.add
import pytest
from ipu_results.doors.cli import main
from ipu_results.errors import QueryError
from ipu_results.kit.sql import run_query
from ipu_results.record.store.query import open_warehouse
from ipu_results.schema import TABLES

from tests.conftest import (
    PAGE,
    PAPER,
    RAW,
    ROOT,
    Query,
    get_error,
    query_rows,
    read_files,
    run_cli,
    run_process,
)


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help_with_an_example_and_is_documented(command: str) -> None:
    done = run_cli(command, "--help")
    assert done.returncode == 0
    assert f"  ipu-results {command} " in done.stdout
    assert re.search("Examples?:", done.stdout)
    options = [
        param for param in main.commands[command].params if param.param_type_name == "option"
    ]
    assert [option.opts for option in options if option.opts[0] not in done.stdout] == []
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"ipu-results {command}" in page.read_text(encoding="utf-8") for page in pages)


def test_help_lists_the_commands_in_working_order_with_whole_sentences() -> None:
    listed = run_cli("--help").stdout.split("Show this message and exit.\n")[1]
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == list(main.commands)
    assert "…" not in listed
    assert "..." not in listed
    listed = re.sub(r"\n\n\S.*:\n", "\n", f"\n{listed}")  # the headings of the sections
    sentences = [line for line in re.split(r"^  \S+", listed, flags=re.MULTILINE) if line.strip()]
    assert all(sentence.strip().endswith(".") for sentence in sentences)


def test_help_imports_no_heavy_library() -> None:
    heavy = "('pandas', 'duckdb', 'pyarrow', 'numpy', 'onnx')"
    code = f"import sys, ipu_results.doors.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "[]\n"


def test_comparison_opens_what_it_reads_without_pandas(warehouse: Path, tmp_path: Path) -> None:
    shutil.copytree(warehouse, tmp_path / "parquet", ignore=shutil.ignore_patterns("*.duckdb"))
    figures = "model='resnet50', platform='ipu-m2000', batch_size=4, throughput=7800"
    code = f"""if True:
        import sys
        from ipu_results.doors.comparison.verdict import compare
        [answer] = compare({figures}, warehouse={str(tmp_path / "parquet")!r})
        print(answer.status, "pandas" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "plausible False\n"


def test_console_script_is_the_module() -> None:
    script = Path(sys.executable).parent / "ipu-results"
    if not script.exists():
        pytest.skip("not installed as a script")
    shown = subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
    assert shown == run_process("--help").stdout


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["query", "SELECT 1", "--format", "xml"],
        ["add", PAGE, "--format", "json"],
        ["extract", PAGE, "--kind", "novel"],
        ["ingest", "--wait", "-1"],
    ],
)
def test_wrong_usage_is_exit_2(args: list[str]) -> None:
    done = run_cli(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_error_is_one_line_and_with_debug_a_traceback(tmp_path: Path) -> None:
    assert get_error(tmp_path / "nothing") == f"error: {tmp_path / 'nothing'}: no such folder"
    done = run_process("query", "--debug", "--warehouse", tmp_path / "nothing", "SELECT 1")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "WarehouseError" in done.stderr


def test_too_little_memory_is_one_line_before_anything_starts() -> None:
    limited = f"ulimit -v 700000; exec {sys.executable} -m ipu_results claims"
    done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "the limit on memory (ulimit -v) is 0.7 GiB: raise it" in line


def test_ingest_ends_with_a_table_of_documents(ingest_output: list[str], query: Query) -> None:
    assert ingest_output[0].split() == (
        [
            "document",
            "extracted",
            "accepted",
            "quarantined",
            "duplicate",
            "results",
            "error",
            "warn",
            "info",
            "s",
        ]
    )
    page = next(
        line for line in ingest_output if line.split()[:1] == ["graphcore-performance-2023-07-04"]
    )
    assert page.split()[1:6] == ["248", "248", "0", "0", "248"]
    [(rows, results)] = query(
        "SELECT (SELECT count(*) FROM source_rows), (SELECT count(*) FROM results)"
    )
    total = ["total", str(rows), str(rows), "0", "0", str(results)]
    assert ingest_output[-2].split()[:6] == total
    assert ingest_output[-1].startswith(f"{results} results in ")


# query


def query_json(warehouse: Path, sql: str) -> Any:
    done = run_cli("query", "--warehouse", warehouse, "--format", "json", sql)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_query_prints_a_table_csv_and_json(warehouse: Path) -> None:
    sql = (
        "SELECT model, throughput, variant FROM results WHERE table_name = 'ogb_lsc'"
        " ORDER BY row_number"
    )
    table = run_cli("query", "--warehouse", warehouse, sql)
    assert [line.split() for line in table.stdout.splitlines()[2:]] == [
        ["GPS++", "17800", "NULL"],
        ["TransE", "(256)", "1260000", "NULL"],
    ]
    assert table.stderr == "2 rows\n"
    text = run_cli("query", "--warehouse", warehouse, "--format", "csv", sql).stdout
    assert text.splitlines() == [
        "model,throughput,variant",
        "GPS++,17800.0,",
        "TransE (256),1260000.0,",
    ]
    assert query_json(warehouse, sql) == [
        {"model": "GPS++", "throughput": 17800.0, "variant": None},
        {"model": "TransE (256)", "throughput": 1260000.0, "variant": None},
    ]


def test_json_keeps_types_and_writes_what_it_cannot_hold_as_null_or_text(warehouse: Path) -> None:
    values = (
        "DATE '2023-07-04' AS d, 'nan'::DOUBLE AS n, 'infinity'::DOUBLE AS i, true AS b, [1, 2]"
        " AS l"
    )
    assert query_json(warehouse, f"SELECT {values}") == [
        {"d": "2023-07-04", "n": None, "i": None, "b": True, "l": [1, 2]}
    ]
    sums = "sum(batch_size) AS s, 1.5 AS d, list(published_on ORDER BY 1) AS l, '\\x01'::BLOB AS b"
    where = "document_id = 'graphcore-performance-2023-07-04' AND model = 'DINO'"
    assert query_json(warehouse, f"SELECT {sums} FROM results WHERE {where}") == [
        {"s": 6400, "d": 1.5, "l": ["2023-07-04"] * 2, "b": "01"}
    ]


def test_query_prints_records(warehouse: Path) -> None:
    sql = (
        "SELECT model, variant, 'a\nb' AS note FROM results WHERE table_name = 'ogb_lsc'"
        " ORDER BY row_number"
    )
    done = run_cli("query", "--warehouse", warehouse, "--format", "record", sql)
    assert done.stdout.split("\n\n") == [
        "row 1 ---\nmodel    GPS++\nvariant  NULL\nnote     a\\nb",
        "row 2 ---\nmodel    TransE (256)\nvariant  NULL\nnote     a\\nb\n",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are not on Windows")
@pytest.mark.slow
def test_terminal_gets_colours_and_records_where_a_table_is_too_wide(warehouse: Path) -> None:
    def run_on_terminal(sql: str, *options: str) -> str:
        command = shlex.join(
            [
                sys.executable,
                "-m",
                "ipu_results",
                "query",
                "--warehouse",
                str(warehouse),
                sql,
                *options,
            ]
        )
        code = "import pty, sys; pty.spawn(['/bin/sh', '-c', sys.argv[1]])"
        environment = os.environ | {"COLUMNS": "60"}
        done = subprocess.run(
            [sys.executable, "-c", code, command],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        return done.stdout.replace("\r", "")

    assert run_on_terminal("SELECT 1 AS a, 2 AS b").startswith("  a    b\n")
    assert run_on_terminal("FROM results LIMIT 1").startswith("row 1 --")
    assert run_on_terminal("FROM results LIMIT 1", "--format", "csv").startswith("result_id,")
    assert "\x1b[31merror:\x1b[0m " in run_on_terminal("SELECT nonsense")
    assert run_process("query", "--warehouse", warehouse, "SELECT nonsense").stderr.startswith(
        "error: "
    )


def test_query_runs_a_statement_that_begins_with_a_comment(warehouse: Path) -> None:
    done = run_cli("query", "--warehouse", warehouse, "-- how many\nSELECT 1 AS one")
    assert (done.returncode, done.stdout.split()) == (0, ["one", "-----", "1"])


def test_query_without_rows_prints_the_header(warehouse: Path) -> None:
    sql = "SELECT model FROM results WHERE false"
    assert run_cli("query", "--warehouse", warehouse, sql).stdout.strip().startswith("model")
    assert run_cli("query", "--warehouse", warehouse, "--format", "csv", sql).stdout == "model\n"
    assert query_json(warehouse, sql) == []


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT modle FROM results", '! Candidate bindings: "model", '),
        ("FROM reslts", 'Did you mean "results"? (SHOW ALL TABLES lists all)'),
        ("SELECT substr(1)", "Candidate functions: substr("),
        ("", "expected one statement, got 0"),
        ("SELECT 1 AS a, 2 AS a", "two columns are called a; rename one of them with AS"),
    ],
)
def test_wrong_sql_is_one_line(warehouse: Path, sql: str, message: str) -> None:
    done = run_cli("query", "--warehouse", warehouse, sql)
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("error: ")
    assert message in line


WRITING = (
    "DELETE FROM results",
    "CREATE TABLE mine (a INTEGER)",
    "ATTACH 'other.duckdb'",
    "COPY results TO 'stolen.csv'",
    "SET threads = 1",
    "INSTALL httpfs",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "EXPLAIN ANALYZE DELETE FROM flags",
)


@pytest.fixture
def parquet_only(built: Path) -> Path:
    """Remove the database: a clone has only the Parquet files."""
    (built / "ipu_results.duckdb").unlink()
    return built


def test_examples_of_query_return_rows_without_error_flags(warehouse: Path) -> None:
    text = " ".join(run_cli("query", "--help").stdout.split())
    examples = re.findall(r'ipu-results query "([^"]+)"', text)
    assert len(examples) == 2
    for sql in examples:
        rows = json.loads(
            run_cli("query", sql, "--warehouse", warehouse, "--format", "json").stdout
        )
        assert rows
        place = (
            "model, platform, batch_size, latency_ms" if "latency_ms" in rows[0] else "result_id"
        )
        known = run_cli(
            "query",
            f"SELECT {place} FROM results WHERE errors = 0",
            "--warehouse",
            warehouse,
            "--format",
            "json",
        )
        clean = json.loads(known.stdout)
        assert all({name: row[name] for name in place.split(", ")} in clean for row in rows)


@pytest.mark.parametrize("fixture", ["warehouse", "parquet_only"])
def test_query_refuses_to_write_and_to_leave_the_warehouse(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    folder = request.getfixturevalue(fixture)
    before = read_files(folder)
    with open_warehouse(folder) as connection:
        for sql in WRITING:
            with pytest.raises(QueryError):
                run_query(connection, sql)
        assert run_query(connection, "SELECT count(*) AS n FROM flags").to_pylist()[0]["n"] > 300
    assert read_files(folder) == before


def test_query_reads_the_committed_parquet_files(warehouse: Path, parquet_only: Path) -> None:
    sql = (
        "SELECT rule, count(*) AS n FROM flags JOIN inference USING (result_id) GROUP BY 1"
        " ORDER BY 1"
    )
    assert query_rows(parquet_only, sql) == query_rows(warehouse, sql) != []
    assert len(read_files(parquet_only)) == len(TABLES)
    # so that ties have one order on every machine
    sql = "SELECT current_setting('threads')"
    assert query_rows(parquet_only, sql) == query_rows(warehouse, sql) == [(1,)]


def test_query_without_a_warehouse_names_the_command_that_builds_it(tmp_path: Path) -> None:
    done = run_cli("query", "--warehouse", tmp_path / "none", "SELECT 1")
    assert done.returncode == 1
    assert "ipu-results ingest" in done.stderr
    assert not (tmp_path / "none").exists()


def test_query_falls_back_to_the_installed_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: Query
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_cli("query", "SELECT count(*) AS n FROM results", "--format", "csv")
    [(count,)] = query("SELECT count(*) FROM results")
    assert (done.returncode, done.stdout) == (0, f"n\n{count}\n")


@pytest.mark.slow
def test_closed_pipe_is_not_an_error(warehouse: Path) -> None:
    command = (
        f"{sys.executable} -m ipu_results query --warehouse {warehouse} 'SELECT * FROM cells' |"
        " head -n 1"
    )
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr


# extract


def extract_tables(path: Path) -> list[dict[str, Any]]:
    done = run_cli("extract", path, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    tables = json.loads(done.stdout)
    assert all(set(table) == {"table_name", "columns", "rows"} for table in tables)
    return tables


def test_extract_prints_the_tables_of_the_page_as_json() -> None:
    tables = extract_tables(RAW / PAGE)
    assert [(table["table_name"], len(table["rows"])) for table in tables] == [
        ("ogb_lsc", 2),
        ("bow_training", 64),
        ("bow_inference", 37),
        ("mlperf_v2_training", 11),
        ("pod_training", 62),
        ("pod_time_to_result", 1),
        ("pod_inference", 71),
    ]
    assert tables[5]["rows"] == [
        ["MCMC TFP", "", "IPU-M2000", "SDK 2.4.0", "TensorFlow1", "Proprietary", "", "32.32", "49"]
    ]
    assert [
        len(table["rows"]) for table in extract_tables(RAW / "graphcore/performance-2022-03.csv")
    ] == [17]


def test_extract_prints_each_table_as_csv_with_its_name() -> None:
    done = run_cli("extract", RAW / PAPER)
    assert done.returncode == 0
    blocks = [list(csv.reader(io.StringIO(block))) for block in done.stdout.strip().split("\n\n")]
    assert [block[0] for block in blocks] == [
        ["table_name", "Batch size", name]
        for name in ("Latency", "Throughput", "Energy efficiency")
    ]
    assert blocks[2][1:] == [
        ["qwant_table_3", batch, figure]
        for batch, figure in zip(
            ["2", "4", "6", "8", "10", "12"],
            ["6.51", "7.80", "7.87", "9.07", "9.68", "9.49"],
            strict=True,
        )
    ]


def test_extract_prints_the_readable_rows_and_names_the_others(tmp_path: Path) -> None:
    text = (RAW / PAGE).read_text(encoding="utf-8")
    broken = tmp_path / "page.html"
    broken.write_text(
        text.replace("<td>Wikipedia</td><td>54,784</td>", "<td>54,784</td>", 1), encoding="utf-8"
    )
    done = run_cli("extract", broken, "--format", "json")
    assert done.returncode == 1
    assert [len(table["rows"]) for table in json.loads(done.stdout)] == [2, 63, 37, 11, 62, 1, 71]
    [line] = done.stderr.splitlines()
    assert line.startswith(
        "error: page.html: table 2, row 1, bow_training, row 1: 8 cells under a header of 9"
        " (row-width)"
    )


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("empty.html", b"", "is empty"),
        ("noise.txt", bytes(range(256)) * 100, "not text"),
        ("page.html", b"<html><body><p>404</p></body></html>", "no table with a known header"),
        ("none.html", None, "cannot be read: No such file or directory"),
    ],
)
def test_unreadable_document_is_one_line(
    tmp_path: Path, name: str, content: bytes | None, word: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = run_cli("extract", tmp_path / name)
    [line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith(f"error: {name}: ")
    assert word in line


def test_document_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ipu_results.add, "MAX_BYTES", 10_000)
    done = run_cli("extract", RAW / PAGE)
    assert done.returncode == 1
    assert "is too large: the limit is 10,000 bytes" in done.stderr


def test_add_print_is_extract() -> None:
    for options in ((), ("--format", "json")):
        printed = run_cli("add", RAW / PAPER, "--print", *options)
        assert printed.stdout == run_cli("extract", RAW / PAPER, *options).stdout != ""
