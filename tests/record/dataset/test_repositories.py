"""Figures of public repositories: whole rows looked up by hand, who measured, what a latency times,
what is flagged.
"""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ipu_results.kit.sql import run_query

from tests.cases import every_case
from tests.conftest import RAW, Query

SIDECARS = {
    path: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted(RAW.glob("*/*.csv.toml"))
}
# The pages of a history have a figure a column, and were measured by whoever published them.
FILES = [
    path
    for path, sidecar in SIDECARS.items()
    if "sources" in sidecar and sidecar["reader"] != "performance-csv"
]
# Places in a paper, a page or a thread: they do not name a file of a repository.
IN_A_TEXT = re.compile("page |section |table |pull request |execution count ")


def read_lines(path: Path) -> list[dict[str, str]]:
    """Read the lines of the CSV of a sidecar."""
    text = path.with_suffix("").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_line_becomes_a_figure(query: Query, path: Path) -> None:
    document = SIDECARS[path]["document_id"]
    read = query(
        "SELECT raw_text, source_locator FROM cells"
        f" WHERE document_id = '{document}' AND header = 'value' ORDER BY ALL"
    )
    assert read == sorted((line["value"], line["place"]) for line in read_lines(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sidecar_names_each_file_that_a_line_stands_in(path: Path) -> None:
    sidecar = SIDECARS[path]
    named = {source["path"] for source in sidecar["sources"]}
    stated = {re.split(", | at commit ", line["place"])[0] for line in read_lines(path)}
    assert all(re.fullmatch("[0-9a-f]{40}", source["commit"]) for source in sidecar["sources"])
    assert stated == named or all(map(IN_A_TEXT.match, stated))
    assert sidecar["measured_by"]
    assert sidecar["measured_on"]
    assert sidecar["verified"]


@every_case(__file__, "network")
def test_network_as_its_source_prints_it(
    opened: duckdb.DuckDBPyConnection, where: str, printed: dict[str, Any]
) -> None:
    rows = f"""
        SELECT
            chip, chip_count, relationship, throughput, latency_ms, p99.value AS p99, latency_basis,
            quality.scope, quality.value AS quality
        FROM results r
        LEFT JOIN figures p99 ON p99.result_id = r.result_id AND p99.metric = 'latency_p99_ms'
        LEFT JOIN figures quality
            ON quality.result_id = r.result_id AND quality.metric = 'quality_value'
        WHERE {where}
    """
    assert list_stated(opened, rows) == [printed]


@every_case(__file__, "microbenchmark")
def test_microbenchmark_as_its_source_prints_it(
    opened: duckdb.DuckDBPyConnection, where: str, printed: dict[str, Any]
) -> None:
    columns = "chip, chip_count, value, canonical_value"
    assert list_stated(opened, f"SELECT {columns} FROM microbenchmarks WHERE {where}") == [printed]


def list_stated(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """Return rows with the columns that have a value."""
    rows = run_query(connection, sql).to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def test_batches_in_flight_of_bytemlperf_are_its_threads(query: Query) -> None:
    """Little's law gives the number of client threads that the settings name, but for a few percent
    between calls.
    """
    sql = (
        "SELECT TRY_CAST(regexp_extract(conditions, '([0-9]+) client threads with', 1) AS INTEGER)"
        " AS threads, batches_in_flight FROM inference WHERE document_id = 'bytemlperf-c600' AND"
        " threads < 10"
    )
    depths = query(sql)
    assert len(depths) == 22
    assert all(0.98 * threads < depth <= threads for threads, depth in depths)


def test_every_microbenchmark_says_how_its_chip_is_known(query: Query) -> None:
    unknown = (
        "SELECT DISTINCT document_id, chip FROM microbenchmarks"
        " WHERE chip_confidence IS NULL OR chip_source IS NULL"
    )
    assert query(unknown) == []


def test_every_identity_is_that_of_a_row(query: Query) -> None:
    without_rows = (
        "SELECT document_id, chip FROM detail.chip_identities"
        " EXCEPT (SELECT document_id, chip FROM results"
        " UNION ALL SELECT document_id, chip FROM microbenchmarks)"
    )
    assert query(without_rows) == []
    nameless = (
        "SELECT document_id FROM detail.chip_identities"
        " WHERE chip_confidence = 'printed' AND chip_printed IS NULL"
    )
    assert query(nameless) == []
