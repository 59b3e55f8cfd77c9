"""A round of MLPerf Training in a temporary folder, and the processes that read it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ipu_results.mlperf.entries import parse_round

from benchmarks.child import ERROR_LINES, ROOT
from benchmarks.ingest import program
from benchmarks.mlperf_compare import Figures
from benchmarks.mlperf_steps import plainly
from benchmarks.options import Skipped
from benchmarks.processes import Took, took

PINS = ROOT / "benchmarks" / "mlperf-logging.txt"
SCRIPT = ROOT / "benchmarks" / "mlperf_official.py"
QUICK_SUBMITTERS = frozenset({"Google", "Graphcore"})
LOGS = "*/results/*/*/result_*.txt"
SCALING = "*/results/*/*/scaling.json"
OFFICIAL_EVERY_S = 0.5

ONE, TWO = "ipu-results mlperf --workers 1", "ipu-results mlperf --workers 2"
MSGSPEC, JSON, CAT = "plain msgspec.json.decode of every line", "plain json.loads of every line", "cat"


@dataclass(frozen=True, slots=True)
class Official:
    """What the summarizer told; `rewritten` are the scaling files that it changed in its input."""

    version: str
    process: Took
    minutes: Figures
    factors: Figures
    rewritten: int


@dataclass(frozen=True, slots=True)
class Way:
    """A process that reads the logs, and the file that takes its output."""

    name: str
    command: Sequence[str]
    out: Path


@dataclass(frozen=True, slots=True)
class Checkout:
    """One copy of a round."""

    root: Path

    @property
    def logs(self) -> list[str]:
        return sorted(map(str, self.root.glob(LOGS)))

    @property
    def round(self) -> str:
        """Raises Skipped where the folder's name tells none."""
        found = parse_round(self.root.name)
        if found is None:
            raise Skipped(f"the folder {self.root.name} names no round such as v2.0")
        return found

    def scaling(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.glob(SCALING)}


def copied(source: Path, to: Path, quick: bool) -> Checkout:
    """A fresh copy of an archive or a folder; of some submitters only where it is to be quick."""
    if source.is_dir():
        root = to / source.resolve().name
        ignore = shutil.ignore_patterns(".git")
        for folder in sorted(path for path in source.iterdir() if path.is_dir() and path.name != ".git"):
            if not quick or folder.name in QUICK_SUBMITTERS:
                shutil.copytree(folder, root / folder.name, symlinks=True, ignore=ignore)
        return _checkout(root, source)
    try:
        with tarfile.open(source) as archive:
            archive.extractall(to, _members(archive, quick), filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise Skipped(f"{source} cannot be unpacked: {' '.join(str(error).split())}") from error
    found = [path for path in to.iterdir() if path.is_dir()]
    return _checkout(found[0] if len(found) == 1 else to, source)


def _members(archive: tarfile.TarFile, quick: bool) -> Iterator[tarfile.TarInfo]:
    for member in archive:
        submitter = member.name.removeprefix("./").split("/")[1:2]
        if not quick or QUICK_SUBMITTERS & set(submitter):
            yield member


def _checkout(root: Path, source: Path) -> Checkout:
    checkout = Checkout(root)
    if not checkout.logs:
        raise Skipped(f"{source} holds no {LOGS} to read")
    return checkout


def commands(checkout: Checkout, names: Path) -> list[tuple[str, list[str]]]:
    """What is compared; `names` has the paths of the logs with a zero byte behind each, and is the stdin of all."""
    ours = [*program(), "mlperf", str(checkout.root), "--format", "json", "--workers"]
    child = [sys.executable, "-m", "benchmarks.child", f"{plainly.__module__}:{plainly.__name__}"]
    return [
        (ONE, [*ours, "1"]),
        (TWO, [*ours, "2"]),
        (MSGSPEC, [*child, json.dumps({"logs": str(names), "decoder": "msgspec"})]),
        (JSON, [*child, json.dumps({"logs": str(names), "decoder": "json"})]),
        (CAT, ["xargs", "-0", "cat"]),
    ]


def our_figures(told: bytes, name: str) -> Figures:
    """One figure of each entry by its path."""
    return {one["path"]: one[name] for one in json.loads(told)}


def with_mlperf_logging(to: Path) -> Path:
    """An interpreter in a new environment that has the pinned mlperf-logging. Raises Skipped."""
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    interpreter = to / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(to)],
        [str(interpreter), *pip, "--require-hashes", "-r", str(PINS)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = " ".join(done.stderr.strip().split("\n")[-ERROR_LINES:])
            raise Skipped(f"mlperf-logging cannot be installed here: {last}")
    return interpreter


def summarised(interpreter: Path, checkout: Checkout, to: Path) -> Official:
    """Run the official summarizer on a copy of its own. Raises Skipped where it fails."""
    before, figures = checkout.scaling(), to / "official.json"
    command = [str(interpreter), "-I", str(SCRIPT), str(figures), str(checkout.root), f"{checkout.round}.0"]
    try:
        process = took([*command, str(to / "official.csv")], to / "printed", every_s=OFFICIAL_EVERY_S)
    except RuntimeError as error:
        raise Skipped(f"it failed: {error}") from error
    told = json.loads(figures.read_bytes())
    entries: Mapping[str, Mapping[str, float | None]] = {
        os.path.relpath(folder, checkout.root): found for folder, found in told["entries"].items()
    }
    after = checkout.scaling()
    return Official(
        told["version"],
        process,
        {path: found["minutes"] for path, found in entries.items()},
        {path: found["scaling_factor"] for path, found in entries.items()},
        sum(before.get(path) != after.get(path) for path in before.keys() | after.keys()),
    )
