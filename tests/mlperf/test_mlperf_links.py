"""What follows from made-up entries and runs, by the statements of a build."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ipu_results.schema.vocabulary import load_vocabulary

from tests.doors.analyses.test_views import assert_rows
from tests.mlperf.link_support import link_mlperf
from tests.mlperf.mlperf_support import load_cases

CASES = load_cases("linked")["case"]
POINT = {"round": "2.1", "benchmark": "resnet", "rcp_unit": "samples", "at_round": True}


def fill(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row in which "none" is null."""
    return {name: None if value == "none" else value for name, value in row.items()}


def list_runs(stated: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a run for each value of the lists, with a log of its own if none is given."""
    lists = [value for value in stated.values() if isinstance(value, list)]
    for number in range(len(lists[0])):
        run = {}
        for name, value in stated.items():
            run[name] = value[number] if isinstance(value, list) else value
        letters = run.pop("logs", None)
        yield {"sha256": letters[number] if letters else f"{run}{number}", **fill(run)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["fact"][0]["sql"])
def test_made_up_entries(case: dict[str, Any]) -> None:
    runs = []
    for stated in case.get("runs", ()):
        runs += list_runs(stated)
    entries = [fill(entry) for entry in case["entries"]]
    rcps = [{**POINT, **point} for point in case.get("rcps", ())]
    with link_mlperf(entries, runs, mlperf_rcp=rcps) as connection:
        for fact in case["fact"]:
            assert_rows(lambda sql: connection.sql(sql).fetchall(), fact)


def test_no_spelling_stands_for_two_names() -> None:
    names = {
        "NVIDIA A100-SXM4-80GB(400W)": "A100-SXM-80GB",
        "A100-SXM4-80GB": "A100-SXM-80GB",
        "NVIDIA A100-PCIE-80GB (300W)": "A100-PCIe-80GB",
        "N/A": None,
    }
    vocabulary = load_vocabulary()
    assert {text: vocabulary.name_chip(text) for text in names} == names
