"""The official reference: points are pruned and interpolated, and the factor that follows for an
entry.
"""

from __future__ import annotations

from typing import Any

import pytest
from ipu_results.mlperf.reference import ReferencePoint, find_reference, prune_points

from tests.mlperf.mlperf_support import load_cases


@pytest.mark.parametrize("case", load_cases("reference")["pruned"], ids=lambda case: case["points"])
def test_points_that_are_slower_than_their_neighbours_say_are_pruned(case: dict[str, Any]) -> None:
    points = [ReferencePoint(*point) for point in case["points"]]
    assert [point.batch for point in prune_points(points)] == case["kept"]


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
    points = [ReferencePoint(10, 2.0), ReferencePoint(30, 4.0)]
    assert find_reference(points, batch) == reference
