"""What a sweep visits, in which order and for how long."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import RunnerError
from ipu_results.runner.plan import ISOLATED_EVERY, Plan, Visit, checked_batches

BATCHES = (2, 4, 6, 8, 10, 12)
WRITTEN = [(2, "am"), (6, "am"), (4, "is"), (2, "is"), (6, "is"), (4, "am")]
batches = st.lists(st.integers(1, 512), min_size=1, max_size=12, unique=True).map(tuple)
plans = st.builds(
    Plan,
    batches,
    st.integers(1, 8),
    seed=st.integers(),
    budget_s=st.floats(0, 1e6),
    least_rounds=st.integers(1, 40),
    most_rounds=st.integers(1, 1000),
    block_s=st.floats(0, 60),
    iterations=st.integers(1, 50),
    overlap=st.booleans(),
)


@given(plans, st.integers(0, 500))
def test_every_round_visits_every_batch_size_once_of_a_kind(plan: Plan, number: int) -> None:
    found = Counter((visit.batch_size, visit.kind) for visit in plan.visits(number))
    kinds = ("amortised", "isolated") if number % ISOLATED_EVERY == 0 else ("amortised",)
    assert found == Counter((batch, kind) for batch in plan.batch_sizes for kind in kinds)
    assert {visit.round for visit in plan.visits(number)} == {number}


@given(plans, st.integers(0, 500))
def test_the_order_depends_on_the_seed_and_the_round_alone(plan: Plan, number: int) -> None:
    twin = Plan(plan.batch_sizes, 1, seed=plan.seed, budget_s=1.0, block_s=9.0, iterations=1)
    plan.visits(number + 1)
    assert plan.visits(number) == twin.visits(number) == plan.visits(number)


def test_the_order_is_the_one_that_was_written_down() -> None:
    """Another one would change every simulated sweep, and a resumed one would lose its place."""
    found = [(visit.batch_size, visit.kind[:2]) for visit in Plan((2, 4, 6), 2).visits(0)]
    assert found == WRITTEN


def orders(seed: int, rounds: range) -> list[tuple[int, ...]]:
    return [tuple(visit.batch_size for visit in Plan(BATCHES, 2, seed=seed).visits(number)) for number in rounds]


@pytest.mark.parametrize("seed", range(4))
def test_rounds_differ_in_their_order(seed: int) -> None:
    """Of 720 orders, twenty rounds all but never share one; no batch size keeps its place."""
    found = orders(seed, range(1, 41, 2))
    assert len(set(found)) >= 18
    assert all(len({order[place] for order in found}) >= 4 for place in range(len(BATCHES)))


def test_seeds_differ_in_their_order() -> None:
    assert len({tuple(orders(seed, range(3))) for seed in range(20)}) == 20


@given(plans, st.floats(0, 2e6), st.integers(0, 1100))
def test_rounds_go_on_for_the_least_and_then_within_the_budget(plan: Plan, spent: float, done: int) -> None:
    due = plan.rounds(spent, done)
    if done < plan.least_rounds:
        assert due
    elif done >= plan.most_rounds:
        assert not due
    else:
        assert due == (spent < plan.budget_s)


@pytest.mark.parametrize(
    ("least", "most", "budget", "wanted"),
    [(6, 1000, 0, 6), (1, 3, 1e9, 3), (2, 1000, 45, 5), (6, 1000, 45, 6), (2, 2, 0, 2)],
)
def test_how_many_rounds_there_are(least: int, most: int, budget: float, wanted: int) -> None:
    """Of 10 s each."""
    plan = Plan(BATCHES, 2, least_rounds=least, most_rounds=most, budget_s=budget)
    done = 0
    while plan.rounds(10.0 * done, done):
        done += 1
    assert done == wanted


@given(plans, st.floats(0.001, 10))
def test_a_mean_round_is_as_long_as_its_blocks(plan: Plan, seconds: float) -> None:
    """Over two rounds: each block takes its least time, or its least iterations where those take longer."""
    batch_s = {batch: seconds * batch for batch in plan.batch_sizes}
    longest = {batch: max(plan.block_s, plan.iterations * one) for batch, one in batch_s.items()}
    two = sum(longest[visit.batch_size] for number in range(ISOLATED_EVERY) for visit in plan.visits(number))
    assert plan.expected_s(batch_s) == pytest.approx(two / ISOLATED_EVERY)


@given(plans)
def test_a_plan_survives_json(plan: Plan) -> None:
    assert Plan.from_json(json.loads(json.dumps(plan.as_json()))) == plan


@given(st.lists(st.integers(1, 60), max_size=10), st.integers(1, 6))
def test_batch_sizes_that_can_be_shared(micro: list[int], sessions: int) -> None:
    """In the order they were given, each once."""
    found = checked_batches([one * sessions for one in micro], sessions)
    assert all(batch % sessions == 0 for batch in found)
    assert len(set(found)) == len(found)
    assert [one * sessions for one in dict.fromkeys(micro)] == list(found)


@pytest.mark.parametrize(
    ("sizes", "sessions", "named"), [((2, 3), 2, 3), ((4, 0), 1, 0), ((-2,), 2, -2), ((2, 4, 6), 4, 2)]
)
def test_batch_sizes_that_cannot(sizes: tuple[int, ...], sessions: int, named: int) -> None:
    with pytest.raises(
        RunnerError, match=f"^batch {named} cannot be dealt evenly to {sessions} sessions; see --sessions$"
    ):
        checked_batches(sizes, sessions)


def test_a_visit_is_known_again() -> None:
    assert Visit(1, 4, "isolated") in {Visit(1, 4, "isolated")}
    assert Visit(1, 4, "isolated") not in {Visit(1, 4, "amortised"), Visit(0, 4, "isolated"), Visit(1, 2, "isolated")}
