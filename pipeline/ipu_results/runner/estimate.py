"""Blocks, in each of which every session runs one batch over and over, and the row of a batch size
that is estimated from its blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from statistics import median
from typing import NamedTuple

import numpy as np

from ipu_results.errors import RunnerError
from ipu_results.runner.backends import Kind

# start, loaded, pre-processed, inferred, retrieved: ns of one clock
Stamps = tuple[int, int, int, int, int]

# nanoseconds of a second, and of a millisecond
NS = 1e9
MS = 1e6


@dataclass(frozen=True)
class Window:
    """The time in which all sessions were at work, in ns, and the items of that time."""

    start: int
    end: int
    items: float

    @property
    def throughput(self) -> float:
        """Items per second."""
        return self.items / (self.end - self.start) * NS


@dataclass(frozen=True)
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
    notes: Mapping[str, object] = field(default_factory=dict)  # kept: of blocks.jsonl
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
        shares = []
        for session in self.stamps:
            # from the end of the one before, so that a session's time has no gaps
            begin = session[0][0]
            for stamps in session:
                finish = stamps[-1]
                shares.append(_clip_to_window(begin, finish, start, end))
                begin = finish
        micro_batch = self.batch_size / self.sessions * self.batches_per_step
        return Window(start, end, sum(shares) * micro_batch)

    @property
    def latencies_ms(self) -> list[float]:
        """Return those of an isolated block: from the first session's start to the last one's end,
        batch by batch.
        """
        latencies = []
        for batch in zip(*self.stamps, strict=True):
            start = min(stamps[0] for stamps in batch)
            end = max(stamps[-1] for stamps in batch)
            latencies.append((end - start) / MS)
        return latencies

    def to_json(self) -> dict[str, object]:
        # asdict copies every stamp
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        if self.batches_per_step == 1:
            del columns["batches_per_step"]
        return columns


def _clip_to_window(begin: int, finish: int, start: int, end: int) -> float:
    """Return the share of an iteration, from begin to finish, that is in the window."""
    if finish <= begin:  # shorter than the clock's resolution
        return float(start <= begin <= end)
    inside = min(finish, end) - max(begin, start)
    return max(0, inside) / (finish - begin)


CONFIDENCE = 0.95  # of the interval of the median over rounds; order statistics reach it
# Rounds for that: 1 − 2 · 0.5⁶ = 0.969, while five have 0.9375. On machines that flip, three rounds
# mislead several times as often as six.
FEWEST = 6
DRIFT_ROUNDS = 4  # rounds that are needed to compare the first half of them with the second
TAIL_CONFIDENCE = 0.99  # LoadGen's, in loadgen/results.cc: early stopping with a tolerance of 0
# places in the stamps of an iteration
START = 0
PREPROCESSED = 2
INFERRED = 3
RETRIEVED = 4


# Limits beyond which a block is disturbed, or a row suspect. How often they miss:
# `python -m benchmarks repeatability`.
MAX_WIDTH = 0.10  # of the interval, as a share of the median: a row should promise ± 5 %
# between the medians of the first and the second half of the rounds: the row is half as far off
MAX_DRIFT = 0.05
# Share of the row's blocks. A median is off when half of the amortised blocks are, a third of all.
MAX_DISTURBED = 0.2


class Cause(NamedTuple):
    """What disturbs a block above a limit, and how it is told: a share is printed in percent."""

    limit: float
    text: str
    is_share: bool = True


# the texts are kept: of points.csv
CAUSES = {
    # Times the best of the run. Back to back, one in a hundred reaches 1.2; the slow regimes seen
    # reach 1.6.
    "probe": Cause(1.3, "probe up to {:.2f} times its best", is_share=False),
    # Shares of the machine. What is taken from one thread holds up a batch that all threads work
    # at, and stolen time is taken from busy ones.
    "foreign": Cause(0.05, "foreign processes took up to {} of the machine"),
    "steal": Cause(0.02, "up to {} stolen by the hypervisor"),
    # How much slower a block is than the fastest of its kind in the row. Noise of 1 % a block does
    # not reach it.
    "behind": Cause(0.06, "up to {} slower than the fastest of its kind"),
    "others": Cause(0.0, "up to {:.0f} other sweeps beside it", is_share=False),
}


class Estimate(NamedTuple):
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


class Interval(NamedTuple):
    """The interval of a median and its confidence."""

    low: float
    high: float
    confidence: float


def estimate(blocks: Sequence[Block], best_probe_ms: float | None = None) -> Estimate:
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
    size_ms = 1e3 * blocks[0].batch_size
    throughput = median(rounds)
    interval = compute_interval(rounds)
    confidence = None
    fastest_ms = None
    slowest_ms = None
    if interval:
        confidence = interval.confidence
        fastest_ms = size_ms / interval.high
        slowest_ms = size_ms / interval.low
    causes = find_disturbances(blocks, best_probe_ms)
    tail: list[float] = []
    for block in isolated:
        tail += block.latencies_ms
    suspect = [*_suspect_rounds(rounds), *_suspect_blocks(causes)]
    others = sum(block.others > 0 for block in blocks)
    if others:  # kept: text of points.csv
        suspect.append(f"another sweep ran beside {others} of {len(blocks)} blocks")
    return Estimate(
        throughput=throughput,
        latency_ms=size_ms / throughput,
        latency_ms_low=fastest_ms,
        latency_ms_high=slowest_ms,
        interval_confidence=confidence,
        latency_isolated_ms=_find_median(median(block.latencies_ms) for block in isolated),
        latency_p90_ms=estimate_tail(tail, 0.90),
        latency_p99_ms=estimate_tail(tail, 0.99),
        rounds=len(rounds),
        blocks=len(blocks),
        iterations=sum(block.iterations for block in blocks),
        disturbed_blocks=sum(over != {} for over in causes),
        preprocess_ms=_find_stage_ms(amortised, START, PREPROCESSED),
        infer_ms=_find_stage_ms(amortised, PREPROCESSED, INFERRED),
        retrieve_ms=_find_stage_ms(amortised, INFERRED, RETRIEVED),
        probe_ms=_find_median(list_probes(blocks)),
        foreign_cpu=_find_largest(block.foreign_cpu for block in blocks),
        steal=_find_largest(block.steal for block in blocks),
        power_w=_find_median(block.power_w for block in amortised),
        suspect=suspect,
    )


def list_probes(blocks: Iterable[Block]) -> list[float]:
    probes: list[float] = []
    for block in blocks:
        probes += block.probe_ms or ()
    return probes


def group_by_round(blocks: Iterable[Block]) -> list[float]:
    """Return items per second of each round, in the order of the rounds; the median where one has
    several blocks.
    """
    by_round: dict[int, list[float]] = {}
    for block in blocks:
        by_round.setdefault(block.round, []).append(block.window.throughput)
    return [median(by_round[number]) for number in sorted(by_round)]


def compute_interval(rounds: Sequence[float]) -> Interval | None:
    """Return the interval of the median, by order statistics of the rounds; None for one round.

    Fewer than six rounds span less than 95 %: then it is their minimum and maximum with the
    confidence that these have.
    """
    count = len(rounds)
    if count < 2:
        return None
    ranked = sorted(rounds)
    if count < FEWEST:
        return Interval(ranked[0], ranked[-1], 1 - 2 * 0.5**count)
    # as many rounds are below the median as tosses of a coin
    low = _find_rank(count, 0.5, (1 - CONFIDENCE) / 2)
    return Interval(ranked[low], ranked[-1 - low], CONFIDENCE)


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
    blocks: Sequence[Block], best_probe_ms: float | None
) -> list[dict[str, float]]:
    """Return, by block, what is over its limit and how far; empty for an undisturbed block."""
    probes = list_probes(blocks)
    if best_probe_ms is not None:
        probes.append(best_probe_ms)
    fastest_probe = min(probes, default=0.0)
    paces = [_measure_pace(block) for block in blocks]
    # of each kind, since an isolated batch has another pace than one in a stream
    fastest: dict[Kind, float] = {}
    for block, pace in zip(blocks, paces, strict=True):
        fastest[block.kind] = min(pace, fastest.get(block.kind, pace))
    causes = []
    for block, pace in zip(blocks, paces, strict=True):
        observed = {
            "probe": 0.0,
            "foreign": block.foreign_cpu or 0.0,
            "steal": block.steal or 0.0,
            "behind": pace / fastest[block.kind] - 1,
            "others": block.others,
        }
        if block.probe_ms:
            observed["probe"] = max(block.probe_ms) / fastest_probe
        over = {}
        for cause, value in observed.items():
            if value > CAUSES[cause].limit:
                over[cause] = value
        causes.append(over)
    return causes


def _measure_pace(block: Block) -> float:
    """Return the time of an item or a batch, to compare blocks of one kind."""
    if block.kind == "amortised":
        return 1 / block.window.throughput
    return median(block.latencies_ms)


def format_percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def _check_blocks(blocks: Sequence[Block]) -> None:
    if not any(block.kind == "amortised" for block in blocks):
        raise RunnerError("no amortised block was measured")
    sizes = {block.batch_size for block in blocks}
    if len(sizes) > 1:
        raise RunnerError(f"blocks of several batch sizes: {', '.join(map(str, sorted(sizes)))}")
    for block in blocks:
        if not block.stamps or not all(block.stamps):
            raise RunnerError(f"block {block.block} has a session without iterations")
        if block.window.end <= block.window.start:
            raise RunnerError(f"block {block.block} has zero duration")


def _suspect_rounds(rounds: Sequence[float]) -> list[str]:
    reasons = []
    count = len(rounds)
    if count < FEWEST:
        reasons.append(f"only {count} round{'s' if count > 1 else ''}")
    interval = compute_interval(rounds)
    width = 0.0
    if interval:
        width = (interval.high - interval.low) / median(rounds)
    if width > MAX_WIDTH:
        reasons.append(f"interval is {format_percent(width)} wide")
    drift = 0.0
    if count >= DRIFT_ROUNDS:
        half = count // 2  # without the middle one of an odd number
        drift = median(rounds[-half:]) / median(rounds[:half]) - 1
    if abs(drift) > MAX_DRIFT:
        reasons.append(
            f"drift of {format_percent(drift)} from the first half of the rounds to the second"
        )
    return reasons


def _suspect_blocks(causes: Sequence[Mapping[str, float]]) -> list[str]:
    disturbed = [over for over in causes if over]
    if not disturbed or len(disturbed) < MAX_DISTURBED * len(causes):
        return []
    reasons = []
    for name, cause in CAUSES.items():
        values = [over[name] for over in disturbed if name in over]
        if not values:
            continue
        worst = max(values)
        shown = format_percent(worst) if cause.is_share else worst
        reasons.append(cause.text.format(shown))
    return [f"{len(disturbed)} of {len(causes)} blocks disturbed: {', '.join(reasons)}"]


def _find_stage_ms(blocks: Iterable[Block], begin: int, end: int) -> float:
    spans = []
    for block in blocks:
        for session in block.stamps:
            for stamps in session:
                spans.append((stamps[end] - stamps[begin]) / block.batches_per_step)
    return median(spans) / MS


def _find_median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _find_largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


@lru_cache(maxsize=256)
def _find_rank(count: int, chance: float, probability: float) -> int:
    """Return the greatest k such that k or fewer of `count` trials succeed with less than
    `probability`, or −1.
    """
    # grows with k, so those below are the first ones
    is_below = compute_binomial_cdf(count, chance) < probability
    return int(np.count_nonzero(is_below)) - 1


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
    downwards = 1 / ratios[:mode][::-1]
    below = np.cumprod(downwards)[::-1]
    above = np.cumprod(ratios[mode:])
    weights = np.concatenate((below, [1.0], above))
    odds: np.ndarray = np.cumsum(weights) / np.sum(weights)
    return odds
