"""The official reference: points are pruned and interpolated, and the factor that follows for an
entry.
"""

from __future__ import annotations

from typing import Any

import pytest
from ipu_results.mlperf.reference import ReferencePoint, find_reference, prune_points

from tests.mlperf.link_support import link_mlperf


def points(*pairs: tuple[int, float]) -> list[ReferencePoint]:
    return [ReferencePoint(*pair) for pair in pairs]


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ([(10, 3.0)], [10]),
        ([(10, 3.0), (20, 2.0), (30, 4.0)], [20, 30]),  # smaller batches than the fastest one
        ([(30, 4.0), (20, 3.1), (10, 2.0)], [10, 30]),  # above the line, in any order
        ([(10, 2.0), (20, 3.0), (30, 4.0)], [10, 20, 30]),  # on the line
        # 20 goes, then 30 is above the line from 10; 15 was passed and stays above the line that is
        # left.
        ([(10, 1.0), (20, 9.0), (30, 8.0), (40, 4.0)], [10, 40]),
        ([(10, 1.0), (15, 2.4), (20, 4.0), (30, 4.5)], [10, 15, 30]),
    ],
)
def test_points_that_are_slower_than_their_neighbours_say_are_pruned(
    printed: list[tuple[int, float]], kept: list[int]
) -> None:
    assert [point.batch for point in prune_points(points(*printed))] == kept


@pytest.mark.parametrize(
    ("batch", "reference"),
    [
        (5, (2.0, "smallest")),
        (10, (2.0, "exact")),
        (25, (3.5, "interpolated")),
        (30, (4.0, "exact")),
        (31, None),
    ],
)
def test_the_reference_at_a_batch_size(batch: int, reference: tuple[float, str] | None) -> None:
    assert find_reference(points((10, 2.0), (30, 4.0)), batch) == reference


def rcp(batch: int, mean: float, unit: str = "samples", **changed: Any) -> dict[str, Any]:
    return {
        "round": "2.1",
        "benchmark": "resnet",
        "global_batch_size": batch,
        "rcp_mean": mean,
        "rcp_unit": unit,
        "at_round": True,
        **changed,
    }


def refer(
    rcps: list[dict[str, Any]],
    counts: list[float | None],
    unit: str = "samples",
    findings: str | None = None,
    **changed: Any,
) -> tuple[Any, ...]:
    """Return reference, expected factor and findings of an entry whose counted runs need `counts`."""
    entry = {"round": "2.1", "global_batch_size": 10, **changed}
    runs = [
        {"round": entry["round"], unit: count, "counted": count is not None} for count in counts
    ]
    runs[0]["findings"] = findings
    columns = "normalised, reference_to_converge, expected_scaling_factor, findings"
    with link_mlperf([entry], runs, mlperf_rcp=rcps) as connection:
        return connection.sql(f"SELECT {columns} FROM mlperf_entries").fetchall()[0]


@pytest.mark.parametrize(
    ("counts", "changed", "expected"),
    [
        (
            [10, 90, 100, 110, 900],
            {},
            (1.2, "scaling_factor is 1; its logs and the reference give 1.2"),
        ),
        ([10, 90, 100, 110, 900], {"scaling_factor": 1.2}, (1.2, None)),
        ([100] * 5, {"scaling_factor": 1.200001, "findings": "odd"}, (1.2, "odd")),
        # A run that does not count is one of the slowest.
        ([10, 100, 100, 100, None], {"scaling_factor": 1.2}, (1.2, None)),
        ([140] * 5, {}, (1.0, None)),
    ],
)
def test_the_factor_is_that_of_the_olympic_mean(
    counts: list[float | None], changed: dict[str, Any], expected: tuple[float, str | None]
) -> None:
    assert refer([rcp(10, 120.0)], counts, **changed) == (True, 120.0, *expected)


def test_units_are_those_of_the_checker() -> None:
    assert refer([rcp(10, 2.0, "epochs")], [1.0004] * 5, "epochs")[2] == 2.0
    assert refer([rcp(10, 30.0, "steps")], [200.0] * 5)[2] == 1.5


@pytest.mark.parametrize(
    ("changed", "normalised"),
    [
        ({"round": "2.0"}, False),
        ({"division": "open"}, False),
        ({"global_batch_size": None}, True),
        ({"global_batch_size": 11}, True),
        ({"benchmark": "bert"}, True),
    ],
)
def test_what_is_not_normalised_has_no_factor(changed: dict[str, Any], normalised: bool) -> None:
    entry = refer([rcp(10, 120.0), rcp(10, 120.0, round="2.0")], [100] * 5, **changed)
    assert (entry[0], entry[2]) == (normalised, None)


def test_later_points_are_no_reference() -> None:
    rows = [rcp(10, 2.0), rcp(20, 9.0), rcp(30, 3.0), rcp(25, 1.0, at_round=False)]
    with link_mlperf([], [], mlperf_rcp=rows) as connection:
        pruned = connection.sql(
            "SELECT global_batch_size, pruned FROM detail.mlperf_rcp"
        ).fetchall()
    assert dict(pruned) == {10: False, 20: True, 30: False, 25: None}
