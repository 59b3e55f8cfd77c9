"""The sessions of a sweep: each in a process of its own, or all of them in this one where time is calculated."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ipu_results.errors import IpuResultsError
from ipu_results.runner.backends import is_virtual
from ipu_results.runner.backends.base import Facts, Spec
from ipu_results.runner.blocks import NS, Kind, Stamps
from ipu_results.runner.seats import ANSWER_S, Answer, Apart, Here, Seat, hear

LEAD_S = 0.01  # from the telling to the start of a block

Array = npt.NDArray[np.float32]


@dataclass
class Crew:
    """All sessions of a sweep. A batch is dealt evenly to them; `overlap` makes images ahead in streams."""

    seats: Sequence[Seat]
    facts: Facts
    virtual: bool
    overlap: bool
    _clock: int = 0

    def prepare(self, batch: int, kind: Kind) -> tuple[float, dict[str, Any]]:
        """Make ready for a batch; the seconds that took, and what is predicted for it."""
        told = self._all("prepare", micro_batch=batch // len(self.seats), kind=kind)
        return max(one["seconds"] for one in told), dict(told[0]["told"])

    def stream(self, seconds: float, least: int) -> tuple[tuple[Stamps, ...], ...]:
        """Every session at work on batch after batch, started together."""
        wait_s = ANSWER_S + 10 * seconds
        return self._stamps("block", wait_s, at=self._soon(), seconds=seconds, least=least, overlap=self.overlap)

    def one_by_one(self, seconds: float, least: int) -> tuple[tuple[Stamps, ...], ...]:
        """A batch at a time: the next one is begun when all sessions have finished theirs."""
        found: list[tuple[tuple[Stamps, ...], ...]] = []
        start = self._soon()
        while len(found) < least or self._now() < start + seconds * NS:
            found.append(self._stamps("block", ANSWER_S, at=self._soon(), seconds=0, least=1, overlap=False))
        return tuple(tuple(one[session][0] for one in found) for session in range(len(self.seats)))

    def outputs(self, batch: int) -> Array:
        """The outputs for the first images, session by session."""
        count = batch // len(self.seats)
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder) / f"{number}.npy") for number in range(len(self.seats))]
            self._all("outputs", each=[{"count": count, "file": file} for file in files])
            return np.concatenate([np.load(file) for file in files])

    def close(self) -> None:
        for seat in self.seats:
            seat.leave()

    def _now(self) -> int:
        return self._clock if self.virtual else time.perf_counter_ns()

    def _soon(self) -> int:
        return self._clock if self.virtual else time.perf_counter_ns() + int(LEAD_S * NS)

    def _stamps(self, do: str, wait_s: float, **given: Any) -> tuple[tuple[Stamps, ...], ...]:
        told = self._all(do, wait_s, **given)
        self._clock = max(one["clock"] for one in told)
        return tuple(tuple((one[0], one[1], one[2], one[3], one[4]) for one in session["stamps"]) for session in told)

    def _all(
        self, do: str, wait_s: float = ANSWER_S, each: Sequence[Answer] | None = None, **given: Any
    ) -> list[Answer]:
        """Ask every session, then hear every one of them, so that none is left with an answer untaken."""
        for seat, own in zip(self.seats, each or [{}] * len(self.seats), strict=True):
            seat.ask(do, **given, **own)
        heard = [hear(seat, wait_s) for seat in self.seats]
        for one in heard:
            if isinstance(one, IpuResultsError):
                raise one
        return [one for one in heard if not isinstance(one, IpuResultsError)]


def open_crew(
    name: str,
    specs: Sequence[Spec],
    images: Mapping[str, Any] | None,
    *,
    overlap: bool,
    python: str = sys.executable,
) -> Crew:
    """Open a session per spec. Raises what the backend raises, or SessionLostError; nothing stays open then."""
    virtual = is_virtual(name)
    seats: list[Seat] = []
    try:
        for number, spec in enumerate(specs):
            seats.append(Here() if virtual else Apart(number, python))
            dealt = None if images is None else {**images, "first": number, "step": len(specs)}
            seats[-1].ask("open", backend=name, spec=asdict(spec), images=dealt)
        told = [seat.reply() for seat in seats]
    except BaseException:
        for seat in seats:
            seat.leave()
        raise
    return Crew(seats, Facts(**told[0]["facts"]), virtual, overlap)
