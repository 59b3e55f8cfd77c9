"""A results checkout in a tar archive: read in one pass, nothing is unpacked to disk and no link is followed."""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from ipu_results.errors import DamagedDocumentError, DocumentError, DocumentTooLargeError, UnrecognisedDocumentError
from ipu_results.mlperf.layout import LOG, SCALING, Finding
from ipu_results.mlperf.lines import CHUNK
from ipu_results.mlperf.log import Log
from ipu_results.mlperf.rules import rules
from ipu_results.mlperf.score import Run
from ipu_results.mlperf.scoring import Progress, Round, assemble, planned, read_run
from ipu_results.mlperf.tree import MAX_SMALL, PARTS, Listing
from ipu_results.mlperf.unpacked import BLOCK, Unpacked, as_damage

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
MAX_MEMBERS = 1_000_000
MAX_KEPT = 250_000
MAX_LINKS = 8
BROKEN = (tarfile.TarError, ValueError, LookupError, OverflowError, RecursionError)


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

    `progress` counts megabytes of the archive. Raises UnrecognisedDocumentError where there is no such file or no entry,
    DocumentTooLargeError for a bomb, DamagedDocumentError for what is truncated or no tar.
    """
    try:
        file = opened(path)
    except OSError as error:
        raise UnrecognisedDocumentError(f"cannot be opened: {error.strerror or error}", document=path) from error
    with file:
        held = _Held(digests)
        try:
            _read(Unpacked(file, path), held, progress)
        except DocumentTooLargeError as error:
            raise DocumentTooLargeError(error.message, document=path, place=held.place) from error
        except (DamagedDocumentError, tarfile.TarError) as error:
            raise DamagedDocumentError(f"is damaged or truncated: {error}", document=path, place=held.place) from error
    known, name = rules(), PurePosixPath(path).name
    found = planned(held.listing(), known, round_ or name)
    runs = {entry: tuple(held.run(f"{entry.full_path}/{log}") for log in entry.logs) for entry in found.entries}
    return assemble(found, runs, held.small_file, known)


def _read(unpacked: Unpacked, held: _Held, progress: Progress) -> None:
    for count, (tar, member) in enumerate(_members(unpacked), start=1):
        if count > MAX_MEMBERS or len(held.paths) + len(held.findings) > MAX_KEPT:
            raise DocumentTooLargeError(f"holds more than {MAX_MEMBERS:,} members or {MAX_KEPT:,} of a round")
        held.take(tar, member)
        progress(*unpacked.progress())
    if unpacked.has_more:
        held.findings.append(Finding(".", "something stands behind the end of the archive: not read"))


def _members(unpacked: Unpacked) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Every member while its bytes can be read."""
    source: Any = unpacked
    with as_damage(BROKEN):
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
    with as_damage(BROKEN):
        return tar.next()


def _header_class(unpacked: Unpacked) -> type[tarfile.TarInfo]:
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
        self.small: dict[str, bytes | DocumentError] = {}
        self.links: dict[str, str] = {}
        self.findings: list[Finding] = []
        self.place = "at its start"

    def listing(self) -> Listing:
        return Listing(tuple(self.paths), tuple(self.findings))

    def small_file(self, path: str) -> bytes | None:
        """Raises DocumentError."""
        data = self.small.get(self._behind(path))
        if isinstance(data, DocumentError):
            raise data
        if data is None and path in self.links:
            raise DamagedDocumentError("is a link to what is not read")
        return data

    def run(self, path: str) -> Run:
        """The run of a log; a link to a log that was read is that log, as in the folder, any other is not read."""
        name = path.rpartition("/")[2]
        found = self.runs.get(self._behind(path))
        return replace(found, file=name) if found else Run(name, Log(problem="is a link to what is not read"))

    def _behind(self, path: str) -> str:
        for _ in range(MAX_LINKS):
            path = self.links.get(path, path)
        return path

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
        if _is_file_of_round(parts):
            self._forget(path)
            self._keep_path(path)
            beside = f"{posixpath.dirname(path)}/" if member.issym() else ""
            self.links[path] = posixpath.normpath(beside + member.linkname) if member.issym() or member.islnk() else ""
        elif len(parts) <= 2 or _is_folder_of_round(parts):
            self._tell(path, "is a link or no folder: not followed")

    def _keep_path(self, path: str) -> None:
        if not path.endswith(f"/{SCALING}"):
            self.paths.add(path)

    def _take_file(self, path: str, name: str, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self._keep_path(path)
        if not name.endswith(".txt"):
            self.small[path] = _small(tar, member)
        elif fnmatchcase(name, LOG):
            self.runs[path] = self._run(name, tar, member)

    def _run(self, name: str, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Run:
        if member.issparse():
            return Run(name, Log(problem="is a sparse file: not read"))
        return read_run(_chunks(tar, member), name, self.digests)

    def _forget(self, path: str) -> None:
        if path in self.paths or path in self.small or path in self.links:
            self._tell(path, "stands in the archive twice: the last one counts, as when it is unpacked")
        self.paths.discard(path)
        self.runs.pop(path, None)
        self.small.pop(path, None)
        self.links.pop(path, None)

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


def _small(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | DocumentError:
    if member.issparse():
        return DocumentTooLargeError("is a sparse file: not read")
    if member.size > MAX_SMALL:
        return DocumentTooLargeError(f"is larger than {MAX_SMALL:,} bytes")
    return b"".join(_chunks(tar, member))


def _chunks(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    file = tar.extractfile(member)
    while file is not None and (chunk := file.read(CHUNK)):
        yield chunk
