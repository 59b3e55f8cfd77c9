"""Synthetic JPEGs with COCO-like sizes and compression, and a texture like that of photographs."""

from __future__ import annotations

import hashlib
import os
import struct
import warnings
import zlib
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from ipu_results.errors import UnusableImagesError

T = TypeVar("T")

MAX_SIDE = 640
# share in percent, widths from and to, heights from and to (both included)
SIZES = (
    (22, (640, 640), (480, 480)),
    (12, (640, 640), (427, 427)),
    (9, (480, 480), (640, 640)),
    (28, (640, 640), (359, 510)),
    (12, (400, 480), (640, 640)),
    (13, (428, 560), (320, 420)),
    (4, (300, 400), (450, 550)),
)
QUALITIES = ((70, 96), (30, 90))  # share in percent, quality
CONTRASTS = (8, 26)  # standard deviation of the brightness, of 255: from and to
TINT = 0.25  # the part of red and blue that does not follow the brightness
MIDDLE = 128.0


@dataclass(frozen=True)
class ImageTraits:
    """What is drawn of an image before its texture. Pixels; `contrast` is the standard deviation of 0 to 255."""

    width: int
    height: int
    quality: int
    contrast: int


def generate_images(folder: Path, count: int, seed: int) -> list[str]:
    """Write `count` images into a folder, which is made if need be; return their names in order.

    The same seed (not below 0) gives the same names and, before compression, the same pixels everywhere: all draws are
    raw ones of numpy's PCG64, and the arithmetic is in float64. The files themselves depend on the release of libjpeg.

    Measured over 400 of seed 0 with libjpeg-turbo 3.2: 4.69 bits per pixel (standard deviation 1.36, 1.8 to 7.0) and
    156 kB a file; over 20,000 draws 571 x 481 pixels, longest side 640 in 83 %, portrait in 25 %, quality 96 in 69 %.
    COCO's are 4.7 bits and 158 kB. 30 ms an image on one core.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [_write_image(folder, seed, number) for number in range(count)]


def draw_traits(seed: int, number: int) -> ImageTraits:
    """Draw size, quality and contrast of one image."""
    return _draw_traits(_open_bits(seed, number))


def draw_pixels(seed: int, number: int) -> npt.NDArray[np.uint8]:
    """Draw one image before it is compressed, (height, width, 3).

    Amplitudes fall as 1 / f, as they do in photographs (Field 1987), from equally distributed coefficients.
    """
    bits = _open_bits(seed, number)
    traits = _draw_traits(bits)
    brightness, red, blue = (_draw_texture(bits, traits.height, traits.width) for _ in range(3))
    channels = np.stack([brightness + TINT * red, brightness, brightness + TINT * blue], axis=-1)
    return np.clip(np.rint(MIDDLE + traits.contrast * channels), 0, 255).astype(np.uint8)


def _write_image(folder: Path, seed: int, number: int) -> str:
    name = f"photo-{seed}-{number:05d}.jpg"
    quality = draw_traits(seed, number).quality
    Image.fromarray(draw_pixels(seed, number)).save(folder / name, "JPEG", quality=quality, subsampling="4:4:4")
    return name


def _open_bits(seed: int, number: int) -> np.random.PCG64:
    """Open a stream for each image, so that the first ones are the same whatever their number."""
    return np.random.PCG64([seed, number])


def _draw_traits(bits: np.random.PCG64) -> ImageTraits:
    widths, heights = _choose(bits, [(share, (widths, heights)) for share, widths, heights in SIZES])
    width, height = _draw_between(bits, widths), _draw_between(bits, heights)
    return ImageTraits(width, height, _choose(bits, QUALITIES), _draw_between(bits, CONTRASTS))


def _draw_texture(bits: np.random.PCG64, height: int, width: int) -> npt.NDArray[np.float64]:
    """Cut a texture out of a square that repeats, of mean 0 and standard deviation 1."""
    amplitudes = _build_amplitudes()
    white = bits.random_raw(amplitudes.size // 2).astype("<u8").view("<u2").astype(np.float64) - (2**16 - 1) / 2
    spectrum = white.view(np.complex128).reshape(amplitudes.shape) * amplitudes
    cutting = np.fft.irfft2(spectrum, s=(MAX_SIDE, MAX_SIDE))[:height, :width]
    return np.asarray((cutting - cutting.mean()) / cutting.std())


@cache
def _build_amplitudes() -> npt.NDArray[np.float64]:
    """Return 1 / f over the half plane of frequencies, without the mean."""
    down, along = np.fft.fftfreq(MAX_SIDE)[:, None], np.fft.rfftfreq(MAX_SIDE)[None, :]
    frequency = np.sqrt(down * down + along * along)
    frequency[0, 0] = np.inf
    amplitudes: npt.NDArray[np.float64] = 1 / frequency
    return amplitudes


def _choose(bits: np.random.PCG64, shares: Sequence[tuple[int, T]]) -> T:
    ends = list(accumulate(share for share, _ in shares))
    return shares[bisect(ends, _draw_below(bits, ends[-1]))][1]


def _draw_between(bits: np.random.PCG64, ends: tuple[int, int]) -> int:
    first, last = ends
    return first + _draw_below(bits, last - first + 1)


def _draw_below(bits: np.random.PCG64, end: int) -> int:
    return int(bits.random_raw()) % end


if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Pixels = npt.NDArray[np.uint8]

SUFFIXES = (".jpg", ".jpeg", ".png")
FORMATS = ("JPEG", "PNG")
MEAN = (0.485, 0.456, 0.406)  # of ImageNet, per channel; as in torchvision
DEVIATION = (0.229, 0.224, 0.225)
DTYPES = ("float32", "float16")

BOMBS = (Image.DecompressionBombError, Image.DecompressionBombWarning)
BROKEN = (*BOMBS, OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, struct.error, zlib.error)


def find_usable_images(folder: Path, max_images: int, size: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Return the names of the first images of a folder that decode, in order, and a line for each one excluded.

    `size` is the crop (height, width). Raises UnusableImagesError where there is no folder or none of it decodes.
    """
    names: list[str] = []
    excluded: list[str] = []
    for name in _list_candidates(folder):
        if len(names) == max_images:
            break
        fault = _find_fault(folder, name, size)
        if fault is None:
            names.append(name)
        else:
            excluded.append(_keep_printable(f"{name}: {fault}"))
    if not names:
        first = f"; {len(excluded)} left out, the first {excluded[0]}" if excluded else ""
        raise UnusableImagesError(f"holds no image that can be decoded{first}", document=str(folder))
    return names, excluded


def decode_image(data: bytes, height: int, width: int) -> Pixels:
    """Return the centre of a JPEG or PNG, (height, width, 3), as torchvision's loader and CenterCrop do.

    EXIF orientation is not applied; a smaller image is padded with zeros. Of 16 bits the upper eight are kept.
    Raises UnusableImagesError.
    """
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            _refuse_bomb(image)
            return _crop(image, height, width)
    except UnidentifiedImageError as error:
        raise UnusableImagesError("is neither JPEG nor PNG") from error
    except BROKEN as error:
        raise UnusableImagesError(_keep_printable(str(error)) or type(error).__name__) from error


def normalise_images(pixels: Sequence[Pixels], dtype: str = "float32") -> npt.NDArray[Any]:
    """Return crops of one size as a C-contiguous array (n, 3, height, width) of `float32` or `float16`.

    A value is (pixel / 255 - mean) / standard deviation of its channel, calculated in float32 and then rounded.
    """
    tables = _build_tables(dtype)
    height, width, channels = pixels[0].shape
    batch = np.empty((len(pixels), channels, height, width), dtype)
    for image, planes in zip(pixels, batch):  # noqa: B905 (Python 3.8)
        for channel in range(channels):
            np.take(tables[channel], image[:, :, channel], out=planes[channel], mode="clip")  # "raise" costs a copy
    return batch


def hash_images(folder: Path, names: Iterable[str]) -> str:
    """Return the SHA-256 of what `sha256sum` prints for these images in this order."""
    total = hashlib.sha256()
    for name in names:
        total.update(hashlib.sha256(_read(folder, name)).hexdigest().encode() + b"  " + os.fsencode(name) + b"\n")
    return total.hexdigest()


class ImageStream:
    """The images of one session without end: the `first`, then every `step`th, and round again.

    So `step` sessions, each with a `first` of its own, share the images.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        height: int,
        width: int,
        dtype: str = "float32",
        micro_batch: int = 1,
        first: int = 0,
        step: int = 1,
    ) -> None:
        self.folder = folder
        self.names = list(names)
        self.height, self.width = height, width
        self.dtype = dtype
        self.micro_batch = micro_batch
        self.step = step
        self._next = first
        self._loaded: list[str] = []

    def load(self) -> list[bytes]:
        """Read the bytes of the next files from the disk. Raises UnusableImagesError for one that is gone."""
        places = range(self._next, self._next + self.micro_batch * self.step, self.step)
        self._next = places.stop
        self._loaded = [self.names[place % len(self.names)] for place in places]
        return [_read(self.folder, name) for name in self._loaded]

    def prepare(self, data: Sequence[bytes]) -> npt.NDArray[Any]:
        """Return what `load` read as the session takes it: (micro-batch, 3, height, width)."""
        return normalise_images([self._decode(place, image) for place, image in enumerate(data)], self.dtype)

    def _decode(self, place: int, data: bytes) -> Pixels:
        try:
            return decode_image(data, self.height, self.width)
        except UnusableImagesError as error:
            raise UnusableImagesError(error.message, document=str(self.folder / self._loaded[place])) from error


def _list_candidates(folder: Path) -> list[str]:
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise UnusableImagesError(f"is not a folder of images: {error.strerror}", document=str(folder)) from error
    return [entry.name for entry in entries if entry.suffix.lower() in SUFFIXES and entry.is_file()]


def _find_fault(folder: Path, name: str, size: tuple[int, int]) -> str | None:
    """Return why a file cannot be used. Not for threads: it changes the filter of warnings for a while."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decode_image(_read(folder, name), *size)
    except UnusableImagesError as error:
        return error.message
    return None


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise UnusableImagesError(f"cannot be read: {error.strerror}", document=str(folder / name)) from error


def _refuse_bomb(image: Image.Image) -> None:
    """Refuse what is over Pillow's limit; Pillow itself only warns up to twice that."""
    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and image.width * image.height > limit:
        raise Image.DecompressionBombError(f"has {image.width} x {image.height} pixels, over the limit of {limit}")


def _crop(image: Image.Image, height: int, width: int) -> Pixels:
    (top, rows, above), (left, columns, before) = _place_crop(image.height, height), _place_crop(image.width, width)
    centre = _convert_to_rgb(image.crop((left, top, left + columns, top + rows)))
    if (rows, columns) == (height, width):
        return centre
    padded = np.zeros((height, width, 3), np.uint8)
    padded[above : above + rows, before : before + columns] = centre
    return padded


def _place_crop(length: int, size: int) -> tuple[int, int, int]:
    """Return where the crop begins along one axis of the image, its length, and the zeros before it."""
    if length < size:
        return 0, length, (size - length) // 2
    return int(round((length - size) / 2.0)), size, 0  # noqa: RUF046 (as torchvision rounds: .5 to the even number)


def _convert_to_rgb(image: Image.Image) -> Pixels:
    if image.mode.startswith("I"):  # 16 bits, which some releases of Pillow clip to 255 and some divide
        upper = (np.asarray(image) >> 8).astype(np.uint8)
        return np.stack([upper] * 3, axis=-1)
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # straight to RGB is the same, with a warning
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))


@lru_cache(maxsize=None)  # noqa: UP033 (Python 3.8)
def _build_tables(dtype: str) -> npt.NDArray[Any]:
    """Return the normalised value of each of the 256 values of a pixel, by channel."""
    if dtype not in DTYPES:
        raise ValueError(f"images are {' or '.join(DTYPES)}, not {dtype}")
    mean, deviation = np.array([MEAN, DEVIATION], np.float32)[:, :, None]
    table: npt.NDArray[np.float32] = (np.arange(256, dtype=np.float32) / np.float32(255) - mean) / deviation
    return table.astype(dtype)


def _keep_printable(text: str) -> str:
    """Replace what would break the line of a message."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
