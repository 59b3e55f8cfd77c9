"""Derived columns: values checked by hand against their rows, nulls, and what stops a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from ipu_results.errors import GateError
from ipu_results.kit.files import SCHEMA
from ipu_results.record.derive import collect_inputs
from ipu_results.schema import Table, table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.vocabulary import load_vocabulary

from tests.cases import every_case, read_cases
from tests.conftest import Query, derive_frame
from tests.doors.analyses.analysis_support import make_warehouse
from tests.doors.analyses.test_views import assert_rows

SQL = (SCHEMA / "derived" / "results.sql").read_text(encoding="utf-8")
FACTS = read_cases(__file__)["fact"]
RESULTS = table("results")
ROW = {
    "origin": "published",
    "publisher": "Graphcore",
    "document_id": "page",
    "task": "inference",
    "model_printed": "Net",
    "platform": "Bow-2000",
    "chip": "Bow",
}
BY_USER = {"document_id": ["by-a-user"], "kind": ["submission"], "figures_are": [None]}


def derive(
    *rows: Mapping[str, Any], definition: Table = RESULTS, sql: str | None = None
) -> list[dict[str, Any]]:
    """Derive the columns of rows; what is not stated is that of ROW."""
    numbered = []
    for number, row in enumerate(rows):
        numbered.append({**ROW, "result_id": f"r{number:016x}", **row})
    frames = {}
    for name in collect_inputs(definition):
        frames[name] = build_frame(table(name), [])
    frames["results"] = build_frame(RESULTS.as_filled(), numbered)
    frames["documents"] = pd.DataFrame(BY_USER)
    derived = derive_frame(frames, definition, sql).sort_values("result_id").astype(object)
    values: list[dict[str, Any]] = derived.where(derived.notna(), None).to_dict("records")
    return values


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: " ".join(fact["sql"].split()))
def test_derived_columns_of_committed_rows(fact: dict[str, str], query: Query) -> None:
    assert_rows(query, fact)


def test_official_frameworks_are_canonical(query: Query) -> None:
    """What stays as printed names no framework: MLPerf containers, CUDA and ROCm."""
    sql = "SELECT DISTINCT framework FROM results WHERE origin = 'official'"
    known = set(load_vocabulary().frameworks.values())
    raw = [name for (name,) in query(sql) if name and not set(name.split(", ")) <= known]
    assert sorted({name.split()[0] for name in raw}) == ["CUDA", "NGC", "ROCm"]
    assert all("MLPerf" in name for name in raw if name.startswith("NGC"))


# single rows


VALUES = read_cases(__file__)["value"]


def test_value_of_one_row() -> None:
    derived = derive(*[case["row"] for case in VALUES])
    for case, row in zip(VALUES, derived, strict=True):
        # what a case does not state is null
        assert row[case["column"]] == case.get("is"), case


def test_another_figure_or_sdk_is_another_measurement() -> None:
    new = {**ROW, "document_id": "page-2", "sdk_version": "3.0", "throughput": 5.0}
    new["result_id"] = "1"
    old = {**new, "result_id": "2", "document_id": "page-1"}
    sql = "SELECT result_id, same_as FROM results ORDER BY 1"
    assert make_warehouse([new, old]).query(sql) == [("1", None), ("2", "1")]
    for change in ({"throughput": 6.0}, {"sdk_version": "2.6"}, {"conditions": "compiled by XLA"}):
        assert make_warehouse([new, {**old, **change}]).query(sql) == [("1", None), ("2", None)]


# what stops a build


def test_input_that_does_not_exist() -> None:
    columns = list(table("results").columns)
    place = table("results").names.index("throughput_per_chip")
    columns[place] = replace(columns[place], derived_from=("results.rate",))
    definition = replace(table("results"), columns=tuple(columns))
    message = "results.toml: throughput_per_chip is derived from results.rate, which does not exist"
    with pytest.raises(GateError, match=message):
        derive({"throughput": 1.0}, definition=definition)


@every_case(__file__, "wrong")
def test_statement_that_does_not_fit_the_table(old: str, new: str, message: str) -> None:
    assert old in SQL
    with pytest.raises(GateError, match=rf"results\.sql: .*{message}"):
        derive({"throughput": 2.0, "latency_ms": 1.0, "chip_count": 2}, sql=SQL.replace(old, new))
