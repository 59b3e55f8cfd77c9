"""Supersteps and cycles of whole programs, and the predictions that rest on them."""

from __future__ import annotations

from math import ceil

import pytest
from ipu_results.emulator.network import load_network
from ipu_results.emulator.operators import (
    ConvolutionShape,
    Elementwise,
    Operator,
    Product,
    Program,
    make_gemm,
)
from ipu_results.emulator.prediction import Prediction, predict
from ipu_results.emulator.schedule import estimate_copy, schedule
from ipu_results.emulator.split import plan_split
from ipu_results.emulator.target import TARGETS, Calibration, Fit, Target, load_band, load_target
from ipu_results.errors import InconsistentModelError

MK1 = load_target("c2")
MK2 = load_target("m2000")
CONV = Product("c", "convolution", ConvolutionShape(2, 4, 16, 32, 7, 12, 3, 5, 2, 14, 12))
CALIBRATION = Calibration(Fit(700.0, 5e-5, 3e-4), (Fit(500.0, 6e-5, 3.5e-4),), MK1.digest)
TRANSFER = (2 * 3 * 224 * 224 * 2 + 2 * 1000 * 2) / 6e9  # of two images, on C2

resnet = load_network("resnet50")


def chain(*operators: Operator) -> Program:
    sources = tuple((at - 1,) for at in range(len(operators)))
    return Program("tiny", operators, sources, (), (), (), 0)


# The schedule


def test_a_copy_has_one_rate_whatever_the_length_of_a_row() -> None:
    """By the cliff that one figure gave, 729 values of a row took 25 times as long as 736."""
    odd = estimate_copy(16 * 729 * 729, MK2)
    whole = estimate_copy(16 * 729 * 736, MK2)
    assert odd == pytest.approx(ceil(16 * 729 * 729 / 1472) * 2 * 0.44)
    assert odd < whole < 1.02 * odd


def test_products_of_activations_are_laid_out_again() -> None:
    weights = make_gemm("g", 12, 128, 64, 128)
    activations = make_gemm("g", 12, 128, 64, 128, constant=False)
    (fixed,) = schedule(chain(weights), MK2).steps
    (moved,) = schedule(chain(activations), MK2).steps
    copied = 2 * estimate_copy(12 * 128 * 64, MK2)
    assert moved.cycles - fixed.cycles == pytest.approx(copied)
    assert copied > 0


def test_program_is_the_sum_of_its_operators() -> None:
    gemm = make_gemm("g", 1, 8, 64, 32)
    result = schedule(chain(CONV, Elementwise("r", "relu", CONV.elements), gemm), MK2)
    first = plan_split(CONV.shape, MK2)
    last = plan_split(gemm.shape, MK2)
    _, relu, _ = result.steps
    # The convolution reads the network's input, which is copied from the order of the host.
    copied = estimate_copy(2 * 14 * 12 * 4 * 16, MK2)
    assert copied > 0
    assert result.cycles == pytest.approx(first.cycles + copied + relu.cycles + last.cycles)
    assert result.supersteps == first.supersteps + 1 + last.supersteps
    temporary = [step.temporary for step in result.steps]
    assert temporary == [first.temporary, 0.0, last.temporary]
    assert [step.macs for step in result.steps] == [CONV.macs, 0, 8 * 64 * 32]
    assert schedule(chain(), MK1).cycles == 0


def test_split_input_channels_cost_a_superstep_per_stage_and_one_more() -> None:
    (step,) = schedule(chain(make_gemm("g", 1, 1, 4096, 64)), MK2).steps
    assert step.plan is not None
    assert 16 <= step.plan.split[4] < 125
    assert step.supersteps == 1 + 2 + 1
    assert step.reduce > 0


# Predictions


def predict_resnet(target: Target, *batches: int, protocol: str | None = None) -> list[Prediction]:
    return predict(resnet, target, batches, protocol, CALIBRATION)


@pytest.mark.parametrize("name", TARGETS)
def test_figures_of_a_prediction_are_consistent(name: str) -> None:
    target = load_target(name)
    for each in predict_resnet(target, target.chips, 4 * target.chips):
        period = each.timing.period
        assert each.throughput * period == pytest.approx(each.batch_size, rel=1e-12)
        assert each.micro_batch_size * target.chips == each.batch_size
        assert each.latency_ms_low <= each.latency_ms <= each.latency_ms_high
        shares = (each.compute_share, each.exchange_share, each.superstep_share)
        assert sum(shares) == pytest.approx(1, rel=1e-12)
        assert min(shares) > 0
        total_ms = each.device_ms + each.protocol_ms
        assert total_ms == pytest.approx(1000 * period, rel=1e-12)
        assert (each.target, each.calibration_id) == (name, CALIBRATION.id)


def test_time_and_band_by_hand() -> None:
    (prediction,) = predict_resnet(MK1, 4)
    plan = schedule(resnet(2), MK1)
    device_ms = 1000 * (plan.cycles + 600 * plan.supersteps) / 1.6e9
    assert prediction.device_ms == pytest.approx(device_ms, rel=1e-12)
    assert prediction.protocol_ms == pytest.approx(1000 * (TRANSFER + 5e-5 + 2 * 3e-4), rel=1e-12)
    low, high = load_band("inference")
    assert prediction.latency_ms_low == pytest.approx(prediction.latency_ms * low, rel=1e-12)
    assert prediction.latency_ms_high == pytest.approx(prediction.latency_ms * high, rel=1e-12)


@pytest.mark.parametrize(("target", "batch"), [(MK1, 0), (MK1, -4), (MK1, 7), (MK2, 6)])
def test_batch_that_the_chips_cannot_share_is_refused(target: Target, batch: int) -> None:
    message = f"^batch {batch} is not a multiple of the {target.chips} chips of {target.name}$"
    with pytest.raises(InconsistentModelError, match=message):
        predict_resnet(target, batch)


def test_io_tiles_are_taken_from_the_compute_tiles() -> None:
    (prediction,) = predict_resnet(MK2, 16, protocol="io-tiles")
    assert prediction.schedule == schedule(resnet(4), MK2.with_constants({"tiles": 1472 - 64}))
    assert prediction.timing.period == max(prediction.timing.device, 4 * 3 * 224 * 224 / 3.1e9)
    assert prediction.timing.latency == 4.8 * prediction.timing.period
