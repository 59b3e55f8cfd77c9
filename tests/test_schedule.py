"""Supersteps and cycles of whole programs, and the predictions that stand on them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import ceil

import pytest
from ipu_results.emulator.calibration import Calibration, Fit
from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.operators import Convolution, Elementwise, Gemm, GlobalPool, Program, Tensor
from ipu_results.emulator.prediction import Prediction, predict
from ipu_results.emulator.schedule import schedule, shape_of
from ipu_results.emulator.split import Shape, plan
from ipu_results.emulator.target import TARGETS, Target, load_target
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError
from ipu_results.networks import build

MK1, MK2 = load_target("c2"), load_target("m2000")
CONV = Convolution("c", 2, 4, 16, 32, 14, 12, 3, 5, 2, 1, 1, 2, 1, 2)
KNOWN = Calibration(Fit(700.0, 3e-4), (Fit(500.0, 3.5e-4), Fit(800.0, 2.5e-4)), MK1.digest)


@cache
def model() -> object:
    return build("resnet50")


@cache
def resnet(micro: int) -> Program:
    return read_program(model(), micro)  # type: ignore[arg-type]


def tiny(*operators: Convolution | Gemm | Elementwise | GlobalPool) -> Program:
    return Program("tiny", operators, tuple((at - 1,) for at in range(len(operators))), (), (), (), 0)


# The schedule


def test_a_convolution_is_planned_by_its_sizes() -> None:
    assert shape_of(CONV) == Shape(2, 4, 16, 32, 7, 12, 3, 5, 2, 14, 12)
    assert shape_of(CONV).macs == CONV.macs


def test_a_matrix_product_is_a_convolution_of_one_column() -> None:
    product = Gemm("g", 3, 128, 64, 32)
    assert shape_of(product) == Shape(1, 3, 64, 32, 128, 1, in_rows=128, in_columns=1)
    assert shape_of(product).macs == product.macs


def test_a_program_is_the_sum_of_its_operators() -> None:
    program = tiny(CONV, Elementwise("r", "relu", CONV.elements), Gemm("g", 1, 8, 64, 32))
    found = schedule(program, MK2)
    planned = [plan(shape_of(CONV), MK2), plan(shape_of(program.operators[2]), MK2)]  # type: ignore[arg-type]
    assert [step.kind for step in found.steps] == ["convolution", "relu", "gemm"]
    assert found.cycles == planned[0].cycles + found.steps[1].cycles + planned[1].cycles
    assert found.supersteps == planned[0].supersteps + 1 + planned[1].supersteps
    assert found.temporary == max(one.temporary for one in planned)
    assert [step.macs for step in found.steps] == [CONV.macs, 0, 8 * 64 * 32]


def test_split_input_channels_cost_a_superstep_a_stage_and_one_more() -> None:
    found = schedule(tiny(Gemm("g", 1, 1, 4096, 64)), MK2).steps[0]
    assert found.plan is not None
    assert 16 <= found.plan.split[4] < 125
    assert found.supersteps == 1 + 2 + 1
    assert found.reduce > 0


def test_an_elementwise_operator_works_on_what_the_fullest_tile_holds() -> None:
    found = schedule(tiny(CONV, Elementwise("r", "relu", CONV.elements)), MK2)
    assert found.steps[0].plan is not None
    share = found.steps[0].plan.share
    even = CONV.elements / 1472
    assert even < share <= 4 * even
    assert found.steps[1].compute == 6 * ceil(ceil(share / 4) / 6) * 2


def test_a_program_of_nothing_takes_nothing() -> None:
    found = schedule(tiny(), MK1)
    assert (found.cycles, found.supersteps, found.temporary) == (0, 0, 0)


def test_the_same_program_read_anew_has_the_same_schedule() -> None:
    again = read_program(build("resnet50"), 1)
    assert again is not resnet(1)
    assert (again, hash(again)) == (resnet(1), hash(resnet(1)))
    assert schedule(again, MK2, partial(plan)) == schedule(resnet(1), MK2)


def test_a_target_that_calls_itself_equal_has_a_schedule_of_its_own() -> None:
    class Same(Target):
        digest = MK2.digest  # type: ignore[assignment]

    slow = MK2.changed(elementwise__relu=200)
    other = Same(slow.name, slow.chip, slow.chips, slow.constants)
    program = tiny(Elementwise("r", "relu", 1472))
    assert other == MK2
    assert schedule(program, other).cycles == 100 * schedule(program, MK2).cycles


# Predictions


def predicted(target: Target, *batches: int, protocol: str | None = None) -> list[Prediction]:
    return predict(resnet, target, batches, protocol, KNOWN)


@pytest.mark.parametrize("name", TARGETS)
def test_a_prediction_agrees_with_itself(name: str) -> None:
    target = load_target(name)
    for one in predicted(target, target.chips, 4 * target.chips):
        assert one.throughput * one.timing.period == pytest.approx(one.batch_size, rel=1e-12)
        assert one.micro_batch_size * target.chips == one.batch_size
        assert one.latency_ms_low <= one.latency_ms <= one.latency_ms_high
        assert one.compute_share + one.exchange_share + one.superstep_share == pytest.approx(1, rel=1e-12)
        assert min(one.compute_share, one.exchange_share, one.superstep_share) > 0
        assert one.device_ms + one.protocol_ms == pytest.approx(1000 * one.timing.period, rel=1e-12)
        assert (one.target, one.calibration_id) == (name, KNOWN.id)


def test_the_time_on_the_chip_by_hand() -> None:
    one = predicted(MK1, 4)[0]
    found = schedule(resnet(2), MK1)
    assert one.device_ms == pytest.approx(1000 * (found.cycles + 700 * found.supersteps) / 1.6e9, rel=1e-12)
    transfer = (2 * 3 * 224 * 224 * 2 + 2 * 1000 * 2) / 6e9
    assert one.protocol_ms == pytest.approx(1000 * (transfer + 2 * 3e-4), rel=1e-12)


def test_the_band_is_that_of_the_jackknife() -> None:
    one = predicted(MK1, 4)[0]
    found = schedule(resnet(2), MK1)
    transfer = (2 * 3 * 224 * 224 * 2 + 2 * 1000 * 2) / 6e9
    latencies = [
        1000 * ((found.cycles + fit.superstep * found.supersteps) / 1.6e9 + transfer + 2 * fit.per_image)
        for fit in (KNOWN.fit, *KNOWN.jackknife)
    ]
    assert (one.latency_ms_low, one.latency_ms_high) == pytest.approx((min(latencies), max(latencies)), rel=1e-12)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("batch", [0, -4, 7])
def test_a_batch_that_the_chips_cannot_share_is_one_clear_error(name: str, batch: int) -> None:
    target = load_target(name)
    with pytest.raises(InconsistentModelError) as caught:
        predicted(target, batch)
    told = f"batch {batch} cannot be dealt evenly to the {target.chips} chips of {name}"
    assert str(caught.value) == told


def test_power_is_told_on_c2_alone() -> None:
    (one,) = predicted(MK1, 4)
    assert one.power_w == pytest.approx(184 + 4.2e-12 * resnet(2).macs * 2 / one.timing.period, rel=1e-12)
    assert [found.power_w for name in ("m2000", "bow-2000") for found in predicted(load_target(name), 4)] == [
        None,
        None,
    ]


def test_io_tiles_are_taken_from_the_compute() -> None:
    (one,) = predicted(MK2, 16, protocol="io-tiles")
    assert one.schedule == schedule(resnet(4), MK2.changed(tiles=1472 - 64))
    transfer = (4 * 3 * 224 * 224 * 2 + 4 * 1000 * 2) / 3.1e9
    assert one.timing.period == max(one.timing.device, transfer)
    assert one.timing.latency == 5 * one.timing.period


def test_a_protocol_that_a_target_lacks_is_refused() -> None:
    with pytest.raises(UnrecognisedModelError, match="is no protocol of m2000"):
        predicted(MK2, 4, protocol="paper")


# What physics demands


CHANGES: list[tuple[str, Callable[[Target], Target]]] = [
    ("clock", lambda target: target.changed(clock=target["clock"] * 1.2)),
    ("exchange", lambda target: target.changed(exchange__bytes=6, exchange__pair_bytes=12)),
    ("host", lambda target: target.changed(host__link=target["host.link"] * 2)),
    ("memory", lambda target: target.changed(sram=target["sram"] * 2)),
]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(("change", "better"), CHANGES)
def test_a_better_machine_is_not_slower(name: str, change: str, better: Callable[[Target], Target]) -> None:
    target = load_target(name)
    (now,), (then,) = predicted(target, 8), predicted(better(target), 8)
    assert then.timing.period <= now.timing.period
    if change == "clock":
        assert then.timing.device == pytest.approx(now.timing.device / 1.2, rel=1e-12)


@pytest.mark.parametrize("name", TARGETS)
def test_a_larger_batch_takes_longer_in_all(name: str) -> None:
    target = load_target(name)
    periods = [one.timing.period for one in predicted(target, *(target.chips * micro for micro in range(1, 9)))]
    assert periods == sorted(periods)
    assert periods[0] < periods[-1]


def test_the_bow_beats_a_gc200_by_its_clock_on_the_chip() -> None:
    (gc200,), (bow,) = predicted(MK2, 16), predicted(load_target("bow-2000"), 16)
    assert gc200.schedule == bow.schedule
    assert gc200.timing.device / bow.timing.device == pytest.approx(1.85 / 1.33, rel=1e-12)


def test_programs_are_equal_by_all_that_they_are() -> None:
    one, other = tiny(CONV), tiny(Gemm("g", 1, 1, 1, 1))
    assert hash(one) == hash(other)
    assert one != other
    assert tiny(CONV) == one
    assert Program("tiny", (CONV,), ((-1,),), (Tensor("x", (1,), 16),), (), (), 0) != one
