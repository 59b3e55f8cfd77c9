"""Hostile bundles: each is refused with the right reason; nothing of one is executed, followed, unpacked or sent."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import socket
import struct
import subprocess
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path

import ipu_results
import pytest
from ipu_results.submission.bundle import COLUMNS, DESCRIPTION, ENVIRONMENT, RESULTS, SUBMISSIONS, lay_bundle
from ipu_results.submission.check import CheckedBundle, CheckRequest, check_submission, format_checks
from ipu_results.submission.refusals import REASONS

from tests.submission.submission_support import (
    ADA,
    M2000,
    ROWS,
    figure,
    get_place,
    latency,
    make_files,
    make_link,
    put_folder,
    put_zip,
    renew,
    throughput,
    zip_bytes,
)

CANARY = "canary"
SCRIPT = b"#!/bin/sh\ntouch canary ../canary /tmp/submission-canary\n"
Put = Callable[[Path], Path]


class Explosive:
    """What a loader of pickles would execute."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/submission-canary",)


@pytest.fixture(autouse=True)
def bystander(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse processes and connections, and show that a check leaves no file behind."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a check started a process or a connection")

    for owner, name in ((subprocess, "Popen"), (os, "system"), (os, "execv"), (socket.socket, "connect")):
        monkeypatch.setattr(owner, name, refuse)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.rglob(CANARY))
    assert not Path("/tmp/submission-canary").exists()


def list_tree(folder: Path) -> dict[str, int]:
    return {path.as_posix(): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def refuse(path: Path, request: CheckRequest) -> set[str]:
    """Check one bundle, which must be refused and change no file, and return the reasons."""
    before = list_tree(path.parent)
    [checked] = check_submission(path, request)
    assert list_tree(path.parent) == before
    assert not checked.accepted
    assert all(fault.message for fault in checked.faults)
    return {fault.reason for fault in checked.faults}


def with_file(name: str, data: bytes = SCRIPT) -> Put:
    return lambda folder: put_folder(folder / "bundle", {**make_files(), name: data})


def with_text(name: str, old: str, new: str) -> Put:
    """Replace a text in a file of a good bundle, under the id that then belongs to it."""

    def put(folder: Path) -> Path:
        files = make_files()
        assert old.encode() in files[name]
        changed = {**files, name: files[name].replace(old.encode(), new.encode(), 1)}
        with suppress(ValueError, RecursionError):  # without TOML there is no id to renew
            changed = renew(changed)
        return put_folder(folder / "bundle", changed)

    return put


def with_rows(*rows: dict[str, str], **changes: object) -> Put:
    return lambda folder: put_folder(folder / "bundle", make_files(rows, **changes))


def with_entry(name: str | zipfile.ZipInfo, data: bytes = SCRIPT) -> Put:
    return lambda folder: put_zip(folder / "bundle.zip", make_files(), (name, data))


def put_linked_file(folder: Path) -> Path:
    bundle = put_folder(folder / "bundle", make_files())
    (bundle / RESULTS).unlink()
    (bundle / RESULTS).symlink_to("/etc/passwd")
    return bundle


def put_linked_folder(folder: Path) -> Path:
    (folder / "bundle").symlink_to(put_folder(folder / "real", make_files()))
    return folder / "bundle"


def put_pipe(folder: Path) -> Path:
    bundle = put_folder(folder / "bundle", make_files())
    os.mkfifo(bundle / ENVIRONMENT)
    return bundle


def put_subfolder(folder: Path) -> Path:
    bundle = put_folder(folder / "bundle", make_files())
    put_folder(bundle / ".git" / "hooks", {"post-checkout": SCRIPT})
    return bundle


def put_bomb(folder: Path) -> Path:
    return put_zip(folder / "bundle.zip", {**make_files(), ENVIRONMENT: b" " * 1_900_000})


def put_bomb_with_a_wrong_size(folder: Path) -> Path:
    """Write an archive whose directory says that a large entry is small."""
    path = put_zip(folder / "bundle.zip", {**make_files(), ENVIRONMENT: b" " * 30_000_000})
    data = path.read_bytes()
    return _rewrite(path, data.replace(struct.pack("<I", 30_000_000), struct.pack("<I", 1000)))


def _rewrite(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def put_text_after_archive(folder: Path) -> Path:
    return _rewrite(folder / "bundle.zip", zip_bytes(make_files()) + SCRIPT)


def put_wrong_checksum(folder: Path) -> Path:
    data = bytearray(zip_bytes(make_files()))
    data[data.index(b"PK\x01\x02") + 16] ^= 0xFF
    return _rewrite(folder / "bundle.zip", bytes(data))


def put_entries_in_one_place(folder: Path) -> Path:
    """Write an archive whose entries all have the bytes of the first one."""
    data = zip_bytes(make_files())
    for at in (match.start() for match in re.finditer(b"PK\x01\x02", data)):
        data = data[: at + 42] + bytes(4) + data[at + 46 :]
    return _rewrite(folder / "bundle.zip", data)


def put_folder_for_file(folder: Path) -> Path:
    bundle = put_folder(folder / "bundle", make_files())
    (bundle / RESULTS).unlink()
    (bundle / RESULTS).mkdir()
    return bundle


def put_results(change: Callable[[bytes], bytes]) -> Put:
    def put(folder: Path) -> Path:
        files = make_files()
        return put_folder(folder / "bundle", renew({**files, RESULTS: change(files[RESULTS])}))

    return put


def put_many_entries(folder: Path) -> Path:
    return put_zip(folder / "bundle.zip", {}, *((f"{number}.csv", b"") for number in range(5000)))


def put_script_before_archive(folder: Path) -> Path:
    return _rewrite(folder / "bundle.zip", SCRIPT + zip_bytes(make_files()))


def put_encrypted(folder: Path) -> Path:
    path = put_zip(folder / "bundle.zip", make_files())
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    return _rewrite(path, bytes(data))


def put_other_method(folder: Path) -> Path:
    path = folder / "bundle.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in make_files().items():
            archive.writestr(name, data)
    return path


def put_twice(folder: Path) -> Path:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return put_zip(folder / "bundle.zip", make_files(), (f"bundle/{RESULTS}", b"x"))


def put_environment(text: bytes) -> Put:
    return lambda folder: put_folder(folder / "bundle", renew({**make_files(), ENVIRONMENT: text}))


def put_edited(folder: Path) -> Path:
    files = make_files()
    return put_folder(folder / "bundle", {**files, RESULTS: files[RESULTS].replace(b"14377.25", b"15377.25")})


CONTAINERS: dict[str, tuple[Put, str]] = {
    "script": (with_file("run.sh"), "unknown-file"),
    "module that an import would find": (with_file("tomllib.py"), "unknown-file"),
    "pickle": (with_file("model.pkl", pickle.dumps(Explosive())), "unknown-file"),
    "sidecar of their own": (with_file("results.csv.toml", b'document_id = "graphcore"\n'), "unknown-file"),
    "folder with a git hook": (put_subfolder, "unknown-file"),
    "archive in the archive": (with_entry("bundle/inner.zip", zip_bytes(make_files())), "unknown-file"),
    "figures are a link": (put_linked_file, "link"),
    "bundle is a link": (put_linked_folder, "link"),
    "pipe that a read waits for": (put_pipe, "link"),
    "link in an archive": (with_entry(make_link(f"bundle/{ENVIRONMENT}"), b"/etc/passwd"), "link"),
    "absolute entry": (with_entry("/tmp/submission-canary"), "out-of-place"),
    "entry above the folder": (with_entry("bundle/../../canary"), "out-of-place"),
    "entry with backslashes": (with_entry("..\\..\\canary"), "out-of-place"),
    "entry on a drive": (with_entry("C:canary"), "out-of-place"),
    "two folders": (with_entry(f"other/{ENVIRONMENT}", b"{}"), "out-of-place"),
    "bomb": (put_bomb, "compression"),
    "bomb that lies about its size": (put_bomb_with_a_wrong_size, "not-a-bundle"),
    "encrypted": (put_encrypted, "compression"),
    "another method": (put_other_method, "compression"),
    "five thousand entries": (put_many_entries, "too-large"),
    "script before the archive": (put_script_before_archive, "not-a-bundle"),
    "entry twice": (put_twice, "duplicate"),
    "huge file": (with_file(ENVIRONMENT, b" " * 2_000_001), "too-large"),
    "too many rows": (with_rows(*(throughput(str(10_000 + number)) for number in range(1001))), "too-large"),
    "huge cell": (with_rows(throughput("1", conditions="x" * 501)), "too-large"),
    "Latin-1": (put_environment(b'{"cpu": "\xe9"}'), "encoding"),
    "NUL": (put_environment(b'{"cpu": "\0"}'), "encoding"),
    "terminal escape": (with_rows(throughput("14377.25", conditions="\x1b]0;owned\x07\x1b[2J")), "control-characters"),
    "text that runs backwards": (with_text(DESCRIPTION, "Ada Example", "Ada \u202eelpmaxE"), "control-characters"),
    "escape in the environment": (put_environment(b'{"cpu": "\\u001b[31m"}'), "control-characters"),
    "formula": (with_rows(throughput("14377.25", conditions="=cmd|' /C calc'!A0")), "formula"),
    "formula after a blank": (with_rows(throughput("14377.25", dataset=" @SUM(1+1)")), "formula"),
    "HTML": (with_text(DESCRIPTION, "IPU-M2000", "<img src=x onerror=alert(1)>"), "markup"),
    "entities": (with_rows(throughput("14377.25", variant="&#60;script&#62;")), "markup"),
    "SQL": (with_rows(throughput("14377.25", conditions="x'); DROP TABLE results; --")), "code"),
    "shell": (with_text(DESCRIPTION, "machine idle", "$(touch canary)"), "code"),
    "expression of a workflow": (with_text(DESCRIPTION, "machine idle", "${{ secrets.GITHUB_TOKEN }}"), "code"),
    "address of a script": (with_text(DESCRIPTION, "machine idle", "javascript:alert(1)"), "code"),
    "local file": (with_text(DESCRIPTION, "machine idle", "file:///etc/passwd"), "code"),
    "YAML object": (with_text(DESCRIPTION, "licence =", "!!python/object/apply:os.system ="), "not-a-bundle"),
    "deep TOML": (with_text(DESCRIPTION, "licence =", f"x = {'[' * 5000}{']' * 5000}\nlicence ="), "not-a-bundle"),
    "deep JSON": (put_environment(b'{"a":' * 5000 + b"1" + b"}" * 5000), "not-a-bundle"),
    "nested environment": (put_environment(b'{"a": [[[[[[1]]]]]]}'), "too-large"),
    "not a number": (put_environment(b'{"memory_gb": NaN}'), "not-a-bundle"),
    "repeated key": (put_environment(b'{"cpu": 1, "cpu": 2}'), "not-a-bundle"),
    "key that asks for a command": (with_text(DESCRIPTION, "licence =", 'exec = "touch canary"\nlicence ='), "schema"),
    "other columns": (with_text(RESULTS, "model,", "network,"), "schema"),
    "cut off": (with_text(RESULTS, '"log.txt, latency"\n', '"log.txt'), "not-a-bundle"),
    "row without a place": (with_rows({**throughput("14377.25"), "place": ""}), "schema"),
    "emulated": (with_text(DESCRIPTION, 'origin = "measured"', 'origin = "emulated"'), "emulated"),
    "emulator in the conditions": (with_rows(throughput("14377.25", conditions="IPU emulator")), "emulated"),
    "emulator in the environment": (put_environment(b'{"backend": "emulator"}'), "emulated"),
    "no open licence": (with_text(DESCRIPTION, "CC-BY-4.0", "Proprietary"), "licence"),
    "id of another bundle": (
        lambda folder: put_folder(
            folder / "bundle", {**make_files(), DESCRIPTION: make_files([throughput("1")])[DESCRIPTION]}
        ),
        "id",
    ),
    "figure changed afterwards": (put_edited, "id"),
    "forged ORCID": (with_text(DESCRIPTION, ADA["orcid"], "0000-0002-1825-0098"), "owner"),
    "dotted key that takes hours to parse": (
        with_file(DESCRIPTION, b"a" + b".a" * 900_000 + b" = 1\n"),
        "not-a-bundle",
    ),
    "dotted key in a short description": (with_file(DESCRIPTION, b"a" + b".a" * 2_001 + b" = 1\n"), "not-a-bundle"),
    "number beyond every number": (put_environment(b'{"memory_gb": 1e999}'), "not-a-bundle"),
    "variation selector in a name": (with_text(DESCRIPTION, "Ada Example", "Graphcore\ufe0f"), "control-characters"),
    "filler in a platform": (with_rows(throughput("14377.25", platform="IPU-M2000\u3164")), "control-characters"),
    "Cyrillic letter in a Latin name": (with_text(DESCRIPTION, "Ada Example", "Gr\u0430phcore"), "control-characters"),
    "Greek capital in a platform": (with_rows(throughput("14377.25", platform="IPU-\u039c2000")), "control-characters"),
    "ORCID in other digits": (with_text(DESCRIPTION, ADA["orcid"], "\u0660\u0660\u0660\u0660-0002-1825-0097"), "owner"),
    "handed in in the future": (with_rows(*ROWS, submitted_on=date(2999, 1, 1)), "schema"),
    "batch size with a decimal": (with_rows(throughput("14377.25", batch_size="16,0")), "unreadable-figure"),
    "batch size of zero": (with_rows(throughput("14377.25", batch_size="0")), "unreadable-figure"),
    "quality above 100 %": (with_rows(figure("quality top-1", "761", "%")), "implausible"),
    "script after the archive": (put_text_after_archive, "not-a-bundle"),
    "wrong checksum": (put_wrong_checksum, "not-a-bundle"),
    "entries in one place": (put_entries_in_one_place, "not-a-bundle"),
    "folder in place of the figures": (put_folder_for_file, "unknown-file"),
    "file name in other case": (with_entry("bundle/Results.csv"), "unknown-file"),
    "file name of 60,000 letters": (with_entry(f"bundle/{'x' * 60_000}.csv"), "unknown-file"),
    "UTF-16": (put_results(lambda data: data.decode().encode("utf-16")), "encoding"),
    "open quote": (put_results(lambda data: data + b'"open\n'), "not-a-bundle"),
    "half a megabyte in a cell": (put_results(lambda data: data + b"x" * 500_000 + b"\n"), "not-a-bundle"),
    "header alone": (put_results(lambda data: data.split(b"\n")[0] + b"\n"), "not-a-bundle"),
    "byte order mark": (put_results(lambda data: b"\xef\xbb\xbf" + data), "schema"),
    "half a character": (put_environment(b'{"cpu": "\\ud800"}'), "control-characters"),
    "number of 10,000 digits": (put_environment(b'{"memory_gb": ' + b"9" * 10_000 + b"}"), "not-a-bundle"),
    "20,000 new words": (with_rows(*ROWS, new_words=[f"word {number}" for number in range(20_000)]), "not-a-bundle"),
    "name of 100,000 letters": (with_rows(*ROWS, who={"name": "A" * 100_000}), "too-large"),
    "stacked marks": (with_rows(throughput("14377.25", conditions="Z" + "\u0301" * 300)), "control-characters"),
    "wide formula": (with_rows(throughput("14377.25", conditions="\uff1dSUM(A1)")), "formula"),
    "image in Markdown": (with_text(DESCRIPTION, "machine idle", "![x](https://example.org/x.png)"), "markup"),
    "link in Markdown": (with_rows(throughput("14377.25", conditions="[log](//example.org)")), "markup"),
    "emulator in the model": (
        with_rows(throughput("14377.25", model="Emulated ResNet"), new_words=["Emulated ResNet"]),
        "emulated",
    ),
    "emulator as the machine": (with_rows(*ROWS, machine="IPUModel of an IPU-M2000"), "emulated"),
    "id that is a path": (
        lambda folder: put_folder(
            folder / "bundle",
            {**make_files(), DESCRIPTION: make_files()[DESCRIPTION].replace(b'id = "', b'id = "../../')},
        ),
        "id",
    ),
    "figure in Arabic digits": (with_rows(throughput("14377.25", batch_size="\u0661\u0666")), "unreadable-figure"),
    "source in another folder": (
        with_rows(*ROWS, sources=[{"file": "../../etc/passwd", "adapter": "a", "sha256": "0" * 64}]),
        "out-of-place",
    ),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_hostile_container_or_text_is_refused(name: str, tmp_path: Path) -> None:
    put, reason = CONTAINERS[name]
    path = put(tmp_path)
    assert reason in refuse(path, CheckRequest(tmp_path / "raw", tmp_path / "no warehouse is opened"))


# Throughput and batch size of rows of an IPU-M2000 that Graphcore published.
TABLE = (("43472", "128"), ("36193", "64"))

TINY = {"model": "TinyNet-9"}
MY_BOX = {"platform": "My box", "chip": ""}
ONE_CHIP = {"platform": "1x GC200 (IPU-M2000)", "chip_count": "1", "batch_size": "4"}

FIGURES: dict[str, tuple[Put, str]] = {
    "two values for one key": (with_rows(throughput("14377.25"), throughput("15377.25")), "contradiction"),
    "two values in two spellings": (
        with_rows(throughput("14377.25"), throughput("15377.25", framework="pytorch")),
        "contradiction",
    ),
    "one figure twice": (with_rows(throughput("14377.25"), throughput("14377.25", place="elsewhere")), "duplicate"),
    "tokens of an image network": (with_rows(figure("throughput", "14377.25", "tokens/s")), "contradiction"),
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
            *(throughput("14321", platform="IPU-POD16", chip_count="16", batch_size="64", framework="PopART"),),
            latency("2.69", platform="IPU-POD16", chip_count="16", batch_size="64", framework="PopART"),
        ),
        "copied",
    ),
    "table of the vendor for a machine of another name": (
        with_rows(
            *(throughput("14321", platform="My box", dataset="one", chip=""),),
            *(throughput(text, platform="My box", dataset=text, chip="", batch_size=size) for text, size in TABLE),
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
        with_rows(throughput("14321", **TINY), figure("latency", "0.00269", "s", **TINY), new_words=["TinyNet-9"]),
        "copied",
    ),
    "row of the vendor per chip": (
        with_rows(
            throughput("3580.25", **TINY, **ONE_CHIP), latency("2.69", **TINY, **ONE_CHIP), new_words=["TinyNet-9"]
        ),
        "copied",
    ),
    "table of the vendor for other networks": (
        with_rows(
            *(throughput(text, model=f"Net {text}", batch_size=size) for text, size in (*TABLE, ("20927", "16"))),
            new_words=["Net 43472", "Net 36193", "Net 20927"],
        ),
        "copied",
    ),
    "known machine in another spelling": (
        with_rows(throughput("14377.25", platform="IPU M2000!"), new_words=["IPU M2000!"]),
        "unknown-word",
    ),
    "more chips than the machine has": (with_rows(throughput("14377.25", chip_count="7")), "contradiction"),
    "chip of another machine": (with_rows(throughput("14377.25", chip="GC2")), "contradiction"),
    "micro-batch larger than the batch": (with_rows(throughput("14377.25", micro_batch_size="64")), "contradiction"),
    "lowest latency above the highest": (
        with_rows(*ROWS, figure("latency min", "9.5", "ms"), figure("latency max", "2.75", "ms")),
        "contradiction",
    ),
    "percentiles in the wrong order": (
        with_rows(*ROWS, figure("latency p90", "3.75", "ms"), figure("latency p99", "3.25", "ms")),
        "contradiction",
    ),
    "zero": (with_rows(throughput("0")), "schema"),
    "not a number": (with_rows(throughput("NaN")), "unreadable-figure"),
    "hexadecimal": (with_rows(throughput("0x3829")), "unreadable-figure"),
    "400 digits": (with_rows(throughput("9" * 400)), "unreadable-figure"),
    "wide digits": (with_rows(throughput("\uff11\uff14\uff13\uff17\uff17")), "unreadable-figure"),
    "superscript": (with_rows(throughput("14377\u00b2")), "unreadable-figure"),
    "batch of thirty digits": (with_rows(throughput("14377.25", batch_size="9" * 30)), "unreadable-figure"),
    "power of nothing": (
        with_rows(throughput("14377.25"), figure("power", "912.5", "W", power_scope="the whole rack")),
        "schema",
    ),
    "figure in words": (with_rows(throughput("14377 or so")), "unreadable-figure"),
    "infinite figure": (with_rows(throughput("1e999")), "unreadable-figure"),
    "negative figure": (with_rows(throughput("-14377.25")), "unreadable-figure"),
    "unknown unit": (with_rows(figure("throughput", "14377.25", "furlongs/s")), "unknown-word"),
    "unknown metric": (with_rows(figure("thruput", "14377.25", "images/s")), "unknown-word"),
    "name of a publisher": (with_rows(*ROWS, who={"name": "Graph Core"}), "owner"),
    "name of a publisher in wide letters": (with_rows(*ROWS, who={"name": "\uff27raphcore"}), "owner"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_hostile_figure_is_refused(name: str, tmp_path: Path, warehouse: Path) -> None:
    put, reason = FIGURES[name]
    assert reason in refuse(put(tmp_path), CheckRequest(tmp_path / "raw", warehouse))


def test_figure_of_the_emulator_is_refused(tmp_path: Path, warehouse: Path) -> None:
    row = ipu_results.load("results", warehouse=warehouse, origin="emulated", batch_size=8).iloc[0]
    values = {**M2000, "model": "resnext101-32x4d", "platform": "C2", "chip": "GC2", "chip_count": "2"}
    copied = {"framework": "PopART", "sdk_version": "1.0.136", "precision": "fp16", "batch_size": "8"}
    rows = [throughput(repr(float(row["throughput"])), **{**values, **copied})]
    path = put_folder(tmp_path / "bundle", make_files(rows))
    assert "emulated" in refuse(path, CheckRequest(tmp_path / "raw", warehouse))


def test_all_unknown_words_are_named_at_once_with_the_nearest(tmp_path: Path, warehouse: Path) -> None:
    rows = [throughput("14377.25", model="ResNett-50", platform="IPU-M20000", framework="PyTorchh")]
    [checked] = check_submission(
        put_folder(tmp_path / "bundle", make_files(rows)), CheckRequest(tmp_path / "raw", warehouse)
    )
    messages = [fault.message for fault in checked.faults if fault.reason == "unknown-word"]
    assert len(messages) == 3
    assert [word in text for word, text in zip(("PyTorch", "ResNet-50", "IPU-M2000"), messages, strict=True)] == [
        True
    ] * 3


@pytest.fixture
def laid(tmp_path: Path, warehouse: Path) -> CheckRequest:
    """Return a request whose `raw` has an accepted bundle of Ada."""
    request = CheckRequest(tmp_path / "raw", warehouse)
    files = make_files(who={**ADA, "account": "ada"})
    [checked] = check_submission(put_folder(tmp_path / "first", files), request)
    assert checked.bundle is not None
    lay_bundle(checked.bundle, request.raw)
    return request


OTHER = [throughput("11003.5", batch_size="8")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "account", "reason"),
    [
        ({"name": "Ada Example"}, None, "owner"),
        ({**ADA, "account": "mallory"}, "mallory", "owner"),
        ({"name": "Mallory", "orcid": ADA["orcid"]}, None, "owner"),
        ({**ADA, "account": "ada"}, "mallory", "owner"),
    ],
)
def test_folder_of_somebody_else_is_refused(
    who: dict[str, str], account: str | None, reason: str, laid: CheckRequest, tmp_path: Path
) -> None:
    path = put_folder(tmp_path / "bundle", make_files(OTHER, who=who))
    assert refuse(path, CheckRequest(laid.raw, laid.warehouse, account)) == {reason}


@pytest.mark.slow
def test_folder_of_bundles_is_checked_against_those_that_are_here(laid: CheckRequest, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    shutil.copytree(laid.raw / SUBMISSIONS, theirs)
    assert check_submission(theirs, laid) == []

    new = make_files(OTHER, who={**ADA, "account": "ada"})
    put_folder(theirs / get_place(new), new)
    [checked] = check_submission(theirs, CheckRequest(laid.raw, laid.warehouse, "Ada"))
    assert checked.faults == ()

    false_id = f"ada-example/{'0' * 12}"
    (theirs / get_place(new)).rename(theirs / false_id)
    (theirs / "README.md").write_text("hello")
    (theirs / "link").symlink_to("/etc")
    [first] = [path for path in (theirs / "ada-example").iterdir() if path.name not in false_id]
    first.rename(tmp_path / "removed")
    reasons = {check.name: {fault.reason for fault in check.faults} for check in check_submission(theirs, laid)}
    assert reasons == {
        "README.md": {"unknown-file"},
        false_id: {"out-of-place"},
        "link": {"link"},
        f"ada-example/{first.name}": {"owner"},
    }


def test_bundle_that_is_here_already_is_refused(laid: CheckRequest, tmp_path: Path) -> None:
    assert refuse(tmp_path / "first", laid) == {"duplicate"}


def test_every_reason_is_given_by_some_bundle() -> None:
    covered = {reason for _, reason in (*CONTAINERS.values(), *FIGURES.values())}
    assert covered == set(REASONS)


def test_report_shows_no_character_that_a_terminal_acts_on(tmp_path: Path) -> None:
    path = put_folder(tmp_path / "bundle", {**make_files(), "\x1b[2J.sh": SCRIPT})
    checks: list[CheckedBundle] = check_submission(path, CheckRequest(tmp_path, tmp_path))
    for output in ("text", "json"):
        assert "\x1b" not in format_checks(checks, output)


def test_template_has_the_columns_of_the_independent_tables() -> None:
    header = (Path(__file__).parents[2] / "raw" / "independent" / "caraml-2024.csv").read_text(encoding="utf-8")
    assert tuple(header.split("\n", 1)[0].split(",")) == COLUMNS


@pytest.mark.parametrize("name", ["/tmp/canary", "bundle/../../canary", "..\\canary", "C:canary", "bundle/\0canary"])
def test_entry_that_leads_out_of_the_bundle_is_refused_for_that(name: str, tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("bundle/x")
    entry.filename = name
    [checked] = check_submission(with_entry(entry)(tmp_path), CheckRequest(tmp_path, tmp_path))
    assert "leads out of the bundle" in {fault.message for fault in checked.faults}
