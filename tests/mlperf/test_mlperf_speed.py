"""Speed apart from convergence: the parts of a run's minutes, and their sums over the runs of an
entry.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from ipu_results.mlperf.log import Log
from ipu_results.mlperf.rules import Convergence, load_rules, measure_run
from ipu_results.mlperf.speed import Speed, measure_speed

from tests.mlperf.mlperf_support import BEGIN, evaluation, line, load_cases, read, stop

CASES = load_cases("speed")


def measure(*pieces: bytes, benchmark: str = "llama31_8b") -> Speed:
    log = read(BEGIN, *pieces, stop(10))
    rules = load_rules().benchmark(benchmark)
    convergence, *_ = measure_run(log, rules, "5.1")
    return measure_speed(log, convergence, rules.first_epoch)


def measure_case(case: dict[str, Any]) -> Speed:
    pieces = [evaluation(minutes, 0.1, **progress) for minutes, progress in case["evaluations"]]
    if "train_samples" in case:
        pieces.append(line("train_samples", 9, case["train_samples"]))
    return measure(*pieces, benchmark=case.get("benchmark", "llama31_8b"))


def at(minutes: float, samples: float) -> bytes:
    return evaluation(minutes, 3.5, samples_count=samples)


def test_minutes_are_startup_training_and_wait() -> None:
    """By hand: 2 minutes per 1,000 samples between the evaluations; the first comes half a minute
    late.
    """
    speed = measure(at(2.5, 1000), at(4.4, 2000), at(8.5, 4000))
    assert speed.evaluations == 3
    assert speed.minutes_per_sample == pytest.approx(0.002, rel=1e-9)
    error = math.sqrt((0.1**2 / 1000 + 0.1**2 / 2000) / 3000)
    assert speed.minutes_per_sample_error == pytest.approx(error, rel=1e-9)
    assert speed.startup_minutes == pytest.approx(0.5, rel=1e-9)
    assert speed.wait_minutes == pytest.approx(1.5, rel=1e-9)
    assert speed.no_speed_reason is None


@pytest.mark.parametrize("case", CASES["slope"], ids=lambda case: case["benchmark"])
def test_counts_of_any_unit_are_samples(case: dict[str, Any]) -> None:
    speed = measure_case(case)
    assert speed.minutes_per_sample == pytest.approx(4 / case["samples"], rel=1e-12)


def test_what_is_written_twice_or_before_the_start_is_one_point() -> None:
    speed = measure(at(-1, 0), at(2.5, 1000), at(2.501, 1000), at(8.5, 4000))
    assert speed.evaluations == 2
    assert speed.no_speed_reason is None
    assert speed.minutes_per_sample == pytest.approx((8.5 - 2.501) / 3000)


@pytest.mark.parametrize("case", CASES["none"], ids=lambda case: case["reason"])
def test_why_a_run_has_no_speed(case: dict[str, Any]) -> None:
    wait = pytest.approx(case["wait"]) if "wait" in case else None
    assert measure_case(case) == Speed(
        case["count"], wait_minutes=wait, no_speed_reason=case["reason"]
    )


def test_a_run_without_start_has_no_speed() -> None:
    speed = measure_speed(Log(), Convergence(), 0)
    assert speed == Speed(no_speed_reason="its log has no run_start before a run_stop")
