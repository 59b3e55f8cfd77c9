"""The wheel holds one package with schema and dataset, and works in an empty folder with the core dependencies."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, once

DATA = {"_data": ROOT / "warehouse", "_schema": ROOT / "schema"}
NOT_CORE = (
    *("altair", "bs4", "dask", "filelock", "fsspec", "lxml", "msgspec", "onnx", "onnxruntime", "openvino", "pandera"),
    *("pdfplumber", "PIL", "platformdirs", "psutil", "requests", "rich", "tomli_w"),
)
BLOCK = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_CORE}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def list_source_files() -> Iterator[str]:
    """Yield the files that the wheel must hold, by their path in it."""
    source = ROOT / "pipeline"
    for path in (source / "ipu_results").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(source).as_posix()
    for name, folder in DATA.items():
        for path in folder.rglob("*"):
            if path.suffix in (".parquet", ".toml", ".sql", ".json"):
                yield f"ipu_results/{name}/{path.relative_to(folder).as_posix()}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with once(tmp_path_factory, "wheel") as (folder, first):
        if first:
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
            command = [*pip, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    metadata = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"ipu_results", metadata}
    assert sorted(name for name in names if not name.startswith(metadata)) == sorted(list_source_files())


def run_installed(installed: Path, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code with the unpacked wheel and the libraries, but without the checkout and without packages of extras."""
    paths = (str(installed), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as script:  # with -c DuckDB prints progress
        script.write(BLOCK + code)
        script.flush()
        return subprocess.run(
            [sys.executable, "-S", "-P", script.name],  # -S: no `.pth` file, which may lead to the checkout
            capture_output=True,
            text=True,
            cwd=folder,
            env={"PYTHONPATH": ":".join(dict.fromkeys(paths)), "PATH": "/usr/bin:/bin"},
            check=False,
        )


@pytest.mark.slow
def test_wheel_loads_and_queries_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    code = """
import ipu_results
frame = ipu_results.load("results", platform="IPU-M2000")
assert ipu_results.__file__.startswith(INSTALLED), ipu_results.__file__
print(len(ipu_results.load()), set(frame["platform"]), len(ipu_results.load("inference", latency_ms=1.53)))
print(len(ipu_results.provenance(frame["result_id"][0])) > 0, len(ipu_results.claims()))
print(ipu_results.connect().sql("SELECT count(*) FROM results").fetchall())
"""
    done = run_installed(installed, tmp_path, f"INSTALLED = {str(installed)!r}\n{code}")
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["3653 {'IPU-M2000'} 1", "True 132", "[(3653,)]"]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "status", "stdout", "stderr"),
    [
        (["query", "SELECT count(*) AS n FROM results", "--format", "csv"], 0, "n\n3653\n", ""),
        (["claims", "sdk14-mcmc-speedup-17", "--format", "csv"], 0, "claim_id,document_id,figure,verdict", ""),
        (["ingest"], 1, "", "is not installed; install it with: pip install 'ipu-results[ingest]'\n"),
    ],
)
def test_command_of_the_wheel_needs_only_its_own_packages(
    installed: Path, tmp_path: Path, args: list[str], status: int, stdout: str, stderr: str
) -> None:
    done = run_installed(installed, tmp_path, f"from ipu_results.cli import main\nmain({args!r})")
    assert done.stdout.startswith(stdout), done.stderr
    assert done.stderr.endswith(stderr)
    assert (done.returncode, len(done.stderr.splitlines())) == (status, 1 if stderr else 0)
    assert not list(tmp_path.iterdir())
