"""What happens to the dataset when a process dies, two run at once, or the disk is full."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import PAGE, RAW, ROOT, edit, run_cli
from ipu_results._util.sql import run_query
from ipu_results.build import ingest
from ipu_results.errors import WarehouseError
from ipu_results.schema import TABLES
from ipu_results.store import query
from ipu_results.store.query import open_warehouse
from ipu_results.store.transaction import COMMIT, STAGING, is_pending, lock_folder, recover, stage_files

OLD, NEW = 6044.0, 6045.0
FIGURE = "SELECT throughput FROM results WHERE table_name = 'bow_training' AND row_number = 1"
DIE_BEFORE_RENAME = """
import os, signal, sys
from pathlib import Path
from ipu_results.build import ingest
real, calls = os.replace, iter(range(1000))
def replace(*args):
    if next(calls) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    real(*args)
os.replace = replace
ingest(Path(sys.argv[1]), Path(sys.argv[2]))
"""
FILES = len(TABLES) + 1
RENAMES = 1 + FILES


@pytest.fixture
def changed(page: Path) -> Path:
    """The page with another figure in one place."""
    edit(page, PAGE, "<td>6,044</td>", "<td>6,045</td>")
    return page


def figure(warehouse: Path) -> float:
    with open_warehouse(warehouse) as connection:
        return float(run_query(connection, FIGURE).to_pylist()[0]["throughput"])


def build_ids(warehouse: Path) -> set[bytes]:
    return {pq.read_schema(path).metadata[b"build_id"] for path in warehouse.glob("*.parquet")}


@pytest.mark.parametrize("renames_done", [0, 1, 2, RENAMES - 1])
def test_killed_between_two_renames_the_next_command_finishes_or_rolls_back(
    changed: Path, built: Path, renames_done: int
) -> None:
    command = [sys.executable, "-c", DIE_BEFORE_RENAME, str(changed), str(built), str(renames_done)]
    assert subprocess.run(command, cwd=ROOT, check=False, timeout=60).returncode == -signal.SIGKILL
    assert all(pq.read_table(path).num_rows >= 0 for path in built.glob("*.parquet"))
    assert len(build_ids(built)) == (2 if renames_done >= 2 else 1)
    committed = renames_done > 0
    assert is_pending(built) == committed
    assert figure(built) == (NEW if committed else OLD)
    assert len(build_ids(built)) == 1
    assert not is_pending(built)


def test_after_a_kill_the_next_ingest_builds_as_ever(changed: Path, built: Path) -> None:
    command = [sys.executable, "-c", DIE_BEFORE_RENAME, str(changed), str(built), "5"]
    assert subprocess.run(command, cwd=ROOT, check=False, timeout=60).returncode == -signal.SIGKILL
    assert run_cli("ingest", "--raw", changed, "--warehouse", built).returncode == 0
    assert len(build_ids(built)) == 1
    assert figure(built) == NEW


def test_the_renames_are_as_many_as_the_files(warehouse: Path) -> None:
    assert len([path for path in warehouse.iterdir() if path.suffix in (".parquet", ".duckdb")]) == FILES


@pytest.mark.parametrize("seconds", [0.3, 1.1, 1.9])
def test_killed_at_any_moment_the_dataset_is_one_build(changed: Path, built: Path, seconds: float) -> None:
    command = [sys.executable, "-m", "ipu_results", "ingest", "--raw", str(changed), "--warehouse", str(built)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    process.kill()
    process.wait(timeout=30)
    assert figure(built) in (OLD, NEW)
    assert len(build_ids(built)) == 1


def test_an_interrupt_leaves_the_old_build_and_one_line(changed: Path, built: Path) -> None:
    command = [sys.executable, "-m", "ipu_results", "ingest", "--raw", str(changed), "--warehouse", str(built)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not (built / STAGING).exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode in (0, 1)
    if process.returncode:
        assert stderr == "error: interrupted; what was begun is finished or discarded by the next command\n"
    assert figure(built) in (OLD, NEW)
    assert not (built / STAGING).exists()


def test_two_at_once_both_succeed_one_after_the_other(changed: Path, built: Path) -> None:
    command = [sys.executable, "-m", "ipu_results", "ingest", "--raw", str(changed), "--warehouse", str(built)]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert figure(built) == NEW


def test_the_second_refuses_clearly_when_it_may_not_wait(built: Path) -> None:
    with lock_folder(built, 0):
        done = run_cli("ingest", "--raw", RAW, "--warehouse", built, "--wait", "0")
    assert done.returncode == 1
    assert "another process has been building it" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_keeps_reading_while_a_new_build_replaces_the_files(changed: Path, built: Path) -> None:
    with open_warehouse(built) as reader:
        assert run_query(reader, FIGURE).to_pylist() == [{"throughput": OLD}]
        assert run_cli("ingest", "--raw", changed, "--warehouse", built).returncode == 0
        assert run_query(reader, FIGURE).to_pylist() == [{"throughput": OLD}]
        assert run_query(reader, "SELECT count(*) AS n FROM cells").to_pylist()[0]["n"] > 0
    assert figure(built) == NEW


@pytest.mark.parametrize("limit", [0, 2_000, 300_000])
def test_a_full_disk_leaves_the_old_build(changed: Path, built: Path, limit: int) -> None:
    def full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    before = {path.name: path.read_bytes() for path in built.iterdir()}
    command = [sys.executable, "-m", "ipu_results", "ingest", "--raw", str(changed), "--warehouse", str(built)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, preexec_fn=full_disk, check=False, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "the old build stays" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert {path.name: path.read_bytes() for path in built.iterdir()} == before


def test_no_write_ahead_log_stays_beside_the_database(warehouse: Path) -> None:
    assert not list(warehouse.glob("*.wal"))
    assert not list(warehouse.glob(".staging*"))


def test_a_mix_of_two_builds_is_seen(changed: Path, built: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert run_cli("ingest", "--raw", changed, "--warehouse", other).returncode == 0
    (built / "results.parquet").write_bytes((other / "results.parquet").read_bytes())
    done = run_cli("query", "--warehouse", built, FIGURE)
    assert done.returncode == 1
    assert "of two builds" in done.stderr
    (built / "results.parquet").unlink()
    done = run_cli("query", "--warehouse", built, FIGURE)
    assert done.returncode == 1
    assert "lacks results.parquet" in done.stderr


def test_a_database_of_another_build_is_seen(changed: Path, built: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert run_cli("ingest", "--raw", changed, "--warehouse", other).returncode == 0
    (built / "ipu_results.duckdb").write_bytes((other / "ipu_results.duckdb").read_bytes())
    done = run_cli("query", "--warehouse", built, FIGURE)
    assert done.returncode == 1
    assert "of two builds" in done.stderr


@pytest.mark.parametrize("damage", [b"", b"PAR1 and then nothing", bytes(5000)])
def test_a_damaged_file_is_told_in_one_line(built: Path, damage: bytes) -> None:
    (built / "cells.parquet").write_bytes(damage)
    done = run_cli("query", "--warehouse", built, FIGURE)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cells.parquet: ")
    assert len(done.stderr.splitlines()) == 1


def test_staging_replaces_all_files_or_none(tmp_path: Path) -> None:
    target = tmp_path / "target"
    with lock_folder(target, 1), stage_files(target) as staging:
        (staging / "a").write_text("1")
        (staging / "b").write_text("1")
    with pytest.raises(ZeroDivisionError), lock_folder(target, 1), stage_files(target) as staging:
        (staging / "a").write_text(str(1 // int("0")))
    assert {path.name: path.read_text() for path in target.iterdir() if path.name in "ab"} == {"a": "1", "b": "1"}


def test_a_committed_staging_folder_is_finished_however_far_it_came(tmp_path: Path) -> None:
    staging = tmp_path / STAGING
    staging.mkdir()
    (tmp_path / "a").write_text("new already")
    (tmp_path / "b").write_text("old")
    (staging / "b").write_text("new")
    (staging / COMMIT).write_text(json.dumps(["a", "b"]))
    recover(tmp_path)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["new already", "new"]
    assert not staging.exists()


def test_a_busy_target_is_refused_and_free_again_afterwards(tmp_path: Path) -> None:
    with lock_folder(tmp_path, 0), pytest.raises(WarehouseError, match="another process"), lock_folder(tmp_path, 0):
        pass
    with lock_folder(tmp_path, 0):
        pass


def test_a_reader_that_meets_a_publication_looks_again(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are of two builds for a moment while another process renames them."""
    real, calls = query.read_build_id, iter(range(100))
    monkeypatch.setattr(query, "read_build_id", lambda path: real(path) if next(calls) else "a build of before")
    assert figure(built) == OLD
    assert next(calls) == 2


def test_a_failed_rename_is_told_as_what_it_is(changed: Path, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.replace, iter(range(100))

    def replace(source: Path, target: Path) -> None:
        if next(calls) == 3:
            raise OSError(28, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(WarehouseError, match="the next command finishes it: No space left"):
            ingest(changed, built)
    assert is_pending(built)
    assert figure(built) == NEW


def test_a_warehouse_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_cli("ingest", "--raw", RAW, "--warehouse", tmp_path / "file" / "warehouse")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path}")
