"""Measure an open session with MLPerf LoadGen's SingleStream scenario."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ipu_results.runner.estimate import MS, Stamps
from ipu_results.runner.sessions import SessionPool

from benchmarks.report import Options

SCRIPT = Path(__file__).with_name("loadgen_child.py")
# LoadGen plans queries for the expected latency and calls a run invalid that uses them all up:
# expect a shorter one.
EXPECTED_SHARE = 1 / 4


@dataclass(frozen=True, slots=True)
class LoadGenResult:
    """LoadGen's summary, and the median time of a query by the session's own stamps."""

    mean_ms: float
    median_ms: float
    p90_ms: float
    valid: str
    queries: int
    session_ms: float


def find_loadgen(options: Options) -> Path | None:
    """Return an interpreter with LoadGen: the configured one, else this one where the extra is
    installed.
    """
    if options.loadgen is not None:
        return options.loadgen
    return Path(sys.executable) if importlib.util.find_spec("mlperf_loadgen") else None


def measure_loadgen(
    python: Path, pool: SessionPool, batch: int, seconds: float, expected_ms: float
) -> LoadGenResult:
    """Run SingleStream; a query is one batch of a pool of one session.

    Raises RuntimeError where LoadGen fails.
    """
    pool.prepare(batch, "isolated")
    with tempfile.TemporaryDirectory() as out:
        command = [str(python), str(SCRIPT), out, str(seconds), str(expected_ms * EXPECTED_SHARE)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        stamps = _serve_queries(process, pool)
        if process.wait():
            raise RuntimeError(f"LoadGen ended with {process.returncode}")
        summary = (Path(out) / "mlperf_log_summary.txt").read_text(encoding="utf-8")
    return parse_summary(summary, stamps)


def parse_summary(summary: str, stamps: Sequence[Stamps]) -> LoadGenResult:
    """Combine a summary of LoadGen with the session's stamps."""
    pairs = (line.split(":", 1) for line in summary.splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in pairs}
    failed = [
        name.removesuffix(" satisfied").lower() for name, value in fields.items() if value == "NO"
    ]
    return LoadGenResult(
        mean_ms=float(fields["Mean latency (ns)"]) / MS,
        median_ms=float(fields["50.00 percentile latency (ns)"]) / MS,
        p90_ms=float(fields["90.0th percentile latency (ns)"]) / MS,
        valid=": ".join([fields["Result is"], *([", ".join(failed)] if failed else [])]),
        queries=len(stamps),
        session_ms=median(end - start for start, *_, end in stamps) / MS,
    )


def _serve_queries(process: subprocess.Popen[str], pool: SessionPool) -> list[Stamps]:
    """Run one batch per line as soon as it arrives."""
    stamps: list[Stamps] = []
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        for _ in process.stdout:
            pool.transports[0].send("run_block", at=0, seconds=0, min_batches=1, overlap=False)
            iteration: Stamps = tuple(pool.transports[0].recv()["stamps"][0])
            stamps.append(iteration)
            process.stdin.write("done\n")
            process.stdin.flush()
    return stamps
