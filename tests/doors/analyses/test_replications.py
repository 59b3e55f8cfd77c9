"""Pairs of two parties, energy next to a GPU, and counted operations, by hand and with made-up
rows.
"""

from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest
from ipu_results.emulator import networks
from ipu_results.emulator.network import load_network
from ipu_results.kit.files import SCHEMA
from ipu_results.mlperf.interval import compute_t_quantile

from tests.conftest import Query
from tests.doors.analyses.analysis_support import BASES, Row, make_warehouse
from tests.doors.analyses.test_views import DOCUMENTS

COUNTS = tomllib.loads(
    (SCHEMA / "vocabulary" / "operation_counts.toml").read_text(encoding="utf-8")
)["model"]


@pytest.mark.parametrize(
    "machines", ["IPU", "other"]
)  # 9 works and 182: a table of quantiles, and an expansion
def test_summary_is_the_mean_over_works(query: Query, machines: str) -> None:
    where = f"parties LIKE 'vendor and %' AND machines = '{machines}'"
    works = query(
        f"SELECT count(*), avg(ln(ratio)) FROM replications WHERE counts AND {where} GROUP BY"
        " first_publisher, second_publisher, measure, model, test, chip, chip_count"
    )
    logs = [log for _, log in works]
    mean = sum(logs) / len(logs)
    error = math.sqrt(sum((log - mean) ** 2 for log in logs) / (len(logs) - 1) / len(logs))
    half = compute_t_quantile(0.95, len(logs) - 1) * error
    counts = (sum(pairs for pairs, _ in works), len(works))
    # `compute_t_quantile` stops at 200 degrees of freedom
    ends = [pytest.approx(math.exp(mean + width), rel=1e-5) for width in (0, -half, half)]
    assert query(
        "SELECT counted, works, mean_ratio, mean_low, mean_high FROM detail.replication_summary"
        f" WHERE parties = 'vendor and others' AND machines = '{machines}' AND vendor_part = 'all'"
    ) == [(*counts, *ends)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", COUNTS, ids=lambda entry: f"{entry['model']}-{entry.get('sequence', '')}"
)
def test_operation_counts_are_those_of_the_built_network(entry: dict[str, Any]) -> None:
    options = {"sequence": entry["sequence"]} if "sequence" in entry else {}
    program = load_network(networks.build(entry["built"], **options))(1)
    activations = sum(operator.elements for operator in program.operators)
    assert (entry["macs"], entry["parameters"], entry["activations"]) == (
        program.macs,
        program.parameters,
        activations,
    )


# throughput of the vendor and of a lab

VENDOR = BASES["vendor"]
LAB = BASES["lab"]


@pytest.mark.parametrize(
    ("facts", "part"),
    [
        ([("paper", "none stated")], "none stated"),
        # `page` is the vendor's
        ([("paper", "machine"), ("paper", "author"), ("page", "code")], "author, machine"),
        ([("paper: Lab", "code"), ("paper: Other lab", "author")], "code"),
    ],
)
def test_part_of_the_vendor_follows_from_facts(facts: list[tuple[str, str]], part: str) -> None:
    known = []
    for at, (subject, text) in enumerate(facts):
        fact = {"fact_id": str(at), "subject": subject, "text_value": text}
        known.append({**fact, "property": "part of the vendor"})
    machines = [{"platform": "IPU-POD16", "chip": "GC200", "family": "Classic"}]
    database = make_warehouse([VENDOR, LAB], documents=DOCUMENTS, facts=known, platforms=machines)
    assert database.query("SELECT vendor_part FROM replications") == [(part,)]


# official entries of a maker and of others

ENTRY = {
    "round": "3.0",
    "benchmark": "net",
    "division": "closed",
    "chip_count": 8,
    "nodes": 1,
    "minutes": 10.0,
    "global_batch_size": 64,
    "host_processor": "cpu",
    "chip_printed": "X H9",
    "framework": "PyTorch",
    "document_id": "page-2",
    "usable": True,
}
OFFICIAL = {"origin": "official", "publisher": "MLCommons", "model_printed": "Net"}
OFFICIAL |= {"task": "training", "platform": "S", "chip": "X H9"}
MAKER: Row = {**ENTRY, "submitter": "Maker"}
OTHER: Row = {**ENTRY, "submitter": "Lab", "minutes": 8.0}
COUNTED = (1.25, True, None, None)
WHY = "the set-up explains it"
SEVERAL = "a party lists several frameworks and not which of them ran"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"framework": "TensorFlow"}, [(1.25, False, "framework", WHY)]),
        ({"nodes": 2}, [(1.25, False, "number of hosts", WHY)]),
        ({"global_batch_size": 129}, [(1.25, False, "batch", WHY)]),
        ({"host_processor": "other"}, [(1.25, True, "host processor", None)]),
        ({"framework": "MXNet, PyTorch"}, [(1.25, False, None, SEVERAL)]),
        ({"sha256": "0"}, [(1.25, False, None, "both entries have a log in common")]),
        ({"submitter": "Maker"}, []),
        ({"chip_count": 16}, []),
        ({"benchmark": "ssd"}, []),
        ({"round": "3.1"}, []),
        ({"division": "open"}, []),
    ],
)
def test_pair_of_official_entries(change: Row, expected: list[tuple[object, ...]]) -> None:
    assert pair_entries(MAKER, {**OTHER, **change}) == expected


def test_a_maker_is_paired_with_every_other_party() -> None:
    third = {**OTHER, "submitter": "Other lab", "minutes": 20.0}
    assert pair_entries(MAKER, OTHER, third) == [COUNTED, (0.5, True, None, None)]


def pair_entries(*entries: Row) -> list[tuple[Any, ...]]:
    """Return the pairs of official entries: ratio, whether it counts, what differs, and why not."""
    results = []
    filled = []
    runs = []
    for at, entry in enumerate(entries):
        path = f"{at}/net"
        filled.append({**entry, "result_id": str(at), "path": path})
        result = {**OFFICIAL, "chip_count": entry["chip_count"], "framework": entry["framework"]}
        result["interest"] = "maker" if entry["submitter"] == "Maker" else "neither"
        results.append(result)
        run = {"round": "3.0", "path": path, "file": "f", "copies": 2}
        runs.append({**run, "sha256": entry.get("sha256", str(at))})
    platforms = [{"platform": "S", "chip": "X H9", "family": "Maker"}]
    database = make_warehouse(results, platforms=platforms, mlperf_entries=filled, mlperf_runs=runs)
    columns = "SELECT ratio, counts, differs, reason FROM replications ORDER BY second_result_id"
    return database.query(columns)


# energy


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ({}, [(2.5, pytest.approx(4.0), "device", "board")]),
        ({"suspect": "drift"}, []),
        ({"batch_size": 32}, []),
        ({"document_id": "paper"}, []),
    ],
)
def test_energy_of_an_image_next_to_the_gpu(gpu: Row, expected: list[tuple[object, ...]]) -> None:
    """10 images a joule on an IPU, and 4 on a GPU of 400 W at 1,000 images/s."""
    ipu = {**VENDOR, "chip_count": 1, "power_scope": "device", "efficiency": 10.0}
    other = {**ipu, "platform": "1x X", "chip": "X", "throughput": 1000.0, "efficiency": 4.0}
    other |= {"power_scope": "board", **gpu}
    machines = [
        {"platform": "IPU-POD16", "chip": "GC200", "family": "Classic"},
        {"platform": "1x X", "chip": "X", "family": "NVIDIA X", "rated_chip_power_w": 400.0},
    ]
    database = make_warehouse([ipu, other], documents=DOCUMENTS, platforms=machines)
    columns = "energy_ratio, energy_ratio_at_gpu_rating, ipu_power_scope, gpu_power_scope"
    assert database.query(f"SELECT {columns} FROM detail.energy_ipu_gpu") == expected
