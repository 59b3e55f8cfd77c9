"""Synthetic images: compression and texture like COCO's, the same from the same seed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from ipu_results.runner.inputs import draw_image, find_usable_images, generate_images
from PIL import Image


def test_first_draws_are_frozen() -> None:
    """Other pixels would be other inputs than those of the committed runs."""
    first = [draw_image(0, number) for number in range(3)]
    assert [pixels.shape for pixels, _ in first] == [(640, 419, 3), (501, 640, 3), (336, 531, 3)]
    assert [quality for _, quality in first] == [96, 90, 90]
    digest = hashlib.sha256(b"".join(pixels.tobytes() for pixels, _ in first)).hexdigest()
    assert digest == "e5aa3e3fcb0e7921a04fb5e17bf3de5cfd285033bd1182dc54791f6058dedb5e"


def test_files_are_as_large_as_cocos_and_hold_what_was_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    names = generate_images(folder, 12, 1)
    assert names[:2] == ["photo-1-00000.jpg", "photo-1-00001.jpg"]
    bits = 0
    area = 0
    for number, name in enumerate(names):
        pixels, _ = draw_image(1, number)
        with Image.open(folder / name) as image:
            assert np.abs(np.asarray(image).astype(int) - pixels).mean() < 4
            assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3  # 4:4:4
            area += image.width * image.height
        bits += 8 * (folder / name).stat().st_size
    assert bits / area == pytest.approx(4.7, rel=0.2)
    assert find_usable_images(folder, 99, (224, 224)) == (names, [])
