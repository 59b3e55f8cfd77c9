"""Small things to sweep: a network, images, backends for tests, and a record of what a sweep
reported.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pyarrow.parquet as pq
from ipu_results.runner import Progress
from ipu_results.runner.backends import Device, register_backend
from ipu_results.runner.config import SweepConfig, SweepPlan, SweepTask, Visit
from ipu_results.runner.sweep import SweepResult, run_task
from PIL import Image

from benchmarks.runner import null_backend

if TYPE_CHECKING:
    import onnx

SIDE = 16
CLASSES = 10
SHORT = {"least_rounds": 2, "most_rounds": 2, "block_s": 0.05, "iterations": 2, "warm_runs": 1}

register_backend("null", null_backend)


def build_tiny_model(
    side: int = SIDE, batch: int | None = None, inputs: int = 1
) -> onnx.ModelProto:
    """Build a small ResNeXt: a grouped convolution with a shortcut.

    With two inputs it is not a classifier.
    """
    # slow
    from ipu_results.emulator.networks.builder import BatchNorm, GraphBuilder  # noqa: PLC0415

    graph = GraphBuilder(0, batch=batch)
    x = graph.add_input("image", (3, side, side))
    if inputs == 2:
        x = graph.add_node("Add", "both", x, graph.add_input("other", (3, side, side)))
    norm = BatchNorm()
    x = graph.add_convolution("stem", x, (3, 16), 3, stride=2, norm=norm)
    x = graph.add_node("Relu", "stem.relu", x)
    y = graph.add_convolution("body", x, (16, 16), 3, groups=4, norm=norm)
    y = graph.add_node("Relu", "body.relu", y)
    y = graph.add_convolution("expand", y, (16, 16), norm=BatchNorm(scale=0.5))
    x = graph.add_node("Add", "add", y, x)
    x = graph.add_node("Flatten", "flatten", graph.add_node("GlobalAveragePool", "pool", x))
    x = graph.add_dense("classes", x, (16, CLASSES))
    return graph.build_model("tiny", x, (CLASSES,))


def write_tiny_model(path: Path) -> Path:
    import onnx  # noqa: PLC0415 (slow)

    onnx.save(build_tiny_model(), path)
    return path


def parse_model(text: str) -> onnx.ModelProto:
    """Read a graph as onnx prints it, without its header."""
    import onnx.parser  # noqa: PLC0415 (slow)

    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> net {text}')


def draw_images(count: int, seed: int = 0) -> np.ndarray:
    """Draw random images of random contrast, so that their outputs differ."""
    random = np.random.default_rng(seed)
    colours = random.normal(size=(count, 3, 1, 1))
    return (colours + random.normal(size=(count, 3, SIDE, SIDE))).astype(np.float32)


def write_images(folder: Path, modes: Iterable[str] = ("RGB",) * 5) -> Path:
    """Write a JPEG of each mode, all different; `broken` is one that ends too early."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for number, mode in enumerate(modes):
        path = folder / f"{number}-{mode}.jpg"
        pixels = random.integers(0, 256, 3) + random.normal(0, 20, (40, 44, 3))
        image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        image.convert("RGB" if mode == "broken" else mode).save(path)
        if mode == "broken":
            path.write_bytes(path.read_bytes()[:200])
    return folder


class Recorder(Progress):
    """Records what a sweep reports.

    `at` is called with the number of each visit, from 1 on, before it is measured.
    """

    def __init__(self, at: Callable[[int], object] = lambda _: None) -> None:
        self._at = at
        self.reports: list[tuple[Visit, int, int, float]] = []
        self.warnings: list[str] = []

    @property
    def visits(self) -> list[Visit]:
        return [visit for visit, *_ in self.reports]

    def visit(self, visit: Visit, done: int, total: int, left_s: float) -> None:
        self.reports.append((visit, done, total, left_s))
        self._at(len(self.reports))

    def warn(self, what: str) -> None:
        self.warnings.append(what)


def interrupt_at(number: int) -> Recorder:
    """Press Ctrl-C at the visit of this number."""

    def at(visit: int) -> None:
        if visit == number:
            raise KeyboardInterrupt

    return Recorder(at)


def null_task(batches: tuple[int, ...] = (2, 4, 6), sessions: int = 2, **more: Any) -> SweepTask:
    """Return a task on the simulated device.

    `more` are the plan's fields; `options` the device's.
    """
    options = more.pop("options", {"noise": 0.02})
    plan = SweepPlan(batches, sessions, **{"budget_s": 20.0, **more})
    device = Device("null", "null", "simulated", "null")
    return SweepTask(device, plan, SweepConfig(model="none", options=options))


def emulator_task(model: Path, images: Path, batches: tuple[int, ...] = (2, 4)) -> SweepTask:
    plan = SweepPlan(batches, 2, least_rounds=1, most_rounds=1)
    config = SweepConfig(model=str(model), images=str(images))
    return SweepTask(Device("emulator", "c2", "emulated", "C2"), plan, config)


def cpu_task(
    model: Path, images: Path | None, batches: tuple[int, ...] = (2, 4), sessions: int = 2
) -> SweepTask:
    plan = SweepPlan(batches, sessions, budget_s=0.0, **SHORT)
    folder = str(images) if images else None
    config = SweepConfig(model=str(model), precision="fp32", images=folder)
    return SweepTask(Device("onnxruntime", "cpu", "cpu", "a CPU"), plan, config, threads=1)


def faulty_task(python: str, batches: tuple[int, ...] = (2, 4), **options: Any) -> SweepTask:
    plan = SweepPlan(batches, 2, budget_s=0.0, **SHORT)
    config = SweepConfig(model="none", python=python, options=options)
    return SweepTask(Device("faulty", "faulty", "cpu", "a faulty device"), plan, config)


def list_children() -> set[int]:
    """Return the processes that this one started and that still run."""
    children = psutil.Process().children(recursive=True)
    return {child.pid for child in children if is_running(child.pid)}


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Report whether the condition became true within that time, which only a failing test takes."""
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return met


def sweep(task: SweepTask, out: Path) -> SweepResult:
    return run_task(task, out, Recorder())


def read_record(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "record.json").read_text(encoding="utf-8")))


def read_blocks(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "blocks.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def read_points(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "points.csv").read_text(encoding="utf-8").splitlines()))


def read_stamps(folder: Path) -> list[tuple[int, ...]]:
    return [tuple(row.values()) for row in pq.read_table(folder / "stamps.parquet").to_pylist()]
