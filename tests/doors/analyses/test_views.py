"""Which rows the views of the analyses compare: on the record, and of made-up rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Query
from tests.doors.analyses.analysis_support import (
    BASES,
    CHANGES,
    OTHER_TEST,
    TRAINED,
    Row,
    changed,
    copy_result,
    make_warehouse,
    read_change,
    read_toml,
)

FACTS = read_toml("facts.toml")["fact"]
CASES = read_toml("cases.toml")["case"]
DOCUMENTS = [{"document_id": name, "kind": "transcription"} for name in ("page", "paper")]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: " ".join(fact["sql"].split()))
def test_figures_of_the_record(query: Query, fact: dict[str, str]) -> None:
    assert_rows(query, fact)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case["sql"].split()))
def test_made_up_rows(case: dict[str, Any]) -> None:
    rows = []
    for row in case["rows"]:
        base = BASES[row.get("like", case["like"])]
        filled = {**base, **row, "like": "null"}
        rows.append({name: value for name, value in filled.items() if value != "null"})
    flags = []
    for result_id in case.get("flagged", ()):
        flags.append({"result_id": result_id, "rule": "R10", "severity": "error"})
    assert_rows(make_warehouse(rows, flags, documents=DOCUMENTS).query, case)


def assert_rows(query: Query, expected: dict[str, Any]) -> None:
    """Check that a statement gives the rows of `is`; a figure may differ in its last digits."""
    rows = [[_to_float(value) for value in row] for row in query(expected["sql"])]
    expected_rows = [[_to_float(value) for value in row] for row in query(expected["is"])]
    assert len(rows) == len(expected_rows)
    for row, expected_row in zip(rows, expected_rows, strict=True):
        for value, expected_value in zip(row, expected_row, strict=True):
            is_figure = isinstance(expected_value, float)
            assert value == (pytest.approx(expected_value) if is_figure else expected_value), row


def _to_float(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def test_remark_holds_for_its_publisher_and_framework_alone() -> None:
    remark = {"publisher": "NVIDIA", "task": "inference", "model": "Net"}
    remark |= {"framework": "TF", "remark": "old"}
    rows = [
        {**BASES["point"], "publisher": "NVIDIA", "framework": "TF"},
        {**BASES["point"], "publisher": "NVIDIA", "framework": "Y"},
        {**BASES["point"], "publisher": "X", "framework": "TF"},
    ]
    database = make_warehouse(rows, comparison_remarks=[remark])
    assert database.query(
        "SELECT publisher, framework, remark FROM detail.latency_points WHERE remark IS NOT NULL"
    ) == [("NVIDIA", "TF", "old")]


# pairs that differ in one thing

BOW = {**BASES["bow"], "sdk_version": "2.5.0", "throughput": 140.0}
CLASSIC = {**BASES["classic"], "sdk_version": "2.4.0"}
OLD = {**TRAINED, "sdk_version": "3.9", "document_id": "page-1"}
NEW = {**OLD, "sdk_version": "3.10", "document_id": "page-2", "throughput": 110.0}
POPART = {**TRAINED, "framework": "PopART", "sdk_version": "3.0"}
PYTORCH = {**POPART, "framework": "PyTorch", "throughput": 90.0}
SHARED = ("publisher", "platform", "precision_printed", "sdk_version")
OTHERS: dict[str, tuple[Row, Row, tuple[str, ...]]] = {
    "generations": (BOW, CLASSIC, ("framework", "chip_count", "item", "sdk_version")),
    "detail.sdk_effect": (OLD, NEW, ("framework", "conditions", *SHARED)),
    "detail.framework_effect": (POPART, PYTORCH, ("framework", "item", *SHARED)),
}
OTHER_VALUES = {
    "framework": "PopART",
    "chip_count": 64,
    "item": "row",
    "sdk_version": "3.9",
    "publisher": "NVIDIA",
    "platform": "Bow Pod64",
    "conditions": "compiled by XLA",
    "precision_printed": "TF32",
}


@pytest.mark.parametrize("view", OTHERS)
def test_any_other_difference_makes_no_pair(view: str) -> None:
    """Each difference is that of two rows of a model of their own; two without one are a pair."""
    first, second, names = OTHERS[view]
    differences: list[Row] = [{}, *OTHER_TEST, *({name: OTHER_VALUES[name]} for name in names)]
    rows = []
    for at, difference in enumerate(differences):
        model = {"model_printed": f"Net {at}"}
        rows += [{**first, **model}, {**second, **difference, **model}]
    paired = make_warehouse(rows).query(f"SELECT DISTINCT model FROM {view}")
    assert [differences[int(model.removeprefix("Net "))] for (model,) in paired] == [{}]


# the built rows with some changed

POD16 = (
    "model = 'ResNet-50 v1.5' AND framework = 'TensorFlow1' AND platform = 'IPU-POD16' AND"
    " throughput = 30690"
)
RESNET = (
    "measure = 'throughput' AND publisher = 'Graphcore' AND model = 'ResNet-50 v1.5' AND framework"
    " = 'TensorFlow1'"
)
GPU_ROW = "platform = '8x A100-80GB (DGX A100)' AND model = 'ResNet-50 v1.5' AND throughput = 16621"
RATE = "FROM per_dollar() WHERE measure = 'training throughput'"


@pytest.mark.parametrize("case", CHANGES["rows"], ids=lambda case: " ".join(case["sql"].split()))
def test_changed_record_changes_the_rows(warehouse: Path, case: dict[str, str]) -> None:
    with changed(warehouse, read_change(case)) as database:
        assert_rows(database.query, case)


def test_row_of_another_test_is_not_the_base(warehouse: Path) -> None:
    """Each would make the ratio ten times larger if it were used as the smallest machine's row."""
    others = [
        {"framework": "'PyTorch'", "variant": "'another'"},
        {"precision_printed": "'32.32'"},
        {"dataset_printed": "'generated'"},
        {"variant": "'half depth'"},
        {"document_id": "'graphcore-performance-2022-h2'"},
        {"origin": "'emulated'"},
        {"chip_count": "4", "platform": "'IPU-M2000'"},
    ]
    copies = [
        copy_result(POD16, result_id=f"'{number}'", throughput="3069.0", **other)
        for number, other in enumerate(others)
    ]
    sql = f"SELECT max(speed_up) FROM scaling WHERE {RESNET} AND platform = 'IPU-POD64'"
    with changed(warehouse, *copies) as database:
        assert database.query(f"{sql} AND variant IS NULL") == [(pytest.approx(108566 / 30690),)]


def test_other_gpu_rows_are_not_paired(warehouse: Path) -> None:
    others = [
        {"precision": "'TF32'", "precision_printed": "'TF32'"},
        {"platform": "'8x A100-40GB (DGX A100)'"},
        {"origin": "'emulated'"},
        {"task": "'inference'"},
        {"variant": "'another'"},
    ]
    copies = [
        copy_result(GPU_ROW, result_id=f"'{number}'", throughput="1.0", **other)
        for number, other in enumerate(others)
    ]
    with changed(warehouse, *copies) as database:
        assert database.query(f"SELECT count(*), max(performance_ratio) {RATE}") == [
            (6, pytest.approx(44059 / 16621))
        ]
