"""The host paths by hand: what a batch of two images waits for beyond the chip."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ipu_results.emulator.operators import Program, Tensor
from ipu_results.emulator.protocol import Protocol, protocol_of, protocols, timing
from ipu_results.emulator.target import TARGETS, load_target
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
def test_nothing_overlaps(name: str, target: str, host: float, in_flight: int) -> None:
    machine = load_target(target)
    found = timing(DEVICE, IMAGES, machine, protocol_of(name, machine), PER_IMAGE)
    assert found.device == DEVICE
    assert found.protocol == pytest.approx(host, rel=1e-9)
    assert found.period == pytest.approx(DEVICE + host, rel=1e-12)
    assert found.latency == found.period * in_flight


@pytest.mark.parametrize("name", ["tensorflow", "pytorch"])
def test_a_prefetched_batch_is_no_faster_than_the_link(name: str) -> None:
    machine = load_target("m2000")
    path = protocol_of(name, machine)
    found = timing(1e-6, IMAGES, machine, path, PER_IMAGE)
    assert found.period == pytest.approx(path.pixel_bytes * PIXELS / 3.1e9, rel=1e-12)
    assert found.protocol == pytest.approx(found.period - 1e-6, rel=1e-12)


@pytest.mark.parametrize("device", [1e-3, 1e-5])
def test_io_tiles_overlap_the_transfers(device: float) -> None:
    machine = load_target("m2000")
    path = protocol_of("io-tiles", machine)
    transfer = (2 * PIXELS + 2 * CLASSES) / 3.1e9
    assert 1e-5 < transfer < 1e-3
    found = timing(device, IMAGES, machine, path, PER_IMAGE)
    assert found.period == max(device, transfer)
    assert found.protocol == max(0.0, transfer - device)
    assert found.latency == 5 * found.period
    assert path.io_tiles == 64


def test_only_the_protocol_of_the_paper_has_the_fitted_time_of_the_host() -> None:
    assert [name for name, one in protocols().items() if one.per_image] == ["paper"]
    assert [name for name, one in protocols().items() if one.overlapped] == ["io-tiles"]


def test_every_protocol_names_its_source() -> None:
    assert all(len(one.source) > 20 and one.name == name for name, one in protocols().items())


@pytest.mark.parametrize(("target", "usual"), [("c2", "paper"), ("m2000", "tensorflow"), ("bow-2000", "tensorflow")])
def test_each_target_has_a_usual_protocol(target: str, usual: str) -> None:
    machine = load_target(target)
    assert protocol_of(None, machine) is protocol_of(usual, machine)
    assert protocol_of(None, machine).name == usual


@pytest.mark.parametrize("target", TARGETS)
def test_no_such_protocol(target: str) -> None:
    told = "pigeon: is no protocol: one of paper, tensorflow, pytorch, lowest-latency, io-tiles"
    with pytest.raises(UnrecognisedModelError) as caught:
        protocol_of("pigeon", load_target(target))
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("name", "target"), [("tensorflow", "c2"), ("pytorch", "c2"), ("paper", "m2000"), ("paper", "bow-2000")]
)
def test_a_protocol_of_another_machine(name: str, target: str) -> None:
    with pytest.raises(UnrecognisedModelError, match=f"^{name}: is no protocol of {target}$"):
        protocol_of(name, load_target(target))


def test_pixels_of_another_size() -> None:
    path = protocol_of("tensorflow", load_target("m2000"))
    assert replace(path, pixel_bytes=2) == Protocol("tensorflow", "host.prefetch", 2, 3, path.source)
