"""Check whether the runs of an entry are independent, by the times at which their logs start.

Runs in order of their starts should be as in any other order. Where they are not, neither Student's
t nor a permutation test knows how far a mean may be off, and what a session has in common, no run
of it shows. `--mlperf FOLDER` may hold `training_results_v<round>` checkouts of all rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pandas as pd
from ipu_results.mlperf import separation
from ipu_results.mlperf.interval import COVERAGE, SESSION, Integers, Numbers, Runs, make_runs
from ipu_results.mlperf.round import score_path
from ipu_results.mlperf.score import ScoredEntry, TrainingRun

from benchmarks.mlperf.comparison import ARCHIVE
from benchmarks.report import Options, Report, ReportTable, ReportTarget, SkipBenchmarkError, Value

SEED = 4
MIN_RUNS = 5
MIN_HALVED = 9  # of an entry whose halves are compared as two
MIN_SESSION_RUNS = 3  # of both sides of a pause, likewise
MAX_SIZE = 0.065
PAUSE_MS = 4 * 3_600_000  # from the end of a run to the next start: another session
BLOCK = 5  # consecutive runs
DEALS = 2_000
QUICK_DEALS = 100
RESAMPLES = 4_000
TOLERANCE = 1e-9
SESSIONS = (0.0, 0.0005, 0.001, 0.002, 0.005, 0.01)  # standard deviations that the test assumes
MINUTES = "minutes"
SPEED = "minutes per sample"
ALL = "all"


@dataclass(frozen=True, slots=True)
class Series:
    """Values of the runs of one entry in order of their starts, over their mean and less one.

    `sessions` numbers the session of each run.
    """

    benchmark: str
    quantity: str
    values: Numbers
    sessions: Integers

    def cut(self) -> tuple[Numbers, Numbers]:
        """Return the first and the second half of the runs."""
        middle = len(self.values) // 2
        return self.values[:middle], self.values[middle:]

    def split(self) -> tuple[Numbers, Numbers] | None:
        """Return the runs of the first two sessions with enough of them, if there are two."""
        sizes = np.bincount(self.sessions)
        long = np.flatnonzero(sizes >= MIN_SESSION_RUNS)
        if len(long) < 2:
            return None
        return self.values[self.sessions == long[0]], self.values[self.sessions == long[1]]


def run(options: Options) -> Report:
    """Measure dependence in the logs."""
    source = options.mlperf or ARCHIVE
    if not source.exists():
        raise SkipBenchmarkError(f"{source} does not exist")
    series = list(list_series(score_path(str(source)).entries))
    deals = QUICK_DEALS if options.quick else DEALS
    rng = np.random.default_rng(SEED)
    frame = pd.DataFrame([describe(each, deals, rng) for each in series])
    speeds = [each for each in series if each.quantity == SPEED]
    long = [each for each in speeds if len(each.values) >= MIN_HALVED]
    sessions = [each.split() for each in speeds]
    parts = {
        "halves of an entry": [each.cut() for each in long],
        "those of unet3d": [each.cut() for each in long if each.benchmark == "unet3d"],
        "two sessions of an entry": [pair for pair in sessions if pair],
    }
    shares = {name: _compare_parts(pairs) for name, pairs in parts.items()}
    return Report(
        "mlperf_independence",
        f"{len(speeds):,} entries with the speed of {MIN_RUNS} runs or more",
        [
            _tabulate_order(frame, MINUTES),
            _tabulate_order(frame, SPEED),
            _tabulate_sessions(frame),
            ReportTable(
                "Parts of one entry as two: speed called different at 5 %, in %, by the standard"
                " deviation of sessions in % that the test assumes",
                ["parts", "entries", *(f"{100 * session:g}" for session in SESSIONS)],
                [[name, len(parts[name]), *shares[name]] for name in parts],
            ),
        ],
        [
            ReportTarget(
                "halves called different, %",
                shares["halves of an entry"][SESSIONS.index(SESSION)],
                100 * MAX_SIZE,
            )
        ],
        [
            "Lag 1: one-sided permutation test, at 5 %, of the products of successive runs.",
            f"Blocks: variance of the mean of {BLOCK} successive runs over that of independent ones.",
            (
                "A session ends with a pause of four hours or more. Its deviation is the root of the"
                " median variance component between the sessions of an entry, with a 95 % range by"
                " resampling entries; negative where sessions differ less than their runs let expect."
            ),
        ],
    )


def list_series(entries: Iterable[ScoredEntry]) -> Iterator[Series]:
    """Yield minutes and speeds of entries with enough runs, each measurement once."""
    seen = set()
    for scored in entries:
        runs = {run.log.start_ms: run for run in scored.runs if run.counted and run.log.start_ms}
        ordered = [runs[start] for start in sorted(runs)]
        measurement = (scored.benchmark, tuple(run.log.minutes for run in ordered))
        if len(ordered) < MIN_RUNS or measurement in seen:
            continue
        seen.add(measurement)
        sessions = _number_sessions(ordered)
        quantities = {
            MINUTES: [run.log.minutes for run in ordered],
            SPEED: [run.speed.minutes_per_sample for run in ordered],
        }
        for quantity, logged in quantities.items():
            values = np.array(logged, dtype=np.float64)  # NaN where unknown, and no range then
            if np.ptp(values) > 0:
                yield Series(scored.benchmark, quantity, values / values.mean() - 1, sessions)


def _number_sessions(runs: Sequence[TrainingRun]) -> Integers:
    starts = np.array([run.log.start_ms or 0 for run in runs])
    stops = np.array([run.log.stop_ms or 0 for run in runs])
    is_paused = starts[1:] - stops[:-1] >= PAUSE_MS
    return np.concatenate([[0], np.cumsum(is_paused)])


def describe(series: Series, deals: int, rng: np.random.Generator) -> dict[str, Value]:
    """Test the order of the runs and whether sessions differ, against `deals` random orders."""
    values = series.values
    n = len(values)
    dealt = rng.permuted(np.tile(values, (deals, 1)), axis=1)
    products = (dealt[:, 1:] * dealt[:, :-1]).sum(axis=1)
    # deals in the same order differ in the last bits of their sums
    product = float(values[1:] @ values[:-1] - TOLERANCE * (values @ values))
    blocks = values[: n // BLOCK * BLOCK].reshape(-1, BLOCK).mean(axis=1)
    is_blocked = len(blocks) > 1
    return {
        "benchmark": series.benchmark,
        "quantity": series.quantity,
        # any order of n values has a correlation of -1/n on average
        "correlation": product / float(values @ values) + 1 / n,
        "p": float((1 + np.count_nonzero(products >= product)) / (deals + 1)),
        "blocks": BLOCK * blocks.var(ddof=1) / values.var(ddof=1) if is_blocked else math.nan,
        **_describe_sessions(series, dealt),
    }


def _describe_sessions(series: Series, dealt: Numbers) -> dict[str, Value]:
    """Test whether sessions differ, and return the variance component between them."""
    sizes = np.bincount(series.sessions)
    n = len(series.values)
    k = len(sizes)
    if k < 2 or n - k < 2:
        return {"session_p": math.nan, "component": math.nan}
    sums = np.stack([np.bincount(series.sessions, weights=row) for row in (series.values, *dealt)])
    between = (sums**2 / sizes).sum(axis=1)
    within = (series.values @ series.values - between[0]) / (n - k)
    typical_size = (n - (sizes**2).sum() / n) / (k - 1)
    return {
        "session_p": float(np.mean(between >= between[0] * (1 - TOLERANCE))),
        "component": float((between[0] / (k - 1) - within) / typical_size),
    }


def _tabulate_order(frame: pd.DataFrame, quantity: str) -> ReportTable:
    rows: list[list[Value]] = []
    for name, entries in _group(frame[frame["quantity"] == quantity]):
        rejected = 100 * float((entries["p"] < 1 - COVERAGE).mean())
        correlation = float(entries["correlation"].mean())
        rows.append([name, len(entries), rejected, correlation, float(entries["blocks"].mean())])
    columns = ["benchmark", "entries", "lag 1 rejected, %", "mean correlation", "blocks"]
    return ReportTable(f"Order of the runs: {quantity}", columns, rows)


def _tabulate_sessions(frame: pd.DataFrame) -> ReportTable:
    known = frame[frame["session_p"].notna()]
    parts = [(f"{MINUTES}, {ALL}", known[known["quantity"] == MINUTES])]
    for name, entries in _group(known[known["quantity"] == SPEED]):
        parts.append((f"{SPEED}, {name}", entries))
    rows: list[list[Value]] = []
    for name, entries in parts:
        rejected = 100 * float((entries["session_p"] < 1 - COVERAGE).mean())
        deviations = _estimate_deviation(entries["component"].to_numpy())
        rows.append([name, len(entries), rejected, *deviations])
    columns = ["quantity", "entries", "rejected, %", "deviation, %", "from", "to"]
    return ReportTable("Sessions of entries with a pause", columns, rows)


def _group(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    yield ALL, frame
    for name, entries in frame.groupby("benchmark"):
        yield str(name), entries


def _estimate_deviation(components: Numbers) -> list[Value]:
    if len(components) == 0:
        return [None, None, None]
    rng = np.random.default_rng(SEED)
    medians = np.median(rng.choice(components, (RESAMPLES, len(components))), axis=1)
    squares = np.array([np.median(components), *np.percentile(medians, [2.5, 97.5])])
    deviations: list[Value] = (100 * np.copysign(np.sqrt(abs(squares)), squares)).tolist()
    return deviations


def _compare_parts(pairs: Sequence[tuple[Numbers, Numbers]]) -> list[float]:
    """Return the share called different in %, by the deviation that the test assumes."""
    runs = make_speeds([(1 + part).tolist() for pair in pairs for part in pair])
    first = np.arange(0, 2 * len(pairs), 2)
    tested = [_test(runs, first, first + 1, session) for session in SESSIONS]
    return [100 * float((p < 1 - COVERAGE).mean()) for p in tested]


def make_speeds(speeds: Sequence[Sequence[float]]) -> Runs:
    """Make entries of which speeds alone are known, as the record compares them."""
    unknown = [[math.nan] * len(of_entry) for of_entry in speeds]
    return make_runs(speeds, unknown, [(0, 0)] * len(speeds), [0.0] * len(speeds))


def _test(runs: Runs, first: Integers, second: Integers, session: float) -> Numbers:
    names = [[row] for row in range(len(runs.n))]
    one_batch = np.ones(len(first), dtype=bool)
    with mock.patch.object(separation, "SESSION", session):
        return separation.compare_pairs(runs, first, second, names, one_batch).p
