"""Which rows the views of the analyses compare: on the record, and of made-up rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Query
from tests.doors.analyses.analysis_support import (
    BASES,
    CHANGES,
    TRAINED,
    Row,
    changed,
    copy_result,
    make_warehouse,
    read_change,
    read_toml,
)

FACTS = read_toml("facts.toml")["fact"]
CASES = read_toml("cases.toml")["case"]
DOCUMENTS = [{"document_id": name, "kind": "transcription"} for name in ("page", "paper")]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: " ".join(fact["sql"].split()))
def test_figures_of_the_record(query: Query, fact: dict[str, str]) -> None:
    assert_rows(query, fact)


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case["sql"].split()))
def test_made_up_rows(case: dict[str, Any]) -> None:
    rows = []
    for row in case["rows"]:
        filled = {**BASES[row.get("like", case["like"])], **row, "like": "null"}
        rows.append({name: value for name, value in filled.items() if value != "null"})
    flags = []
    for result_id in case.get("flagged", ()):
        flags.append({"result_id": result_id, "rule": "R10", "severity": "error"})
    others = case.get("others", {})
    assert_rows(make_warehouse(rows, flags, documents=DOCUMENTS, **others).query, case)


def assert_rows(query: Query, expected: dict[str, Any]) -> None:
    """Check that a statement gives the rows of `is`; a figure may differ in its last digits."""
    rows = query(expected["sql"])
    for row, stated in zip(rows, query(expected["is"]), strict=True):
        for value, figure in zip(row, stated, strict=True):
            if isinstance(figure, float | Decimal):
                assert float(value) == pytest.approx(float(figure)), row
            else:
                assert value == figure, row


# pairs that differ in one thing

PAIRS = read_toml("pairs.toml")
POPART = {**TRAINED, "framework": "PopART", "sdk_version": "3.0"}
PYTORCH = {**POPART, "framework": "PyTorch", "throughput": 90.0}


@pytest.mark.parametrize("case", PAIRS["pair"], ids=lambda case: case["view"])
def test_any_other_difference_makes_no_pair(case: dict[str, Any]) -> None:
    """Each difference is that of two rows of a model of their own; two without one are a pair."""
    differences: list[Row] = [{}, {"sdk_version": None}, {"batch_size": None}, *PAIRS["other"]]
    for name in case["differs"]:
        differences.append({name: PAIRS["values"][name]})
    base = BASES[case["like"]]
    rows = []
    for at, difference in enumerate(differences):
        model = {"model_printed": f"Net {at}"}
        rows.append({**base, **case["first"], **model})
        rows.append({**base, **case["second"], **difference, **model})
    paired = make_warehouse(rows).query(f"SELECT DISTINCT model FROM {case['view']}")
    assert paired == [("Net 0",)]


# the built rows with some changed


@pytest.mark.parametrize("case", CHANGES["rows"], ids=lambda case: " ".join(case["sql"].split()))
def test_changed_record_changes_the_rows(warehouse: Path, case: dict[str, str]) -> None:
    with changed(warehouse, read_change(case)) as database:
        assert_rows(database.query, case)


@pytest.mark.parametrize("case", CHANGES["copies"], ids=lambda case: case["of"])
def test_row_of_another_test_is_not_compared(warehouse: Path, case: dict[str, Any]) -> None:
    """Each copy would make the ratio ten times larger, or more, if it were compared."""
    copies = []
    for number, other in enumerate(case["others"]):
        values = {"result_id": f"'{number}'", "throughput": case["throughput"], **other}
        copies.append(copy_result(case["where"], **values))
    with changed(warehouse, *copies) as database:
        assert_rows(database.query, case)
