"""ResNeXt101: every row on one chart, its origin visible; and from the C2 to the IPU-M2000 per
chip.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair
import pandas as pd
import pytest
from ipu_results.analyses import Frames, resnext101

from tests.analyses.analysis_support import changed, flag_result, load
from tests.conftest import Query

EQUAL = "pairing = 'equal micro-batch'"
BEST = "pairing = 'best of each'"
RATIO, PEAK = (17176 / 4) / (2526.35 / 2), 249.65 / 124.5
FACTS = {
    # printed: batch 2, 4, 8 on two chips and 4, 8, 16 on four
    f"SELECT c2_micro_batch_size, m2000_micro_batch_size, ratio FROM detail.c2_to_m2000 WHERE {EQUAL} ORDER BY 1": [
        (1, 1, pytest.approx((4483 / 4) / (1474.16 / 2))),
        (2, 2, pytest.approx((6435 / 4) / (2063.03 / 2))),
        (4, 4, pytest.approx((9705 / 4) / (2409.79 / 2))),
    ],
    f"SELECT c2_micro_batch_size, m2000_micro_batch_size, ratio, peak_ratio, tile_cycles_ratio, ratio_over_peak FROM detail.c2_to_m2000 WHERE {BEST}": [
        pytest.approx((6, 16, RATIO, PEAK, (1472 * 1.33) / (1216 * 1.6), RATIO / PEAK), rel=1e-3)
    ],
    f"SELECT c2_batch_period_ms, m2000_batch_period_ms, c2_batches_in_flight, m2000_batches_in_flight FROM detail.c2_to_m2000 WHERE {EQUAL} AND c2_micro_batch_size = 1": [
        pytest.approx((2000 / 1474.16, 4000 / 4483, 1474.16 * 1.36 / 2000, 4483 * 2.66 / 4000))
    ],
    # No 32x8d row of PyTorch and nothing emulated, which would all have a partner.
    "SELECT pairing, count(*), count(ratio) FROM detail.c2_to_m2000 GROUP BY 1 ORDER BY 1": [
        ("C2 alone", 3, 0),
        ("IPU-M2000 alone", 2, 0),
        ("best of each", 1, 1),
        ("equal micro-batch", 3, 3),
    ],
    "SELECT DISTINCT r.origin, r.publisher, r.framework, r.task FROM detail.c2_to_m2000 v JOIN results r ON r.result_id IN (v.c2_result_id, v.m2000_result_id) ORDER BY 2": [
        ("published", "Graphcore", "TensorFlow1", "inference"),
        ("published", "Qwant", "PopART", "inference"),
    ],
    "SELECT publisher, platform, model, model_source, count(*) FROM detail.resnext101 WHERE origin = 'published' GROUP BY ALL ORDER BY ALL": [
        ("Graphcore", "IPU-M2000", "ResNeXt101-32x4d", "flag R20", 5),
        ("Graphcore", "IPU-M2000", "ResNeXt101-32x8d", "flag R20", 4),
        ("NVIDIA", "1x A100-40GB (DGX A100)", "ResNeXt101-32x4d", "named", 36),
        ("Qwant", "C2", "ResNeXt101-32x4d", "flag R20", 6),
    ],
    **{
        f"SELECT throughput_per_chip, batches_in_flight FROM detail.resnext101 WHERE throughput = {throughput}": [
            pytest.approx((throughput / chips, throughput * latency_ms / 1000 / batch))
        ]
        for throughput, latency_ms, batch, chips in ((17176, 11.16, 64, 4), (2526.35, 4.75, 12, 2))
    },
    "SELECT count(*) FROM detail.resnext101 JOIN results r USING (result_id) WHERE r.benchmark IS NOT NULL": [
        (0,)
    ],
    # Local rows have a run.
    "SELECT count(*) FROM detail.resnext101 WHERE (origin = 'published') <> (run_id IS NULL)": [
        (0,)
    ],
}


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    return load(warehouse, resnext101.RESNEXT101)


def select_points(frames: Frames) -> list[dict[str, Any]]:
    return list(resnext101.build_chart(altair, frames).to_dict(validate=False)["data"]["values"])


@pytest.mark.parametrize(("sql", "rows"), FACTS.items())
def test_figures_of_the_record(query: Query, sql: str, rows: list[Any]) -> None:
    assert query(sql) == rows


def test_every_result_appears_once(query: Query) -> None:
    results = query(
        "SELECT count(*) FROM results WHERE task = 'inference' AND model_printed LIKE 'ResNeXt101%'"
    )
    assert query("SELECT count(*) FROM detail.resnext101") == results
    assert query("SELECT count(DISTINCT result_id) FROM detail.resnext101") == results


def test_model_without_a_source_is_null(warehouse: Path) -> None:
    with changed(warehouse, "UPDATE results SET model = model_printed") as database:
        rows = database.query(
            "SELECT DISTINCT model, model_source FROM detail.resnext101 WHERE publisher = 'Graphcore'"
        )
        frame = database.frame("detail.resnext101")
    assert rows == [(None, None)]
    assert "15 rows of a model that no source states" in resnext101.summarise({"resnext101": frame})


def test_emulated_points_are_hollow_dashed_and_labelled(frames: Frames) -> None:
    chart = resnext101.build_chart(altair, frames).to_dict()
    for panel in chart["hconcat"]:
        lines, solid, hollow, *_, word = panel["layer"]
        assert solid["transform"] == [{"filter": "datum.origin != 'emulated'"}]
        assert solid["mark"]["filled"]
        assert hollow["transform"] == [{"filter": "datum.origin == 'emulated'"}]
        assert "filled" not in hollow["mark"]
        dashes = lines["encoding"]["strokeDash"]["scale"]
        assert dict(zip(dashes["domain"], dashes["range"], strict=True))["emulated"] == [4, 3]
        assert word["encoding"]["text"]["field"] == "word"
        colors = lines["encoding"]["color"]["scale"]
        assert len(set(colors["range"])) == len(colors["domain"])
    assert [point["origin"] for point in select_points(frames) if point["word"] == "EMULATED"] == [
        "emulated"
    ]
    assert "EMULATED, not measured" in chart["title"]["subtitle"][0]


def test_each_series_has_one_origin_and_doubtful_emulations_are_marked(frames: Frames) -> None:
    rows = frames["resnext101"]
    points = select_points(frames)
    assert len({(point["machine"], point["origin"]) for point in points}) == len(
        {point["machine"] for point in points}
    )
    assert (
        sum(point["suspect"] != "" for point in points)
        == (rows["suspect"].notna() & (rows["origin"] == "emulated")).sum()
        > 0
    )


@pytest.mark.parametrize(
    "origins", [("published",), ("published", "measured"), ("published", "emulated")]
)
def test_warehouse_without_some_local_runs(frames: Frames, origins: tuple[str, ...]) -> None:
    frame = frames["resnext101"]
    kept = {"resnext101": frame[frame["origin"].isin(origins)]}
    assert {point["origin"] for point in select_points(kept)} == set(origins)
    summary = resnext101.summarise(kept)
    assert ("Measured here are" in summary) == ("measured" in origins)
    assert ("Emulated, not measured, are" in summary) == ("emulated" in origins)


def test_emulation_is_compared_at_equal_batch_size(frames: Frames) -> None:
    """An emulation twice as slow is 100 % off, whatever the other batches are."""
    frame = frames["resnext101"].copy()
    c2 = frame[(frame["platform"] == "C2") & (frame["origin"] == "published")]
    doubled = c2.assign(origin="emulated", latency_ms=2 * c2["latency_ms"])
    kept = frame[frame["origin"] == "published"]
    summary = resnext101.summarise({"resnext101": pd.concat([kept, doubled])})
    assert "differs from the published one by 100 % in the median and 100 % at most" in summary


def test_rows_that_are_not_usable_are_counted_and_not_drawn(frames: Frames) -> None:
    frame = frames["resnext101"]
    usable = frame["usable"] & (frame["throughput"] != 17176)
    doubted = {"resnext101": frame.assign(usable=usable)}
    assert len(select_points(doubted)) == len(select_points(frames)) - 1
    assert "Left out as not usable: 20 rows." in resnext101.summarise(frames)
    assert "Left out as not usable: 21 rows." in resnext101.summarise(doubted)


def test_model_is_that_of_the_result_not_of_the_framework(warehouse: Path) -> None:
    swap = (
        "UPDATE results SET model = CASE model WHEN 'ResNeXt101-32x4d' THEN 'ResNeXt101-32x8d' "
        "ELSE 'ResNeXt101-32x4d' END WHERE model_printed = 'ResNeXt101' AND platform = 'IPU-M2000'"
    )
    sql = f"SELECT m2000_framework, ratio FROM detail.c2_to_m2000 WHERE {EQUAL} AND c2_micro_batch_size = 1"
    with changed(warehouse, swap) as database:
        assert database.query(sql) == [("PyTorch", pytest.approx((3395 / 4) / (1474.16 / 2)))]
    with changed(warehouse, "UPDATE results SET model = model_printed") as database:
        assert database.query("SELECT count(*) FROM detail.c2_to_m2000") == [(0,)]


def test_flagged_row_is_not_the_best(warehouse: Path) -> None:
    with changed(warehouse, flag_result("throughput = 17176")) as database:
        assert database.query(
            f"SELECT m2000_throughput_per_chip FROM detail.c2_to_m2000 WHERE {BEST}"
        ) == [(13693 / 4,)]
        assert database.query("SELECT count(*) FROM detail.c2_to_m2000 WHERE NOT usable") == [(1,)]
