"""Derived columns: values checked by hand against their rows, nulls, and what stops a build."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from ipu_results.errors import GateError
from ipu_results.kit.files import SCHEMA
from ipu_results.record.derive import collect_inputs
from ipu_results.schema import Table, table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.vocabulary import load_vocabulary

from tests.conftest import Query, derive_frame
from tests.doors.analyses.analysis_support import make_warehouse
from tests.doors.analyses.test_views import assert_rows

SQL = (SCHEMA / "derived" / "results.sql").read_text(encoding="utf-8")
FACTS = tomllib.loads(Path(__file__).with_name("derived.toml").read_text(encoding="utf-8"))["fact"]
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
    *rows: Mapping[str, Any], definition: Table | None = None, sql: str | None = None, **values: Any
) -> list[dict[str, Any]]:
    """Derive the columns of rows, or of the one with these values."""
    numbered = []
    for number, row in enumerate(rows or [values]):
        numbered.append({**ROW, "result_id": f"r{number:016x}", **row})
    frames = {
        name: build_frame(table(name), [])
        for name in collect_inputs(definition or table("results"))
    }
    frames["results"] = build_frame(table("results").as_filled(), numbered)
    frames["documents"] = pd.DataFrame(BY_USER)
    derived = derive_frame(frames, definition, sql).set_index("result_id", drop=False)
    derived = derived.loc[[row["result_id"] for row in numbered]].astype(object)
    rows_of_frame: list[dict[str, Any]] = derived.where(derived.notna(), None).to_dict("records")
    return rows_of_frame


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

BATCH = {"batch_size": 8, "latency_ms": 2.0}
VALUES: tuple[tuple[dict[str, Any], str, object], ...] = (
    (BATCH, "throughput_implied", 4000.0),
    ({**BATCH, "latency_basis": "per-batch"}, "throughput_implied", 4000.0),
    ({**BATCH, "latency_basis": "several-in-flight"}, "throughput_implied", None),
    ({**BATCH, "latency_basis": "per-item"}, "throughput_implied", None),
    ({"throughput": 100.0, "chip_count": 4}, "throughput_per_chip", 25.0),
    ({"precision_printed": "16.16"}, "precision", "FP16"),
    ({"precision_printed": "16.32"}, "precision", "16.32"),
    ({"precision_printed": "half"}, "precision", "FP16"),
    ({"precision_printed": "Mixed-Precision"}, "precision", "mixed"),
    ({"precision_printed": "INT8/BF16"}, "precision", "INT8/BF16"),
    ({"conditions": "model X; sparsity ratio 0.9375"}, "sparsity", 0.9375),
    ({"variant": "SL384"}, "packed", False),
    ({"dataset_printed": "Proprietary"}, "dataset", "Proprietary"),
    ({"throughput": 1.0}, "errors", 0),
    ({"throughput": 1.0}, "usable", True),
    ({"origin": "emulated"}, "usable", False),
    ({"origin": "measured", "document_id": "by-a-user"}, "usable", False),
)


def test_value_of_one_row() -> None:
    derived = derive(*[values for values, _, _ in VALUES])
    for (values, column, expected), row in zip(VALUES, derived, strict=True):
        assert row[column] == expected, (values, column)


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
        derive(definition=definition, throughput=1.0)


def test_input_that_is_not_declared_cannot_be_read() -> None:
    with pytest.raises(GateError, match=r"results\.sql: .*latency_scope"):
        derive(sql=SQL.replace("e.submitter,", "r.latency_scope AS submitter,"), throughput=1.0)


def test_value_without_its_input() -> None:
    wrong = SQL.replace("1000 * r.batch_size / r.latency_ms", "1.0::DOUBLE")
    assert wrong != SQL
    message = (
        "results.sql: r0000000000000000: throughput_implied has a value without its input"
        " batch_size"
    )
    with pytest.raises(GateError, match=message):
        derive(sql=wrong, latency_ms=1.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "coalesce(r.throughput / r.chip_count, r.chip_throughput)",
            "'fast'",
            "no throughput_per_chip of type double",
        ),
        ("e.submitter,", "e.submitter, 1 AS rank,", "returns rank, which is not a derived column"),
        ("FROM results r\nLEFT", "FROM (FROM results LIMIT 0) r\nLEFT", "1 rows are lost"),
        (
            "LEFT JOIN repetitions o",
            "CROSS JOIN range(2) LEFT JOIN repetitions o",
            "has several rows",
        ),
        ("r.throughput / r.chip_count", "-r.throughput", "throughput_per_chip is"),
    ],
    ids=["type", "column", "lost row", "repeated row", "bound"],
)
def test_statement_that_does_not_fit_the_table(old: str, new: str, message: str) -> None:
    assert old in SQL
    with pytest.raises(GateError, match=message):
        derive(sql=SQL.replace(old, new), throughput=2.0, chip_count=2)
