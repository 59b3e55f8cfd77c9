"""Hostile bundles by name, each with the reason for which it is refused."""

from __future__ import annotations

import os
import pickle
import re
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path

import pytest
from ipu_results.submission.bundle import DESCRIPTION, ENVIRONMENT, RESULTS

from tests.submission.submission_support import (
    ADA,
    ROWS,
    figure,
    latency,
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


class Explosive:
    """What a loader of pickles would execute."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/submission-canary",)


def with_file(name: str, data: bytes = SCRIPT) -> Put:
    return lambda folder: put_folder(folder / "bundle", {**make_files(), name: data})


def with_text(name: str, old: str, new: str) -> Put:
    """Replace a text in a file of a good bundle, under the id that then belongs to it."""

    def put(folder: Path) -> Path:
        files = make_files()
        assert old.encode() in files[name]
        changed = {**files, name: files[name].replace(old.encode(), new.encode(), 1)}
        with suppress(ValueError, RecursionError):  # a file that is not TOML has its id nowhere
            changed = renew(changed)
        return put_folder(folder / "bundle", changed)

    return put


def with_rows(*rows: dict[str, str], **changes: object) -> Put:
    return lambda folder: put_folder(folder / "bundle", make_files(rows, **changes))


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
    for at in (match.start() for match in re.finditer(DIRECTORY, data)):
        data = data[: at + 42] + bytes(4) + data[at + 46 :]
    return data


def state_wrong_size(data: bytes) -> bytes:
    """Let the directory say that a large entry is small."""
    return data.replace(struct.pack("<I", 30_000_000), struct.pack("<I", 1000))


def replace_results(bundle: Path, put: Callable[[Path], object]) -> None:
    (bundle / RESULTS).unlink()
    put(bundle / RESULTS)


def put_linked_folder(folder: Path) -> Path:
    (folder / "bundle").symlink_to(put_folder(folder / "real", make_files()))
    return folder / "bundle"


def put_other_method(folder: Path) -> Path:
    path = folder / "bundle.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in make_files().items():
            archive.writestr(name, data)
    return path


def put_twice(folder: Path) -> Path:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return put_zip(folder / "bundle.zip", make_files(), (f"bundle/{RESULTS}", b"x"))


def put_files(change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> Put:
    return lambda folder: put_folder(folder / "bundle", change(make_files()))


def put_results(change: Callable[[bytes], bytes]) -> Put:
    return put_files(lambda files: renew({**files, RESULTS: change(files[RESULTS])}))


def put_environment(text: bytes) -> Put:
    return put_files(lambda files: renew({**files, ENVIRONMENT: text}))


CONTAINERS: dict[str, tuple[Put, str]] = {
    "sidecar of their own": (
        with_file("results.csv.toml", b'document_id = "graphcore"\n'),
        "unknown-file",
    ),
    "pickle": (with_file("model.pkl", pickle.dumps(Explosive())), "unknown-file"),
    "folder with a git hook": (
        in_folder(lambda own: put_folder(own / ".git" / "hooks", {"post-checkout": SCRIPT})),
        "unknown-file",
    ),
    "archive in the archive": (
        with_entry("bundle/inner.zip", zip_bytes(make_files())),
        "unknown-file",
    ),
    "figures are a link": (
        in_folder(lambda own: replace_results(own, lambda path: path.symlink_to("/etc/passwd"))),
        "link",
    ),
    "bundle is a link": (put_linked_folder, "link"),
    "pipe that a read waits for": (in_folder(lambda own: os.mkfifo(own / ENVIRONMENT)), "link"),
    "link in an archive": (with_entry(make_link(f"bundle/{ENVIRONMENT}"), b"/etc/passwd"), "link"),
    "two folders": (with_entry(f"other/{ENVIRONMENT}", b"{}"), "out-of-place"),
    "bomb": (in_archive(bytes, **{ENVIRONMENT: b" " * 1_900_000}), "compression"),
    "bomb that lies about its size": (
        in_archive(state_wrong_size, **{ENVIRONMENT: b" " * 30_000_000}),
        "not-a-bundle",
    ),
    "encrypted": (in_archive(flip(8, 1)), "compression"),
    "another method": (put_other_method, "compression"),
    "five thousand entries": (
        lambda folder: put_zip(
            folder / "bundle.zip", {}, *((f"{number}.csv", b"") for number in range(5000))
        ),
        "too-large",
    ),
    "script before the archive": (in_archive(lambda data: SCRIPT + data), "not-a-bundle"),
    "entry twice": (put_twice, "duplicate"),
    "huge file": (with_file(ENVIRONMENT, b" " * 2_000_001), "too-large"),
    "too many rows": (
        with_rows(*(throughput(str(10_000 + number)) for number in range(1001))),
        "too-large",
    ),
    "huge cell": (with_rows(throughput("1", conditions="x" * 501)), "too-large"),
    "Latin-1": (put_environment(b'{"cpu": "\xe9"}'), "encoding"),
    "NUL": (put_environment(b'{"cpu": "\0"}'), "encoding"),
    "terminal escape": (
        with_rows(throughput("14377.25", conditions="\x1b]0;owned\x07\x1b[2J")),
        "control-characters",
    ),
    "text that runs backwards": (
        with_text(DESCRIPTION, "Ada Example", "Ada \u202eelpmaxE"),
        "control-characters",
    ),
    "escape in the environment": (put_environment(b'{"cpu": "\\u001b[31m"}'), "control-characters"),
    "formula": (with_rows(throughput("14377.25", conditions="=cmd|' /C calc'!A0")), "formula"),
    "formula after a blank": (with_rows(throughput("14377.25", dataset=" @SUM(1+1)")), "formula"),
    "HTML": (with_text(DESCRIPTION, "IPU-M2000", "<img src=x onerror=alert(1)>"), "markup"),
    "entities": (with_rows(throughput("14377.25", variant="&#60;script&#62;")), "markup"),
    "SQL": (with_rows(throughput("14377.25", conditions="x'); DROP TABLE results; --")), "code"),
    "shell": (with_text(DESCRIPTION, "machine idle", "$(touch canary)"), "code"),
    "expression of a workflow": (
        with_text(DESCRIPTION, "machine idle", "${{ secrets.GITHUB_TOKEN }}"),
        "code",
    ),
    "address of a script": (with_text(DESCRIPTION, "machine idle", "javascript:alert(1)"), "code"),
    "local file": (with_text(DESCRIPTION, "machine idle", "file:///etc/passwd"), "code"),
    "YAML object": (
        with_text(DESCRIPTION, "licence =", "!!python/object/apply:os.system ="),
        "not-a-bundle",
    ),
    "deep TOML": (
        with_text(DESCRIPTION, "licence =", f"x = {'[' * 5000}{']' * 5000}\nlicence ="),
        "not-a-bundle",
    ),
    "deep JSON": (put_environment(b'{"a":' * 5000 + b"1" + b"}" * 5000), "not-a-bundle"),
    "nested environment": (put_environment(b'{"a": [[[[[[1]]]]]]}'), "too-large"),
    "not a number": (put_environment(b'{"memory_gb": NaN}'), "not-a-bundle"),
    "repeated key": (put_environment(b'{"cpu": 1, "cpu": 2}'), "not-a-bundle"),
    "key that asks for a command": (
        with_text(DESCRIPTION, "licence =", 'exec = "touch canary"\nlicence ='),
        "schema",
    ),
    "other columns": (with_text(RESULTS, "model,", "network,"), "schema"),
    "cut off": (with_text(RESULTS, '"log.txt, latency"\n', '"log.txt'), "not-a-bundle"),
    "row without a place": (with_rows({**throughput("14377.25"), "place": ""}), "schema"),
    "emulated": (with_text(DESCRIPTION, 'origin = "measured"', 'origin = "emulated"'), "emulated"),
    "emulator in the conditions": (
        with_rows(throughput("14377.25", conditions="IPU emulator")),
        "emulated",
    ),
    "emulator in the environment": (put_environment(b'{"backend": "emulator"}'), "emulated"),
    "no open licence": (with_text(DESCRIPTION, "CC-BY-4.0", "Proprietary"), "licence"),
    "figure changed afterwards": (
        put_files(
            lambda files: {**files, RESULTS: files[RESULTS].replace(b"14377.25", b"15377.25")}
        ),
        "id",
    ),
    "forged ORCID": (with_text(DESCRIPTION, ADA["orcid"], "0000-0002-1825-0098"), "owner"),
    "dotted key that takes hours to parse": (
        with_file(DESCRIPTION, b"a" + b".a" * 900_000 + b" = 1\n"),
        "not-a-bundle",
    ),
    "dotted key in a short description": (
        with_file(DESCRIPTION, b"a" + b".a" * 2_001 + b" = 1\n"),
        "not-a-bundle",
    ),
    "number beyond every number": (put_environment(b'{"memory_gb": 1e999}'), "not-a-bundle"),
    "variation selector in a name": (
        with_text(DESCRIPTION, "Ada Example", "Graphcore\ufe0f"),
        "control-characters",
    ),
    "filler in a platform": (
        with_rows(throughput("14377.25", platform="IPU-M2000\u3164")),
        "control-characters",
    ),
    "Cyrillic letter in a Latin name": (
        with_text(DESCRIPTION, "Ada Example", "Gr\u0430phcore"),
        "control-characters",
    ),
    "Greek capital in a platform": (
        with_rows(throughput("14377.25", platform="IPU-\u039c2000")),
        "control-characters",
    ),
    "ORCID in other digits": (
        with_text(DESCRIPTION, ADA["orcid"], "\u0660\u0660\u0660\u0660-0002-1825-0097"),
        "owner",
    ),
    "handed in in the future": (with_rows(*ROWS, submitted_on=date(2999, 1, 1)), "schema"),
    "batch size with a decimal": (
        with_rows(throughput("14377.25", batch_size="16,0")),
        "unreadable-figure",
    ),
    "batch size of zero": (with_rows(throughput("14377.25", batch_size="0")), "unreadable-figure"),
    "quality above 100 %": (with_rows(figure("quality top-1", "761", "%")), "implausible"),
    "script after the archive": (in_archive(lambda data: data + SCRIPT), "not-a-bundle"),
    "wrong checksum": (in_archive(flip(16, 0xFF)), "not-a-bundle"),
    "entries in one place": (in_archive(put_entries_in_one_place), "not-a-bundle"),
    "folder in place of the figures": (
        in_folder(lambda own: replace_results(own, Path.mkdir)),
        "unknown-file",
    ),
    "file name in other case": (with_entry("bundle/Results.csv"), "unknown-file"),
    "file name of 60,000 letters": (with_entry(f"bundle/{'x' * 60_000}.csv"), "unknown-file"),
    "UTF-16": (put_results(lambda data: data.decode().encode("utf-16")), "encoding"),
    "open quote": (put_results(lambda data: data + b'"open\n'), "not-a-bundle"),
    "half a megabyte in a cell": (
        put_results(lambda data: data + b"x" * 500_000 + b"\n"),
        "not-a-bundle",
    ),
    "header alone": (put_results(lambda data: data.split(b"\n")[0] + b"\n"), "not-a-bundle"),
    "byte order mark": (put_results(lambda data: b"\xef\xbb\xbf" + data), "schema"),
    "half a character": (put_environment(b'{"cpu": "\\ud800"}'), "control-characters"),
    "number of 10,000 digits": (
        put_environment(b'{"memory_gb": ' + b"9" * 10_000 + b"}"),
        "not-a-bundle",
    ),
    "20,000 new words": (
        with_rows(*ROWS, new_words=[f"word {number}" for number in range(20_000)]),
        "not-a-bundle",
    ),
    "name of 100,000 letters": (with_rows(*ROWS, who={"name": "A" * 100_000}), "too-large"),
    "stacked marks": (
        with_rows(throughput("14377.25", conditions="Z" + "\u0301" * 300)),
        "control-characters",
    ),
    "wide formula": (with_rows(throughput("14377.25", conditions="\uff1dSUM(A1)")), "formula"),
    "image in Markdown": (
        with_text(DESCRIPTION, "machine idle", "![x](https://example.org/x.png)"),
        "markup",
    ),
    "link in Markdown": (
        with_rows(throughput("14377.25", conditions="[log](//example.org)")),
        "markup",
    ),
    "emulator in the model": (
        with_rows(throughput("14377.25", model="Emulated ResNet"), new_words=["Emulated ResNet"]),
        "emulated",
    ),
    "emulator as the machine": (with_rows(*ROWS, machine="IPUModel of an IPU-M2000"), "emulated"),
    "id that is a path": (
        lambda folder: put_folder(
            folder / "bundle",
            {
                **make_files(),
                DESCRIPTION: make_files()[DESCRIPTION].replace(b'id = "', b'id = "../../'),
            },
        ),
        "id",
    ),
    "figure in Arabic digits": (
        with_rows(throughput("14377.25", batch_size="\u0661\u0666")),
        "unreadable-figure",
    ),
    "source in another folder": (
        with_rows(
            *ROWS, sources=[{"file": "../../etc/passwd", "adapter": "a", "sha256": "0" * 64}]
        ),
        "out-of-place",
    ),
}


# Throughput and batch size of rows of an IPU-M2000 that Graphcore published.
TABLE = (("43472", "128"), ("36193", "64"))


TINY = {"model": "TinyNet-9"}


MY_BOX = {"platform": "My box", "chip": ""}


ONE_CHIP = {"platform": "1x GC200 (IPU-M2000)", "chip_count": "1", "batch_size": "4"}


FIGURES: dict[str, tuple[Put, str]] = {
    "two values for one key": (
        with_rows(throughput("14377.25"), throughput("15377.25")),
        "contradiction",
    ),
    "one figure twice": (
        with_rows(throughput("14377.25"), throughput("14377.25", place="elsewhere")),
        "duplicate",
    ),
    "tokens of an image network": (
        with_rows(figure("throughput", "14377.25", "tokens/s")),
        "contradiction",
    ),
    "Little's law": (with_rows(throughput("14377.25"), latency("0.4")), "implausible"),
    "more than the peak": (with_rows(throughput("143772500.5")), "implausible"),
    "efficiency that is not throughput over power": (
        with_rows(
            *(throughput("14377.25"), figure("power", "900", "W", power_scope="machine")),
            figure("efficiency", "160", "images/s/W", power_scope="machine"),
        ),
        "implausible",
    ),
    "microseconds as milliseconds": (with_rows(latency("2711.3")), "unit"),
    "thousands of images": (with_rows(throughput("14.37725")), "unit"),
    "row of the vendor": (with_rows(throughput("14321"), latency("2.69")), "copied"),
    "row of the vendor for another machine": (
        with_rows(
            *(
                throughput(
                    "14321",
                    platform="IPU-POD16",
                    chip_count="16",
                    batch_size="64",
                    framework="PopART",
                ),
            ),
            latency(
                "2.69", platform="IPU-POD16", chip_count="16", batch_size="64", framework="PopART"
            ),
        ),
        "copied",
    ),
    "table of the vendor for a machine of another name": (
        with_rows(
            *(throughput("14321", platform="My box", dataset="one", chip=""),),
            *(
                throughput(text, platform="My box", dataset=text, chip="", batch_size=size)
                for text, size in TABLE
            ),
            new_words=["My box"],
        ),
        "copied",
    ),
    "row of the vendor for another network": (
        with_rows(*(throughput("14321", **TINY), latency("2.69", **TINY)), new_words=["TinyNet-9"]),
        "copied",
    ),
    "row of the vendor for another network and machine": (
        with_rows(
            *(throughput("14321", **TINY, **MY_BOX), latency("2.69", **TINY, **MY_BOX)),
            new_words=["TinyNet-9", "My box"],
        ),
        "copied",
    ),
    "row of the vendor in seconds": (
        with_rows(
            throughput("14321", **TINY),
            figure("latency", "0.00269", "s", **TINY),
            new_words=["TinyNet-9"],
        ),
        "copied",
    ),
    "row of the vendor per chip": (
        with_rows(
            throughput("3580.25", **TINY, **ONE_CHIP),
            latency("2.69", **TINY, **ONE_CHIP),
            new_words=["TinyNet-9"],
        ),
        "copied",
    ),
    "table of the vendor for other networks": (
        with_rows(
            *(
                throughput(text, model=f"Net {text}", batch_size=size)
                for text, size in (*TABLE, ("20927", "16"))
            ),
            new_words=["Net 43472", "Net 36193", "Net 20927"],
        ),
        "copied",
    ),
    "known machine in another spelling": (
        with_rows(throughput("14377.25", platform="IPU M2000!"), new_words=["IPU M2000!"]),
        "unknown-word",
    ),
    "machine with a zero for an O": (
        with_rows(throughput("14377.25", platform="1PU-M2OOO"), new_words=["1PU-M2OOO"]),
        "unknown-word",
    ),
    "more chips than the machine has": (
        with_rows(throughput("14377.25", chip_count="7")),
        "contradiction",
    ),
    "chip of another machine": (with_rows(throughput("14377.25", chip="GC2")), "contradiction"),
    "micro-batch larger than the batch": (
        with_rows(throughput("14377.25", micro_batch_size="64")),
        "contradiction",
    ),
    "lowest latency above the highest": (
        with_rows(*ROWS, figure("latency min", "9.5", "ms"), figure("latency max", "2.75", "ms")),
        "contradiction",
    ),
    "percentiles in the wrong order": (
        with_rows(*ROWS, figure("latency p90", "3.75", "ms"), figure("latency p99", "3.25", "ms")),
        "contradiction",
    ),
    "zero": (with_rows(throughput("0")), "schema"),
    "wide digits": (with_rows(throughput("\uff11\uff14\uff13\uff17\uff17")), "unreadable-figure"),
    "power of nothing": (
        with_rows(
            throughput("14377.25"), figure("power", "912.5", "W", power_scope="the whole rack")
        ),
        "schema",
    ),
    "infinite figure": (with_rows(throughput("1e999")), "unreadable-figure"),
    "negative figure": (with_rows(throughput("-14377.25")), "unreadable-figure"),
    "unknown unit": (with_rows(figure("throughput", "14377.25", "furlongs/s")), "unknown-word"),
    "unknown metric": (with_rows(figure("thruput", "14377.25", "images/s")), "unknown-word"),
    "name of a publisher": (with_rows(*ROWS, who={"name": "Graph Core"}), "owner"),
    "name of a publisher with a zero for an o": (
        with_rows(*ROWS, who={"name": "Graphc0re"}),
        "owner",
    ),
    "name of a publisher in small capitals": (with_rows(*ROWS, who={"name": "ɢʀᴀᴘʜᴄᴏʀᴇ"}), "owner"),
    "name of a publisher in wide letters": (
        with_rows(*ROWS, who={"name": "\uff27raphcore"}),
        "owner",
    ),
}
