"""The wheel holds one package with schema and dataset, and does every command with the extra that
its help names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from ipu_results.doors.cli import main
from ipu_results.kit.extras import format_install

from tests.cases import read_cases
from tests.conftest import PAGE, PAPER, RAW, ROOT, copy_documents, once, require
from tests.mlperf.mlperf_support import FIVE, entry

pytestmark = pytest.mark.slow  # environments of their own

DATA = {"_data": ROOT / "warehouse", "_schema": ROOT / "schema"}
PINS = ROOT / "requirements.lock"
RUN = "20261122-200720-emulator-m2000-00be"


class Call(NamedTuple):
    """A command as a user types it, with a text that it must print, and the extras of options of
    its own.
    """

    line: str
    output: str
    extras: Sequence[str] = ()
    status: int = 0

    @property
    def needs(self) -> list[str]:
        """The extra of the command, if it has one, and those of its options."""
        command = main.commands[self.line.split()[0]]
        own = [command.extra] if command.extra else []
        return [*own, *self.extras]


STATED = read_cases(__file__)
CALLS = [Call(**call) for call in STATED["call"]]


def list_source_files() -> Iterator[str]:
    """Yield the files that the wheel must hold, by their path in it."""
    source = ROOT / "pipeline"
    for path in (source / "ipu_results").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(source).as_posix()
    yield "ipu_results/_reference/rcp.csv"
    for name, folder in DATA.items():
        for path in folder.rglob("*"):
            if path.suffix in (".parquet", ".toml", ".sql", ".json"):
                yield f"ipu_results/{name}/{path.relative_to(folder).as_posix()}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with once(tmp_path_factory, "wheel") as (folder, first):
        if first:
            options = "--quiet --disable-pip-version-check --no-deps --no-build-isolation"
            pip = [sys.executable, "-m", "pip", "wheel", *options.split()]
            command = [*pip, "--wheel-dir", str(folder), str(ROOT)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.whl")
    return path


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    metadata = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"ipu_results", metadata}
    packed = [name for name in names if not name.startswith(metadata)]
    assert sorted(packed) == sorted(list_source_files())


@pytest.fixture(scope="module")
def environments(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make an environment for each combination of extras, of the pinned versions and the Python
    WHEEL_PYTHON.
    """
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    require(uv is not None, "uv is not installed")
    root = tmp_path_factory.mktemp("environments")
    interpreter = os.environ.get("WHEEL_PYTHON", sys.executable)
    pythons = {}
    for extras in sorted({",".join(call.needs) for call in CALLS}):
        folder = root / (extras or "core")
        python = folder / "bin" / "python"
        package = f"ipu-results[{extras}] @ file://{wheel}"
        make = ["venv", "--quiet", "--python", interpreter, folder]
        pip = ["pip", "install", "--quiet", "--python", python, "--constraint", PINS, package]
        for command in (make, pip):
            done = subprocess.run([uv, *command], capture_output=True, text=True, check=False)
            reason = f"[{extras}] cannot be installed here: {done.stderr.strip()[-300:]}"
            require(done.returncode == 0, reason)
        pythons[extras] = python
    return pythons


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with what a user has: documents, a run, logs of MLPerf, and no checkout."""
    folder = tmp_path_factory.mktemp("user")
    copy_documents(folder / "raw", PAGE, PAPER)
    shutil.copytree(RAW / "runs" / RUN, folder / "runs" / RUN)
    entry(folder / "rounds" / "training_results_v2.0", FIVE)
    return folder


def run_installed(
    python: Path, folder: Path, line: str, **words: object
) -> subprocess.CompletedProcess[str]:
    """Run a command of an environment, with no other packages in sight."""
    command = line.format(RUN=RUN, PAGE=f"raw/{PAGE}", PAPER=f"raw/{PAPER}", **words)
    return subprocess.run(
        f"{python.parent}/ipu-results {command}",
        shell=True,
        stdin=subprocess.DEVNULL,  # with which the MCP server ends
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        timeout=300,
        check=False,
    )


def test_every_command_runs_with_the_extra_that_its_help_names(
    environments: dict[str, Path], folder: Path, warehouse: Path, small_release: Path
) -> None:
    assert {call.line.split()[0] for call in CALLS} == set(main.commands)
    any_id = "query 'SELECT min(result_id) FROM inference' --format csv"
    first = run_installed(environments[""], folder, any_id).stdout
    words = {"ID": first.split()[-1], "WAREHOUSE": warehouse, "RELEASE": small_release}
    for call in CALLS:
        done = run_installed(environments[",".join(call.needs)], folder, call.line, **words)
        told = f"{call.line}: {done.stdout[-300:]} {done.stderr[-500:]}"
        assert done.returncode == call.status, told
        assert call.output in done.stdout + done.stderr, told
        # without its last extra a command names that one, or does with what is there
        for missing in call.needs[-1:]:
            rest = environments[",".join(call.needs[:-1])]
            lacking = run_installed(rest, folder, call.line, **words).stderr
            assert "Traceback" not in lacking, lacking[-2000:]
            if "is not installed" in lacking:
                assert format_install(missing) in lacking, call.line


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def test_installed_server_answers(environments: dict[str, Path], folder: Path) -> None:
    command = [environments["mcp"].parent / "ipu-results", "mcp"]
    with subprocess.Popen(
        command, cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{json.dumps(INITIALIZE)}\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        server.stdin.close()
    assert answer["result"]["serverInfo"]["name"] == "ipu-results"
