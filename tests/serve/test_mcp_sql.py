"""SQL by MCP: what is refused, stopped and cited; and how the server ends."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from ipu_results.ground.sql import run_query
from ipu_results.serve import CODES

from tests.conftest import ROOT, run_cli

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from ipu_results.serve.answers import Record, open_record
from ipu_results.serve.server import answer
from ipu_results.serve.sql import SqlWorker

from tests.serve.test_mcp import REFUSED, TRAPS, refuse


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        (
            "SELECT first_result_id, second_result_id FROM replications"
            " WHERE parties = 'two independent' LIMIT 1"
        ),
        (
            "SELECT first_result_id, second_result_id FROM replications"
            " WHERE measure = 'microbenchmark' LIMIT 1"
        ),
        "SELECT list(microbenchmark_id) AS ids FROM (FROM microbenchmarks ORDER BY ALL LIMIT 2)",
    ],
)
def test_sql_lists_who_measured_for_every_id(
    record: Record, worker: SqlWorker, statement: str
) -> None:
    actual = answer(record, worker, "sql", {"statement": statement})
    (row,) = actual["rows"]
    ids = row[0] if isinstance(row[0], list) else row
    assert [own["result_id"] for own in actual["who_measured"]] == ids
    assert {own["relationship"] for own in actual["who_measured"]} == {"independent"}
    assert all(f"result {result_id}" in actual["citation"] for result_id in ids)


HOSTILE = (
    ("DELETE FROM results", "not-read-only"),
    ("COPY results TO '/tmp/mcp-x.csv'", "not-read-only"),
    ("ATTACH '/tmp/mcp-x.db'", "not-read-only"),
    ("INSTALL httpfs", "not-read-only"),
    ("SET memory_limit = '50GB'", "not-read-only"),
    ("EXPLAIN ANALYZE DELETE FROM flags", "not-read-only"),
    ("WITH x AS (DELETE FROM results RETURNING *) FROM x", "not-read-only"),
    ("SELECT 1; DROP TABLE results", "wrong-sql"),
    ("EXPLAIN ANALYZE COPY results TO '/tmp/mcp-x.csv'", "no-file-access"),
    ("FROM read_text('/etc/hostname')", "no-file-access"),
    ("FROM read_parquet('https://example.org/x.parquet')", "no-file-access"),
    ("FROM glob('/*')", "no-file-access"),
    ("FROM '/etc/hostname'", "wrong-sql"),
    ("SELECT getenv('HOME')", "wrong-sql"),
    ("SELEKT 1", "wrong-sql"),
    ("SELECT 1 AS a, 2 AS a", "wrong-sql"),
    # an INTERNAL Error, which ends the database
    ('SELECT "<"(batch_size, [throughput]) FROM results', "wrong-sql"),
    ("SELECT repeat('x', 1000) FROM range(1000)", "too-large"),
    ("SELECT length(repeat('x', 2000000000))", "too-large"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "code"), HOSTILE, ids=[statement for statement, _ in HOSTILE]
)
def test_sql_reads_the_record_and_nothing_else(
    record: Record, worker: SqlWorker, statement: str, code: str
) -> None:
    arguments = {"statement": statement, "max_rows": 1000}
    assert refuse(record, worker, "sql", **arguments) == code
    assert answer(record, worker, "sql", {"statement": "SELECT 7 AS seven"})["rows"] == [[7]]
    assert not list(Path("/tmp").glob("mcp-x*"))


OPEN = "SELECT avg(throughput) FROM results WHERE model = 'ResNet-50 v1.5'"
HELD = """
    SELECT model, avg(throughput)
    FROM results
    WHERE task = 'training'
        AND chip_count = 16
        AND item = 'image'
        AND phase IS NULL
        AND sequence_length IS NULL
        AND sparsity IS NULL
        AND batch_size = 2560
        AND usable
    GROUP BY model
"""


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        (
            OPEN,
            (
                "avg may mix figures that may not be compared: the statement holds no task,"
                " chip_count, item"
            ),
        ),
        (HELD, None),
        ("SELECT avg(retries) FROM (SELECT 1 AS retries)", None),
        (
            "SELECT result_id, sparsity FROM results WHERE sparsity > 0 LIMIT 2",
            "2 of the rows are of sparse networks",
        ),
        (
            "SELECT result_id FROM results WHERE sparsity IS NULL AND origin = 'published' LIMIT 2",
            None,
        ),
    ],
)
def test_sql_warns_of_averages_and_of_sparse_rows(
    record: Record, worker: SqlWorker, statement: str, part: str | None
) -> None:
    remarks = answer(record, worker, "sql", {"statement": statement})["remarks"]
    warned = [
        remark for remark in remarks if "may not be compared:" in remark or "sparse" in remark
    ]
    assert [remark[: len(part or "")] for remark in warned] == ([part] if part else [])


def test_statement_that_is_not_utf8_is_refused_and_no_character_is_replaced(
    record: Record, worker: SqlWorker
) -> None:
    assert refuse(record, worker, "sql", statement="SELECT '\ud800'") == "wrong-sql"
    # as Python reads it in the C locale
    typed = "SELECT 'é' AS own".encode().decode("ascii", "surrogateescape")
    assert run_query(record.connection, typed).to_pylist() == [{"own": "é"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM range(1000000000000)",
        "SELECT length(repeat('x', 900000000)) FROM range(100)",
    ],
)
def test_sql_that_takes_long_is_stopped_and_the_next_is_answered(
    record: Record, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    monkeypatch.setattr("ipu_results.serve.sql.SECONDS", 0.5)
    own = SqlWorker(record)
    assert refuse(record, own, "sql", statement=statement) in ("too-long", "too-large")
    assert answer(record, own, "sql", {"statement": "SELECT 7 AS seven"})["rows"] == [[7]]
    own.stop()


@pytest.mark.slow
def test_sql_that_is_cancelled_ends_and_does_not_end_another(record: Record) -> None:
    own, first, second = SqlWorker(record), threading.Event(), threading.Event()
    with ThreadPoolExecutor() as pool:
        long = {"statement": "SELECT count(*) FROM range(1000000000000)"}
        running = pool.submit(answer, record, own, "sql", long, first)
        while own._running is not first:
            time.sleep(0.01)
        waiting = pool.submit(answer, record, own, "sql", {"statement": "SELECT 1 AS one"}, second)
        own.cancel(second)
        assert not running.done()
        own.cancel(first)
        assert running.result()["status"] == "refused"
        assert waiting.result()["code"] == "too-long"
    assert answer(record, own, "sql", {"statement": "SELECT 7 AS seven"})["rows"] == [[7]]
    own.stop()


@pytest.mark.slow
@pytest.mark.parametrize("has_database", [True, False])
def test_no_answer_names_a_path_of_the_machine_and_damage_is_named(
    warehouse: Path, tmp_path: Path, has_database: bool
) -> None:
    own = tmp_path / "own"
    shutil.copytree(warehouse, own)
    if not has_database:
        (own / "ipu_results.duckdb").unlink()
    record = open_record(own)
    worker, texts = SqlWorker(record), []
    for statement in PATHS:
        texts.append(json.dumps(answer(record, worker, "sql", {"statement": statement})))
    worker.stop()
    for path in own.glob("*.*"):
        data = bytearray(path.read_bytes())
        data[len(data) // 3 :: 4096] = bytes(len(data[len(data) // 3 :: 4096]))
        with path.open("r+b") as file:  # the file that is open
            file.write(data)
    for tool, arguments in (
        ("claims", {}),
        ("sql", {"statement": "SELECT sum(length(raw_text)) AS n FROM cells"}),
    ):
        actual = answer(record, worker, tool, arguments)
        # these rows are in memory
        assert actual["status"] == "refused" or (tool, has_database) == ("claims", False)
        assert actual.get("code", "rebuilt") == "rebuilt"
        texts.append(json.dumps(actual))
    worker.stop()
    shutil.rmtree(own)
    texts.append(json.dumps(answer(record, worker, "sql", {"statement": "SELECT 1 AS one"})))
    worker.stop()
    record.connection.close()
    for text in texts:
        assert not [
            place for place in (str(tmp_path), str(Path.home()), str(ROOT)) if place in text
        ], text


@pytest.mark.slow
def test_sql_is_refused_after_the_dataset_was_built_again(record: Record) -> None:
    other = replace(record, version=replace(record.version, build_id="0" * 64))
    own = SqlWorker(other)
    assert refuse(other, own, "sql", statement="SELECT 1") == "rebuilt"
    own.stop()


@pytest.mark.slow
def test_rows_beyond_the_limit_are_left_out_and_counted_as_more(
    record: Record, worker: SqlWorker
) -> None:
    actual = answer(
        record,
        worker,
        "sql",
        {"statement": "SELECT result_id, latency_ms FROM results", "max_rows": 2},
    )
    assert (len(actual["rows"]), actual["more_rows"]) == (2, True)
    assert actual["units_of_columns_with_these_names"] == {"result_id": [], "latency_ms": ["ms"]}
    assert [own["relationship"] for own in actual["who_measured"]] == ["vendor", "vendor"]
    assert actual["citation"]


def test_every_code_is_reached_by_a_test() -> None:
    reached = {entry["code"] for entry in TRAPS} | {code for *_, code in (*REFUSED, *HOSTILE)}
    assert set(CODES) - reached == {
        "too-long",
        "rebuilt",
        "submitted-not-requested",
        "different-power-scopes",  # in tests of their own
    }


PATHS = (
    "FROM duckdb_databases()",
    "SELECT name, value FROM duckdb_settings()",
    "FROM duckdb_secrets()",
    "FROM duckdb_extensions()",
    "SELECT current_setting('temp_directory') AS folder",
    "FROM 'cells.parquet'",
    "FROM nope",
)


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_in_one_line(warehouse: Path, number: int) -> None:
    command = [sys.executable, "-m", "ipu_results", "mcp", "--warehouse", str(warehouse)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write("this is not JSON\n" + json.dumps(INITIALIZE) + "\n")
        server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 1:
            pass
        server.send_signal(number)
        assert (server.wait(timeout=600), server.stderr and server.stderr.read()) == (
            1,
            "error: interrupted\n",
        )


@pytest.mark.slow
def test_the_server_ends_with_its_stdin(warehouse: Path) -> None:
    command = [sys.executable, "-m", "ipu_results", "mcp", "--warehouse", str(warehouse)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, timeout=600, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_folder_without_a_dataset_is_reported_in_one_line(tmp_path: Path) -> None:
    done = run_cli("mcp", "--warehouse", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "contains no dataset" in done.stderr
