"""Decompress a tar archive as a stream with limits: a bomb is refused, and the end of a truncated archive is damage."""

from __future__ import annotations

import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import GzipFile
from typing import IO, Any, BinaryIO, Protocol, cast

from ipu_results._util.limits import MAX_HEADER, MAX_RATIO, MAX_UNPACKED_BYTES, MAX_XZ_MEMORY
from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError

BLOCK = 2**18
MEGABYTE = 10**6
DECOMPRESS_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)


class _Readable(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class DecompressedStream:
    """The bytes of an archive. Raises DocumentTooLargeError and DamagedDocumentError."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.name = path
        self.file: IO[bytes] = io.BufferedReader(cast(io.RawIOBase, file), BLOCK)
        with as_damage(DECOMPRESS_ERRORS):
            self.size = self.file.seek(0, os.SEEK_END)
            self.file.seek(0)
            self.stream = _open_stream(self.file)
        self.max_bytes = max(MAX_UNPACKED_BYTES, MAX_RATIO * self.size)
        self.count = 0
        self.header_start: int | None = None
        self.is_ending = self.has_more = False

    def read(self, size: int) -> bytes:
        with as_damage(DECOMPRESS_ERRORS):
            data = self.stream.read(size)
        if not data and not self.is_ending:
            raise DamagedDocumentError("it ends before its end mark")
        self.count += len(data)
        self.check_size(self.count)
        if self.header_start is not None and self.count - self.header_start > MAX_HEADER + BLOCK:
            raise DocumentTooLargeError(f"a header is longer than {MAX_HEADER:,} bytes")
        return data

    def check_size(self, count: int) -> None:
        if count > self.max_bytes:
            raise DocumentTooLargeError(
                f"decompresses to more than {self.max_bytes:,} bytes, {MAX_RATIO} times its own size: a bomb"
            )

    def begin_header(self) -> None:
        self.header_start = self.count if self.header_start is None else self.header_start

    def end_header(self) -> None:
        self.header_start = None

    def progress(self) -> tuple[int, int]:
        """Return the megabytes read and all megabytes of the archive."""
        return self.file.tell() // MEGABYTE, self.size // MEGABYTE

    def drain(self, rest: Any) -> None:
        """Read `rest` to its end, which shows whether it is complete and whether it is mere padding."""
        self.end_header()
        self.is_ending = True
        while data := rest.read(BLOCK):
            self.has_more |= bool(data.strip(b"\0"))


@contextmanager
def as_damage(errors: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise DamagedDocumentError(str(error)) from error


def _open_stream(file: IO[bytes]) -> _Readable:
    """Choose the decompressor by the first bytes, whatever the file is called."""
    first = file.read(6)
    file.seek(0)
    if first.startswith(b"\xfd7zXZ\x00"):
        return _XzStream(file)
    return GzipFile(fileobj=file) if first.startswith(b"\x1f\x8b") else file


class _XzStream:
    """The streams of an .xz file, with the limit on memory that `lzma.open` lacks."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)

    def read(self, size: int = BLOCK, /) -> bytes:
        data = b""
        while not data:
            packed = b""
            if self.decoder.eof:
                packed = self._read_next_stream()
                if not packed:
                    break
                self.decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)
            elif self.decoder.needs_input:
                packed = self.file.read(BLOCK)
                if not packed:
                    raise EOFError("the compressed data ends before its end mark")
            data = self.decoder.decompress(packed, size)
        return data

    def _read_next_stream(self) -> bytes:
        packed = self.decoder.unused_data.lstrip(b"\0")
        while not packed and (more := self.file.read(BLOCK)):
            packed = more.lstrip(b"\0")
        return packed
