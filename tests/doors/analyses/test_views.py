"""Which rows the views of the analyses compare: on the record, and of made-up rows."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Query
from tests.doors.analyses.analysis_support import (
    OTHER_TEST,
    PUBLISHED,
    TRAINED,
    Row,
    changed,
    copy_result,
    flag_result,
    make_warehouse,
)

FACTS, MADE_UP = (
    tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    for name in ("facts.toml", "cases.toml")
)
DOCUMENTS = [{"document_id": name, "kind": "transcription"} for name in ("page", "paper")]


@pytest.mark.parametrize("fact", FACTS["fact"], ids=lambda fact: " ".join(fact["sql"].split()))
def test_figures_of_the_record(query: Query, fact: dict[str, str]) -> None:
    assert_rows(query, fact)


@pytest.mark.parametrize("case", MADE_UP["case"], ids=lambda case: " ".join(case["sql"].split()))
def test_made_up_rows(case: dict[str, Any]) -> None:
    rows = []
    for row in case["rows"]:
        base = MADE_UP["bases"][row.get("like", case["like"])]
        filled = {**base, **row, "like": "null"}
        rows.append({name: value for name, value in filled.items() if value != "null"})
    flags = [
        {"result_id": key, "rule": "R10", "severity": "error"} for key in case.get("flagged", ())
    ]
    assert_rows(make_warehouse(rows, flags, documents=DOCUMENTS).query, case)


def assert_rows(query: Query, expected: dict[str, Any]) -> None:
    rows = [
        tuple(float(value) if isinstance(value, Decimal) else value for value in row)
        for row in query(expected["sql"])
    ]
    assert rows == [tuple(map(_approximate, row)) for row in query(expected["is"])]


def _approximate(value: Any) -> Any:
    return pytest.approx(float(value)) if isinstance(value, float | Decimal) else value


POINT = {**PUBLISHED, "task": "inference", "platform": "IPU-M2000", "batch_size": 8}
POINT |= {"throughput": 1.0, "latency_ms": 1.0}


def test_remark_holds_for_its_publisher_and_framework_alone() -> None:
    remark = {"publisher": "NVIDIA", "task": "inference", "model": "Net"}
    remark |= {"framework": "TF", "remark": "old"}
    rows = [
        {**POINT, "publisher": publisher, "framework": framework}
        for publisher in ("NVIDIA", "X")
        for framework in ("TF", "Y")
    ]
    database = make_warehouse(rows, comparison_remarks=[remark])
    assert database.query(
        "SELECT publisher, framework, remark FROM detail.latency_points WHERE remark IS NOT NULL"
    ) == [("NVIDIA", "TF", "old")]


# pairs that differ in one thing

BOW = {**TRAINED, "chip_count": 16, "framework": "PyTorch", "sdk_version": "2.5.0"}
BOW |= {"throughput": 140.0}
CLASSIC = {**BOW, "platform": "IPU-POD16", "sdk_version": "2.4.0", "throughput": 100.0}
OLD = {**TRAINED, "framework": "PyTorch", "sdk_version": "3.9", "document_id": "page-1"}
OLD |= {"throughput": 100.0}
NEW = {**OLD, "sdk_version": "3.10", "document_id": "page-2", "throughput": 110.0}
POPART = {**TRAINED, "framework": "PopART", "sdk_version": "3.0", "throughput": 100.0}
PYTORCH = {**POPART, "framework": "PyTorch", "throughput": 90.0}
OTHERS: dict[str, tuple[Row, Row, str]] = {
    "generations": (BOW, CLASSIC, "framework chip_count item sdk_version"),
    "detail.sdk_effect": (
        OLD,
        NEW,
        "framework publisher platform conditions precision_printed sdk_version",
    ),
    "detail.framework_effect": (
        POPART,
        PYTORCH,
        "publisher platform framework precision_printed sdk_version item",
    ),
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
    first, second, others = OTHERS[view]
    different = [{name: OTHER_VALUES[name]} for name in others.split()]
    differences: list[Row] = [{}, *OTHER_TEST, *different]
    rows = [
        {**row, "model_printed": f"Net {at}"}
        for at, other in enumerate(differences)
        for row in (first, {**second, **other})
    ]
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
UNNAMED = "UPDATE results SET model = model_printed"
SWAPPED = (
    "UPDATE results SET model = CASE model WHEN 'ResNeXt101-32x4d' THEN 'ResNeXt101-32x8d' "
    "ELSE 'ResNeXt101-32x4d' END WHERE model_printed = 'ResNeXt101' AND platform = 'IPU-M2000'"
)


@pytest.mark.parametrize(
    ("statement", "sql", "expected"),
    [
        (
            flag_result(f"result_id = (SELECT result_id FROM results WHERE {POD16})"),
            f"SELECT DISTINCT usable FROM scaling WHERE {RESNET} AND family = 'Classic'",
            [(False,)],
        ),
        (flag_result(GPU_ROW), f"SELECT count(*) {RATE} AND NOT usable", [(4,)]),
        (
            "UPDATE results SET model = 'ResNeXt101-32x8d' WHERE model_printed = 'ResNeXt101'",
            f"SELECT DISTINCT model {RATE}",
            [("ResNet-50 v1.5",)],
        ),
        (UNNAMED, "SELECT count(*) FROM detail.c2_to_m2000", [(0,)]),
        (
            UNNAMED,
            "SELECT DISTINCT model FROM detail.resnext101 WHERE publisher = 'Graphcore'",
            [(None,)],
        ),
        (
            SWAPPED,
            "SELECT DISTINCT m2000_framework FROM detail.c2_to_m2000 WHERE ratio IS NOT NULL",
            [("PyTorch",)],
        ),
        (
            flag_result("throughput = 17176"),
            "SELECT m2000_throughput_per_chip, (SELECT count(*) FROM detail.c2_to_m2000"
            " WHERE NOT usable) FROM detail.c2_to_m2000 WHERE pairing = 'best of each'",
            [(13693 / 4, 1)],
        ),
    ],
)
def test_changed_record_changes_the_rows(
    warehouse: Path, statement: str, sql: str, expected: list[tuple[Any, ...]]
) -> None:
    with changed(warehouse, statement) as database:
        assert database.query(sql) == expected


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
