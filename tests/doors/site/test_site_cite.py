"""The page cites results in the words of `ipu-results cite`."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from ipu_results.doors.cite import cite
from ipu_results.doors.site.citations import build_citations
from ipu_results.kit.sql import run_query
from ipu_results.record.store.query import open_warehouse

from tests.conftest import COMMITTED

SAMPLE = "SELECT any_value(result_id) AS result_id FROM results GROUP BY origin, relationship"


def test_page_cites_each_kind_of_result_as_the_command_does(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    citations = build_citations(connection, COMMITTED)
    ids = run_query(connection, SAMPLE)["result_id"].to_pylist()
    assert len(ids) >= 5
    for key in ids:
        footnote, entry = citations["results"][key]
        assert f"{citations['dataset']}\n\n{entry}" == cite(key, format="bibtex")
        assert f"result {key}." in footnote
    assert len(citations["results"]) == connection.table("results").shape[0]


@pytest.mark.slow
def test_citation_of_a_release_states_version_and_digest(release: Path) -> None:
    with open_warehouse(release) as opened:
        citations = build_citations(opened, release)
    for texts in citations["results"].values():
        assert all("version 1.0.0, sha256 of SHA256SUMS " in text for text in texts)
