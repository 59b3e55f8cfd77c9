"""The SDK alone: releases of one test on one machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyses.analysis_support import OTHER_TEST, TRAINED, make_warehouse
from tests.conftest import Query

# the committed rows


def test_ratios_of_printed_figures(query: Query) -> None:
    row = "model = 'ViT' AND position = 2 ORDER BY throughput_ratio"
    assert query(f"SELECT throughput_ratio, oldest_sdk_version, sdk_version FROM sdk_effect WHERE {row}") == [
        (pytest.approx(26185 / 27868), "3.0", "3.3"),
        (pytest.approx(7608 / 7615), "3.0", "3.3"),
        (pytest.approx(8148 / 7319), "3.0", "3.3"),
    ]


def test_releases_before_2_5_are_the_oldest(query: Query) -> None:
    """The name `Pre-SDK2.5` sorts last."""
    rows = "SELECT sdk_version, throughput_ratio FROM sdk_effect WHERE model = 'Mini DALL-E' ORDER BY position"
    assert query(rows) == [
        ("Pre-SDK2.5", 1.0),
        ("3.0", pytest.approx(1916 / 1855)),
        ("3.3", pytest.approx(1843 / 1855)),
    ]


def test_number_of_rows_and_tests(query: Query) -> None:
    assert query("SELECT count(*), count(DISTINCT oldest_result_id) FROM sdk_effect") == [(49, 24)]
    assert query("SELECT count(*) FROM sdk_effect WHERE position = 1 AND throughput_ratio <> 1") == [(0,)]


def test_excluded_rows(query: Query) -> None:
    """ResNet-50 in TensorFlow1 on Bow Pod16 changed its batch with the release: 42,029 at 1,920, 44,059 at 3,520."""
    row = "model = 'ResNet-50 v1.5' AND platform = 'Bow Pod16' AND framework = 'TensorFlow1'"
    assert query(f"SELECT count(*) FROM sdk_effect WHERE {row} OR errors > 0") == [(0,)]
    other = "benchmark IS NOT NULL OR origin <> 'published'"
    assert query(f"SELECT count(*) FROM sdk_effect JOIN results r USING (result_id) WHERE {other}") == [(0,)]


# made-up rows

OLD = {**TRAINED, "framework": "PyTorch", "sdk_version": "3.9", "document_id": "page-1", "throughput": 100.0}
NEW = {**OLD, "sdk_version": "3.10", "document_id": "page-2", "throughput": 110.0}
RATIOS = "SELECT sdk_version, throughput_ratio FROM sdk_effect ORDER BY position"


def test_releases_sort_as_numbers() -> None:
    assert make_warehouse([NEW, OLD]).query(RATIOS) == [("3.9", 1.0), ("3.10", 1.1)]


def test_figure_repeated_by_a_newer_page_counts_once_in_the_newest() -> None:
    database = make_warehouse([OLD, {**OLD, "document_id": "page-2", "throughput": 90.0}, NEW])
    rows = database.query("SELECT oldest_throughput, document_id FROM sdk_effect ORDER BY position")
    assert rows == [(90.0, "page-2"), (90.0, "page-2")]


@pytest.mark.parametrize(
    "other",
    [
        *OTHER_TEST,
        {"publisher": "NVIDIA"},
        {"platform": "Bow Pod64"},
        {"framework": "TensorFlow2"},
        {"compiler": "XLA"},
        {"compute_precision": "TF32"},
        {"sdk_version": "3.9"},
    ],
    ids=str,
)
def test_any_other_difference_excludes_a_row(other: dict[str, Any]) -> None:
    assert make_warehouse([OLD, {**NEW, **other}]).query(RATIOS) == []


def test_error_flag_excludes_a_row() -> None:
    assert make_warehouse([OLD, NEW], [{"result_id": "1", "rule": "R10", "severity": "error"}]).query(RATIOS) == []
