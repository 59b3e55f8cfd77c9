"""Read a results checkout from a tar archive, in one pass: nothing is written to disk, and no link
is followed.

`tarfile` reads the members. Its extraction filter is of no use here, since nothing is extracted and
what it would move or leave out has to be reported. What `tarfile` lacks is added: a cap on the
bytes of the stream and of a header, a limit on the memory of xz, and an error for an archive that
ends early.
"""

from __future__ import annotations

import io
import lzma
import os
import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from gzip import GzipFile
from typing import IO, Any, BinaryIO, cast

from ipu_results.errors import (
    DamagedDocumentError,
    DocumentError,
    DocumentTooLargeError,
    UnrecognisedDocumentError,
)
from ipu_results.kit.limits import (
    MAX_HEADER,
    MAX_KEPT,
    MAX_LINKS,
    MAX_MEMBERS,
    MAX_RATIO,
    MAX_SMALL,
    MAX_UNPACKED_BYTES,
    MAX_XZ_MEMORY,
)
from ipu_results.mlperf.entries import (
    POWER_DEPTH,
    SCALING_FILE,
    FileFinding,
    Location,
    is_log,
    is_power_log,
    locate,
)
from ipu_results.mlperf.log import CHUNK, Log, read_log
from ipu_results.mlperf.tree import Listing

# bytes read at once, which is also how far a limit may be exceeded before it is noticed
BLOCK = 2**18
MEGABYTE = 10**6  # the unit of progress
SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
# what the decoders and `tarfile` raise for bytes that are not what they say
DECOMPRESS_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)
TAR_ERRORS = (tarfile.TarError, ValueError, LookupError, OverflowError, RecursionError)
UNREAD_SPARSE = "is a sparse file; not read"
UNREAD_LINK = "is a link to a file that is not read"

Progress = Callable[[int, int], None]


class CappedStream:
    """The unpacked bytes of an archive. Raises DocumentTooLargeError and DamagedDocumentError.

    `header_start` is where the header began that is being read, None between headers.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file: IO[bytes] = io.BufferedReader(cast(io.RawIOBase, file), BLOCK)
        with as_damage(DECOMPRESS_ERRORS):
            self.size = self.file.seek(0, os.SEEK_END)
            self.file.seek(0)
            self.blocks = _unpack(self.file)
        self.max_bytes = max(MAX_UNPACKED_BYTES, MAX_RATIO * self.size)
        self.count = 0
        self.header_start: int | None = None
        self.is_ending = False
        self.has_more = False

    def read(self, size: int) -> bytes:  # noqa: ARG002  (tarfile accepts any number of bytes)
        with as_damage(DECOMPRESS_ERRORS):
            data = next(self.blocks, b"")
        if not data and not self.is_ending:
            raise DamagedDocumentError("it ends before its end mark")
        self.count += len(data)
        self.check_size(self.count)
        # tarfile holds a whole header in memory, which may be as long as it says it is.
        if self.header_start is not None and self.count - self.header_start > MAX_HEADER + BLOCK:
            raise DocumentTooLargeError(f"a header is longer than {MAX_HEADER:,} bytes")
        return data

    def check_size(self, count: int) -> None:
        if count > self.max_bytes:
            raise DocumentTooLargeError(
                f"decompresses to more than {self.max_bytes:,} bytes, {MAX_RATIO} times its own"
                " size: a bomb"
            )

    def drain(self, rest: Any) -> None:
        """Read `rest` to its end, which shows whether it is complete and whether it is mere
        padding.
        """
        self.header_start = None
        self.is_ending = True
        while data := rest.read(BLOCK):
            self.has_more |= bool(data.strip(b"\0"))


@contextmanager
def as_damage(errors: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise DamagedDocumentError(str(error)) from error


def _unpack(file: IO[bytes]) -> Iterator[bytes]:
    """Return the unpacked blocks of a file, by its first bytes and whatever it is called."""
    first = file.read(6)
    file.seek(0)
    if first.startswith(b"\xfd7zXZ\x00"):
        return _unpack_xz(file)
    source: Any = file  # a plain tar archive
    if first.startswith(b"\x1f\x8b"):
        source = GzipFile(fileobj=file)
    return iter(partial(source.read, BLOCK), b"")


def _unpack_xz(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the streams of an .xz file, padding between them left out; `lzma.open` has no limit on
    memory.
    """
    packed = file.read(BLOCK)
    while packed:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY)
        while not decoder.eof:
            if decoder.needs_input and not packed:
                packed = file.read(BLOCK)
                if not packed:
                    raise EOFError("the compressed data ends before its end mark")
            # the decoder keeps what it does not unpack at once
            data = decoder.decompress(packed, BLOCK)
            packed = b""
            if data:
                yield data
        packed = _skip_padding(decoder.unused_data, file)


def _skip_padding(packed: bytes, file: IO[bytes]) -> bytes:
    """Return the start of the next stream, empty at the end of the file."""
    while True:
        packed = packed.lstrip(b"\0")
        if packed:
            return packed
        packed = file.read(BLOCK)
        if not packed:
            return b""


def is_archive(path: str) -> bool:
    """Return whether `path` is read as one stream."""
    return path.lower().endswith(SUFFIXES) and not os.path.isdir(path)


def read_archive(path: str, progress: Progress) -> ArchiveContents:
    """Read what an archive holds of a round. `progress` counts megabytes of the archive.

    Raises UnrecognisedDocumentError for a file that cannot be opened, DocumentTooLargeError for a
    bomb, DamagedDocumentError for what is truncated or not a tar archive.
    """
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed below)
    except OSError as error:
        raise UnrecognisedDocumentError(
            f"cannot be opened: {error.strerror or error}", document=path
        ) from error
    with file:
        contents = ArchiveContents(os.path.basename(path))
        try:
            # named here, as a stream that nothing refers to closes its file
            stream = CappedStream(file)
            _read_members(stream, contents, progress)
        except DocumentTooLargeError as error:
            raise DocumentTooLargeError(
                error.message, document=path, place=contents.place
            ) from error
        except (DamagedDocumentError, tarfile.TarError) as error:
            message = f"is damaged or truncated: {error}"
            raise DamagedDocumentError(message, document=path, place=contents.place) from error
    return contents


def _read_members(stream: CappedStream, contents: ArchiveContents, progress: Progress) -> None:
    for count, (tar, member) in enumerate(_iterate_members(stream), start=1):
        if count > MAX_MEMBERS or len(contents.paths) + len(contents.findings) > MAX_KEPT:
            raise DocumentTooLargeError(
                f"has more than {MAX_MEMBERS:,} members or {MAX_KEPT:,} files of a round"
            )
        contents.add(tar, member)
        progress(stream.file.tell() // MEGABYTE, stream.size // MEGABYTE)
    # such as a second archive: nobody who unpacks the first one would see it
    if stream.has_more:
        contents.findings.append(FileFinding(".", "ignoring data after the end of the archive"))


def _iterate_members(stream: CappedStream) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield every member while its bytes can be read."""
    source: Any = stream
    with as_damage(TAR_ERRORS):
        tar: Any = tarfile.open(  # noqa: SIM115
            fileobj=source, mode="r|", bufsize=BLOCK, tarinfo=_header_class(stream)
        )
    with tar:
        while True:
            with as_damage(TAR_ERRORS):
                member = tar.next()
            if member is None:  # the end mark
                break
            stream.header_start = None
            # where the member will end: a bomb is refused before it is unpacked
            stream.check_size(tar.offset)
            yield tar, member
            # tarfile keeps every member; an archive may have a million of them.
            tar.members.clear()
            tar.pax_headers.clear()
        stream.drain(tar.fileobj)


def _header_class(stream: CappedStream) -> type[tarfile.TarInfo]:
    class Header(tarfile.TarInfo):
        """A header of bounded length; a broken one is damage, where `tarfile` would see the end of
        the archive.
        """

        @classmethod
        def frombuf(cls, *args: Any, **kwargs: Any) -> Any:
            # A header of several blocks is one: each block but the first is read within it.
            if stream.header_start is None:
                stream.header_start = stream.count
            try:
                return super().frombuf(*args, **kwargs)
            except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
                raise
            except tarfile.HeaderError as error:
                raise tarfile.ReadError(f"{error} in place of a header") from error

    return Header


class ArchiveContents:
    """The paths, logs, small files and links of a round; of a path that occurs twice, the last, as
    when unpacked.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.paths: set[str] = set()
        self.logs: dict[str, Log] = {}
        self.small: dict[str, bytes | DocumentError] = {}
        self.links: dict[str, str] = {}
        self.findings: list[FileFinding] = []
        self.place = "at its start"

    def listing(self) -> Listing:
        return Listing(tuple(self.paths), tuple(self.findings))

    def small_file(self, path: str) -> bytes | None:
        """Return the bytes of a description or scaling file, None without such a file.

        Raises DocumentError.
        """
        data = self.small.get(self._resolve(path))
        if isinstance(data, DocumentError):
            raise data
        if data is None and path in self.links:
            raise DamagedDocumentError(UNREAD_LINK)
        return data

    def chunks(self, path: str) -> Iterator[bytes]:
        yield self.small_file(path) or b""

    def log(self, path: str) -> Log:
        """Return a log; a link to a log that was read is that log, as in the folder."""
        log = self.logs.get(self._resolve(path))
        return log or Log(problem=UNREAD_LINK)

    def _resolve(self, path: str) -> str:
        for _ in range(MAX_LINKS):  # links may lead in a circle
            path = self.links.get(path, path)
        return path

    def add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Keep what a member holds of a round."""
        self.place = f"after {member.name}"
        parts = [part for part in member.name.split("/") if part not in ("", ".")]
        path = "/".join(parts)
        if member.name.startswith("/") or ".." in parts:
            self.findings.append(FileFinding(member.name, "leads out of the archive; not read"))
            return
        if member.isdir():
            if locate(f"{path}/"):
                self.paths.add(f"{path}/")
            return
        location = locate(path)
        if location and _is_read(location):
            self._forget(path)
            # a scaling file alone makes no entry
            if parts[-1] != SCALING_FILE:
                self.paths.add(path)
            if member.isreg():
                self._add_file(path, location, tar, member)
            else:
                self.links[path] = _link_target(path, member)
            return
        if member.isreg():
            return
        # in place of a submitter, a system or a benchmark; a link in their code is no matter
        if len(parts) <= 2 or locate(f"{path}/"):
            self.findings.append(FileFinding(path, "is a link or not a folder; not followed"))

    def _add_file(
        self, path: str, location: Location, tar: tarfile.TarFile, member: tarfile.TarInfo
    ) -> None:
        names = location.names
        if not path.endswith(".txt") or is_power_log(names):
            self.small[path] = _read_small(tar, member)
        elif is_log(names) and member.issparse():
            # Its holes take no room in the archive, so no cap on its bytes would stop it.
            self.logs[path] = Log(problem=UNREAD_SPARSE)
        elif is_log(names):
            self.logs[path] = read_log(_chunks(tar, member))

    def _forget(self, path: str) -> None:
        if path in self.paths or path in self.small or path in self.links:
            message = "occurs twice in the archive; the last one is used"
            self.findings.append(FileFinding(path, message))
        self.paths.discard(path)
        self.logs.pop(path, None)
        self.small.pop(path, None)
        self.links.pop(path, None)


def _is_read(location: Location) -> bool:
    """Return whether a file is a description, a log of a run or of its power, or a scaling file."""
    names = location.names
    if location.part != "results":
        return True
    if names[2:] == (SCALING_FILE,):
        return True
    if not names[-1].endswith(".txt"):
        return False
    return len(names) < POWER_DEPTH or is_power_log(names)


def _link_target(path: str, member: tarfile.TarInfo) -> str:
    """Return the path that a link leads to; empty for a device."""
    # the target of a symbolic link is relative to it, that of a hard link to the archive
    if member.issym():
        return posixpath.normpath(f"{posixpath.dirname(path)}/{member.linkname}")
    if member.islnk():
        return posixpath.normpath(member.linkname)
    return ""


def _read_small(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | DocumentError:
    if member.issparse():
        return DocumentTooLargeError(UNREAD_SPARSE)
    if member.size > MAX_SMALL:
        return DocumentTooLargeError(f"is larger than {MAX_SMALL:,} bytes")
    return b"".join(_chunks(tar, member))


def _chunks(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    file = tar.extractfile(member)
    if file:
        while chunk := file.read(CHUNK):
            yield chunk
