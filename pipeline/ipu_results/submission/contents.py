"""Read the files of a bundle, a folder or a ZIP archive, into memory: nothing is unpacked, followed or executed."""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ipu_results.errors import SubmissionError
from ipu_results.ground.files import open_regular_file
from ipu_results.ground.limits import MAX_BUNDLE_BYTES, MAX_BUNDLE_FILE, MAX_BUNDLE_FILES, MAX_BUNDLE_RATIO
from ipu_results.sources.catalogue import BUNDLE
from ipu_results.submission.fault import Fault

DESCRIPTION, RESULTS, ENVIRONMENT = BUNDLE, "results.csv", "environment.json"
SIDECAR = f"{RESULTS}.toml"  # of a bundle that is laid in `raw/`
REQUIRED = (DESCRIPTION, RESULTS)
KNOWN = (*REQUIRED, ENVIRONMENT, SIDECAR)
ZIP = b"PK\x03\x04"
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
CHUNK = 65536
END, END_BYTES = b"PK\x05\x06", 22  # record after the directory of an archive; a comment of at most 64 KiB follows it
MAX_END = END_BYTES + 65535

Files = dict[str, bytes]


def read_contents(path: Path) -> tuple[Files, list[Fault]]:
    """Return the files of a bundle by name, and what is wrong with them. Raises SubmissionError without a bundle."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return {}, [Fault("link", "is a link; a bundle is a folder or a ZIP file", path.name)]
        faults: list[Fault] = []
        files = _read_folder(path, faults) if stat.S_ISDIR(mode) else _read_archive(path, faults)
    except OSError as error:
        raise SubmissionError(f"cannot be read: {error.strerror or error}", place=str(path)) from error
    missing = [name for name in REQUIRED if name not in files]
    if missing and not faults:
        faults.append(Fault("not-a-bundle", f"has no {' and no '.join(missing)}; make one with `ipu-results submit`"))
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
                faults.append(Fault("link", "is a pipe, a socket or a device, not a regular file", entry.name))
            elif entry.name not in KNOWN or entry.is_dir():
                faults.append(_refuse_unknown(entry.name))
            else:
                with open_regular_file(Path(entry.path), follow_links=False) as file:
                    files[entry.name] = file.read(MAX_BUNDLE_FILE + 1)
                if len(files[entry.name]) > MAX_BUNDLE_FILE:
                    faults.append(_refuse_size(entry.name))
    return files


def _refuse_unknown(name: str) -> Fault:
    return Fault("unknown-file", f"is not part of a bundle, which has {', '.join(KNOWN[:3])} and nothing else", name)


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
            faults.append(Fault("too-large", f"is larger than {MAX_BUNDLE_BYTES:,} bytes", path.name))
            return {}
        file.seek(max(0, size - MAX_END))
        if not _ends_with_directory(file.read(MAX_END)):
            faults.append(Fault("not-a-bundle", "is a damaged ZIP file: something follows its directory", path.name))
            return {}
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_members(archive, faults)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            faults.append(Fault("not-a-bundle", f"is a damaged ZIP file: {error}", path.name))
            return {}


def _ends_with_directory(data: bytes) -> bool:
    """Return whether nothing follows the last record of an archive but the comment whose length it states."""
    at = data.rfind(END)
    length = int.from_bytes(data[at + END_BYTES - 2 : at + END_BYTES], "little")
    return at >= 0 and at + END_BYTES + length == len(data)


def _read_members(archive: zipfile.ZipFile, faults: list[Fault]) -> Files:
    members = archive.infolist()
    if len(members) > MAX_BUNDLE_FILES:
        faults.append(Fault("too-large", f"has {len(members):,} entries, at most {MAX_BUNDLE_FILES} are accepted"))
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
            files[name] = _read_member(archive, member, faults)
    if len(folders) > 1:
        faults.append(Fault("out-of-place", "the files of the archive are not in one folder"))
    return files


def _check_member(member: zipfile.ZipInfo) -> Fault | None:
    """Return what is wrong with an entry before it is read."""
    name = member.orig_filename
    mode = stat.S_IFMT(member.external_attr >> 16)
    if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
        return Fault("link", "is a link, a pipe or a device, not a regular file", name)
    if "\0" in name or "\\" in name or ":" in name or name.startswith("/") or ".." in name.split("/"):
        return Fault("out-of-place", "leads out of the bundle", name)
    if member.flag_bits & ENCRYPTED or member.compress_type not in METHODS:
        return Fault("compression", "is encrypted or compressed in another way than deflate", name)
    if member.file_size > MAX_BUNDLE_FILE:
        return _refuse_size(name)
    if member.file_size > MAX_BUNDLE_RATIO * max(member.compress_size, 1):
        return Fault("compression", f"unpacks to more than {MAX_BUNDLE_RATIO} times its size", name)
    return None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, faults: list[Fault]) -> bytes:
    """Read an entry; its own statement of its size is not relied on."""
    parts = bytearray()
    with archive.open(member) as file:
        while part := file.read(CHUNK):
            parts += part
            if len(parts) > MAX_BUNDLE_FILE:
                faults.append(_refuse_size(member.filename))
                break
    if len(parts) > MAX_BUNDLE_RATIO * max(member.compress_size, 1):
        faults.append(Fault("compression", f"unpacks to more than {MAX_BUNDLE_RATIO} times its size", member.filename))
    return bytes(parts)


def list_folders(path: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield `<who>/<id>` and the entry of each bundle of a folder of submissions, and every entry that is not one."""
    with os.scandir(path) as owners:
        for owner in sorted(owners, key=lambda entry: entry.name):
            if owner.is_symlink() or not owner.is_dir():
                yield owner.name, owner
                continue
            with os.scandir(owner.path) as bundles:
                for bundle in sorted(bundles, key=lambda entry: entry.name):
                    yield f"{owner.name}/{bundle.name}", bundle
