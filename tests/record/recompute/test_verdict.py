"""Verdicts by rule: outcome, gap and verdict follow from value, figure, relation and basis, and
from nothing else.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.record.recompute.verdict import (
    AXES,
    BOUNDED,
    CONFIRMED,
    DEPENDS_ON,
    GAP_KINDS,
    HOLDS,
    NONE_AGREES,
    OUTCOMES,
    SWAPPED_BASELINE,
    WITHIN_SPREAD,
    find_decisive_axes,
    judge_claim,
    judge_value,
    measure_gap,
)
from ipu_results.schema import table

FIGURES = st.floats(0.01, 1e6)


def test_words_of_the_schema_are_those_of_the_rules() -> None:
    assert set(HOLDS) == set(table("claims").choices("relation"))
    assert set(OUTCOMES) == set(table("recomputations").choices("outcome"))
    assert {table(name).choices("gap_kind") for name in ("claims", "recomputations")} == {GAP_KINDS}
    outcomes: tuple[list[str], ...] = (
        [],
        ["agrees"],
        ["last-digit"],
        ["reaches"],
        ["nearly-reaches"],
        [WITHIN_SPREAD],
        ["agrees", "differs"],
        *([outcome] for outcome in NONE_AGREES),
    )
    verdicts = {judge_claim(values, evidence) for values in outcomes for evidence in CONFIRMED}
    assert verdicts | {*DEPENDS_ON.values(), SWAPPED_BASELINE} == set(
        table("claims").choices("verdict")
    )


@pytest.mark.parametrize(
    ("relation", "claimed", "tolerance", "inside", "outside"),
    [
        ("eq", 3.7, 0.05, (3.66, 3.74), (3.59, 3.81)),
        ("rounded-or-cut", 17, 0.5, (16.5, 17.5), (16.49, 17.51)),
        ("more-than", 5, 0, (5.01, 500), (5, 4.9)),
        ("less-than", 3, 0, (2.99, 0), (3, 3.1)),
        ("just-over", 9, 1, (9, 9.99), (8.99, 10)),
        ("at-most", 300, 0.5, (300, 1), (300.1, 301)),
    ],
)
def test_relation_holds_within_its_bounds(
    relation: str,
    claimed: float,
    tolerance: float,
    inside: tuple[float, ...],
    outside: tuple[float, ...],
) -> None:
    for basis in ("own", "internal"):
        assert {judge_value(basis, relation, value, claimed, tolerance) for value in inside} == {
            "agrees"
        }
        assert {judge_value(basis, relation, value, claimed, tolerance) for value in outside} == {
            "differs"
        }


@given(
    st.sampled_from(BOUNDED),
    FIGURES,
    FIGURES,
    st.sampled_from([0.5, 0.05, 0.005]),
    st.sampled_from([0.0, 0.06]),
)
def test_outcome_of_a_later_sdk_never_falls_as_the_value_grows(
    relation: str, first: float, second: float, tolerance: float, margin: float
) -> None:
    order = {
        "falls-short": 0,
        "nearly-reaches": 1,
        "last-digit": 2,
        "agrees": 3,
        "within-sdk-spread": 4,
        "reaches": 5,
        "exceeds": 5,
    }
    ranks = [
        order[
            judge_value(
                "later-sdk", relation, value, 100.0, tolerance, sdk_margins=(margin, margin)
            )
        ]
        for value in sorted((first, second))
    ]
    assert ranks == sorted(ranks)


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (93.9, "falls-short"),
        (94.1, "nearly-reaches"),
        (99.9, "nearly-reaches"),
        (100.1, "within-sdk-spread"),
        (110.9, "within-sdk-spread"),
        (111.1, "exceeds"),
    ],
)
@pytest.mark.parametrize("relation", ["eq", "rounded-or-cut"])
def test_figure_of_a_later_sdk_counts_against_a_claim_above_as_below(
    relation: str, value: float, outcome: str
) -> None:
    assert (
        judge_value("later-sdk", relation, value, 100.0, 0.0005, sdk_margins=(0.06, 0.11))
        == outcome
    )
    assert judge_value("own", relation, value, 100.0, 0.0005, sdk_margins=(0.06, 0.11)) == "differs"


@pytest.mark.parametrize(
    ("relation", "claimed", "tolerance", "value", "outcome"),
    [
        ("eq", 20.66, 0.005, 20.6539, "last-digit"),
        ("eq", 20.66, 0.005, 20.6499, "differs"),
        ("rounded-or-cut", 3.4, 0.05, 3.3, "last-digit"),
        ("rounded-or-cut", 3.4, 0.05, 3.29, "differs"),
        ("eq", 6, 0.5, 7, "differs"),
        ("eq", 24, 0.5, 25, "last-digit"),
        ("more-than", 20.66, 0.005, 20.6539, "differs"),
    ],
)
def test_last_digit_is_one_unit_that_is_small_for_the_figure(
    relation: str, claimed: float, tolerance: float, value: float, outcome: str
) -> None:
    assert judge_value("own", relation, value, claimed, tolerance) == outcome


@pytest.mark.parametrize(
    ("relation", "value", "spread", "kind"),
    [
        ("eq", 5.78, None, "none"),
        ("more-than", 6.0, None, "none"),
        ("eq", 5.784, None, "last-digit"),
        ("eq", 5.7899, None, "last-digit"),
        ("eq", 5.88, (5.26, 6.5), "within-run-to-run-spread"),
        ("eq", 5.88, (5.8, 6.0), "beyond"),
        ("eq", 5.88, (5.78, 6.0), "within-run-to-run-spread"),
        ("eq", 5.68, (5.5, 5.78), "within-run-to-run-spread"),
        ("eq", 5.88, None, "beyond"),
        ("more-than", 5.7, None, "beyond"),
    ],
)
def test_gap_has_a_size_and_a_kind(
    relation: str, value: float, spread: tuple[float, float] | None, kind: str
) -> None:
    gap = measure_gap(relation, value, 5.78, 0.005, spread, within=False)
    assert gap.kind == kind
    assert gap.percent == pytest.approx(100 * (value - 5.78) / 5.78)
    assert measure_gap("eq", 2.0, 0.0, 0.5, None, within=False) == (None, "beyond")
    assert measure_gap("eq", 0.0, 0.0, 0.5, None, within=False) == (0.0, "none")


@pytest.mark.parametrize(
    ("evidence", "outcomes", "expected"),
    [
        ("own", ["agrees", "agrees"], "confirmed"),
        ("internal", ["agrees"], "confirmed-internally"),
        ("circular", ["agrees"], "circular"),
        ("later-sdk", ["agrees"], "reached-by-later-sdk"),
        ("own", ["agrees", "differs"], "depends-on-baseline"),
        ("internal", ["differs", "agrees"], "depends-on-baseline"),
        ("own", ["differs"], "contradicted"),
        ("circular", ["differs", "differs"], "contradicted"),
        ("own", [], "not-recomputable"),
        ("later-sdk", ["reaches"], "reached-by-later-sdk"),
        ("later-sdk", ["agrees", "within-sdk-spread"], "reached-by-later-sdk"),
        ("own", ["last-digit", "agrees"], "last-digit-differs"),
        ("later-sdk", ["last-digit"], "last-digit-differs"),
        ("later-sdk", ["reaches", "last-digit"], "last-digit-differs"),
        ("later-sdk", ["nearly-reaches"], "nearly-reached-by-later-sdk"),
        ("later-sdk", ["within-sdk-spread", "nearly-reaches"], "nearly-reached-by-later-sdk"),
        ("later-sdk", ["last-digit", "nearly-reaches"], "nearly-reached-by-later-sdk"),
        ("own", ["last-digit", "differs"], "depends-on-baseline"),
        ("later-sdk", ["within-sdk-spread", "falls-short"], "depends-on-baseline"),
        ("later-sdk", ["within-sdk-spread", "exceeds"], "depends-on-baseline"),
        ("later-sdk", ["falls-short", "falls-short"], "not-supported"),
        ("later-sdk", ["exceeds", "exceeds"], "exceeded-by-later-sdk"),
        ("later-sdk", ["falls-short", "exceeds"], "depends-on-baseline"),
        ("own", ["within-spread", "within-spread"], "within-run-to-run-spread"),
        ("own", ["within-spread", "agrees"], "depends-on-baseline"),
        ("own", ["within-spread", "differs"], "depends-on-baseline"),
    ],
)
def test_verdict_follows_from_the_outcomes(
    evidence: str, outcomes: list[str], expected: str
) -> None:
    assert judge_claim(outcomes, evidence) == judge_claim(outcomes[::-1], evidence) == expected


@given(
    st.sampled_from(("eq", "rounded-or-cut")),
    FIGURES,
    st.sampled_from([0.5, 0.05, 0.005]),
    st.sampled_from(["higher", "lower"]),
    st.sampled_from([0.0, 0.06]),
)
def test_claim_is_reached_only_at_or_above_its_figure(
    relation: str, value: float, tolerance: float, direction: str, margin: float
) -> None:
    outcome = judge_value(
        "later-sdk", relation, value, 100.0, tolerance, None, (margin, margin), direction
    )
    is_reached = value <= 100 if direction == "lower" else value >= 100
    assert (judge_claim([outcome], "later-sdk") == "reached-by-later-sdk") <= is_reached
    assert (outcome in {"falls-short", "nearly-reaches", "last-digit"}) == (not is_reached)


def test_figure_of_a_later_sdk_that_only_rounds_to_the_claim_does_not_reach_it() -> None:
    assert judge_value("later-sdk", "eq", 3.36, 3.4, 0.05) == "last-digit"
    assert judge_value("later-sdk", "eq", 3.44, 3.4, 0.05) == "agrees"
    assert judge_value("own", "eq", 3.36, 3.4, 0.05) == "agrees"


@pytest.mark.parametrize(
    ("outcomes", "axes", "expected", "decisive"),
    [
        (["agrees", "differs"], ["r less", "r more"], "depends-on-reading", ["reading"]),
        (["agrees"] * 2 + ["differs"], ["r less"] * 2 + ["r more"], "depends-on-reading", None),
        # what decides is none of the axes
        (["agrees", "differs"], ["r less", "r less"], "depends-on-baseline", []),
        (
            ["agrees", "differs", "differs"],
            ["r less", "r less", "r more"],
            "depends-on-baseline",
            [],
        ),
        (["agrees", "agrees"], ["r less", "r more"], "confirmed", []),
        (["differs", "differs"], ["r less", "r more"], "contradicted", []),
        (["agrees", "differs"], ["d open", "d closed"], "depends-on-division", ["division"]),
        (["within-spread", "differs"], ["d closed", "d open"], "depends-on-division", None),
        (["agrees", "differs"], ["s 16", "s 128"], "depends-on-system", ["system"]),
        (["agrees", "differs"], ["f one.csv", "f two.csv"], "depends-on-source", ["source"]),
        (
            ["agrees", "differs", "differs", "differs"],
            ["d open, r less", "d open, r more", "d closed, r less", "d closed, r more"],
            "depends-on-division",
            ["division", "reading"],
        ),
        # the division does not matter: each has both outcomes by the reading
        (
            ["agrees", "differs", "agrees", "differs"],
            ["d open, r less", "d open, r more", "d closed, r less", "d closed, r more"],
            "depends-on-reading",
            ["reading"],
        ),
        (["falls-short", "exceeds"], ["r part", "r whole"], "depends-on-reading", ["reading"]),
    ],
)
def test_verdict_names_what_the_claim_rests_on(
    outcomes: list[str], axes: list[str], expected: str, decisive: list[str] | None
) -> None:
    letters = dict(zip("dsfr", AXES, strict=True))
    parts = [{letters[part[0]]: part[2:] for part in text.split(", ")} for text in axes]
    named = [tuple(part.get(axis) for axis in AXES) for part in parts]
    evidence = "later-sdk" if "exceeds" in outcomes else "own"
    assert (
        judge_claim(outcomes, evidence, named)
        == judge_claim(outcomes[::-1], evidence, named[::-1])
        == expected
    )
    if decisive is not None:
        assert list(find_decisive_axes(outcomes, named)) == decisive


@pytest.mark.parametrize("claimed", [5.2, 500.0, -3.0])
def test_difference_within_the_spread_of_the_runs_is_neither_confirmed_nor_contradicted(
    claimed: float,
) -> None:
    assert judge_value("own", "eq", 5.2, claimed, 0.05, within_spread=True) == WITHIN_SPREAD
    assert judge_value("own", "eq", 5.2, claimed, 0.05, within_spread=False) != WITHIN_SPREAD
    assert judge_value("own", "eq", 5.2, claimed, 0.05) != WITHIN_SPREAD
