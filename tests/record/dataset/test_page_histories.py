"""A page with its history: rows, what they are about, and what the view `revisions` makes of them."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from ipu_results.build import IngestConfig, ingest
from ipu_results.record.store.files import DATABASE
from ipu_results.schema import VIEWS

from tests.cases import every_case
from tests.conftest import ROOT, Query
from tests.record.read.reading_support import list_cells, list_results, normalise_table

HISTORY = ROOT / "tests" / "data" / "page-history"
Row = dict[str, str]


@pytest.fixture
def row() -> Row:
    """Return the first row of the page, by header."""
    with (HISTORY / "page.csv").open(encoding="utf-8", newline="") as file:
        return next(csv.DictReader(file))


def normalise_rows(*rows: Row) -> Any:
    cells = [list(row.values()) for row in rows]
    return normalise_table("performance-csv", "neuron_inference", list(rows[0]), *cells)


def test_conditions_are_part_of_what_a_row_is_and_unread_columns_are_not(row: Row) -> None:
    longer = row | {"Sequence Length": "512"}
    ended = row | {"printed_until": "2024-03-01", "Max Throughput": "8"}
    first, second = list_results(normalise_rows(row, longer))
    assert first["conditions"] == "Run Mode = Data Parallel; Sequence Length = 128"
    assert second["conditions"] == "Run Mode = Data Parallel; Sequence Length = 512"
    [other] = list_results(normalise_rows(ended))
    assert other["result_id"] == first["result_id"] != second["result_id"]
    cells = {cell["header"]: cell for cell in list_cells(normalise_rows(row))}
    assert cells["Sequence Length"]["column_name"] == "conditions"
    assert cells["Max Throughput"]["column_name"] == "not_read"
    assert cells["Max Throughput"]["raw_text"] == "7"


def test_condition_that_a_page_adds_later_leaves_the_ids_of_its_older_rows(row: Row) -> None:
    [older] = list_results(normalise_rows(row))
    [wider] = list_results(normalise_rows(row | {"OS Type": ""}))
    assert wider["result_id"] == older["result_id"]


def test_column_has_the_unit_of_its_own_header_where_a_page_changed_it(row: Row) -> None:
    moved = row | {"Throughput (inference/sec)": "", "Throughput (/sec)": "14.2"}
    for printed in (row, moved):
        [result] = list_results(normalise_rows(printed))
        assert result["throughput"] == 14.2


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("history")
    shutil.copytree(HISTORY, folder / "raw")
    ingest(IngestConfig(folder / "raw", folder / "warehouse"))
    with duckdb.connect(folder / "warehouse" / DATABASE, read_only=True) as connection:
        yield connection


def test_revision_is_another_figure_of_the_same_row(history: duckdb.DuckDBPyConnection) -> None:
    rows = history.execute(
        """
        SELECT model_printed, column_name, before, after, same_software, silent,
            before_printed_until < published_on AS was_away
        FROM revisions
        ORDER BY model_printed, published_on
        """
    ).fetchall()
    assert rows == [
        ("framework", "throughput", 10, 11, False, False, False),
        ("gap", "latency_median_ms", 5, 6, False, False, True),
        ("silent", "throughput", 14.2, 32.3, True, True, False),
        ("silent", "throughput", 32.3, 33, False, False, False),
        ("unknown", "throughput", 10, 12, True, None, False),
    ]


def test_a_figure_follows_one_in_its_unit_and_of_its_metric(query: Query) -> None:
    compared = query(
        """
        SELECT count(*), count(DISTINCT a.unit) FILTER (r.column_name = 'quality_value')
        FROM revisions r
        JOIN cells a ON a.result_id = r.result_id AND a.column_name = r.column_name
        JOIN cells b ON b.result_id = r.before_result_id AND b.column_name = r.column_name
        WHERE a.value = r.after AND b.value = r.before AND a.factor = b.factor
            AND (r.column_name <> 'quality_value' OR a.unit = b.unit)
        """
    )
    [(revisions,)] = query("SELECT count(*) FROM revisions")
    [(found, metrics)] = compared
    assert found == revisions
    assert metrics > 1


def test_no_ratio_to_a_figure_of_zero(query: Query) -> None:
    assert query("SELECT ratio FROM revisions WHERE before = 0") == [(None,)]


@every_case(__file__, "split")
def test_conditions_say_how_work_was_split_and_how_much_was_under_way(
    document: str, parallelism: str, concurrency: int | None, query: Query
) -> None:
    found = query(f"""
        SELECT parallelism, concurrency FROM results
        WHERE document_id = 'aws-neuron-{document}' AND row_number = 1
    """)
    assert found == [(parallelism, concurrency)]


def test_row_that_its_page_no_longer_prints_is_not_usable(
    history: duckdb.DuckDBPyConnection,
) -> None:
    wrong = "usable = (printed_until IS NOT NULL)"
    assert history.execute(f"SELECT count(*) FROM results WHERE {wrong}").fetchone() == (0,)
    lengths = history.execute("SELECT DISTINCT sequence_length FROM results ORDER BY 1").fetchall()
    assert lengths == [(128,), (512,)]


KEEP_REFERENCES = {"provenance", "revisions"}


def test_reference_values_of_tests_are_kept_and_nowhere_ranked(query: Query) -> None:
    documents = "SELECT document_id FROM documents WHERE figures_are = 'reference'"
    rows = f"SELECT result_id FROM results WHERE document_id IN ({documents})"
    [(count, usable)] = query(
        f"SELECT count(*), bool_or(usable) FROM results JOIN ({rows}) USING (result_id)"
    )
    assert count > 1000
    assert usable is False
    for view in VIEWS:
        if "result_id" in view.names and view.name not in KEEP_REFERENCES:
            listed = query(f"SELECT count(*) FROM {view.source} WHERE result_id IN ({rows})")
            assert listed == [(0,)], view.name


@every_case(__file__, "revision")
def test_revision_is_that_which_was_read_in_the_repository(
    document: str,
    column: str,
    sdk_before: str,
    sdk: str,
    before: float,
    after: float,
    query: Query,
) -> None:
    found = query(f"""
        SELECT DISTINCT silent FROM revisions
        WHERE document_id = 'aws-neuron-{document}' AND column_name = '{column}'
            AND before_sdk_version = '{sdk_before}' AND sdk_version = '{sdk}'
            AND before = {before} AND after = {after}
    """)
    assert found == [(sdk_before == sdk,)]
