"""The host paths by hand: what a batch of two images waits for beyond the chip."""

from __future__ import annotations

import pytest
from ipu_results.emulator.operators import Program, Tensor
from ipu_results.emulator.protocol import compute_timing, load_protocols, select_protocol
from ipu_results.emulator.target import load_target
from ipu_results.errors import UnrecognisedModelError

IMAGES = Program("two", (), (), (Tensor("image", (2, 3, 224, 224), 32),), (Tensor("classes", (2, 1000), 32),), (), 0)
PIXELS, CLASSES = 2 * 3 * 224 * 224, 2 * 1000
DEVICE, PER_IMAGE = 1e-3, 3e-4


@pytest.mark.parametrize(
    ("name", "target", "host", "in_flight"),
    [
        ("paper", "c2", (2 * PIXELS + 2 * CLASSES) / 6e9 + 2 * PER_IMAGE, 1),
        ("lowest-latency", "c2", (2 * PIXELS + 2 * CLASSES) / 6e9, 1),
        ("lowest-latency", "m2000", (2 * PIXELS + 2 * CLASSES) / 3.1e9, 1),
        ("tensorflow", "m2000", (1 * PIXELS + 2 * CLASSES) / 14e9, 3),
        ("tensorflow", "bow-2000", (1 * PIXELS + 2 * CLASSES) / 14e9, 3),
        ("pytorch", "m2000", (2 * PIXELS + 2 * CLASSES) / 14e9, 5),
    ],
)
def test_transfers_add_to_the_time_on_the_chip(name: str, target: str, host: float, in_flight: int) -> None:
    machine = load_target(target)
    timing = compute_timing(DEVICE, IMAGES, machine, select_protocol(name, machine), PER_IMAGE)
    assert timing.device == DEVICE
    assert timing.protocol == pytest.approx(host, rel=1e-9)
    assert timing.period == pytest.approx(DEVICE + host, rel=1e-12)
    assert timing.latency == timing.period * in_flight


@pytest.mark.parametrize("name", ["tensorflow", "pytorch"])
def test_prefetched_batch_is_not_faster_than_the_link(name: str) -> None:
    machine = load_target("m2000")
    protocol = select_protocol(name, machine)
    timing = compute_timing(1e-6, IMAGES, machine, protocol, PER_IMAGE)
    assert timing.period == pytest.approx(protocol.pixel_bytes * PIXELS / 3.1e9, rel=1e-12)
    assert timing.protocol == pytest.approx(timing.period - 1e-6, rel=1e-12)


@pytest.mark.parametrize("device", [1e-3, 1e-5])
def test_io_tiles_overlap_the_transfers(device: float) -> None:
    machine = load_target("m2000")
    protocol = select_protocol("io-tiles", machine)
    transfer = (2 * PIXELS + 2 * CLASSES) / 3.1e9
    assert 1e-5 < transfer < 1e-3
    timing = compute_timing(device, IMAGES, machine, protocol, PER_IMAGE)
    assert timing.period == max(device, transfer)
    assert timing.protocol == max(0.0, transfer - device)
    assert timing.latency == 5 * timing.period
    assert protocol.io_tiles == 64


def test_every_protocol_names_its_source_and_one_is_calibrated() -> None:
    protocols = load_protocols()
    assert all(len(protocol.source) > 20 and protocol.name == name for name, protocol in protocols.items())
    assert [name for name, protocol in protocols.items() if protocol.per_image] == ["paper"]
    assert [name for name, protocol in protocols.items() if protocol.overlapped] == ["io-tiles"]


@pytest.mark.parametrize(("target", "default"), [("c2", "paper"), ("m2000", "tensorflow"), ("bow-2000", "tensorflow")])
def test_each_target_has_a_default_protocol(target: str, default: str) -> None:
    machine = load_target(target)
    assert select_protocol(None, machine) is select_protocol(default, machine)


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("pigeon", "c2", "is not a protocol: choose one of paper, tensorflow, pytorch, lowest-latency, io-tiles"),
        ("tensorflow", "c2", "is not a protocol of c2"),
        ("paper", "m2000", "is not a protocol of m2000"),
        ("paper", "bow-2000", "is not a protocol of bow-2000"),
    ],
)
def test_unknown_protocol_is_refused(name: str, target: str, message: str) -> None:
    with pytest.raises(UnrecognisedModelError, match=f"^{name}: {message}$"):
        select_protocol(name, load_target(target))
