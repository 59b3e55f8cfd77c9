"""Where a session sits: in this process, or in one of its own that is asked and answers by lines of JSON."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

from ipu_results import errors
from ipu_results.errors import IpuResultsError, RunnerError, SessionLostError
from ipu_results.runner.worker import Host, answer

ANSWER_S = 900.0  # the longest that compiling or loading may take
LEAVE_S = 10.0  # the longest that closing a session may take
ERROR_LINES = 3

Answer = dict[str, Any]


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
    """A session in a process of its own. Raises SessionLostError when that dies or does not answer."""

    def __init__(self, number: int, python: str) -> None:
        self._number = number
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it leaves)
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        try:
            self._process = subprocess.Popen(
                [python, "-m", "ipu_results.runner.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,  # Ctrl-C is told to the sweep alone, which ends its sessions
            )
        except OSError as error:
            self._errors.close()
            raise SessionLostError(f"cannot be started: {error.strerror}", document=python) from error
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
            raise SessionLostError(message) from error
        if not line.endswith(b"\n"):
            raise self._lost()
        try:
            told: Answer = json.loads(line)
        except ValueError as error:
            shown = line.decode(errors="replace").strip()[:100]
            raise SessionLostError(f"session {self._number} said what is no answer: {shown!r}") from error
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

    def _lost(self) -> SessionLostError:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()[-ERROR_LINES:]
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return SessionLostError(
            f"the process of session {self._number} {how}{': ' if lines else ''}{' '.join(lines)}"[:400]
        )


def hear(seat: Seat, wait_s: float) -> Answer | IpuResultsError:
    try:
        return seat.reply(wait_s)
    except SessionLostError:
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
