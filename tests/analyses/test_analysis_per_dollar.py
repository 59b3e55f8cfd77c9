"""Per dollar: hand arithmetic at list prices, the price of a tie, and which rows are not paired."""

from __future__ import annotations

from pathlib import Path

import altair
import pytest
from ipu_results.analyses import Frames, per_dollar

from tests.analyses.analysis_support import changed, copy_result, flag_result, load
from tests.conftest import Query

MLPERF = "measure = 'mlperf time to train'"
RATE = "measure = 'training throughput'"
GPU_ROW = "platform = '8x A100-80GB (DGX A100)' AND model = 'ResNet-50 v1.5' AND throughput = 16621"


TF = (
    f"{RATE} AND model = 'ResNet-50 v1.5' AND ipu_framework = gpu_framework AND ipu_platform ="
    " 'IPU-POD16'"
)
NETWORKS = ("BERT-Large", 21.6926, 34.4888, 1.2580), ("ResNet-50 v1.5", 28.7709, 37.1152, 1.5504)
FACTS = {
    # MLPerf v1.0 closed at $149,995 and $300,000
    f"SELECT model, performance_ratio, per_dollar_ratio, break_even_ipu_price_usd, break_even_gpu_price_usd FROM per_dollar() WHERE {MLPERF} AND round = '1.0' ORDER BY model": [
        (
            name,
            pytest.approx(gpu / ipu, rel=1e-5),
            pytest.approx(per_dollar, abs=5e-5),
            pytest.approx(300000 * gpu / ipu, rel=1e-5),
            pytest.approx(149995 * ipu / gpu, rel=1e-5),
        )
        for name, gpu, ipu, per_dollar in NETWORKS
    ],
    f"SELECT performance_ratio, per_dollar_ratio, gpu_fastest_figure FROM per_dollar() WHERE {TF}": [
        (pytest.approx(25534 / 16621), pytest.approx(25534 * 300000 / (16621 * 149995)), 17400)
    ],
    f"SELECT differs LIKE '%framework%', differs LIKE '%precision 16.16 / mixed%' FROM per_dollar() WHERE {TF}": [
        (False, True)
    ],
    # Official minutes on eight A100-80GB in one node: Inspur's, some at 500 W, next to NVIDIA's.
    f"SELECT DISTINCT model, round(gpu_figure, 2), round(gpu_fastest_figure, 2), gpu_fastest_entry FROM per_dollar() WHERE {MLPERF} ORDER BY round, model": [
        ("BERT-Large", 21.69, 21.15, "Inspur NF5488A5"),
        ("ResNet-50 v1.5", 28.77, 27.38, "Inspur NF5688M6"),
        ("BERT-Large", 20.0, 19.39, "Inspur NF5688M6"),
        ("ResNet-50 v1.5", 29.15, 27.57, "Inspur NF5488A5"),
        ("BERT-Large", 18.44, 15.87, "Inspur NF5688M6"),
        ("ResNet-50 v1.5", 28.69, 27.23, "Inspur NF5688M6"),
    ],
    f"SELECT count(*) FROM per_dollar() WHERE (gpu_fastest_entry IS NULL) = ({MLPERF})": [(0,)],
    "SELECT measure, ipu_platform, count(*) FROM per_dollar() GROUP BY ALL ORDER BY ALL": [
        ("mlperf time to train", "Bow Pod16", 3),
        ("mlperf time to train", "IPU-POD16", 4),
        ("training throughput", "Bow Pod16", 3),
        ("training throughput", "IPU-POD16", 3),
    ],
    "SELECT DISTINCT ipu_price_usd, per_dollar_ratio, break_even_gpu_price_usd, break_even_ipu_price_usd IS NULL FROM per_dollar() WHERE ipu_platform = 'Bow Pod16'": [
        (None, None, None, False)
    ],
    f"SELECT count(*) FROM per_dollar() WHERE ({MLPERF}) <> (attribution IS NOT NULL)": [(0,)],
    "SELECT count(*) FROM per_dollar() WHERE (ipu_framework <> gpu_framework) <> (differs LIKE 'framework %') OR differs NOT LIKE '%software %'": [
        (0,)
    ],
    # The page's EfficientNet-B4 is one of group dimension 16, NVIDIA's is not.
    "SELECT count(*) FROM per_dollar() WHERE model LIKE 'EfficientNet%'": [(0,)],
}


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    return load(warehouse, per_dollar.ANALYSIS)


@pytest.mark.parametrize(("sql", "rows"), FACTS.items())
def test_figures_of_the_record(query: Query, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert query(sql) == rows


@pytest.mark.parametrize(
    ("prices", "listed", "sentence"),
    [
        ("", (True, True), "Both list prices are"),
        ("gpu_price := 200000", (True, False), "The list price of the IPU machine is"),
        ("ipu_price := 120000", (False, True), "The list price of the GPU machine is"),
        ("ipu_price := 120000, gpu_price := 200000", (False, False), None),
    ],
)
def test_price_of_the_reader_is_not_called_a_list_price(
    warehouse: Path, prices: str, listed: tuple[bool, bool], sentence: str | None
) -> None:
    with changed(warehouse) as database:
        columns = "SELECT DISTINCT ipu_price_listed, gpu_price_listed"
        assert database.query(
            f"{columns} FROM per_dollar({prices}) WHERE ipu_platform = 'IPU-POD16'"
        ) == [listed]
        summary = per_dollar.summarise({"per_dollar": database.frame(f"per_dollar({prices})")})
    assert (
        (sentence in summary)
        if sentence
        else ("list price" not in summary.replace("no known list price", ""))
    )
    assert "(framework, precision, batch, software)" in summary


@pytest.mark.parametrize("machine", ["ipu", "gpu"])
def test_ratio_at_the_price_of_a_tie_is_1(query: Query, machine: str) -> None:
    where = f"WHERE {MLPERF} AND ipu_mlperf_id = '1.0-1026'"
    [(tie,)] = query(f"SELECT break_even_{machine}_price_usd FROM per_dollar() {where}")
    assert query(
        f"SELECT per_dollar_ratio FROM per_dollar({machine}_price := {tie!r}) {where}"
    ) == [(pytest.approx(1),)]


def test_mlperf_rows_are_cited(query: Query) -> None:
    columns = "division, round, attribution"
    for division, mlperf_round, attribution in query(
        f"SELECT {columns} FROM per_dollar() WHERE {MLPERF}"
    ):
        assert division == "closed"
        assert str(attribution).count(f"MLPerf Training v{mlperf_round} closed") == 2
        assert str(attribution).endswith("MLPerf metric")


def test_32x8d_is_not_paired_with_32x4d(warehouse: Path) -> None:
    with changed(
        warehouse,
        "UPDATE results SET model = 'ResNeXt101-32x8d' WHERE model_printed = 'ResNeXt101'",
    ) as database:
        models = database.query(f"SELECT DISTINCT model FROM per_dollar() WHERE {RATE}")
    assert models == [("ResNet-50 v1.5",)]


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
        assert database.query(
            f"SELECT count(*), max(performance_ratio) FROM per_dollar() WHERE {RATE}"
        ) == [(6, pytest.approx(44059 / 16621))]


def test_flagged_row_is_counted_and_excluded(warehouse: Path, frames: Frames) -> None:
    with changed(warehouse, flag_result(GPU_ROW)) as database:
        assert database.query(f"SELECT count(*) FROM per_dollar() WHERE {RATE} AND NOT usable") == [
            (4,)
        ]
        flagged = {"per_dollar": database.frame("per_dollar()")}
    assert "on 3 priced pairs" in per_dollar.summarise(frames)
    assert "on 1 priced pairs" in per_dollar.summarise(flagged)
    assert "ResNet-50 v1.5, Bow" not in str(
        per_dollar.build_chart(altair, flagged).to_dict()["hconcat"][1]
    )


def test_each_tie_is_on_its_line(frames: Frames) -> None:
    for panel in per_dollar.build_chart(altair, frames).to_dict()["hconcat"]:
        *_, lines, ties = panel["layer"]
        price = {tie["name"]: tie["price"] for tie in ties["data"]["values"]}
        assert price
        for point in lines["data"]["values"]:
            assert point["ratio"] * point["price"] == pytest.approx(price[point["name"]])
