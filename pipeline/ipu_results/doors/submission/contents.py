"""Read a bundle, a folder or a ZIP archive, in memory: nothing is unpacked, followed or run."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ipu_results.doors.submission.bundle import (
    COLUMNS,
    DESCRIPTION,
    ENVIRONMENT,
    RESULTS,
    SIDECAR,
    Bundle,
    Files,
    Line,
    Submission,
    compute_id,
)
from ipu_results.doors.submission.refusals import (
    Fault,
    RefusedError,
    check_description,
    check_schema,
    check_text,
    list_texts,
)
from ipu_results.errors import SubmissionError
from ipu_results.kit.files import read_up_to
from ipu_results.kit.limits import (
    MAX_BUNDLE_BYTES,
    MAX_BUNDLE_FILE,
    MAX_BUNDLE_FILES,
    MAX_BUNDLE_RATIO,
    MAX_SUBMITTED_ROWS,
)
from ipu_results.kit.text import collect_unique, parse_toml, refuse_constant

NEEDED = (DESCRIPTION, RESULTS)
KNOWN = (*NEEDED, ENVIRONMENT, SIDECAR)
ZIP = b"PK\x03\x04"
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1  # bit of the flags of an entry
# Record after the directory of an archive; it ends with the length of the comment that follows it.
END = b"PK\x05\x06"
END_BYTES = 22
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
MAX_VALUES = 500  # of the environment
MAX_REASON = 200  # characters of what a parser says

Read = Callable[[], bytes | None]


def read_contents(path: Path) -> tuple[Files, list[Fault]]:
    """Return the files of a bundle by name, and what is wrong with them.

    Raises SubmissionError without a bundle.
    """
    files: Files = {}
    faults: list[Fault] = []
    try:
        for place, read in _list_entries(path):
            faults += _take_entry(files, place, read)
    except RefusedError as refused:
        faults.append(refused.fault)
    except DAMAGED as error:
        faults.append(Fault("not-a-bundle", f"is a damaged ZIP file: {error}", path.name))
    except OSError as error:
        raise SubmissionError(
            f"cannot be read: {error.strerror or error}", place=str(path)
        ) from error
    missing = [name for name in NEEDED if name not in files]
    if missing and not faults:
        message = f"has no {' and no '.join(missing)}; make one with `ipu-results submit`"
        faults.append(Fault("not-a-bundle", message))
    return files, faults


def _take_entry(files: Files, place: str, read: Read) -> list[Fault]:
    """Add a file to those of a bundle, or return why it is refused."""
    try:
        data = read()
        if data is not None:
            _add_file(files, place, data)
    except RefusedError as refused:
        return [refused.fault]
    return []


def _list_entries(path: Path) -> Iterator[tuple[str, Read]]:
    """Yield the place of each entry of a bundle and how it is read."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        raise RefusedError("link", "is a link; a bundle is a folder or a ZIP file", path.name)
    if not stat.S_ISDIR(mode):
        yield from _list_members(path)
        return
    with os.scandir(path) as entries:
        for number, entry in enumerate(entries):
            _check_number(number)
            yield entry.name, partial(_read_entry, entry)


def _check_number(number: int) -> None:
    if number >= MAX_BUNDLE_FILES:
        raise RefusedError("too-large", f"has more than {MAX_BUNDLE_FILES} entries")


def _add_file(files: Files, place: str, data: bytes) -> None:
    name = place.rpartition("/")[2]
    if name not in KNOWN:
        message = f"is not part of a bundle, which has {', '.join(KNOWN[:3])} and nothing else"
        raise RefusedError("unknown-file", message, place)
    if name in files:
        raise RefusedError("duplicate", "is in the archive twice", name)
    if len(data) > MAX_BUNDLE_FILE:
        raise RefusedError("too-large", f"is larger than {MAX_BUNDLE_FILE:,} bytes", name)
    files[name] = data


def _read_entry(entry: os.DirEntry[str]) -> bytes:
    if entry.is_symlink():
        raise RefusedError("link", "is a link", entry.name)
    if entry.is_dir():
        raise RefusedError("unknown-file", "is a folder", entry.name)
    if not entry.is_file():
        message = "is a pipe, a socket or a device, not a regular file"
        raise RefusedError("link", message, entry.name)
    return read_up_to(Path(entry.path), MAX_BUNDLE_FILE + 1, follow_links=False)


def _list_members(path: Path) -> Iterator[tuple[str, Read]]:
    """Yield the name of each member of an archive and how it is read."""
    data = read_up_to(path, MAX_BUNDLE_BYTES + 1, follow_links=False)
    if not data.startswith(ZIP):
        raise RefusedError("not-a-bundle", "is neither a folder nor a ZIP file", path.name)
    if len(data) > MAX_BUNDLE_BYTES:
        raise RefusedError("too-large", f"is larger than {MAX_BUNDLE_BYTES:,} bytes", path.name)
    end = data.rfind(END) + END_BYTES
    comment_bytes = int.from_bytes(data[end - 2 : end], "little")
    if end + comment_bytes != len(data):
        message = "is a damaged ZIP file: something follows its directory"
        raise RefusedError("not-a-bundle", message, path.name)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        _check_number(len(members) - 1)
        for member in members:
            yield member.filename, partial(_read_member, archive, member)
        folders = {each.filename.rpartition("/")[0] for each in members if not each.is_dir()}
        if len(folders) > 1:
            raise RefusedError("out-of-place", "the files of the archive are not in one folder")


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes | None:
    """Read an entry, no more than the limit, whatever the entry says of its size; None for a
    folder.
    """
    name = member.orig_filename  # zipfile cuts `filename` at a NUL
    mode = stat.S_IFMT(member.external_attr >> 16)  # an archive made on Unix has it there
    if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise RefusedError("link", "is a link, a pipe or a device, not a regular file", name)
    has_odd_sign = any(char in name for char in "\0\\:")
    if name.startswith("/") or ".." in name.split("/") or has_odd_sign:
        raise RefusedError("out-of-place", "leads out of the bundle", name)
    if member.flag_bits & ENCRYPTED or member.compress_type not in METHODS:
        message = "is encrypted or compressed in another way than deflate"
        raise RefusedError("compression", message, name)
    if member.file_size > MAX_BUNDLE_RATIO * max(member.compress_size, 1):
        message = f"unpacks to more than {MAX_BUNDLE_RATIO} times its size"
        raise RefusedError("compression", message, name)
    if member.is_dir():
        return None
    with archive.open(member) as file:
        return file.read(MAX_BUNDLE_FILE + 1)


def list_folders(path: Path) -> dict[str, Path]:
    """Return each bundle of a folder of submissions by its `<who>/<id>`, and every entry that is
    not one.
    """
    found: list[Path] = []
    for owner in sorted(path.iterdir()):
        is_folder = owner.is_dir() and not owner.is_symlink()
        found += sorted(owner.iterdir()) if is_folder else [owner]
    return {entry.relative_to(path).as_posix(): entry for entry in found}


def parse_bundle(files: Files) -> tuple[Bundle | None, list[Fault]]:
    """Return the bundle, None if a file of it cannot be read, and what is wrong with it."""
    faults: list[Fault] = []
    try:
        texts = {name: _decode_text(data, name) for name, data in files.items()}
        submission = _parse_description(texts[DESCRIPTION], files, faults)
        rows = _parse_rows(texts[RESULTS], faults)
        environment = _parse_environment(texts.get(ENVIRONMENT, "{}"), faults)
    except RefusedError as refused:
        return None, [*faults, refused.fault]
    return Bundle(submission, rows, environment, files), faults


def _decode_text(data: bytes, place: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError("encoding", f"is not UTF-8: byte {error.start + 1}", place) from error
    if "\0" in text:
        raise RefusedError("encoding", "holds a NUL character", place)
    return text


def _parse_description(text: str, files: Files, faults: list[Fault]) -> Submission:
    """Return what `submission.toml` says."""
    try:
        entry = parse_toml(text)
        submission = msgspec.convert(entry, Submission)
    except msgspec.ValidationError as error:
        raise RefusedError("schema", str(error)[:MAX_REASON], DESCRIPTION) from error
    except ValueError as error:
        message = f"is not TOML: {str(error)[:MAX_REASON]}"
        raise RefusedError("not-a-bundle", message, DESCRIPTION) from error
    faults += check_description(submission)
    expected = compute_id(entry, files[RESULTS], files.get(ENVIRONMENT))
    if submission.id != expected:
        message = (
            f"the id is {submission.id[:40]!r}, but what the bundle holds has the id {expected}; do"
            " not copy an id or change a bundle, make it again"
        )
        faults.append(Fault("id", message, DESCRIPTION))
    return submission


def _parse_rows(text: str, faults: list[Fault]) -> list[Line]:
    """Return the rows of `results.csv` as texts by column."""
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise RefusedError("not-a-bundle", f"is not CSV: {error}", RESULTS) from error
    if not lines or tuple(lines.pop(0)) != COLUMNS:
        message = f"the columns are not {','.join(COLUMNS)}"
        raise RefusedError("schema", message, f"{RESULTS}, line 1")
    if not lines:
        raise RefusedError("not-a-bundle", "has no figure", RESULTS)
    if not text.endswith("\n"):
        message = "does not end with a line break: it was cut off"
        raise RefusedError("not-a-bundle", message, RESULTS)
    if len(lines) > MAX_SUBMITTED_ROWS:
        message = (
            f"has {len(lines):,} rows, at most {MAX_SUBMITTED_ROWS:,} are accepted; hand in several"
            " bundles"
        )
        raise RefusedError("too-large", message, RESULTS)
    rows: list[Line] = []
    for number, cells in enumerate(lines, 2):
        place = f"{RESULTS}, line {number}"
        if len(cells) != len(COLUMNS):
            message = f"has {len(cells)} cells, not {len(COLUMNS)}"
            raise RefusedError("schema", message, place)
        row = dict(zip(COLUMNS, cells, strict=True))
        for name, cell in row.items():
            faults += check_text(cell, f"{place}, {name}")
        rows.append({"line": number, **row})
    faults += check_schema("lines", rows, RESULTS)
    return rows


def _parse_environment(text: str, faults: list[Fault]) -> dict[str, Any]:
    try:
        environment = json.loads(
            text,
            parse_constant=refuse_constant,
            parse_float=_parse_float,
            object_pairs_hook=collect_unique,
        )
    except (ValueError, RecursionError) as error:
        message = f"is not JSON: {str(error)[:MAX_REASON]}"
        raise RefusedError("not-a-bundle", message, ENVIRONMENT) from error
    if not isinstance(environment, dict):
        raise RefusedError("schema", "is not a JSON object", ENVIRONMENT)
    # keys are texts of a stranger, too
    texts = list(list_texts(environment, ENVIRONMENT))
    if len(texts) > MAX_VALUES:
        raise RefusedError("too-large", f"has more than {MAX_VALUES} values", ENVIRONMENT)
    for value, place in texts:
        faults += check_text(value, place)
    return environment


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large")
    return value
