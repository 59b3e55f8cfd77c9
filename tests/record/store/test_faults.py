"""The dataset survives a process that dies, two that run at once, a full disk and damaged files."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from ipu_results.build import IngestConfig, ingest
from ipu_results.errors import WarehouseError
from ipu_results.kit.sql import run_query
from ipu_results.record.store import query, tables
from ipu_results.record.store.files import DATABASE, STAGING, is_pending
from ipu_results.record.store.query import open_warehouse
from ipu_results.record.store.transaction import lock_folder
from ipu_results.schema import TABLES

from tests.conftest import (
    PAGE,
    PAPER,
    ROOT,
    copy_documents,
    edit,
    get_failure,
    once,
    query_rows,
    read_files,
    require,
    run_cli,
    run_ingest,
)

pytestmark = pytest.mark.slow  # processes are killed

OLD, NEW = 6044.0, 6045.0
FIGURE = "SELECT throughput FROM results WHERE table_name = 'bow_training' AND row_number = 1"
DIE = """
import importlib, os, signal, sys
from pathlib import Path
from ipu_results.build import IngestConfig, ingest
raw, warehouse, module, function, calls = sys.argv[1:]
module = importlib.import_module(module)
real, calls = getattr(module, function), iter(range(int(calls)))
def die(*args, **kwargs):
    if next(calls, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
setattr(module, function, die)
ingest(IngestConfig(Path(raw), Path(warehouse)))
"""
FILES = len(TABLES) + 1
RENAMES = 1 + FILES  # the commit file, then each file


@pytest.fixture
def changed(page: Path) -> Path:
    """Change one figure of the page."""
    edit(page, PAGE, "<td>6,044</td>", "<td>6,045</td>")
    return page


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build two warehouses of the page, the second with another figure; no test changes them."""
    with once(tmp_path_factory, "two_builds") as (folder, first):
        for name in ("one", "other") if first else ():
            raw = copy_documents(folder / name / "raw", PAGE)
            if name == "other":
                edit(raw, PAGE, "<td>6,044</td>", "<td>6,045</td>")
            assert run_ingest(raw).returncode == 0
    return folder / "one" / "warehouse", folder / "other" / "warehouse"


@pytest.fixture
def built(tmp_path: Path, builds: tuple[Path, Path]) -> Path:
    """Copy a small build, which a test may then break: all files are there."""
    return Path(shutil.copytree(builds[0], tmp_path / "warehouse"))


@pytest.fixture(scope="session")
def other(builds: tuple[Path, Path]) -> Path:
    return builds[1]


def read_figure(warehouse: Path) -> float:
    [(figure,)] = query_rows(warehouse, FIGURE)
    return float(figure)


def read_build_ids(warehouse: Path) -> set[bytes]:
    paths = [warehouse / name for name in read_files(warehouse) if name.endswith(".parquet")]
    return {pq.read_schema(path).metadata[b"build_id"] for path in paths}


def kill_ingest(raw: Path, warehouse: Path, function: str, calls: int) -> None:
    """Run an ingest that is killed at a call of a function, after `calls` earlier ones."""
    module, _, name = function.rpartition(".")
    command = [sys.executable, "-c", DIE, str(raw), str(warehouse), module, name, str(calls)]
    # without a cache, whose files take renames of their own
    env = {**os.environ, "XDG_STATE_HOME": os.devnull}
    done = subprocess.run(command, cwd=ROOT, env=env, check=False, timeout=600)
    assert done.returncode == -signal.SIGKILL


def list_ingest_command(raw: Path, warehouse: Path) -> list[str]:
    folders = ["--raw", str(raw), "--warehouse", str(warehouse)]
    return [sys.executable, "-m", "ipu_results", "ingest", *folders]


@pytest.mark.parametrize("renames", [0, 1, 2, RENAMES - 1])
def test_kill_between_two_renames_is_finished_or_rolled_back(
    changed: Path, built: Path, renames: int
) -> None:
    kill_ingest(changed, built, "os.replace", renames)
    for path in built.rglob("*.parquet"):
        pq.read_table(path)
    assert len(read_build_ids(built)) == (2 if renames >= 2 else 1)
    assert is_pending(built) == (renames > 0)
    assert read_figure(built) == (NEW if renames > 0 else OLD)
    assert len(read_build_ids(built)) == 1
    assert len(read_files(built)) == FILES
    assert not is_pending(built)


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        ("ipu_results.build.read_document", 0),
        ("ipu_results.record.store.tables.build_arrow_tables", 0),
        ("ipu_results.record.store.tables.add_checksum", 5),
        ("ipu_results.record.store.tables.insert_tables", 1),
    ],
)
def test_kill_before_the_commit_leaves_the_old_build(
    changed: Path, built: Path, function: str, calls: int
) -> None:
    before = read_files(built)
    kill_ingest(changed, built, function, calls)
    assert read_files(built) == before
    assert read_figure(built) == OLD
    assert run_cli("ingest", "--raw", changed, "--warehouse", built).returncode == 0
    assert (read_figure(built), len(read_build_ids(built))) == (NEW, 1)


def test_interrupt_leaves_the_old_build_and_one_line(
    changed: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "insert_tables", interrupt)
    before = read_files(built)
    done = run_cli("ingest", "--raw", changed, "--warehouse", built)
    assert (done.returncode, done.stderr) == (1, "error: interrupted; the next command cleans up\n")
    assert read_files(built) == before
    assert not (built / STAGING).exists()


def test_two_ingests_at_once_both_succeed(changed: Path, built: Path) -> None:
    command = list_ingest_command(changed, built)
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(timeout=600) for process in both] == [0, 0]
    assert read_figure(built) == NEW


def test_ingest_refuses_a_busy_warehouse(page: Path, built: Path) -> None:
    with lock_folder(built, 0):
        line = get_failure("ingest", "--raw", page, "--warehouse", built, "--wait", "0")
    assert "another process has been building it" in line
    with lock_folder(built, 0):
        pass


def test_open_connection_keeps_its_build_while_files_are_replaced(
    changed: Path, built: Path
) -> None:
    with open_warehouse(built) as reader:
        assert run_query(reader, FIGURE).to_pylist() == [{"throughput": OLD}]
        assert run_cli("ingest", "--raw", changed, "--warehouse", built).returncode == 0
        assert run_query(reader, FIGURE).to_pylist() == [{"throughput": OLD}]
        assert run_query(reader, "SELECT count(*) AS n FROM cells").to_pylist()[0]["n"] > 0
    assert read_figure(built) == NEW


@pytest.mark.parametrize("limit", [0, 2_000, 300_000])
def test_full_disk_leaves_the_old_build(changed: Path, built: Path, limit: int) -> None:
    def fill_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    before = read_files(built)
    command = list_ingest_command(changed, built)
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=fill_disk,
        timeout=600,
        check=False,
    )
    [line] = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.startswith("error: ")
    assert "the old build stays" in line
    assert read_files(built) == before


def query_damaged(built: Path) -> str:
    """Return the line with which a query of a damaged build is refused."""
    return get_failure("query", "--warehouse", built, FIGURE)


@pytest.mark.parametrize("name", ["results.parquet", "ipu_results.duckdb"])
def test_mix_of_two_builds_is_refused(built: Path, other: Path, name: str) -> None:
    (built / name).write_bytes((other / name).read_bytes())
    assert "of two builds; build again with: ipu-results ingest" in query_damaged(built)


def test_missing_file_is_named(built: Path) -> None:
    (built / "results.parquet").unlink()
    assert "results.parquet is missing; build it with: ipu-results ingest" in query_damaged(built)


@pytest.mark.parametrize("damage", [b"", b"PAR1 and then nothing", bytes(5000)])
def test_damaged_file_is_one_line(built: Path, damage: bytes) -> None:
    (built / "cells.parquet").write_bytes(damage)
    assert query_damaged(built).startswith("error: cells.parquet: cannot be read: ")


@pytest.mark.parametrize("command", ["query", "publish"])
def test_mix_of_parquet_files_is_read_again(
    command: str, built: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the files are replaced; the rest follows while the command waits."""
    files = read_files(other)
    for name in sorted(files)[: len(files) // 2]:
        (built / name).write_bytes(files[name])

    def replace_rest(_: float) -> None:
        shutil.copytree(other, built, dirs_exist_ok=True)

    monkeypatch.setattr(query.time, "sleep", replace_rest)
    args = {"query": [FIGURE], "publish": ["--out", tmp_path / "release"]}[command]
    done = run_cli(command, *args, "--warehouse", built)
    assert (done.returncode, done.stderr.count("error")) == (0, 0), done.stderr


def test_publish_of_a_lasting_mix_names_the_warehouse(
    built: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built / "cells.parquet").write_bytes((other / "cells.parquet").read_bytes())
    waits: list[float] = []
    monkeypatch.setattr(query.time, "sleep", waits.append)
    line = get_failure("publish", "--warehouse", built, "--out", tmp_path / "release")
    assert line.startswith(f"error: {built}: ")
    assert len(waits) == query.MAX_TRIES - 1
    assert not (tmp_path / "release").exists()


def test_failed_rename_is_finished_by_the_next_command(
    changed: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace
    calls = iter(range(100))

    def replace(source: Path, target: Path) -> None:
        if next(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(WarehouseError, match="the next command finishes it: No space left"):
            ingest(IngestConfig(changed, built))
    assert is_pending(built)
    assert read_figure(built) == NEW


IN_LOCALE = """
import locale, sys
locale.setlocale(locale.LC_ALL, "")  # as a program does that embeds this one
print(locale.localeconv()["decimal_point"], file=sys.stderr)
from ipu_results.doors.cli import main
main()
"""


def test_locale_changes_no_figure_and_no_character(tmp_path: Path) -> None:
    compiler = shutil.which("localedef")
    require(compiler is not None, "needs localedef")
    locale = tmp_path / "de_DE.UTF-8"
    command = [str(compiler), "-i", "de_DE", "-f", "UTF-8", str(locale)]
    subprocess.run(command, check=False)
    require(locale.is_dir(), "needs the sources of locales")
    raw = copy_documents(tmp_path / "raw", PAPER, "graphcore/performance-2023-h1.csv")
    build_id = ingest(IngestConfig(raw, tmp_path / "expected")).build_id
    settings = {"LC_ALL": locale.name, "LOCPATH": str(tmp_path), "PYTHONUTF8": "0"}
    env = {**os.environ, **settings, "PYTHONCOERCECLOCALE": "0"}

    def run(*args: object) -> bytes:
        command = [sys.executable, "-c", IN_LOCALE, *map(str, args)]
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, check=False, timeout=120
        )
        assert (done.returncode, done.stderr.splitlines()[0]) == (0, b","), done.stderr
        return done.stdout

    warehouse = tmp_path / "own"
    built = run("ingest", "--raw", raw, "--warehouse", warehouse)
    assert build_id[:12].encode() in built
    sql = (
        "SELECT 'µ' AS µ, throughput FROM results WHERE table_name = 'qwant_c2' AND batch_size = 2"
    )
    printed = "µ,throughput\nµ,1474.16\n"
    assert run("query", sql, "--warehouse", warehouse, "--format", "csv").decode() == printed
    (warehouse / DATABASE).unlink()
    assert run("query", sql, "--warehouse", warehouse, "--format", "csv").decode() == printed
