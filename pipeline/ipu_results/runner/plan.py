"""What a sweep visits: rounds over all batch sizes in seeded random order, within a budget of time."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ipu_results.errors import RunnerError
from ipu_results.runner.blocks import Kind

RUNS = Path("raw/runs")  # where runs are appended by default
BUDGET_S = 90.0
LEAST_ROUNDS = 6  # fewer give no interval of 95 % for a median
MOST_ROUNDS = 1000
ISOLATED_EVERY = 2  # rounds


@dataclass(frozen=True, slots=True)
class Visit:
    """One block to measure."""

    round: int
    batch_size: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """The rounds of a sweep. `block_s` and `iterations` are minimums of a block, `iterations` those of each session.

    Warm-up goes on until the medians of two sets of `warm_runs` agree. Rounds go on while `budget_s` lasts, at least
    `least_rounds`, at most `most_rounds`.
    """

    batch_sizes: tuple[int, ...]
    sessions: int
    seed: int = 0
    budget_s: float = BUDGET_S
    least_rounds: int = LEAST_ROUNDS
    most_rounds: int = MOST_ROUNDS
    block_s: float = 2.0
    iterations: int = 8
    warm_runs: int = 5
    overlap: bool = True

    def list_visits(self, number: int) -> list[Visit]:
        """Return a round: every batch size in a stream, every other round also with nothing else in flight."""
        kinds: Sequence[Kind] = ("amortised", "isolated") if number % ISOLATED_EVERY == 0 else ("amortised",)
        visits = [Visit(number, batch, kind) for batch in self.batch_sizes for kind in kinds]
        random.Random(f"{self.seed} {number}").shuffle(visits)
        return visits

    def needs_round(self, spent_s: float, done: int) -> bool:
        """Decide whether another round is due after `done` of them."""
        return done < self.least_rounds or (done < self.most_rounds and spent_s < self.budget_s)

    def estimate_round_s(self, batch_s: Mapping[int, float]) -> float:
        """Return the seconds of a mean round from those of one batch by batch size."""
        kinds = 1 + 1 / ISOLATED_EVERY
        return kinds * sum(max(self.block_s, self.iterations * seconds) for seconds in batch_s.values())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check_batch_sizes(batch_sizes: Sequence[int], sessions: int) -> tuple[int, ...]:
    """Return the batch sizes without repetitions. Raises RunnerError for one that the sessions cannot share evenly."""
    for batch in batch_sizes:
        if batch < 1 or batch % sessions:
            raise RunnerError(f"batch {batch} cannot be shared evenly by {sessions} sessions; see --sessions")
    return tuple(dict.fromkeys(batch_sizes))
