"""The rules of the benchmark, from `schema/vocabulary/mlperf.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ipu_results._util.resources import SCHEMA

DROP = 1
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a metric must lie for a run to have converged, ends included."""

    low: float = float("-inf")
    high: float = float("inf")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`runs` is how many logs the rules ask for, None where unknown; `drop` how many are left out at each end.

    `epochs_are_samples`: its logs call samples epochs; `epochs_of_train_samples`: an epoch is `train_samples` samples.
    """

    name: str
    model: str | None = None
    runs: int | None = None
    drop: int = DROP
    epochs_are_samples: bool = False
    epochs_of_train_samples: bool = False
    converged: Mapping[str, Bound] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """Rounds between which results of one benchmark may be compared, within a division."""

    benchmark: str
    first_round: str
    last_round: str
    source: str


@dataclass(frozen=True)
class Rules:
    first_round: str
    last_round: str
    init_limit_minutes: Mapping[str, float]
    benchmarks: Mapping[str, Benchmark]
    divisions: Mapping[str, str]
    availabilities: Mapping[str, str]
    blocks: tuple[Block, ...]

    def benchmark(self, name: str) -> Benchmark:
        """The benchmark of a folder; one without entry is scored by the common rule."""
        return self.benchmarks.get(name) or Benchmark(name)

    def knows(self, name: str) -> bool:
        return name in self.benchmarks

    def init_limit(self, division: str | None) -> float:
        """Minutes; the closed division's where the division is not known."""
        return self.init_limit_minutes[division or CLOSED]

    def block(self, benchmark: str, round_: str) -> str:
        """Rounds that the round's results may be compared with, as `0.6-4.0`; the round alone where none may."""
        for block in self.blocks:
            if block.benchmark == benchmark and in_order(block.first_round) <= in_order(round_) <= in_order(
                block.last_round
            ):
                return f"{block.first_round}-{block.last_round}"
        return round_


def in_order(round_: str) -> tuple[int, ...]:
    """A key that puts rounds in order: 2.0 before 2.1 before 10.0."""
    return tuple(int(part) for part in round_.split("."))


@cache
def rules() -> Rules:
    data = tomllib.loads((SCHEMA / "vocabulary" / "mlperf.toml").read_text(encoding="utf-8"))
    return Rules(
        first_round=data["first_round"],
        last_round=data["last_round"],
        init_limit_minutes=data["init_limit_minutes"],
        benchmarks=_benchmarks(data["benchmarks"]),
        divisions=_by_spelling(data["divisions"].items()),
        availabilities=_by_spelling(data["availabilities"].items()),
        blocks=tuple(Block(**entry) for entry in data["comparable"]),
    )


def _benchmarks(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Benchmark]:
    known = {}
    for name, entry in entries.items():
        facts = {key: value for key, value in entry.items() if key not in {"spellings", "converged"}}
        bounds = {metric: Bound(**ends) for metric, ends in entry.get("converged", {}).items()}
        benchmark = Benchmark(name, **facts, converged=bounds)
        known.update(dict.fromkeys([name, *entry.get("spellings", ())], benchmark))
    return known


def _by_spelling(entries: Iterable[tuple[str, Iterable[str]]]) -> dict[str, str]:
    return {spelling: name for name, spellings in entries for spelling in [name, *spellings]}
