"""The unpacked bytes of a tar archive, bounded: a bomb is refused and a truncated archive is damage, not an end."""

from __future__ import annotations

import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import GzipFile
from typing import IO, Any, BinaryIO, Protocol, cast

from ipu_results.errors import DamagedDocumentError, DocumentTooLargeError

MAX_RATIO = 500
MAX_UNPACKED = 10**9
MAX_HEADER = 2**20
XZ_MEMORY = 2**28
BLOCK = 2**18
MEGABYTE = 10**6
UNPACKING = (OSError, EOFError, lzma.LZMAError, zlib.error)


class _Reads(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class Unpacked:
    """The unpacked bytes of an archive. Raises DocumentTooLargeError and DamagedDocumentError."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.name = path
        self.file: IO[bytes] = io.BufferedReader(cast(io.RawIOBase, file), BLOCK)
        with as_damage(UNPACKING):
            self.size = self.file.seek(0, os.SEEK_END)
            self.file.seek(0)
            self.stream = _unpacking(self.file)
        self.most = max(MAX_UNPACKED, MAX_RATIO * self.size)
        self.count = 0
        self.header_at: int | None = None
        self.is_ending = self.has_more = False

    def read(self, size: int) -> bytes:
        with as_damage(UNPACKING):
            data = self.stream.read(size)
        if not data and not self.is_ending:
            raise DamagedDocumentError("it ends before its end mark")
        self.count += len(data)
        self.check(self.count)
        if self.header_at is not None and self.count - self.header_at > MAX_HEADER + BLOCK:
            raise DocumentTooLargeError(f"a header is longer than {MAX_HEADER:,} bytes")
        return data

    def check(self, count: int) -> None:
        if count > self.most:
            raise DocumentTooLargeError(
                f"unpacks to more than {self.most:,} bytes: a bomb, {MAX_RATIO} times its own size"
            )

    def header_begins(self) -> None:
        self.header_at = self.count if self.header_at is None else self.header_at

    def header_ends(self) -> None:
        self.header_at = None

    def progress(self) -> tuple[int, int]:
        return self.file.tell() // MEGABYTE, self.size // MEGABYTE

    def drain(self, rest: Any) -> None:
        """Read `rest` to the end, which shows whether it is whole and whether it is mere padding."""
        self.header_ends()
        self.is_ending = True
        while data := rest.read(BLOCK):
            self.has_more |= bool(data.strip(b"\0"))


@contextmanager
def as_damage(errors: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise DamagedDocumentError(str(error)) from error


def _unpacking(file: IO[bytes]) -> _Reads:
    """By the first bytes, whatever the name says."""
    first = file.read(6)
    file.seek(0)
    if first.startswith(b"\xfd7zXZ\x00"):
        return _Xz(file)
    return GzipFile(fileobj=file) if first.startswith(b"\x1f\x8b") else file


class _Xz:
    """The streams of an .xz file, with a bound on the memory that they may ask for; `lzma.open` has none."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.one = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    def read(self, size: int = BLOCK, /) -> bytes:
        data = b""
        while not data:
            packed = b""
            if self.one.eof:
                packed = self._next_stream()
                if not packed:
                    break
                self.one = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
            elif self.one.needs_input:
                packed = self.file.read(BLOCK)
                if not packed:
                    raise EOFError("the compressed data ends before its end mark")
            data = self.one.decompress(packed, size)
        return data

    def _next_stream(self) -> bytes:
        packed = self.one.unused_data.lstrip(b"\0")
        while not packed and (more := self.file.read(BLOCK)):
            packed = more.lstrip(b"\0")
        return packed
