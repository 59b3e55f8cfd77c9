"""ResNeXt101 on one chart: every row, its origin visible, and nothing emulated that looks otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair
import pandas as pd
import pytest
from ipu_results.analyses import Frames, resnext101

from tests.analyses.analysis_support import changed, load
from tests.conftest import Query


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    return load(warehouse, resnext101.RESNEXT101)


def select_points(frames: Frames) -> list[dict[str, Any]]:
    return list(resnext101.build_chart(altair, frames).to_dict()["data"]["values"])


def test_published_rows(query: Query) -> None:
    columns = "publisher, platform, network, network_source, count(*)"
    where = "origin = 'published' GROUP BY ALL ORDER BY ALL"
    assert query(f"SELECT {columns} FROM resnext101 WHERE {where}") == [
        ("Graphcore", "IPU-M2000", "ResNeXt101-32x4d", "flag R20", 5),
        ("Graphcore", "IPU-M2000", "ResNeXt101-32x8d", "flag R20", 4),
        ("NVIDIA", "1x A100-40GB (DGX A100)", "ResNeXt101-32x4d", "named", 36),
        ("Qwant", "C2", "ResNeXt101-32x4d", "flag R20", 6),
    ]


@pytest.mark.parametrize(
    ("throughput", "latency_ms", "batch", "chips"), [(17176, 11.16, 64, 4), (2526.35, 4.75, 12, 2)]
)
def test_derived_columns(query: Query, throughput: float, latency_ms: float, batch: int, chips: int) -> None:
    columns = "throughput_per_chip, batches_in_flight"
    [row] = query(f"SELECT {columns} FROM resnext101 WHERE throughput = {throughput}")
    assert row == pytest.approx((throughput / chips, throughput * latency_ms / 1000 / batch))


def test_every_result_appears_once(query: Query) -> None:
    results = query("SELECT count(*) FROM results WHERE task = 'inference' AND model LIKE 'ResNeXt101%'")
    assert query("SELECT count(*) FROM resnext101") == results
    assert query("SELECT count(DISTINCT result_id) FROM resnext101") == results
    assert query("SELECT count(*) FROM resnext101 JOIN results r USING (result_id) WHERE r.benchmark IS NOT NULL") == [
        (0,)
    ]


def test_local_rows_have_a_run_and_emulated_ones_a_calibration(query: Query) -> None:
    wrong = "(origin = 'published') <> (run_id IS NULL) OR (origin = 'emulated' AND calibration_id IS NULL)"
    assert query(f"SELECT count(*) FROM resnext101 WHERE {wrong}") == [(0,)]


def test_network_without_a_source_is_null(warehouse: Path) -> None:
    with changed(warehouse, "UPDATE results SET network = model") as database:
        rows = database.query("SELECT DISTINCT network, network_source FROM resnext101 WHERE publisher = 'Graphcore'")
        frame = database.frame("resnext101")
    assert rows == [(None, None)]
    assert "15 rows of a network that no source states" in resnext101.summarise({"resnext101": frame})


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
    assert [point["origin"] for point in select_points(frames) if point["word"] == "EMULATED"] == ["emulated"]
    assert "EMULATED, not measured" in chart["title"]["subtitle"][0]


def test_each_series_has_one_origin_and_suspect_points_are_marked(frames: Frames) -> None:
    points = select_points(frames)
    assert len({(point["machine"], point["origin"]) for point in points}) == len({point["machine"] for point in points})
    assert sum(point["suspect"] != "" for point in points) == frames["resnext101"]["suspect"].notna().sum() > 0


@pytest.mark.parametrize("origins", [("published",), ("published", "measured"), ("published", "emulated")])
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


def test_flagged_rows_are_not_drawn(frames: Frames) -> None:
    frame = frames["resnext101"]
    flagged = {"resnext101": frame.assign(errors=(frame["throughput"] == 17176).astype(int))}
    assert len(select_points(flagged)) == len(select_points(frames)) - 1


def test_summary(frames: Frames) -> None:
    summary = resnext101.summarise(frames)
    assert "Published are 47 rows of ResNeXt101-32x4d and 4 rows of ResNeXt101-32x8d" in summary
    assert "17,176 images/s on IPU-M2000 (Graphcore, 32x4d, 4 chips, batch 64, 11.16 ms)" in summary
