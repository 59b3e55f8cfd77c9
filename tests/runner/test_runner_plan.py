"""What a sweep visits, in which order and for how long."""

from __future__ import annotations

from collections import Counter

import pytest
from ipu_results.errors import RunnerError
from ipu_results.runner.config import SweepPlan, check_batch_sizes


def test_every_round_visits_every_batch_size_and_every_other_one_alone_too() -> None:
    plan = SweepPlan((2, 4, 6), 2)
    for number in range(4):
        visits = plan.list_visits(number)
        assert {visit.round for visit in visits} == {number}
        kinds = Counter(visit.kind for visit in visits)
        assert kinds == {"amortised": 3, **({} if number % 2 else {"isolated": 3})}
        assert len(set(visits)) == len(visits)


def test_order_is_frozen() -> None:
    """Another order would change every simulated sweep, and a resumed one would lose its place."""
    order = [(visit.batch_size, visit.kind[:2]) for visit in SweepPlan((2, 4, 6), 2).list_visits(0)]
    assert order == [(2, "am"), (6, "am"), (4, "is"), (2, "is"), (6, "is"), (4, "am")]


@pytest.mark.parametrize(
    ("least", "most", "budget", "expected"),
    [(6, 1000, 0, 6), (1, 3, 1e9, 3), (2, 1000, 45, 5), (6, 1000, 45, 6)],
)
def test_rounds_of_ten_seconds_within_minimum_budget_and_maximum(
    least: int, most: int, budget: float, expected: int
) -> None:
    plan = SweepPlan((2,), 2, least_rounds=least, most_rounds=most, budget_s=budget)
    done = 0
    while plan.needs_round(10.0 * done, done):
        done += 1
    assert done == expected


def test_batch_size_that_sessions_cannot_share_is_refused() -> None:
    for sizes, sessions, named in (((2, 3), 2, 3), ((4, 0), 1, 0)):
        message = f"^batch {named} cannot be shared evenly by {sessions} sessions; see --set"
        with pytest.raises(RunnerError, match=message):
            check_batch_sizes(sizes, sessions)
    assert check_batch_sizes([4, 2, 4, 8], 2) == (4, 2, 8), "repeated ones count once"
