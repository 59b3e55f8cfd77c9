"""What views that rank leave out, and what the record cannot answer."""

from __future__ import annotations

import pytest

from tests.conftest import Query

RANKING = (
    "inference",
    "training",
    "latest",
    "measurements",
    "energy_per_item",
    "peak_shares",
    "generations",
    "detail.latency_points",
    "detail.latency_front",
    "detail.latency_bounded",
    "detail.latency_lowest",
    "detail.generation_pairs",
    "detail.sdk_effect",
    "detail.framework_effect",
)
# they name the rows that they leave out
LEAVING_OUT = ("detail.latency_points", "detail.latency_front")


@pytest.mark.parametrize("view", RANKING)
def test_views_that_rank_hold_no_prediction_no_submission_and_each_measurement_once(
    query: Query, view: str
) -> None:
    wrong = "r.origin = 'emulated' OR r.relationship = 'submitted' OR r.same_as IS NOT NULL"
    sparse = "r.sparsity IS NOT NULL"
    if view in LEAVING_OUT:
        sparse += " AND v.left_out IS NULL"
    ids = f"SELECT column_name FROM (DESCRIBE {view}) WHERE column_name LIKE '%result_id'"
    names = query(ids)
    assert names
    for (name,) in names:
        rows = f"FROM {view} v JOIN results r ON r.result_id = v.{name}"
        counts = f"count(*) > 0, count(*) FILTER ({wrong} OR {sparse})"
        assert query(f"SELECT {counts} {rows}") == [(True, 0)]


def test_view_that_ranks_names_what_is_usable(query: Query) -> None:
    wrong = {name for (name,) in query("SELECT result_id FROM results WHERE NOT usable")}
    for view in RANKING:
        (row,) = query(f"SELECT list(COLUMNS('result_id$')) FROM {view} WHERE usable")
        named = {name for ids in row for name in ids}
        assert named, view
        assert not named & wrong, view
    for view in ("energy_per_item", "peak_shares"):
        flagged = "SELECT result_id FROM results WHERE errors > 0"
        rows = f"FROM {view} WHERE result_id IN ({flagged})"
        assert query(f"SELECT count(*) {rows}") == [(0,)], view


def test_rows_of_one_work_agree_in_model_phase_and_sequence(query: Query) -> None:
    parts = "count(DISTINCT model), count(DISTINCT phase), count(DISTINCT sequence_length)"
    mixed = f"SELECT work FROM training GROUP BY work HAVING greatest({parts}) > 1"
    assert query(mixed) == []
    mixed = "SELECT work FROM inference GROUP BY work HAVING count(DISTINCT model) > 1"
    assert query(mixed) == []


def test_no_pair_of_energies_may_be_quoted_and_the_reason_is_given(query: Query) -> None:
    assert query("SELECT count(*) FROM detail.energy_ipu_gpu WHERE NOT usable") == [(0,)]
    assert query(
        "SELECT task, model, rows, reason FROM unanswered WHERE view_name = 'energy_ipu_gpu'"
    ) == [("training", "ResNet-50 v1.5", 51, "each pair has a row that is not usable, by R29, R35")]


def test_unanswered_question_has_a_line_with_the_reason(query: Query) -> None:
    """What the views are silent about is in `unanswered`, and nothing that they answer is."""
    vendor = (
        "FROM measurements r JOIN platforms p USING (platform)"
        " WHERE r.origin = 'published' AND benchmark IS NULL "
    )
    vendor += (
        "AND r.throughput IS NOT NULL AND relationship = 'vendor' AND p.family IN ('Mk1',"
        " 'Classic', 'Bow', 'C600')"
    )
    tests = f"SELECT DISTINCT task, model, platform {vendor}"
    answered = "SELECT DISTINCT task, model, platform FROM detail.sdk_effect"
    named = "SELECT task, model, platform FROM unanswered WHERE view_name = 'sdk_effect'"
    assert query(f"SELECT count(*) FROM ({tests} EXCEPT {answered} EXCEPT {named})") == [(0,)]
    assert query(f"SELECT count(*) FROM ({named} INTERSECT {answered})") == [(0,)]
    assert query("SELECT count(*) > 10 FROM unanswered WHERE reason = 'one SDK only'") == [(True,)]
    several = (
        "SELECT task, model, platform FROM results r"
        " JOIN unanswered u USING (task, model, platform)"
        " WHERE view_name = 'sdk_effect' AND reason = 'one SDK only' AND relationship = 'vendor'"
        " AND same_as IS NULL AND throughput IS NOT NULL GROUP BY ALL"
        " HAVING count(DISTINCT sdk_version) <> 1"
    )
    assert query(several) == []
