"""A backend that fails as its options say, for tests of sessions; imports little, so that workers
start quickly.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ipu_results.errors import BackendError, UnusableImagesError
from ipu_results.runner.backends import (
    BackendTraits,
    Session,
    SessionFacts,
    SessionSpec,
    register_backend,
)

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = 7
BATCH_S = 0.001


class FaultySession(Session):
    """Takes a millisecond a batch and returns the first pixels. Fails as its options say.

    It does `do` in `when` (open, prepare or run), in the session `session` or in all, if the file
    `flag` exists or no `flag` is set.
    """

    def __init__(self, spec: SessionSpec) -> None:
        self._spec = spec
        self.facts = SessionFacts("faulty", "faulty", "faulty", "1", "fp32", load_s=0.0)
        self._fail_if("open")

    def prepare(self, micro_batch: int, kind: str) -> None:  # noqa: ARG002
        self._fail_if("prepare")

    def run(self, images: Any) -> Any:
        self._fail_if("run")
        time.sleep(BATCH_S)
        return None if images is None else images.reshape(len(images), -1)[:, :OUTPUTS]

    def _fail_if(self, when: str) -> None:
        options = self._spec.options
        due = options.get("when") == when and options.get("session") in (None, self._spec.session)
        if due and ("flag" not in options or Path(options["flag"]).exists()):
            if options["do"] == "refuse-once":
                # of two sessions the first may have removed it
                Path(options["flag"]).unlink(missing_ok=True)
            FAULTS[options["do"].removesuffix("-once")]()


def _raise(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def _print_noise() -> None:
    print("printed by Python", flush=True)
    os.write(1, b"written by a library\n")
    os.system("echo printed by a child; cat")


FAULTS: dict[str, Callable[[], object]] = {
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "hang": lambda: time.sleep(600),
    "refuse": _raise(BackendError("has no room for this batch", document="tiny", place="faulty")),
    "miss-image": _raise(UnusableImagesError("cannot be read", document="one.jpg")),
    "fail": _raise(ValueError("not one of ours")),
    "print": _print_noise,
}


def register_faulty() -> None:
    """Register the faulty backend in this process, as `faulty`."""
    traits = BackendTraits(computes=False)
    backend = SimpleNamespace(NAME="faulty", TRAITS=traits, open=FaultySession, probe=list)
    register_backend("faulty", backend)


PROGRAM = """\
import sys
sys.path.insert(0, {root!r})
{first}
from tests.runner.faulty_backend import register_faulty
from ipu_results.runner.worker import main
register_faulty()
main()
"""


def write_faulty_python(folder: Path, first: str = "") -> str:
    """Write an interpreter whose worker knows the faulty backend and runs the code `first` before."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "faulty.py"
    program.write_text(PROGRAM.format(root=str(ROOT), first=first), encoding="utf-8")
    launcher = folder / "python"
    command = shlex.join([sys.executable, str(program)])
    launcher.write_text(f"#!/bin/sh\nexec {command}\n", encoding="utf-8")
    launcher.chmod(0o755)
    return str(launcher)
