"""What is odd about a log or a scaling factor is said in the list of findings and in both tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.mlperf.mlperf_support import (
    FOUR,
    OPEN,
    PLACE,
    entry,
    evaluation,
    line,
    load_cases,
    log,
    score_one,
    write,
)

CASES = load_cases("findings")
EVALUATED = evaluation(9, epoch_num=1)
MINUTES = (10, 11, 12, 13, 20)
ODD_MINUTES = 15  # of the log that is odd: no other has them


def assert_odd(root: Path, written: bytes, message: str) -> None:
    """Check what is said of the last of five logs."""
    entry(root, [*FOUR, written])
    record, runs, findings = score_one(root)
    assert [run["counted"] for run in runs] == [True] * 5
    assert [run["findings"] for run in runs] == [None] * 4 + [message]
    assert record["findings"] == message
    assert findings == [f"{PLACE}/resnet/result_4.txt: {message}"]


@pytest.mark.parametrize("case", CASES["odd"], ids=lambda case: case["message"])
def test_an_odd_log_is_a_finding_in_the_list_and_in_both_tables(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    assert_odd(tmp_path, log(ODD_MINUTES, inner=write(case["lines"])), case["message"])


def test_times_in_seconds_are_a_finding(tmp_path: Path) -> None:
    def divide(found: re.Match[bytes]) -> bytes:
        return b"%d" % (float(found[0]) / 1000)

    written = log(ODD_MINUTES, inner=EVALUATED)
    seconds = re.sub(rb'(?<="time_ms": )[\d.]+', divide, written)
    assert_odd(tmp_path, seconds, "its times may be in seconds; they are read as milliseconds")


@pytest.mark.parametrize("case", CASES["usual"], ids=str)
def test_a_usual_log_is_no_finding(tmp_path: Path, case: dict[str, Any]) -> None:
    inner = EVALUATED + write(case["lines"])
    entry(tmp_path, [log(minutes, inner=inner) for minutes in MINUTES])
    record, _, findings = score_one(tmp_path)
    assert record["findings"] is None
    assert findings == []


def test_a_log_may_name_its_benchmark_as_its_folder_does_not(tmp_path: Path) -> None:
    inner = evaluation(9, {"BBOX": 0.38, "SEGM": 0.34}, epoch_num=1)
    inner += line("submission_benchmark", 0, "maskrcnn")
    entry(tmp_path, [log(minutes, inner=inner) for minutes in MINUTES], "mask")
    _, _, findings = score_one(tmp_path)
    assert findings == []


def test_an_open_log_needs_no_evaluation(tmp_path: Path) -> None:
    entry(tmp_path, [log(minutes, inner=b"") for minutes in MINUTES], described=OPEN)
    _, _, findings = score_one(tmp_path)
    assert findings == []


def test_what_runs_have_in_common_is_a_finding(tmp_path: Path) -> None:
    written = []
    for run, minutes in enumerate((10, 11, 11, 12, 13)):
        inner = EVALUATED + line("seed", 0, 7) + line("note", 0, run)
        written.append(log(minutes, gbs=None, inner=inner))
    entry(tmp_path, written)
    record, _, findings = score_one(tmp_path)
    alike = ["all 5 runs have the seed 7", "1 of 5 counted runs took the minutes of another one"]
    assert record["findings"] == " | ".join(alike)
    nothing = "none of its logs says its global batch size"
    assert findings == [f"{PLACE}/resnet: {message}" for message in [*alike, nothing]]
