"""Shared fixtures and helpers: the committed documents, a warehouse built from them once, the real
command line.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
import tomli_w
from click.testing import CliRunner
from filelock import FileLock
from hypothesis import settings
from ipu_results import build
from ipu_results.build import (
    check_documents,
    load_cached,
    load_document,
    parse_document,
)
from ipu_results.doors.cli import main
from ipu_results.errors import IpuResultsError
from ipu_results.kit.sql import ENGINE, LOCKDOWN, run_query
from ipu_results.kit.text import escape_line
from ipu_results.record import store
from ipu_results.record.check import gate
from ipu_results.record.check.gate import GateFailure, check_gate
from ipu_results.record.derive import collect_inputs, derive_results
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.record.read.context import digest_context
from ipu_results.record.sources.catalogue import Document, load_catalogue, read_entry
from ipu_results.record.store.cache import Cache
from ipu_results.record.store.files import DATABASE, STAGING
from ipu_results.record.store.query import STORED, open_warehouse
from ipu_results.record.store.tables import open_memory_store
from ipu_results.schema import FILE_VIEWS, Table, table
from ipu_results.schema.frames import to_pandas
from ipu_results.schema.vocabulary import load_vocabulary

from benchmarks.planted_errors import open_staged
from tests.release.release_support import publish_release, shrink_warehouse

# A shell that starts the suite in the background makes it ignore Ctrl-C, and its child processes
# inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("suite", max_examples=30, deadline=None)
settings.register_profile("long", max_examples=5_000, deadline=None)  # --hypothesis-profile=long
settings.load_profile("suite")

ROOT = Path(__file__).resolve().parent.parent
RAW = ROOT / "raw"
COMMITTED = ROOT / "warehouse"
FIRST = (
    "test_benchmarks.py",
    "test_emulator_docs.py",
    "test_sweep_command.py",
    "test_validation.py",
)
PAGE = "graphcore/performance-2023-07-04.html"
PAGE_ID = "graphcore-performance-2023-07-04"
PAPER = "qwant/resnext101-c2-2020-02-28.pdf"
PAPER_ID = "qwant-c2-report-2020-02-28"


class SharedCache(Cache):
    """Documents that any test of this process reads, read once: a key is of all that they follow
    from.
    """

    def __init__(self) -> None:
        super().__init__(Path(), "")
        self._documents: dict[str, Any] = {}

    def get(self, digest: str) -> Any | None:
        return self._documents.get(digest)

    def put(self, digest: str, value: object) -> None:
        self._documents[digest] = value

    def drop_unused(self) -> None:
        """Another test may use it."""


SHARED = SharedCache()

# Documents with all versions of a page of a vendor.
HISTORIES = "(SELECT DISTINCT document_id FROM cells WHERE column_name = 'printed_until')"

Query = Callable[[str], list[tuple[Any, ...]]]
Done = subprocess.CompletedProcess[str]


def run_cli(*args: object) -> Done:
    """Run the command in this process; return its arguments, output and exit status."""
    result = CliRunner().invoke(main, list(map(str, args)), prog_name="ipu-results")
    return Done(list(map(str, args)), result.exit_code, result.stdout, result.stderr)


def run_process(*args: object, env: Mapping[str, str] | None = None) -> Done:
    """Run the command in a process of its own, with other environment variables."""
    command = [sys.executable, "-m", "ipu_results", *map(str, args)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        timeout=600,
        check=False,
    )


def run_ingest(raw: Path, *options: object) -> Done:
    """Build the warehouse next to `raw` with the real command."""
    return run_cli("ingest", "--raw", raw, "--warehouse", raw.parent / "warehouse", *options)


def get_error(raw: Path) -> str:
    """Run an ingest that must fail; return its one line on stderr."""
    done = run_ingest(raw)
    assert (done.returncode, done.stdout) == (1, "")
    assert not (raw.parent / "warehouse" / "results.parquet").exists()
    [line] = done.stderr.splitlines()
    return line


def get_failure(*args: object) -> str:
    """Run a command that must fail; return its one line on stderr."""
    done = run_cli(*args)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    return line


def check_raw(raw: Path) -> dict[str, pd.DataFrame]:
    """Check the documents of `raw` as a build does before it writes; what is unchanged is read once
    in a process.
    """
    documents = load_catalogue(raw)
    normalised = map(load_once, documents)
    with open_memory_store() as store:
        checked = check_documents(documents, normalised, load_vocabulary(), store, SHARED)
        return {name: to_pandas(store.fetch(name)) for name in checked.tables}


def derive_frame(
    frames: Mapping[str, pd.DataFrame | pa.Table],
    definition: Table | None = None,
    sql: str | None = None,
) -> pd.DataFrame:
    """Return `results` of some tables with its derived columns."""
    read = {}
    for name, names in collect_inputs(table("results")).items():
        rows = frames[name]
        read[name] = rows.select(names) if isinstance(rows, pa.Table) else rows[list(names)]
    with open_staged({**read, "results": frames["results"]}) as connection:
        derive_results(connection, definition, sql)
        return to_pandas(connection.table("complete").to_arrow_table())


def find_error(raw: Path) -> str:
    """Check documents that are refused; return the line that `ingest` prints."""
    with pytest.raises(IpuResultsError) as caught:
        check_raw(raw)
    return f"error: {escape_line(str(caught.value))}"


def load_once(document: Document) -> NormalisedDocument:
    return load_cached(document, SHARED)


def list_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in run_query(connection, sql).to_pylist()]


def query_rows(warehouse: Path, sql: str) -> list[tuple[Any, ...]]:
    with open_warehouse(warehouse) as connection:
        return list_rows(connection, sql)


def select_figure(name: str) -> str:
    """Return the SQL of a figure of a result `r`: a column, or a row of `figures`."""
    if name in table("results").names:
        return f"r.{name}"
    return f"(SELECT value FROM figures f WHERE f.result_id = r.result_id AND metric = '{name}')"


def load_documents(raw: Path) -> list[NormalisedDocument]:
    """Read and normalise the documents of `raw`, as a build does before it links them."""
    return [load_document(document, load_vocabulary()) for document in load_catalogue(raw)]


def copy_raw(target: Path, *without: str) -> Path:
    """Copy the documents except some folders."""
    shutil.copytree(RAW, target, ignore=shutil.ignore_patterns("__pycache__", *without))
    return target


def copy_documents(target: Path, *files: str) -> Path:
    """Copy a few documents, which are built in less time than all."""
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        for name in (file, f"{file}.toml"):
            shutil.copyfile(RAW / name, target / name)
    return target


def reseal(raw: Path, file: str) -> None:
    """Write the sha256 of a changed file into its sidecar, as an honest editor would."""
    sidecar = raw / f"{file}.toml"
    digest = hashlib.sha256((raw / file).read_bytes()).hexdigest()
    text = sidecar.read_text(encoding="utf-8")
    sealed = re.sub(r'sha256 = "\w+"', f'sha256 = "{digest}"', text)
    sidecar.write_text(sealed, encoding="utf-8")


def sign(raw: Path) -> None:
    """Sign the words near the figures of all documents, as a person would who has read them."""
    for document in load_catalogue(raw):
        digest = digest_context(parse_document(document, load_vocabulary()).context)
        if digest is not None:
            sidecar = document.path.with_name(f"{document.path.name}.toml")
            entry = read_entry(sidecar, sidecar.name) | {"context": digest, "means": "as read"}
            sidecar.write_text(tomli_w.dumps(entry), encoding="utf-8")


def edit(raw: Path, file: str, old: str, new: str, count: int = 1) -> None:
    """Replace text of a document, which must be there, and update its checksum."""
    path = raw / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, count), encoding="utf-8")
    reseal(raw, file)


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of a folder's files, to compare it before and after."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock" and STAGING not in path.parts
    }


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules of slow tests from the quick suite before they import what only they need."""
    if config.option.markexpr != "not slow" or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    slow = re.search(r"(?m)^pytestmark = \[?pytest\.mark\.slow\b", text)
    return True if slow else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the tests that share the dearest state, which then stay on one worker: others
    steal from the end.

    One worker builds the warehouse. The second of two starts in the middle, with the modules that
    need none, and first with the browser: one test of minutes, beside which the others would be
    done if it came last.
    """
    needing = {item.path for item in items if "warehouse" in getattr(item, "fixturenames", ())}

    def rank(item: pytest.Item) -> int:
        if item.path.name in FIRST:
            return 0
        if item.path in needing:
            return 1
        return 2 if item.path.name == "test_browser.py" else 3

    items.sort(key=rank)
    half = len(items) // 2
    last = sum(rank(item) < 2 for item in items)
    if last > half:
        items[half:] = items[last:] + items[half:last]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the cycle collector all modules and tests, which it would go through again and again."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()
    return collected


def pytest_unconfigure() -> None:
    gc.unfreeze()


def get_shared_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """Return a folder that is the same for all workers."""
    base = factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name


@contextmanager
def once(factory: pytest.TempPathFactory, name: str) -> Iterator[tuple[Path, bool]]:
    """Give a folder shared by all workers, and whether to fill it: the first worker does while the
    others wait.
    """
    folder = get_shared_folder(factory, name)
    done = folder / ".done"
    with FileLock(f"{folder}.lock"):
        first = not done.exists()
        if first:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield folder, first
        done.touch()


def connect_to_files(warehouse: Path) -> duckdb.DuckDBPyConnection:
    """Connect to the Parquet files of tables and views: the views need not be evaluated again for
    each test.
    """
    connection = store.query._load_parquet(warehouse, {}, "")
    connection.begin()
    for view in FILE_VIEWS:
        if not view.parameters:
            stored = f"{STORED}.{view.name}"
            connection.execute(f"CREATE TABLE {stored} AS {view.rows_sql}")
            connection.execute(f"CREATE OR REPLACE VIEW {view.sql_name} AS FROM {stored}")
    connection.commit()
    return connection


@pytest.fixture(scope="session", autouse=True)
def _open_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Open the two warehouses that no test changes once in a process, their views from files; they
    are one where they are of one build.

    tests/record/store compares the files with the views of the DuckDB file.
    """
    connect = store.query._connect_once
    built = get_shared_folder(tmp_path_factory, "built") / "warehouse"
    opened: dict[str, duckdb.DuckDBPyConnection] = {}

    def connect_once(
        warehouse: Path, limits: Mapping[str, str | int], statement: str
    ) -> duckdb.DuckDBPyConnection:
        folder = warehouse.resolve()
        if limits or folder not in (COMMITTED, built.resolve()):
            return connect(warehouse, limits, statement)
        build_id = store.query.read_build_id(folder)
        if build_id not in opened:
            opened[build_id] = connect_to_files(folder)
        return opened[build_id].cursor()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.query, "_connect_once", connect_once)
        yield


@pytest.fixture(autouse=True)
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "open_cache", lambda _: SHARED)


@pytest.fixture(scope="session", autouse=True)
def _canaries_once() -> Iterator[None]:
    """Check the gate with the same canaries once in a process: it takes a third of a second of each
    build.
    """
    passed: list[object] = []

    def check_once(*canaries: Any) -> None:
        if canaries not in passed:
            check_gate(*canaries)
            passed.append(canaries)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "check_gate", check_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _gates_once() -> Iterator[None]:
    """Let rows that passed a gate in this process pass it again: most builds change one document,
    and pandera takes a third of each.
    """
    find_failures = gate.find_failures
    passed: set[tuple[Table, bytes]] = set()

    def find_once(definition: Table, frame: pd.DataFrame) -> list[GateFailure]:
        seen = (definition, digest_rows(pa.Table.from_pandas(frame)))
        if seen in passed:
            return []
        failures = find_failures(definition, frame)
        if not failures:
            passed.add(seen)
        return failures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "find_failures", find_once)
        yield


def digest_rows(rows: pa.Table) -> bytes:
    """Return a digest of the values and types of some rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return hashlib.blake2b(sink.getvalue()).digest()


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a warehouse from the committed documents by the real command."""
    with once(tmp_path_factory, "built") as (folder, first):
        target = folder / "warehouse"
        if first:
            done = run_cli("ingest", "--raw", RAW, "--warehouse", target)
            assert (done.returncode, done.stderr) == (0, "")
            (folder / "stdout.txt").write_text(done.stdout, encoding="utf-8")
    return target


@pytest.fixture(scope="session")
def opened(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the files of the built warehouse."""
    with open_warehouse(warehouse) as connection:
        yield connection


@pytest.fixture(scope="session")
def database(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the DuckDB file of the built warehouse, whose views are evaluated."""
    path = str(warehouse / DATABASE)
    with duckdb.connect(path, read_only=True, config={**ENGINE, **LOCKDOWN}) as connection:
        yield connection


@pytest.fixture(scope="session")
def query(opened: duckdb.DuckDBPyConnection) -> Query:
    """Run SQL over the built warehouse."""
    return lambda sql: list_rows(opened, sql)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Copy the documents, which a test may then change, without the claims, which take time to
    recompute.
    """
    return copy_raw(tmp_path / "raw", "claims")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Copy the vendor's page alone."""
    return copy_documents(tmp_path / "raw", PAGE)


@pytest.fixture
def built(tmp_path: Path, warehouse: Path) -> Path:
    """Copy the built warehouse, which a test may then break."""
    return Path(shutil.copytree(warehouse, tmp_path / "warehouse"))


def require(present: bool, reason: str) -> None:
    """Skip a test without what it needs; fail it instead with REQUIRE_READERS=1, as `.ci/run` sets
    it.
    """
    if present:
        return
    if os.environ.get("REQUIRE_READERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def install_aside(name: str) -> Path:
    """Install the packages of a list of pins, next to those of the environment, in a folder of its
    own.
    """
    pins = ROOT / "tests" / f"{name}.txt"
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:12]
    target = Path(sys.prefix) / f"{name}-{digest}"
    unfinished = Path(f"{target}.part")
    pip = f"{sys.executable} -m pip install --quiet --disable-pip-version-check --no-deps"
    options = "--no-build-isolation --require-hashes"
    with FileLock(f"{target}.lock"):
        if not target.exists():
            command = [*pip.split(), *options.split(), "-r", pins, "--target", unfinished]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            error = done.stderr.strip()[-300:]
            require(done.returncode == 0, f"{pins.name} cannot be installed here: {error}")
            unfinished.rename(target)
    return target


@pytest.fixture(scope="session")
def old_duckdb() -> Path:
    """Install DuckDB 1.2.2."""
    return install_aside("duckdb-1.2.2")


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory, warehouse: Path) -> Path:
    """Publish a release of the committed documents."""
    return released_once(tmp_path_factory, "released", warehouse)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory, warehouse: Path) -> Path:
    """Write a warehouse of a few results, for tests that publish often."""
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
