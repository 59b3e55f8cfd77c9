"""Read a bundle, a folder or a ZIP archive, in memory: nothing is unpacked, followed or executed."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ipu_results.errors import SubmissionError
from ipu_results.ground.files import open_regular_file
from ipu_results.ground.limits import (
    MAX_BUNDLE_BYTES,
    MAX_BUNDLE_FILE,
    MAX_BUNDLE_FILES,
    MAX_BUNDLE_RATIO,
    MAX_SUBMITTED_CELL,
    MAX_SUBMITTED_ROWS,
)
from ipu_results.ground.text import parse_toml
from ipu_results.submission.bundle import (
    COLUMNS,
    DESCRIPTION,
    ENVIRONMENT,
    RESULTS,
    SIDECAR,
    Bundle,
    Files,
    Submission,
    compute_id,
)
from ipu_results.submission.refusals import Fault, check_description, check_text

NEEDED = (DESCRIPTION, RESULTS)
KNOWN = (*NEEDED, ENVIRONMENT, SIDECAR)
STATABLE = ("model", "task", "platform")  # by an option, once for all rows
FILLED = (*STATABLE, "metric", "value", "place")  # columns that no row leaves blank
ZIP = b"PK\x03\x04"
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
# Record after the directory of an archive; a comment of at most 64 KiB follows it.
END = b"PK\x05\x06"
END_BYTES = 22
MAX_END = END_BYTES + 65535
MAX_DEPTH = 4  # of the environment
MAX_VALUES = 500
MAX_REASON = 200  # characters of what a parser says


def read_contents(path: Path) -> tuple[Files, list[Fault]]:
    """Return the files of a bundle by name, and what is wrong with them.

    Raises SubmissionError without a bundle.
    """
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return {}, [Fault("link", "is a link; a bundle is a folder or a ZIP file", path.name)]
        faults: list[Fault] = []
        files = _read_folder(path, faults) if stat.S_ISDIR(mode) else _read_archive(path, faults)
    except OSError as error:
        raise SubmissionError(
            f"cannot be read: {error.strerror or error}", place=str(path)
        ) from error
    missing = [name for name in NEEDED if name not in files]
    if missing and not faults:
        faults.append(
            Fault(
                "not-a-bundle",
                f"has no {' and no '.join(missing)}; make one with `ipu-results submit`",
            )
        )
    return files, faults


def _read_folder(path: Path, faults: list[Fault]) -> Files:
    files: Files = {}
    with os.scandir(path) as entries:
        for number, entry in enumerate(entries):
            if number == MAX_BUNDLE_FILES:
                faults.append(Fault("too-large", f"has more than {MAX_BUNDLE_FILES} entries"))
                break
            if entry.is_symlink():
                faults.append(Fault("link", "is a link", entry.name))
            elif not entry.is_dir() and not entry.is_file(follow_symlinks=False):
                faults.append(
                    Fault("link", "is a pipe, a socket or a device, not a regular file", entry.name)
                )
            elif entry.name not in KNOWN or entry.is_dir():
                faults.append(_refuse_unknown(entry.name))
            else:
                with open_regular_file(Path(entry.path), follow_links=False) as file:
                    files[entry.name] = file.read(MAX_BUNDLE_FILE + 1)
                if len(files[entry.name]) > MAX_BUNDLE_FILE:
                    faults.append(_refuse_size(entry.name))
    return files


def _refuse_unknown(name: str) -> Fault:
    return Fault(
        "unknown-file",
        f"is not part of a bundle, which has {', '.join(KNOWN[:3])} and nothing else",
        name,
    )


def _refuse_size(name: str) -> Fault:
    return Fault("too-large", f"is larger than {MAX_BUNDLE_FILE:,} bytes", name)


def _read_archive(path: Path, faults: list[Fault]) -> Files:
    with open_regular_file(path, follow_links=False) as file:
        start = file.read(len(ZIP))
        if start != ZIP:
            faults.append(Fault("not-a-bundle", "is neither a folder nor a ZIP file", path.name))
            return {}
        size = file.seek(0, os.SEEK_END)
        if size > MAX_BUNDLE_BYTES:
            faults.append(
                Fault("too-large", f"is larger than {MAX_BUNDLE_BYTES:,} bytes", path.name)
            )
            return {}
        file.seek(max(0, size - MAX_END))
        data = file.read(MAX_END)
        # The last record states the length of its comment, and nothing may follow that.
        at = data.rfind(END)
        length = int.from_bytes(data[at + END_BYTES - 2 : at + END_BYTES], "little")
        if at < 0 or at + END_BYTES + length != len(data):
            faults.append(
                Fault(
                    "not-a-bundle",
                    "is a damaged ZIP file: something follows its directory",
                    path.name,
                )
            )
            return {}
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_members(archive, faults)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            RuntimeError,
            ValueError,
        ) as error:
            faults.append(Fault("not-a-bundle", f"is a damaged ZIP file: {error}", path.name))
            return {}


def _read_members(archive: zipfile.ZipFile, faults: list[Fault]) -> Files:
    members = archive.infolist()
    if len(members) > MAX_BUNDLE_FILES:
        faults.append(
            Fault(
                "too-large",
                f"has {len(members):,} entries, at most {MAX_BUNDLE_FILES} are accepted",
            )
        )
        return {}
    files: Files = {}
    folders: set[str] = set()
    for member in members:
        if fault := _check_member(member):
            faults.append(fault)
            continue
        folder, _, name = member.filename.rpartition("/")
        if member.is_dir():
            continue
        folders.add(folder)
        if name not in KNOWN:
            faults.append(_refuse_unknown(member.filename))
        elif name in files:
            faults.append(Fault("duplicate", "is in the archive twice", name))
        else:
            files[name] = _read_member(archive, member)
    if len(folders) > 1:
        faults.append(Fault("out-of-place", "the files of the archive are not in one folder"))
    return files


def _check_member(member: zipfile.ZipInfo) -> Fault | None:
    """Return what is wrong with an entry before it is read."""
    name = member.orig_filename
    mode = stat.S_IFMT(member.external_attr >> 16)
    if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
        return Fault("link", "is a link, a pipe or a device, not a regular file", name)
    if (
        "\0" in name
        or "\\" in name
        or ":" in name
        or name.startswith("/")
        or ".." in name.split("/")
    ):
        return Fault("out-of-place", "leads out of the bundle", name)
    if member.flag_bits & ENCRYPTED or member.compress_type not in METHODS:
        return Fault("compression", "is encrypted or compressed in another way than deflate", name)
    if member.file_size > MAX_BUNDLE_FILE:
        return _refuse_size(name)
    if member.file_size > MAX_BUNDLE_RATIO * max(member.compress_size, 1):
        return Fault("compression", f"unpacks to more than {MAX_BUNDLE_RATIO} times its size", name)
    return None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Read an entry, no more than the limit, whatever the entry says of its size."""
    with archive.open(member) as file:
        return file.read(MAX_BUNDLE_FILE + 1)


def list_folders(path: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield `<who>/<id>` and the entry of each bundle of a folder of submissions, and every entry
    that is not one.
    """
    with os.scandir(path) as owners:
        for owner in sorted(owners, key=lambda entry: entry.name):
            if owner.is_symlink() or not owner.is_dir():
                yield owner.name, owner
                continue
            with os.scandir(owner.path) as bundles:
                for bundle in sorted(bundles, key=lambda entry: entry.name):
                    yield f"{owner.name}/{bundle.name}", bundle


def parse_bundle(files: Files) -> tuple[Bundle | None, list[Fault]]:
    """Return the bundle, None if its description or its rows cannot be read, and what is wrong with
    it.
    """
    faults: list[Fault] = []
    texts: dict[str, str] = {}
    for name, data in files.items():
        text = decode_text(data, name)
        if isinstance(text, Fault):
            faults.append(text)
        else:
            texts[name] = text
    if faults:
        return None, faults
    submission = _parse_description(texts[DESCRIPTION], files, faults)
    rows = _parse_rows(texts[RESULTS], faults)
    environment = _parse_environment(texts[ENVIRONMENT], faults) if ENVIRONMENT in texts else {}
    if submission is None or rows is None or environment is None:
        return None, faults
    return Bundle(submission, tuple(rows), environment, files), faults


def _parse_description(text: str, files: Files, faults: list[Fault]) -> Submission | None:
    """Return what `submission.toml` says, None if it cannot be read."""
    try:
        entry = parse_toml(text)
    except ValueError as error:
        faults.append(Fault("not-a-bundle", f"is not TOML: {str(error)[:MAX_REASON]}", DESCRIPTION))
        return None
    try:
        submission = msgspec.convert(entry, Submission)
    except msgspec.ValidationError as error:
        faults.append(Fault("schema", str(error)[:MAX_REASON], DESCRIPTION))
        return None
    faults += check_description(submission)
    expected = compute_id(entry, files[RESULTS], files.get(ENVIRONMENT))
    if submission.id != expected:
        message = (
            f"the id is {submission.id[:40]!r}, but what the bundle holds has the id {expected}; do"
            " not copy an id or change a bundle, make it again"
        )
        faults.append(Fault("id", message, DESCRIPTION))
    return submission


def decode_text(data: bytes, place: str) -> str | Fault:
    """Decode UTF-8; return what is wrong otherwise."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Fault("encoding", f"is not UTF-8: byte {error.start + 1}", place)
    if "\0" in text:
        return Fault("encoding", "holds a NUL character", place)
    return text


def _parse_rows(text: str, faults: list[Fault]) -> list[Mapping[str, str]] | None:
    """Return the rows of `results.csv` as texts by column."""
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        faults.append(Fault("not-a-bundle", f"is not CSV: {error}", RESULTS))
        return None
    if not lines or tuple(lines.pop(0)) != COLUMNS:
        faults.append(
            Fault("schema", f"the columns are not {','.join(COLUMNS)}", f"{RESULTS}, line 1")
        )
        return None
    if not lines:
        faults.append(Fault("not-a-bundle", "has no figure", RESULTS))
        return None
    if not text.endswith("\n"):
        message = "does not end with a line break: it was cut off"
        faults.append(Fault("not-a-bundle", message, RESULTS))
        return None
    if len(lines) > MAX_SUBMITTED_ROWS:
        message = (
            f"has {len(lines):,} rows, at most {MAX_SUBMITTED_ROWS:,} are accepted; hand in several"
            " bundles"
        )
        faults.append(Fault("too-large", message, RESULTS))
        return None
    rows: list[Mapping[str, str]] = []
    blanks: dict[str, list[int]] = {}
    for number, cells in enumerate(lines, 2):
        place = f"{RESULTS}, line {number}"
        if len(cells) != len(COLUMNS):
            faults.append(Fault("schema", f"has {len(cells)} cells, not {len(COLUMNS)}", place))
            continue
        row = dict(zip(COLUMNS, cells, strict=True))
        for name, cell in row.items():
            faults += check_text(cell, f"{place}, {name}")
        for name in FILLED:
            if not row[name].strip():
                blanks.setdefault(name, []).append(number)
        rows.append(row)
    for name, numbers in blanks.items():
        place = f"{RESULTS}, line {numbers[0]}" + (
            f" and {len(numbers) - 1} more" if numbers[1:] else ""
        )
        step = f"; state it with --set {name}=TEXT" if name in STATABLE else ""
        step += ", and --new-word TEXT for a new machine" if name == "platform" else ""
        faults.append(Fault("schema", f"{name} is blank{step}", place))
    return rows


def _parse_environment(text: str, faults: list[Fault]) -> dict[str, Any] | None:
    """Return the environment, None if it cannot be read."""
    try:
        environment = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
            object_pairs_hook=_refuse_repetition,
        )
    except (ValueError, RecursionError) as error:
        faults.append(Fault("not-a-bundle", f"is not JSON: {str(error)[:MAX_REASON]}", ENVIRONMENT))
        return None
    if not isinstance(environment, dict):
        faults.append(Fault("schema", "is not a JSON object", ENVIRONMENT))
        return None
    values = list(_list_texts(environment, ENVIRONMENT, MAX_DEPTH))
    if len(values) > MAX_VALUES or any(place is None for _, place in values):
        message = f"has more than {MAX_VALUES} values or {MAX_DEPTH} levels"
        faults.append(Fault("too-large", message, ENVIRONMENT))
        return None
    for value, place in values:
        faults += check_text(value, str(place))
    return environment


def _list_texts(value: Any, place: str, depth: int) -> Iterator[tuple[str, str | None]]:
    """Yield each key and value as text with its place; the place is None below the deepest level."""
    if depth < 0:
        yield "", None
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key, f"{place}, a key"
            yield from _list_texts(item, f"{place}, {key[:MAX_SUBMITTED_CELL]}", depth - 1)
    elif isinstance(value, list):
        for item in value:
            yield from _list_texts(item, place, depth - 1)
    else:
        yield value if isinstance(value, str) else "", place


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _parse_float(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:40]} is too large")
    return value


def _refuse_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)
