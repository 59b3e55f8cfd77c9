"""Whether a row means what it says: machines whose quiet speed is known, measured as a sweep does and naively."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Any

from ipu_results.runner.backends import SessionSpec
from ipu_results.runner.blocks import MS, NS, Block, Kind, Stamps
from ipu_results.runner.estimate import DEFAULT, Estimate, SuspicionLimits, estimate, find_disturbances
from ipu_results.runner.plan import SweepPlan, Visit
from ipu_results.runner.worker import run_batches

from benchmarks import null_backend
from benchmarks.options import Options
from benchmarks.report import Report, Table, Target, Value

SWEEPS, QUICK_SWEEPS = 2000, 5
SIZES, JUDGED, SESSIONS, ROUNDS = (2, 4, 6, 8, 10, 12), 8, 2, 6
MINUTE = 60.0  # seconds
OFF = 0.05  # of the quiet value: what a row must not be without saying so
MAX_MEDIAN = 0.5449  # standard deviations: the median of the greater of two normal values
QUIET: Mapping[str, Any] = {"noise": 0.02, "probe_noise": 0.05}


@dataclass(frozen=True, slots=True)
class Scenario:
    """`blind`: a probe does not see the regimes. `known`: the best probe of the machine on other days is told."""

    name: str
    options: Mapping[str, Any]
    blind: bool = False
    known: bool = False

    @property
    def seconds(self) -> bool:
        """Whether slow spells are shorter than a sweep, so that something in it is quiet."""
        return float(self.options.get("regimes", (1, 0, 0))[1]) < MINUTE


@dataclass(frozen=True, slots=True)
class Tried:
    """One sweep's row and one naive loop, beside what the machine does when it is quiet."""

    row: Estimate
    quiet_ms: float
    truly_disturbed: int
    caught: int
    accused: int
    naive_ms: float
    naive_error_ms: float

    @property
    def holds(self) -> bool:
        low, high = self.row.latency_ms_low, self.row.latency_ms_high
        return low is not None and high is not None and low <= self.quiet_ms <= high

    @property
    def width(self) -> float:
        return ((self.row.latency_ms_high or 0) - (self.row.latency_ms_low or 0)) / self.row.latency_ms

    @property
    def off(self) -> bool:
        return abs(self.row.latency_ms / self.quiet_ms - 1) > OFF

    @property
    def missed(self) -> bool:
        """A row that misleads: off, not marked, and its interval elsewhere."""
        return self.off and not self.row.suspect and not self.holds

    @property
    def naive_holds(self) -> bool:
        return abs(self.naive_ms - self.quiet_ms) <= self.naive_error_ms

    @property
    def naive_off(self) -> bool:
        return abs(self.naive_ms / self.quiet_ms - 1) > OFF


def _flips(factor: float, share: float, slow_s: float) -> dict[str, Any]:
    return {**QUIET, "regimes": (factor, slow_s, slow_s * (1 - share) / share)}


SCENARIOS = (
    Scenario("quiet", QUIET),
    Scenario("noisy, 15 % an iteration", {**QUIET, "noise": 0.15}),
    Scenario("outliers, 0.5 % take 5 times as long", {**QUIET, "outliers": (0.005, 5.0)}),
    Scenario("drift of 3 % in 100 s", {**QUIET, "drift": 0.0003}),
    Scenario("drift of 15 % in 100 s", {**QUIET, "drift": 0.0015}),
    Scenario("1.6 times as long, 10 %, 3 s", _flips(1.6, 0.1, 3)),
    Scenario("1.6 times as long, 25 %, 5 s", _flips(1.6, 0.25, 5)),
    Scenario("1.6 times as long, 50 %, 5 s", _flips(1.6, 0.5, 5)),
    Scenario("the same, no probe sees it", _flips(1.6, 0.5, 5), blind=True),
    Scenario("1.6 times as long, 50 %, 0.3 s", _flips(1.6, 0.5, 0.3)),
    Scenario("1.15 times as long, 50 %, 5 s", _flips(1.15, 0.5, 5)),
    Scenario("1.6 times as long, 50 %, 60 s", _flips(1.6, 0.5, MINUTE)),
    Scenario("the same, no probe sees it", _flips(1.6, 0.5, MINUTE), blind=True),
    Scenario("the same, the probe's best known", _flips(1.6, 0.5, MINUTE), known=True),
)


def simulated(sweeps: int, scenario: Scenario, limits: SuspicionLimits = DEFAULT, rounds: int = ROUNDS) -> list[Tried]:
    """One batch size of so many sweeps over all of them, seeds 0, 1, …"""
    return [_tried(scenario, seed, limits, rounds) for seed in range(sweeps)]


def _tried(scenario: Scenario, seed: int, limits: SuspicionLimits, rounds: int) -> Tried:
    sessions, options = _opened(scenario, seed), scenario.options
    machine = sessions[0].machine
    plan = SweepPlan(SIZES, SESSIONS, seed=seed, least_rounds=rounds)
    blocks, best = _swept(sessions, plan, scenario.blind)
    best = null_backend.PROBE_MS if scenario.known else best
    row = estimate(blocks, limits, best)
    work_ms = machine.base_ms + JUDGED // SESSIONS * machine.per_item_ms
    spread = float(options.get("noise", 0.0))
    quiet: dict[Kind, float] = {
        "amortised": work_ms * math.exp(spread**2 / 2),
        "isolated": work_ms * math.exp(spread * MAX_MEDIAN),
    }
    bad = [_pace_ms(block) > (1 + OFF) * quiet[block.kind] for block in blocks]
    seen = [bool(one) for one in find_disturbances(blocks, limits, best)]
    naive = _naive(_opened(scenario, seed), plan, sum(block.window.end - block.window.start for block in blocks))
    return Tried(
        row,
        quiet["amortised"],
        sum(bad),
        sum(one and two for one, two in zip(bad, seen, strict=True)),
        sum(two and not one for one, two in zip(bad, seen, strict=True)),
        fmean(naive),
        1.96 * stdev(naive) / math.sqrt(len(naive)),
    )


def _opened(scenario: Scenario, seed: int) -> list[null_backend.NullSession]:
    options = {**scenario.options, "seed": seed}
    specs = (
        SessionSpec(null_backend.NAME, "", sessions=SESSIONS, session=one, options=options) for one in range(SESSIONS)
    )
    found = [null_backend.open(spec) for spec in specs]
    for session in found:
        session.prepare(JUDGED // SESSIONS, "amortised")
    return found


def _swept(sessions: Sequence[null_backend.NullSession], plan: SweepPlan, blind: bool) -> tuple[list[Block], float]:
    """The blocks of the judged size and the best probe of all; of the other sizes only the time is spent."""
    blocks: list[Block] = []
    now, best, first = 0, math.inf, sessions[0]
    for number in range(plan.least_rounds):
        for visit in plan.list_visits(number):
            before = _probe(first, now, blind)
            if visit.batch_size == JUDGED:
                stamps = _measured(sessions, plan, visit, now)
                now = max(session.now for session in sessions)
                probes = before, _probe(first, now, blind)
                blocks.append(Block(len(blocks), number, JUDGED, visit.kind, "", stamps, probes))
            else:
                now += _elsewhere(first, plan, visit.batch_size)
            best = min(best, before, *(blocks[-1].probe_ms or () if blocks else ()))
    return blocks, best


def _measured(
    sessions: Sequence[null_backend.NullSession], plan: SweepPlan, visit: Visit, start: int
) -> tuple[tuple[Stamps, ...], ...]:
    until = start + int(plan.block_s * NS)
    if visit.kind == "amortised":
        return tuple(_repeated(session, start, until, plan.iterations) for session in sessions)
    found: list[list[Stamps]] = [[] for _ in sessions]
    while start < until or len(found[0]) < plan.iterations:
        for session, stamps in zip(sessions, found, strict=True):
            stamps.extend(_repeated(session, start, start, 1))
        start = max(session.now for session in sessions)
    return tuple(map(tuple, found))


def _repeated(session: null_backend.NullSession, start: int, until: int, least: int) -> tuple[Stamps, ...]:
    session.wait_until(start)

    def feed() -> tuple[None, int, int, int]:
        return None, session.now, session.now, session.now

    return tuple((one[0], one[1], one[2], one[3], one[4]) for one in run_batches(session, feed, until, least))


def _elsewhere(session: null_backend.NullSession, plan: SweepPlan, batch: int) -> int:
    batch_s = (session.machine.base_ms + batch // SESSIONS * session.machine.per_item_ms) / 1e3
    return int(max(plan.block_s, plan.iterations * batch_s) * NS)


def _probe(session: null_backend.NullSession, now: int, blind: bool) -> float:
    return null_backend.PROBE_MS if blind else session.probe_ms(now)


def _pace_ms(block: Block) -> float:
    return 1e3 * JUDGED / block.window.throughput if block.kind == "amortised" else median(block.latencies_ms)


def _naive(sessions: Sequence[null_backend.NullSession], plan: SweepPlan, span: int) -> list[float]:
    """Every iteration of one run as long as all blocks together, begun somewhere in the time that the sweep takes."""
    sweep_s = plan.least_rounds * plan.estimate_round_s(dict.fromkeys(SIZES, 0.0))
    start = int(random.Random(sessions[0].machine.seed).uniform(0, sweep_s) * NS)
    stamps = (_repeated(session, start, start + span, 2) for session in sessions)
    return [(one[-1] - one[0]) / MS for session in stamps for one in session]


def run(options: Options) -> Report:
    sweeps = QUICK_SWEEPS if options.quick else SWEEPS
    found = [(scenario, simulated(sweeps, scenario)) for scenario in SCENARIOS]
    misled = max(_percent(one.missed for one in tried) for scenario, tried in found if scenario.seconds)
    return Report(
        "repeatability",
        f"{sweeps} simulated sweeps of {ROUNDS} rounds for each kind of machine",
        [_rows(found), _blocks(found)],
        [
            Target("% of a quiet machine's rows that are suspect", _percent(_suspect(found[0][1])), 2.0),
            Target("% of rows that mislead, worst machine whose slow spells last seconds", misled, 1.0),
        ],
        [
            "Naive: the mean over the iterations of one run of the same time, ± 1.96 standard errors.",
            f"A row misleads when it is more than {OFF:.0%} off, not suspect, and its interval lies elsewhere.",
            "The last machines are often slow for a whole sweep: only a probe's best from before can tell.",
            f"A block is truly disturbed when it is more than {OFF:.0%} slower than on the quiet machine.",
        ],
    )


# The real machine: the same sweep again and again beside a naive loop. (to come)


def _rows(found: Sequence[tuple[Scenario, Sequence[Tried]]]) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            *(scenario.name, _percent(one.holds for one in tried), 100 * median(one.width for one in tried)),
            *(_percent(one.off for one in tried), _percent(_suspect(tried)), _percent(one.missed for one in tried)),
            _percent(one.naive_holds for one in tried),
            100 * median(2 * one.naive_error_ms / one.naive_ms for one in tried),
            _percent(one.naive_off for one in tried),
        )
        for scenario, tried in found
    ]
    columns = (
        *("machine", "interval holds, %", "width, %", f"> {OFF:.0%} off, %", "suspect, %", "misleads, %"),
        *("naive holds, %", "naive width, %", f"naive > {OFF:.0%} off, %"),
    )
    return Table("The row of a sweep, and that of a naive loop, beside the quiet machine's value", columns, rows)


def _blocks(found: Sequence[tuple[Scenario, Sequence[Tried]]]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scenario, tried in found:
        blocks, bad = sum(one.row.blocks for one in tried), sum(one.truly_disturbed for one in tried)
        caught, accused = sum(one.caught for one in tried), sum(one.accused for one in tried)
        share = 100 * caught / bad if bad else None
        rows.append(
            (scenario.name, blocks, 100 * bad / blocks, share, 100 * accused / (blocks - bad) if bad < blocks else None)
        )
    columns = ("machine", "blocks", "truly disturbed, %", "of these caught, %", "of the others accused, %")
    return Table("Blocks", columns, rows)


def _suspect(tried: Sequence[Tried]) -> list[bool]:
    return [bool(one.row.suspect) for one in tried]


def _percent(values: Any) -> float:
    return 100 * fmean(map(bool, values))
