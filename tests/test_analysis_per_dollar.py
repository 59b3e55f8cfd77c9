"""Per dollar: hand arithmetic at list prices, the tie, and what must not be paired."""

from __future__ import annotations

from pathlib import Path

import altair
import pytest
from altered_support import altered, copy_of
from conftest import Ask, run_cli
from ipu_results.analyses import per_dollar, rows
from ipu_results.analyses.analysis import Frames
from ipu_results.store.query import open_warehouse

MLPERF = "measure = 'mlperf time to train'"
RATE = "measure = 'training throughput'"
GPU_ROW = "platform = '8x A100-80GB (DGX A100)' AND model = 'ResNet-50 v1.5' AND throughput = 16621"


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    with open_warehouse(warehouse) as connection:
        return rows(connection, per_dollar.ANALYSIS)


def test_the_vendors_two_comparisons(ask: Ask) -> None:
    """MLPerf v1.0 closed at $149,995 and $300,000: 1.2580 and 1.5504."""
    columns = "network, performance_ratio, per_dollar_ratio, break_even_ipu_price_usd, break_even_gpu_price_usd"
    bert, resnet = ask(f"SELECT {columns} FROM per_dollar() WHERE {MLPERF} AND round = '1.0' ORDER BY network")
    assert bert[:3] == ("BERT", pytest.approx(21.6926 / 34.4888, rel=1e-5), pytest.approx(1.2580, abs=5e-5))
    assert resnet[:3] == ("ResNet-50 v1.5", pytest.approx(28.7709 / 37.1152, rel=1e-5), pytest.approx(1.5504, abs=5e-5))
    assert resnet[2] == pytest.approx((28.7709 * 300000) / (37.1152 * 149995), rel=1e-5)
    assert resnet[3:] == pytest.approx((300000 * 28.7709 / 37.1152, 149995 * 37.1152 / 28.7709), rel=1e-5)


def test_throughput_of_one_framework(ask: Ask) -> None:
    where = f"{RATE} AND network = 'ResNet-50 v1.5' AND ipu_framework = gpu_framework AND ipu_platform = 'IPU-POD16'"
    [row] = ask(
        f"SELECT performance_ratio, per_dollar_ratio, gpu_fastest_figure, differs FROM per_dollar() WHERE {where}"
    )
    assert row[:3] == (pytest.approx(25534 / 16621), pytest.approx(25534 * 300000 / (16621 * 149995)), 17400)
    assert "framework" not in row[3]
    assert "precision 16.16 / mixed" in row[3]


def test_faster_entries_on_the_same_gpus_are_told(ask: Ask) -> None:
    """Official minutes of v2.0 on eight A100-80GB in one node: Inspur's 15.87 and 27.23, NVIDIA's 18.44 and 28.69."""
    columns = "network, round(gpu_figure, 2), round(gpu_fastest_figure, 2), gpu_fastest_entry"
    assert ask(f"SELECT DISTINCT {columns} FROM per_dollar() WHERE {MLPERF} ORDER BY round, network") == [
        ("BERT", 21.69, 21.69, "NVIDIA dgxa100_ngc21.05_pytorch"),
        ("ResNet-50 v1.5", 28.77, 28.77, "NVIDIA dgxa100_ngc21.05_mxnet"),
        ("BERT", 18.44, 15.87, "Inspur NF5688M6"),
        ("ResNet-50 v1.5", 28.69, 27.23, "Inspur NF5688M6"),
    ]
    assert ask(f"SELECT count(*) FROM per_dollar() WHERE (gpu_fastest_entry IS NULL) = ({MLPERF})") == [(0,)]


@pytest.mark.parametrize(
    ("asked", "listed", "said"),
    [
        ("", (True, True), "The list prices of both machines are"),
        ("gpu_price := 200000", (True, False), "The IPU machine's list price is"),
        ("ipu_price := 120000", (False, True), "The GPU machine's list price is"),
        ("ipu_price := 120000, gpu_price := 200000", (False, False), None),
    ],
)
def test_a_price_of_the_reader_is_not_the_vendors(
    warehouse: Path, asked: str, listed: tuple[bool, bool], said: str | None
) -> None:
    with altered(warehouse, "SELECT 1") as found:
        columns = "SELECT DISTINCT ipu_price_listed, gpu_price_listed"
        assert found.rows(f"{columns} FROM per_dollar({asked}) WHERE ipu_platform = 'IPU-POD16'") == [listed]
        told = per_dollar.told({"per_dollar": found.frame(f"per_dollar({asked})")})
    assert (said in told) if said else ("list price" not in told.replace("no known list price", ""))
    assert "(framework, precision, batch, software)" in told


def test_the_rows(ask: Ask) -> None:
    assert ask("SELECT measure, ipu_platform, count(*) FROM per_dollar() GROUP BY ALL ORDER BY ALL") == [
        ("mlperf time to train", "Bow Pod16", 3),
        ("mlperf time to train", "IPU-POD16", 2),
        ("training throughput", "Bow Pod16", 3),
        ("training throughput", "IPU-POD16", 3),
    ]


def test_no_price_is_made_up_for_a_bow_pod(ask: Ask) -> None:
    columns = "ipu_price_usd, per_dollar_ratio, break_even_gpu_price_usd, break_even_ipu_price_usd IS NULL"
    assert ask(f"SELECT DISTINCT {columns} FROM per_dollar() WHERE ipu_platform = 'Bow Pod16'") == [
        (None, None, None, False)
    ]


def test_at_the_price_of_a_tie_both_give_the_same(ask: Ask) -> None:
    tie = ask(f"SELECT break_even_ipu_price_usd FROM per_dollar() WHERE {MLPERF} AND ipu_mlperf_id = '1.0-1026'")[0][0]
    asked = f"per_dollar(ipu_price := {tie!r}) WHERE {MLPERF} AND ipu_mlperf_id = '1.0-1026'"
    assert ask(f"SELECT per_dollar_ratio FROM {asked}") == [(pytest.approx(1),)]
    gpu = ask(f"SELECT break_even_gpu_price_usd FROM per_dollar() WHERE {MLPERF} AND ipu_mlperf_id = '1.0-1026'")[0][0]
    asked = f"per_dollar(gpu_price := {gpu!r}) WHERE {MLPERF} AND ipu_mlperf_id = '1.0-1026'"
    assert ask(f"SELECT per_dollar_ratio FROM {asked}") == [(pytest.approx(1),)]


def test_mlperf_stays_apart_and_is_cited(ask: Ask) -> None:
    assert ask(f"SELECT count(*) FROM per_dollar() WHERE ({MLPERF}) <> (attribution IS NOT NULL)") == [(0,)]
    for division, round_of, attribution in ask(f"SELECT division, round, attribution FROM per_dollar() WHERE {MLPERF}"):
        assert division == "closed"
        assert attribution.count(f"MLPerf Training v{round_of} closed") == 2
        assert attribution.endswith("performance per dollar is no MLPerf metric")


def test_what_is_near_but_not_equal_is_told(ask: Ask) -> None:
    assert ask(
        "SELECT count(*) FROM per_dollar() WHERE (ipu_framework <> gpu_framework) <> (differs LIKE 'framework %')"
    ) == [(0,)]
    assert ask("SELECT count(*) FROM per_dollar() WHERE differs NOT LIKE '%software %'") == [(0,)]


def test_a_modified_network_has_no_counterpart(ask: Ask) -> None:
    """The page's EfficientNet-B4 is one of group dimension 16, NVIDIA's is not."""
    assert ask("SELECT count(*) FROM per_dollar() WHERE network LIKE 'EfficientNet%'") == [(0,)]


def test_a_row_that_ran_32x8d_is_not_paired_with_32x4d(warehouse: Path) -> None:
    flags = "UPDATE flags SET suggested = 'ResNeXt101-32x8d' WHERE rule = 'R20'"
    asked = "SELECT DISTINCT network FROM per_dollar() WHERE measure = 'training throughput'"
    with altered(warehouse, flags) as found:
        assert found.rows(asked) == [("ResNet-50 v1.5",)]


@pytest.mark.parametrize(
    "changed",
    [
        {"compute_precision": "'TF32'"},
        {"platform": "'8x A100-40GB (DGX A100)'"},
        {"origin": "'emulated'"},
        {"task": "'inference'"},
        {"variant": "'another'"},
    ],
)
def test_another_gpu_row_makes_no_pair(warehouse: Path, changed: dict[str, str]) -> None:
    new = copy_of(GPU_ROW, result_id="'0000000000000000'", throughput="1.0", **changed)
    with altered(warehouse, new) as found:
        assert found.rows(f"SELECT count(*), max(performance_ratio) FROM per_dollar() WHERE {RATE}") == [
            (6, pytest.approx(44059 / 16621))
        ]


def test_a_flagged_row_is_told_and_left_out(warehouse: Path, frames: Frames) -> None:
    flag = (
        f"INSERT INTO flags BY NAME SELECT 'R01' AS rule, 'error' AS severity, result_id FROM results WHERE {GPU_ROW}"
    )
    with altered(warehouse, flag) as found:
        assert found.rows(f"SELECT count(*) FROM per_dollar() WHERE {RATE} AND errors = 1") == [(4,)]
        changed = {"per_dollar": found.frame("per_dollar()")}
    assert "on 3 priced pairs" in per_dollar.told(frames)
    assert "on 1 priced pairs" in per_dollar.told(changed)
    assert "ResNet-50 v1.5, Bow" not in str(per_dollar.chart(altair, changed).to_dict()["hconcat"][1])


def test_the_command_takes_a_price(warehouse: Path) -> None:
    done = run_cli("analyse", "per_dollar", "--set", "ipu_price=120000", "--warehouse", warehouse)
    assert done.returncode == 0
    assert "at $120,000 and 8 A100-80GB at $300,000" in " ".join(done.stderr.split())
    assert f"{28.770861111111106 * 300000 / (37.11521111111111 * 120000):.2f} times as much per dollar" in " ".join(
        done.stderr.split()
    )
    assert run_cli("analyse", "per_dollar", "--set", "tpu_price=1", "--warehouse", warehouse).returncode == 2


def test_the_paragraph(frames: Frames) -> None:
    told = per_dollar.told(frames)
    assert "0.78 times as fast and 1.55 times as much per dollar, with a tie at $232,553" in told
    assert "Bow Pod16 has no known list price" in told
    assert "performance per dollar is no MLPerf metric" in told
    assert "(1.0-1025 and 1.0-1026 inferred)" in told


def test_each_tie_lies_on_its_line(frames: Frames) -> None:
    for panel in per_dollar.chart(altair, frames).to_dict()["hconcat"]:
        *_, lines, ties = panel["layer"]
        price = {tie["name"]: tie["price"] for tie in ties["data"]["values"]}
        assert price
        for point in lines["data"]["values"]:
            assert point["ratio"] * point["price"] == pytest.approx(price[point["name"]])
