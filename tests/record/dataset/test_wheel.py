"""The wheel holds one package with schema and dataset, and does every command with the extra that
its help names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from ipu_results.doors.cli import main
from ipu_results.kit.extras import format_install

from tests.conftest import PAGE, PAPER, RAW, ROOT, copy_documents, once, require
from tests.mlperf.mlperf_support import FIVE, entry

pytestmark = pytest.mark.slow  # environments of their own

DATA = {"_data": ROOT / "warehouse", "_schema": ROOT / "schema"}
PINS = ROOT / "requirements.lock"
RUN = "20261122-200720-emulator-m2000-00be"
MCP_CALLS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    },
    "tools/call": {
        "name": "sql",
        "arguments": {
            "statement": "SELECT count(*) FROM results"
            " WHERE document_id = 'graphcore-performance-2023-07-04'"
        },
    },
}


class Call(NamedTuple):
    """A command as a user types it, with a text that it must print, and the extras of options of
    its own.
    """

    line: str
    output: str
    extras: Sequence[str] = ()
    status: int = 0


CALLS = [
    Call(**call)
    for call in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[
        "call"
    ]
]
NEEDS = {
    (command.extra or "", *call.extras)
    for call in CALLS
    if (command := main.commands[call.line.split()[0]])
}


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
            pip = [
                sys.executable,
                "-m",
                "pip",
                "wheel",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
            ]
            command = [*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.whl")
    return path


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    metadata = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"ipu_results", metadata}
    assert sorted(name for name in names if not name.startswith(metadata)) == sorted(
        list_source_files()
    )


@pytest.fixture(scope="module")
def environments(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make an environment for each combination of extras, of the pinned versions and the Python
    WHEEL_PYTHON.
    """
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    require(uv is not None, "uv is not installed")
    root, interpreter = (
        tmp_path_factory.mktemp("environments"),
        os.environ.get("WHEEL_PYTHON", sys.executable),
    )
    python = {}
    for extras in sorted({",".join(filter(None, needs)) for needs in NEEDS}):
        python[extras] = root / (extras or "core") / "bin" / "python"
        make = [uv, "venv", "--quiet", "--python", interpreter, str(python[extras].parents[1])]
        package = f"ipu-results[{extras}] @ file://{wheel}"
        install = [
            uv,
            "pip",
            "install",
            "--quiet",
            "--python",
            str(python[extras]),
            "--constraint",
            str(PINS),
            package,
        ]
        for command in (make, install):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            require(
                done.returncode == 0,
                f"[{extras}] cannot be installed here: {done.stderr.strip()[-300:]}",
            )
    return python


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
    process = subprocess.Popen(
        f"{python.parent}/ipu-results {command}",
        shell=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )
    answered = "".join(_call_server(process)) if line == "mcp" else ""
    output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(command, process.returncode, answered + output, errors)


def _call_server(process: subprocess.Popen[str]) -> Iterator[str]:
    """Ask all of MCP_CALLS, and yield what is answered; the server ends with its input, whatever it
    works on.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    messages = [
        {"id": at, "method": name, "params": params}
        for at, (name, params) in enumerate(MCP_CALLS.items())
    ]
    messages.insert(1, {"method": "notifications/initialized"})
    with suppress(BrokenPipeError):  # without its extra the command ends at once
        process.stdin.writelines(
            json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages
        )
        process.stdin.flush()
    for text in process.stdout:
        yield text
        if json.loads(text).get("id") == len(MCP_CALLS) - 1:
            return


def test_every_command_runs_with_the_extra_that_its_help_names(
    environments: dict[str, Path], folder: Path, warehouse: Path, small_release: Path
) -> None:
    assert {call.line.split()[0] for call in CALLS} == set(main.commands)
    core = environments[""]
    first = run_installed(
        core, folder, "query 'SELECT min(result_id) FROM inference' --format csv"
    ).stdout
    words = {"ID": first.split()[-1], "WAREHOUSE": warehouse, "RELEASE": small_release}
    failed = []
    for call in CALLS:
        extra = main.commands[call.line.split()[0]].extra
        needs = [*filter(None, (extra, *call.extras))]
        done = run_installed(environments[",".join(needs)], folder, call.line, **words)
        if done.returncode != call.status or call.output not in done.stdout + done.stderr:
            failed.append(
                (call.line, needs, done.returncode, done.stdout[-300:], done.stderr[-500:])
            )
        # without its last extra a command names that one, or does with what is there
        for missing in needs[-1:]:
            lacking = run_installed(environments[",".join(needs[:-1])], folder, call.line, **words)
            if (
                "is not installed" in lacking.stderr
                and format_install(missing) not in lacking.stderr
            ):
                failed.append((call.line, needs[:-1], lacking.stderr[-300:]))
            assert "Traceback" not in lacking.stderr, lacking.stderr[-2000:]
    assert not failed, "\n".join(map(str, failed))


HELP = """
import json, re
from click.testing import CliRunner
from ipu_results.doors.cli import main
shown = {name: CliRunner().invoke(main, [name, "--help"]).output for name in main.commands}
print(json.dumps({name: re.findall("Needs: (.+)", text) for name, text in shown.items()}))
"""


def test_help_of_a_command_names_its_extra(environments: dict[str, Path]) -> None:
    """In the environment without extras, of which no help needs one."""
    command = [str(environments[""]), "-I", "-c", HELP]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    needs = {}
    for name, command in main.commands.items():
        needs[name] = [format_install(command.extra)] if command.extra else []
    assert json.loads(done.stdout) == needs
