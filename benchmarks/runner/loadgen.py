"""Two other ways of measuring the same session: a plain loop and its mean, and LoadGen's SingleStream."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from ipu_results.runner.blocks import MS, Stamps
from ipu_results.runner.sessions import SessionPool

from benchmarks import runner_competitor
from benchmarks.options import Options

SCRIPT = Path(__file__).with_name("runner_loadgen.py")
SHORTER = 4  # what LoadGen is told to expect: it plans queries for that, and calls a run invalid that uses them up
NORMAL = 1.96  # standard errors to either side hold 95 % of independent, normal means


@dataclass(frozen=True, slots=True)
class Naive:
    """Mean of all iterations and ± 1.96 standard errors, ms; from when to when, ns."""

    mean_ms: float
    error_ms: float
    start: int
    end: int

    def holds(self, value_ms: float) -> bool:
        return abs(self.mean_ms - value_ms) <= self.error_ms


@dataclass(frozen=True, slots=True)
class LoadGen:
    """What its summary says, and how long the session itself took for the median query, ms."""

    mean_ms: float
    p90_ms: float
    early_ms: float | None
    valid: str
    queries: int
    inside_ms: float
    start: int
    end: int
    median_ms: float


def mean_of(durations_ms: Sequence[float]) -> tuple[float, float]:
    """Mean and 1.96 standard errors of at least two iterations."""
    return fmean(durations_ms), NORMAL * stdev(durations_ms) / math.sqrt(len(durations_ms))


def naive(crew: SessionPool, batch: int, seconds: float) -> Naive:
    """Every iteration of one run."""
    crew.prepare(batch, "amortised")
    stamps = crew.run_stream(seconds, 2)
    mean, error = mean_of([(one[-1] - one[0]) / MS for session in stamps for one in session])
    return Naive(mean, error, min(one[0][0] for one in stamps), max(one[-1][-1] for one in stamps))


def interpreter(options: Options) -> Path | None:
    """One that has LoadGen: the one that was named, else this one where the extra is installed."""
    if options.loadgen is not None:
        return options.loadgen
    return Path(sys.executable) if importlib.util.find_spec("mlperf_loadgen") else None


def loadgen(python: Path, crew: SessionPool, batch: int, seconds: float, expected_ms: float) -> LoadGen:
    """SingleStream, a query being one batch of a crew of one session."""
    crew.prepare(batch, "isolated")
    with tempfile.TemporaryDirectory() as out:
        command = [str(python), str(SCRIPT), out, str(seconds), str(expected_ms / SHORTER)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stamps = _served(process, crew)
        if process.wait():
            raise RuntimeError(f"LoadGen ended with {process.returncode}")
        summary = (Path(out) / "mlperf_log_summary.txt").read_text(encoding="utf-8")
    return told(summary, stamps)


def told(summary: str, stamps: Sequence[Stamps]) -> LoadGen:
    """The figures of a summary of LoadGen's beside the session's own stamps."""
    found = _fields(summary)
    failed = [name.removesuffix(" satisfied").lower() for name, value in found.items() if value == "NO"]
    early = found.get("* Early stopping 90.0th percentile estimate")
    return LoadGen(
        mean_ms=float(found["Mean latency (ns)"]) / MS,
        p90_ms=float(found["90.0th percentile latency (ns)"]) / MS,
        early_ms=None if early is None else float(early) / MS,
        valid=": ".join([found["Result is"], *([", ".join(failed)] if failed else [])]),
        queries=len(stamps),
        inside_ms=median(one[-1] - one[0] for one in stamps) / MS,
        start=stamps[0][0],
        end=stamps[-1][-1],
        median_ms=float(found["50.00 percentile latency (ns)"]) / MS,
    )


def share(one: Naive | LoadGen, spells: Sequence[runner_competitor.Spell]) -> float:
    return runner_competitor.share(spells, one.start, one.end)


def _fields(summary: str) -> Mapping[str, str]:
    pairs = (line.split(":", 1) for line in summary.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def _served(process: subprocess.Popen[str], crew: SessionPool) -> list[Stamps]:
    """One batch for each line, as soon as it comes."""
    stamps: list[Stamps] = []
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        for _ in process.stdout:
            crew.transports[0].send("run_block", at=0, seconds=0, min_batches=1, overlap=False)
            found: Any = crew.transports[0].recv()["stamps"][0]
            stamps.append((found[0], found[1], found[2], found[3], found[4]))
            process.stdin.write("done\n")
            process.stdin.flush()
    return stamps
