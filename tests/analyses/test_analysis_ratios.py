"""Bow over Classic, releases of the SDK, and frameworks: which rows are paired, on the record and
on made-up rows.
"""

from __future__ import annotations

from math import exp, log
from typing import Any

import pytest
from ipu_results.analyses.ratios import FRAMEWORK

from tests.analyses.analysis_support import OTHER_TEST, TRAINED, Database, Row, make_warehouse
from tests.conftest import Query

# Bow and Classic figures as printed on the page of March 2022 and under pod_training: equal in all
# but the machine.
ON_16 = (
    (5179, 3738),  # BERT-Large phase 1, PopART, batch 65,536
    (5125, 3704),  # the same, TensorFlow1, batch 65,600
    (1470, 1063),  # phase 2, PopART, 16,384
    (1420, 1025),  # phase 2, TensorFlow1, 16,400
    (8936, 6379),  # EfficientNet-B4, TensorFlow1, 6,144
    (12221, 9023),  # ResNeXt101, TensorFlow1, 768
    (42029, 30690),  # ResNet-50, TensorFlow1, 1,920
)
ON_256 = ((117641, 87968), (425514, 365040))
MEAN = "SELECT exp(avg(ln(throughput_ratio))), count(*) FROM {} WHERE chip_count = {}"
RESNET_3_0 = "bow_throughput = 44059 AND classic_throughput = 30690"
EFFECT = "FROM detail.framework_effect WHERE"
FACTS = {
    "SELECT DISTINCT clock_ratio FROM generations": [(pytest.approx(1.85 / 1.33),)],
    "SELECT count(*) FROM generations": [(15,)],
    # Another batch: ResNet-50 in TensorFlow1, 44,059 at batch 3,520 with SDK 3.0, does not match
    # 30,690 at 1,920.
    f"SELECT count(*) FROM generations WHERE {RESNET_3_0}": [(0,)],
    "SELECT count(*) FROM generations WHERE item IS NULL OR NOT usable": [(0,)],
    "SELECT throughput_ratio, oldest_sdk_version, sdk_version FROM detail.sdk_effect WHERE model = 'ViT' AND position = 2 ORDER BY throughput_ratio": [
        (pytest.approx(26185 / 27868), "3.0", "3.3"),
        (pytest.approx(7608 / 7615), "3.0", "3.3"),
        (pytest.approx(8148 / 7319), "3.0", "3.3"),
    ],
    # The name `Pre-SDK2.5` sorts last and is the oldest.
    "SELECT sdk_version, throughput_ratio FROM detail.sdk_effect WHERE model = 'Mini DALL-E' ORDER BY position": [
        ("Pre-SDK2.5", 1.0),
        ("3.0", pytest.approx(1916 / 1855)),
        ("3.3", pytest.approx(1843 / 1855)),
    ],
    "SELECT count(*), count(DISTINCT oldest_result_id) FROM detail.sdk_effect": [(49, 24)],
    "SELECT count(*) FROM detail.sdk_effect WHERE position = 1 AND throughput_ratio <> 1": [(0,)],
    # ResNet-50 in TensorFlow1 on Bow Pod16 changed its batch with the release: 42,029 at 1,920,
    # 44,059 at 3,520.
    "SELECT count(*) FROM detail.sdk_effect WHERE NOT usable OR (model = 'ResNet-50 v1.5' AND platform = 'Bow Pod16' AND framework = 'TensorFlow1')": [
        (0,)
    ],
    f"SELECT throughput_ratio, base_framework, batch_size {EFFECT} framework = 'PyTorch' AND platform = 'IPU-POD64' ORDER BY throughput_ratio": [
        (pytest.approx(12251 / 14189), "PopART", 65536),
        (pytest.approx(3611 / 4003), "PopART", 16384),
    ],
    f"SELECT throughput_ratio {EFFECT} model = 'ResNet-50 v1.5' AND batch_size = 256": [
        (pytest.approx(40085 / 49816),)
    ],
    "SELECT framework, base_framework, same_model, count(*) FROM detail.framework_effect GROUP BY ALL ORDER BY ALL": [
        ("PyTorch", "PopART", True, 10),
        ("TensorFlow1", "PyTorch", False, 4),
        ("TensorFlow1", "PyTorch", True, 9),
        ("TensorFlow2", "TensorFlow1", True, 2),
    ],
    # ResNeXt101 on IPU-M2000 is 32x4d in TensorFlow1, and 32x8d with twice the work in PyTorch.
    f"SELECT DISTINCT model_printed, model, base_model {EFFECT} NOT same_model": [
        ("ResNeXt101", "ResNeXt101-32x4d", "ResNeXt101-32x8d")
    ],
    # EfficientNet on IPU-POD16 differs in precision and batch: 16.32 at 1,024 in PyTorch, 16.16 at
    # 6,144.
    f"SELECT count(*) {EFFECT} variant = 'G16-EfficientNet'": [(0,)],
    # ResNet-50 on IPU-M2000: 16,207 images/s at 2.95 ms and 14,321 at 2.69 ms with batch 16.
    f"SELECT batches_in_flight, base_batches_in_flight {EFFECT} model = 'ResNet-50 v1.5' AND batch_size = 16": [
        (pytest.approx(16207 * 2.95 / 16000), pytest.approx(14321 * 2.69 / 16000))
    ],
    f"SELECT base_batches_in_flight < batches_in_flight, count(*), round(geomean(throughput_ratio), 2) {EFFECT} same_model AND task = 'inference' GROUP BY 1 ORDER BY 1": [
        (False, 6, 0.71),
        (True, 3, 1.05),
    ],
}


@pytest.mark.parametrize(("sql", "rows"), FACTS.items())
def test_figures_of_the_record(query: Query, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert query(sql) == rows


@pytest.mark.parametrize(("chips", "pairs", "rounded"), [(16, ON_16, 1.38), (256, ON_256, 1.25)])
def test_mean_of_matched_rows(
    query: Query, chips: int, pairs: tuple[tuple[int, int], ...], rounded: float
) -> None:
    mean = exp(sum(log(bow / classic) for bow, classic in pairs) / len(pairs))
    assert mean == pytest.approx(rounded, abs=0.005)
    assert query(MEAN.format("generations", chips)) == [(pytest.approx(mean), len(pairs))]


@pytest.mark.parametrize(
    ("view", "column"),
    [
        ("generations", "bow_result_id"),
        ("generations", "classic_result_id"),
        ("detail.framework_effect", "result_id"),
        ("detail.framework_effect", "base_result_id"),
        ("detail.sdk_effect", "result_id"),
    ],
)
def test_no_mlperf_and_nothing_emulated(query: Query, view: str, column: str) -> None:
    joined = f"SELECT count(*) FROM {view} v JOIN results r ON r.result_id = v.{column}"
    assert query(f"{joined} WHERE benchmark IS NOT NULL OR origin <> 'published'") == [(0,)]


# made-up rows

BOW = {
    **TRAINED,
    "chip_count": 16,
    "framework": "PyTorch",
    "sdk_version": "2.5.0",
    "throughput": 140.0,
}
CLASSIC = {**BOW, "platform": "IPU-POD16", "sdk_version": "2.4.0", "throughput": 100.0}
OLD = {
    **TRAINED,
    "framework": "PyTorch",
    "sdk_version": "3.9",
    "document_id": "page-1",
    "throughput": 100.0,
}
NEW = {**OLD, "sdk_version": "3.10", "document_id": "page-2", "throughput": 110.0}
POPART = {**TRAINED, "framework": "PopART", "sdk_version": "3.0", "throughput": 100.0}
PYTORCH = {**POPART, "framework": "PyTorch", "throughput": 90.0}
FASTER = [
    POPART,
    PYTORCH,
    {**POPART, "variant": "b"},
    {**PYTORCH, "variant": "b", "throughput": 500.0},
]
GENERATIONS = "SELECT throughput_ratio FROM generations ORDER BY 1"
SDK = "SELECT sdk_version, throughput_ratio FROM detail.sdk_effect ORDER BY position"
PAIRS = (
    "SELECT framework, base_framework, throughput_ratio, same_model, usable FROM detail.framework_effect"
    " ORDER BY ALL"
)
TENSORFLOW2, MLPERF_VENDOR, POD64 = (
    {"framework": "TensorFlow2"},
    {"publisher": "NVIDIA"},
    {"platform": "Bow Pod64"},
)
OTHERS: dict[str, tuple[Row, Row, list[Row]]] = {
    "generations": (
        BOW,
        CLASSIC,
        [
            TENSORFLOW2,
            {"chip_count": 64},
            {"item": None},
            {"sdk_version": "2.3.0"},
            {"sdk_version": "3.4"},
        ],
    ),
    "detail.sdk_effect": (
        OLD,
        NEW,
        [
            TENSORFLOW2,
            MLPERF_VENDOR,
            POD64,
            {"conditions": "compiled by XLA"},
            {"precision_printed": "TF32"},
            {"sdk_version": "3.9"},
        ],
    ),
    "detail.framework_effect": (
        POPART,
        PYTORCH,
        [
            MLPERF_VENDOR,
            POD64,
            {"framework": "PopART"},
            {"precision_printed": None},
            {"sdk_version": "3.1"},
            {"item": "row"},
        ],
    ),
}


@pytest.mark.parametrize("view", OTHERS)
def test_any_other_difference_makes_no_pair(view: str) -> None:
    """Each difference is that of two rows of a model of their own; two rows without one are a
    pair.
    """
    first, second, others = OTHERS[view]
    differences: list[Row] = [{}, *OTHER_TEST, *others]
    rows = [
        {**row, "model_printed": f"Net {at}"}
        for at, other in enumerate(differences)
        for row in (first, {**second, **other})
    ]
    paired = make_warehouse(rows).query(f"SELECT DISTINCT model FROM {view}")
    assert [differences[int(model.removeprefix("Net "))] for (model,) in paired] == [{}]


def test_nearly_the_same_sdk() -> None:
    expected = {
        ("2.5.0", "2.4.0"): True,
        ("Pre-SDK2.5", "2.4.0"): True,
        ("Pre-SDK2.5", "2.3.0"): True,
        ("Pre-SDK2.5", "2.2.0"): False,
        ("3.0", "2.4.0"): False,
        ("2.4.1", "2.4.0"): True,
        ("2.10", "2.9"): True,
        ("2.10", "2.1"): False,
    }
    rows = [
        {**row, "model_printed": f"{bow} and {classic}", "sdk_version": version}
        for bow, classic in expected
        for row, version in ((BOW, bow), (CLASSIC, classic))
    ]
    paired = make_warehouse(rows).query("SELECT model, throughput_ratio FROM generations")
    assert dict(paired) == {
        f"{bow} and {classic}": 1.4 for (bow, classic), near in expected.items() if near
    }
    assert len(paired) == len(dict(paired))


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
        (PAIRS, [PYTORCH, POPART], [], [("PyTorch", "PopART", 0.9, True, True)]),
        (
            PAIRS,
            [{**POPART, "document_id": "page-1"}, PYTORCH, POPART],
            [],
            [("PyTorch", "PopART", 0.9, True, True)],
        ),
    ],
)
def test_pairs_of_made_up_rows(
    sql: str, rows: list[Row], flags: list[Row], expected: list[tuple[Any, ...]]
) -> None:
    assert make_warehouse(rows, flags).query(sql) == expected


def summarise(database: Database) -> str:
    return FRAMEWORK.summarise({"framework_effect": database.frame("detail.framework_effect")})


def test_flagged_row_is_counted_and_not_summarised() -> None:
    database = make_warehouse(FASTER, flag(3))
    assert "Left out as not usable: 1 pair." in summarise(database)
    assert [row[2:] for row in database.query(PAIRS)] == [(0.9, True, True), (5.0, True, False)]
    assert "0.90 (one pair) for PyTorch over PopART in training" in summarise(database)
    assert "5.00" not in summarise(database)


def test_mean_excludes_another_model() -> None:
    summary = summarise(make_warehouse([*FASTER[:3], {**FASTER[3], "model": "Net-32x8d"}]))
    assert "0.90 (one pair) for PyTorch over PopART in training" in summary
    assert "Excluded is Net at 5.00" in summary


def test_summary_compares_batches_in_flight() -> None:
    # three batches in flight
    pytorch = {**POPART, "task": "inference", "framework": "PyTorch", "latency_ms": 1920.0}
    rows = []
    for variant, depth in (("a", 2), ("b", 5), ("c", 5)):
        other = {
            "framework": "TensorFlow1",
            "throughput": 50.0,
            "latency_ms": depth * 64 * 1000 / 50,
        }
        rows += [{**pytorch, "variant": variant}, {**pytorch, **other, "variant": variant}]
    assert (
        "TensorFlow1 over PyTorch is 0.50 (2 pairs, 0.50 to 0.50) where PyTorch keeps fewer batches"
        " in flight (3.0 against 5.0) and 0.50 (one pair) where PyTorch keeps more batches in"
        " flight (3.0 against 2.0)." in summarise(make_warehouse(rows))
    )
