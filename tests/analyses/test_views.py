"""Which rows the views of the analyses compare: on the record, and of made-up rows."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.analyses.analysis_support import (
    OTHER_TEST,
    PUBLISHED,
    TRAINED,
    Row,
    changed,
    copy_result,
    flag_result,
    make_warehouse,
)
from tests.conftest import Query

FACTS = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))["fact"]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: " ".join(fact["sql"].split()))
def test_figures_of_the_record(query: Query, fact: dict[str, str]) -> None:
    rows = [
        tuple(float(value) if isinstance(value, Decimal) else value for value in row)
        for row in query(fact["sql"])
    ]
    assert rows == [tuple(map(_approximate, row)) for row in query(fact["is"])]


def _approximate(value: Any) -> Any:
    return pytest.approx(float(value)) if isinstance(value, float | Decimal) else value


# latency

POINT = {
    **PUBLISHED,
    "task": "inference",
    "platform": "IPU-M2000",
    "chip_count": 4,
    "batch_size": 8,
}
BEST = "SELECT bound_ms, throughput FROM detail.latency_bounded ORDER BY ALL"
FRONT = "SELECT throughput FROM detail.latency_front WHERE on_front ORDER BY 1"


def point(throughput: float | None, latency: float, **other: Any) -> dict[str, Any]:
    return {**POINT, "throughput": throughput, "latency_ms": latency, **other}


def test_best_row_within_a_bound() -> None:
    database = make_warehouse([point(100, 0.5), point(300, 4), point(200, 5), point(900, 21)])
    assert database.query(BEST) == [(1.0, 100.0), (5.0, 300.0), (10.0, 300.0), (20.0, 300.0)]
    assert database.query(FRONT) == [(100.0,), (300.0,), (900.0,)]


@pytest.mark.parametrize(
    ("severity", "best", "excluded"), [("warn", 900.0, None), ("error", 100.0, "error")]
)
def test_error_flag_excludes_a_row_and_a_warning_does_not(
    severity: str, best: float, excluded: str | None
) -> None:
    flag = {"result_id": "1", "rule": "R01", "severity": severity}
    database = make_warehouse([point(100, 0.5), point(900, 0.9)], [flag])
    assert database.query(BEST)[0] == (1.0, best)
    assert database.query(
        "SELECT throughput, left_out, on_front FROM detail.latency_front ORDER BY 1"
    ) == [(100.0, None, True), (900.0, excluded, excluded is None)]


@pytest.mark.parametrize(
    "doubt", [{"latency_basis": "per-item"}, {"suspect": "drift"}, {"sparsity": 0.9375}]
)
def test_doubtful_row_is_never_the_best(doubt: dict[str, Any]) -> None:
    rows = [point(100, 0.5), point(900, 0.9, **doubt)]
    assert make_warehouse(rows).query(BEST)[0] == (1.0, 100.0)


@pytest.mark.parametrize(
    ("other", "front"),
    [
        ({"origin": "measured"}, [(100.0,), (900.0,)]),
        ({"platform": "C2"}, [(100.0,), (900.0,)]),
        ({"variant": "SL128"}, [(100.0,), (900.0,)]),
        ({"item": "row"}, [(100.0,), (900.0,)]),
        ({"model_printed": "Nett"}, [(100.0,), (900.0,)]),
        ({"variant": "lowest latency config"}, [(900.0,)]),
        ({"framework": "PyTorch"}, [(900.0,)]),
        ({"batch_size": 16}, [(900.0,)]),
    ],
)
def test_groups_of_rows(other: dict[str, Any], front: list[tuple[float]]) -> None:
    rows = [point(100, 0.9), point(900, 0.5, **other)]
    assert make_warehouse(rows).query(FRONT) == front


def test_lowest_latency_of_a_machine_and_precision() -> None:
    rows = [
        point(100, 0.9),
        point(None, 0.5),
        point(1, 0.7, precision_printed="16.16"),
        point(1, 0.1, suspect="drift"),
    ]
    columns = "SELECT latency_ms, rows, rows_without_throughput FROM detail.latency_lowest"
    assert make_warehouse(rows).query(f"{columns} ORDER BY 1") == [(0.5, 2, 1), (0.7, 1, 0)]


def test_remark_holds_for_its_publisher_and_framework_alone() -> None:
    remark = {"publisher": "NVIDIA", "task": "inference", "model": "Net"}
    remark |= {"framework": "TF", "remark": "old"}
    rows = [
        point(1, 1, publisher=publisher, framework=framework)
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
GENERATIONS = "SELECT throughput_ratio FROM generations"
SDK = "SELECT sdk_version, throughput_ratio FROM detail.sdk_effect ORDER BY position"
PAIRS = "SELECT framework, base_framework, throughput_ratio, usable FROM detail.framework_effect"
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


def test_nearly_the_same_sdk() -> None:
    near = [("2.5.0", "2.4.0"), ("Pre-SDK2.5", "2.4.0"), ("Pre-SDK2.5", "2.3.0")]
    near += [("2.4.1", "2.4.0"), ("2.10", "2.9")]
    far = [("Pre-SDK2.5", "2.2.0"), ("3.0", "2.4.0"), ("2.10", "2.1")]
    rows = [
        {**row, "model_printed": f"{bow} and {classic}", "sdk_version": version}
        for bow, classic in near + far
        for row, version in ((BOW, bow), (CLASSIC, classic))
    ]
    paired = make_warehouse(rows).query("SELECT model, throughput_ratio FROM generations")
    assert sorted(paired) == sorted((f"{bow} and {classic}", 1.4) for bow, classic in near)


def flag(result_id: int) -> list[Row]:
    return [{"result_id": str(result_id), "rule": "R10", "severity": "error"}]


@pytest.mark.parametrize(
    ("sql", "rows", "flags", "expected"),
    [
        (GENERATIONS, [BOW, CLASSIC], flag(1), []),
        (GENERATIONS, [BOW, {**CLASSIC, "model": "Net-32x8d"}], [], []),
        # releases sort as numbers
        (SDK, [NEW, OLD], [], [("3.9", 1.0), ("3.10", 1.1)]),
        (SDK, [OLD, NEW], flag(1), []),
        # a figure repeated by a newer page counts once, in the newest
        (
            "SELECT oldest_throughput, document_id FROM detail.sdk_effect ORDER BY position",
            [OLD, {**OLD, "document_id": "page-2", "throughput": 90.0}, NEW],
            [],
            [(90.0, "page-2"), (90.0, "page-2")],
        ),
        (PAIRS, [PYTORCH, POPART], [], [("PyTorch", "PopART", 0.9, True)]),
        (PAIRS, [PYTORCH, POPART], flag(1), [("PyTorch", "PopART", 0.9, False)]),
        (
            PAIRS,
            [{**POPART, "document_id": "page-1"}, PYTORCH, POPART],
            [],
            [("PyTorch", "PopART", 0.9, True)],
        ),
    ],
)
def test_pairs_of_made_up_rows(
    sql: str, rows: list[Row], flags: list[Row], expected: list[tuple[Any, ...]]
) -> None:
    assert make_warehouse(rows, flags).query(sql) == expected


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
