"""Scaling: each row against the smallest machine of its own curve, MLPerf apart."""

from __future__ import annotations

from pathlib import Path

import altair
import pytest
from altered_support import altered, copy_of
from conftest import Ask
from ipu_results.analyses import rows, scaling
from ipu_results.analyses.analysis import Frames
from ipu_results.store.query import open_warehouse

RESNET = "measure = 'throughput' AND model = 'ResNet-50 v1.5' AND framework = 'TensorFlow1'"
MLPERF = "measure = 'mlperf time to train'"
POD16 = "model = 'ResNet-50 v1.5' AND framework = 'TensorFlow1' AND platform = 'IPU-POD16' AND throughput = 30690"


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    with open_warehouse(warehouse) as connection:
        return rows(connection, scaling.ANALYSIS)


def test_throughput_on_the_pages_rows(ask: Ask) -> None:
    found = ask(
        f"SELECT platform, speed_up, efficiency FROM scaling WHERE {RESNET} AND sdk_version = '2.4.0' ORDER BY 2"
    )
    assert found == [
        ("IPU-POD16", 1.0, 1.0),
        ("IPU-POD64", pytest.approx(108566 / 30690), pytest.approx(108566 / 30690 * 16 / 64)),
        ("IPU-POD128", pytest.approx(205006 / 30690), pytest.approx(205006 / 30690 * 16 / 128)),
        ("IPU-POD256", pytest.approx(365040 / 30690), pytest.approx(365040 / 30690 * 16 / 256)),
    ]


def test_a_row_that_a_later_page_lost_keeps_its_own_pages_base(ask: Ask) -> None:
    """Bow Pod256 stands in the page of 2022 alone, the two smaller ones in both; each stands once."""
    found = ask(f"SELECT platform, efficiency FROM scaling WHERE {RESNET} AND sdk_version = '3.0' ORDER BY chip_count")
    assert found == [
        ("Bow Pod16", 1.0),
        ("Bow Pod64", pytest.approx(153205 / 44059 / 4)),
        ("Bow Pod256", pytest.approx(456906 / 44059 / 16)),
    ]


def test_mlperf_time_to_train(ask: Ask) -> None:
    """ResNet-50 of v2.0: minutes 19.6352 and 2.6721, samples 38 and 45 epochs of as many images."""
    columns = "speed_up, efficiency, samples_efficiency, rate_efficiency, base_batch_size, batch_size, mlperf_id"
    where = f"{MLPERF} AND benchmark = 'resnet' AND round = '2.0' AND chip_count = 256"
    [row] = ask(f"SELECT {columns} FROM scaling WHERE {where}")
    speed_up = 19.635155555555556 / 2.672083333333333
    assert row[:3] == pytest.approx((speed_up, speed_up / 16, 38 / 45))
    assert row[3] == pytest.approx(speed_up / 16 * 45 / 38)
    assert row[4:] == (3520, 10240, "2.0-2054")


def test_the_rows(ask: Ask) -> None:
    """41 curves of throughput over the versions of the page, four of them begun by rows that two versions print."""
    counted = (
        "SELECT measure, count(*), count(*) FILTER (chip_count = base_chip_count) FROM scaling GROUP BY 1 ORDER BY 1"
    )
    assert ask(counted) == [("mlperf time to train", 14, 5), ("throughput", 92, 37)]
    assert ask("SELECT result_id, base_result_id FROM scaling GROUP BY ALL HAVING count(*) > 1") == []


def test_the_two_measures_stay_apart(ask: Ask) -> None:
    mixed = "(throughput IS NOT NULL) = (minutes IS NOT NULL) OR (minutes IS NULL) <> (attribution IS NULL)"
    assert ask(f"SELECT result_id FROM scaling WHERE {mixed}") == []
    joined = "scaling a JOIN scaling b ON a.base_result_id = b.result_id"
    assert ask(f"SELECT count(*) FROM {joined} WHERE a.measure <> b.measure") == [(0,)]
    assert ask("SELECT DISTINCT origin, submitter, division FROM scaling ORDER BY 1") == [
        ("official", "Graphcore", "closed"),
        ("published", None, None),
    ]


def test_mlperf_rounds_and_frameworks_are_curves_of_their_own(ask: Ask) -> None:
    where = f"{MLPERF} AND chip_count = base_chip_count"
    assert ask(f"SELECT round, benchmark, framework FROM scaling WHERE {where} ORDER BY ALL") == [
        ("1.0", "bert", "PopART"),
        ("1.0", "resnet", "TensorFlow"),
        ("2.0", "bert", "PaddlePaddle"),
        ("2.0", "bert", "PopART"),
        ("2.0", "resnet", "TensorFlow"),
    ]


def test_an_mlperf_row_names_both_entries(ask: Ask) -> None:
    where = f"{MLPERF} AND chip_count > base_chip_count AND round = '2.0'"
    for mlperf_id, attribution in ask(f"SELECT mlperf_id, attribution FROM scaling WHERE {where}"):
        assert f"MLPerf ID {mlperf_id}" in attribution
        assert attribution.count("MLPerf ID 2.0-") == 2
        assert "no MLPerf metrics" in attribution


@pytest.mark.parametrize(
    "changed",
    [
        {"framework": "'PyTorch'", "variant": "'another'"},
        {"precision": "'32.32'"},
        {"dataset": "'generated'"},
        {"variant": "'half depth'"},
        {"document_id": "'graphcore-performance-2022-h2'"},
        {"origin": "'emulated'"},
        {"chip_count": "4", "platform": "'IPU-M2000'"},
    ],
)
def test_another_test_is_no_base(warehouse: Path, changed: dict[str, str]) -> None:
    """Each would make the ratio ten times larger if it were taken for the smallest machine's row."""
    new = copy_of(POD16, result_id="'0000000000000000'", throughput="3069.0", **changed)
    asked = f"SELECT max(speed_up) FROM scaling WHERE {RESNET} AND platform = 'IPU-POD64' AND variant IS NULL"
    with altered(warehouse, new) as found:
        assert found.rows(asked) == [(pytest.approx(108566 / 30690),)]


def test_a_flagged_base_is_told_and_left_out(warehouse: Path, frames: Frames) -> None:
    where = f"result_id = (SELECT result_id FROM results WHERE {POD16})"
    flag = f"INSERT INTO flags BY NAME SELECT 'R01' AS rule, 'error' AS severity, result_id FROM results WHERE {where}"
    with altered(warehouse, flag) as found:
        assert found.rows(f"SELECT DISTINCT base_errors FROM scaling WHERE {RESNET} AND family = 'Classic'") == [(1,)]
        changed = {"scaling": found.frame("scaling")}
    assert "75 % on 256 (from 63 % to 86 %, 8 rows)" in scaling.told(frames)
    assert ", 7 rows)" in scaling.told(changed)


def test_the_paragraph(frames: Frames) -> None:
    told = scaling.told(frames)
    assert "ResNet-50 v1.5 from 19.64 to 2.67 minutes, 7.3 times faster (46 % of linear)" in told
    assert "DINO (2 rows), above linear" in told
    assert "not verified by MLCommons Association" in told
    assert "ids 1.0-1025, 1.0-1026, 1.0-1027, 1.0-1028, inferred" in told


def test_the_chart_draws_each_measure_in_a_panel_of_its_own(frames: Frames) -> None:
    left, right = scaling.chart(altair, frames).to_dict()["hconcat"]
    assert "MLPerf" not in str(left)
    assert "MLPerf" in right["title"]
    shown = {point["name"] for layer in right["layer"] for point in layer["data"]["values"] if "name" in point}
    assert {name.rpartition(" ")[2] for name in shown} == {"v1.0", "v2.0"}
