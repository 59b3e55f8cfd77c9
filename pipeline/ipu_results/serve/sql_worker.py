"""Run SQL statements of strangers in a process of its own: one request a line on stdin, one answer a line on stdout.

The process has a limit on memory, and the kernel ends it when a statement does not stop in time: DuckDB interrupts
between the steps of a statement only, and one step may take minutes.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import duckdb

from ipu_results.errors import IpuResultsError, QueryError
from ipu_results.ground.sql import WriteRefusedError, limit_time, run_query
from ipu_results.ground.text import to_json_value
from ipu_results.store.query import connect_warehouse, read_build_id

LIMITS: Mapping[str, str | int] = {"memory_limit": "1GB", "max_temp_directory_size": "0B", "threads": 2}
MAX_MEMORY = 3 * 2**30  # bytes of data of this process; DuckDB keeps below LIMITS where it counts them
GRACE_S = 2.0  # between the interrupt and the end of the process
MAX_ANSWER = 400_000  # characters


def main() -> None:
    """Answer requests until stdin ends."""
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the server, which ends this process
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        connection = connect_warehouse(Path(sys.argv[1]), LIMITS)
        build_id = read_build_id(Path(sys.argv[1]))
    except IpuResultsError as error:
        _write({"code": "rebuilt", "reason": str(error)})
        return
    if build_id != sys.argv[2]:
        _write({"code": "rebuilt", "reason": f"the dataset is now build {build_id[:12]}; start the server again"})
        return
    _write({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + GRACE_S)
        _write(_answer(connection, request["sql"], request["max_rows"], request["seconds"]))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(connection: duckdb.DuckDBPyConnection, sql: str, max_rows: int, seconds: float) -> dict[str, object]:
    try:
        with connection.cursor() as cursor, limit_time(cursor, seconds):
            result = run_query(cursor, sql, max_rows + 1)
            rows = [to_json_value(list(row.values())) for row in result.slice(0, max_rows).to_pylist()]
    except QueryError as error:
        return {"code": _find_code(error), "reason": str(error)}
    except MemoryError:
        return {"code": "too-large", "reason": "the statement needs too much memory"}
    types = [str(kind) for kind in result.schema.types]
    answer: dict[str, object] = {"columns": result.column_names, "types": types, "rows": rows}
    if len(json.dumps(rows)) > MAX_ANSWER:
        return {"code": "too-large", "reason": f"the answer is longer than {MAX_ANSWER:,} characters"}
    return {**answer, "more_rows": result.num_rows > max_rows}


def _find_code(error: QueryError) -> str:
    if isinstance(error, WriteRefusedError):
        return "not-read-only"
    causes = {
        duckdb.PermissionException: "no-file-access",
        duckdb.InterruptException: "too-long",
        duckdb.OutOfMemoryException: "too-large",
    }
    code = next((code for kind, code in causes.items() if isinstance(error.__cause__, kind)), "wrong-sql")
    return "not-read-only" if "read-only" in str(error) else code


def _write(answer: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
