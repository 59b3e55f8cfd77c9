"""What is odd about a log or a scaling factor is said in the list of findings and in both tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.mlperf.mlperf_support import FIVE, SYSTEM, entry, evaluation, line, log, score_one, stop

PLACE = "ACME/results/acme1"
EVALUATED = evaluation(9, None, epoch_num=1)
SECONDS = re.sub(
    rb'(?<="time_ms": )[\d.]+', lambda match: b"%d" % (float(match[0]) / 1000), log(inner=EVALUATED)
)


@pytest.mark.parametrize(
    ("written", "benchmark", "message"),
    [
        (
            log(inner=EVALUATED + line("run_start", 1)),
            "resnet",
            "has 2 run_start lines; the last one before the run_stop counts",
        ),
        (log(inner=EVALUATED) + stop(11), "resnet", "has 2 run_stop lines; the first one counts"),
        (log(inner=b""), "resnet", "holds no readable evaluation; its quality is not checked"),
        (
            log(inner=evaluation(9, epoch_num="4")),
            "resnet",
            "holds no readable evaluation; its quality is not checked",
        ),
        (SECONDS, "resnet", "its times may be in seconds; they are read as milliseconds"),
        (
            log(inner=EVALUATED + line("submission_benchmark", 0, "bert")),
            "resnet",
            "is a log of bert by its submission_benchmark",
        ),
        (log(inner=EVALUATED + line("submission_benchmark", 0, "maskrcnn")), "mask", None),
        (log(inner=EVALUATED + line("submission_benchmark", 0, ["bert"])), "resnet", None),
        (log(inner=EVALUATED), "resnet", None),
    ],
)
def test_an_odd_log_is_a_finding_in_the_list_and_in_both_tables(
    tmp_path: Path, written: bytes, benchmark: str, message: str | None
) -> None:
    entry(tmp_path, [*FIVE[:4], written], benchmark)
    record, runs, findings = score_one(tmp_path)
    assert [run["counted"] for run in runs] == [True] * 5
    assert findings == ([f"{PLACE}/{benchmark}/result_4.txt: {message}"] if message else [])
    assert (record["findings"], [run["findings"] for run in runs]) == (
        message,
        [None] * 4 + [message],
    )


def test_an_open_log_needs_no_evaluation(tmp_path: Path) -> None:
    entry(
        tmp_path,
        [log(each, inner=b"") for each in (10, 11, 12, 13, 20)],
        described=SYSTEM | {"division": "open"},
    )
    assert score_one(tmp_path)[2] == []


@pytest.mark.parametrize(
    ("factor", "message"), [(0.5, "scaling_factor is 0.5: the rules have none below 1"), (1, None)]
)
def test_a_factor_below_one_is_a_finding(
    tmp_path: Path, factor: float, message: str | None
) -> None:
    entry(tmp_path, FIVE, scaling=json.dumps({"scaling_factor": factor}))
    record, _, findings = score_one(tmp_path)
    assert record["minutes"] == 12 * factor
    assert findings == ([f"{PLACE}/resnet/scaling.json: {message}"] if message else [])
    assert record["findings"] == message
