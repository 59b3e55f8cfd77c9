"""Contradictions reach their rows: by query over the warehouse, and on changed rows."""

from __future__ import annotations

import csv
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from ipu_results.errors import DamagedDocumentError
from ipu_results.record.check.contradicted import find_contradicted
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.record.normalise.passthrough import passthrough_schema

from benchmarks.planted_errors import Tables, open_staged
from tests.conftest import RAW, Query
from tests.record.check.rules_support import load_dataset, run
from tests.record.read.reading_support import make_document

INPUTS = "detail.recomputation_inputs i JOIN results r ON r.result_id = i.key WHERE i.contradiction_id <> ''"


def test_every_result_that_a_contradiction_rests_on_is_listed_with_it(query: Query) -> None:
    listed = "SELECT result_id, contradiction_id FROM detail.contradicted"
    assert query(
        "SELECT count(DISTINCT key) > 100,"
        f" count(*) FILTER ((i.key, i.contradiction_id) NOT IN ({listed})) FROM {INPUTS}"
    ) == [(True, 0)]


def test_every_contradiction_of_figures_is_told_by_a_flag(query: Query) -> None:
    told = "FROM flags WHERE rule IN ('R29', 'R34', 'R35') AND contains(message, contradiction_id)"
    assert query(f"FROM detail.contradicted WHERE NOT EXISTS ({told})") == []
    of_row = f"{told} AND flags.result_id = contradicted.result_id"
    in_doubt = "FROM detail.contradicted WHERE severity <> 'info'"
    assert query(f"SELECT count(*) > 200 {in_doubt}") == [(True,)]
    assert query(f"{in_doubt} AND NOT EXISTS ({of_row})") == []


def test_contradiction_without_a_figure_in_doubt_is_told_once(query: Query) -> None:
    harmless = (
        "SELECT contradiction_id FROM detail.contradicted GROUP BY 1"
        " HAVING bool_and((result_id, column_name) NOT IN (SELECT (result_id, column_name)"
        " FROM detail.contradicted WHERE severity <> 'info'))"
    )
    told = (
        f"SELECT contradiction_id, list(DISTINCT severity) FROM ({harmless})"
        " JOIN flags ON rule = 'R35' AND contains(message, contradiction_id || ': ') GROUP BY 1"
        " HAVING count(*) > 1 OR list(DISTINCT severity) <> ['info']"
    )
    assert query(told) == []


def test_every_contradiction_of_independent_figures_names_figures_or_facts(query: Query) -> None:
    named = "contradiction_id IN (SELECT contradiction_id FROM detail.contradicted)"
    inputs = "SELECT contradiction_id FROM detail.recomputation_inputs WHERE table_name = 'facts'"
    independent = "SELECT contradiction_id FROM contradictions WHERE claim_ids IS NULL"
    assert query(f"{independent} AND NOT ({named} OR contradiction_id IN ({inputs}))") == []


def test_every_condition_finds_rows(query: Query) -> None:
    conditions = (
        "SELECT DISTINCT contradiction_id, rows_of, column_name, severity, condition"
        " FROM detail.contradicted"
    )
    rules = set()
    for file in (RAW / "claims").glob("*contradicted.csv"):
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            rules.add(tuple(row.values()))
    assert {*query(conditions)} == rules


def test_readme_of_bytemlperf_contradicts_the_reports_that_it_links_to(query: Query) -> None:
    """Each row has the figure that its entry names as that of the report. The README's is that of an
    older report in the record, but for one that only rounds.
    """
    entries = query(
        "SELECT DISTINCT contradiction_id, kind,"
        r" regexp_extract(what, 'prints (?:an? [\w ]+ of )?([\d.,]+)', 1),"
        r" regexp_extract(what, 'links to prints ([\d.,]+)', 1), d.column_name, raw_text"
        " FROM contradictions JOIN detail.contradicted d USING (contradiction_id)"
        " JOIN cells c ON c.result_id = d.result_id AND c.column_name = d.column_name"
        " WHERE rows_of = 'bytemlperf-c600' AND starts_with(contradiction_id, 'bytemlperf-readme-')"
    )
    assert len(entries) == 7
    for contradiction_id, kind, in_readme, in_report, column, raw_text in entries:
        readme = float(in_readme.replace(",", ""))
        report = float(in_report.replace(",", ""))
        assert report == float(raw_text) != readme, contradiction_id
        older = query(
            "SELECT count(*) > 0 FROM cells WHERE document_id = 'bytemlperf-c600'"
            f" AND column_name = '{column}' AND value = {readme}"
        )
        assert older == [(kind == "contradiction",)], contradiction_id


def test_figure_in_doubt_has_one_flag_with_its_highest_severity(query: Query) -> None:
    """R29 and R34 tell what R35 would tell again."""
    order = "max(CASE severity WHEN 'error' THEN 3 WHEN 'warn' THEN 2 ELSE 1 END)"
    by_figure = f"SELECT result_id, column_name, {order} FROM {{}} GROUP BY ALL HAVING {order} > 1"
    rules = "flags WHERE rule IN ('R29', 'R34', 'R35')"
    flags = by_figure.format(f"(FROM {rules})")
    figures = by_figure.format("detail.contradicted")
    assert query(f"({flags} EXCEPT {figures}) UNION ALL ({figures} EXCEPT {flags})") == []
    doubts = f"SELECT result_id, column_name FROM {rules} AND severity <> 'info'"
    assert query(f"{doubts} GROUP BY ALL HAVING count(*) > 1") == []
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


@pytest.mark.parametrize(("throughput", "flagged"), [(109.0, ["r1"]), (111.0, []), (200.0, [])])
def test_growth_is_compared_on_twice_the_chips(throughput: float, flagged: list[str]) -> None:
    data = change(throughput=100.0, chip_count=2)
    twice = {"result_id": "r1", "chip_count": 4, "row_number": 9999}
    other = data["results"].assign(throughput=throughput, **twice)
    both = pd.concat([data["results"], other], ignore_index=True)
    assert run(data | {"results": both}, "R37")["result_id"].tolist() == flagged


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
    condition = {"contradiction_id": "c", "rows_of": "independent-caraml-2024"}
    condition |= {"condition": "TRUE", "column_name": "efficiency", "severity": "warn"}
    condition |= changed
    entry = {"contradiction_id": "c", "what": "w"}
    documents = [make_ledger("contradictions", entry), make_ledger("contradicted", condition)]
    with (
        open_staged(load_dataset()) as connection,
        pytest.raises(DamagedDocumentError, match=f"(?s){message}"),
    ):
        find_contradicted(connection, documents)
