"""The SDK alone: releases of one test on one machine."""

from __future__ import annotations

from typing import Any

import pytest
from analysis_support import asked, made_up
from conftest import Ask

# the committed rows


def test_figures_of_vit(ask: Ask) -> None:
    row = "model = 'ViT' AND position = 2 ORDER BY throughput_ratio"
    found = ask(f"SELECT throughput_ratio, oldest_sdk_version, sdk_version FROM sdk_effect WHERE {row}")
    assert found == [
        (pytest.approx(26185 / 27868), "3.0", "3.3"),
        (pytest.approx(7608 / 7615), "3.0", "3.3"),
        (pytest.approx(8148 / 7319), "3.0", "3.3"),
    ]


def test_three_releases_of_mini_dall_e(ask: Ask) -> None:
    """What came before 2.5 is the oldest, though its name sorts last."""
    rows = "SELECT sdk_version, throughput_ratio FROM sdk_effect WHERE model = 'Mini DALL-E' ORDER BY position"
    assert ask(rows) == [
        ("Pre-SDK2.5", 1.0),
        ("3.0", pytest.approx(1916 / 1855)),
        ("3.3", pytest.approx(1843 / 1855)),
    ]


def test_how_many(ask: Ask) -> None:
    assert ask("SELECT count(*), count(DISTINCT oldest_result_id) FROM sdk_effect") == [(49, 24)]
    assert ask("SELECT count(*) FROM sdk_effect WHERE position = 1 AND throughput_ratio <> 1") == [(0,)]


def test_a_batch_that_changed_with_the_release_is_no_effect_of_it(ask: Ask) -> None:
    """ResNet-50 in TensorFlow1 on Bow Pod16: 42,029 at batch 1,920, then 44,059 at batch 3,520."""
    row = "model = 'ResNet-50 v1.5' AND platform = 'Bow Pod16' AND framework = 'TensorFlow1'"
    assert ask(f"SELECT count(*) FROM sdk_effect WHERE {row}") == [(0,)]


def test_no_flagged_row_and_no_mlperf(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM sdk_effect WHERE errors > 0") == [(0,)]
    other = "benchmark IS NOT NULL OR origin <> 'published'"
    assert ask(f"SELECT count(*) FROM sdk_effect JOIN results r USING (result_id) WHERE {other}") == [(0,)]


# made-up rows

OLD = {
    "origin": "published",
    "publisher": "Graphcore",
    "task": "training",
    "model": "Net",
    "platform": "Bow Pod16",
    "framework": "PyTorch",
    "precision": "16.16",
    "batch_size": 64,
    "sdk_version": "3.9",
    "document_id": "page-1",
    "throughput": 100.0,
}
NEW = {**OLD, "sdk_version": "3.10", "document_id": "page-2", "throughput": 110.0}
RATIOS = "SELECT sdk_version, throughput_ratio FROM sdk_effect ORDER BY position"


def test_releases_are_numbers() -> None:
    assert asked(made_up([NEW, OLD]), RATIOS) == [("3.9", 1.0), ("3.10", 1.1)]


def test_a_figure_repeated_by_a_newer_page_counts_once_in_the_newest() -> None:
    again = {**OLD, "document_id": "page-2", "throughput": 90.0}
    rows = asked(made_up([OLD, again, NEW]), "SELECT oldest_throughput, document_id FROM sdk_effect ORDER BY position")
    assert rows == [(90.0, "page-2"), (90.0, "page-2")]


@pytest.mark.parametrize(
    "other",
    [
        {"task": "inference"},
        {"publisher": "NVIDIA"},
        {"variant": "SL512"},
        {"dataset": "Generated"},
        {"platform": "Bow Pod64"},
        {"framework": "TensorFlow2"},
        {"compiler": "XLA"},
        {"precision": "16.32"},
        {"compute_precision": "TF32"},
        {"batch_size": 128},
        {"batch_size": None},
        {"sdk_version": "3.9"},
        {"sdk_version": None},
        {"benchmark": "mlperf-training"},
        {"origin": "measured"},
    ],
    ids=str,
)
def test_what_else_may_not_change(other: dict[str, Any]) -> None:
    assert asked(made_up([OLD, {**NEW, **other}]), RATIOS) == []


def test_an_error_flag_takes_a_row_out() -> None:
    flag = {"result_id": "1", "rule": "R10", "severity": "error"}
    assert asked(made_up([OLD, NEW], [flag]), RATIOS) == []
