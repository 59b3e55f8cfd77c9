"""Verdicts over the real claims follow from the evidence behind them, whoever made the claim."""

from __future__ import annotations

import pytest

from tests.conftest import Query


def test_note_of_a_document_names_what_was_read(query: Query) -> None:
    """Of all, what was read; where something was not, what."""
    notes = "SELECT note FROM documents WHERE document_id IN (SELECT ledger_id FROM claims)"
    assert query(
        "SELECT count(*) > 10, bool_and(regexp_matches(note, 'Read: |text that was read'))"
        f" FROM ({notes})"
    ) == [(True, True)]


@pytest.mark.parametrize(
    "wrong",
    [
        # a figure of a later SDK, of a stand-in, or of the document alone never confirms
        (
            "c.verdict LIKE 'confirmed%' AND (c.basis = 'later-sdk' OR r.stand_in IS NOT NULL AND"
            " r.not_counted IS NULL)"
        ),
        "c.verdict = 'confirmed' AND c.basis <> 'own'",
        # a swapped baseline has its verdict, and no other claim has only such values
        "(c.verdict = 'swapped-baseline') <> (c.swapped_baseline IS NOT NULL)",
        "c.verdict <> 'swapped-baseline' AND r.stand_in IS NOT NULL AND r.not_counted IS NULL",
        # reached is at or above the figure, where more is better
        (
            "c.verdict = 'reached-by-later-sdk' AND r.not_counted IS NULL"
            " AND if(c.direction = 'lower', r.value > c.value, r.value < c.value)"
        ),
        # under another condition than the claim's a value counts for no side
        "r.departs IS NOT NULL AND r.not_counted IS NULL",
        # nothing is left out because it is too low, or too high
        "regexp_matches(r.not_counted, '(?i)too (low|high)|bound')",
    ],
)
def test_verdicts_are_two_sided_and_name_their_evidence(wrong: str, query: Query) -> None:
    assert (
        query(
            "SELECT DISTINCT c.claim_id FROM claims c JOIN recomputations r USING (claim_id)"
            f" WHERE {wrong}"
        )
        == []
    )


def test_circular_claims_are_those_without_a_measurement(query: Query) -> None:
    stated = """
        SELECT
            c.claim_id,
            bool_and(i.table_name IN ('claims', 'platforms', 'models'))
                AND bool_or(i.table_name = 'claims') AS circular,
            any_value(c.verdict) AS verdict
        FROM claims c
        JOIN recomputations r USING (claim_id)
        JOIN detail.recomputation_inputs i USING (claim_id, position)
        WHERE r.not_counted IS NULL
            AND c.verdict IN ('confirmed', 'confirmed-internally', 'circular')
        GROUP BY c.claim_id, position
    """
    wrong = (
        f"SELECT claim_id FROM ({stated}) GROUP BY 1"
        " HAVING bool_or(circular) <> (any_value(verdict) = 'circular')"
    )
    assert query(wrong) == []
    assert query("SELECT count(*) > 5 FROM claims WHERE verdict = 'circular'") == [(True,)]


def test_value_and_its_mirror_image_count_alike(query: Query) -> None:
    """Batches in flight raise a throughput and a latency: what cannot count against the one cannot
    count for the other.
    """
    used = """
        SELECT
            c.claim_id, p.not_counted
        FROM claims AS c
        JOIN recomputations AS p USING (claim_id)
        JOIN detail.recomputation_inputs AS i USING (claim_id, position)
        JOIN results AS r ON i.table_name = 'results' AND r.result_id = i.key
        WHERE r.latency_basis = 'several-in-flight'
            AND c.metric IN ('latency', 'throughput at lowest latency')
    """
    assert query(f"SELECT count(*) > 10 FROM ({used})") == [(True,)]
    assert query(f"SELECT DISTINCT claim_id FROM ({used}) WHERE not_counted IS NULL") == []


def test_every_claim_has_a_reason_with_its_figures(query: Query) -> None:
    assert query("SELECT claim_id FROM claims WHERE length(reason) < 20") == []
    assert (
        query("""
        SELECT claim_id FROM claims
        WHERE NOT contains(reason, figure) AND verdict <> 'not-recomputable'
    """)
        == []
    )
    assert (
        query("""
        SELECT claim_id FROM claims
        WHERE (verdict LIKE 'depends-on-%' AND verdict <> 'depends-on-baseline')
            <> (rests_on IS NOT NULL)
            OR verdict <> 'depends-on-' || split_part(rests_on, ',', 1)
    """)
        == []
    )
