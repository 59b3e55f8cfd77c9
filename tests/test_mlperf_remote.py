"""A checkout at a URL is scored as the same checkout in a folder."""

from __future__ import annotations

import pickle
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from archive_support import FOLDER, as_archive, as_folder, checkout, members
from conftest import Done, run_cli
from fsspec.implementations.memory import MemoryFileSystem
from ipu_results.errors import ClusterError, UnrecognisedDocumentError
from ipu_results.mlperf.remote import RemoteTree, open_tree
from ipu_results.mlperf.scoring import in_processes, score_tree
from ipu_results.mlperf.tree import LocalTree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return as_folder(tmp_path / "unpacked")


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    """The checkout at memory://rounds."""
    files = MemoryFileSystem()
    for name, data in checkout().items():
        files.pipe_file(f"/rounds/{name}", data)
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


def scored(path: object, *options: object) -> tuple[int, str, str]:
    done: Done = run_cli("mlperf", path, "--format", "json", "--runs", "--workers", 1, *options)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("slash", ["", "/"])
def test_memory_gives_what_the_folder_gives(folder: Path, slash: str) -> None:
    assert scored(f"memory://rounds{slash}") == scored(folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_url_gives_what_the_folder_gives(folder: Path, workers: int) -> None:
    assert scored(f"file://{folder}", "--workers", workers) == scored(folder)


def test_a_file_url_is_a_local_folder_with_all_its_guards(folder: Path) -> None:
    assert open_tree(f"file://{folder}") == LocalTree(str(folder))


@pytest.mark.parametrize("workers", [1, 2])
def test_the_inside_of_a_zip_gives_what_the_folder_gives(folder: Path, tmp_path: Path, workers: int) -> None:
    path = tmp_path / "round.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name, data in checkout().items():
            file.writestr(name, data)
    assert scored(f"zip://::file://{path}", "--workers", workers) == scored(folder)
    assert scored(f"zip::{path}") == scored(folder)


def test_the_inside_of_a_tar_gives_what_the_folder_gives(folder: Path, tmp_path: Path) -> None:
    path = as_archive(tmp_path / "round.tar", members())
    assert scored(f"tar://::file://{path}") == scored(folder)


def test_a_folder_inside_an_archive_names_the_round(tmp_path: Path) -> None:
    path = as_archive(tmp_path / "training_v2.0_results.tar", members())
    status, told, _ = scored(f"tar://v2.0::file://{path}")
    assert (status, told.count('"round": "2.0"')) == (0, 15)


def test_an_archive_at_a_url_is_read_as_one_stream(folder: Path, tmp_path: Path, memory: MemoryFileSystem) -> None:
    path = as_archive(tmp_path / "round.tar.xz", members(), "xz")
    memory.pipe_file("/round.tar.xz", path.read_bytes())
    assert scored("memory://round.tar.xz") == scored(folder)
    assert scored(f"file://{path}") == scored(folder)


@pytest.mark.usefixtures("memory")
def test_memory_lies_in_one_process_and_says_so() -> None:
    status, told, error = scored("memory://rounds", "--workers", 2)
    assert (status, told) == (1, "")
    assert error == "error: memory://rounds: lies in one process, no other can read it; use --workers 1\n"


def test_a_tree_can_be_sent_to_another_process_but_not_that_of_memory() -> None:
    tree = RemoteTree("zip://v2.0::file:///a.zip")
    assert pickle.loads(pickle.dumps(tree)) == tree
    with pytest.raises(ClusterError, match="one process"):
        pickle.dumps(RemoteTree("tar://::memory://a.tar"))


class Failing(Exception):
    """What a file system raises that knows errors of its own."""


@pytest.mark.parametrize("error", [Failing("denied"), PermissionError(13, "denied"), TimeoutError("denied")])
def test_a_file_that_cannot_be_read_is_a_finding(
    memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    opened = memory.open

    def refuse(path: str, *args: object, **kwargs: object) -> object:
        if path.endswith(("result_0.txt", "pod.json")):
            raise error
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "open", lambda _, *args, **kwargs: refuse(*args, **kwargs))
    found = score_tree(RemoteTree("memory://rounds"), in_processes(1))
    told = [str(finding) for finding in found.findings]
    assert f"{FOLDER}/result_0.txt: does not count: cannot be read: denied" in told
    assert "v2.0/Acme/systems/pod.json: cannot be read, the system is unknown: denied" in told
    assert len(found.entries) == 3


def test_a_folder_that_cannot_be_listed_is_a_finding(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = memory.ls

    def refuse(path: str, **kwargs: object) -> object:
        if path.endswith("Globex"):
            raise Failing("denied")
        return listed(path, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "ls", lambda _, *args, **kwargs: refuse(*args, **kwargs))
    found = score_tree(RemoteTree("memory://rounds"), in_processes(1))
    assert "v2.0/Globex: cannot be listed: denied" in [str(finding) for finding in found.findings]
    assert [one.entry.submitter for one in found.entries] == ["Acme"]


def test_a_link_out_of_an_archive_within_a_url_is_not_followed(tmp_path: Path) -> None:
    link = tarfile.TarInfo(f"{FOLDER}/result_9.txt")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    path = as_archive(tmp_path / "round.tar", [*members(), (link, b"")])
    found = score_tree(RemoteTree(f"tar://::file://{path}"), in_processes(1))
    assert str(found.entries[0].runs[-1].reason).startswith("cannot be read: ")


def test_links_and_what_is_no_regular_file_are_findings(
    memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = memory.ls

    def odd(path: str, **kwargs: object) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = listed(path, **kwargs)
        for one in found:
            one["type"] = "other" if one["name"].endswith("result_1.txt") else one["type"]
            one["islink"] = one["name"].endswith("result_2.txt")
        return found

    monkeypatch.setattr(MemoryFileSystem, "ls", lambda _, *args, **kwargs: odd(*args, **kwargs))
    found = score_tree(RemoteTree("memory://rounds"), in_processes(1))
    assert [run.file for run in found.entries[0].runs] == ["result_0.txt", "result_3.txt", "result_4.txt"]
    told = [str(finding) for finding in found.findings]
    assert f"{FOLDER}/result_1.txt: is a link or no regular file: not read" in told
    assert f"{FOLDER}/result_2.txt: is a link or no regular file: not read" in told


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nothing://x", "cannot be opened: Protocol not known: nothing"),
        ("memory://rounds/v2.0/README.md", "is no folder"),
        ("memory://rounds/absent", "is no folder"),
        ("memory://rounds/v2.0/Acme", "is the folder of one submitter; give the one above it"),
        ("zip://::file:///absent.zip", "cannot be opened: No such file or directory"),
    ],
)
@pytest.mark.usefixtures("memory")
def test_a_url_that_holds_no_round_is_one_line(url: str, told: str) -> None:
    assert scored(url) == (1, "", f"error: {url}: {told}\n")


def test_without_the_extra_one_line_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    error = "error: memory://rounds: a URL needs fsspec: pip install 'ipu-results[remote]'\n"
    assert scored("memory://rounds") == (1, "", error)


def test_a_local_folder_needs_no_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fsspec", "fsspec.core", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    assert scored(folder)[0] == 0


def test_no_folder_at_all_is_told_of_memory() -> None:
    with pytest.raises(UnrecognisedDocumentError, match="is no folder"):
        RemoteTree("memory://absent").listing()
