"""A round of MLPerf Training in a temporary folder, and the official summarizer that reads it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ipu_results.mlperf.rules import parse_round

from benchmarks.processes import CommandCost, join_last_lines, measure_command
from benchmarks.report import SkipBenchmarkError

FOLDER = Path(__file__).parent
PINS = FOLDER / "mlperf-logging.txt"
SCRIPT = FOLDER / "official_child.py"
QUICK_SUBMITTERS = frozenset({"Google", "Graphcore"})
LOGS = "*/results/*/*/result_*.txt"
OFFICIAL_POLL_S = 0.5

Figures = Mapping[str, float | None]  # by entry


@dataclass(frozen=True, slots=True)
class OfficialScores:
    """The figures of the official summarizer."""

    version: str
    cost: CommandCost
    minutes: Figures
    factors: Figures


def copy_round(source: Path, target: Path, quick: bool) -> Path:
    """Copy an archive or a checkout and return its root folder.

    `quick` copies two submitters only.
    """
    if source.is_dir():
        root = target / source.resolve().name
        ignored = shutil.ignore_patterns(".git")
        for folder in source.iterdir():
            is_chosen = folder.name in QUICK_SUBMITTERS if quick else folder.name != ".git"
            if folder.is_dir() and is_chosen:
                shutil.copytree(folder, root / folder.name, symlinks=True, ignore=ignored)
    else:
        try:
            with tarfile.open(source) as archive:
                archive.extractall(target, _select_members(archive, quick), filter="data")
        except (tarfile.TarError, EOFError) as error:
            reason = " ".join(str(error).split())
            raise SkipBenchmarkError(f"{source} cannot be unpacked: {reason}") from error
        folders = [path for path in target.iterdir() if path.is_dir()]
        root = folders[0] if len(folders) == 1 else target
    if not list_logs(root):
        raise SkipBenchmarkError(f"{source} holds no {LOGS} to read")
    return root


def list_logs(root: Path) -> list[str]:
    return sorted(map(str, root.glob(LOGS)))


def _select_members(archive: tarfile.TarFile, quick: bool) -> Iterator[tarfile.TarInfo]:
    for member in archive:
        submitter = member.name.removeprefix("./").split("/")[1:2]
        if not quick or QUICK_SUBMITTERS & set(submitter):
            yield member


def install_official(folder: Path) -> Path:
    """Return an interpreter in a new environment with the pinned mlperf-logging.

    Raises SkipBenchmarkError.
    """
    python = folder / "bin" / "python"
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    install = [str(python), "-m", "pip", "install", *options, "--require-hashes", "-r", str(PINS)]
    for command in ([sys.executable, "-m", "venv", str(folder)], install):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = join_last_lines(done.stderr)
            raise SkipBenchmarkError(f"mlperf-logging cannot be installed here: {reason}")
    return python


def run_official(python: Path, root: Path, folder: Path) -> OfficialScores:
    """Run the official summarizer on a copy of its own.

    Raises SkipBenchmarkError where it fails.
    """
    round_name = parse_round(root.name)
    if round_name is None:
        raise SkipBenchmarkError(f"the folder {root.name} does not name a round such as v2.0")
    figures = folder / "official.json"
    arguments = [str(figures), str(root), f"{round_name}.0", str(folder / "official.csv")]
    command = [str(python), "-I", str(SCRIPT), *arguments]
    try:
        cost = measure_command(command, folder / "printed", poll_s=OFFICIAL_POLL_S)
    except RuntimeError as error:
        raise SkipBenchmarkError(f"it failed: {error}") from error
    scores = json.loads(figures.read_bytes())
    minutes = {}
    factors = {}
    for path, entry in scores["entries"].items():
        minutes[os.path.relpath(path, root)] = entry["minutes"]
        factors[os.path.relpath(path, root)] = entry["scaling_factor"]
    return OfficialScores(scores["version"], cost, minutes, factors)
