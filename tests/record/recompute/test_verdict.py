"""Verdicts by rule: outcome, gap and verdict follow from value, figure, relation and basis, and
from nothing else.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.record.recompute.claims import MARKS
from ipu_results.record.recompute.evaluate import JudgedValue, _judge_value, prefer_own_baseline
from ipu_results.record.recompute.reasons import REASONS
from ipu_results.record.recompute.run import Recomputed
from ipu_results.record.recompute.verdict import (
    AXES,
    BOUNDED,
    DEPENDS_ON,
    DEPENDS_ON_BASELINE,
    GAP_KINDS,
    NOT_RECOMPUTABLE,
    RELATIONS,
    WITHIN_SPREAD,
    Claimed,
    Finding,
    Gap,
    find_decisive_axes,
    judge_claim,
    judge_later,
    judge_value,
    measure_gap,
)
from ipu_results.schema import table

from tests.cases import every_case

VALUES = st.floats(0.01, 1e6)
TOLERANCES = st.sampled_from([0.5, 0.05, 0.005])
MARGINS = st.sampled_from([0.0, 0.06])


def test_words_of_the_schema_are_those_of_the_rules() -> None:
    assert set(RELATIONS) == set(table("claims").choices("relation"))
    assert set(MARKS) == set(table("recomputations").choices("outcome"))
    for name in ("claims", "recomputations"):
        assert table(name).choices("gap_kind") == GAP_KINDS
    on_axes = {DEPENDS_ON + axis for axis in AXES}
    others = {NOT_RECOMPUTABLE, DEPENDS_ON_BASELINE}
    assert {*REASONS} | others | on_axes == set(table("claims").choices("verdict"))


@every_case(__file__, "relation")
def test_relation_holds_within_its_bounds(
    relation: str,
    figure: float,
    tolerance: float,
    inside: tuple[float, ...],
    outside: tuple[float, ...],
) -> None:
    claimed = Claimed(relation, figure, tolerance)
    assert {judge_value(claimed, value) for value in inside} == {"agrees"}
    assert {judge_value(claimed, value) for value in outside} == {"differs"}


@given(st.sampled_from(BOUNDED), VALUES, VALUES, TOLERANCES, MARGINS)
def test_outcome_of_a_later_sdk_never_falls_as_the_value_grows(
    relation: str, first: float, second: float, tolerance: float, margin: float
) -> None:
    order = "falls-short nearly-reaches last-digit agrees within-sdk-spread reaches exceeds".split()
    claimed = Claimed(relation, 100.0, tolerance)
    lower = judge_later(claimed, min(first, second), (margin, margin), None)
    higher = judge_later(claimed, max(first, second), (margin, margin), None)
    assert order.index(lower) <= order.index(higher)


@every_case(__file__, "later_sdk")
@pytest.mark.parametrize("relation", ["eq", "rounded-or-cut"])
def test_figure_of_a_later_sdk_counts_against_a_claim_above_as_below(
    relation: str, value: float, outcome: str, direction: str | None
) -> None:
    claimed = Claimed(relation, 100.0, 0.0005)
    assert judge_later(claimed, value, (0.06, 0.11), direction) == outcome
    assert judge_value(claimed, value) == "differs"


@every_case(__file__, "last_digit")
def test_last_digit_is_one_unit_that_is_small_for_the_figure(
    relation: str, figure: float, tolerance: float, value: float, outcome: str
) -> None:
    assert judge_value(Claimed(relation, figure, tolerance), value) == outcome


@every_case(__file__, "gap")
def test_gap_has_a_size_and_a_kind(
    relation: str, value: float, spread: tuple[float, float] | None, kind: str
) -> None:
    gap = measure_gap(Claimed(relation, 5.78, 0.005), value, spread, is_tied=False)
    assert gap == (pytest.approx(100 * (value - 5.78) / 5.78), kind)


def test_gap_to_a_claimed_zero_has_no_percentage() -> None:
    zero = Claimed("eq", 0.0, 0.5)
    assert measure_gap(zero, 2.0, None, is_tied=False) == (None, "beyond")
    assert measure_gap(zero, 0.0, None, is_tied=False) == (0.0, "none")


@every_case(__file__, "verdict")
def test_verdict_follows_from_the_outcomes(evidence: str, outcomes: str, expected: str) -> None:
    nothing_open = dict.fromkeys(AXES)
    findings = [Finding(1.0, outcome, nothing_open) for outcome in outcomes.split()]
    assert judge_claim(findings, evidence) == expected
    assert judge_claim(findings[::-1], evidence) == expected


@given(
    st.sampled_from(("eq", "rounded-or-cut")),
    VALUES,
    TOLERANCES,
    st.sampled_from(["higher", "lower"]),
    MARGINS,
)
def test_claim_is_reached_only_at_or_above_its_figure(
    relation: str, value: float, tolerance: float, direction: str, margin: float
) -> None:
    claimed = Claimed(relation, 100.0, tolerance)
    outcome = judge_later(claimed, value, (margin, margin), direction)
    is_reached = value <= 100 if direction == "lower" else value >= 100
    assert (outcome in {"falls-short", "nearly-reaches", "last-digit"}) == (not is_reached)


def test_figure_of_a_later_sdk_that_only_rounds_to_the_claim_does_not_reach_it() -> None:
    claimed = Claimed("eq", 3.4, 0.05)
    assert judge_later(claimed, 3.36, (0.0, 0.0), None) == "last-digit"
    assert judge_later(claimed, 3.44, (0.0, 0.0), None) == "agrees"
    assert judge_value(claimed, 3.36) == "agrees"


@every_case(__file__, "meanings")
def test_verdict_names_what_the_claim_rests_on(meanings: str, expected: str, decisive: str) -> None:
    findings = []
    for text in meanings.split(", "):
        outcome, *axes = text.split()
        meant = dict(axis.split("=") for axis in axes)
        findings.append(Finding(1.0, outcome, dict.fromkeys(AXES) | meant))
    assert judge_claim(findings) == judge_claim(findings[::-1]) == expected
    assert find_decisive_axes(findings) == decisive.split()


def test_value_with_another_baseline_counts_only_without_one_of_its_own() -> None:
    own = JudgedValue(Recomputed(2.0, "A100", "4 / 2", ()), "agrees", Gap(0.0, "none"), None, None)
    other = own._replace(recomputed=own.recomputed._replace(stand_in="V100"))
    assert prefer_own_baseline([other, other]) == [other, other]
    assert prefer_own_baseline([own, other]) == [own, other._replace(not_counted="V100")]


@pytest.mark.parametrize("basis", ["own", "later-sdk"])
def test_difference_within_the_spread_of_the_runs_is_told_whatever_its_size(basis: str) -> None:
    claim: Any = {"relation": "eq", "value": 500.0, "digits_tolerance": 0.05}
    claim |= {"basis": basis, "direction": "higher"}
    value = Recomputed(5.2, "A100", "5.2", ())
    for within in (True, False):
        judged = _judge_value(claim, value._replace(within_spread=within), None, (0.9, 1.1))
        assert (judged.outcome == WITHIN_SPREAD) is within
