"""SQL for programs: read-only, within limits on rows, time, memory and size, with units and citation."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ipu_results.schema import TABLES, VIEWS
from ipu_results.serve.answers import EMULATED, SUBMITTED, Record, RefusalError, Row

SECONDS = 10.0
MAX_ROWS, DEFAULT_ROWS = 1000, 100
MAX_CITED = 20


class SqlWorker:
    """A process that runs one statement at a time; it is started for the first and again after it was ended."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._running: threading.Event | None = None

    def run(self, sql: str, max_rows: int, cancelled: threading.Event | None = None) -> dict[str, Any]:
        """Return the answer of the worker. Raises RefusalError where it refuses, or was ended at a limit."""
        own = cancelled or threading.Event()
        with self._lock:
            self._running = own
            try:
                process = None if own.is_set() else self._start()
                if process is None or own.is_set():  # cancelled before there was a process to end
                    raise RefusalError("too-long", "cancelled")
                answer = self._send(process, {"sql": sql, "max_rows": max_rows, "seconds": SECONDS})
            finally:
                self._running = None
        if "code" in answer:
            reason = f"stopped after {SECONDS:g} s" if answer["code"] == "too-long" else answer["reason"]
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
            if self._process is not None:
                self._process.communicate()  # closes the pipes
                self._process = None

    def kill(self) -> None:
        """End the process, and with it a statement that runs."""
        if self._process is not None:
            self._process.kill()

    def _start(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self._process.communicate()
            self._process = None
        if self._process is None:
            command = [sys.executable, "-m", "ipu_results.serve.sql_worker", str(self._record.folder)]
            command.append(self._record.version.build_id)
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
        answer: dict[str, Any] = json.loads(line) if line.endswith("\n") else self._explain_end(process)
        return answer

    @staticmethod
    def _explain_end(process: subprocess.Popen[str]) -> dict[str, Any]:
        code = "too-long" if process.wait() in (-signal.SIGALRM, -signal.SIGKILL) else "too-large"
        return {"code": code, "reason": "the statement needs too much memory"}


def run_sql(
    record: Record, worker: SqlWorker, arguments: Mapping[str, Any], cancelled: threading.Event | None = None
) -> dict[str, Any]:
    """Run one reading statement; the units are those that the data dictionary gives a column of this name."""
    statement = arguments["statement"]
    answer = worker.run(statement, arguments.get("max_rows", DEFAULT_ROWS), cancelled)
    names = answer["columns"]
    # an id counts in whatever column it is: result_id, first_result_id, microbenchmark_id, same_as, or an alias
    named = [[record.sources[own] for own in _list_texts(row) if own in record.sources] for row in answer["rows"]]
    results = list({result["result_id"]: result for row in named for result in row}.values())
    cited = [result["result_id"] for result in results][:MAX_CITED]
    return {
        **answer,
        "units_of_columns_with_these_names": {name: _find_units(name) for name in names},
        "who_measured": [
            {name: row[name] for name in ("result_id", "relationship", "origin", "errors", "suspect")}
            for row in results
        ],
        "remarks": _list_remarks(named, len(results), len(cited)),
        "citation": record.cite(cited),
    }


def _list_texts(value: Any) -> Iterator[str]:
    """Yield each text of rows, and of the lists and structures in them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _list_texts(list(value.values()))
    elif isinstance(value, Sequence):
        for own in value:
            yield from _list_texts(own)


def _find_units(name: str) -> list[str]:
    """Return the units that columns of this name have: several where tables differ."""
    columns = chain(*(published.columns for published in TABLES), *(view.columns for view in VIEWS))
    return sorted({column.unit for column in columns if column.name == name and column.unit})


def _list_remarks(rows: Sequence[Sequence[Row]], results: int, cited: int) -> list[str]:
    """List what to know: `rows` are the results that each row of the answer names, `results` how many in all."""
    remarks = [
        "SQL is not checked for what may be compared. Null means that the source does not print the figure.",
        "Units go by the name of a column: an expression or an alias may have another.",
    ]
    for name, kind in (("origin", EMULATED), ("relationship", SUBMITTED)):
        if count := sum(any(result[name] == kind for result in row) for row in rows):
            remarks.append(f"{count} of the rows are {kind}{', not measured' if kind == EMULATED else ''}.")
    if not results:
        remarks.append("Select result_id to get citation, relationship and origin, and to know emulated rows.")
    elif results > cited:
        remarks.append(f"The citation names the first {cited} results.")
    return remarks
