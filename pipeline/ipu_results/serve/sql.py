"""SQL for programs: read-only, within limits on rows, time, memory and size, with units and
citation.

Statements run in a process of their own, `python -m ipu_results.serve.sql`, which can be ended at
any time.
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
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from ipu_results.errors import IpuResultsError, QueryError
from ipu_results.ground.files import load_schema_file
from ipu_results.ground.sql import DEFECT, WriteRefusedError, limit_time, run_query
from ipu_results.ground.text import to_json_value
from ipu_results.schema import TABLES, VIEWS
from ipu_results.serve import RefusalError
from ipu_results.serve.remarks import remark_on_answer, remark_on_rows
from ipu_results.store.query import connect_warehouse, read_build_id

if TYPE_CHECKING:  # the process of the statements does without the packages of a comparison
    from ipu_results.serve.answers import Record, Row

# of DuckDB, of a file and no statement
DAMAGED = re.compile("^(IO|FATAL|Serialization) Error|^Corrupt")
SECONDS = 10.0
MAX_ROWS, DEFAULT_ROWS = 1000, 100
MAX_CITED = 20


AVERAGE = re.compile(
    r"\b(avg|mean|median|geomean|sum|quantile\w*|stddev\w*)\s*\([^)]*"
    r"(throughput|latency|minutes|efficiency|power|energy|time_to|quality|\bvalue|\bratio\b)",
    re.IGNORECASE,
)
# What figures of a measure must have in common, and other names for it in a statement.
TESTS = {
    measure["column"]: measure["test"]
    for measure in load_schema_file("comparison.toml")["measures"]
}
SPELLINGS = {
    "model": "work",
    "phase": "work",
    "sequence_length": "work|variant",
    "chip_count": "chip|platform",
}


class SqlWorker:
    """A process that runs one statement at a time, started for the first, and again after its end."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._running: threading.Event | None = None

    def run(
        self, sql: str, max_rows: int, cancelled: threading.Event | None = None
    ) -> dict[str, Any]:
        """Return the answer of the worker.

        Raises RefusalError where it refuses, or was ended at a limit.
        """
        own = cancelled or threading.Event()
        with self._lock:
            self._running = own
            try:
                process = None if own.is_set() else self._start()
                if process is None or own.is_set():  # cancelled before there was a process to end
                    raise RefusalError("too-long", "cancelled")
                answer = self._send(process, {"sql": sql, "max_rows": max_rows, "seconds": SECONDS})
                if answer.get("reason", "").startswith(DEFECT):  # which may have ended the database
                    process.kill()
                    process.wait()
            finally:
                self._running = None
        if "code" in answer:
            reason = (
                f"stopped after {SECONDS:g} s" if answer["code"] == "too-long" else answer["reason"]
            )
            raise RefusalError(answer["code"], reason)
        return answer

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
        self.kill()
        if self._process is not None:
            self._process.communicate()  # closes the pipes
        self._process = None

    def _start(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self._close()
        if self._process is None:
            command = [sys.executable, "-m", "ipu_results.serve.sql", str(self._record.folder)]
            command.append(self._record.version.build_id)
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            if "code" in (answer := self._read(self._process)):
                raise RefusalError(answer["code"], answer["reason"])
        return self._process

    def _send(self, process: subprocess.Popen[str], request: Mapping[str, Any]) -> dict[str, Any]:
        assert process.stdin
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._explain_end(process)
        return self._read(process)

    def _read(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout
        line = process.stdout.readline()
        answer: dict[str, Any] = (
            json.loads(line) if line.endswith("\n") else self._explain_end(process)
        )
        return answer

    @staticmethod
    def _explain_end(process: subprocess.Popen[str]) -> dict[str, Any]:
        code = "too-long" if process.wait() in (-signal.SIGALRM, -signal.SIGKILL) else "too-large"
        return {"code": code, "reason": "the statement needs too much memory"}


def run_sql(
    record: Record,
    worker: SqlWorker,
    cancelled: threading.Event | None,
    statement: str,
    max_rows: int = DEFAULT_ROWS,
) -> dict[str, Any]:
    """Run one reading statement; the units are those that the data dictionary gives a column of
    this name.
    """
    answer = worker.run(statement, max_rows, cancelled)
    names = answer["columns"]
    columns = list(
        chain(*(published.columns for published in TABLES), *(view.columns for view in VIEWS))
    )
    # an id counts in whatever column it is: result_id, first_result_id, microbenchmark_id, same_as,
    # or an alias
    named = [
        [record.sources[own] for own in _list_texts(row) if own in record.sources]
        for row in answer["rows"]
    ]
    results = list({result["result_id"]: result for row in named for result in row}.values())
    cited = [result["result_id"] for result in results][:MAX_CITED]
    return {
        **answer,
        "units_of_columns_with_these_names": {
            name: sorted({column.unit for column in columns if column.name == name and column.unit})
            for name in names
        },
        "who_measured": [
            {name: row[name] for name in ("result_id", "relationship", "origin", "usable")}
            for row in results
        ],
        "remarks": [
            *_warn_of_averages(statement),
            *_remark_on_usable(record, statement, answer, named),
            *_list_remarks(named, len(results), len(cited)),
        ],
        "citation": record.cite(cited),
    }


def _remark_on_usable(
    record: Record, statement: str, answer: Row, named: Sequence[Sequence[Row]]
) -> list[str]:
    """Say how many rows are not usable, of those that are named, else of what a ranking reads."""
    if any(named):
        return remark_on_rows(named)
    with record.connection.cursor() as cursor:
        return remark_on_answer(cursor, statement, answer["columns"], answer["rows"])


def _warn_of_averages(statement: str) -> list[str]:
    """Warn of an average over figures that may not be compared: name the conditions that the
    statement leaves open.
    """
    if not (match := AVERAGE.search(statement)):
        return []
    test = next(
        (names for column, names in TESTS.items() if column.startswith(match[2].lower())),
        TESTS["throughput"],
    )
    held = dict.fromkeys(("model", "task", "chip_count", *reversed(test), "usable"))
    missing = [
        name
        for name in held
        if not re.search(rf"\b({name}|{SPELLINGS.get(name, name)})\b", statement, re.I)
    ]
    if not missing:
        return []
    return [
        f"{match[1].lower()} may mix figures that may not be compared: the statement holds no"
        f" {', '.join(missing)}; state them in WHERE or GROUP BY."
    ]


def _list_texts(value: Any) -> Iterator[str]:
    """Yield each text of rows, and of the lists and structures in them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _list_texts(list(value.values()))
    elif isinstance(value, Sequence):
        for own in value:
            yield from _list_texts(own)


def _list_remarks(rows: Sequence[Sequence[Row]], results: int, cited: int) -> list[str]:
    """List what to know: `rows` are the results that each row of the answer names, `results` how
    many in all.
    """
    remarks = [
        (
            "SQL is not checked for what may be compared. Null means that the source does not print"
            " the figure."
        ),
        "Units go by the name of a column: an expression or an alias may have another.",
    ]
    if sparse := sum(any(result.get("sparsity") for result in row) for row in rows):
        remarks.append(f"{sparse} of the rows are of sparse networks, which a ranking leaves out.")
    if not results:
        remarks.append("Select result_id to get citation, relationship, origin and usable.")
    elif results > cited:
        remarks.append(f"The citation names the first {cited} results.")
    return remarks


LIMITS: Mapping[str, str | int] = {"memory_limit": "1GB", "temp_directory": ""}
# bytes of data of this process; DuckDB keeps below LIMITS where it counts them
MAX_MEMORY = 3 * 2**30
GRACE_S = 2.0  # between the interrupt and the end of the process
MAX_ANSWER = 400_000  # characters


def main() -> None:
    """Answer requests until stdin ends."""
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Ctrl-C reaches the server, which ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # settings and errors of DuckDB name paths, and none of them is to be one of the machine
    os.environ["HOME"] = "."
    try:
        os.chdir(sys.argv[1])
        connection = connect_warehouse(Path(), LIMITS)
        build_id = read_build_id(Path())
    except (IpuResultsError, OSError) as error:
        reason = (
            str(error)
            if isinstance(error, IpuResultsError)
            else "the folder of the dataset is gone"
        )
        _write({"code": "rebuilt", "reason": reason})
        return
    if build_id != sys.argv[2]:
        _write(
            {
                "code": "rebuilt",
                "reason": f"the dataset is now build {build_id[:12]}; start the server again",
            }
        )
        return
    _write({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + GRACE_S)
        _write(_answer(connection, request["sql"], request["max_rows"], request["seconds"]))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(
    connection: duckdb.DuckDBPyConnection, sql: str, max_rows: int, seconds: float
) -> dict[str, object]:
    try:
        with connection.cursor() as cursor, limit_time(cursor, seconds):
            result = run_query(cursor, sql, max_rows + 1)
            rows = [
                to_json_value(list(row.values())) for row in result.slice(0, max_rows).to_pylist()
            ]
    except QueryError as error:
        return {"code": _find_code(error), "reason": str(error)}
    except MemoryError:
        return {"code": "too-large", "reason": "the statement needs too much memory"}
    types = [str(kind) for kind in result.schema.types]
    answer: dict[str, object] = {"columns": result.column_names, "types": types, "rows": rows}
    if len(json.dumps(rows)) > MAX_ANSWER:
        return {
            "code": "too-large",
            "reason": f"the answer is longer than {MAX_ANSWER:,} characters",
        }
    return {**answer, "more_rows": result.num_rows > max_rows}


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


def _write(answer: dict[str, object]) -> None:
    folder = json.dumps(f"{os.getcwd()}{os.sep}")[1:-1]  # DuckDB lists the path of its file
    sys.stdout.write(json.dumps(answer).replace(folder, "") + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
