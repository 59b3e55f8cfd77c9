"""The commands as a user meets them."""

from __future__ import annotations

import json
import os
import re
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
    PAGE_ID,
    PAPER,
    RAW,
    ROOT,
    Query,
    get_error,
    list_rows,
    query_rows,
    read_files,
    run_cli,
    run_process,
)


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = run_cli(command, "--help")
    assert done.returncode == 0
    assert f"  ipu-results {command} " in done.stdout
    assert re.search("Examples?:", done.stdout)


def test_help_imports_no_heavy_library() -> None:
    heavy = "{'pandas', 'duckdb', 'pyarrow', 'numpy', 'onnx'}"
    code = f"import sys, ipu_results.doors.cli; print(sorted({heavy} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT) == "[]\n"


def test_comparison_opens_what_it_reads_without_pandas(parquet_only: Path) -> None:
    figures = "model='resnet50', platform='ipu-m2000', batch_size=4, throughput=7800"
    code = f"""if True:
        import sys
        from ipu_results.doors.comparison.verdict import compare
        [answer] = compare({figures}, warehouse={str(parquet_only)!r})
        print(answer.status, "pandas" in sys.modules)
    """
    shown = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT)
    # above it, DuckDB shows its progress where the machine is slow
    assert shown.splitlines()[-1].strip() == "plausible False"


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
    header = "document extracted accepted quarantined duplicate results error warn info s"
    assert ingest_output[0].split() == header.split()
    [page] = [line for line in ingest_output if line.startswith(f"{PAGE_ID} ")]
    assert page.split()[1:6] == ["248", "248", "0", "0", "248"]
    counts = "SELECT (SELECT count(*) FROM source_rows), (SELECT count(*) FROM results)"
    [(rows, results)] = query(counts)
    assert ingest_output[-2].split()[:6] == f"total {rows} {rows} 0 0 {results}".split()
    assert ingest_output[-1].startswith(f"{results} results in ")


# query


def query_json(warehouse: Path, sql: str) -> Any:
    done = run_cli("query", "--warehouse", warehouse, "--format", "json", sql)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


TWO_ROWS = """-- a comment first
    SELECT model, throughput, variant FROM results WHERE table_name = 'ogb_lsc' ORDER BY row_number
"""


def test_query_prints_a_table_records_csv_and_json(warehouse: Path) -> None:
    table = run_cli("query", "--warehouse", warehouse, TWO_ROWS)
    _, _, first, second = table.stdout.splitlines()
    assert first.split() == ["GPS++", "17800", "NULL"]
    assert second.split() == ["TransE", "(256)", "1260000", "NULL"]
    assert table.stderr == "2 rows\n"
    text = run_cli("query", "--warehouse", warehouse, "--format", "csv", TWO_ROWS).stdout
    assert text == "model,throughput,variant\nGPS++,17800.0,\nTransE (256),1260000.0,\n"
    assert query_json(warehouse, TWO_ROWS) == [
        {"model": "GPS++", "throughput": 17800.0, "variant": None},
        {"model": "TransE (256)", "throughput": 1260000.0, "variant": None},
    ]
    sql = "SELECT NULL AS variant, 'a\nb' AS note FROM range(2)"
    records = run_cli("query", "--warehouse", warehouse, "--format", "record", sql).stdout
    assert records.split("\n\n") == [
        "row 1 ---\nvariant  NULL\nnote     a\\nb",
        "row 2 ---\nvariant  NULL\nnote     a\\nb\n",
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


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are not on Windows")
@pytest.mark.slow
def test_terminal_gets_colours_and_records_where_a_table_is_too_wide(warehouse: Path) -> None:
    code = "import pty, sys; pty.spawn([sys.executable, '-m', 'ipu_results', *sys.argv[1:]])"

    def run_on_terminal(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, "query", "--warehouse", warehouse, *arguments],
            capture_output=True,
            text=True,
            env=os.environ | {"COLUMNS": "60"},
            check=True,
        )
        return done.stdout.replace("\r", "")

    assert run_on_terminal("SELECT 1 AS a, 2 AS b").startswith("  a    b\n")
    assert run_on_terminal("FROM results LIMIT 1").startswith("row 1 --")
    assert run_on_terminal("FROM results LIMIT 1", "--format", "csv").startswith("result_id,")
    assert "\x1b[31merror:\x1b[0m " in run_on_terminal("SELECT nonsense")
    piped = run_process("query", "--warehouse", warehouse, "SELECT nonsense")
    assert piped.stderr.startswith("error: ")


def test_query_without_rows_prints_the_header(warehouse: Path) -> None:
    sql = "SELECT model FROM results WHERE false"
    assert run_cli("query", "--warehouse", warehouse, sql).stdout.startswith("model")
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
    columns = "result_id, model, platform, batch_size, latency_ms"
    clean = query_json(warehouse, f"SELECT {columns} FROM results WHERE errors = 0")
    for sql in examples:
        rows = query_json(warehouse, sql)
        assert rows
        for row in rows:
            shown = {name: row[name] for name in columns.split(", ") if name in row}
            assert any(shown.items() <= known.items() for known in clean)


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
        assert list_rows(connection, "SELECT count(*) > 300 FROM flags") == [(True,)]
    assert read_files(folder) == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT rule, count(*) FROM flags JOIN inference USING (result_id) GROUP BY 1 ORDER BY 1",
        "SELECT current_setting('threads')",  # one, so that ties have one order on every machine
    ],
)
def test_query_reads_the_committed_parquet_files(
    warehouse: Path, parquet_only: Path, sql: str
) -> None:
    rows = query_rows(parquet_only, sql)
    assert rows == query_rows(warehouse, sql)
    assert len(rows) > 1 or rows == [(1,)]
    assert len(read_files(parquet_only)) == len(TABLES)


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
    query = f"{sys.executable} -m ipu_results query --warehouse {warehouse} 'FROM cells'"
    done = subprocess.run(
        ["bash", "-c", f"{query} | head -n 1"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr


# extract


def test_extract_prints_each_table_as_csv_with_its_name() -> None:
    done = run_cli("extract", RAW / PAPER)
    assert done.returncode == 0
    latency, throughput, efficiency = done.stdout.strip().split("\n\n")
    assert latency.startswith("table_name,Batch size,Latency\n")
    assert throughput.startswith("table_name,Batch size,Throughput\n")
    header, first, *_, last = efficiency.splitlines()
    assert header == "table_name,Batch size,Energy efficiency"
    assert first == "qwant_table_3,2,6.51"
    assert last == "qwant_table_3,12,9.49"


def test_extract_prints_the_readable_rows_and_names_the_others(tmp_path: Path) -> None:
    text = (RAW / PAGE).read_text(encoding="utf-8")
    broken = text.replace("<td>Wikipedia</td><td>54,784</td>", "<td>54,784</td>", 1)
    (tmp_path / "page.html").write_text(broken, encoding="utf-8")
    done = run_cli("extract", tmp_path / "page.html", "--format", "json")
    assert done.returncode == 1
    assert [len(table["rows"]) for table in json.loads(done.stdout)] == [2, 63, 37, 11, 62, 1, 71]
    [line] = done.stderr.splitlines()
    place = "page.html: table 2, row 1, bow_training, row 1"
    assert line.startswith(f"error: {place}: 8 cells under a header of 9 (row-width)")


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
