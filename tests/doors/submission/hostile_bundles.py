"""Hostile bundles by the reason for which they are refused, and by name: those of `bundles.toml`,
and those that no text can state.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ipu_results.doors.submission.bundle import DESCRIPTION, ENVIRONMENT, RESULTS

from tests.doors.submission.submission_support import (
    ADA,
    BUNDLES,
    make_files,
    make_link,
    put_folder,
    put_zip,
    renew,
    throughput,
    zip_bytes,
)

SCRIPT = b"#!/bin/sh\ntouch canary ../canary /tmp/submission-canary\n"
DIRECTORY = b"PK\x01\x02"  # before each entry of the directory
Put = Callable[[Path], Path]


def with_case(**case: Any) -> Put:
    """Put a bundle as `make_files` makes it."""
    return lambda folder: put_folder(folder / "bundle", make_files(**case))


def with_file(name: str, data: bytes = SCRIPT) -> Put:
    return lambda folder: put_folder(folder / "bundle", {**make_files(), name: data})


def with_bytes(name: str, old: bytes, new: bytes) -> Put:
    """Replace bytes in a file of a good bundle, under its old id."""

    def put(folder: Path) -> Path:
        files = make_files()
        assert old in files[name]
        return put_folder(folder / "bundle", {**files, name: files[name].replace(old, new, 1)})

    return put


def with_text(name: str, old: str, new: str) -> Put:
    """Replace a text in a file of a good bundle, under the id that then belongs to it."""

    def put(folder: Path) -> Path:
        files = make_files()
        assert old.encode() in files[name]
        files[name] = files[name].replace(old.encode(), new.encode(), 1)
        with suppress(ValueError, RecursionError):  # a file that is not TOML has its id nowhere
            files = renew(files)
        return put_folder(folder / "bundle", files)

    return put


def with_environment(data: bytes) -> Put:
    files = renew({**make_files(), ENVIRONMENT: data})
    return lambda folder: put_folder(folder / "bundle", files)


def with_results(change: Callable[[bytes], bytes]) -> Put:
    files = make_files()
    changed = renew({**files, RESULTS: change(files[RESULTS])})
    return lambda folder: put_folder(folder / "bundle", changed)


def with_entry(name: str | zipfile.ZipInfo, data: bytes = SCRIPT) -> Put:
    return lambda folder: put_zip(folder / "bundle.zip", make_files(), (name, data))


def in_folder(change: Callable[[Path], object]) -> Put:
    """Change a good bundle on the disk."""

    def put(folder: Path) -> Path:
        change(bundle := put_folder(folder / "bundle", make_files()))
        return bundle

    return put


def in_archive(change: Callable[[bytes], bytes], **more: bytes) -> Put:
    """Change the bytes of an archive of a good bundle."""

    def put(folder: Path) -> Path:
        path = folder / "bundle.zip"
        path.write_bytes(change(zip_bytes({**make_files(), **more})))
        return path

    return put


def flip(offset: int, mask: int) -> Callable[[bytes], bytes]:
    """Flip bits of the first entry of an archive's directory."""

    def change(data: bytes) -> bytes:
        at = data.index(DIRECTORY) + offset
        return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]

    return change


def put_entries_in_one_place(data: bytes) -> bytes:
    """Give all entries the bytes of the first one."""
    for match in re.finditer(DIRECTORY, data):
        offset = match.start() + 42  # of where the bytes of an entry are
        data = data[:offset] + bytes(4) + data[offset + 4 :]
    return data


def state_wrong_size(data: bytes) -> bytes:
    """Let the directory say that a large entry is small."""
    return data.replace(struct.pack("<I", 30_000_000), struct.pack("<I", 1000))


def make_results_a_folder(bundle: Path) -> None:
    (bundle / RESULTS).unlink()
    (bundle / RESULTS).mkdir()


def link_results(bundle: Path) -> None:
    (bundle / RESULTS).unlink()
    (bundle / RESULTS).symlink_to("/etc/passwd")


def put_linked_folder(folder: Path) -> Path:
    (folder / "bundle").symlink_to(put_folder(folder / "real", make_files()))
    return folder / "bundle"


def put_other_method(folder: Path) -> Path:
    path = folder / "bundle.zip"
    path.write_bytes(zip_bytes(make_files(), zipfile.ZIP_LZMA))
    return path


def put_twice(folder: Path) -> Path:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return put_zip(folder / "bundle.zip", make_files(), (f"bundle/{RESULTS}", b"x"))


def put_many_entries(folder: Path) -> Path:
    entries = [(f"{number}.csv", b"") for number in range(5000)]
    return put_zip(folder / "bundle.zip", {}, *entries)


Hostile = dict[str, dict[str, Put]]
CONTAINERS: Hostile = {
    "unknown-file": {
        "sidecar of their own": with_file("results.csv.toml", b'document_id = "graphcore"\n'),
        "folder with a git hook": in_folder(
            lambda bundle: put_folder(bundle / ".git" / "hooks", {"post-checkout": SCRIPT})
        ),
        "archive in the archive": with_entry("bundle/inner.zip", zip_bytes(make_files())),
        "folder in place of the figures": in_folder(make_results_a_folder),
        "file name in other case": with_entry("bundle/Results.csv"),
        "file name of 60,000 letters": with_entry(f"bundle/{'x' * 60_000}.csv"),
    },
    "link": {
        "figures are a link": in_folder(link_results),
        "bundle is a link": put_linked_folder,
        "pipe that a read waits for": in_folder(lambda bundle: os.mkfifo(bundle / ENVIRONMENT)),
        "link in an archive": with_entry(make_link(f"bundle/{ENVIRONMENT}"), b"/etc/passwd"),
    },
    "out-of-place": {"two folders": with_entry(f"other/{ENVIRONMENT}", b"{}")},
    "compression": {
        "bomb": in_archive(bytes, **{ENVIRONMENT: b" " * 1_900_000}),
        "encrypted": in_archive(flip(8, 1)),
        "another method": put_other_method,
    },
    "too-large": {
        "five thousand entries": put_many_entries,
        "huge file": with_file(ENVIRONMENT, b" " * 2_000_001),
        "too many rows": with_case(rows=[throughput(str(10_000 + at)) for at in range(1001)]),
        "name of 100,000 letters": with_case(description={"who": {**ADA, "name": "A" * 100_000}}),
    },
    "duplicate": {"entry twice": put_twice},
    "encoding": {
        "Latin-1": with_environment(b'{"cpu": "\xe9"}'),
        "NUL": with_environment(b'{"cpu": "\0"}'),
        "UTF-16": with_results(lambda data: data.decode().encode("utf-16")),
    },
    "not-a-bundle": {
        "bomb that lies about its size": in_archive(
            state_wrong_size, **{ENVIRONMENT: b" " * 30_000_000}
        ),
        "script before the archive": in_archive(lambda data: SCRIPT + data),
        "script after the archive": in_archive(lambda data: data + SCRIPT),
        "wrong checksum": in_archive(flip(16, 0xFF)),
        "entries in one place": in_archive(put_entries_in_one_place),
        "YAML object": with_text(DESCRIPTION, "licence =", "!!python/object/apply:os.system ="),
        "deep TOML": with_text(
            DESCRIPTION, "licence =", f"x = {'[' * 5000}{']' * 5000}\nlicence ="
        ),
        "dotted key that takes hours to parse": with_file(
            DESCRIPTION, b"a" + b".a" * 900_000 + b" = 1\n"
        ),
        "dotted key in a short description": with_file(
            DESCRIPTION, b"a" + b".a" * 2_001 + b" = 1\n"
        ),
        "20,000 new words": with_case(
            description={"new_words": [f"word {number}" for number in range(20_000)]}
        ),
        "deep JSON": with_environment(b'{"a":' * 5000 + b"1" + b"}" * 5000),
        "number of 10,000 digits": with_environment(b'{"memory_gb": ' + b"9" * 10_000 + b"}"),
        "cut off": with_text(RESULTS, '"log.txt, latency"\n', '"log.txt'),
        "open quote": with_results(lambda data: data + b'"open\n'),
        "half a megabyte in a cell": with_results(lambda data: data + b"x" * 500_000 + b"\n"),
        "header alone": with_results(lambda data: data.split(b"\n")[0] + b"\n"),
    },
    "schema": {
        "key that asks for a command": with_text(
            DESCRIPTION, "licence =", 'exec = "touch canary"\nlicence ='
        ),
        "other columns": with_text(RESULTS, "model,", "network,"),
        "byte order mark": with_results(lambda data: b"\xef\xbb\xbf" + data),
        "empty description": with_file(DESCRIPTION, b""),
        "empty figures": with_file(RESULTS, b""),
    },
    "id": {
        "figure changed afterwards": with_bytes(RESULTS, b"14377.25", b"15377.25"),
        "id that is a path": with_bytes(DESCRIPTION, b'id = "', b'id = "../../'),
    },
}
FIGURES: Hostile = {}
for hostile, stated in ((CONTAINERS, BUNDLES["container"]), (FIGURES, BUNDLES["figure"])):
    for reason, cases in stated.items():
        for name, case in cases.items():
            hostile.setdefault(reason, {})[name] = with_case(**case)
