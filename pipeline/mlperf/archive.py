"""A results checkout in a tar archive: read in one pass, nothing is unpacked to disk and no link is followed."""

from __future__ import annotations

import io
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from gzip import GzipFile
from pathlib import PurePosixPath
from typing import IO, Any, BinaryIO, Protocol, cast

from pipeline.errors import DocumentDamaged, DocumentTooLarge, DocumentUnrecognised
from pipeline.mlperf.layout import LOG, SCALING, Finding
from pipeline.mlperf.lines import CHUNK
from pipeline.mlperf.log import Log
from pipeline.mlperf.rules import rules
from pipeline.mlperf.score import Run
from pipeline.mlperf.scoring import Progress, Round, assemble, planned, read_run
from pipeline.mlperf.tree import MAX_SMALL, PARTS, Listing

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
MAX_RATIO = 500
MAX_UNPACKED = 10**9
MAX_MEMBERS = 1_000_000
MAX_KEPT = 250_000
MAX_HEADER = 2**20
XZ_MEMORY = 2**28
BLOCK = 2**18
MEGABYTE = 10**6
BROKEN = (tarfile.TarError, ValueError, LookupError, OverflowError, RecursionError)
UNPACKING = (OSError, EOFError, lzma.LZMAError, zlib.error)


def is_archive(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)


def open_local(path: str) -> BinaryIO:
    return open(path, "rb", buffering=0)


def score_archive(
    path: str,
    *,
    digests: bool = False,
    round_: str | None = None,
    progress: Progress = lambda *_: None,
    opened: Callable[[str], BinaryIO] = open_local,
) -> Round:
    """Score every entry in an archive, as `score_tree` does of the folder that it would unpack to.

    `progress` counts megabytes of the archive. Raises DocumentUnrecognised where there is no such file or no entry,
    DocumentTooLarge for a bomb, DocumentDamaged for what is truncated or no tar.
    """
    try:
        file = opened(path)
    except OSError as error:
        raise DocumentUnrecognised(f"cannot be opened: {error.strerror or error}", document=path) from error
    with file:
        held = _Held(digests)
        try:
            _read(_Unpacked(file, path), held, progress)
        except DocumentTooLarge as error:
            raise DocumentTooLarge(error.message, document=path, place=held.place) from error
        except (DocumentDamaged, tarfile.TarError) as error:
            raise DocumentDamaged(f"is damaged or truncated: {error}", document=path, place=held.place) from error
    known, name = rules(), PurePosixPath(path).name
    found = planned(held.listing(), known, round_ or name)
    runs = {entry: tuple(held.runs[f"{entry.full_path}/{log}"] for log in entry.logs) for entry in found.entries}
    return assemble(found, runs, held.small_file, known)


def _read(unpacked: _Unpacked, held: _Held, progress: Progress) -> None:
    for count, (tar, member) in enumerate(_members(unpacked), start=1):
        if count > MAX_MEMBERS or len(held.paths) + len(held.findings) > MAX_KEPT:
            raise DocumentTooLarge(f"holds more than {MAX_MEMBERS:,} members or {MAX_KEPT:,} of a round")
        held.take(tar, member)
        progress(*unpacked.progress())
    if unpacked.has_more:
        held.findings.append(Finding(".", "something stands behind the end of the archive: not read"))


def _members(unpacked: _Unpacked) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Every member while its bytes can be read."""
    source: Any = unpacked
    with _as_damage(BROKEN):
        tar: Any = tarfile.open(fileobj=source, mode="r|", bufsize=BLOCK, tarinfo=_header_class(unpacked))  # noqa: SIM115
    with tar:
        while (member := _next(tar)) is not None:
            unpacked.header_ends()
            unpacked.check(tar.offset)
            yield tar, member
            tar.members.clear()
            tar.pax_headers.clear()
        unpacked.drain(tar.fileobj)


def _next(tar: tarfile.TarFile) -> tarfile.TarInfo | None:
    with _as_damage(BROKEN):
        return tar.next()


def _header_class(unpacked: _Unpacked) -> type[tarfile.TarInfo]:
    class Header(tarfile.TarInfo):
        """A header whose length is bounded, and which is damage where `tarfile` would see the end of the archive."""

        @classmethod
        def frombuf(cls, *args: Any, **kwargs: Any) -> Any:
            unpacked.header_begins()
            try:
                return super().frombuf(*args, **kwargs)
            except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
                raise
            except tarfile.HeaderError as error:
                raise tarfile.ReadError(f"{error} where a header must stand") from error

    return Header


class _Held:
    """What is kept of the members: paths, runs, small files and findings; of a path that comes twice, the last."""

    def __init__(self, digests: bool) -> None:
        self.digests = digests
        self.paths: set[str] = set()
        self.runs: dict[str, Run] = {}
        self.small: dict[str, bytes | DocumentTooLarge] = {}
        self.findings: list[Finding] = []
        self.place = "at its start"

    def listing(self) -> Listing:
        return Listing(tuple(self.paths), tuple(self.findings))

    def small_file(self, path: str) -> bytes | None:
        """Raises DocumentTooLarge."""
        data = self.small.get(path)
        if isinstance(data, DocumentTooLarge):
            raise data
        return data

    def take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self.place = f"after {member.name}"
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        path = "/".join(parts)
        if member.name.startswith("/") or ".." in parts:
            self._tell(member.name, "leads out of the archive: not read")
        elif member.isdir():
            self._take_folder(path, parts)
        elif not member.isreg():
            self._take_special(path, parts, member)
        elif _is_file_of_round(parts):
            self._forget(path)
            self._take_file(path, parts[-1], tar, member)

    def _take_folder(self, path: str, parts: list[str]) -> None:
        if _is_folder_of_round(parts):
            self.paths.add(f"{path}/")

    def _take_special(self, path: str, parts: list[str], member: tarfile.TarInfo) -> None:
        if len(parts) <= 2 or _is_folder_of_round(parts) or _is_file_of_round(parts):
            self._forget(path)
            is_link = member.issym() or member.islnk()
            self._tell(path, "is a link: not followed" if is_link else "is no regular file: not read")

    def _take_file(self, path: str, name: str, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if name.endswith(".txt"):
            self.paths.add(path)
            if fnmatchcase(name, LOG):
                self.runs[path] = self._run(name, tar, member)
            return
        if name != SCALING:
            self.paths.add(path)
        self.small[path] = _small(tar, member)

    def _run(self, name: str, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Run:
        if member.issparse():
            return Run(name, Log(problem="is a sparse file: not read"))
        return read_run(_chunks(tar, member), name, self.digests)

    def _forget(self, path: str) -> None:
        if path in self.paths or path in self.small:
            self._tell(path, "stands in the archive twice: the last one counts, as when it is unpacked")
        self.paths.discard(path)
        self.runs.pop(path, None)
        self.small.pop(path, None)

    def _tell(self, path: str, message: str) -> None:
        self.findings.append(Finding(path, message))


def _is_folder_of_round(parts: list[str]) -> bool:
    inner = _inner(parts)
    return inner is not None and (len(inner) <= 3 if inner[0] == "results" else len(inner) == 1)


def _is_file_of_round(parts: list[str]) -> bool:
    inner = _inner(parts)
    if inner is None or inner[0] == "systems":
        return inner is not None and len(inner) == 2 and inner[1].endswith(".json")
    return len(inner) == 4 and (inner[3].endswith(".txt") or inner[3] == SCALING)


def _inner(parts: list[str]) -> list[str] | None:
    """From `results` or `systems` on, where they stand in a submitter's folder; that is at the top or one below it."""
    return next((parts[depth:] for depth in (1, 2) if parts[depth : depth + 1] and parts[depth] in PARTS), None)


def _small(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | DocumentTooLarge:
    if member.issparse():
        return DocumentTooLarge("is a sparse file: not read")
    if member.size > MAX_SMALL:
        return DocumentTooLarge(f"is larger than {MAX_SMALL:,} bytes")
    return b"".join(_chunks(tar, member))


def _chunks(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    file = tar.extractfile(member)
    while file is not None and (chunk := file.read(CHUNK)):
        yield chunk


class _Reads(Protocol):
    def read(self, size: int = ..., /) -> bytes: ...


class _Unpacked:
    """The unpacked bytes of an archive. Raises DocumentTooLarge and DocumentDamaged."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.name = path
        self.file: IO[bytes] = io.BufferedReader(cast(io.RawIOBase, file), BLOCK)
        with _as_damage(UNPACKING):
            self.size = self.file.seek(0, os.SEEK_END)
            self.file.seek(0)
            self.stream = _unpacking(self.file)
        self.most = max(MAX_UNPACKED, MAX_RATIO * self.size)
        self.count = 0
        self.header_at: int | None = None
        self.is_ending = self.has_more = False

    def read(self, size: int) -> bytes:
        with _as_damage(UNPACKING):
            data = self.stream.read(size)
        if not data and not self.is_ending:
            raise DocumentDamaged("it ends before its end mark")
        self.count += len(data)
        self.check(self.count)
        if self.header_at is not None and self.count - self.header_at > MAX_HEADER + BLOCK:
            raise DocumentTooLarge(f"a header is longer than {MAX_HEADER:,} bytes")
        return data

    def check(self, count: int) -> None:
        if count > self.most:
            raise DocumentTooLarge(f"unpacks to more than {self.most:,} bytes: a bomb, {MAX_RATIO} times its own size")

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
def _as_damage(errors: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise DocumentDamaged(str(error)) from error


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
