"""ResNeXt101 on one chart: every row, its origin in the picture, and nothing emulated that looks otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair
import pandas as pd
import pytest
from altered_support import altered
from conftest import Ask
from ipu_results.analyses import resnext101, rows
from ipu_results.analyses.analysis import Frames
from ipu_results.store.query import open_warehouse


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    with open_warehouse(warehouse) as connection:
        return rows(connection, resnext101.ANALYSIS)


def only(frames: Frames, *origins: str) -> Frames:
    frame = frames["resnext101"]
    return {"resnext101": frame[frame["origin"].isin(origins)]}


def points(frames: Frames) -> list[dict[str, Any]]:
    return list(resnext101.chart(altair, frames).to_dict()["data"]["values"])


def test_the_published_rows(ask: Ask) -> None:
    columns = "publisher, platform, network, network_source, count(*)"
    where = "origin = 'published' GROUP BY ALL ORDER BY ALL"
    assert ask(f"SELECT {columns} FROM resnext101 WHERE {where}") == [
        ("Graphcore", "IPU-M2000", "ResNeXt101-32x4d", "flag R20", 5),
        ("Graphcore", "IPU-M2000", "ResNeXt101-32x8d", "flag R20", 4),
        ("NVIDIA", "1x A100-40GB (DGX A100)", "ResNeXt101-32x4d", "named", 36),
        ("Qwant", "C2", "ResNeXt101-32x4d", "flag R20", 6),
    ]


def test_hand_arithmetic(ask: Ask) -> None:
    columns = "throughput_per_chip, batches_in_flight"
    [page] = ask(f"SELECT {columns} FROM resnext101 WHERE throughput = 17176")
    assert page == pytest.approx((17176 / 4, 17176 * 11.16 / 64000))
    [paper] = ask(f"SELECT {columns} FROM resnext101 WHERE throughput = 2526.35")
    assert paper == pytest.approx((2526.35 / 2, 2526.35 * 4.75 / 12000))


def test_no_row_is_left_out_and_none_is_double(ask: Ask) -> None:
    all_rows = "results WHERE task = 'inference' AND model LIKE 'ResNeXt101%'"
    [(count, ids)] = ask("SELECT count(*) AS rows, count(DISTINCT result_id) AS ids FROM resnext101")
    assert [(count,), (ids,)] == 2 * ask(f"SELECT count(*) FROM {all_rows}")
    assert ask("SELECT count(*) FROM resnext101 JOIN results r USING (result_id) WHERE r.benchmark IS NOT NULL") == [
        (0,)
    ]


def test_local_rows_name_their_run_and_emulated_ones_their_calibration(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM resnext101 WHERE (origin = 'published') <> (run_id IS NULL)") == [(0,)]
    assert ask("SELECT count(*) FROM resnext101 WHERE origin = 'emulated' AND calibration_id IS NULL") == [(0,)]


def test_a_network_that_no_source_tells_is_null(warehouse: Path) -> None:
    with altered(warehouse, "DELETE FROM flags WHERE rule = 'R20'") as found:
        assert found.rows("SELECT DISTINCT network, network_source FROM resnext101 WHERE publisher = 'Graphcore'") == [
            (None, None)
        ]
        assert "15 rows of a network that no source tells" in resnext101.told({"resnext101": found.frame("resnext101")})


def test_the_emulated_ones_are_hollow_dashed_and_named(frames: Frames) -> None:
    drawn = resnext101.chart(altair, frames).to_dict()
    for panel in drawn["hconcat"]:
        lines, solid, hollow, *_, word = panel["layer"]
        assert solid["transform"] == [{"filter": "datum.origin != 'emulated'"}]
        assert solid["mark"]["filled"]
        assert hollow["transform"] == [{"filter": "datum.origin == 'emulated'"}]
        assert "filled" not in hollow["mark"]
        dashes = lines["encoding"]["strokeDash"]["scale"]
        assert dict(zip(dashes["domain"], dashes["range"], strict=True))["emulated"] == [4, 3]
        assert word["encoding"]["text"]["field"] == "word"
    assert [point["origin"] for point in points(frames) if point["word"] == "EMULATED"] == ["emulated"]
    assert "EMULATED, not measured" in drawn["title"]["subtitle"][0]


def test_origins_share_no_colour(frames: Frames) -> None:
    found = {(point["machine"], point["origin"]) for point in points(frames)}
    assert len(found) == len({machine for machine, _ in found})


def test_suspect_rows_are_marked(frames: Frames) -> None:
    frame = frames["resnext101"]
    assert sum(point["suspect"] != "" for point in points(frames)) == frame["suspect"].notna().sum() > 0


@pytest.mark.parametrize("origins", [("published",), ("published", "measured"), ("published", "emulated")])
def test_without_local_runs(frames: Frames, origins: tuple[str, ...]) -> None:
    kept = only(frames, *origins)
    assert {point["origin"] for point in points(kept)} == set(origins)
    told = resnext101.told(kept)
    assert ("Measured here are" in told) == ("measured" in origins)
    assert ("Emulated, not measured, are" in told) == ("emulated" in origins)


def test_the_deviation_is_that_of_equal_batches(frames: Frames) -> None:
    """An emulation twice as slow is 100 % off, whatever the other batches say."""
    frame = frames["resnext101"].copy()
    c2 = frame[(frame["platform"] == "C2") & (frame["origin"] == "published")]
    doubled = c2.assign(origin="emulated", latency_ms=2 * c2["latency_ms"])
    kept = frame[frame["origin"] == "published"]
    told = resnext101.told({"resnext101": pd.concat([kept, doubled])})
    assert "off the published one by 100 % in the median and 100 % at most" in told


def test_flagged_rows_are_not_drawn(frames: Frames) -> None:
    frame = frames["resnext101"]
    flagged = {"resnext101": frame.assign(errors=(frame["throughput"] == 17176).astype(int))}
    assert len(points(flagged)) == len(points(frames)) - 1


def test_the_paragraph(frames: Frames) -> None:
    told = resnext101.told(frames)
    assert "Published are 47 rows of ResNeXt101-32x4d and 4 rows of ResNeXt101-32x8d" in told
    assert "17,176 images/s on IPU-M2000 (Graphcore, 32x4d, 4 chips, batch 64, 11.16 ms)" in told
