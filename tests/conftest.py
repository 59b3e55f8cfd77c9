"""Fixtures: the project's own documents, a warehouse built from them once, and the real command line."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from filelock import FileLock
from hypothesis import settings
from ipu_results._util.sql import run_query
from ipu_results.cli import main
from ipu_results.store.query import open_warehouse
from release_support import publish_release, shrink_warehouse

settings.register_profile("suite", max_examples=30, deadline=None)
settings.load_profile("suite")

ROOT = Path(__file__).resolve().parent.parent
RAW = ROOT / "raw"
FIRST = ("test_benchmarks.py", "test_emulator_docs.py", "test_sweep_command.py", "test_validation.py")
PAGE = "graphcore/performance-2023-07-04.html"
PAGE_ID = "graphcore-performance-2023-07-04"
PAPER = "qwant/resnext101-c2-2020-02-28.pdf"
PAPER_ID = "qwant-c2-report-2020-02-28"

Ask = Query = Callable[..., list[tuple[object, ...]]]


Done = subprocess.CompletedProcess[str]


def run_cli(*args: object) -> Done:
    """The command as a user runs it, its arguments, output and exit status, in this process."""
    found = CliRunner().invoke(main, list(map(str, args)), prog_name="ipu-results")
    return Done(list(map(str, args)), found.exit_code, found.stdout, found.stderr)


def run_process(*args: object, env: Mapping[str, str] | None = None) -> Done:
    """The command in a process of its own, with other environment variables."""
    command = [sys.executable, "-m", "ipu_results", *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, **(env or {})}, timeout=120, check=False
    )


def copy_raw(target: Path, *without: str) -> Path:
    """The documents but for some folders."""
    shutil.copytree(RAW, target, ignore=shutil.ignore_patterns("__pycache__", *without))
    return target


def copy_documents(target: Path, *files: str) -> Path:
    """Some of the documents alone, for tests that the others do not matter to: they are built in less time."""
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        for name in (file, f"{file}.toml"):
            shutil.copyfile(RAW / name, target / name)
    return target


def reseal(raw: Path, file: str) -> None:
    """Write the sha256 of a changed file into its sidecar, as an honest editor would."""
    sidecar = raw / f"{file}.toml"
    digest = hashlib.sha256((raw / file).read_bytes()).hexdigest()
    sidecar.write_text(
        re.sub(r'sha256 = "\w+"', f'sha256 = "{digest}"', sidecar.read_text(encoding="utf-8")), encoding="utf-8"
    )


def edit(raw: Path, file: str, old: str, new: str, count: int = 1) -> None:
    """Replace text of a document that must be there, and reseal it."""
    path = raw / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, count), encoding="utf-8")
    reseal(raw, file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shares the dearest state begins and so stays on one worker: the others steal from the end."""
    items.sort(key=lambda item: item.path.name not in FIRST)


@contextmanager
def once(factory: pytest.TempPathFactory, name: str) -> Iterator[tuple[Path, bool]]:
    """A folder of the whole run, and whether to fill it: the first of the workers does while the others wait."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with FileLock(f"{folder}.lock"):
        done = folder / ".done"
        if first := not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield folder, first
        done.touch()


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse built from the carried documents by the real command."""
    with once(tmp_path_factory, "built") as (folder, first):
        target = folder / "warehouse"
        if first:
            done = run_process("ingest", "--raw", RAW, "--warehouse", target)
            assert done.returncode == 0, done.stderr
            assert (target / "results.parquet").exists()
    return target


@pytest.fixture(scope="session")
def ask(warehouse: Path) -> Iterator[Ask]:
    """Rows of a query over the built warehouse."""
    with open_warehouse(warehouse) as connection:
        yield lambda sql: [tuple(row.values()) for row in run_query(connection, sql).to_pylist()]


@pytest.fixture(scope="session")
def query(ask: Ask) -> Query:
    """Run SQL over the built warehouse."""
    return ask


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A copy of the documents that a test may change, without the claims: their recomputations take time."""
    return copy_raw(tmp_path / "raw", "claims")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A copy of the page alone."""
    return copy_documents(tmp_path / "raw", PAGE)


@pytest.fixture
def built(tmp_path: Path, warehouse: Path) -> Path:
    """A warehouse of the carried documents that a test may break."""
    target = tmp_path / "warehouse"
    target.mkdir()
    for path in warehouse.iterdir():
        if path.is_file():
            shutil.copyfile(path, target / path.name)
    return target


@pytest.fixture(scope="session")
def old_duckdb() -> Path:
    """DuckDB 1.2.2 in a folder of its own, pinned by hash; skipped where no package index serves it."""
    target = ROOT / ".venv" / "duckdb-1.2.2"
    if not target.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pins = ["--only-binary", ":all:", "--require-hashes", "-r", str(ROOT / "tests" / "duckdb-1.2.2.txt")]
        done = subprocess.run([*pip, *pins, "--target", str(target)], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip("DuckDB 1.2.2 cannot be installed here")
    return target


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory, warehouse: Path) -> Path:
    """A release of the carried documents."""
    return released_once(tmp_path_factory, "released", warehouse)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory, warehouse: Path) -> Path:
    """A warehouse of a few results, for tests that publish often."""
    with once(tmp_path_factory, "small") as (folder, first):
        if first:
            shrink_warehouse(warehouse, folder / "warehouse")
    return folder / "warehouse"


@pytest.fixture(scope="session")
def small_release(tmp_path_factory: pytest.TempPathFactory, small: Path) -> Path:
    return released_once(tmp_path_factory, "small_released", small)


def released_once(factory: pytest.TempPathFactory, name: str, warehouse: Path) -> Path:
    with once(factory, name) as (folder, first):
        if first:
            publish_release(warehouse, folder / "release")
    return folder / "release"
