"""The rules of MLPerf Training, from `schema/vocabulary/mlperf.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ipu_results._util.resources import SCHEMA

DEFAULT_DROP = 1
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Bound:
    """The range of a metric in which a run has converged, ends included."""

    low: float = float("-inf")
    high: float = float("inf")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark: `runs` is the number of logs that the rules require, None where unknown.

    `drop` fastest and as many slowest runs are excluded from the mean. `epochs_are_samples`: its logs call samples
    epochs; `epochs_of_train_samples`: an epoch has `train_samples` samples.
    """

    name: str
    model: str | None = None
    runs: int | None = None
    drop: int = DEFAULT_DROP
    epochs_are_samples: bool = False
    epochs_of_train_samples: bool = False
    converged: Mapping[str, Bound] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComparableRounds:
    """Rounds between which results of one benchmark may be compared, within a division.

    `model` is the official name. Two folder names of one benchmark have the same one.
    """

    benchmark: str
    first_round: str
    last_round: str
    model: str
    dataset: str
    quality_target: str
    source: str

    @property
    def rounds(self) -> str:
        """The rounds as `0.6-4.0`, or the only one."""
        one = self.first_round == self.last_round
        return self.first_round if one else f"{self.first_round}-{self.last_round}"


@dataclass(frozen=True)
class Rules:
    first_round: str
    last_round: str
    init_limit_minutes: Mapping[str, float]
    benchmarks: Mapping[str, Benchmark]
    divisions: Mapping[str, str]
    availabilities: Mapping[str, str]
    comparable: tuple[ComparableRounds, ...]

    def benchmark(self, name: str) -> Benchmark:
        """Return the benchmark of a folder; an unknown one is scored by the common rule."""
        return self.benchmarks.get(name) or Benchmark(name)

    def knows(self, name: str) -> bool:
        return name in self.benchmarks

    def init_limit(self, division: str | None) -> float:
        """Return the limit in minutes, the closed division's where the division is not known."""
        return self.init_limit_minutes[division or CLOSED]

    def find_comparable(self, benchmark: str, round_: str) -> ComparableRounds | None:
        """Return the rounds that a round's results may be compared with; None where no source names any."""
        for block in self.comparable:
            ends = round_key(block.first_round), round_key(block.last_round)
            if block.benchmark == benchmark and ends[0] <= round_key(round_) <= ends[1]:
                return block
        return None


def round_key(round_: str) -> tuple[int, ...]:
    """Return a key that sorts rounds: 2.0 before 2.1 before 10.0."""
    return tuple(int(part) for part in round_.split("."))


@cache
def load_rules() -> Rules:
    data = tomllib.loads((SCHEMA / "vocabulary" / "mlperf.toml").read_text(encoding="utf-8"))
    return Rules(
        first_round=data["first_round"],
        last_round=data["last_round"],
        init_limit_minutes=data["init_limit_minutes"],
        benchmarks=_read_benchmarks(data["benchmarks"]),
        divisions=_map_spellings(data["divisions"]),
        availabilities=_map_spellings(data["availabilities"]),
        comparable=tuple(ComparableRounds(**entry) for entry in data["comparable"]),
    )


def _read_benchmarks(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Benchmark]:
    benchmarks = {}
    for name, entry in entries.items():
        fields = {key: value for key, value in entry.items() if key not in {"spellings", "converged"}}
        bounds = {metric: Bound(**ends) for metric, ends in entry.get("converged", {}).items()}
        benchmark = Benchmark(name, **fields, converged=bounds)
        benchmarks.update(dict.fromkeys([name, *entry.get("spellings", ())], benchmark))
    return benchmarks


def _map_spellings(entries: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {spelling: name for name, spellings in entries.items() for spelling in [name, *spellings]}
