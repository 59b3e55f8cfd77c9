"""One block: the same batch over and over on every session, and what was seen around it."""

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
    """What the sessions did while all were at work: nanoseconds, and items in proportion to their time in it."""

    start: int
    end: int
    items: float

    @property
    def throughput(self) -> float:
        """Items per second."""
        return self.items / (self.end - self.start) * NS


@dataclass(frozen=True, slots=True)
class Block:
    """`stamps` are by session and iteration. Probes, loads and power are None where there is no real time to look at.

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
        """Of all sessions."""
        return sum(len(one) for one in self.stamps)

    @property
    def window(self) -> Window:
        """An iteration that is only partly within the shared window counts for that part.

        Sessions that were never at work together have no such window: then it is from the first start to the last end.
        """
        starts, ends = [session[0][0] for session in self.stamps], [session[-1][-1] for session in self.stamps]
        start, end = max(starts), min(ends)
        if end <= start:
            start, end = min(starts), max(ends)
        micro = self.batch_size / self.sessions
        done = sum(_share(one, start, end) for session in self.stamps for one in _spans(session))
        return Window(start, end, done * micro)

    @property
    def latencies_ms(self) -> list[float]:
        """Of an isolated block: from the first session's start to the last one's end, batch by batch."""
        together = zip(*self.stamps, strict=True)
        return [(max(one[-1] for one in batch) - min(one[0] for one in batch)) / MS for batch in together]

    def as_json(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # asdict copies every stamp

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Block:
        stamps = tuple(tuple((one[0], one[1], one[2], one[3], one[4]) for one in session) for session in told["stamps"])
        probe = None if told["probe_ms"] is None else (told["probe_ms"][0], told["probe_ms"][1])
        return cls(**{**told, "stamps": stamps, "probe_ms": probe})


def _spans(session: Sequence[Stamps]) -> list[tuple[int, int]]:
    """Each iteration from the end of the one before, so that a session's time is dealt out without gaps."""
    ends = [one[-1] for one in session]
    return list(zip([session[0][0], *ends[:-1]], ends, strict=True))


def _share(span: tuple[int, int], start: int, end: int) -> float:
    if span[1] <= span[0]:  # shorter than the clock can tell
        return float(start <= span[0] <= end)
    return max(0, min(span[1], end) - max(span[0], start)) / (span[1] - span[0])
