"""The process in which statements of programs run: within limits on time, memory and size, and it
can be ended at any time.

The server starts it as `python -m ipu_results.doors.mcp.worker`. A request and its answer are one
line of JSON each.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import duckdb

from ipu_results.doors.mcp.refusal import Answer, RefusalError
from ipu_results.errors import IpuResultsError, QueryError
from ipu_results.kit.sql import DEFECT, Connection, WriteRefusedError, limit_time, run_query
from ipu_results.kit.text import to_json_value
from ipu_results.record.store.query import connect_warehouse, read_build_id

SECONDS = 10.0
# how an error of DuckDB begins that is of a file, not of a statement
DAMAGED = re.compile("^(IO|FATAL|Serialization) Error|^Corrupt")
LIMITS: Mapping[str, str | int] = {"memory_limit": "1GB", "temp_directory": ""}
# bytes of data of this process; DuckDB keeps below LIMITS where it counts them
MAX_MEMORY = 3 * 2**30
GRACE_S = 2.0  # between the interrupt and the end of the process
TOO_MUCH_MEMORY = {"code": "too-large", "reason": "the statement needs too much memory"}
MAX_ANSWER = 100_000  # characters: what an agent can still read


class SqlWorker:
    """A process that runs one statement at a time; it is started where none runs."""

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._running: threading.Event | None = None

    def run(
        self, build_id: str, sql: str, max_rows: int, cancelled: threading.Event | None = None
    ) -> Answer:
        """Return the answer of the worker.

        Raises RefusalError where it refuses, or was ended at a limit.
        """
        request = {
            "sql": sql,
            "max_rows": max_rows,
            "seconds": SECONDS,
            "build_id": build_id,
        }
        with self._lock:
            self._running = cancelled or threading.Event()
            try:
                answer = self._ask(self._running, json.dumps(request))
            finally:
                self._running = None
            if answer.get("reason", "").startswith(DEFECT):
                self._close()  # its database may not answer any more
        if "code" not in answer:
            return answer
        if answer["code"] == "too-long":
            raise RefusalError("too-long", f"stopped after {SECONDS:g} s")
        raise RefusalError(answer["code"], answer["reason"])

    def cancel(self, cancelled: threading.Event) -> None:
        """Give up the statement of this event: end the process if it runs, else do not start it."""
        cancelled.set()
        if self._running is cancelled:
            self.kill()

    def stop(self) -> None:
        """End the process and close its pipes."""
        self.kill()
        with self._lock:
            self._close()

    def kill(self) -> None:
        """End the process, and with it a statement that runs."""
        if self._process is not None:
            self._process.kill()

    def _close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()  # closes the pipes
        self._process = None

    def _ask(self, cancelled: threading.Event, request: str) -> Answer:
        if self._process is None or self._process.poll() is not None:
            self._close()
            command = [sys.executable, "-m", "ipu_results.doors.mcp.worker", str(self._warehouse)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        if cancelled.is_set():  # before there was a process that `cancel` could end
            raise RefusalError("too-long", "cancelled")
        process = self._process
        assert process.stdin
        assert process.stdout
        line = ""
        with suppress(BrokenPipeError):
            process.stdin.write(f"{request}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if line.endswith("\n"):
            answer: Answer = json.loads(line)
            return answer
        # the process has ended: by its timer, by `kill`, or for want of memory
        if process.wait() in (-signal.SIGALRM, -signal.SIGKILL):
            return {"code": "too-long"}
        return TOO_MUCH_MEMORY


def main() -> None:
    """Answer requests until stdin ends."""
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Ctrl-C reaches the server, which ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # settings and errors of DuckDB name paths, and none of them is to be one of the machine
    os.environ["HOME"] = "."
    build_id = None  # where there is no dataset to open
    try:
        os.chdir(sys.argv[1])
        connection = connect_warehouse(Path(), LIMITS)
        build_id = read_build_id(Path())
        # for requests of another build
        reason = f"the dataset is now build {build_id[:12]}; start the server again"
    except IpuResultsError as error:
        reason = str(error)
    except OSError:
        reason = "the folder of the dataset is gone"
    for line in sys.stdin:
        request = json.loads(line)
        if build_id != request["build_id"]:
            _write({"code": "rebuilt", "reason": reason})
            return
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + GRACE_S)
        _write(_answer(connection, request["sql"], request["max_rows"], request["seconds"]))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(connection: Connection, sql: str, max_rows: int, seconds: float) -> Answer:
    try:
        with connection.cursor() as cursor, limit_time(cursor, seconds):
            result = run_query(cursor, sql, max_rows + 1)
            shown = result.slice(0, max_rows).to_pylist()
            rows = [to_json_value(list(row.values())) for row in shown]
    except QueryError as error:
        return {"code": _find_code(error), "reason": str(error)}
    except MemoryError:
        return TOO_MUCH_MEMORY
    if len(json.dumps(rows)) > MAX_ANSWER:
        reason = (
            f"the answer is longer than {MAX_ANSWER:,} characters: select fewer columns or rows"
        )
        return {"code": "too-large", "reason": reason}
    return {
        "columns": result.column_names,
        "types": [str(kind) for kind in result.schema.types],
        "rows": rows,
        "more_rows": result.num_rows > max_rows,
    }


def is_damage(error: Exception) -> bool:
    """Return whether a statement failed because a file of the dataset is damaged."""
    return bool(DAMAGED.search(str(error.__cause__ or error)))


def _find_code(error: QueryError) -> str:
    if isinstance(error, WriteRefusedError):
        return "not-read-only"
    causes: Mapping[type, str] = {
        duckdb.PermissionException: "no-file-access",
        duckdb.InterruptException: "too-long",
        duckdb.OutOfMemoryException: "too-large",
    }
    if is_damage(error):
        return "rebuilt"
    if "read-only" in str(error):
        return "not-read-only"
    return causes.get(type(error.__cause__), "wrong-sql")


def _write(answer: Answer) -> None:
    # DuckDB lists the path of its file: the folder is left out of it, as it is written in JSON
    folder = json.dumps(f"{os.getcwd()}{os.sep}").strip('"')
    sys.stdout.write(json.dumps(answer).replace(folder, "") + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
