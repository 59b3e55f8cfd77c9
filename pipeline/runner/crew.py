"""The sessions of a sweep: each in a process of its own, or all of them in this one where time is calculated."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline import errors
from pipeline.errors import IpuResultsError, RunnerError, SessionLost
from pipeline.runner.backends import is_virtual
from pipeline.runner.backends.base import Facts, Spec
from pipeline.runner.blocks import NS, Kind, Stamps
from pipeline.runner.worker import Host, answer

ANSWER_S = 900.0  # the longest that compiling or loading may take
LEAD_S = 0.01  # from the telling to the start of a block
LEAVE_S = 10.0  # the longest that closing a session may take
ERROR_LINES = 3

Answer = dict[str, Any]
Array = npt.NDArray[np.float32]


class Seat(Protocol):
    """Where one session sits: a request is sent, its answer comes later."""

    def ask(self, do: str, **given: Any) -> None: ...

    def reply(self, timeout_s: float = ANSWER_S) -> Answer: ...

    def leave(self) -> None: ...


class Here:
    """A session in this process."""

    def __init__(self) -> None:
        self._host, self._answer = Host(), Answer()

    def ask(self, do: str, **given: Any) -> None:
        self._answer = answer(self._host, {"do": do, "with": given})

    def reply(self, timeout_s: float = ANSWER_S) -> Answer:  # noqa: ARG002
        return _good(self._answer)

    def leave(self) -> None:
        self.ask("close")


class Apart:
    """A session in a process of its own. Raises SessionLost when that dies or does not answer."""

    def __init__(self, number: int, python: str) -> None:
        self._number = number
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it leaves)
        root = str(Path(__file__).resolve().parent.parent.parent)
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            self._process = subprocess.Popen(
                [python, "-m", "pipeline.runner.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,  # Ctrl-C is told to the sweep alone, which ends its sessions
            )
        except OSError as error:
            self._errors.close()
            raise SessionLost(f"cannot be started: {error.strerror}", document=python) from error
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def ask(self, do: str, **given: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, "with": given}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._lost() from error

    def reply(self, timeout_s: float = ANSWER_S) -> Answer:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty as error:
            message = f"session {self._number} has not answered for {timeout_s:.0f} s"
            raise SessionLost(message) from error
        if not line.endswith(b"\n"):
            raise self._lost()
        try:
            told: Answer = json.loads(line)
        except ValueError as error:
            shown = line.decode(errors="replace").strip()[:100]
            raise SessionLost(f"session {self._number} said what is no answer: {shown!r}") from error
        return _good(told)

    def leave(self) -> None:
        """Close the session, or end its process where it does not."""
        try:
            if self._process.poll() is None:
                self.ask("close")
                self._process.wait(timeout=LEAVE_S)
        except (RunnerError, subprocess.TimeoutExpired):
            pass
        finally:
            self._process.kill()
            self._process.wait()
            self._listener.join(LEAVE_S)
            for pipe in (self._process.stdin, self._process.stdout, self._errors):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _lost(self) -> SessionLost:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()[-ERROR_LINES:]
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return SessionLost(f"the process of session {self._number} {how}{': ' if lines else ''}{' '.join(lines)}"[:400])


def _heard(seat: Seat, wait_s: float) -> Answer | IpuResultsError:
    try:
        return seat.reply(wait_s)
    except SessionLost:
        raise
    except IpuResultsError as error:
        return error


def _good(told: Answer) -> Answer:
    """The answer, or the error that it tells, raised again as what it was."""
    if "error" not in told:
        return told
    kind = getattr(errors, told["error"], None)
    if not (isinstance(kind, type) and issubclass(kind, errors.IpuResultsError)):
        kind = RunnerError
    raise kind(told["message"], document=told["document"], place=told["place"])


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
        heard = [_heard(seat, wait_s) for seat in self.seats]
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
    """Open a session per spec. Raises what the backend raises, or SessionLost; nothing stays open then."""
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
