"""Contradictions reach their rows: by query over the warehouse, and on changed rows."""

from __future__ import annotations

import csv
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from ipu_results.check.contradicted import find_contradicted
from ipu_results.check.rules import open_tables
from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise import NormalisedDocument
from ipu_results.normalise.rows import passthrough_schema

from benchmarks.planted_errors import Tables
from tests.check.rules_support import load_dataset, run
from tests.conftest import RAW, Query
from tests.read.reading_support import make_document

INPUTS = "detail.recomputation_inputs i JOIN results r ON r.result_id = i.key WHERE i.contradiction_id <> ''"


def test_every_result_that_a_contradiction_rests_on_has_its_flag(query: Query) -> None:
    flag = (
        "FROM flags f"
        " WHERE f.result_id = i.key AND f.rule = 'R35' AND contains(f.message, i.contradiction_id)"
    )
    assert query(
        f"SELECT count(DISTINCT key) > 100, count(*) FILTER (NOT EXISTS ({flag})) FROM {INPUTS}"
    ) == [(True, 0)]


def test_every_contradiction_of_independent_figures_names_figures_or_facts(query: Query) -> None:
    named = "contradiction_id IN (SELECT contradiction_id FROM detail.contradicted)"
    facts = (
        "contradiction_id IN (SELECT contradiction_id FROM detail.recomputation_inputs WHERE table_name ="
        " 'facts')"
    )
    assert (
        query(
            f"SELECT contradiction_id FROM contradictions WHERE claim_ids IS NULL AND NOT ({named}"
            f" OR {facts})"
        )
        == []
    )


def test_every_condition_finds_rows(query: Query) -> None:
    conditions = (
        "SELECT DISTINCT contradiction_id, rows_of, column_name, severity, condition"
        " FROM detail.contradicted"
    )
    texts = [
        file.read_text(encoding="utf-8") for file in (RAW / "claims").glob("*contradicted.csv")
    ]
    rules = {tuple(row.values()) for text in texts for row in csv.DictReader(text.splitlines())}
    assert {*query(conditions)} == rules


def test_severity_of_the_flag_is_the_highest_of_its_contradictions(query: Query) -> None:
    order = "max(CASE severity WHEN 'error' THEN 3 WHEN 'warn' THEN 2 ELSE 1 END)"
    by_figure = f"SELECT result_id, column_name, {order} FROM {{}} GROUP BY ALL"
    flags = by_figure.format("(FROM flags WHERE rule = 'R35')")
    figures = by_figure.format("detail.contradicted")
    assert query(f"({flags} EXCEPT {figures}) UNION ALL ({figures} EXCEPT {flags})") == []
    assert query("SELECT count(DISTINCT severity) FROM detail.contradicted") == [(3,)]


def test_no_first_epoch_is_in_a_view_that_ranks_training(query: Query) -> None:
    first = "regexp_matches(conditions, '(?i)1st epoch|epoch 1 of|step 0')"
    assert query(f"SELECT count(*) FROM training WHERE {first}") == [(0,)]
    flagged = "result_id IN (SELECT result_id FROM flags WHERE rule = 'R36')"
    kept = (
        f"SELECT count(*) > 0, count(*) FILTER (NOT {flagged}) FROM results"
        f" WHERE {first} AND throughput IS NOT NULL"
    )
    assert query(kept) == [(True, 0)]


def change(**values: Any) -> Tables:
    """Return a row that measures one die, with other values."""
    data = load_dataset()
    rows = data["results"].query("document_id == 'independent-caraml-2024' and chip == 'MI250 GCD'")
    rows = rows[rows["efficiency"].notna()].head(1)
    return data | {"results": rows.assign(**values)}


@pytest.mark.parametrize(("efficiency", "flags"), [(1.0, 1), (1e6, 0)])
def test_die_is_compared_with_the_whole_chip(efficiency: float, flags: int) -> None:
    row = change(throughput=1000.0, efficiency=efficiency, power_scope="board")
    assert len(run(row, "R29")) == flags


@pytest.mark.parametrize(
    ("conditions", "flags"),
    [("1st epoch, 2 replicas", 1), ("epoch 1 of 2", 1), ("epoch 11 of 20", 0)],
)
def test_first_epoch_is_flagged_by_its_conditions(conditions: str, flags: int) -> None:
    assert len(run(change(throughput=1.0, conditions=conditions), "R36")) == flags


@pytest.mark.parametrize(("throughput", "flagged"), [(109.0, [True]), (111.0, []), (200.0, [])])
def test_growth_is_compared_on_twice_the_chips(throughput: float, flagged: list[bool]) -> None:
    data = change(throughput=100.0, chip_count=2)
    other_id = "r" + "0" * 16
    other = data["results"].assign(
        result_id=other_id, throughput=throughput, chip_count=4, row_number=9999
    )
    both = pd.concat([data["results"], other], ignore_index=True)
    flags = run(data | {"results": both}, "R37")
    assert [result_id == other_id for result_id in flags["result_id"]] == flagged


def make_ledger(name: str, row: dict[str, str]) -> NormalisedDocument:
    """Return a document with one row that is published as it is."""
    placed = {"document_id": "d", "locator": "line 2", **row}
    rows = pa.Table.from_pylist([placed], passthrough_schema(name))
    return NormalisedDocument(make_document(name), passthrough=rows)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"contradiction_id": "other"}, "unknown contradiction 'other'"),
        ({"condition": "no_such_column = 1"}, "no_such_column"),
    ],
)
def test_condition_that_cannot_hold_names_its_place(changed: dict[str, str], message: str) -> None:
    condition = {
        "contradiction_id": "c",
        "rows_of": "independent-caraml-2024",
        "condition": "TRUE",
        "column_name": "efficiency",
        "severity": "warn",
        **changed,
    }
    entry = {"contradiction_id": "c", "what": "w"}
    documents = [make_ledger("contradictions", entry), make_ledger("contradicted", condition)]
    with (
        open_tables(load_dataset()) as connection,
        pytest.raises(DamagedDocumentError, match=f"(?s){message}"),
    ):
        find_contradicted(connection, documents)
