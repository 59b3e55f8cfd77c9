"""`ipu-results claims` as a user runs it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.conftest import Done, Query, run_cli

CLAIM = "sdk14-mcmc-speedup-17"
COLUMNS = set(
    "claim_id document_id figure verdict recomputed gap_percent gap_kind inputs reason".split()
)


def run_claims(warehouse: Path, *args: str) -> Done:
    done = run_cli("claims", *args, "--warehouse", warehouse)
    assert done.returncode == 0
    return done


def test_json_is_one_list_of_records(warehouse: Path, query: Query) -> None:
    done = run_claims(warehouse, "--format", "json")
    records = json.loads(done.stdout)
    assert done.stderr == ""
    assert [(len(records),)] == query("SELECT count(*) FROM claims")
    [speedup] = [record for record in records if record["claim_id"] == CLAIM]
    assert {*speedup} == COLUMNS
    assert speedup["recomputed"][0]["value"] == 17.6326530612  # 48 h / (200 * 49 s)
    assert (round(speedup["gap_percent"], 2), speedup["gap_kind"]) == (3.72, "beyond")
    row = "SELECT result_id FROM results WHERE model = 'MCMC TFP' AND platform = 'IPU-M2000'"
    [(result_id,)] = query(row)
    claims = ["claims:blog2020-mcmc-gpu-time", "claims:sdk14-mcmc-speedup-17"]
    assert speedup["inputs"] == [*claims, f"results:{result_id}"]


def test_csv_holds_the_same(warehouse: Path) -> None:
    done = run_claims(warehouse, CLAIM, "--format", "csv")
    [row] = csv.DictReader(io.StringIO(done.stdout))
    assert {*row} == COLUMNS
    assert row["verdict"] == "depends-on-reading"
    assert json.loads(row["recomputed"])[0]["value"] == 17.6326530612


def test_table_can_be_filtered(warehouse: Path) -> None:
    document = "graphcore-mk2-blog-2020-12-09"
    done = run_claims(warehouse, "--verdict", "contradicted", "--document", document)
    [line] = done.stdout.splitlines()[2:]
    assert line.startswith("blog2020-m2000-over-dgx-a100 ")
    assert "0.3359 … 0.4928" in line
    assert done.stderr == "1 claims\n"


def test_named_claim_is_printed_with_its_arithmetic(warehouse: Path) -> None:
    done = run_claims(warehouse, "sdk14-mcmc-speedup-27")
    for text in (
        "**depends-on-reading**",
        "Reason: “27x” fails read as one of 200 calculations (17.63);",
        "- ↓ 48 h × 3600 / (200 × 49 s) = 17.63",
        "200 calculations in a sliding window",
        "Gap: -35 %, beyond.",
        "Inputs: claims `blog2020-mcmc-gpu-time`, `sdk14-mcmc-speedup-17`; results `",
    ):
        assert text in done.stdout


def test_value_that_does_not_count_is_printed_with_its_reason(warehouse: Path) -> None:
    done = run_claims(warehouse, "blog2020-resnext101-training-throughput")
    [line] = [line for line in done.stdout.splitlines() if "2514 / 300.42" in line]
    assert line.startswith("- (↑) ")
    assert line.endswith(" · does not count: another precision of the A100 than the claim names")


def test_value_has_two_decimals_more_than_its_claim(warehouse: Path) -> None:
    """Four digits of the score behind 3.19 minutes, 3.18485417, would be 3.185, which rounds to
    3.19.
    """
    assert "3.1849" in run_claims(warehouse, "--verdict", "last-digit-differs").stdout


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["unknown-claim"], 2, "there is no claim 'unknown-claim'"),
        (["--document", "nothing"], 2, "choose from: google-tpu-v4-2023, graphcore-mk2-blog"),
        (["--verdict", "true"], 2, "is not one of confirmed, confirmed-internally"),
        (["--warehouse", "no-such-folder"], 1, "no-such-folder: contains no dataset"),
    ],
)
def test_wrong_usage_and_a_missing_warehouse_are_reported(
    args: list[str], status: int, message: str, warehouse: Path
) -> None:
    done = run_cli("claims", "--warehouse", warehouse, *args)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
