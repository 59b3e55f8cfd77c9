"""Take the rows of the record as honest runs, and count those that `compare` would doubt.

A tenth of the rows at a time is held against the others, so that no row meets itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from zlib import crc32

import duckdb
from ipu_results.doors.comparison.statements import (
    READS,
    Row,
    load_rows,
    load_runs,
    open_session,
    run_statements,
)
from ipu_results.kit.files import DATASET
from ipu_results.record.store.query import open_warehouse

from benchmarks.report import Options, Report, ReportTable, ReportTarget

FOLDS = 10
OTHERS = "NOT list_contains($ids, result_id)"
REFUSED = ("implausible", "doubtful")
ANSWERS = """
    SELECT status, list_filter(checks, lambda own: own.outcome IN ('impossible', 'doubtful'))
    FROM answer
"""
MAX_DOUBTED = 0.025
ROW = "the nearest row"  # of the same set-up, or the share of the peak


def run(_: Options) -> Report:
    """Print how many rows each check doubts."""
    judged = []
    with open_warehouse(DATASET, READS) as connection:
        rows = [row for row in load_rows(connection) if row["unusable"] is None]
        for fold in range(FOLDS):
            held = [row for row in rows if crc32(row["result_id"].encode()) % FOLDS == fold]
            judged += _judge_against_others(connection, held)
    statuses = Counter(status for status, _ in judged)
    doubted = Counter(check for status, check in judged if status in REFUSED)
    share = doubted.total() / len(rows)
    return Report(
        "honest",
        f"The {len(rows):,} usable rows of the record as runs, against the others",
        tables=[
            ReportTable("verdicts", ("status", "rows"), statuses.most_common()),
            ReportTable("doubted by", ("check", "rows"), doubted.most_common()),
        ],
        targets=[ReportTarget("rows doubted", share, MAX_DOUBTED)],
    )


def _judge_against_others(
    connection: duckdb.DuckDBPyConnection, held: Sequence[Row]
) -> list[tuple[str, str]]:
    """Return the status of each row, and the check that doubts it, if one does."""
    ids = [row["result_id"] for row in held]
    with open_session(connection, OTHERS, {"ids": ids}) as session:
        load_runs(session, [{**row, "run": number} for number, row in enumerate(held, 1)])
        run_statements(session)
        answers = session.execute(ANSWERS).fetchall()
    return [(status, failed[0]["name"] if failed else ROW) for status, failed in answers]
