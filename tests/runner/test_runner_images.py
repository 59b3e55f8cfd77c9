"""Images as the network takes them, and synthetic ones, the same from the same seed."""

from __future__ import annotations

import hashlib
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import UnusableImagesError
from ipu_results.runner.inputs import (
    ImageStream,
    decode_image,
    draw_image,
    find_usable_images,
    generate_images,
    hash_images,
    normalise_images,
)
from PIL import Image

SIZE = (8, 8)


def number_pixels(height: int, width: int) -> np.ndarray:
    """Return pixels that hold their place: (row, column, 7)."""
    pixels = np.full((height, width, 3), 7, np.uint8)
    pixels[..., :2] = np.moveaxis(np.mgrid[:height, :width], 0, -1)
    return pixels


def encode(image: Image.Image | np.ndarray, kind: str = "PNG", **options: object) -> bytes:
    written = BytesIO()
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    image.save(written, kind, **options)
    return written.getvalue()


def smooth() -> np.ndarray:
    return number_pixels(40, 60) * np.array([3, 4, 1], np.uint8)


# --- the crop


@given(*[st.integers(1, 40)] * 4)
def test_crop_of_any_size_pads_first_and_crops_then(
    rows: int, columns: int, height: int, width: int
) -> None:
    """As torchvision does: half a pixel is rounded to the even number."""
    pixels = number_pixels(rows, columns)
    down = max(height - rows, 0)
    along = max(width - columns, 0)
    around = ((down // 2, (down + 1) // 2), (along // 2, (along + 1) // 2), (0, 0))
    top = round(max(rows - height, 0) / 2)
    left = round(max(columns - width, 0) / 2)
    cropped = np.pad(pixels, around)[top : top + height, left : left + width]
    assert np.array_equal(decode_image(encode(pixels), height, width), cropped)


def test_orientation_is_not_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    turned = decode_image(encode(smooth(), "JPEG", exif=exif), 8, 8)
    assert np.array_equal(turned, decode_image(encode(smooth(), "JPEG"), 8, 8))


# --- what is in the file


@pytest.mark.parametrize(
    ("image", "colour"),
    [
        (Image.new("L", (9, 9), 77), [77, 77, 77]),
        (Image.new("1", (9, 9), 1), [255, 255, 255]),
        (Image.new("RGBA", (9, 9), (1, 2, 3, 0)), [1, 2, 3]),
        (Image.new("RGB", (9, 9), (200, 100, 50)).quantize(), [200, 100, 50]),
    ],
    ids=["grey", "bilevel", "alpha", "palette"],
)
def test_every_kind_of_image_becomes_rgb(image: Image.Image, colour: list[int]) -> None:
    assert np.unique(decode_image(encode(image), *SIZE).reshape(-1, 3), axis=0).tolist() == [colour]


@given(st.integers(0, 400), st.integers(0, 255), st.integers(1, 3000))
def test_damaged_file_is_an_image_or_an_error_of_one_line(at: int, value: int, length: int) -> None:
    data = bytearray(encode(smooth(), "JPEG" if at % 2 else "PNG"))
    data[at % len(data)] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = str(decode_image(bytes(data[:length]), *SIZE).shape)
        except UnusableImagesError as error:
            result = error.message
    assert result == "(8, 8, 3)" or ("\n" not in result and len(result) > 5)


# --- normalising


@pytest.mark.parametrize(("dtype", "ulps"), [("float32", 4), ("float16", 1)])
def test_every_pixel_value_is_normalised_by_the_formula(dtype: str, ulps: int) -> None:
    every = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=-1)
    pixels = normalise_images([every], dtype)[0]
    assert pixels.dtype == dtype
    formula = (every / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    formula = np.moveaxis(formula, -1, -3)
    # near zero the difference of two figures near 0.5 has the error of those
    unit = np.spacing(np.maximum(np.abs(formula), 0.5).astype(dtype)).astype(np.float64)
    assert (np.abs(pixels - formula) <= ulps * unit).all()


# --- a folder of them

JPEG = encode(smooth(), "JPEG")


def fill(folder: Path, **files: bytes) -> Path:
    """Write files by name; `_` stands for the dot."""
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


def test_images_are_listed_by_suffix_in_order_up_to_a_maximum(tmp_path: Path) -> None:
    fill(tmp_path, c_jpg=JPEG, b_PNG=encode(smooth()), a_JPeG=JPEG, d_gif=JPEG, B_jpg=JPEG)
    (tmp_path / "inner.jpg").mkdir()
    before = list(warnings.filters)
    assert find_usable_images(tmp_path, 10, SIZE) == (["B.jpg", "a.JPeG", "b.PNG", "c.jpg"], [])
    assert warnings.filters == before
    fill(tmp_path, A_jpg=b"broken", z_jpg=b"broken")
    names, excluded = find_usable_images(tmp_path, 2, SIZE)
    assert names == ["B.jpg", "a.JPeG"]
    assert excluded == ["A.jpg: is neither JPEG nor PNG"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"these are not pixels", "is neither JPEG nor PNG"),
        (JPEG[:-60], "truncated"),
        (JPEG[:2] + b"\xff\xdb\x00\x02" + bytes(200), ""),
    ],
    ids=["text", "most-of-jpeg", "tables-lost"],
)
def test_broken_file_is_excluded_with_one_line(data: bytes, why: str, tmp_path: Path) -> None:
    fill(tmp_path, b_jpg=JPEG)
    (tmp_path / "a\nb.jpg").write_bytes(data)
    names, (line,) = find_usable_images(tmp_path, 5, SIZE)
    assert names == ["b.jpg"]
    name, _, reason = line.partition(": ")
    assert name == "a?b.jpg"
    assert reason
    assert why in reason
    assert "0x" not in reason


def test_folder_without_images_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableImagesError, match=f"^{tmp_path}: holds no image that can be dec"):
        find_usable_images(tmp_path, 5, SIZE)
    with pytest.raises(UnusableImagesError, match=r"; 2 left out, the first a\.jpg: is neither"):
        find_usable_images(fill(tmp_path, a_jpg=b"", b_jpg=b""), 5, SIZE)
    with pytest.raises(UnusableImagesError, match=r"a\.jpg: is not a folder of images: "):
        find_usable_images(tmp_path / "a.jpg", 5, SIZE)


def test_digest_is_of_the_list_of_checksums(tmp_path: Path) -> None:
    fill(tmp_path, a_jpg=b"abc", b_jpg=b"")
    listing = (
        b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.jpg\n"
        b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b.jpg\n"
    )
    assert hash_images(tmp_path, ["a.jpg", "b.jpg"]) == hashlib.sha256(listing).hexdigest()
    with pytest.raises(UnusableImagesError, match=r"gone\.jpg: cannot be read"):
        hash_images(tmp_path, ["gone.jpg"])


# --- the stream


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """Write images 0.png to 4.png, each of the grey of its number."""
    for number in range(5):
        (tmp_path / f"{number}.png").write_bytes(encode(Image.new("L", (9, 9), number)))
    return tmp_path


def open_stream(folder: Path, **options: object) -> ImageStream:
    return ImageStream(folder, [f"{number}.png" for number in range(5)], 8, 8, **options)  # type: ignore[arg-type]


def greys(stream: ImageStream) -> list[int]:
    """Return the numbers of the images of the next batch."""
    batch = stream.prepare(stream.load())
    assert (batch.shape[1:], batch.dtype) == ((3, 8, 8), stream.dtype)
    assert batch.flags.c_contiguous
    red = (batch[:, 0, 0, 0].astype(float) * 0.229 + 0.485) * 255
    return red.round().astype(int).tolist()


def test_stream_goes_round(five: Path) -> None:
    stream = open_stream(five, micro_batch=3, dtype="float16")
    for expected in ([0, 1, 2], [3, 4, 0], [1, 2, 3]):
        assert greys(stream) == expected
    assert greys(open_stream(five, micro_batch=7)) == [0, 1, 2, 3, 4, 0, 1]
    second = open_stream(five, micro_batch=2, first=1, step=2)
    assert greys(second) + greys(second) == [1, 3, 0, 2]


def test_file_that_vanishes_or_is_damaged_meanwhile_is_named(five: Path) -> None:
    stream = open_stream(five, micro_batch=2)
    stream.load()
    (five / "3.png").unlink()
    with pytest.raises(UnusableImagesError, match=f"^{five}/3.png: cannot be read"):
        stream.load()
    (five / "4.png").write_bytes(b"")
    stream = open_stream(five, micro_batch=2, first=4)
    with pytest.raises(UnusableImagesError, match=f"^{five}/4.png: is neither JPEG nor PNG"):
        stream.prepare(stream.load())


# --- synthetic images: compression and texture like COCO's


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
