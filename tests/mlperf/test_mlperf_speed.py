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

from tests.mlperf.mlperf_support import BEGIN, evaluation, line, read, stop

RULES = load_rules()


def measure(*pieces: bytes, benchmark: str = "llama31_8b", stopped: float = 10) -> Speed:
    log = read(BEGIN, *pieces, stop(stopped))
    return measure_speed(
        log,
        measure_run(log, RULES.benchmark(benchmark), "5.1")[0],
        RULES.benchmark(benchmark).first_epoch,
    )


def at(minutes: float, samples: float) -> bytes:
    return evaluation(minutes, 3.5, samples_count=samples)


def approximate(*values: float) -> tuple[Any, ...]:
    return tuple(pytest.approx(value, rel=1e-9, abs=1e-9) for value in values)


def test_minutes_are_startup_training_and_wait() -> None:
    """By hand: 2 minutes per 1,000 samples between the evaluations; the first comes half a minute
    late.
    """
    speed = measure(at(2.5, 1000), at(4.4, 2000), at(8.5, 4000))
    slope, error, startup, wait = approximate(
        0.002, math.sqrt((0.1**2 / 1000 + 0.1**2 / 2000) / 3000), 0.5, 1.5
    )
    assert speed == Speed(3, slope, error, startup, wait)


@pytest.mark.parametrize(
    ("benchmark", "counts", "slope"),
    [
        ("retinanet", [{"epoch_num": 4}, {"epoch_num": 8}], 4 / (4 * 1_170_301)),
        ("dlrm", [{"epoch_num": 1.25}, {"epoch_num": 1.5}], 4 / (0.25 * 4_195_197_692)),
        ("gpt3", [{"epoch_num": 2048_000}, {"epoch_num": 4096_000}], 4 / 1000),
        # The unit of the last count is that of all: 90,000 alone would be evaluations.
        ("bert", [{"epoch_num": 90_000}, {"epoch_num": 180_000}], 4 / 90_000),
        ("unet3d", [{"epoch_num": 16_800}, {"epoch_num": 33_600}], 4 / 16_800),
    ],
)
def test_counts_of_any_unit_are_samples(
    benchmark: str, counts: list[dict[str, float]], slope: float
) -> None:
    pieces = [evaluation(at_, 0.1, **count) for at_, count in zip((5, 9), counts, strict=True)]
    assert measure(*pieces, benchmark=benchmark).minutes_per_sample == pytest.approx(
        slope, rel=1e-12
    )


def test_what_is_written_twice_or_before_the_start_is_one_point() -> None:
    speed = measure(at(-1, 0), at(2.5, 1000), at(2.501, 1000), at(8.5, 4000))
    assert speed.evaluations == 2
    assert speed.no_speed_reason is None
    assert speed.minutes_per_sample == pytest.approx((8.5 - 2.501) / 3000)


@pytest.mark.parametrize(
    ("pieces", "benchmark", "evaluations", "wait", "reason"),
    [
        ([], "llama31_8b", 0, None, "its log holds no readable evaluation"),
        ([at(9, 1000)], "llama31_8b", 1, 1, "it has a single evaluation"),
        (
            [at(4, 2000), at(9, 1000)],
            "llama31_8b",
            2,
            1,
            "the samples of its evaluations do not grow with time",
        ),
        (
            [
                evaluation(4, epoch_num=1),
                evaluation(9, epoch_num=1),
                line("train_samples", 9, 900_000),
            ],
            "bert",
            1,
            1,
            "its evaluations do not say how many samples were trained",
        ),
        (
            [evaluation(4, epoch_num=1), evaluation(9, epoch_num=2)],
            "minigo",
            2,
            1,
            "its evaluations do not say how many samples were trained",
        ),
        # Stored models that are evaluated after training, and counts that begin long before.
        (
            [at(9.8, 1000), at(9.9, 2000)],
            "llama31_8b",
            2,
            0.1,
            "its evaluations are not spread over its training",
        ),
        (
            [at(1, 9000), at(9, 9900)],
            "llama31_8b",
            2,
            1,
            "its evaluations are not spread over its training",
        ),
        (
            [at(5, 1000), at(10.1, 2000)],
            "llama31_8b",
            2,
            None,
            "its last evaluation is after its run_stop",
        ),
        (
            [
                evaluation(5, 80, metric="FID", samples_count=9),
                evaluation(5, 0.2, metric="CLIP", samples_count=9),
            ],
            "stable_diffusion",
            1,
            None,
            "its evaluations are of stored models",
        ),
    ],
)
def test_why_a_run_has_no_speed(
    pieces: list[bytes], benchmark: str, evaluations: int, wait: float | None, reason: str
) -> None:
    speed = measure(*pieces, benchmark=benchmark)
    waited = None if wait is None else pytest.approx(wait)
    assert speed == Speed(evaluations, wait_minutes=waited, no_speed_reason=reason)


def test_a_run_without_start_has_no_speed() -> None:
    assert measure_speed(Log(), Convergence(), 0) == Speed(
        no_speed_reason="its log has no run_start before a run_stop"
    )
