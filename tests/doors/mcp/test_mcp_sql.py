"""SQL by MCP: what is stopped, cited and remarked; and how the server ends."""

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
from typing import Any

import pytest
from ipu_results.kit.sql import run_query

from tests.cases import every_case, read_cases
from tests.conftest import ROOT, run_cli
from tests.doors.mcp.conftest import Ask

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from ipu_results.doors.mcp.answers import Record, open_record
from ipu_results.doors.mcp.server import answer
from ipu_results.doors.mcp.worker import SqlWorker

SEVEN = "SELECT 7 AS seven"


def run(record: Record, worker: SqlWorker, statement: str, *event: threading.Event) -> Any:
    return answer(record, worker, "sql", {"statement": statement}, *event)


@every_case(__file__, "ids")
def test_sql_lists_who_measured_for_every_id(ask: Ask, statement: str) -> None:
    actual = ask("sql", statement=statement, detail="whole")
    [row] = actual["rows"]
    ids = row[0] if isinstance(row[0], list) else row
    who = actual["who_measured"]
    assert [result["result_id"] for result in who] == ids
    assert {result["relationship"] for result in who} == {"independent"}
    assert all(f"result {result_id}" in actual["citation"] for result_id in ids)
    brief = ask("sql", statement=statement)
    assert sum(brief["who_measured"].values()) == len(ids)


@every_case(__file__, "remarks")
def test_sql_warns_of_averages_and_of_sparse_rows(
    ask: Ask, statement: str, warnings: list[str]
) -> None:
    remarks = ask("sql", statement=statement).get("remarks", [])
    warned = [text for text in remarks if "may not be compared:" in text or "sparse" in text]
    for text, words in zip(warned, warnings, strict=True):
        assert text.startswith(words)


def test_statement_that_is_not_utf8_is_refused_and_no_character_is_replaced(
    record: Record, ask: Ask
) -> None:
    assert ask("sql", statement="SELECT '\ud800'")["code"] == "wrong-sql"
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
    monkeypatch.setattr("ipu_results.doors.mcp.worker.SECONDS", 0.5)
    worker = SqlWorker(record.folder)
    assert run(record, worker, statement)["code"] in ("too-long", "too-large")
    assert run(record, worker, SEVEN)["rows"] == [[7]]
    worker.stop()


@pytest.mark.slow
def test_sql_that_is_cancelled_ends_and_does_not_end_another(record: Record) -> None:
    worker = SqlWorker(record.folder)
    first = threading.Event()
    second = threading.Event()
    with ThreadPoolExecutor() as pool:
        long = "SELECT count(*) FROM range(1000000000000)"
        running = pool.submit(run, record, worker, long, first)
        while worker._running is not first:
            time.sleep(0.01)
        waiting = pool.submit(run, record, worker, "SELECT 1 AS one", second)
        worker.cancel(second)
        assert not running.done()
        worker.cancel(first)
        assert running.result()["status"] == "refused"
        assert waiting.result()["code"] == "too-long"
    assert run(record, worker, SEVEN)["rows"] == [[7]]
    worker.stop()


PATHS = read_cases(__file__)["paths"]


@pytest.mark.slow
@pytest.mark.parametrize("has_database", [True, False])
def test_no_answer_names_a_path_of_the_machine_and_damage_is_named(
    warehouse: Path, tmp_path: Path, has_database: bool
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(warehouse, copy)
    if not has_database:
        (copy / "ipu_results.duckdb").unlink()
    record = open_record(copy)
    worker = SqlWorker(record.folder)
    answers = [run(record, worker, statement) for statement in PATHS]
    worker.stop()
    for path in copy.glob("*.*"):
        damage(path)
    listed = answer(record, worker, "claims", {})
    # these rows are in memory where there is no database
    assert listed["status"] == ("refused" if has_database else "answered")
    summed = run(record, worker, "SELECT sum(length(raw_text)) AS n FROM cells")
    assert summed["code"] == listed.get("code", "rebuilt") == "rebuilt"
    worker.stop()
    shutil.rmtree(copy)
    gone = run(record, worker, SEVEN)
    worker.stop()
    record.connection.close()
    text = json.dumps([*answers, listed, summed, gone])
    for place in (tmp_path, Path.home(), ROOT):
        assert str(place) not in text


def damage(path: Path) -> None:
    """Write zeros into each page of a file from its third on, in place: the file is open."""
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 3, len(data), 4096):
        data[at] = 0
    with path.open("r+b") as file:
        file.write(data)


@pytest.mark.slow
def test_sql_is_refused_after_the_dataset_was_built_again(record: Record) -> None:
    other = replace(record, version=replace(record.version, build_id="0" * 64))
    worker = SqlWorker(other.folder)
    assert run(other, worker, SEVEN)["code"] == "rebuilt"
    worker.stop()


def test_rows_beyond_the_limit_are_left_out_and_counted_as_more(ask: Ask) -> None:
    actual = ask("sql", statement="SELECT result_id, throughput FROM results", max_rows=2)
    assert (len(actual["rows"]), actual["more_rows"]) == (2, True)
    assert actual["units_of_columns_with_these_names"] == {"throughput": ["item/s"]}


UNUSABLE = "FROM inference WHERE chip LIKE 'H100%'"


def test_sql_says_of_suspect_rows_that_they_are_whatever_it_selects(ask: Ask) -> None:
    listed = ask("sql", statement=f"SELECT chip, throughput {UNUSABLE}")
    assert "rows of inference are not usable" in " ".join(listed["remarks"])
    named = ask("sql", statement=f"SELECT result_id, throughput {UNUSABLE}")
    assert set(named["not_usable"]) <= {row[0] for row in named["rows"]}
    assert len(named["not_usable"]) > 0
    assert ask("sql", statement=f"SELECT chip, task {UNUSABLE}").get("remarks", []) == []


INITIALIZE = """{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}
}}""".replace("\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_in_one_line(warehouse: Path, number: int) -> None:
    command = [sys.executable, "-m", "ipu_results", "mcp", "--warehouse", str(warehouse)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT
    ) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr
        server.stdin.write(f"this is not JSON\n{INITIALIZE}\n")
        server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 1:
            pass
        server.send_signal(number)
        assert server.wait(timeout=600) == 1
        assert server.stderr.read() == "error: interrupted\n"


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
