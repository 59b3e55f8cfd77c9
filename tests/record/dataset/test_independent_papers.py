"""Figures of papers by others than the maker: they agree with the rest of their row, or a
contradiction says so.
"""

from __future__ import annotations

import pytest

from tests.conftest import Query

IMAGENET = 1_281_167
CARAML = "independent-caraml-2024"


def test_unit_of_the_gpt_table_is_that_of_its_code(query: Query) -> None:
    """The table heads the rate tokens; README and code of the benchmark count sequences of 1,024
    tokens.
    """
    cells = query(f"""
        SELECT column_name, raw_text, unit, source_locator
        FROM cells
        WHERE document_id = '{CARAML}' AND raw_text IN ('64.99', '15.68', '4.08')
        ORDER BY cell_number
    """)
    assert cells == [
        ("throughput", "64.99", "sequences/s", "page 8, table II, row 1, column Tokens/Time"),
        ("run_energy_j", "15.68", "Wh", "page 8, table II, row 1, column Energy/Epoch/IPU"),
        ("efficiency", "4.08", "sequences/Wh", "page 8, table II, row 1, column Tokens/Energy"),
    ]
    [hits] = query("""
        SELECT throughput, item, f.value, power_scope, chip_count, framework, sdk_version
        FROM results
        JOIN figures f USING (result_id)
        WHERE model = 'GPT-117M' AND batch_size = 64 AND metric = 'run_energy_j'
    """)
    assert hits == (64.99, "sequence", 15.68 * 3600, "device", 4, "PyTorch", "3.3")


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


def test_scaling_of_one_chip_to_many_is_that_of_the_paper(query: Query) -> None:
    hits = query("""
        SELECT chip_count, platform, throughput, f.value
        FROM results
        JOIN figures f USING (result_id)
        WHERE document_id = 'independent-tamu-aces-2022'
            AND metric = 'time_to_result_s'
            AND framework = 'TensorFlow1'
            AND micro_batch_size = 20
        ORDER BY chip_count
    """)
    assert hits == [
        (1, "1x GC200 (IPU-POD16)", 2130.0, 719.4),
        (2, "2x GC200 (IPU-POD16)", 3895.0, 393.4),
        (4, "4x GC200 (IPU-POD16)", 7804.0, 196.4),
        (8, "8x GC200 (IPU-POD16)", 15274.0, 99.7),
        (16, "IPU-POD16", 30170.0, 50.5),
        (64, "IPU-POD64", 107535.0, 11.8),
    ]


def test_measured_peaks_and_memory_bandwidths_are_microbenchmarks(query: Query) -> None:
    hits = query("""
        SELECT chip, precision, canonical_value, canonical_unit, place
        FROM microbenchmarks
        WHERE document_id IN (
                'independent-heidelberg-matmul-2023', 'independent-bristol-stencils-2021'
            )
            AND metric IN ('arithmetic throughput', 'bandwidth')
            AND chip IN ('GC200', 'A30', 'GC2')
        ORDER BY document_id, row_number
    """)
    assert [row[:4] for row in hits] == [
        *(("GC2", "32-bit", value, "GB/s") for value in (3726, 7261, 12420)),
        *(("GC2", "16-bit", value, "GB/s") for value in (1488, 7490)),
        ("GC200", "FP32", 44.2, "TFLOP/s"),
        ("A30", "FP32", 9.7, "TFLOP/s"),
        ("GC200", "FP32", 43.3, "TFLOP/s"),
    ]
    assert hits[0][4] == "page 4, table I, row 1, column Bandwidth"


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
