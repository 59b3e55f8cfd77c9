"""Pairs of two parties, energy next to a GPU, and counted operations, by hand and with made-up
rows.
"""

from __future__ import annotations

import math
import tomllib
from statistics import mean, stdev
from typing import Any

import pytest
from ipu_results.emulator import networks
from ipu_results.emulator.network import load_network
from ipu_results.kit.files import SCHEMA
from ipu_results.mlperf.interval import compute_t_quantile

from tests.cases import every_case, read_cases
from tests.conftest import Query
from tests.doors.analyses.analysis_support import Row, make_warehouse

COUNTS = tomllib.loads((SCHEMA / "vocabulary" / "operation_counts.toml").read_text())["model"]


# 9 works and 182: a table of quantiles, and an expansion
@pytest.mark.parametrize("machines", ["IPU", "other"])
def test_summary_is_the_mean_over_works(query: Query, machines: str) -> None:
    where = f"parties LIKE 'vendor and %' AND machines = '{machines}'"
    works = query(
        f"SELECT count(*), avg(ln(ratio)) FROM replications WHERE counts AND {where} GROUP BY"
        " first_publisher, second_publisher, measure, model, test, chip, chip_count"
    )
    pairs = sum(count for count, _ in works)
    logs = [log for _, log in works]
    middle = mean(logs)
    # `compute_t_quantile` stops at 200 degrees of freedom
    half = compute_t_quantile(0.95, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    [summary] = query(
        "SELECT counted, works, mean_ratio, mean_low, mean_high FROM detail.replication_summary"
        f" WHERE parties = 'vendor and others' AND machines = '{machines}' AND vendor_part = 'all'"
    )
    assert summary[:2] == (pairs, len(logs))
    expected = [math.exp(middle), math.exp(middle - half), math.exp(middle + half)]
    assert summary[2:] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("entry", COUNTS, ids=lambda entry: entry["model"])
def test_operation_counts_are_those_of_the_built_network(entry: dict[str, Any]) -> None:
    options = {"sequence": entry["sequence"]} if "sequence" in entry else {}
    program = load_network(networks.build(entry["built"], **options))(1)
    assert entry["macs"] == program.macs
    assert entry["parameters"] == program.parameters
    assert entry["activations"] == sum(operator.elements for operator in program.operators)


# official entries of a maker and of others


OFFICIAL_CASES = read_cases(__file__)
ENTRY = OFFICIAL_CASES["entry"]
OFFICIAL = OFFICIAL_CASES["official"]
MAKER = {"submitter": "Maker"}
OTHER = {"submitter": "Lab", "minutes": 8.0}


@every_case(__file__, "pairs")
def test_pair_of_official_entries(change: Row, pairs: list[str]) -> None:
    assert pair_entries(MAKER, {**OTHER, **change}) == pairs


def test_a_maker_is_paired_with_every_other_party() -> None:
    third = {**OTHER, "submitter": "Other lab", "minutes": 20.0}
    assert pair_entries(MAKER, OTHER, third) == ["1.25 counts", "0.5 counts"]


def pair_entries(*entries: Row) -> list[str]:
    """Return the pairs of official entries: ratio, what differs, and whether it counts, or why not."""
    results = []
    filled = []
    runs = []
    for at, entry in enumerate(entries):
        path = f"{at}/net"
        filled.append({**ENTRY, **entry, "result_id": str(at), "path": path})
        interest = "maker" if entry["submitter"] == "Maker" else "neither"
        result = {"chip_count": filled[-1]["chip_count"], "framework": filled[-1]["framework"]}
        results.append({**OFFICIAL, **result, "interest": interest})
        run = {"round": "3.0", "path": path, "file": "f", "copies": 2}
        runs.append({**run, "sha256": entry.get("sha256", str(at))})
    platforms = [{"platform": "S", "chip": "X H9", "family": "Maker"}]
    database = make_warehouse(results, platforms=platforms, mlperf_entries=filled, mlperf_runs=runs)
    rows = database.query("""
        SELECT concat_ws(' ', ratio, differs, CASE WHEN counts THEN 'counts' ELSE reason END)
        FROM replications
        ORDER BY second_result_id
    """)
    return [text for (text,) in rows]
