"""Latency-bounded throughput: which row is the best within a bound, and which rows are excluded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair
import pytest
from ipu_results.analyses import Frames, latency

from tests.analyses.analysis_support import PUBLISHED, load, make_warehouse
from tests.conftest import PAGE_ID, Query

POINT = {
    **PUBLISHED,
    "task": "inference",
    "platform": "IPU-M2000",
    "chip_count": 4,
    "batch_size": 8,
}
BEST = "SELECT bound_ms, throughput FROM detail.latency_bounded ORDER BY ALL"
FRONT = "SELECT throughput FROM detail.latency_front WHERE on_front ORDER BY 1"


def point(throughput: float, latency: float, **other: Any) -> dict[str, Any]:
    return {**POINT, "throughput": throughput, "latency_ms": latency, **other}


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> Frames:
    return load(warehouse, latency.ANALYSIS)


# the committed rows

B0 = "model = 'EfficientNet-B0' AND platform = 'IPU-M2000'"
FACTS = {
    # 108 rows of the page less 4 without latency, 19 more of the vendor, 13 of PopTransformer, 6 of
    # the paper, others
    "SELECT publisher, count(*) FROM detail.latency_front WHERE origin = 'published' GROUP BY 1 ORDER BY 1": [
        ("ByteDance", 71),
        ("Graphcore", 108 - 4 + 19 + 13),
        ("Heidelberg University", 314),
        ("NVIDIA", 88),
        ("Qwant", 6),
    ],
    # 8,686 at 0.44 ms; 71,839 at 4.26; 86,986 at 6.77 (batch 128), not 69,852 at 9.15 (batch 144)
    f"SELECT bound_ms, throughput, latency_ms FROM detail.latency_bounded WHERE {B0} ORDER BY bound_ms": [
        (1.0, 8686.0, 0.44),
        (5.0, 71839.0, 4.26),
        (10.0, 86986.0, 6.77),
        (20.0, 86986.0, 6.77),
    ],
    "SELECT DISTINCT batches_in_flight FROM detail.latency_bounded WHERE throughput = 86986": [
        (pytest.approx(86986 * 6.77 / 1000 / 128),)
    ],
    # Three of FastSpeech2 and three of EfficientDet time an item (R01), two of Yolo v4 misprint the
    # batch (R04).
    f"SELECT model, count(*) FROM detail.latency_front WHERE left_out = 'error' AND document_id = '{PAGE_ID}' GROUP BY model ORDER BY model": [
        ("EfficientDet-D0", 1),
        ("EfficientDet-D1", 1),
        ("EfficientDet-D2", 1),
        ("FastSpeech2", 3),
        ("Yolo v4", 2),
    ],
    "SELECT publisher, count(*) FROM detail.latency_front WHERE latency_basis = 'per-item' GROUP BY 1 ORDER BY 1": [
        ("Graphcore", 21 + 5)
    ],
    # ResNeXt101 on IPU-M2000 within 5 ms: 9,705 at batch 16 is 32x4d, 6,483 is 32x8d.
    "SELECT model, throughput FROM detail.latency_bounded WHERE model LIKE 'ResNeXt101%' AND platform = 'IPU-M2000' AND bound_ms = 5 ORDER BY model": [
        ("ResNeXt101-32x4d", 9705.0),
        ("ResNeXt101-32x8d", 6483.0),
    ],
    # Rows without a throughput compete for the lowest latency: 1.60 ms in INT8 and 1.87 in FP16 on
    # the A100.
    "SELECT platform, precision, batch_size, latency_ms, rows, rows_without_throughput FROM detail.latency_lowest WHERE model = 'BERT-Large' AND sequence_length = 128 AND platform <> 'IPU' ORDER BY latency_ms": [
        ("Bow-2000", "FP16", 4, 1.36, 4, 0),
        ("1x A100-40GB", "INT8", 1, 1.6, 10, 10),
        ("1x A100-40GB", "FP16", 1, 1.87, 10, 10),
        ("IPU-M2000", "FP16", 4, 1.92, 3, 0),
    ],
    "SELECT sum(rows_without_throughput) FROM detail.latency_lowest": [(80,)],
}


@pytest.mark.parametrize(("sql", "rows"), FACTS.items())
def test_figures_of_the_record(query: Query, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert query(sql) == rows


def test_every_inference_row_with_both_figures_is_a_point(query: Query) -> None:
    complete = (
        "SELECT count(*) FROM inference WHERE throughput IS NOT NULL AND latency_ms IS NOT NULL"
    )
    assert query(
        "SELECT count(*) FROM detail.latency_front WHERE left_out IS DISTINCT FROM 'sparse'"
    ) == query(complete)


@pytest.mark.parametrize(
    "rows",
    [
        "detail.latency_front JOIN results USING (result_id) WHERE benchmark IS NOT NULL",
        "detail.latency_front WHERE throughput IS NULL",
        "detail.latency_front WHERE on_front AND (NOT usable OR latency_basis = 'per-item')",
        "detail.latency_bounded WHERE NOT usable OR latency_basis = 'per-item'",
        "detail.latency_bounded JOIN flags USING (result_id) WHERE severity = 'error' OR rule = 'R47'",
    ],
)
def test_other_suites_and_doubtful_rows_are_never_the_best(query: Query, rows: str) -> None:
    assert query(f"SELECT count(*) FROM {rows}") == [(0,)]


def test_no_row_is_better_than_one_of_the_front(query: Query) -> None:
    """Counted the other way round: over every pair of the competing rows of a group."""
    better = """
        SELECT count(*) FROM detail.latency_front a JOIN detail.latency_front b USING (origin, work, platform)
        WHERE a.on_front AND b.left_out IS NULL
            AND b.latency_ms < a.latency_ms AND b.throughput > a.throughput
    """
    assert query(better) == [(0,)]


def test_summary_counts_the_rows_that_cannot_enter(frames: Frames) -> None:
    summary = latency.summarise(frames)
    assert (
        "80 rows print a latency and no throughput (BERT-Base and BERT-Large on 1x A100-40GB)"
        in summary
    )
    assert (
        "1.36 ms on Bow-2000 (batch 4, 4 chips, FP16), 1.6 ms on 1x A100-40GB (batch 1, 1 chip,"
        " INT8)" in summary
    )
    without = {
        **frames,
        "latency_lowest": frames["latency_lowest"].assign(rows_without_throughput=0),
    }
    assert "no throughput" not in latency.summarise(without)


def test_row_below_the_best_of_its_vendor_has_a_remark(query: Query, frames: Frames) -> None:
    """All 72 A100 rows of ResNet inference are of TensorFlow 1; NVIDIA's MLPerf entry reaches
    298647 / 8 images/s.
    """
    marked = (
        "SELECT count(*), count(remark) FROM detail.latency_front"
        " WHERE publisher = 'NVIDIA' AND framework = 'TensorFlow1'"
    )
    assert query(marked) == [(72, 72)]
    [(remark,)] = query(
        "SELECT DISTINCT remark FROM detail.latency_front"
        " WHERE chip LIKE 'A100%' AND model LIKE 'ResNet-50%'"
    )
    assert "not NVIDIA's best" in str(remark)
    assert f"{298647 / 8:,.0f} images/s per chip" in str(remark)
    assert str(remark) in latency.summarise(frames)
    joined = "detail.comparison_remarks c JOIN detail.latency_points p USING (publisher, model, framework)"
    assert query("SELECT count(*) FROM detail.comparison_remarks") == [(3,)]
    assert query(
        f"SELECT count(DISTINCT c.remark) FROM {joined} WHERE starts_with(p.remark, c.remark)"
    ) == [(2,)]
    assert query("SELECT result_id FROM detail.latency_points GROUP BY 1 HAVING count(*) > 1") == []


def test_headline_rows_carry_the_remark_of_the_framework_rule(query: Query, frames: Frames) -> None:
    """EfficientNet-B0 on IPU-M2000: 71,839 and 86,986 in PyTorch are 1.66 and 1.63 times the
    TensorFlow rows.
    """
    best = (
        "model = 'EfficientNet-B0' AND platform = 'IPU-M2000' AND bound_ms >= 5 ORDER BY bound_ms"
    )
    remarks = [
        str(remark)
        for (remark,) in query(f"SELECT remark FROM detail.latency_bounded WHERE {best}")
    ]
    assert [remark.split(" of ")[0] for remark in remarks] == [
        "1.66 times the throughput",
        *["1.63 times the throughput"] * 2,
    ]
    assert remarks[-1] in latency.summarise(frames)


# made-up rows


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
    assert make_warehouse([point(100, 0.5), point(900, 0.9, **doubt)]).query(BEST)[0] == (
        1.0,
        100.0,
    )


@pytest.mark.parametrize(
    "other",
    [
        {"origin": "measured"},
        {"platform": "C2"},
        {"variant": "SL128"},
        {"item": "row"},
        {"model_printed": "Nett"},
    ],
)
def test_rows_of_separate_groups(other: dict[str, str]) -> None:
    database = make_warehouse([point(100, 0.5), point(900, 0.9, **other)])
    assert database.query("SELECT count(*) FROM detail.latency_bounded WHERE bound_ms = 1") == [
        (2,)
    ]
    assert database.query(FRONT) == [(100.0,), (900.0,)]


@pytest.mark.parametrize(
    "other", [{"variant": "lowest latency config"}, {"framework": "PyTorch"}, {"batch_size": 16}]
)
def test_rows_of_one_group(other: dict[str, Any]) -> None:
    assert make_warehouse([point(100, 0.9), point(900, 0.5, **other)]).query(FRONT) == [(900.0,)]


def test_lowest_latency_of_a_machine_and_precision() -> None:
    rows = [
        point(100, 0.9),
        {**point(900, 0.5), "throughput": None},
        point(1, 0.7, precision_printed="16.16"),
        point(1, 0.1, suspect="drift"),
    ]
    database = make_warehouse(rows)
    rows_of_groups = database.query(
        "SELECT latency_ms, rows, rows_without_throughput FROM detail.latency_lowest ORDER BY 1"
    )
    assert rows_of_groups == [(0.5, 2, 1), (0.7, 1, 0)]


@pytest.mark.parametrize(
    ("rows", "works", "drawn"), [(3, 1, True), (2, 1, False), (8, 8, True), (9, 9, False)]
)
def test_panel_has_three_rows_or_more_and_at_most_eight_variants(
    rows: int, works: int, drawn: bool
) -> None:
    points = [point(100, 1, variant=f"SL{1 + at % works}") for at in range(rows)]
    points += [point(100, 1, model_printed="Other")] * 3
    chart = latency.build_chart(
        altair, {"latency_front": make_warehouse(points).frame("detail.latency_front")}
    )
    panels = str(chart.to_dict()["data"]["values"])
    assert ("'panel': 'Net'" in panels, "'panel': 'Other'" in panels) == (drawn, True)


def test_remark_holds_for_its_publisher_and_framework_alone() -> None:
    remark = {
        "publisher": "NVIDIA",
        "task": "inference",
        "model": "Net",
        "framework": "TF",
        "remark": "old",
    }
    rows = [
        point(1, 1, publisher=publisher, framework=framework)
        for publisher in ("NVIDIA", "X")
        for framework in ("TF", "Y")
    ]
    database = make_warehouse(rows, comparison_remarks=[remark])
    assert database.query(
        "SELECT publisher, framework, remark FROM detail.latency_points WHERE remark IS NOT NULL"
    ) == [("NVIDIA", "TF", "old")]
