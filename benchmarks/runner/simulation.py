"""Simulate sweeps on the null backend through the runner's own plan, loop and statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ipu_results.runner.backends import Kind, SessionSpec
from ipu_results.runner.config import SweepPlan, Visit
from ipu_results.runner.estimate import NS, Block, Estimate, Stamps, estimate, find_disturbances
from ipu_results.runner.sessions import SessionStamps
from ipu_results.runner.worker import run_batches

from benchmarks.runner import null_backend
from benchmarks.runner.null_backend import NullSession

SIZES = (2, 4, 6, 8, 10, 12)
JUDGED = 8
OFF = 0.05  # of the quiet machine's value: how far a row may be off without being suspect
SESSIONS = 2
ROUNDS = 6
MINUTE_S = 60.0
MAX_MEDIAN = 0.5449  # standard deviations: the median of the greater of two normal values


@dataclass(frozen=True)
class Scenario:
    """Options of the simulated machine.

    With `blind` a probe does not see the slow times. With `known` the best probe of other days is
    known.
    """

    name: str
    options: Mapping[str, Any]
    blind: bool = False
    known: bool = False

    @property
    def has_short_spells(self) -> bool:
        """Return whether slow spells are shorter than a sweep, so that some of it is quiet."""
        return float(self.options.get("regimes", (1, 0, 0))[1]) < MINUTE_S


@dataclass(frozen=True)
class SimulatedSweep:
    """The row of one sweep, and `quiet_ms`, the true value of the quiet machine.

    Of the `truly_disturbed` blocks `caught` are marked as disturbed, and `accused` of the others.
    """

    row: Estimate
    quiet_ms: float
    truly_disturbed: int
    caught: int
    accused: int

    @property
    def width(self) -> float:
        row = self.row
        return ((row.latency_ms_high or 0) - (row.latency_ms_low or 0)) / row.latency_ms

    @property
    def holds(self) -> bool:
        """Whether the interval of the row contains the quiet machine's value."""
        low = self.row.latency_ms_low
        high = self.row.latency_ms_high
        return low is not None and high is not None and low <= self.quiet_ms <= high

    @property
    def off(self) -> bool:
        return abs(self.row.latency_ms / self.quiet_ms - 1) > OFF

    @property
    def misleads(self) -> bool:
        """Whether the row is off, not suspect, and has an interval that lies elsewhere."""
        return self.off and not self.row.suspect and not self.holds


def simulate_sweeps(count: int, scenario: Scenario) -> list[SimulatedSweep]:
    """Simulate sweeps over all batch sizes with seeds 0, 1, … and judge one batch size of each."""
    return [_simulate_sweep(scenario, seed) for seed in range(count)]


def _simulate_sweep(scenario: Scenario, seed: int) -> SimulatedSweep:
    sessions = _open_sessions(scenario, seed)
    machine = sessions[0].machine
    plan = SweepPlan(SIZES, SESSIONS, seed=seed, least_rounds=ROUNDS)
    blocks, best = _measure_blocks(sessions, plan, scenario.blind)
    if scenario.known:
        best = null_backend.PROBE_MS
    work_ms = machine.base_ms + JUDGED // SESSIONS * machine.per_item_ms
    quiet: dict[Kind, float] = {
        "amortised": work_ms * math.exp(machine.noise**2 / 2),
        "isolated": work_ms * math.exp(machine.noise * MAX_MEDIAN),
    }
    disturbed = 0
    caught = 0
    accused = 0
    for block, causes in zip(blocks, find_disturbances(blocks, best), strict=True):
        if measure_pace_ms(block) > (1 + OFF) * quiet[block.kind]:
            disturbed += 1
            caught += bool(causes)
        else:
            accused += bool(causes)
    row = estimate(blocks, best)
    return SimulatedSweep(row, quiet["amortised"], disturbed, caught, accused)


def measure_pace_ms(block: Block) -> float:
    """Return the milliseconds of a batch."""
    if block.kind == "amortised":
        return 1e3 * block.batch_size / block.window.throughput
    return median(block.latencies_ms)


def _open_sessions(scenario: Scenario, seed: int) -> list[NullSession]:
    options = {**scenario.options, "seed": seed}
    sessions = []
    for number in range(SESSIONS):
        spec = SessionSpec("null", "", sessions=SESSIONS, session=number, options=options)
        session = NullSession(spec)
        session.prepare(JUDGED // SESSIONS, "amortised")
        sessions.append(session)
    return sessions


def _measure_blocks(
    sessions: Sequence[NullSession], plan: SweepPlan, blind: bool
) -> tuple[list[Block], float]:
    """Return the blocks of the judged size and the best probe of all.

    The other sizes only advance the clock.
    """
    blocks: list[Block] = []
    first = sessions[0]
    now = 0
    probes = []

    def run_probe() -> float:
        probes.append(null_backend.PROBE_MS if blind else first.probe_ms(now))
        return probes[-1]

    for number in range(plan.least_rounds):
        for visit in plan.list_visits(number):
            before = run_probe()
            if visit.batch_size == JUDGED:
                stamps = _run_block(sessions, plan, visit, now)
                now = max(session.now for session in sessions)
                around = (before, run_probe())
                blocks.append(Block(len(blocks), number, JUDGED, visit.kind, "", stamps, around))
            else:
                micro_batch = visit.batch_size // SESSIONS
                batch_s = (first.machine.base_ms + micro_batch * first.machine.per_item_ms) / 1e3
                now += int(max(plan.block_s, plan.iterations * batch_s) * NS)
    return blocks, min(probes)


def _run_block(
    sessions: Sequence[NullSession], plan: SweepPlan, visit: Visit, start: int
) -> SessionStamps:
    until = start + int(plan.block_s * NS)
    if visit.kind == "amortised":
        return tuple(_run_session(session, start, until, plan.iterations) for session in sessions)
    stamps: list[list[Stamps]] = [[] for _ in sessions]
    while start < until or len(stamps[0]) < plan.iterations:
        for number, session in enumerate(sessions):
            stamps[number] += _run_session(session, start, start, 1)
        start = max(session.now for session in sessions)
    return tuple(map(tuple, stamps))


def _run_session(
    session: NullSession, start: int, until: int, min_batches: int
) -> tuple[Stamps, ...]:
    session.wait_until(start)

    def feed() -> tuple[None, int, int, int]:
        return None, session.now, session.now, session.now

    return tuple(run_batches(session, feed, until, min_batches))
