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
