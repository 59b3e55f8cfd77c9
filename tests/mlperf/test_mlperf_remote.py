"""A checkout at a URL is scored like the same checkout in a folder."""

from __future__ import annotations

import pickle
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from ipu_results.errors import ClusterError
from ipu_results.mlperf.round import EntryTask, score_tree
from ipu_results.mlperf.tree import LocalTree, RemoteTree, open_tree

from tests.conftest import run_cli
from tests.mlperf.mlperf_support import (
    FOLDER,
    as_archive,
    as_folder,
    checkout,
    member,
    members,
    texts,
)

UNSENDABLE = "is visible to one process only; use --workers 1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return as_folder(tmp_path / "unpacked")


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    """Copy the checkout to memory://rounds."""
    files = MemoryFileSystem()
    for name, data in checkout().items():
        files.pipe_file(f"/rounds/{name}", data)
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


def run(path: object, *options: object) -> tuple[int, str, str]:
    done = run_cli("mlperf", path, "--format", "json", "--runs", *(options or ("--workers", 1)))
    return done.returncode, done.stdout, done.stderr


@pytest.mark.usefixtures("memory")
def test_memory_is_scored_like_the_folder(folder: Path) -> None:
    assert run("memory://rounds") == run("memory://rounds/") == run(folder)


def test_a_file_url_is_a_local_folder_with_all_its_guards(folder: Path) -> None:
    assert open_tree(f"file://{folder}") == LocalTree(str(folder))
    assert run(f"file://{folder}") == run(folder)


def test_the_inside_of_an_archive_is_scored_like_the_folder(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "round.zip", "w") as file:
        for name, data in checkout().items():
            file.writestr(name, data)
    expected = run(folder)
    assert run(f"zip://::file://{tmp_path}/round.zip", "--workers", 2) == expected
    assert run(f"zip::{tmp_path}/round.zip") == expected
    path = as_archive(tmp_path / "training_v2.0_results.tar", members())
    assert run(f"tar://::file://{path}") == expected
    assert run(f"tar://v2.0::file://{path}")[1].count('"round": "2.0"') == 15


def test_an_archive_at_a_url_is_read_as_one_stream(
    folder: Path, tmp_path: Path, memory: MemoryFileSystem
) -> None:
    path = as_archive(tmp_path / "round.tar.xz", members(), "xz")
    memory.pipe_file("/round.tar.xz", path.read_bytes())
    assert run("memory://round.tar.xz") == run(f"file://{path}") == run(folder)


@pytest.mark.usefixtures("memory")
def test_memory_cannot_be_sent_to_another_process() -> None:
    assert run("memory://rounds", "--workers", 2) == (
        1,
        "",
        f"error: memory://rounds: {UNSENDABLE}\n",
    )
    tree = RemoteTree("zip://v2.0::file:///a.zip")
    assert pickle.loads(pickle.dumps(tree)) == tree
    with pytest.raises(ClusterError, match="one process"):
        pickle.dumps(RemoteTree("tar://::memory://a.tar"))


class CustomError(Exception):
    """An error of a file system's own."""


@pytest.mark.parametrize("error", [CustomError("denied"), PermissionError(13, "denied")])
def test_files_and_folders_that_cannot_be_read_are_findings(
    memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    opened, listed = memory.open, memory.ls

    def refuse_file(_: object, path: str, *args: object, **kwargs: object) -> object:
        if path.endswith(("result_0.txt", "pod.json")):
            raise error
        return opened(path, *args, **kwargs)

    def refuse_folder(_: object, path: str, **kwargs: object) -> object:
        if path.endswith("Globex"):
            raise error
        return listed(path, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "open", refuse_file)
    monkeypatch.setattr(MemoryFileSystem, "ls", refuse_folder)
    scored = score_tree(RemoteTree("memory://rounds"))
    assert f"{FOLDER}/result_0.txt: does not count: cannot be read: denied" in texts(scored)
    assert "v2.0/Acme/systems/pod.json: cannot be read; the system is unknown: denied" in texts(
        scored
    )
    assert "v2.0/Globex: cannot be listed: denied" in texts(scored)
    assert [each.entry.submitter for each in scored.entries] == ["Acme"]


def test_a_link_out_of_an_archive_is_not_followed(tmp_path: Path) -> None:
    link = member(f"{FOLDER}/result_9.txt", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    path = as_archive(tmp_path / "round.tar", [*members(), link])
    scored = score_tree(RemoteTree(f"tar://::file://{path}"))
    assert str(scored.entries[0].runs[-1].reason).startswith("cannot be read: ")


def test_links_and_special_files_are_findings(
    memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = memory.ls

    def list_oddly(_: object, path: str, **kwargs: object) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = listed(path, **kwargs)
        for item in items:
            item["type"] = "other" if item["name"].endswith("result_1.txt") else item["type"]
            item["islink"] = item["name"].endswith("result_2.txt")
        return items

    monkeypatch.setattr(MemoryFileSystem, "ls", list_oddly)
    scored = score_tree(RemoteTree("memory://rounds"))
    assert [run.file for run in scored.entries[0].runs] == [
        "result_0.txt",
        "result_3.txt",
        "result_4.txt",
    ]
    for name in ("result_1.txt", "result_2.txt"):
        assert f"{FOLDER}/{name}: is a link or not a regular file; not read" in texts(scored)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nothing://x", "cannot be opened: Protocol not known: nothing"),
        ("memory://rounds/v2.0/README.md", "is not a folder"),
        ("memory://rounds/absent", "is not a folder"),
        ("memory://rounds/v2.0/Acme", "is the folder of one submitter; pass the one above it"),
        ("zip://::file:///absent.zip", "cannot be opened: No such file or directory"),
    ],
)
@pytest.mark.usefixtures("memory")
def test_a_url_without_a_round_is_one_line(url: str, message: str) -> None:
    assert run(url) == (1, "", f"error: {url}: {message}\n")


def test_missing_packages_name_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fsspec", "fsspec.core"):
        monkeypatch.setitem(sys.modules, name, None)
    message = "a URL needs fsspec: pip install 'ipu-results[remote]'"
    assert run("memory://rounds") == (1, "", f"error: memory://rounds: {message}\n")
    assert run(folder)[0] == 0


def test_a_worker_that_does_not_see_the_folder_is_an_error(folder: Path, tmp_path: Path) -> None:
    """It would find every log to be missing."""

    def read_elsewhere(function: Callable[[EntryTask], object], task: EntryTask) -> object:
        return function(replace(task, tree=LocalTree(str(tmp_path / "absent"))))

    class Elsewhere(ThreadPoolExecutor):
        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            return super().submit(read_elsewhere, function, *args, **kwargs)

    message = r"absent/v2.0/\w+/results/\w+/\w+: is not seen by a worker on "
    with Elsewhere(1) as executor, pytest.raises(ClusterError, match=message):
        score_tree(LocalTree(str(folder)), executor)
