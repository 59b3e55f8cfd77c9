"""What is odd about a log or a scaling factor is said in the list of findings and in both tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mlperf.mlperf_support import (
    OPEN,
    PLACE,
    entry,
    evaluation,
    line,
    log,
    score_one,
)

EVALUATED = evaluation(9, epoch_num=1)
MASKED = evaluation(9, {"BBOX": 0.38, "SEGM": 0.34}, epoch_num=1)
ODD_MINUTES = 15  # of the log that is odd: no other has them


def make_log(inner: bytes) -> bytes:
    return log(ODD_MINUTES, inner=inner)


SECONDS = re.sub(
    rb'(?<="time_ms": )[\d.]+', lambda match: b"%d" % (float(match[0]) / 1000), make_log(EVALUATED)
)


@pytest.mark.parametrize(
    ("written", "benchmark", "message"),
    [
        (
            make_log(EVALUATED + line("run_start", 1)),
            "resnet",
            "has 2 run_start lines; the last one before the run_stop counts",
        ),
        (make_log(b""), "resnet", "holds no readable evaluation; its quality is not checked"),
        (
            make_log(evaluation(9, epoch_num="4")),
            "resnet",
            "holds no readable evaluation; its quality is not checked",
        ),
        (
            make_log(evaluation(9, "0.76", epoch_num=4)),
            "resnet",
            "holds no readable accuracy; its quality is not checked",
        ),
        (
            make_log(EVALUATED + line("submission_division", 0, "open")),
            "resnet",
            "is a log of the open division by its submission_division",
        ),
        (SECONDS, "resnet", "its times may be in seconds; they are read as milliseconds"),
        (
            make_log(EVALUATED + line("submission_benchmark", 0, "bert")),
            "resnet",
            "is a log of bert by its submission_benchmark",
        ),
        (make_log(EVALUATED + line("submission_division", 0, "closed")), "resnet", None),
        (make_log(MASKED + line("submission_benchmark", 0, "maskrcnn")), "mask", None),
        (make_log(EVALUATED + line("submission_benchmark", 0, ["bert"])), "resnet", None),
        (make_log(EVALUATED), "resnet", None),
    ],
)
def test_an_odd_log_is_a_finding_in_the_list_and_in_both_tables(
    tmp_path: Path, written: bytes, benchmark: str, message: str | None
) -> None:
    others = [log(each, inner=MASKED if benchmark == "mask" else None) for each in (10, 11, 12, 13)]
    entry(tmp_path, [*others, written], benchmark)
    record, runs, findings = score_one(tmp_path)
    assert [run["counted"] for run in runs] == [True] * 5
    assert findings == ([f"{PLACE}/{benchmark}/result_4.txt: {message}"] if message else [])
    assert record["findings"] == message
    assert [run["findings"] for run in runs] == [None] * 4 + [message]


def test_an_open_log_needs_no_evaluation(tmp_path: Path) -> None:
    entry(tmp_path, [log(each, inner=b"") for each in (10, 11, 12, 13, 20)], described=OPEN)
    assert score_one(tmp_path)[2] == []


def test_what_runs_have_in_common_is_a_finding(tmp_path: Path) -> None:
    inner = EVALUATED + line("seed", 0, 7)
    minutes = enumerate((10, 11, 11, 12, 13))
    different = [log(each, gbs=None, inner=inner + line("note", 0, run)) for run, each in minutes]
    entry(tmp_path, different)
    record, _, findings = score_one(tmp_path)
    alike = ["all 5 runs have the seed 7", "1 of 5 counted runs took the minutes of another one"]
    assert record["findings"] == " | ".join(alike)
    nothing = "none of its logs says its global batch size"
    assert findings == [f"{PLACE}/resnet: {message}" for message in [*alike, nothing]]


@pytest.mark.parametrize("seed", ["null", None])
def test_no_seed_is_not_the_same_seed(tmp_path: Path, seed: object) -> None:
    inner = EVALUATED + line("seed", 0, seed)
    entry(tmp_path, [log(each, inner=inner) for each in (10, 11, 12, 13, 20)])
    assert score_one(tmp_path)[2] == []
