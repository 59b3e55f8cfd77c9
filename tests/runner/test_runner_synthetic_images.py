"""Synthetic images: sizes, compression and texture like COCO's, the same from the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ipu_results.runner.inputs import (
    ImageTraits,
    draw_pixels,
    draw_traits,
    find_usable_images,
    generate_images,
    hash_images,
)
from PIL import Image

DRAWN = [draw_traits(3, number) for number in range(2000)]


def share(holds: Callable[[ImageTraits], bool]) -> float:
    return sum(map(holds, DRAWN)) / len(DRAWN)


def test_sizes_qualities_and_contrasts_are_cocos() -> None:
    assert np.mean([image.width for image in DRAWN]) == pytest.approx(571, abs=8)
    assert np.mean([image.height for image in DRAWN]) == pytest.approx(481, abs=8)
    assert max(max(image.width, image.height) for image in DRAWN) == 640
    assert share(lambda image: max(image.width, image.height) == 640) == pytest.approx(
        0.83, abs=0.03
    )
    assert share(lambda image: image.width < image.height) == pytest.approx(0.25, abs=0.03)
    for size, expected in {(640, 480): 0.22, (640, 427): 0.12, (480, 640): 0.09}.items():
        assert share(lambda image, size=size: (image.width, image.height) == size) == pytest.approx(
            expected, abs=0.03
        )
    assert share(lambda image: image.quality == 96) == pytest.approx(0.7, abs=0.03)
    assert {image.quality for image in DRAWN} == {90, 96}
    assert {image.contrast for image in DRAWN} == set(range(8, 27))


def test_first_draws_are_frozen() -> None:
    first = [
        ImageTraits(419, 640, 96, 17),
        ImageTraits(640, 501, 90, 13),
        ImageTraits(531, 336, 90, 21),
    ]
    assert [draw_traits(0, number) for number in range(3)] == first
    digest = hashlib.sha256(draw_pixels(0, 0).tobytes()).hexdigest()
    assert digest == "0cb3674cd19d6abc50ea1513261406fa36b15aae867211c8217f5d2d66dc61fc"


def test_files_are_as_large_as_cocos(tmp_path: Path) -> None:
    bits, area = 0, 0
    for name in generate_images(tmp_path, 16, 1):
        with Image.open(tmp_path / name) as image:
            area += image.width * image.height
        bits += 8 * (tmp_path / name).stat().st_size
    assert bits / area == pytest.approx(4.7, rel=0.2)


def test_files_hold_what_was_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    names = generate_images(folder, 3, 5)
    assert names == ["photo-5-00000.jpg", "photo-5-00001.jpg", "photo-5-00002.jpg"]
    for number, name in enumerate(names):
        traits, plain = draw_traits(5, number), draw_pixels(5, number)
        with Image.open(folder / name) as image:
            assert image.size == (traits.width, traits.height)
            assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3  # 4:4:4
            assert np.abs(np.asarray(image).astype(int) - plain).mean() < 4
    assert find_usable_images(folder, 9, (224, 224)) == (names, [])


def test_seed_and_number_determine_an_image(tmp_path: Path) -> None:
    few, more = generate_images(tmp_path / "few", 2, 5), generate_images(tmp_path / "more", 3, 5)
    assert more[:2] == few
    assert hash_images(tmp_path / "few", few) == hash_images(tmp_path / "more", few)
    first = draw_pixels(5, 0)[:300, :300]
    assert not np.array_equal(first, draw_pixels(6, 0)[:300, :300])
    assert not np.array_equal(first, draw_pixels(5, 1)[:300, :300])
