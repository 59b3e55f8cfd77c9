"""Figures of papers by others than the maker: they agree with the rest of their row, or a
contradiction says so.
"""

from __future__ import annotations

import pytest

from tests.conftest import Query

IMAGENET = 1_281_167
CARAML = "independent-caraml-2024"


@pytest.mark.parametrize(
    ("where", "items", "rows"),
    [
        ("model = 'GPT-117M'", "batch_size", 9),
        ("model LIKE 'ResNet-50%'", str(IMAGENET), 60),
        ("model = 'GPT-800M'", "throughput * 3600", 61),
    ],
)
def test_energy_and_efficiency_agree_within_the_printed_digits(
    query: Query, where: str, items: str, rows: int
) -> None:
    hits = query(f"""
        SELECT {items} / (f.value / 3600), efficiency * 3600, f.value / 3600, conditions
        FROM results
        JOIN figures f USING (result_id)
        WHERE document_id = '{CARAML}' AND metric = 'run_energy_j' AND {where}
    """)
    assert len(hits) == rows
    for computed, printed, energy, conditions in hits:
        energy_digit = 0.5 if energy.is_integer() and energy >= 40 else 0.005
        printed_digit = 1000 if "one hour" in conditions else 1  # figure 2 cuts to thousands
        assert abs(computed - printed) <= computed * energy_digit / energy + printed_digit


def test_unit_of_gpt_is_a_sequence_and_its_energy_that_of_an_epoch(query: Query) -> None:
    """CARAML: README, 2,048 in 11.17 s; table II, 15.68 Wh of one IPU at batch 64, of an epoch of
    four steps.
    """
    row = "model = 'GPT-117M' AND batch_size = 2048 AND throughput IS NOT NULL"
    rates = query(f"SELECT DISTINCT item, throughput FROM results WHERE {row}")
    assert rates == [("sequence", 183.37)]
    found = (
        "FROM flags JOIN results USING (result_id)"
        " WHERE model = 'GPT-117M' AND batch_size = 64 AND severity = 'error'"
    )
    assert query(f"SELECT rule, contains(message, 'caraml-gpt-unit') {found}") == [("R29", True)]
    assert query("SELECT count(*) FROM energy_per_item WHERE model = 'GPT-117M'") == [(0,)]
    added = query(
        "SELECT (own ->> 'value')::DOUBLE FROM (SELECT unnest(recomputed::JSON[]) AS own"
        " FROM contradictions WHERE contradiction_id = 'caraml-gpt-unit')"
        " WHERE contains(own ->> 'baseline', 'add to')"
    )
    assert [150 < watts < 180 for (watts,) in added] == [True] * 5
