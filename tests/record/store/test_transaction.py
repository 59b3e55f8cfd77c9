"""The files of a folder are replaced all or none, wherever the writing of them stops."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ipu_results.errors import WarehouseError
from ipu_results.record.store.files import COMMIT, STAGING
from ipu_results.record.store.transaction import lock_folder, recover, stage_files

from tests.conftest import read_files

OLD = {"a": b"old", "detail/b": b"old"}
NEW = {"a": b"new", "detail/b": b"new"}


def write(folder: Path, text: str) -> None:
    (folder / "detail").mkdir(exist_ok=True)
    (folder / "a").write_text(text)
    (folder / "detail" / "b").write_text(text)


def publish(target: Path, text: str) -> None:
    with stage_files(target) as staging:
        write(staging, text)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    publish(tmp_path, "old")
    assert read_files(tmp_path) == OLD
    return tmp_path


def test_error_while_files_are_written_replaces_none(target: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        publish(target, "\ud800")
    assert read_files(target) == OLD
    assert not (target / STAGING).exists()


@pytest.mark.parametrize(
    ("renames", "error", "files"),
    [(0, OSError, OLD), (1, WarehouseError, NEW), (2, WarehouseError, NEW)],
)
def test_failed_rename_leaves_all_files_old_or_the_next_command_makes_all_new(
    renames: int,
    error: type[Exception],
    files: dict[str, bytes],
    target: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first rename is that of the commit file."""
    rename = os.replace
    done: list[Path] = []

    def fail_after(source: Path, place: Path) -> None:
        if len(done) == renames:
            raise OSError("no space")
        rename(source, place)
        done.append(place)

    monkeypatch.setattr(os, "replace", fail_after)
    with pytest.raises(error):
        publish(target, "new")
    monkeypatch.undo()
    recover(target)
    assert read_files(target) == files


@pytest.mark.parametrize(
    ("commit", "files"), [(None, {"a": b"old"}), ('["a", "b"]', {"a": b"old", "b": b"new"})]
)
def test_staging_folder_of_a_killed_process_is_finished_if_it_was_committed(
    commit: str | None, files: dict[str, bytes], tmp_path: Path
) -> None:
    """Of the two files that are named, the first was moved before."""
    staging = tmp_path / STAGING
    staging.mkdir()
    (tmp_path / "a").write_text("old")
    (staging / "b").write_text("new")
    if commit:
        (staging / COMMIT).write_text(commit)
    recover(tmp_path)
    assert read_files(tmp_path) == files
    assert not staging.exists()


def test_folder_inside_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "warehouse"
    with (
        pytest.raises(WarehouseError, match=f"^{place}: cannot be written: "),
        lock_folder(place, 0),
    ):
        pass
