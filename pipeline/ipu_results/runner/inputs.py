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
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from ipu_results.errors import UnusableImagesError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[Any]
    Pixels = npt.NDArray[np.uint8]

# What is drawn of a synthetic image follows COCO: share in percent, widths and heights from and to.
MAX_SIDE = 640
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

SUFFIXES = (".jpg", ".jpeg", ".png")
FORMATS = ("JPEG", "PNG")
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


def draw_image(seed: int, number: int) -> tuple[Pixels, int]:
    """Draw one image before it is compressed, (height, width, 3), and its JPEG quality.

    Amplitudes fall as 1 / f, as they do in photographs (Field 1987), from equally distributed
    coefficients.
    """
    # a stream for each image: the first ones are the same whatever their number
    bits = np.random.PCG64([seed, number])
    _, widths, heights = SIZES[_choose(bits, SIZES)]
    width = _draw(bits, *widths)
    height = _draw(bits, *heights)
    _, quality = QUALITIES[_choose(bits, QUALITIES)]
    contrast = _draw(bits, *CONTRASTS)
    brightness, red, blue = (_draw_texture(bits, height, width) for _ in range(3))
    channels = np.stack([brightness + TINT * red, brightness, brightness + TINT * blue], axis=-1)
    pixels = np.clip(np.rint(MIDDLE + contrast * channels), 0, 255).astype(np.uint8)
    return pixels, quality


def _draw(bits: np.random.PCG64, first: int, last: int) -> int:
    return first + int(bits.random_raw()) % (last - first + 1)


def _choose(bits: np.random.PCG64, entries: Sequence[tuple[Any, ...]]) -> int:
    """Return the number of one entry, drawn by the shares that they begin with."""
    ends = list(accumulate(entry[0] for entry in entries))
    return bisect(ends, _draw(bits, 0, ends[-1] - 1))


def _draw_texture(bits: np.random.PCG64, height: int, width: int) -> npt.NDArray[np.float64]:
    """Cut a texture out of a square that repeats, of mean 0 and standard deviation 1."""
    amplitudes = _build_amplitudes()
    white = (
        bits.random_raw(amplitudes.size // 2).astype("<u8").view("<u2").astype(np.float64)
        - (2**16 - 1) / 2
    )
    spectrum = white.view(np.complex128).reshape(amplitudes.shape) * amplitudes
    cutting = np.fft.irfft2(spectrum, s=(MAX_SIDE, MAX_SIDE))[:height, :width]
    return np.asarray((cutting - cutting.mean()) / cutting.std())


@lru_cache(maxsize=None)  # noqa: UP033 (Python 3.8)
def _build_amplitudes() -> npt.NDArray[np.float64]:
    """Return 1 / f over the half plane of frequencies, without the mean."""
    down = np.fft.fftfreq(MAX_SIDE)[:, None]
    along = np.fft.rfftfreq(MAX_SIDE)[None, :]
    frequency = np.sqrt(down * down + along * along)
    frequency[0, 0] = np.inf
    amplitudes: npt.NDArray[np.float64] = 1 / frequency
    return amplitudes


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
    for name in (
        entry.name for entry in entries if entry.suffix.lower() in SUFFIXES and entry.is_file()
    ):
        if len(names) == max_images:
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                decode_image(_read(folder, name), *size)
            names.append(name)
        except UnusableImagesError as error:
            excluded.append(_keep_printable(f"{name}: {error.message}"))
    if not names:
        first = f"; {len(excluded)} left out, the first {excluded[0]}" if excluded else ""
        raise UnusableImagesError(
            f"holds no image that can be decoded{first}", document=str(folder)
        )
    return names, excluded


def decode_image(data: bytes, height: int, width: int) -> Pixels:
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


def _crop(image: Image.Image, height: int, width: int) -> Pixels:
    top, rows, above = _place_crop(image.height, height)
    left, columns, before = _place_crop(image.width, width)
    centre = np.asarray(image.crop((left, top, left + columns, top + rows)).convert("RGB"))
    if (rows, columns) == (height, width):
        return centre
    padded = np.zeros((height, width, 3), np.uint8)
    padded[above : above + rows, before : before + columns] = centre
    return padded


def _place_crop(length: int, size: int) -> tuple[int, int, int]:
    """Return where the crop begins along one axis of the image, its length, and the zeros before
    it.
    """
    if length < size:
        return 0, length, (size - length) // 2
    start = round((length - size) / 2)  # as torchvision rounds: .5 to the even number
    return start, size, 0


def normalise_images(pixels: Sequence[Pixels], dtype: str = "float32") -> Array:
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
            # "raise" costs a copy
            np.take(tables[channel], image[:, :, channel], out=planes[channel], mode="clip")
    return batch


@lru_cache(maxsize=None)  # noqa: UP033 (Python 3.8)
def _build_tables(dtype: str) -> Array:
    """Return the normalised value of each of the 256 values of a pixel, by channel."""
    if dtype not in DTYPES:
        raise ValueError(f"images are {' or '.join(DTYPES)}, not {dtype}")
    mean, deviation = np.array([MEAN, DEVIATION], np.float32)[:, :, None]
    table: npt.NDArray[np.float32] = (
        np.arange(256, dtype=np.float32) / np.float32(255) - mean
    ) / deviation
    return table.astype(dtype)


def hash_images(folder: Path, names: Iterable[str]) -> str:
    """Return the SHA-256 of what `sha256sum` prints for these images in this order."""
    total = hashlib.sha256()
    for name in names:
        total.update(
            hashlib.sha256(_read(folder, name)).hexdigest().encode()
            + b"  "
            + os.fsencode(name)
            + b"\n"
        )
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
        places = range(self._next, self._next + self.micro_batch * self.step, self.step)
        self._next = places.stop
        return [place % self._count for place in places]


class ImageStream(InputStream):
    """Images of a folder."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        height: int,
        width: int,
        dtype: str = "float32",
        **turns: int,
    ) -> None:
        super().__init__(len(names), **turns)
        self.folder = folder
        self.names = list(names)
        self.height = height
        self.width = width
        self.dtype = dtype
        self._loaded: list[str] = []

    def load(self) -> list[bytes]:
        """Read the bytes of the next files from the disk.

        Raises UnusableImagesError for one that is gone.
        """
        self._loaded = [self.names[place] for place in self.choose()]
        return [_read(self.folder, name) for name in self._loaded]

    def prepare(self, data: Sequence[bytes]) -> Array:
        """Return what `load` read as the session takes it: (micro-batch, 3, height, width)."""
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
        self, file: Path | str, inputs: Sequence[str], dtype: str = "float32", **turns: int
    ) -> None:
        with np.load(file) as arrays:
            read = {name: arrays[str(number)] for number, name in enumerate(inputs)}
        self._arrays = {
            name: x.astype(dtype) if x.dtype.kind == "f" else x for name, x in read.items()
        }
        super().__init__(len(next(iter(self._arrays.values()))), **turns)

    def load(self) -> list[int]:
        """Return the numbers of the next sequences, which are in memory."""
        return self.choose()

    def prepare(self, data: Sequence[int]) -> dict[str, Any]:
        """Return what `load` chose as the session takes it, by input: (micro-batch, …),
        C-contiguous.
        """
        return {name: x[data] for name, x in self._arrays.items()}


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


def generate_sequences(inputs: Sequence[TextInput], count: int, seed: int) -> dict[str, Array]:
    """Return `count` full sequences: tokens drawn evenly from the table, no padding, one segment.

    The same on every machine and with every numpy, which fixes PCG64's raw draws.
    """
    return {own.name: _fill_input(own, count, seed + number) for number, own in enumerate(inputs)}


def _fill_input(own: TextInput, count: int, seed: int) -> Array:
    shape = (count, *own.shape)
    if own.role == "tokens":
        draws = np.random.PCG64(seed).random_raw(math.prod(shape)) % np.uint64(own.limit)
        return draws.reshape(shape).astype(own.dtype)
    if own.role == "positions":
        return np.ascontiguousarray(
            np.broadcast_to(np.arange(own.shape[-1]), shape).astype(own.dtype)
        )
    # A float mask is added to the scores: zeros hide nothing. An integer one says which tokens
    # count.
    value = own.role == "mask" and not own.dtype.startswith("float")
    return np.full(shape, value, dtype=own.dtype)


def save_sequences(file: Path, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Write arrays of one length; return the arguments of their `SequenceStream`."""
    np.savez(file, **{str(number): x for number, x in enumerate(arrays.values())})
    return {"file": str(file), "inputs": list(arrays)}


def hash_sequences(arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of names, types, shapes and bytes in the order of the names."""
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
    return total.hexdigest()
