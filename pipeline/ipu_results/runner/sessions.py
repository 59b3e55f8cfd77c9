"""The sessions of a sweep together, and what is observed around a block of theirs: a speed probe
before and after, CPU load, power, other sweeps on the machine.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from ipu_results import errors
from ipu_results.errors import IpuResultsError, RunnerError, SessionLostError
from ipu_results.runner.backends import (
    Kind,
    PredictedPoint,
    SessionFacts,
    SessionSpec,
    load_backend,
)
from ipu_results.runner.environment import ConcurrentSweeps, compute_load, read_usage, run_probe
from ipu_results.runner.estimate import NS, Stamps
from ipu_results.runner.power import PowerMeter
from ipu_results.runner.worker import WorkerServer, serve_request


@dataclass
class Observation:
    """The observed fields of a `Block`."""

    probe_ms: tuple[float, float] | None = None
    foreign_cpu: float | None = None
    steal: float | None = None
    power_w: float | None = None
    power_reason: str | None = None
    others: int = 0


@dataclass
class Observer:
    """Observes the machine while blocks run. `warn` is called once for each other sweep on it."""

    concurrent: ConcurrentSweeps
    meter: PowerMeter | None
    meter_reason: str
    warn: Callable[[str], None]
    _known: set[str] = field(default_factory=set)

    @contextmanager
    def observe(self) -> Iterator[Observation]:
        """Observe the block that runs in the `with`; the observation is complete when it ends."""
        observation = Observation(power_reason=self.meter_reason)
        before = _probe_speed()
        usage = read_usage()
        if self.meter:
            self.meter.start()
        try:
            yield observation
        finally:
            if self.meter:
                observation.power_w = self.meter.stop()
                observation.power_reason = self.meter.reason
        load = compute_load(usage, read_usage())
        observation.foreign_cpu = load.foreign_cpu
        observation.steal = load.steal
        observation.probe_ms = (before, _probe_speed())
        observation.others = self._count_others()

    def _count_others(self) -> int:
        others = self.concurrent.list_others()
        for run_id in others:
            if run_id not in self._known:
                self._known.add(run_id)
                self.warn(
                    f"another sweep runs on this machine: {run_id}; blocks measured meanwhile are"
                    " marked as suspect"
                )
        return len(others)

    def close(self) -> None:
        if self.meter:
            self.meter.close()


def _probe_speed() -> float:
    """Return the better of two runs: the first after a wait meets cold caches and a low clock."""
    return min(run_probe(), run_probe())


REPLY_TIMEOUT_S = 900.0  # the longest that compiling or loading may take
# a session that is asked to close ends by itself, or is killed after this
CLOSE_TIMEOUT_S = 10.0
SETTLED = 0.05  # two medians of warm-up runs that differ by less agree
# a device that never settles is measured all the same, and its row says so
MAX_WARM_SETS = 8
LEAD_S = 0.01  # from the request to the start of a block, so that all sessions have it in time
# of what a lost process wrote: the last ones say why it ended
ERROR_LINES = 3
MAX_LOSS = 400  # characters of the message of a lost session
MAX_SHOWN = 100  # of an invalid reply

Reply = dict[str, Any]  # of JSON
SessionStamps = tuple[tuple[Stamps, ...], ...]  # by session and iteration
# for an interpreter that has PopART and not this package
SOURCE_ROOT = Path(__file__).resolve().parents[2]


class InProcess:
    """A session in this process. A request is sent, its reply comes later."""

    def __init__(self) -> None:
        self._server = WorkerServer()
        self._reply = Reply()

    def send(self, method: str, **params: object) -> None:
        self._reply = serve_request(self._server, {"method": method, "params": params})

    def recv(self, timeout_s: float = REPLY_TIMEOUT_S) -> Reply:  # noqa: ARG002
        return _raise_error(self._reply)

    def close(self) -> None:
        self.send("close")


class Subprocess:
    """A session in a process of its own.

    Raises SessionLostError when that dies or does not reply.
    """

    MODULE = "ipu_results.runner.worker"

    def __init__(self, number: int, python: str) -> None:
        self._number = number
        # a pipe that nobody reads would fill up and stop the process
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the session)
        path = str(SOURCE_ROOT)
        if os.environ.get("PYTHONPATH"):
            path += os.pathsep + os.environ["PYTHONPATH"]
        try:
            self._process = subprocess.Popen(
                [python, "-m", self.MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C reaches the sweep alone, which ends its sessions
            )
        except OSError as error:
            self._errors.close()
            raise SessionLostError(
                f"cannot be started: {error.strerror}", document=python
            ) from error
        self._lines: queue.Queue[bytes] = queue.Queue()
        # a pipe has no read with a time limit on every system, a queue has
        self._reader = Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, method: str, **params: object) -> None:
        assert self._process.stdin is not None
        request = json.dumps({"method": method, "params": params})
        try:
            self._process.stdin.write(request.encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._describe_loss() from error

    def recv(self, timeout_s: float = REPLY_TIMEOUT_S) -> Reply:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty as error:
            raise SessionLostError(
                f"session {self._number} has not replied for {timeout_s:.0f} s"
            ) from error
        if not line.endswith(b"\n"):  # the end of the output, perhaps in the middle of a reply
            raise self._describe_loss()
        try:
            reply: Reply = json.loads(line)
        except ValueError as error:
            shown = line.decode(errors="replace").strip()[:MAX_SHOWN]
            raise SessionLostError(
                f"session {self._number} sent an invalid reply: {shown!r}"
            ) from error
        return _raise_error(reply)

    def close(self) -> None:
        """Close the session, or kill its process where it does not end."""
        try:
            if self._process.poll() is None:
                self.send("close")
                self._process.wait(timeout=CLOSE_TIMEOUT_S)
        except (RunnerError, subprocess.TimeoutExpired):
            pass
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join(CLOSE_TIMEOUT_S)
            for pipe in (self._process.stdin, self._process.stdout, self._errors):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _describe_loss(self) -> SessionLostError:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        text = f"the process of session {self._number} ended with {code}"
        if code < 0:
            name = signal.Signals(-code).name
            text = f"the process of session {self._number} was killed by {name}"
        if lines:
            text += f": {' '.join(lines[-ERROR_LINES:])}"
        return SessionLostError(text[:MAX_LOSS])


SessionTransport = InProcess | Subprocess


def _raise_error(reply: Reply) -> Reply:
    """Return the reply, or raise the error that it describes as what it was."""
    if "error" not in reply:
        return reply
    kind = getattr(errors, reply["error"], None)
    if not (isinstance(kind, type) and issubclass(kind, IpuResultsError)):
        kind = RunnerError
    raise kind(reply["message"], document=reply["document"], place=reply["place"])


class Prepared(NamedTuple):
    """The seconds that it took to make ready for a batch, and what is predicted for it."""

    seconds: float
    predicted: PredictedPoint


class WarmUp(NamedTuple):
    """The runs of each session until they settled or gave up, and the seconds of a run then."""

    runs: int
    settled: bool
    batch_s: float


@dataclass
class SessionPool:
    """All sessions of a sweep, which share each batch evenly.

    `overlap` prepares the images of streams ahead.
    """

    transports: Sequence[SessionTransport]
    facts: SessionFacts
    virtual: bool
    overlap: bool
    batches_per_step: int = 1
    _clock: int = 0

    def prepare(self, batch: int, kind: Kind) -> Prepared:
        """Make ready for a batch."""
        micro_batch = batch // len(self.transports)
        replies = self._request_all("prepare", micro_batch=micro_batch, kind=kind)
        self.batches_per_step = replies[0]["steps"]
        seconds = max(reply["seconds"] for reply in replies)
        return Prepared(seconds, replies[0]["predicted"])

    def warm_up(self, set_runs: int) -> WarmUp:
        """Run until the medians of two sets in turn agree."""
        sets = 1
        settled = False
        now = self._run_warm_set(set_runs)
        while not settled and sets < MAX_WARM_SETS:
            before = now
            now = self._run_warm_set(set_runs)
            settled = abs(now - before) <= SETTLED * before
            sets += 1
        return WarmUp(sets * set_runs, settled, now)

    def _run_warm_set(self, runs: int) -> float:
        """Return the median seconds of a run."""
        seconds = []
        for session in self.run_stream(0.0, runs):
            for stamps in session:
                seconds.append((stamps[-1] - stamps[0]) / NS)
        return median(seconds)

    def run_stream(self, seconds: float, min_batches: int) -> SessionStamps:
        """Run batch after batch on every session, started together."""
        timeout_s = REPLY_TIMEOUT_S + 10 * seconds
        return self._run_block(
            timeout_s, seconds=seconds, min_batches=min_batches, overlap=self.overlap
        )

    def run_isolated(self, seconds: float, min_batches: int) -> SessionStamps:
        """Run one batch at a time: the next one begins when all sessions have finished theirs."""
        stamps: list[list[Stamps]] = [[] for _ in self.transports]
        until = self._next_start() + seconds * NS
        while len(stamps[0]) < min_batches or self._now() < until:
            batch = self._run_block(REPLY_TIMEOUT_S, seconds=0, min_batches=1, overlap=False)
            for session, iterations in enumerate(batch):
                stamps[session] += iterations
        return tuple(map(tuple, stamps))

    def compute_outputs(self, batch: int) -> np.ndarray:
        """Return the outputs for the first images, session by session."""
        count = batch // len(self.transports)
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/{number}.npy" for number in range(len(self.transports))]
            for transport, file in zip(self.transports, files, strict=True):
                transport.send("write_outputs", count=count, file=file)
            self._receive_all(REPLY_TIMEOUT_S)
            return np.concatenate([np.load(file) for file in files])

    def close(self) -> None:
        for transport in self.transports:
            transport.close()

    def _now(self) -> int:
        return self._clock if self.virtual else time.perf_counter_ns()

    def _next_start(self) -> int:
        return self._clock if self.virtual else time.perf_counter_ns() + int(LEAD_S * NS)

    def _run_block(self, timeout_s: float, **params: object) -> SessionStamps:
        replies = self._request_all("run_block", timeout_s, at=self._next_start(), **params)
        self._clock = max(reply["clock"] for reply in replies)
        sessions = []
        for reply in replies:
            # JSON has lists
            sessions.append(tuple(map(tuple, reply["stamps"])))
        return tuple(sessions)

    def _request_all(
        self, method: str, timeout_s: float = REPLY_TIMEOUT_S, **params: object
    ) -> list[Reply]:
        for transport in self.transports:
            transport.send(method, **params)
        return self._receive_all(timeout_s)

    def _receive_all(self, timeout_s: float) -> list[Reply]:
        """Receive the reply of every session, so that none is left for the next request."""
        replies: list[Reply] = []
        failure: IpuResultsError | None = None
        for transport in self.transports:
            try:
                replies.append(transport.recv(timeout_s))
            # the others may wait for it without end, and the pool cannot go on
            except SessionLostError:
                raise
            except IpuResultsError as error:
                # the first one; the others often follow from it
                failure = failure or error
        if failure:
            raise failure
        return replies


def open_sessions(
    backend: str,
    specs: Sequence[SessionSpec],
    images: Mapping[str, Any] | None,
    *,
    overlap: bool,
    python: str = sys.executable,
) -> SessionPool:
    """Open a session per spec; session n uses every n-th image.

    Raises what the backend raises, or SessionLostError; no process stays behind then.
    """
    virtual = load_backend(backend).TRAITS.virtual
    transports: list[SessionTransport] = []
    with ExitStack() as opened:
        for number, spec in enumerate(specs):
            transport = InProcess() if virtual else Subprocess(number, python)
            opened.callback(transport.close)
            transports.append(transport)
            share = None
            if images is not None:
                share = {**images, "first": number, "step": len(specs)}
            transport.send("open", backend=backend, spec=asdict(spec), images=share)
        replies = [transport.recv() for transport in transports]
        # all are open: they are closed with the pool
        opened.pop_all()
    return SessionPool(transports, SessionFacts(**replies[0]["facts"]), virtual, overlap)
