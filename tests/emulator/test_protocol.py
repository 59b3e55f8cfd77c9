"""The host paths by hand: what a batch of two images waits for beyond the chip."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ipu_results.emulator.operators import Program, Tensor
from ipu_results.emulator.settings import (
    compute_timing,
    select_protocol,
)
from ipu_results.emulator.target import Fit, load_target

INPUTS = (Tensor("image", (2, 3, 224, 224), 32),)
OUTPUTS = (Tensor("classes", (2, 1000), 32),)
IMAGES = Program("two", (), (), INPUTS, OUTPUTS, (), 0)
PIXELS, CLASSES = 2 * 3 * 224 * 224, 2 * 1000
DEVICE, BATCH, IMAGE = 1e-3, 5e-5, 3e-4
FIT = Fit(600, BATCH, IMAGE)


@pytest.mark.parametrize(
    ("name", "target", "pixel_bytes", "rate", "in_flight"),
    [
        ("paper", "c2", 2, 6e9, 1),
        ("lowest-latency", "c2", 1, 6e9, 1),
        ("lowest-latency", "m2000", 1, 3.1e9, 1),
        ("tensorflow", "m2000", 1, 7e9, 3),
        ("tensorflow", "bow-2000", 1, 7e9, 3),
        ("pytorch", "m2000", 1, 7e9, 1.8),
    ],
)
def test_transfers_add_to_the_time_on_the_chip(
    name: str, target: str, pixel_bytes: int, rate: float, in_flight: float
) -> None:
    machine = load_target(target)
    timing = compute_timing(DEVICE, IMAGES, machine, select_protocol(name, machine), FIT)
    host = (pixel_bytes * PIXELS + 2 * CLASSES) / rate + BATCH
    if name == "paper":
        host += 2 * IMAGE
    assert timing.device == DEVICE
    assert timing.protocol == pytest.approx(host, rel=1e-9)
    assert timing.period == pytest.approx(DEVICE + host, rel=1e-12)
    assert timing.latency == timing.period * in_flight


@pytest.mark.parametrize("target", ["m2000", "bow-2000"])
@pytest.mark.parametrize("name", ["tensorflow", "pytorch", "io-tiles"])
def test_batch_is_not_faster_than_a_host_process_feeds_its_chips(name: str, target: str) -> None:
    machine = load_target(target)
    protocol = select_protocol(name, machine)
    timing = compute_timing(1e-6, IMAGES, machine, protocol, FIT)
    assert timing.period == pytest.approx(PIXELS / 3.1e9, rel=1e-12)
    wide = replace(protocol, input_bits=32, instances=1)
    timing = compute_timing(1e-6, IMAGES, machine, wide, FIT)
    assert timing.period == pytest.approx(4 * 4 * PIXELS / 3.1e9, rel=1e-12)


def test_io_tiles_overlap_the_transfers() -> None:
    machine = load_target("m2000")
    protocol = select_protocol("io-tiles", machine)
    assert (protocol.io_tiles, protocol.overlapped) == (64, True)
    timing = compute_timing(DEVICE, IMAGES, machine, protocol, FIT)
    assert (timing.period, timing.protocol, timing.latency) == (DEVICE, 0.0, 4.8 * DEVICE)
    unfetched = replace(protocol, prefetch=False)
    assert not unfetched.overlapped
    assert compute_timing(DEVICE, IMAGES, machine, unfetched, FIT).period > DEVICE


def test_latency_without_prefetch_counts_the_transfers_of_all_chips_of_a_process() -> None:
    machine = load_target("bow-2000")
    path = replace(select_protocol("lowest-latency", machine), instances=2)
    timing = compute_timing(DEVICE, IMAGES, machine, path, FIT)
    assert timing.latency - timing.period == pytest.approx((PIXELS + 2 * CLASSES) / 3.1e9, rel=1e-9)


def test_fit_with_a_negative_time_of_a_batch_makes_no_host_time_negative() -> None:
    machine = load_target("m2000")
    protocol = select_protocol("tensorflow", machine)
    timing = compute_timing(DEVICE, IMAGES, machine, protocol, Fit(600, -1.0, 0.0))
    assert timing.protocol == pytest.approx((PIXELS + 2 * CLASSES) / 7e9, rel=1e-9)
