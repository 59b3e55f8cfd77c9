"""Scaling: each row over the smallest machine of its own curve, MLPerf separately."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair
import pytest
from ipu_results.analyses import Frames, scaling

from tests.analyses.analysis_support import changed, copy_result, flag_result, load
from tests.conftest import Query

RESNET = (
    "measure = 'throughput' AND publisher = 'Graphcore' AND model = 'ResNet-50 v1.5' AND framework"
    " = 'TensorFlow1'"
)
MLPERF = "measure = 'mlperf time to train'"
POD16 = (
    "model = 'ResNet-50 v1.5' AND framework = 'TensorFlow1' AND platform = 'IPU-POD16' AND"
    " throughput = 30690"
)


CURVE = f"FROM scaling WHERE {RESNET} AND sdk_version ="
GROWTH = "SELECT DISTINCT batch_growth, batch_ratio FROM scaling WHERE measure = 'throughput' AND"
# ResNet-50 of v2.0 on 16 and 256 IPUs, in minutes
SPEED_UP_2_0 = 19.635155555555556 / 2.672083333333333
FACTS = {
    f"SELECT platform, speed_up, scaling_efficiency {CURVE} '2.4.0' ORDER BY 2": [
        ("IPU-POD16", 1.0, 1.0),
        ("IPU-POD64", pytest.approx(108566 / 30690), pytest.approx(108566 / 30690 * 16 / 64)),
        ("IPU-POD128", pytest.approx(205006 / 30690), pytest.approx(205006 / 30690 * 16 / 128)),
        ("IPU-POD256", pytest.approx(365040 / 30690), pytest.approx(365040 / 30690 * 16 / 256)),
    ],
    # Bow Pod256 is only on the page of 2022, the two smaller ones on both; each has the base of its
    # page.
    f"SELECT platform, scaling_efficiency {CURVE} '3.0' ORDER BY chip_count": [
        ("Bow Pod16", 1.0),
        ("Bow Pod64", pytest.approx(153205 / 44059 / 4)),
        ("Bow Pod256", pytest.approx(456906 / 44059 / 16)),
    ],
    # samples: 38 and 45 epochs of as many images
    f"SELECT speed_up, scaling_efficiency, samples_efficiency, rate_efficiency, base_batch_size, batch_size, mlperf_id FROM scaling WHERE {MLPERF} AND benchmark = 'resnet' AND round = '2.0' AND chip_count = 256": [
        (
            *map(
                pytest.approx,
                (SPEED_UP_2_0, SPEED_UP_2_0 / 16, 38 / 45, SPEED_UP_2_0 / 16 * 45 / 38),
            ),
            3520,
            10240,
            "2.0-2054",
        )
    ],
    # 41 curves over the versions of the page, four of them start with rows that two print; two of
    # others
    "SELECT measure, count(*), count(*) FILTER (chip_count = base_chip_count) FROM scaling GROUP BY 1 ORDER BY 1": [
        ("mlperf time to train", 21, 7),
        ("throughput", 92 + 2 + 3, 37 + 1 + 1),
    ],
    "SELECT result_id, base_result_id FROM scaling GROUP BY ALL HAVING count(*) > 1": [],
    "SELECT result_id FROM scaling WHERE (throughput IS NOT NULL) = (minutes IS NOT NULL) OR (minutes IS NULL) <> (attribution IS NULL)": [],
    "SELECT a.measure FROM scaling a JOIN scaling b ON a.base_result_id = b.result_id WHERE a.measure <> b.measure": [],
    "SELECT DISTINCT origin, submitter, division FROM scaling ORDER BY 1": [
        ("official", "Graphcore", "closed"),
        ("published", None, None),
    ],
    f"SELECT round, benchmark, framework FROM scaling WHERE {MLPERF} AND chip_count = base_chip_count ORDER BY ALL": [
        ("1.0", "bert", "PopART"),
        ("1.0", "resnet", "TensorFlow"),
        ("1.1", "bert", "PopART"),
        ("1.1", "resnet", "TensorFlow"),
        ("2.0", "bert", "PaddlePaddle"),
        ("2.0", "bert", "PopART"),
        ("2.0", "resnet", "TensorFlow"),
    ],
    # Printed batches: ResNet-50 1920 to 10240, BERT-Large 65536 on all sizes, Mini DALL-E 6144 to
    # 24576.
    f"{GROWTH} {RESNET} AND sdk_version = '2.4.0' ORDER BY 2 NULLS FIRST": [
        ("smallest", 1.0),
        ("grown", pytest.approx(2560 / 1920)),
        ("grown", pytest.approx(5120 / 1920)),
        ("grown", pytest.approx(10240 / 1920)),
    ],
    f"{GROWTH} batch_size = 65536 AND chip_count > base_chip_count": [("fixed", 1.0)],
    f"{GROWTH} model = 'Mini DALL-E' AND chip_count = 64": [("grown-with-chips", 4.0)],
    f"SELECT count(*) FROM scaling WHERE {MLPERF} AND batch_growth = 'fixed'": [(2,)],
    "SELECT count(*) FROM scaling WHERE batch_size IS NOT NULL AND base_batch_size IS NOT NULL AND batch_growth IS NULL": [
        (0,)
    ],
}


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    return load(warehouse, scaling.ANALYSIS)


@pytest.mark.parametrize(("sql", "rows"), FACTS.items())
def test_figures_of_the_record(query: Query, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert query(sql) == rows


def test_mlperf_rows_cite_both_entries(query: Query) -> None:
    where = f"{MLPERF} AND chip_count > base_chip_count AND round = '2.0'"
    for mlperf_id, attribution in query(
        f"SELECT mlperf_id, attribution FROM scaling WHERE {where}"
    ):
        assert f"MLPerf ID {mlperf_id}" in str(attribution)
        assert str(attribution).count("MLPerf ID 2.0-") == 2
        assert "not MLPerf metrics" in str(attribution)


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
    sql = (
        "SELECT max(speed_up) FROM scaling"
        f" WHERE {RESNET} AND platform = 'IPU-POD64' AND variant IS NULL"
    )
    with changed(warehouse, *copies) as database:
        assert database.query(sql) == [(pytest.approx(108566 / 30690),)]


def test_flagged_base_is_excluded(warehouse: Path, frames: Frames) -> None:
    where = f"result_id = (SELECT result_id FROM results WHERE {POD16})"
    sql = f"SELECT DISTINCT usable FROM scaling WHERE {RESNET} AND family = 'Classic'"
    with changed(warehouse, flag_result(where)) as database:
        assert database.query(sql) == [(False,)]
        flagged = {"scaling": database.frame("scaling")}
    assert "65 % on 256 (from 63 % to 74 %, 3 rows)" in scaling.summarise(frames)
    assert "on 256 (from 63 % to 65 %, 2 rows)" in scaling.summarise(flagged)


def test_growth_of_an_unknown_batch_is_unknown(warehouse: Path) -> None:
    where = "model = 'ResNet-50 v1.5' AND platform = 'IPU-POD256' AND framework = 'TensorFlow1'"
    with changed(warehouse, f"UPDATE results SET batch_size = NULL WHERE {where}") as database:
        growth = database.query(
            f"SELECT DISTINCT batch_growth FROM scaling WHERE {where} AND measure = 'throughput'"
        )
        assert growth == [(None,)]
        assert "(2 rows, all ResNet-50 v1.5)" in scaling.summarise(
            {"scaling": database.frame("scaling")}
        )


def test_each_measure_and_kind_of_batch_has_its_own_panel(frames: Frames) -> None:
    fixed, grown, minutes = scaling.build_chart(altair, frames).to_dict()["hconcat"]
    assert "MLPerf" not in f"{fixed}{grown}"
    assert "MLPerf" in minutes["title"]
    shown = {name for name, _ in _list_points(minutes)}
    assert {name.split(", ")[2] for name in shown} == {"v1.0", "v1.1", "v2.0"}
    assert "BERT-Large, PopART, v1.1, ×1 ×2" in shown
    assert all(abs(ratio - 1) <= 0.02 for _, ratio in _list_points(fixed))
    assert {name for name, ratio in _list_points(grown) if ratio > 1} == {
        "ResNet-50 v1.5",
        "Mini DALL-E",
    }


def _list_points(panel: dict[str, Any]) -> set[tuple[str, float]]:
    values = [
        point for layer in panel["layer"] for point in layer["data"]["values"] if "name" in point
    ]
    return {(point["name"], point["batch"]) for point in values}
