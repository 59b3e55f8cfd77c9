"""The theoretical peaks of chips: what is certain of them, and where the record says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peaks import run
from benchmarks.report import Options
from tests.cases import every_case
from tests.conftest import Query, run_cli


@every_case(__file__, "standing")
def test_standing_says_who_states_a_peak(
    chip: str, precision: str, standing: str, lowest: float, highest: float, query: Query
) -> None:
    found = query(f"""
        SELECT standing, lowest_tflops, highest_tflops
        FROM detail.peak_standings
        WHERE chip = '{chip}' AND precision = '{precision}' AND sparsity = 'dense'
    """)
    assert found == [(standing, lowest, highest)]


def test_a_peak_leads_to_its_source_and_to_the_best_product_measured(query: Query) -> None:
    assert query("SELECT count(*) FROM peaks WHERE url = '' OR place = '' OR dated = ''") == [(0,)]
    [(peak, measured, microbenchmark_id)] = query("""
        SELECT tflops, measured_tflops, microbenchmark_id FROM peaks
        WHERE chip = 'A30' AND precision = 'FP32'
    """)
    assert (peak, measured) == (10.3, 9.7)
    found = f"SELECT chip FROM microbenchmarks WHERE microbenchmark_id = '{microbenchmark_id}'"
    assert query(found) == [("A30",)]
    assert query("SELECT count(*) FROM peaks WHERE measured_tflops > highest_tflops") == [(0,)]


def test_platforms_have_the_same_peaks(query: Query) -> None:
    differing = query("""
        WITH stated AS (
            UNPIVOT (SELECT DISTINCT chip, COLUMNS('^peak_.*ops$') FROM platforms)
            ON * EXCLUDE (chip) INTO NAME bound VALUE tflops
        )
        SELECT s.chip, s.bound, s.tflops, p.highest_tflops
        FROM stated s
        JOIN detail.peak_standings p
            ON p.precision = upper(split_part(s.bound, '_', 2)) AND p.sparsity = 'dense'
            AND list_has_all(list_words(s.chip), list_words(p.chip))
        WHERE abs(s.tflops / p.highest_tflops - 1) > 0.001
    """)
    assert differing == []


def test_every_reported_mistake_is_contradicted() -> None:
    [target] = run(Options()).targets
    assert target.met


@pytest.mark.parametrize("selected", ["tflops", "max(tflops)", "count(*)"])
def test_an_unknown_chip_is_answered_with_the_nearest(selected: str, warehouse: Path) -> None:
    sql = f"SELECT {selected} FROM peaks WHERE chip = 'H100 PCI' AND precision = 'BF16'"
    done = run_cli("query", sql, "--warehouse", warehouse)
    assert "H100 PCIe" in done.stderr
