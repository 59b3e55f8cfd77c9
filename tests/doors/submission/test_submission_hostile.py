"""Hostile bundles: each is refused with the right reason; nothing of one is executed, followed,
unpacked or sent.
"""

from __future__ import annotations

import csv
import os
import pickle
import shutil
import socket
import subprocess
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ipu_results.doors.submission.bundle import COLUMNS, SUBMISSIONS, lay_bundle
from ipu_results.doors.submission.check import (
    CheckedBundle,
    CheckRequest,
    check_submission,
    format_checks,
)
from ipu_results.doors.submission.refusals import REASONS

from tests.conftest import ROOT, query_rows
from tests.doors.submission.hostile_bundles import (
    CONTAINERS,
    FIGURES,
    SCRIPT,
    Hostile,
    Put,
    with_entry,
)
from tests.doors.submission.submission_support import (
    ADA,
    get_place,
    make_files,
    put_folder,
    throughput,
)


@pytest.fixture(autouse=True)
def bystander(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse processes and connections, and show that a check leaves no file behind."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a check started a process or a connection")

    for owner, name in (
        (subprocess, "Popen"),
        (os, "system"),
        (os, "execv"),
        (socket.socket, "connect"),
        (urllib.request, "urlopen"),
        (pickle, "loads"),
    ):
        monkeypatch.setattr(owner, name, refuse)
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.rglob("canary"))
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


def list_cases(bundles: Hostile) -> list[Any]:
    cases = []
    for reason, named in bundles.items():
        for name, put in named.items():
            cases.append(pytest.param(reason, put, id=name))
    return cases


@pytest.mark.parametrize(("reason", "put"), list_cases(CONTAINERS))
def test_hostile_container_or_text_is_refused(reason: str, put: Put, tmp_path: Path) -> None:
    request = CheckRequest(tmp_path / "raw", tmp_path / "no warehouse is opened")
    assert reason in refuse(put(tmp_path), request)


@pytest.mark.slow
@pytest.mark.parametrize(("reason", "put"), list_cases(FIGURES))
def test_hostile_figure_is_refused(reason: str, put: Put, tmp_path: Path, warehouse: Path) -> None:
    assert reason in refuse(put(tmp_path), CheckRequest(tmp_path / "raw", warehouse))


def test_figure_of_the_emulator_is_refused(tmp_path: Path, warehouse: Path) -> None:
    sql = "SELECT throughput FROM results WHERE origin = 'emulated' AND batch_size = 8"
    figure = query_rows(warehouse, sql)[0][0]
    machine = {"platform": "C2", "chip": "GC2", "chip_count": "2", "framework": "PopART"}
    machine |= {"sdk_version": "1.0.136", "precision": "fp16", "batch_size": "8"}
    row = throughput(repr(figure), model="resnext101-32x4d", **machine)
    path = put_folder(tmp_path / "bundle", make_files([row]))
    assert "emulated" in refuse(path, CheckRequest(tmp_path / "raw", warehouse))


def test_all_unknown_words_are_named_at_once_with_the_nearest(
    tmp_path: Path, warehouse: Path
) -> None:
    wrong = throughput("14377.25", model="ResNett-50", platform="IPU-M20000", framework="PyTorchh")
    several = throughput("1437.5", model="ssd")
    # its chip is of the list of accelerators and need not be declared
    new = throughput("9017.3", platform="One H200", chip="H200", chip_count="1")
    path = put_folder(tmp_path / "bundle", make_files([wrong, several, new]))
    [checked] = check_submission(path, CheckRequest(tmp_path / "raw", warehouse))
    messages = [fault.message for fault in checked.faults if fault.reason == "unknown-word"]
    assert len(messages) == 5
    text = "\n".join(messages)
    for word in (
        "PyTorch",
        "ResNet-50",
        "IPU-M2000",
        "RetinaNet-ResNeXt50, SSD-ResNet34",
        "declare it as new: --new-word 'One H200'",
    ):
        assert word in text


@pytest.fixture
def laid(tmp_path: Path, warehouse: Path) -> CheckRequest:
    """Return a request whose `raw` has an accepted bundle of Ada."""
    request = CheckRequest(tmp_path / "raw", warehouse)
    files = make_files(description={"who": {**ADA, "account": "ada"}})
    [checked] = check_submission(put_folder(tmp_path / "first", files), request)
    assert checked.bundle is not None
    lay_bundle(checked.bundle, request.raw)
    return request


OTHER = [throughput("11003.5", batch_size="8")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "account"),
    [
        ({"name": "Ada Example"}, None),
        ({**ADA, "account": "mallory"}, "mallory"),
        ({"name": "Mallory", "orcid": ADA["orcid"]}, None),
        ({**ADA, "account": "ada"}, "mallory"),
    ],
)
def test_folder_of_somebody_else_is_refused(
    who: dict[str, str], account: str | None, laid: CheckRequest, tmp_path: Path
) -> None:
    path = put_folder(tmp_path / "bundle", make_files(OTHER, description={"who": who}))
    assert refuse(path, CheckRequest(laid.raw, laid.warehouse, account)) == {"owner"}


@pytest.mark.slow
def test_folder_of_bundles_is_checked_against_those_that_are_here(
    laid: CheckRequest, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    shutil.copytree(laid.raw / SUBMISSIONS, theirs)
    assert check_submission(theirs, laid) == []
    [first] = (theirs / "ada-example").iterdir()

    new = make_files(OTHER, description={"who": {**ADA, "account": "ada"}})
    put_folder(theirs / get_place(new), new)
    [checked] = check_submission(theirs, CheckRequest(laid.raw, laid.warehouse, "Ada"))
    assert list(checked.faults) == []

    false_id = f"ada-example/{'0' * 12}"
    (theirs / get_place(new)).rename(theirs / false_id)
    (theirs / "README.md").write_text("hello")
    (theirs / "link").symlink_to("/etc")
    first.rename(tmp_path / "removed")
    reasons = {}
    for check in check_submission(theirs, laid):
        reasons[check.name] = {fault.reason for fault in check.faults}
    assert reasons == {
        "README.md": {"unknown-file"},
        false_id: {"out-of-place"},
        "link": {"link"},
        f"ada-example/{first.name}": {"owner"},
    }


def test_bundle_that_is_here_already_is_refused(laid: CheckRequest, tmp_path: Path) -> None:
    assert refuse(tmp_path / "first", laid) == {"duplicate"}


def test_every_reason_is_given_by_some_bundle() -> None:
    assert {*CONTAINERS, *FIGURES} == set(REASONS)


def test_report_shows_no_character_that_a_terminal_acts_on(tmp_path: Path) -> None:
    path = put_folder(tmp_path / "bundle", {**make_files(), "\x1b[2J.sh": SCRIPT})
    checks: list[CheckedBundle] = check_submission(path, CheckRequest(tmp_path, tmp_path))
    for output in ("text", "json"):
        assert "\x1b" not in format_checks(checks, output)


def test_template_has_the_columns_of_the_independent_tables() -> None:
    with (ROOT / "raw" / "independent" / "caraml-2024.csv").open(encoding="utf-8") as file:
        assert tuple(next(csv.reader(file))) == COLUMNS


@pytest.mark.parametrize(
    "name", ["/tmp/canary", "bundle/../../canary", "..\\canary", "C:canary", "bundle/\0canary"]
)
def test_entry_that_leads_out_of_the_bundle_is_refused_for_that(name: str, tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("bundle/x")
    entry.filename = name
    [checked] = check_submission(with_entry(entry)(tmp_path), CheckRequest(tmp_path, tmp_path))
    assert "leads out of the bundle" in {fault.message for fault in checked.faults}
