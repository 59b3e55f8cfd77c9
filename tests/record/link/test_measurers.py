"""Who measured a row: what its publisher is to the chip, and the interest of those who measured."""

from __future__ import annotations

import duckdb
import pytest
from ipu_results.kit.statements import read_statement
from ipu_results.schema import fill_placeholders

from tests.conftest import Query

STATEMENT = fill_placeholders(read_statement("links/measurers.sql"))
TABLES = """
CREATE TABLE documents (
    document_id TEXT DEFAULT 'd', kind TEXT DEFAULT 'transcription', publisher TEXT, measured_by TEXT
);
CREATE TABLE results (
    result_id TEXT DEFAULT 'r', document_id TEXT DEFAULT 'd', table_name TEXT DEFAULT 't',
    row_number BIGINT DEFAULT 1, origin TEXT DEFAULT 'published', chip TEXT, platform TEXT
);
CREATE TABLE microbenchmarks (microbenchmark_id TEXT, document_id TEXT, chip TEXT);
CREATE SCHEMA read;
CREATE TABLE read.mlperf_entries (
    document_id TEXT DEFAULT 'd', table_name TEXT DEFAULT 't', row_number BIGINT DEFAULT 1,
    submitter TEXT, host_processor TEXT
);
"""
BY = "INSERT INTO documents (publisher, measured_by) VALUES"
ON = "INSERT INTO results (chip, platform) VALUES"
ENTRY = """
INSERT INTO documents (publisher) VALUES ('MLCommons');
INSERT INTO results (origin, chip) VALUES ('official', {});
INSERT INTO read.mlperf_entries (submitter, host_processor) VALUES ('{}', 'Intel(R) Xeon(R)');
"""
CASES = {
    "its maker": (f"{BY} ('Graphcore', NULL); {ON} ('Bow', NULL)", "vendor", "maker"),
    "its maker for another publisher": (
        f"{BY} ('ByteDance', 'Intel'); {ON} ('Gaudi2', NULL)",
        "vendor",
        "maker",
    ),
    "a part of its maker": (
        f"{BY} ('GitHub', 'Graphcore Research'); {ON} ('Bow', NULL)",
        "independent",
        "maker",
    ),
    "its maker, of a machine without a chip": (
        f"{BY} ('Graphcore', NULL); {ON} (NULL, 'IPU')",
        "vendor",
        "maker",
    ),
    "a rival": (f"{BY} ('Graphcore', NULL); {ON} ('A100', NULL)", "independent", "rival"),
    "a university": (f"{BY} ('Citadel', 'Z. Jia'); {ON} ('V100', NULL)", "independent", "neither"),
    "authors of the maker": (
        f"{BY} ('A university', 'A university; two authors are of Graphcore'); {ON} ('Bow', NULL)",
        "independent",
        "both",
    ),
    "a maker, on what nobody knows": (
        f"{BY} ('NVIDIA', NULL); {ON} ('Zeta 1', NULL)",
        None,
        None,
    ),
    "nobody's party, on what nobody knows": (
        f"{BY} ('Qwant', NULL); {ON} ('Zeta 1', NULL)",
        None,
        "neither",
    ),
    "an entry of the maker": (ENTRY.format("'H100-SXM-80GB'", "NVIDIA"), "official", "maker"),
    "an entry of a rival": (ENTRY.format("'H100-SXM-80GB'", "Google"), "official", "rival"),
    "an entry of two": (ENTRY.format("'GB200'", "CoreWeave + IBM + NVIDIA"), "official", "both"),
    "an entry of a party that is called somewhat like a maker": (
        ENTRY.format("'H100-SXM-80GB'", "X-Team"),
        "official",
        "neither",
    ),
    "an entry of two without blanks": (
        ENTRY.format("'H100-SXM-80GB'", "Lab+NVIDIA"),
        "official",
        "both",
    ),
    "an entry of a server's maker": (ENTRY.format("'MI300X'", "Dell"), "official", "neither"),
    "an entry on processors": (ENTRY.format("NULL", "Intel"), "official", "maker"),
    "a run of ours": (
        f"{BY} ('local', NULL);"
        "INSERT INTO results (origin, chip) VALUES ('measured', 'H100-SXM-80GB')",
        "own",
        "own",
    ),
    "a hand-in": (
        "INSERT INTO documents (kind, publisher) VALUES ('submission', 'Graphcore');"
        "INSERT INTO results (origin, chip) VALUES ('measured', 'Bow')",
        "submitted",
        "submitted",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_interest_is_of_those_who_measured(case: str) -> None:
    rows, relationship, interest = CASES[case]
    with duckdb.connect() as connection:
        connection.execute(TABLES + rows)
        found = dict(connection.execute(f"SELECT column_name, value FROM ({STATEMENT})").fetchall())
    assert (found.get("relationship"), found.get("interest")) == (relationship, interest)
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
