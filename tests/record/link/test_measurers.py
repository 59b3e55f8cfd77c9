"""Who measured a row: what its publisher is to the chip, and the interest of those who measured."""

from __future__ import annotations

import duckdb
from ipu_results.kit.statements import read_statement
from ipu_results.schema import fill_placeholders

from tests.cases import every_case
from tests.conftest import Query

STATEMENT = fill_placeholders(read_statement("links/measurers.sql"))
TABLES = """
CREATE TABLE documents AS
    SELECT 'd' AS document_id, $kind AS kind, $publisher AS publisher, $measured_by AS measured_by;
CREATE TABLE results AS
    SELECT 'r' AS result_id, 'd' AS document_id, 't' AS table_name, 1 AS row_number,
        $origin AS origin, $chip AS chip, $platform AS platform;
CREATE SCHEMA read;
CREATE TABLE read.mlperf_entries AS
    SELECT 'd' AS document_id, 't' AS table_name, 1 AS row_number, $submitter AS submitter,
        'Intel(R) Xeon(R)' AS host_processor
    WHERE $submitter IS NOT NULL;
CREATE TABLE microbenchmarks (microbenchmark_id TEXT, document_id TEXT, chip TEXT);
"""
COLUMNS = ("publisher", "measured_by", "chip", "platform", "submitter")


@every_case(__file__, "interest")
def test_interest_is_of_those_who_measured(
    row: dict[str, str], relationship: str, interest: str
) -> None:
    values = {"kind": "transcription", "origin": "published", **dict.fromkeys(COLUMNS)}
    if "submitter" in row:
        values |= {"publisher": "MLCommons", "origin": "official"}
    values |= row
    with duckdb.connect() as connection:
        for statement in filter(str.strip, TABLES.split(";")):
            used = {name: value for name, value in values.items() if f"${name}" in statement}
            connection.execute(statement, used)
        found = dict(connection.execute(f"SELECT column_name, value FROM ({STATEMENT})").fetchall())
    assert found.get("relationship", "") == relationship
    assert found.get("interest", "") == interest
    assert ("interest_source" in found) == (interest != "own")


def test_every_row_says_who_measured(query: Query) -> None:
    for relation in ("results", "microbenchmarks"):
        unknown = f"SELECT count(*) FROM {relation} WHERE interest IS NULL OR relationship IS NULL"
        assert query(unknown) == [(0,)]


def test_parties_are_called_by_their_interest(query: Query) -> None:
    """The pairs with a paper that two authors of Graphcore signed are none with the independent."""
    assert query(
        "SELECT parties, count(*) FILTER (counts) FROM replications"
        " WHERE 'Texas A&M University' IN (first_publisher, second_publisher)"
        " GROUP BY ALL ORDER BY ALL"
    ) == [("mixed and independent", 1), ("vendor and mixed", 7)]
