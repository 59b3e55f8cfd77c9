"""Files that are not regular, names that are not UTF-8, and commit files that are damaged."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from ipu_results.kit.files import DamagedCommitWarning, open_regular_file
from ipu_results.record.store.files import COMMIT, STAGING, is_pending
from ipu_results.record.store.transaction import recover

from tests.conftest import (
    PAGE,
    copy_documents,
    find_error,
    get_failure,
    read_files,
    run_cli,
    run_ingest,
)


def bind_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        os.chdir(path.parent)  # the path of a socket is short
        bound.bind(path.name)


MAKE: list[tuple[Callable[[Path], object], str]] = [
    (os.mkfifo, "it is a named pipe, not a regular file"),
    (bind_socket, "it is a socket, not a regular file"),
    (lambda path: path.symlink_to("/dev/zero"), "it is a device, not a regular file"),
    (Path.mkdir, "Is a directory"),
]


@pytest.mark.parametrize(("make", "message"), MAKE)
@pytest.mark.parametrize("name", [PAGE, "claims/ledger.sql"])
def test_special_file_as_a_document_is_refused(
    name: str,
    make: Callable[[Path], object],
    message: str,
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(page)
    if name == PAGE:
        path = page / PAGE
        path.unlink()
    else:
        path = (page / PAGE).with_name("attached.sql")
        sidecar = page / f"{PAGE}.toml"
        sidecar.write_text(f'{sidecar.read_text()}\n[attachments]\n"attached.sql" = "{"0" * 64}"\n')
    make(path)
    line = find_error(page)
    assert line.endswith(f"{path.name}: cannot be read: {message}")


@pytest.mark.parametrize(("make", "message"), MAKE[:2])
def test_special_file_as_a_sidecar_is_refused(
    make: Callable[[Path], object], message: str, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(page)
    make(page / "graphcore" / "x.html.toml")
    assert find_error(page) == f"error: graphcore/x.html.toml: is not a readable sidecar: {message}"


def test_file_that_becomes_a_pipe_while_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    before = os.stat(tmp_path / "file")
    monkeypatch.setattr(os, "stat", lambda *_, **__: before)
    with pytest.raises(OSError, match="named pipe"):
        open_regular_file(tmp_path / "pipe")


@pytest.mark.parametrize("place", [b"p\xffge.html", b"f\xff/page.html"])
def test_name_that_is_not_utf8_is_named_in_one_line(place: bytes, page: Path) -> None:
    target = page / os.fsdecode(place)
    target.parent.mkdir(exist_ok=True)
    for suffix in ("", ".toml"):
        os.rename(page / f"{PAGE}{suffix}", f"{target}{suffix}")
    reason = "the name of the file or of a folder is not UTF-8; rename it"
    name = place.decode("ascii", "backslashreplace").replace(r"\xff", r"\udcff")
    assert find_error(page) == f"error: {name}.toml: {reason}"


def test_name_that_is_not_utf8_without_a_sidecar_is_a_finding_in_any_folder(tmp_path: Path) -> None:
    raw = copy_documents(tmp_path / os.fsdecode(b"f\xff"), PAGE)
    (raw / os.fsdecode(b"\x1b[2J\xff.html")).write_text("x")
    done = run_ingest(raw)
    assert done.returncode == 0
    assert r"finding: not ingested: \x1b[2J\udcff.html has no sidecar" in done.stderr


def test_warehouse_whose_name_is_not_utf8_is_one_line(page: Path, tmp_path: Path) -> None:
    line = get_failure("ingest", "--raw", page, "--warehouse", tmp_path / os.fsdecode(b"f\xff"))
    assert r"f\udcff" in line
    assert "not UTF-8" in line


DAMAGED = [b"", b"{", b"5", b"null", b"[]", b"{}", b"[5]", b'"a"', b"\xff", b"[" * 100_000]
# names of no file of a build
OTHERS = """
    ../a /etc/a b/../../a b/c/a out/hostname .. . a\0 commit.json .lock folder link
""".split()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Make a folder with an unfinished build that names files out of it."""
    target = tmp_path / "target"
    staging = target / STAGING
    (staging / "folder").mkdir(parents=True)
    (staging / "a").write_text("new")
    (staging / "link").symlink_to("/etc/hostname")
    (staging / "out").symlink_to("/etc")
    (tmp_path / "a").write_text("outside")
    (target / "a").write_text("old")
    return target


def discard(target: Path) -> None:
    """Check that an unfinished build is discarded with a warning."""
    with pytest.warns(DamagedCommitWarning, match="unfinished build was discarded"):
        recover(target)
    assert read_files(target) == {"a": b"old"}
    assert (target.parent / "a").read_text() == "outside"
    assert not is_pending(target)


@pytest.mark.parametrize("data", DAMAGED, ids=[repr(data[:12]) for data in DAMAGED])
def test_damaged_commit_file_commits_nothing(data: bytes, target: Path) -> None:
    (target / STAGING / COMMIT).write_bytes(data)
    discard(target)


@pytest.mark.parametrize("name", ["", *OTHERS])
def test_commit_file_that_names_another_file_commits_nothing(name: str, target: Path) -> None:
    (target / STAGING / COMMIT).write_text(json.dumps([name]))
    discard(target)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_commit_file_that_is_not_a_file_commits_nothing(
    make: Callable[[Path], object], target: Path
) -> None:
    make(target / STAGING / COMMIT)
    discard(target)


def test_command_works_after_a_damaged_commit_and_says_so(small: Path, tmp_path: Path) -> None:
    built = Path(shutil.copytree(small, tmp_path / "warehouse"))
    (built / STAGING).mkdir()
    (built / STAGING / COMMIT).write_bytes(b"")
    done = run_cli("query", "SELECT 1 AS a", "--warehouse", built)
    assert done.returncode == 0
    [line] = [line for line in done.stderr.splitlines() if "warning" in line]
    assert line.startswith(f"warning: {built / STAGING / COMMIT} is damaged (")
    assert not is_pending(built)
