"""What a bundle is held against: figures of the record under other names, power that no chip draws,
wrong orders. Each rule runs over rows of the record itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from ipu_results.doors.comparison.statements import open_session, run_statements
from ipu_results.doors.submission.judge import create_relation, run_rule
from ipu_results.kit.statements import define_macros
from ipu_results.record.store.query import open_warehouse

from tests.conftest import HISTORIES, Query

Session = duckdb.DuckDBPyConnection
RENAMED = "'TinyNet-9' AS model, 'My box' AS platform, NULL AS chip"
COPIED = "S11-copied-row"
TABLE_COPIED = "S12-copied-table"
ORDER = "S06-order-of-figures"
MACHINE_RULE = "S07-machine"
POWER = "S08-power"


@pytest.fixture(scope="module")
def session(warehouse: Path) -> Iterator[Session]:
    """Give the rows of the record as `rows`, to hand in, and as `candidates`."""
    with open_warehouse(warehouse) as record, open_session(record) as session:
        session.execute("CREATE TEMP TABLE rows AS FROM candidates")
        run_statements(session, "parties")  # what is known of chips
        define_macros(session, "submission/macros.sql", temporary=True)
        yield session


def hand_in(session: Session, sql: str, *relations: str) -> None:
    """Hand in the rows of a statement, and create what the rule of a test reads besides them."""
    session.execute("DELETE FROM mine")
    session.execute(f"INSERT INTO mine BY NAME SELECT row_number() OVER () AS run, * FROM ({sql})")
    for name in ("stated", *relations):
        create_relation(session, name)


def hand_in_each(session: Session, sql: str) -> Iterator[str]:
    """Hand in the documents of a statement one after another. What a row has in common with the
    record needs no other row of its document, and is looked up once for all.
    """
    hand_in(session, sql, "common")
    session.execute("CREATE OR REPLACE TEMP TABLE handed_in AS FROM mine")
    session.execute("CREATE OR REPLACE TEMP TABLE common_of_all AS FROM common")
    for (document,) in session.execute("SELECT DISTINCT document_id FROM handed_in").fetchall():
        session.execute("DELETE FROM mine")
        session.execute("INSERT INTO mine FROM handed_in WHERE document_id = ?", [document])
        own = "FROM common_of_all SEMI JOIN mine USING (run)"
        session.execute(f"CREATE OR REPLACE TEMP TABLE common AS {own}")
        yield document


def set_record(session: Session, sql: str, **values: Any) -> None:
    session.execute(f"CREATE OR REPLACE TEMP TABLE candidates AS {sql}", values)


def is_copied(session: Session) -> bool:
    return bool(run_rule(session, COPIED) or run_rule(session, TABLE_COPIED))


def make_rows(session: Session, *figures: str, **values: Any) -> None:
    """Make `made`: rows with a throughput of these digits, and other values."""
    row = {"task": "inference", "model": "Net", "batch_size": 4, "platform": "Box", "chip_count": 1}
    row |= {"publisher": "P", "document_id": "page", "origin": "published", **values}
    rows = [{**row, "result_id": digits, "throughput": float(digits)} for digits in figures]
    session.execute("CREATE OR REPLACE TEMP TABLE made AS FROM rows LIMIT 0")
    session.register("incoming", pa.Table.from_pylist(rows))
    session.execute("INSERT INTO made BY NAME FROM incoming")


@pytest.mark.parametrize(
    ("digits", "changes"),
    [
        (5, ""),
        (6, "'Other' AS platform"),
        (7, "'Other' AS platform, 'Else' AS model"),
        (8, "'Other' AS platform, 'Else' AS model, 1000 * throughput AS throughput"),
    ],
)
def test_row_is_copied_from_its_number_of_digits_on(
    digits: int, changes: str, session: Session
) -> None:
    for count in (digits - 1, digits):
        make_rows(session, "1234567891"[:count])
        set_record(session, "FROM made")
        hand_in(session, f"SELECT * REPLACE ({changes or 'task AS task'}) FROM made", "common")
        assert bool(run_rule(session, COPIED)) == (count == digits)


@pytest.mark.parametrize(("digits", "batch"), [(4, 4), (5, 8)])
def test_table_is_copied_from_its_number_of_digits_on(
    digits: int, batch: int, session: Session
) -> None:
    for count in (digits - 1, digits):
        make_rows(session, *(figure[:count] for figure in ("12345", "23456", "34567")))
        set_record(session, "FROM made")
        hand_in(
            session,
            f"SELECT * REPLACE ('Else' AS model, {batch} AS batch_size) FROM made",
            "common",
        )
        assert bool(run_rule(session, TABLE_COPIED)) == (count == digits)


@pytest.mark.parametrize(
    ("figure", "values", "copied"),
    [
        ("14321", {"latency_ms": 2.69}, True),
        ("14321", {}, False),
        # one batch in 2.4994 ms: the throughput follows from it
        ("6401.5", {"batch_size": 16, "latency_ms": 2.4994}, False),
        ("1", {"latency_min_ms": 1.0, "latency_max_ms": 2.0, "latency_ms": 1.374}, False),
        ("1", {"latency_min_ms": 1.0, "latency_std_ms": 0.1937, "latency_ms": 1.374}, True),
    ],
)
def test_few_digits_are_no_evidence(
    figure: str, values: dict[str, float], copied: bool, session: Session
) -> None:
    make_rows(session, figure, **values)
    set_record(session, "FROM made")
    hand_in(session, f"SELECT * REPLACE ({RENAMED}) FROM made", "common")
    assert bool(run_rule(session, COPIED)) == copied


@pytest.mark.slow
def test_no_document_counts_as_copied_from_another_publisher(session: Session) -> None:
    checked = 0
    for (publisher,) in session.execute("SELECT DISTINCT publisher FROM rows").fetchall():
        others = "FROM rows WHERE publisher <> $publisher AND same_as IS NULL"
        set_record(session, others, publisher=publisher)
        for document in hand_in_each(session, f"FROM rows WHERE publisher = '{publisher}'"):
            assert not is_copied(session), document
            checked += 1
    assert checked > 40


VARIANTS: Mapping[str, str] = {
    "as printed": "task AS task",
    "another batch size": "3 * batch_size AS batch_size",
    "latencies in another unit": "latency_ms / 1000 AS latency_ms",
    "five digits": "format('{:.4e}', throughput)::DOUBLE AS throughput",
    "per chip": """
        format(
            '{:.{}e}', throughput / chip_count, (count_digits(throughput) - 1)::INTEGER
        )::DOUBLE AS throughput
    """,
}


# Histories with one figure a row, or with figures of three digits: nothing tells a copy of them
# from figures of others.
ROUNDED = f"""
    WITH counts AS (SELECT result_id, count(*) AS figures FROM figures GROUP BY result_id)
    SELECT document_id
    FROM results
    LEFT JOIN counts USING (result_id)
    WHERE document_id IN {HISTORIES}
    GROUP BY document_id
    HAVING avg(coalesce(figures, 0) + (throughput IS NOT NULL)::INTEGER) <= 1
        OR median(count_digits(throughput)) <= 3
"""
NOT_RECOGNISED = {
    "another batch size": {
        "graphcore-performance-2022-03",
        "graphcore-performance-2022-h2",
        "graphcore-performance-2023-h1",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_document_under_other_names_is_recognised(
    name: str, session: Session, query: Query
) -> None:
    set_record(session, "FROM rows WHERE same_as IS NULL")
    missed = set()
    copies = f"SELECT * REPLACE ({VARIANTS[name]}) FROM rows"
    for document in hand_in_each(session, f"SELECT * REPLACE ({RENAMED}) FROM ({copies})"):
        if not is_copied(session):
            missed.add(document)
    rounded = {document for (document,) in query(ROUNDED)}
    assert missed - rounded <= NOT_RECOGNISED.get(name, set())


POWERS = ("power_w", "energy_per_item_j", "efficiency", "run_energy_j")
POWERED = f"coalesce({', '.join(POWERS)}) IS NOT NULL"


def count_rows(session: Session) -> int:
    """Count the rows that are handed in."""
    [(count,)] = session.execute("SELECT count(*) FROM mine").fetchall()
    return int(count)


def test_power_of_the_record_is_refused_only_where_a_rule_finds_an_error(session: Session) -> None:
    hand_in(session, f"FROM rows WHERE {POWERED}", "powers")
    assert count_rows(session) > 100
    for hidden in ("task AS task", "'My box' AS platform", "'My box' AS platform, NULL AS chip"):
        sound = f"FROM rows WHERE {POWERED} AND errors = 0"
        hand_in(session, f"SELECT * REPLACE ({hidden}) {sound}", "powers")
        assert run_rule(session, POWER) == []


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_every_power_of_the_record_off_by_thousands_is_refused(
    factor: float, session: Session
) -> None:
    checked = 0
    for place, name in enumerate(POWERS, 1):
        wrong = f"SELECT * REPLACE ({factor} * {name} AS {name}) FROM rows WHERE errors = 0"
        hand_in(session, f"{wrong} AND {name} IS NOT NULL", "powers")
        implied = f"SELECT run FROM powers WHERE place = {place}"
        session.execute(f"DELETE FROM mine WHERE run NOT IN ({implied})")
        faults = run_rule(session, POWER)
        assert len(faults) == count_rows(session)
        assert {fault.reason for fault in faults} <= {"unit"}
        checked += len(faults)
    assert checked > 100


@pytest.mark.parametrize("rule", [ORDER, MACHINE_RULE])
def test_no_row_of_the_record_contradicts_itself(rule: str, session: Session) -> None:
    # five rows of AWS print a percentile above a higher one: R55 flags them
    flagged = "SELECT result_id FROM flags WHERE rule = 'R55'"
    hand_in(session, f"FROM rows WHERE result_id NOT IN ({flagged})")
    assert run_rule(session, rule) == []
