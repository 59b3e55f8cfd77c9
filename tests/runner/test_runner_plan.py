"""What a sweep visits, in which order and for how long."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import RunnerError
from ipu_results.runner.config import ISOLATED_EVERY, SweepPlan, check_batch_sizes

BATCHES = (2, 4, 6, 8, 10, 12)
plans = st.builds(
    SweepPlan,
    st.lists(st.integers(1, 512), min_size=1, max_size=12, unique=True).map(tuple),
    st.integers(1, 8),
    seed=st.integers(),
    budget_s=st.floats(0, 1e6),
    least_rounds=st.integers(1, 40),
    most_rounds=st.integers(1, 1000),
    block_s=st.floats(0, 60),
    iterations=st.integers(1, 50),
)


@given(plans, st.integers(0, 500))
def test_every_round_visits_every_batch_size_and_kind_once(plan: SweepPlan, number: int) -> None:
    visits = plan.list_visits(number)
    kinds = ("amortised", "isolated") if number % ISOLATED_EVERY == 0 else ("amortised",)
    assert Counter((visit.batch_size, visit.kind) for visit in visits) == Counter(
        (batch, kind) for batch in plan.batch_sizes for kind in kinds
    )
    assert {visit.round for visit in visits} == {number}


def test_order_is_frozen() -> None:
    """Another order would change every simulated sweep, and a resumed one would lose its place."""
    order = [(visit.batch_size, visit.kind[:2]) for visit in SweepPlan((2, 4, 6), 2).list_visits(0)]
    assert order == [(2, "am"), (6, "am"), (4, "is"), (2, "is"), (6, "is"), (4, "am")]


@pytest.mark.parametrize(
    ("low", "high", "budget", "expected"),
    [(6, 1000, 0, 6), (1, 3, 1e9, 3), (2, 1000, 45, 5), (6, 1000, 45, 6), (2, 2, 0, 2)],
)
def test_rounds_of_ten_seconds_within_minimum_budget_and_maximum(
    low: int, high: int, budget: float, expected: int
) -> None:
    plan = SweepPlan(BATCHES, 2, least_rounds=low, most_rounds=high, budget_s=budget)
    done = 0
    while plan.needs_round(10.0 * done, done):
        done += 1
    assert done == expected


@pytest.mark.parametrize(
    ("sizes", "sessions", "named"), [((2, 3), 2, 3), ((4, 0), 1, 0), ((2, 4, 6), 4, 2)]
)
def test_batch_size_that_sessions_cannot_share_is_refused(
    sizes: tuple[int, ...], sessions: int, named: int
) -> None:
    message = (
        f"^batch {named} cannot be shared evenly by {sessions} sessions; see --set sessions=N$"
    )
    with pytest.raises(RunnerError, match=message):
        check_batch_sizes(sizes, sessions)
    assert check_batch_sizes([4, 2, 4, 8], 2) == (4, 2, 8), "repeated ones count once"
