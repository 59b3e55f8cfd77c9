"""Pictures as the network takes them, and the photographs that stand in for real ones."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import UnusableImagesError
from ipu_results.runner import images, photos
from ipu_results.runner.images import Source, decode, digest, normalised, usable
from PIL import Image

SIZE = (8, 8)
MODULE = Path(images.__file__)


def counted(height: int, width: int) -> np.ndarray:
    """Pixels that tell their place: (row, column, 7)."""
    rows, columns = np.mgrid[:height, :width]
    return np.stack([rows % 256, columns % 256, np.full_like(rows, 7)], axis=-1).astype(np.uint8)


def encoded(image: Image.Image | np.ndarray, kind: str = "PNG", **options: object) -> bytes:
    written = BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(written, kind, **options)
    return written.getvalue()


def smooth(height: int = 40, width: int = 60) -> np.ndarray:
    return (counted(height, width) * np.array([3, 4, 1], np.uint8)).astype(np.uint8)


def corner(height: int, width: int, size: int = 224) -> list[int]:
    return decode(encoded(counted(height, width)), size, size)[0, 0].tolist()


# the crop


@pytest.mark.parametrize(
    ("height", "width", "first"),
    [
        (224, 224, [0, 0, 7]),
        (226, 228, [1, 2, 7]),
        (225, 227, [0, 2, 7]),  # 0.5 is rounded to 0, 1.5 to 2: halves to the even number
        (229, 231, [2, 4, 7]),  # 2.5 to 2, 3.5 to 4
        (427, 240, [102, 8, 7]),  # 101.5 to 102
        (224, 479, [0, 128, 7]),  # 127.5 to 128
    ],
)
def test_crop_begins_where_torchvision_begins(height: int, width: int, first: list[int]) -> None:
    assert corner(height, width) == first


def test_crop_is_not_resized() -> None:
    found = decode(encoded(counted(240, 250)), 224, 224)
    assert found.shape == (224, 224, 3)
    assert found.dtype == np.uint8
    assert found[:, 5, 0].tolist() == list(range(8, 232))
    assert found[5, :, 1].tolist() == list(range(13, 237))


def test_small_picture_is_padded_with_zeros() -> None:
    found = decode(encoded(np.full((2, 3, 3), 9, np.uint8)), 5, 6)
    one = [
        [0, 0, 0, 0, 0, 0],
        [0, 9, 9, 9, 0, 0],
        [0, 9, 9, 9, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    assert found.tolist() == np.repeat(np.array(one)[:, :, None], 3, axis=-1).tolist()


def test_low_and_wide_picture_is_padded_and_cropped() -> None:
    found = decode(encoded(np.arange(18, dtype=np.uint8).reshape(1, 6, 3)), 2, 2)
    assert found.tolist() == [[[6, 7, 8], [9, 10, 11]], [[0, 0, 0], [0, 0, 0]]]


@pytest.mark.parametrize("mode", ["CMYK", "P"])
def test_padding_is_black_whatever_zero_means_in_the_file(mode: str) -> None:
    white = Image.new("RGB", (4, 4), "white").convert(mode)
    found = decode(encoded(white, "JPEG" if mode == "CMYK" else "PNG"), 6, 6)
    assert found[1:5, 1:5].min() == 255
    assert found.sum() == 4 * 4 * 3 * 255


def reference(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Pad first and crop then, on a plain array."""
    down, along = max(height - pixels.shape[0], 0), max(width - pixels.shape[1], 0)
    padded = np.pad(pixels, ((down // 2, (down + 1) // 2), (along // 2, (along + 1) // 2), (0, 0)))
    top, left = round((padded.shape[0] - height) / 2), round((padded.shape[1] - width) / 2)
    return padded[top : top + height, left : left + width]


@given(*[st.integers(1, 40)] * 4)
def test_crop_of_any_size_is_the_plain_one(rows: int, columns: int, height: int, width: int) -> None:
    pixels = counted(rows, columns)
    assert np.array_equal(decode(encoded(pixels), height, width), reference(pixels, height, width))


def test_orientation_is_not_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    turned = decode(encoded(smooth(), "JPEG", exif=exif), 8, 8)
    assert np.array_equal(turned, decode(encoded(smooth(), "JPEG"), 8, 8))


# what is in the file


@pytest.mark.parametrize(
    ("image", "colour"),
    [
        (Image.new("L", (9, 9), 77), [77, 77, 77]),
        (Image.new("1", (9, 9), 1), [255, 255, 255]),
        (Image.new("LA", (9, 9), (77, 10)), [77, 77, 77]),
        (Image.new("RGBA", (9, 9), (1, 2, 3, 0)), [1, 2, 3]),
        (Image.new("RGB", (9, 9), (200, 100, 50)).convert("P", palette=Image.Palette.ADAPTIVE), [200, 100, 50]),
        (Image.fromarray(np.full((9, 9), 0x1234, np.uint16)), [0x12, 0x12, 0x12]),
        (Image.fromarray(np.full((9, 9), 0xFFFF, np.uint16)), [255, 255, 255]),
    ],
    ids=["grey", "bilevel", "grey-alpha", "alpha", "palette", "16-bit", "16-bit-white"],
)
def test_every_kind_of_picture_becomes_rgb(image: Image.Image, colour: list[int]) -> None:
    assert np.unique(decode(encoded(image), *SIZE).reshape(-1, 3), axis=0).tolist() == [colour]


def test_palette_with_transparent_colours_is_read_without_a_warning() -> None:
    image = Image.new("RGB", (9, 9), (200, 100, 50)).convert("P", palette=Image.Palette.ADAPTIVE)
    data = encoded(image, transparency=bytes([3] * 4))
    assert decode(data, *SIZE)[0, 0].tolist() == [200, 100, 50]


def test_cmyk_and_grey_jpeg_become_rgb() -> None:
    cyan = decode(encoded(Image.new("CMYK", (9, 9), (255, 0, 0, 0)), "JPEG", quality=100), *SIZE)
    assert np.abs(cyan.astype(int) - [0, 255, 255]).max() <= 3
    grey = decode(encoded(Image.new("L", (9, 9), 77), "JPEG", quality=100), *SIZE)
    assert np.ptp(grey, axis=-1).max() == 0
    assert abs(int(grey[0, 0, 0]) - 77) <= 2


def test_other_formats_are_refused() -> None:
    with pytest.raises(UnusableImagesError, match=r"^is neither JPEG nor PNG$"):
        decode(encoded(smooth(), "GIF"), *SIZE)


@given(st.integers(0, 400), st.integers(0, 255), st.integers(1, 3000))
def test_damage_gives_a_picture_or_one_line(at: int, value: int, length: int) -> None:
    data = bytearray(encoded(smooth(), "JPEG" if at % 2 else "PNG"))
    data[at % len(data)] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = outcome(bytes(data[:length]))
    assert told == "(8, 8, 3)" or ("\n" not in told and len(told) > 5)


def outcome(data: bytes) -> str:
    try:
        return str(decode(data, *SIZE).shape)
    except UnusableImagesError as error:
        return error.message


# normalising


def formula(pixels: np.ndarray) -> np.ndarray:
    """In float64, from the published figures."""
    scaled = pixels.astype(np.float64) / 255
    found = (scaled - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return np.moveaxis(found, -1, -3)


@pytest.mark.parametrize(("dtype", "ulps"), [("float32", 4), ("float16", 1)])
def test_table_is_the_formula(dtype: str, ulps: int) -> None:
    every = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=-1)
    found = normalised([every], dtype)[0]
    assert found.dtype == dtype
    wanted = formula(every)
    # near zero the difference of two figures near 0.5 has the error of those
    unit = np.spacing(np.maximum(np.abs(wanted), 0.5).astype(dtype)).astype(np.float64)
    assert (np.abs(found - wanted) <= ulps * unit).all()


def test_known_values() -> None:
    pixels = np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8)
    red, green, blue = normalised([pixels])[0, :, 0]
    assert red.tolist() == pytest.approx([-2.1179039, 2.2489083], abs=1e-6)
    assert green.tolist() == pytest.approx([-2.0357141, 2.4285715], abs=1e-6)
    assert blue.tolist() == pytest.approx([-1.8044444, 2.64], abs=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_batch_is_contiguous_and_in_order(dtype: str) -> None:
    crops = [counted(4, 6), counted(5, 6)[1:], counted(4, 7)[:, 1:]]
    found = normalised(crops, dtype)
    assert found.shape == (3, 3, 4, 6)
    assert found.flags.c_contiguous
    assert np.allclose(found, formula(np.stack(crops)), atol=2e-3 if dtype == "float16" else 1e-6)


def test_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="float32 or float16, not int8"):
        normalised([counted(2, 2)], "int8")


# a folder of them

JPEG = encoded(smooth(), "JPEG")


def filled(folder: Path, **files: bytes) -> Path:
    """Files by name; `_` stands for the dot."""
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


def test_pictures_are_found_by_suffix_in_order(tmp_path: Path) -> None:
    filled(tmp_path, c_jpg=JPEG, b_PNG=encoded(smooth()), a_JPeG=JPEG, d_gif=JPEG, readme_txt=b"", B_jpg=JPEG)
    (tmp_path / "inner.jpg").mkdir()
    filled(tmp_path / "inner.jpg", e_jpg=JPEG)
    assert usable(tmp_path, 10, SIZE) == (["B.jpg", "a.JPeG", "b.PNG", "c.jpg"], [])


def test_no_more_than_asked_for_are_looked_at(tmp_path: Path) -> None:
    filled(tmp_path, a_jpg=b"broken", b_jpg=JPEG, c_jpg=JPEG, d_jpg=b"broken")
    assert usable(tmp_path, 2, SIZE) == (["b.jpg", "c.jpg"], ["a.jpg: is neither JPEG nor PNG"])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"these are not pixels", "is neither JPEG nor PNG"),
        (b"", "is neither JPEG nor PNG"),
        (JPEG[:-60], "truncated"),
        (JPEG[: len(JPEG) // 2], "is neither JPEG nor PNG"),
        (encoded(smooth())[:-60], "truncated"),
        (encoded(smooth())[:60], ""),
        (JPEG[:2] + b"\xff\xdb\x00\x02" + bytes(200), ""),
    ],
    ids=["text", "empty", "most-of-jpeg", "head-of-jpeg", "most-of-png", "head-of-png", "tables-lost"],
)
def test_broken_file_is_left_out_in_one_line(data: bytes, why: str, tmp_path: Path) -> None:
    filled(tmp_path, a_jpg=data, b_jpg=JPEG)
    names, (line,) = usable(tmp_path, 5, SIZE)
    assert names == ["b.jpg"]
    assert line.startswith("a.jpg: ")
    assert len(line) > len("a.jpg: ")
    assert why in line
    assert "0x" not in line


def test_decompression_bomb_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    sizes = {"just_png": (10, 5), "over_png": (17, 3), "twice_png": (101, 1)}
    filled(tmp_path, **{name: encoded(Image.new("RGB", size)) for name, size in sizes.items()})
    names, (over, twice) = usable(tmp_path, 5, SIZE)
    assert names == ["just.png"]
    assert over == "over.png: has 17 x 3 pixels, over the limit of 50"
    assert twice.startswith("twice.png: ")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_bomb_is_refused_where_warnings_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    with pytest.raises(UnusableImagesError, match="over the limit of 50"):
        decode(encoded(Image.new("RGB", (17, 3))), *SIZE)


def test_filter_of_warnings_is_as_before(tmp_path: Path) -> None:
    before = list(warnings.filters)
    usable(filled(tmp_path, a_jpg=JPEG), 1, SIZE)
    assert warnings.filters == before


def test_name_with_a_line_break_stays_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a\nb.jpg").write_bytes(b"")
    assert usable(filled(tmp_path, c_jpg=JPEG), 5, SIZE)[1] == ["a?b.jpg: is neither JPEG nor PNG"]


def test_folder_without_pictures_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableImagesError, match=r"holds no image that can be decoded$") as empty:
        usable(tmp_path, 5, SIZE)
    assert empty.value.document == str(tmp_path)
    with pytest.raises(UnusableImagesError, match=r"; 2 left out, the first a\.jpg: is neither"):
        usable(filled(tmp_path, a_jpg=b"", b_jpg=b""), 5, SIZE)


@pytest.mark.parametrize("name", ["absent", "file.jpg"])
def test_what_is_no_folder_is_named(name: str, tmp_path: Path) -> None:
    filled(tmp_path, file_jpg=JPEG)
    with pytest.raises(UnusableImagesError, match="is no folder of images: ") as caught:
        usable(tmp_path / name, 5, SIZE)
    assert caught.value.document == str(tmp_path / name)


def test_digest_is_of_the_list_of_checksums(tmp_path: Path) -> None:
    filled(tmp_path, a_jpg=b"abc", b_jpg=b"")
    listing = (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.jpg\n"
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b.jpg\n"
    )
    assert digest(tmp_path, ["a.jpg", "b.jpg"]) == hashlib.sha256(listing.encode()).hexdigest()
    assert digest(tmp_path, ["b.jpg", "a.jpg"]) != digest(tmp_path, ["a.jpg", "b.jpg"])
    with pytest.raises(UnusableImagesError, match=r"gone\.jpg: cannot be read"):
        digest(tmp_path, ["gone.jpg"])


# the source


@pytest.fixture
def five(tmp_path: Path) -> Path:
    """Pictures 0.png to 4.png, each of the grey of its number."""
    for number in range(5):
        (tmp_path / f"{number}.png").write_bytes(encoded(Image.new("L", (9, 9), number)))
    return tmp_path


def source(folder: Path, **options: object) -> Source:
    return Source(folder, [f"{number}.png" for number in range(5)], 8, 8, **options)  # type: ignore[arg-type]


def greys(batch: np.ndarray) -> list[int]:
    return [round(float(value)) for value in (batch[:, 0, 0, 0].astype(float) * 0.229 + 0.485) * 255]


def test_source_goes_round(five: Path) -> None:
    one = source(five, micro_batch=3)
    assert [greys(one.prepare(one.load())) for _ in range(4)] == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]


def test_batch_may_be_larger_than_the_folder(five: Path) -> None:
    one = source(five, micro_batch=7)
    assert greys(one.prepare(one.load())) == [0, 1, 2, 3, 4, 0, 1]


def test_sessions_deal_the_images_out(five: Path) -> None:
    both = [source(five, micro_batch=2, first=first, step=2) for first in (0, 1)]
    assert [greys(one.prepare(one.load())) for one in both] == [[0, 2], [1, 3]]
    assert [greys(one.prepare(one.load())) for one in both] == [[4, 1], [0, 2]]


@given(st.integers(1, 4), st.integers(1, 5))
@settings(max_examples=20)
def test_sessions_together_take_every_image_in_turn(sessions: int, micro_batch: int) -> None:
    taken: dict[int, str] = {}
    for first in range(sessions):
        one = Source(Path(), list("abcdefg"), 8, 8, "float32", micro_batch, first, sessions)
        names = [name for _ in range(3) for name in loaded_names(one)]
        taken.update({first + sessions * place: name for place, name in enumerate(names)})
    assert "".join(taken[place] for place in sorted(taken)) == ("abcdefg" * 60)[: 3 * sessions * micro_batch]


def loaded_names(one: Source) -> list[str]:
    found: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "_read", lambda _folder, name: found.append(name))
        one.load()
    return found


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_source_gives_what_the_session_takes(dtype: str, five: Path) -> None:
    one = source(five, micro_batch=2, dtype=dtype)
    batch = one.prepare(one.load())
    assert (batch.shape, batch.dtype, batch.flags.c_contiguous) == ((2, 3, 8, 8), dtype, True)


def test_file_that_vanishes_is_named(five: Path) -> None:
    one = source(five, micro_batch=2)
    one.load()
    (five / "3.png").unlink()
    with pytest.raises(UnusableImagesError, match="cannot be read") as caught:
        one.load()
    assert caught.value.document == str(five / "3.png")


def test_file_that_is_damaged_meanwhile_is_named(five: Path) -> None:
    (five / "4.png").write_bytes(b"")
    one = source(five, micro_batch=2, first=3)
    with pytest.raises(UnusableImagesError, match="is neither JPEG nor PNG") as caught:
        one.prepare(one.load())
    assert caught.value.document == str(five / "4.png")


# photographs

FIRST = [photos.Photo(419, 640, 96, 17), photos.Photo(640, 501, 90, 13), photos.Photo(531, 336, 90, 21)]
FIRST_PIXELS = "0cb3674cd19d6abc50ea1513261406fa36b15aae867211c8217f5d2d66dc61fc"
DRAWN = [photos.draw(3, number) for number in range(2000)]


def share(holds: Callable[[photos.Photo], bool]) -> float:
    return sum(map(holds, DRAWN)) / len(DRAWN)


def test_sizes_are_cocos() -> None:
    assert np.mean([photo.width for photo in DRAWN]) == pytest.approx(571, abs=8)
    assert np.mean([photo.height for photo in DRAWN]) == pytest.approx(481, abs=8)
    assert max(max(photo.width, photo.height) for photo in DRAWN) == 640
    assert share(lambda photo: max(photo.width, photo.height) == 640) == pytest.approx(0.83, abs=0.03)
    assert share(lambda photo: photo.width < photo.height) == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(("width", "height", "wanted"), [(640, 480, 0.22), (640, 427, 0.12), (480, 640, 0.09)])
def test_frequent_sizes_are_frequent(width: int, height: int, wanted: float) -> None:
    assert share(lambda photo: (photo.width, photo.height) == (width, height)) == pytest.approx(wanted, abs=0.03)


def test_qualities_and_contrasts_are_spread() -> None:
    assert share(lambda photo: photo.quality == 96) == pytest.approx(0.7, abs=0.03)
    assert {photo.quality for photo in DRAWN} == {90, 96}
    assert {photo.contrast for photo in DRAWN} == set(range(8, 27))


def test_first_draws_never_change() -> None:
    assert [photos.draw(0, number) for number in range(3)] == FIRST
    assert hashlib.sha256(photos.pixels(0, 0).tobytes()).hexdigest() == FIRST_PIXELS


def test_photographs_weigh_what_cocos_weigh(tmp_path: Path) -> None:
    bits, area = 0, 0
    for name in photos.generate(tmp_path, 16, 1):
        with Image.open(tmp_path / name) as image:
            area += image.width * image.height
        bits += 8 * (tmp_path / name).stat().st_size
    assert bits / area == pytest.approx(4.7, rel=0.2)


def test_files_are_as_drawn(tmp_path: Path) -> None:
    names = photos.generate(tmp_path / "new" / "folder", 3, 5)
    assert names == ["photo-5-00000.jpg", "photo-5-00001.jpg", "photo-5-00002.jpg"]
    for number, name in enumerate(names):
        drawn, plain = photos.draw(5, number), photos.pixels(5, number)
        with Image.open(tmp_path / "new" / "folder" / name) as image:
            assert image.size == (drawn.width, drawn.height)
            assert [layer[1:3] for layer in image.layer] == [(1, 1)] * 3  # 4:4:4
            assert np.abs(np.asarray(image).astype(int) - plain).mean() < 4
    assert usable(tmp_path / "new" / "folder", 9, (224, 224)) == (names, [])


def test_seed_decides(tmp_path: Path) -> None:
    few, more = photos.generate(tmp_path / "few", 2, 5), photos.generate(tmp_path / "more", 3, 5)
    assert more[:2] == few
    assert digest(tmp_path / "few", few) == digest(tmp_path / "more", few)
    assert np.array_equal(photos.pixels(5, 1), photos.pixels(5, 1))
    assert photos.generate(tmp_path / "other", 2, 6) != few
    assert not np.array_equal(photos.pixels(5, 0)[:300, :300], photos.pixels(6, 0)[:300, :300])
    assert not np.array_equal(photos.pixels(5, 0)[:300, :300], photos.pixels(5, 1)[:300, :300])


def falls_as(brightness: np.ndarray) -> float:
    """The exponent by which amplitudes change with frequency, from 5 to 100 cycles over 256 pixels."""
    window = np.hanning(256)[:, None] * np.hanning(256)
    cutting = brightness[:256, :256].astype(float)
    amplitude = np.abs(np.fft.fft2((cutting - cutting.mean()) * window))
    frequency = np.hypot(np.fft.fftfreq(256)[:, None], np.fft.fftfreq(256)) * 256
    rings = range(5, 100)
    means = [amplitude[np.rint(frequency) == ring].mean() for ring in rings]
    return float(np.polyfit(np.log(rings), np.log(means), 1)[0])


def test_texture_falls_with_frequency_as_in_pictures_and_noise_does_not() -> None:
    for number in range(3):
        assert falls_as(photos.pixels(2, number)[:, :, 1]) == pytest.approx(-1, abs=0.15)
    noise = np.random.Generator(np.random.PCG64(0)).integers(0, 256, (256, 256))
    assert falls_as(noise) == pytest.approx(0, abs=0.15)


def test_contrast_is_as_drawn_and_colours_belong_together() -> None:
    for number in range(3):
        channels = photos.pixels(2, number).reshape(-1, 3).T.astype(float)
        assert channels[1].std() == pytest.approx(photos.draw(2, number).contrast, rel=0.02)
        together = np.corrcoef(channels)
        assert 0.8 < together.min() < 0.99


# where the worker runs


def without_annotations(tree: ast.Module) -> ast.Module:
    """What is executed: annotations and what only type checkers read are taken out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return tree


def too_new(source_text: str) -> list[str]:
    """What Python 3.8 does not have, of what one is tempted to use."""
    found = []
    for node in ast.walk(without_annotations(ast.parse(source_text, feature_version=(3, 8)))):
        match node:
            case ast.Attribute(attr="removeprefix" | "removesuffix" | "cache" | "is_relative_to" | "pairwise" as name):
                found.append(name)
            case ast.ImportFrom(names=names):
                found += [name.name for name in names if name.name in {"cache", "pairwise", "StrEnum"}]
            case ast.keyword(arg="strict" | "slots" | "kw_only" as name):
                found.append(name)
            case ast.Subscript(value=ast.Name(id="list" | "dict" | "tuple" | "set" | "type" as name)):
                found.append(f"{name}[]")
            case ast.BinOp(op=ast.BitOr()):
                found.append("|")
    return found


def test_worker_side_is_python_3_8() -> None:
    assert "from __future__ import annotations" in MODULE.read_text("utf-8")
    assert too_new(MODULE.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from functools import cache", ["cache"]),
        ("x: list[int] = list[int]()", ["list[]"]),
        ("a = int | None", ["|"]),
        ("zip(a, b, strict=False)", ["strict"]),
        ("a.removeprefix('b')", ["removeprefix"]),
    ],
)
def test_what_is_too_new_is_found(text: str, found: list[str]) -> None:
    assert too_new(text) == found


def test_syntax_that_is_too_new_is_found() -> None:
    with pytest.raises(SyntaxError):
        too_new("match a:\n    case 1: pass")


def test_worker_side_needs_numpy_and_pillow_only() -> None:
    told = "import sys, ipu_results.runner.images; print(*{name.partition('.')[0] for name in sys.modules})"
    process = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=MODULE.parents[2]
    )
    assert not {"pandas", "pyarrow", "onnx", "onnxruntime", "click", "duckdb", "scipy"} & set(process.stdout.split())
