"""The official reference: points are pruned and interpolated, and the factor that follows for an
entry.
"""

from __future__ import annotations

import pytest
from ipu_results.mlperf.reference import ReferencePoint, find_reference, prune_points


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
