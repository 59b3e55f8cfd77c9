"""One block: the same batch over and over on every session, and what was observed around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Kind = Literal["amortised", "isolated"]
Stamps = tuple[int, int, int, int, int]  # start, loaded, pre-processed, inferred, retrieved: ns of one clock

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
    """The stamps of a block, by session and iteration, and what was observed: None where time is calculated.

    `foreign_cpu` and `steal` are shares of the machine's processor time; `others` counts other sweeps on the machine.
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

    @property
    def sessions(self) -> int:
        return len(self.stamps)

    @property
    def iterations(self) -> int:
        """Count the iterations of all sessions."""
        return sum(len(session) for session in self.stamps)

    @property
    def window(self) -> Window:
        """Return the shared window; an iteration that is only partly in it counts for that part.

        Sessions that were never at work together share no time: then it is from the first start to the last end.
        """
        starts, ends = [session[0][0] for session in self.stamps], [session[-1][-1] for session in self.stamps]
        start, end = max(starts), min(ends)
        if end <= start:
            start, end = min(starts), max(ends)
        micro = self.batch_size / self.sessions
        done = sum(_clip_to_window(span, start, end) for session in self.stamps for span in _split_time(session))
        return Window(start, end, done * micro)

    @property
    def latencies_ms(self) -> list[float]:
        """Return those of an isolated block: from the first session's start to the last one's end, batch by batch."""
        batches = zip(*self.stamps, strict=True)
        return [(max(stamps[-1] for stamps in batch) - min(stamps[0] for stamps in batch)) / MS for batch in batches]

    def to_json(self) -> dict[str, Any]:
        return {column.name: getattr(self, column.name) for column in fields(self)}  # asdict copies every stamp


def _split_time(session: Sequence[Stamps]) -> list[tuple[int, int]]:
    """Return each iteration from the end of the one before, so that a session's time has no gaps."""
    ends = [stamps[-1] for stamps in session]
    return list(zip([session[0][0], *ends[:-1]], ends, strict=True))


def _clip_to_window(span: tuple[int, int], start: int, end: int) -> float:
    """Return the share of an iteration that is in the window."""
    if span[1] <= span[0]:  # shorter than the clock's resolution
        return float(start <= span[0] <= end)
    return max(0, min(span[1], end) - max(span[0], start)) / (span[1] - span[0])
