"""Small things to sweep: a network, pictures, a backend that fails as it is told to, and what a sweep told."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
from ipu_results.errors import BackendError, UnusableImagesError
from ipu_results.runner.asked import Asked
from ipu_results.runner.backends.base import Device, Facts, Session, Spec
from ipu_results.runner.plan import Plan, Visit
from PIL import Image

SIDE, CLASSES = 32, 7
TESTS = Path(__file__).resolve().parent
SHORT = {"least_rounds": 2, "most_rounds": 2, "block_s": 0.05, "iterations": 2, "warm_runs": 1}
PACE_S = 0.001  # of a batch on the odd device
ODD = "ipu_results.runner.backends.odd"


def tiny_model(path: Path, inputs: int = 1) -> Path:
    """A ResNeXt in small for 3 × 32 × 32 images, with a symbolic batch; with two inputs it is no image classifier."""
    import onnx  # noqa: PLC0415 (the workers of the odd device need none of it)
    from ipu_results.networks.builder import BatchNorm, GraphBuilder, WeightGenerator  # noqa: PLC0415

    graph = GraphBuilder(WeightGenerator(0))
    x, *more = [graph.add_input(name, (3, SIDE, SIDE)) for name in ("image", "other")[:inputs]]
    for other in more:
        x = graph.add_node("Add", "both", x, other)
    x = graph.add_node("Relu", "stem.relu", graph.add_convolution("stem", x, (3, 16), 3, stride=2, norm=BatchNorm()))
    x = graph.add_node("Relu", "body.relu", graph.add_convolution("body", x, (16, 16), 3, groups=4, norm=BatchNorm()))
    x = graph.add_node("Flatten", "flatten", graph.add_node("GlobalAveragePool", "pool", x))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(graph.build_model("tiny", graph.add_dense("classes", x, (16, CLASSES)), (CLASSES,)), path)
    return path


def pictures(folder: Path, modes: Iterable[str] = ("RGB",) * 5) -> Path:
    """A JPEG of each mode, all different; `broken` is one that ends too early."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for number, mode in enumerate(modes):
        path = folder / f"{number}-{mode}.jpg"
        pixels = (random.integers(0, 256, 3) + random.normal(0, 20, (40, 44, 3))).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).convert("RGB" if mode == "broken" else mode).save(path)
        if mode == "broken":
            path.write_bytes(path.read_bytes()[:200])
    return folder


class Told:
    """What a sweep told. `at` is called with the number of each visit, from 1 on, before that is measured."""

    def __init__(self, at: Callable[[int], object] = lambda _: None) -> None:
        self._at = at
        self.stages: list[str] = []
        self.visits: list[tuple[Visit, int, int, float | None]] = []
        self.warnings: list[str] = []

    def stage(self, what: str) -> None:
        self.stages.append(what)

    def visit(self, visit: Visit, done: int, total: int, left_s: float | None) -> None:
        self.visits.append((visit, done, total, left_s))
        self._at(len(self.visits))

    def warn(self, what: str) -> None:
        self.warnings.append(what)


def interrupted(number: int) -> Told:
    """Ctrl-C at the visit of this number."""

    def at(visit: int) -> None:
        if visit == number:
            raise KeyboardInterrupt

    return Told(at)


def killed(number: int) -> Told:
    """The sweep's own process is killed at the visit of this number."""
    return Told(lambda visit: visit == number and os.kill(os.getpid(), signal.SIGKILL))


def null_asked(batches: tuple[int, ...] = (2, 4, 6), sessions: int = 2, **more: Any) -> Asked:
    """`more` are the plan's; `options` the null device's."""
    options = more.pop("options", {"noise": 0.02})
    plan = Plan(batches, sessions, **{"budget_s": 20.0, **more})
    return Asked(Device("null", "null", "simulated", "null"), plan, "none", options=options)


def emulator_asked(model: Path, images: Path, batches: tuple[int, ...] = (2, 4)) -> Asked:
    plan = Plan(batches, 2, least_rounds=1, most_rounds=1)
    return Asked(Device("emulator", "c2", "emulated", "C2"), plan, str(model), images=str(images))


def cpu_asked(model: Path, images: Path | None, batches: tuple[int, ...] = (2, 4), sessions: int = 2) -> Asked:
    plan = Plan(batches, sessions, budget_s=0.0, **SHORT)
    folder = None if images is None else str(images)
    return Asked(Device("onnxruntime", "cpu", "cpu", "a CPU"), plan, str(model), "fp32", threads=1, images=folder)


def odd_asked(python: str, batches: tuple[int, ...] = (2, 4), **options: Any) -> Asked:
    plan = Plan(batches, 2, budget_s=0.0, **SHORT)
    return Asked(Device("odd", "odd", "cpu", "an odd device"), plan, "none", python=python, options=options)


class OddSession(Session):
    """Takes a millisecond a batch and gives the first pixels. The option `when` (open, prepare or run) says in what it
    does what the option `do` says, in the session `session` or in all, and if the file `flag` exists or none is told.
    """

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self.facts = Facts("odd", "odd", "odd", "1", "fp32", load_s=0.0)
        self._perhaps("open")

    def prepare(self, micro_batch: int, kind: str) -> None:  # noqa: ARG002
        self._perhaps("prepare")

    def run(self, images: Any) -> Any:
        self._perhaps("run")
        time.sleep(PACE_S)
        return None if images is None else images.reshape(len(images), -1)[:, :CLASSES]

    def _perhaps(self, when: str) -> None:
        told = self._spec.options
        meant = told.get("when") == when and told.get("session") in (None, self._spec.session)
        if meant and ("flag" not in told or Path(told["flag"]).exists()):
            DEEDS[told["do"]]()


def _refuse() -> None:
    raise BackendError("takes no such batch", document="tiny", place="odd")


def _miss_image() -> None:
    raise UnusableImagesError("cannot be read", document="one.jpg")


def _fail() -> None:
    raise ValueError("not one of ours")


def _chatter() -> None:
    print("printed by Python", flush=True)
    os.write(1, b"written by a library\n")
    os.system("echo printed by a child; cat")


DEEDS: dict[str, Callable[[], object]] = {
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "hang": lambda: time.sleep(600),
    "refuse": _refuse,
    "miss-image": _miss_image,
    "fail": _fail,
    "chatter": _chatter,
}


def install_odd() -> None:
    """Make the odd backend known in this process, as `odd`."""
    sys.modules[ODD] = SimpleNamespace(COMPUTES=False, open=OddSession, probe=list)  # type: ignore[assignment]


def odd_python(folder: Path, first: str = "") -> str:
    """An interpreter whose worker knows the odd backend; `first` is what it does before that."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "odd.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(TESTS)!r})\n{first}\n"
        "from runner_support import install_odd\nfrom ipu_results.runner.worker import main\ninstall_odd()\nmain()\n",
        encoding="utf-8",
    )
    launcher = folder / "python"
    launcher.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, str(program)])}\n", encoding="utf-8")
    launcher.chmod(0o755)
    return str(launcher)


def children() -> set[int]:
    """Processes that this one started and that still run."""
    return {one.pid for one in psutil.Process().children(recursive=True) if runs(one.pid)}


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(true: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether it became true within that time, which only a failing test takes up."""
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.01)
    return found
