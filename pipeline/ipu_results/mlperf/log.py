"""One log file of one run: what its lines say of time, outcome, batch size and convergence."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ipu_results.mlperf.lines import REFUSED, LineTooLong, blocks, decode, marked, parse, parse_strictly, places

MS_PER_MINUTE = 60_000
MAX_NUMBER = 2**63
MAX_NAMED = 3
MAX_EVALUATIONS = 4_000
MAX_EVALUATION = 2**12
OLD_SYNTAX = {b":::MLPv0.5": "v0.5", b":::MLL ": "v0.6"}
PROGRESS = {"samples_count": "samples", "epoch_num": "epochs", "step_num": "steps"}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How far training had come at an evaluation; `unit` is samples, epochs or steps."""

    metric: str | None
    value: Any
    unit: str
    count: float


@dataclass(frozen=True, slots=True)
class Log:
    """What one log says, minutes and milliseconds as logged; None where it does not say.

    `problem` tells why the log cannot be scored whatever its status; `findings` are worth telling and no hindrance.
    """

    lines: int = 0
    status: str | None = None
    minutes: float | None = None
    init_minutes: float | None = None
    global_batch_size: int | None = None
    train_samples: float | None = None
    evaluations: tuple[Evaluation, ...] = ()
    problem: str | None = None
    findings: tuple[str, ...] = ()


def read_log(chunks: Iterable[bytes]) -> Log:
    """Fold the bytes of one log, whatever they are, into what it says. Raises what reading the chunks raises."""
    reader = _Reader()
    try:
        for number, block in blocks(chunks):
            reader.take_block(number, block)
    except LineTooLong as error:
        return Log(lines=reader.lines, problem=str(error))
    return reader.log()


class _Reader:
    def __init__(self) -> None:
        self.lines = self.broken = 0
        self.named: list[str] = []
        self.old_syntax: str | None = None
        self.run_start: float | None = None
        self.run_stop: float | None = None
        self.status: str | None = None
        self.init_start: float | None = None
        self.init_stop: float | None = None
        self.batch_sizes: set[float | None] = set()
        self.train_samples: float | None = None
        self.evaluations: deque[tuple[float, bytes]] = deque(maxlen=MAX_EVALUATIONS)

    def take_block(self, number: int, block: bytes) -> None:
        told = marked(block)
        for index, text in enumerate(told):
            try:
                try:
                    line = decode(text)
                except REFUSED:
                    line = parse_strictly(text)
                if line.key in TAKERS:
                    TAKERS[line.key](self, line.time_ms, text)
            except (ValueError, RecursionError) as error:
                if self.broken < MAX_NAMED:
                    self.named.append(f"line {places(block, number)[index]} {error}")
                self.broken += 1
        self.lines += len(told)
        if not told and self.old_syntax is None:
            self.old_syntax = next((version for mark, version in OLD_SYNTAX.items() if mark in block), None)

    def _run_start(self, time_ms: float, _: bytes) -> None:
        if self.run_stop is None:
            self.run_start = time_ms

    def _run_stop(self, time_ms: float, told: bytes) -> None:
        if self.run_stop is None:
            self.run_stop, self.status = time_ms, _status(parse(told))

    def _init_start(self, time_ms: float, _: bytes) -> None:
        self.init_start = time_ms if self.init_start is None else min(self.init_start, time_ms)

    def _init_stop(self, time_ms: float, _: bytes) -> None:
        self.init_stop = time_ms if self.init_stop is None else max(self.init_stop, time_ms)

    def _batch_size(self, _: float, told: bytes) -> None:
        self.batch_sizes.add(_number(parse(told).get("value")))

    def _train_samples(self, _: float, told: bytes) -> None:
        self.train_samples = _number(parse(told).get("value"))

    def _evaluation(self, time_ms: float, told: bytes) -> None:
        if len(told) <= MAX_EVALUATION:
            self.evaluations.append((time_ms, told))

    def log(self) -> Log:
        return Log(
            lines=self.lines - self.broken,
            status=self.status,
            minutes=_minutes(self.run_start, self.run_stop),
            init_minutes=_minutes(self.init_start, self.init_stop),
            global_batch_size=_whole(*self.batch_sizes) if len(self.batch_sizes) == 1 else None,
            train_samples=self.train_samples,
            evaluations=self._evaluations(),
            problem=self._problem(),
            findings=tuple(self._findings()),
        )

    def _evaluations(self) -> tuple[Evaluation, ...]:
        """The last one up to the end of the run; all where they name metrics.

        By time, since some logs write it behind the line that ends the run.
        """
        stop = self.run_stop
        within = [(at, told) for at, told in self.evaluations if stop is not None and at <= stop]
        within.sort(key=lambda one: one[0])
        last = _evaluation(within[-1][1]) if within else None
        if last is None or last.metric is None:
            return () if last is None else (last,)
        return tuple(one for one in (_evaluation(told) for _, told in within) if one is not None)

    def _problem(self) -> str | None:
        if not self.lines:
            return f"has the syntax of {self.old_syntax}" if self.old_syntax else "holds no :::MLLOG line"
        if self.broken:
            more = f" and {self.broken - MAX_NAMED} more" if self.broken > MAX_NAMED else ""
            return f"{'; '.join(self.named)}{more}"
        return None

    def _findings(self) -> Iterable[str]:
        if len(self.batch_sizes) > 1:
            yield "names several global batch sizes: none is taken"


def _minutes(start: float | None, stop: float | None) -> float | None:
    minutes = None if start is None or stop is None else (stop - start) / MS_PER_MINUTE
    return minutes if minutes is not None and math.isfinite(minutes) else None


def _status(entry: Mapping[str, Any]) -> str | None:
    metadata = entry.get("metadata")
    status = metadata.get("status") if isinstance(metadata, dict) else None
    return status if status is None or isinstance(status, str) else json.dumps(status)


def _number(value: Any) -> float | None:
    """A number of a size that counts and amounts can have."""
    return (
        value if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MAX_NUMBER else None
    )


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and 0 < value == int(value) else None


def _evaluation(told: bytes) -> Evaluation | None:
    try:
        entry = parse(told)
    except ValueError:
        return None
    metadata = entry.get("metadata")
    if not isinstance(metadata, dict):
        return None
    for name, unit in PROGRESS.items():
        if (count := _number(metadata.get(name))) is not None:
            metric = metadata.get("metric")
            return Evaluation(metric if isinstance(metric, str) else None, entry.get("value"), unit, float(count))
    return None


TAKERS: dict[str, Callable[[_Reader, float, bytes], None]] = {
    "run_start": _Reader._run_start,
    "run_stop": _Reader._run_stop,
    "init_start": _Reader._init_start,
    "init_stop": _Reader._init_stop,
    "global_batch_size": _Reader._batch_size,
    "train_samples": _Reader._train_samples,
    "eval_accuracy": _Reader._evaluation,
    "eval_error": _Reader._evaluation,
}
