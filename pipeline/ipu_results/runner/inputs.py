"""Inputs of a sweep: images of a folder, seeded synthetic JPEGs, seeded sequences of tokens, and
streams of them.

Runs in the sessions' processes too: Python 3.8 with numpy and Pillow, without onnx, which PopART
must precede.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import warnings
import zlib
from bisect import bisect
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from ipu_results.errors import UnusableImagesError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ipu_results.runner.backends import Batch

# What is drawn of a synthetic image follows COCO.
MAX_SIDE = 640
SIZE_SHARES = (22, 12, 9, 28, 12, 13, 4)  # percent
SIZES = (  # widths and heights, each from and to
    ((640, 640), (480, 480)),
    ((640, 640), (427, 427)),
    ((480, 480), (640, 640)),
    ((640, 640), (359, 510)),
    ((400, 480), (640, 640)),
    ((428, 560), (320, 420)),
    ((300, 400), (450, 550)),
)
QUALITY_SHARES = (70, 30)  # percent
QUALITIES = (96, 90)
CONTRASTS = (8, 26)  # standard deviation of the brightness, of 255: from and to
TINT = 0.25  # the part of red and blue that does not follow the brightness
MIDDLE = 128.0  # of the brightness, of 255

SUFFIXES = (".jpg", ".jpeg", ".png")  # of the files of a folder that are read
FORMATS = ("JPEG", "PNG")  # as Pillow calls them
MEAN = (0.485, 0.456, 0.406)  # of ImageNet, per channel; as in torchvision
DEVIATION = (0.229, 0.224, 0.225)
DTYPES = ("float32", "float16")
# What Pillow raises for a broken file is of any of these classes, by format and release.
BROKEN = (
    Image.DecompressionBombError,
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    IndexError,
    EOFError,
    struct.error,
    zlib.error,
)


def generate_images(folder: Path, count: int, seed: int) -> list[str]:
    """Write `count` images into a folder, which is made if need be; return their names in order.

    The same seed (not below 0) gives the same names and, before compression, the same pixels
    everywhere: all draws are raw ones of numpy's PCG64, and the arithmetic is in float64. The files
    themselves depend on the release of libjpeg.

    Measured over 400 of seed 0 with libjpeg-turbo 3.2: 4.69 bits per pixel (standard deviation
    1.36, 1.8 to 7.0) and 156 kB a file; over 20,000 draws 571 x 481 pixels, longest side 640 in 83
    %, portrait in 25 %, quality 96 in 69 %. COCO's are 4.7 bits and 158 kB. 30 ms an image on one
    core.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"photo-{seed}-{number:05d}.jpg" for number in range(count)]
    for number, name in enumerate(names):
        pixels, quality = draw_image(seed, number)
        image = Image.fromarray(pixels)
        image.save(folder / name, "JPEG", quality=quality, subsampling="4:4:4")
    return names


def draw_image(seed: int, number: int) -> tuple[np.ndarray, int]:
    """Draw one image before it is compressed, (height, width, 3), and its JPEG quality.

    Amplitudes fall as 1 / f, as they do in photographs (Field 1987), from equally distributed
    coefficients.
    """
    # a stream for each image: the first ones are the same whatever their number
    bits = np.random.PCG64([seed, number])
    widths, heights = SIZES[_choose(bits, SIZE_SHARES)]
    width = _draw(bits, *widths)
    height = _draw(bits, *heights)
    quality = QUALITIES[_choose(bits, QUALITY_SHARES)]
    contrast = _draw(bits, *CONTRASTS)
    brightness = _draw_texture(bits, height, width)
    red = _draw_texture(bits, height, width)
    blue = _draw_texture(bits, height, width)
    channels = [brightness + TINT * red, brightness, brightness + TINT * blue]
    values = MIDDLE + contrast * np.stack(channels, axis=-1)
    pixels = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return pixels, quality


def _draw(bits: np.random.PCG64, first: int, last: int) -> int:
    return first + int(bits.random_raw()) % (last - first + 1)


def _choose(bits: np.random.PCG64, shares: Iterable[int]) -> int:
    """Return the number of one share, drawn by their sizes."""
    ends = list(accumulate(shares))
    return bisect(ends, _draw(bits, 0, ends[-1] - 1))


def _draw_texture(bits: np.random.PCG64, height: int, width: int) -> np.ndarray:
    """Cut a texture out of a square that repeats, of mean 0 and standard deviation 1."""
    amplitudes = _build_amplitudes()
    draws = bits.random_raw(amplitudes.size // 2).astype("<u8")
    # a draw of 64 bits is two complex coefficients, each part of 16 bits and around 0
    parts = draws.view("<u2").astype(np.float64)
    parts -= (2**16 - 1) / 2
    white = parts.view(np.complex128).reshape(amplitudes.shape)
    square = np.fft.irfft2(white * amplitudes, s=(MAX_SIDE, MAX_SIDE))
    cutting = square[:height, :width]
    return np.asarray((cutting - cutting.mean()) / cutting.std())


@lru_cache(maxsize=None)  # noqa: UP033 (Python 3.8)
def _build_amplitudes() -> np.ndarray:
    """Return 1 / f over the half plane of frequencies, without the mean."""
    down = np.fft.fftfreq(MAX_SIDE)[:, None]
    along = np.fft.rfftfreq(MAX_SIDE)[None, :]
    frequency = np.sqrt(down * down + along * along)
    # the mean has no share
    frequency[0, 0] = np.inf
    return np.asarray(1 / frequency)


def find_usable_images(
    folder: Path, max_images: int, size: tuple[int, int]
) -> tuple[list[str], list[str]]:
    """Return the names of the first images of a folder that decode, in order, and a line for each
    one excluded.

    `size` is the crop (height, width). Raises UnusableImagesError where there is no folder or none
    of it decodes. Not for threads: it changes the filter of warnings for a while.
    """
    names: list[str] = []
    excluded: list[str] = []
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        raise UnusableImagesError(
            f"is not a folder of images: {error.strerror}", document=str(folder)
        ) from error
    for entry in entries:
        if len(names) == max_images:
            break
        if entry.suffix.lower() not in SUFFIXES or not entry.is_file():
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                decode_image(_read(folder, entry.name), *size)
            names.append(entry.name)
        except UnusableImagesError as error:
            excluded.append(_keep_printable(f"{entry.name}: {error.message}"))
    if not names:
        first = f"; {len(excluded)} left out, the first {excluded[0]}" if excluded else ""
        raise UnusableImagesError(
            f"holds no image that can be decoded{first}", document=str(folder)
        )
    return names, excluded


def decode_image(data: bytes, height: int, width: int) -> np.ndarray:
    """Return the centre of a JPEG or PNG, (height, width, 3), as torchvision's loader and
    CenterCrop do.

    EXIF orientation is not applied; a smaller image is padded with zeros. Raises
    UnusableImagesError.
    """
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            return _crop(image, height, width)
    except UnidentifiedImageError as error:
        raise UnusableImagesError("is neither JPEG nor PNG") from error
    except BROKEN as error:
        raise UnusableImagesError(_keep_printable(str(error)) or type(error).__name__) from error


def _crop(image: Image.Image, height: int, width: int) -> np.ndarray:
    rows = _place_crop(image.height, height)
    columns = _place_crop(image.width, width)
    box = (columns.start, rows.start, columns.stop, rows.stop)
    centre = np.asarray(image.crop(box).convert("RGB"))
    if centre.shape[:2] == (height, width):
        return centre
    padded = np.zeros((height, width, 3), np.uint8)
    above = (height - len(rows)) // 2
    before = (width - len(columns)) // 2
    padded[above : above + len(rows), before : before + len(columns)] = centre
    return padded


def _place_crop(length: int, size: int) -> range:
    """Return the pixels of one axis of an image that the crop takes: all of a shorter one."""
    if length < size:
        return range(length)
    start = round((length - size) / 2)  # as torchvision rounds: .5 to the even number
    return range(start, start + size)


def normalise_images(pixels: Sequence[np.ndarray], dtype: str = "float32") -> np.ndarray:
    """Return crops of one size as a C-contiguous array (n, 3, height, width) of `float32` or
    `float16`.

    A value is (pixel / 255 - mean) / standard deviation of its channel, calculated in float32 and
    then rounded.
    """
    tables = _build_tables(dtype)
    height, width, channels = pixels[0].shape
    batch = np.empty((len(pixels), channels, height, width), dtype)
    for image, planes in zip(pixels, batch):  # noqa: B905 (Python 3.8)
        for channel in range(channels):
            values = image[:, :, channel]
            # "raise" costs a copy
            np.take(tables[channel], values, out=planes[channel], mode="clip")
    return batch


@lru_cache(maxsize=None)  # noqa: UP033 (Python 3.8)
def _build_tables(dtype: str) -> np.ndarray:
    """Return the normalised value of each of the 256 values of a pixel, by channel."""
    if dtype not in DTYPES:
        raise ValueError(f"images are {' or '.join(DTYPES)}, not {dtype}")
    values = np.arange(256, dtype=np.float32) / np.float32(255)
    # a row for each channel
    mean = np.array(MEAN, np.float32)[:, None]
    deviation = np.array(DEVIATION, np.float32)[:, None]
    return np.asarray((values - mean) / deviation).astype(dtype)


def hash_images(folder: Path, names: Iterable[str]) -> str:
    """Return the SHA-256 of what `sha256sum` prints for these images in this order."""
    total = hashlib.sha256()
    for name in names:
        digest = hashlib.sha256(_read(folder, name)).hexdigest()
        total.update(digest.encode() + b"  " + os.fsencode(name) + b"\n")
    return total.hexdigest()


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise UnusableImagesError(
            f"cannot be read: {error.strerror}", document=str(folder / name)
        ) from error


def _keep_printable(text: str) -> str:
    """Replace what would break the line of a message."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


class InputStream:
    """The inputs of one session without end: the `first`, then every `step`th of `count`, and round
    again.

    So `step` sessions, each with a `first` of its own, share the inputs. Streams take these as
    keywords.
    """

    def __init__(self, count: int, micro_batch: int = 1, first: int = 0, step: int = 1) -> None:
        self._count = count
        self._next = first
        self.micro_batch = micro_batch
        self.step = step

    def choose(self) -> list[int]:
        """Return the numbers of the next batch."""
        # every `step`th, so that sessions never feed the same item in one batch
        stop = self._next + self.micro_batch * self.step
        numbers = range(self._next, stop, self.step)
        self._next = stop
        return [number % self._count for number in numbers]

    def load(self) -> Any:
        """Return the next items as they are kept."""
        raise NotImplementedError

    def prepare(self, data: Any) -> Batch:
        """Return what `load` returned as the session takes it, C-contiguous."""
        raise NotImplementedError


class ImageStream(InputStream):
    """Images of a folder."""

    def __init__(
        self,
        folder: Path | str,
        names: Sequence[str],
        height: int,
        width: int,
        dtype: str = "float32",
        **share: int,
    ) -> None:
        super().__init__(len(names), **share)
        self.folder = Path(folder)
        self.names = names
        self.height = height
        self.width = width
        self.dtype = dtype
        self._loaded: list[str] = []

    def load(self) -> list[bytes]:
        """Read the bytes of the next files from the disk.

        Raises UnusableImagesError for one that is gone.
        """
        self._loaded = [self.names[number] for number in self.choose()]
        return [_read(self.folder, name) for name in self._loaded]

    def prepare(self, data: Sequence[bytes]) -> np.ndarray:
        """Return (micro-batch, 3, height, width)."""
        pixels = []
        for name, image in zip(self._loaded, data):  # noqa: B905 (Python 3.8)
            try:
                pixels.append(decode_image(image, self.height, self.width))
            except UnusableImagesError as error:
                raise UnusableImagesError(
                    error.message, document=str(self.folder / name)
                ) from error
        return normalise_images(pixels, self.dtype)


class SequenceStream(InputStream):
    """Sequences of a file as a text model takes them: arrays by input name.

    Float inputs are converted to `dtype`.
    """

    def __init__(
        self, file: Path | str, inputs: Sequence[str], dtype: str = "float32", **share: int
    ) -> None:
        self._arrays = {}
        with np.load(file) as saved:
            for number, name in enumerate(inputs):
                array = saved[f"arr_{number}"]
                self._arrays[name] = array.astype(dtype) if array.dtype.kind == "f" else array
        # all inputs have as many sequences
        super().__init__(len(self._arrays[inputs[0]]), **share)

    def load(self) -> list[int]:
        """Return the numbers of the next sequences, which are in memory."""
        return self.choose()

    def prepare(self, data: Sequence[int]) -> dict[str, np.ndarray]:
        """Return (micro-batch, …) by input."""
        return {name: array[data] for name, array in self._arrays.items()}


@dataclass(frozen=True)
class TextInput:
    """One input of a text model: `shape` has no batch; `limit` counts the rows of the table of its
    tokens.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    limit: int = 0


def generate_sequences(inputs: Sequence[TextInput], count: int, seed: int) -> dict[str, np.ndarray]:
    """Return `count` full sequences: tokens drawn evenly from the table, no padding, one segment.

    The same on every machine and with every numpy, which fixes PCG64's raw draws.
    """
    arrays = {}
    for number, text in enumerate(inputs):
        arrays[text.name] = _fill_input(text, count, seed + number)
    return arrays


def _fill_input(text: TextInput, count: int, seed: int) -> np.ndarray:
    shape = (count, *text.shape)
    if text.role == "tokens":
        draws = np.random.PCG64(seed).random_raw(math.prod(shape))
        tokens = draws % np.uint64(text.limit)
        return tokens.reshape(shape).astype(text.dtype)
    if text.role == "positions":
        positions = np.arange(text.shape[-1]).astype(text.dtype)
        return np.ascontiguousarray(np.broadcast_to(positions, shape))
    # An integer mask says which tokens count. One of floats is added to the scores: zeros hide
    # nothing.
    if text.role == "mask" and not text.dtype.startswith("float"):
        return np.ones(shape, text.dtype)
    return np.zeros(shape, text.dtype)


def save_sequences(file: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Write arrays of one length; return the arguments of their `SequenceStream`."""
    # by number: `savez` makes a file of each name, and an input may be called `a/b`
    np.savez(file, *arrays.values())
    return {"file": str(file), "inputs": list(arrays)}


def hash_sequences(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of names, types, shapes and bytes in the order of the names."""
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
    return total.hexdigest()
