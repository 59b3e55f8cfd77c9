"""The official record in the warehouse: tables, ids, comparability, attribution, and rule R12."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.conftest import Query
from tests.doors.analyses.test_views import assert_rows
from tests.mlperf.mlperf_support import load_cases
from tests.record.check.rules_support import change, load_dataset, pick, run

FACTS = load_cases("facts")["fact"]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: " ".join(fact["sql"].split()))
def test_figures_of_the_record(fact: dict[str, str], query: Query) -> None:
    assert_rows(query, fact)


PRINTED = "mlperf_v2_training 2"  # 2.0-2050, ResNet-50 v1.5


def compare_printed(minutes: float, printed: str, mlperf_id: str = "2.0-2050") -> pd.DataFrame:
    """Apply R12 to a published row that prints `printed` minutes and an official entry of
    `minutes`.
    """
    tables = change(pick(PRINTED), PRINTED, time_to_train_s=printed)
    official = load_dataset()["results"].query("origin == 'official'")
    entries = tables["mlperf_entries"].query("mlperf_id == '2.0-2050'")
    assert len(entries) == 1
    tables["results"] = pd.concat([tables["results"], official], ignore_index=True)
    tables["mlperf_entries"] = entries.assign(minutes=minutes, mlperf_id=mlperf_id)
    return run(tables, "R12")


@pytest.mark.parametrize(
    ("minutes", "printed"), [(6.302183, "6.30"), (6.304999, "6.3"), (6.2951, "6.30")]
)
def test_rule_12_compares_at_the_printed_digits(minutes: float, printed: str) -> None:
    assert compare_printed(minutes, printed).empty


@pytest.mark.parametrize(
    ("minutes", "severity", "suggested"),
    [
        (6.3051, "info", "378.6"),
        (6.35, "warn", "381"),
        (6.399, "warn", "384"),
        (6.41, "error", "384.6"),
        (6302.183, "error", "378130.8"),
    ],
)
def test_rule_12_suggests_the_official_seconds(
    minutes: float, severity: str, suggested: str
) -> None:
    [flag] = compare_printed(minutes, "6.30").to_dict("records")
    assert flag["severity"] == severity
    assert flag["column_name"] == "time_to_train_s"
    assert flag["suggested"] == suggested


def test_rule_12_names_an_id_without_an_entry() -> None:
    [flag] = compare_printed(6.302183, "6.30", mlperf_id="2.0-9999").to_dict("records")
    assert flag["severity"] == "warn"
    assert flag["column_name"] == "mlperf_id"
