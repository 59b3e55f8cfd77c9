"""One block: the same batch over and over on every session, and what was observed around it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from ipu_results.errors import RunnerError
from ipu_results.runner.backends import Kind

# start, loaded, pre-processed, inferred, retrieved: ns of one clock
Stamps = tuple[int, int, int, int, int]

NS = 1e9
MS = 1e6  # nanoseconds


@dataclass(frozen=True, slots=True)
class Window:
    """The time in which all sessions were at work, in ns, and the items of that time."""

    start: int
    end: int
    items: float

    @property
    def throughput(self) -> float:
        """Items per second."""
        return self.items / (self.end - self.start) * NS


@dataclass(frozen=True, slots=True)
class Block:
    """The stamps of a block, by session and iteration, and what was observed: None where time is
    calculated.

    `foreign_cpu` and `steal` are shares of the machine's processor time; `others` counts other
    sweeps on the machine.
    """

    block: int
    round: int
    batch_size: int
    kind: Kind
    started_at: str
    stamps: tuple[tuple[Stamps, ...], ...]
    probe_ms: tuple[float, float] | None = None
    foreign_cpu: float | None = None
    steal: float | None = None
    power_w: float | None = None
    power_reason: str | None = None
    others: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)
    batches_per_step: int = 1

    @property
    def sessions(self) -> int:
        return len(self.stamps)

    @property
    def iterations(self) -> int:
        """Count the batches of all sessions."""
        return self.batches_per_step * sum(len(session) for session in self.stamps)

    @property
    def window(self) -> Window:
        """Return the shared window; an iteration that is only partly in it counts for that part.

        Sessions that were never at work together share no time: then it is from the first start to
        the last end.
        """
        starts = [session[0][0] for session in self.stamps]
        ends = [session[-1][-1] for session in self.stamps]
        start = max(starts)
        end = min(ends)
        if end <= start:
            start = min(starts)
            end = max(ends)
        micro = self.batch_size / self.sessions * self.batches_per_step
        # each iteration counts from the end of the one before, so that a session's time has no gaps
        spans = [
            span
            for session in self.stamps
            for span in pairwise([session[0][0], *(row[-1] for row in session)])
        ]
        done = sum(_clip_to_window(span, start, end) for span in spans)
        return Window(start, end, done * micro)

    @property
    def latencies_ms(self) -> list[float]:
        """Return those of an isolated block: from the first session's start to the last one's end,
        batch by batch.
        """
        batches = zip(*self.stamps, strict=True)
        return [
            (max(stamps[-1] for stamps in batch) - min(stamps[0] for stamps in batch)) / MS
            for batch in batches
        ]

    def to_json(self) -> dict[str, Any]:
        # asdict copies every stamp
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        if self.batches_per_step == 1:
            del columns["batches_per_step"]
        return columns


def _clip_to_window(span: tuple[int, int], start: int, end: int) -> float:
    """Return the share of an iteration that is in the window."""
    if span[1] <= span[0]:  # shorter than the clock's resolution
        return float(start <= span[0] <= end)
    return max(0, min(span[1], end) - max(span[0], start)) / (span[1] - span[0])


CONFIDENCE = 0.95  # of the interval of the median over rounds; order statistics reach it
FEWEST = 6  # rounds for that: 1 − 2 · 0.5⁶ = 0.969, while five have 0.9375
DRIFT_ROUNDS = 4  # rounds that are needed to compare the first half of them with the second
TAIL_CONFIDENCE = 0.99  # LoadGen's, in loadgen/results.cc: early stopping with a tolerance of 0
# of an iteration's stamps; the stages end pre-processed, inferred, retrieved
START, _LOADED, *STAGES = range(5)


@dataclass(frozen=True, slots=True)
class SuspicionLimits:
    """Limits beyond which a block is disturbed, or a row suspect.

    Their misses: `python -m benchmarks repeatability`.

    rounds: fewer have no interval of 95 %. On machines that flip, three rounds mislead several
    times as often as six. width: of the interval, as a share of the median: a row should promise ±
    5 %. drift: between the medians of the first and the second half of the rounds: the row is half
    as far off. disturbed: share of the row's blocks. A median is off when half of the amortised
    blocks are, a third of all. probe: times the best of the run. Back to back, one in a hundred
    reaches 1.2; the slow regimes seen reach 1.6. behind: how much slower a block is than the
    fastest of its kind in the row. Noise of 1 % a block does not reach it. foreign, steal: shares
    of the machine. What is taken from one thread holds up a batch that all threads work at, and
    stolen time is taken from busy ones.
    """

    rounds: int = FEWEST
    width: float = 0.10
    drift: float = 0.05
    disturbed: float = 0.2
    probe: float = 1.3
    behind: float = 0.06
    foreign: float = 0.05
    steal: float = 0.02


@dataclass(frozen=True, slots=True)
class Estimate:
    """The figures of one row, with the names and units of the columns of `points.csv`; None where
    unknown.
    """

    throughput: float
    latency_ms: float
    latency_ms_low: float | None
    latency_ms_high: float | None
    interval_confidence: float | None
    latency_isolated_ms: float | None
    latency_p90_ms: float | None
    latency_p99_ms: float | None
    rounds: int
    blocks: int
    iterations: int
    disturbed_blocks: int
    preprocess_ms: float
    infer_ms: float
    retrieve_ms: float
    probe_ms: float | None
    foreign_cpu: float | None
    steal: float | None
    power_w: float | None
    suspect: list[str]


DEFAULT = SuspicionLimits()
REASONS: Mapping[str, Callable[[float], str]] = {
    "probe": lambda worst: f"probe up to {worst:.2f} times its best",
    "foreign": lambda worst: f"foreign processes took up to {format_percent(worst)} of the machine",
    "steal": lambda worst: f"up to {format_percent(worst)} stolen by the hypervisor",
    "behind": lambda worst: f"up to {format_percent(worst)} slower than the fastest of its kind",
    "others": lambda worst: f"up to {worst:.0f} other sweeps beside it",  # kept: text of points.csv
}


def estimate(
    blocks: Sequence[Block], limits: SuspicionLimits = DEFAULT, best_probe_ms: float | None = None
) -> Estimate:
    """Compute the row of one batch size.

    `best_probe_ms` is the best probe of the run, or of this machine ever.

    Without it the best of these blocks' own counts. Every block counts, disturbed or not. Power and
    stage times are those of amortised blocks. A stage's is the median over iterations, loading
    being part of pre-processing; the time of a step with several batches is divided by their
    number. Raises RunnerError if no block is amortised, for mixed batch sizes and for a block
    without iterations or time.
    """
    _check_blocks(blocks)
    amortised = [block for block in blocks if block.kind == "amortised"]
    isolated = [block for block in blocks if block.kind == "isolated"]
    rounds = group_by_round(amortised)
    size = blocks[0].batch_size
    throughput = median(rounds)
    low, high, confidence = compute_interval(rounds)
    causes = find_disturbances(blocks, limits, best_probe_ms)
    preprocess, infer, retrieve = (
        _median_stage_ms(amortised, *ends) for ends in pairwise((START, *STAGES))
    )
    tail = [latency for block in isolated for latency in block.latencies_ms]
    probes = [probe for block in blocks for probe in block.probe_ms or ()]
    watts = [block.power_w for block in amortised if block.power_w is not None]
    others = sum(block.others > 0 for block in blocks)
    # kept: of points.csv
    shared = [f"another sweep ran beside {others} of {len(blocks)} blocks"] if others else []
    return Estimate(
        throughput=throughput,
        latency_ms=1e3 * size / throughput,
        latency_ms_low=None if high is None else 1e3 * size / high,
        latency_ms_high=None if low is None else 1e3 * size / low,
        interval_confidence=confidence,
        latency_isolated_ms=_median_or_none(median(block.latencies_ms) for block in isolated),
        latency_p90_ms=estimate_tail(tail, 0.90),
        latency_p99_ms=estimate_tail(tail, 0.99),
        rounds=len(rounds),
        blocks=len(blocks),
        iterations=sum(block.iterations for block in blocks),
        disturbed_blocks=sum(map(bool, causes)),
        preprocess_ms=preprocess,
        infer_ms=infer,
        retrieve_ms=retrieve,
        probe_ms=_median_or_none(probes),
        foreign_cpu=max(
            (block.foreign_cpu for block in blocks if block.foreign_cpu is not None), default=None
        ),
        steal=max((block.steal for block in blocks if block.steal is not None), default=None),
        power_w=_median_or_none(watts),
        suspect=[*_suspect_rounds(rounds, limits), *_suspect_blocks(causes, limits), *shared],
    )


def group_by_round(blocks: Iterable[Block]) -> list[float]:
    """Return items per second of each round, in the order of the rounds; the median where one has
    several blocks.
    """
    by_round: dict[int, list[float]] = defaultdict(list)
    for block in blocks:
        by_round[block.round].append(block.window.throughput)
    return [median(by_round[number]) for number in sorted(by_round)]


def compute_interval(rounds: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Return the ends of the interval of the median and its confidence, by order statistics of the
    rounds.

    Fewer than six rounds span less than 95 %: then it is their minimum and maximum with the
    confidence that these have.
    """
    count = len(rounds)
    ranked = sorted(rounds)
    if count < 2:
        return None, None, None
    if count < FEWEST:
        return ranked[0], ranked[-1], 1 - 2 * 0.5**count
    # as many rounds are below the median as tosses of a coin
    low = _find_rank(count, 0.5, (1 - CONFIDENCE) / 2)
    return ranked[low], ranked[-1 - low], CONFIDENCE


def estimate_tail(latencies: Sequence[float], share: float) -> float | None:
    """Return the latency that this share of iterations keeps to, by LoadGen's early stopping; None
    for too few.

    Of n iterations it is the tth slowest, t being the greatest for which t or fewer slow ones among
    n would have less than 1 % probability if the true share were no better. It assumes independent
    iterations, which slow spells violate. Source: loadgen/results.cc and early_stopping.cc of
    mlcommons/inference.
    """
    slow = count_allowed_slow(len(latencies), share)
    return sorted(latencies)[-slow] if slow else None


def count_allowed_slow(count: int, share: float) -> int:
    """Return the t of `estimate_tail`: 0 below 64 iterations for the 90th percentile, and below 662
    for the 99th.
    """
    return max(_find_rank(count, 1 - share, 1 - TAIL_CONFIDENCE), 0)


def find_disturbances(
    blocks: Sequence[Block], limits: SuspicionLimits, best_probe_ms: float | None
) -> list[dict[str, float]]:
    """Return, by block, what is over its limit and how far; empty for an undisturbed block."""
    known = [] if best_probe_ms is None else [best_probe_ms]
    best = min(
        [*known, *(probe for block in blocks for probe in block.probe_ms or ())], default=None
    )
    paces = [
        1 / own.window.throughput if own.kind == "amortised" else median(own.latencies_ms)
        for own in blocks
    ]
    fastest = {
        block.kind: pace
        for pace, block in sorted(zip(paces, blocks, strict=True), key=lambda pair: -pair[0])
    }
    causes = []
    for block, pace in zip(blocks, paces, strict=True):
        observed = {
            "probe": (max(block.probe_ms) / best if block.probe_ms and best else 0.0, limits.probe),
            "foreign": (block.foreign_cpu or 0.0, limits.foreign),
            "steal": (block.steal or 0.0, limits.steal),
            "behind": (pace / fastest[block.kind] - 1, limits.behind),
            "others": (float(block.others), 0.0),
        }
        causes.append({cause: value for cause, (value, limit) in observed.items() if value > limit})
    return causes


def format_percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def _check_blocks(blocks: Sequence[Block]) -> None:
    if not any(block.kind == "amortised" for block in blocks):
        raise RunnerError("no amortised block was measured")
    if len(sizes := {block.batch_size for block in blocks}) > 1:
        raise RunnerError(f"blocks of several batch sizes: {', '.join(map(str, sorted(sizes)))}")
    for block in blocks:
        if not block.stamps or not all(block.stamps):
            raise RunnerError(f"block {block.block} has a session without iterations")
        if block.window.end <= block.window.start:
            raise RunnerError(f"block {block.block} has zero duration")


def _suspect_rounds(rounds: Sequence[float], limits: SuspicionLimits) -> list[str]:
    reasons = []
    count = len(rounds)
    if count < limits.rounds:
        reasons.append(f"only {count} round{'s' if count > 1 else ''}")
    low, high, _ = compute_interval(rounds)
    if (
        low is not None
        and high is not None
        and (width := (high - low) / median(rounds)) > limits.width
    ):
        reasons.append(f"interval is {format_percent(width)} wide")
    if count >= DRIFT_ROUNDS:
        drift = median(rounds[-(count // 2) :]) / median(rounds[: count // 2]) - 1
        if abs(drift) > limits.drift:
            reasons.append(
                f"drift of {format_percent(drift)} from the first half of the rounds to the second"
            )
    return reasons


def _suspect_blocks(causes: Sequence[Mapping[str, float]], limits: SuspicionLimits) -> list[str]:
    disturbed = sum(map(bool, causes))
    if disturbed < limits.disturbed * len(causes) or not disturbed:
        return []
    worst = {
        name: max((cause[name] for cause in causes if name in cause), default=None)
        for name in REASONS
    }
    reasons = [
        describe(value) for name, describe in REASONS.items() if (value := worst[name]) is not None
    ]
    return [f"{disturbed} of {len(causes)} blocks disturbed: {', '.join(reasons)}"]


def _median_stage_ms(blocks: Iterable[Block], begin: int, end: int) -> float:
    spans = (
        (stamps[end] - stamps[begin]) / block.batches_per_step
        for block in blocks
        for session in block.stamps
        for stamps in session
    )
    return median(spans) / MS


def _median_or_none(values: Iterable[float]) -> float | None:
    known = list(values)
    return median(known) if known else None


@lru_cache(maxsize=256)
def _find_rank(count: int, chance: float, probability: float) -> int:
    """Return the greatest k such that k or fewer of `count` trials succeed with less than
    `probability`, or −1.
    """
    return int(np.count_nonzero(compute_binomial_cdf(count, chance) < probability)) - 1


def compute_binomial_cdf(count: int, chance: float) -> np.ndarray:
    """Return the probability of k or fewer successes in `count` independent trials of one `chance`,
    for k from 0.

    P(k) / P(k − 1) = (n − k + 1) / k · p / (1 − p), multiplied from the likeliest k outwards: the
    powers of the closed form would vanish from a few thousand trials on. The cumulative sums are
    within 1e-12 of scipy.stats.binom.cdf.
    """
    successes = np.arange(1, count + 1)
    ratios = (count - successes + 1) / successes * (chance / (1 - chance))
    mode = int((count + 1) * chance)
    below = np.cumprod(1 / ratios[:mode][::-1])[::-1]
    above = np.cumprod(ratios[mode:])
    weights = np.concatenate((below, [1.0], above))
    odds: np.ndarray = np.cumsum(weights) / np.sum(weights)
    return odds
