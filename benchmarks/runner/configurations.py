"""The best configuration of this CPU that the runner finds, beside torch eager, plain ONNX Runtime and the peak."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from ipu_results.errors import BackendError
from ipu_results.runner.backends import SessionSpec
from ipu_results.runner.blocks import Block
from ipu_results.runner.concurrent_sweeps import announce_sweep
from ipu_results.runner.config import count_cores
from ipu_results.runner.estimate import DEFAULT, estimate
from ipu_results.runner.observer import BlockObservation, Observer
from ipu_results.runner.plan import Visit
from ipu_results.runner.sessions import SessionPool, open_sessions
from onnx import numpy_helper

from benchmarks.options import Options
from benchmarks.report import Report, shown
from benchmarks.runner_compared import Compared, Contender, Scanned, chosen, contenders, reported
from benchmarks.runner_plain import ONNXRUNTIME, TORCH, plain_crew
from benchmarks.runner_support import FLOP, NETWORK, PHOTOS, QUICK_PHOTOS, Stage, measured, set_up, small_model, warmed

BATCHES, SESSIONS = (2, 8), (1, 2)
PRECISIONS = {"onnxruntime": ("fp32", "int8"), "openvino": ("fp32", "bf16", "int8")}
DEVICES = {"onnxruntime": "cpu", "openvino": "CPU"}
SAME = 0.9999  # least cosine of torch's outputs with the reference's
SMALL_FLOP = 2e6  # of the small network, roughly


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured. Seconds and iterations are the least of a block; `side` is that of the square matrices."""

    batches: tuple[int, ...] = BATCHES
    sessions: tuple[int, ...] = SESSIONS
    scan_s: float = 1.5
    scan_runs: int = 3
    rounds: int = 6
    block_s: float = 2.0
    iterations: int = 4
    side: int = 4096
    warm_runs: int = 2
    precisions: Mapping[str, Sequence[str]] = field(default_factory=lambda: PRECISIONS)


QUICK = Size((2,), (2,), 0.02, 1, 2, 0.02, 1, 256, 1, {"onnxruntime": ("fp32",), "openvino": ("int8",)})


@dataclass(frozen=True, slots=True)
class Place:
    """Where crews are opened: the network in its precisions, its weights for torch, and torch's interpreter."""

    stage: Stage
    weights: Path
    torch: Path | None

    def crew(self, one: Contender, batches: Sequence[int]) -> SessionPool:
        """Raises BackendError where the backend is not here or does not compute as asked."""
        images = self.stage.images
        if one.backend == TORCH:
            return plain_crew(str(self.torch), TORCH, self.weights, images, one.overlap)
        if one.plain:
            return plain_crew(sys.executable, ONNXRUNTIME, self.stage.models["fp32"].path, images, one.overlap)
        model = self.stage.models["int8" if one.precision == "int8" else "fp32"]
        micro = tuple(batch // one.sessions for batch in batches)
        specs = [
            SessionSpec(DEVICES[one.backend], str(model.path), one.precision, micro, one.threads, one.sessions, session)
            for session in range(one.sessions)
        ]
        return open_sessions(one.backend, specs, images, overlap=one.overlap)


def run(options: Options) -> Report:
    size, load = QUICK if options.quick else Size(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, announce_sweep(f"benchmark-{os.getpid()}") as companions:
        place = _place(Path(folder), options, size)
        observer = Observer(companions, None, "power is not looked at here", lambda _: None)
        scanned, left_out = scan(place, size)
        found, peak = compare(place, size, chosen(scanned), observer)
    report = reported(scanned, found, peak, SMALL_FLOP if options.quick else FLOP[NETWORK])
    report.notes += [f"Left out: {one}." for one in left_out]
    if options.torch is None:
        report.notes.append("NOT COMPARED with torch: name an interpreter that has it with --torch PYTHON.")
    report.notes.append(
        f"Load of the machine over the last minute, before and after: {shown(load)}, {shown(os.getloadavg()[0])}."
    )
    return report


def scan(place: Place, size: Size) -> tuple[list[Scanned], list[str]]:
    """One short block of every contender at every batch size; and which cannot be had here, and why."""
    found: list[Scanned] = []
    left_out: list[str] = []
    for one in contenders(size.precisions, size.sessions, count_cores(), place.torch is not None):
        try:
            found += _scanned(place, size, one)
        except BackendError as error:
            left_out.append(f"{one.name}: {error}")
    return found, left_out


def compare(
    place: Place, size: Size, named: Sequence[tuple[str, Scanned]], observer: Observer
) -> tuple[list[Compared], list[float]]:
    """Interleaved rounds of the chosen ones, all open at once, and GFLOP/s of a matrix product in each round."""
    blocks: dict[Scanned, list[Block]] = {one: [] for _, one in named}
    peak: list[float] = []
    with ExitStack() as stack:
        crews: dict[Scanned, SessionPool] = {}
        for one in blocks:
            crews[one] = place.crew(one.contender, [one.batch])
            stack.callback(crews[one].close)
            warmed(crews[one], one.batch, size.warm_runs)
        for number in range(size.rounds):
            peak.append(max(product(size.side) for _ in range(2)))
            for one in random.Random(number).sample(list(crews), len(crews)):
                visit = Visit(number, one.batch, "amortised")
                seen = observer.observe()
                blocks[one].append(measured(crews[one], visit, size.block_s, size.iterations, seen, len(blocks[one])))
    probes = [probe for some in blocks.values() for block in some for probe in block.probe_ms or ()]
    return [Compared(name, one, estimate(blocks[one], DEFAULT, min(probes)), blocks[one]) for name, one in named], peak


def product(side: int) -> float:
    """GFLOP/s of one product of square fp32 matrices, by numpy's BLAS on all cores."""
    one, two = (np.random.default_rng(seed).random((side, side), np.float32) for seed in range(2))
    start = time.perf_counter()
    np.matmul(one, two)
    return 2 * side**3 / (time.perf_counter() - start) / 1e9


def _scanned(place: Place, size: Size, one: Contender) -> list[Scanned]:
    crew = place.crew(one, size.batches)
    found = []
    try:
        for batch in size.batches:
            crew.prepare(batch, "amortised")
            cosine = place.stage.agrees(crew.compute_outputs(batch), one.sessions)
            if one.backend == TORCH and not (cosine and cosine >= SAME):
                raise RuntimeError(f"torch computes another network: the outputs' cosine is {cosine}")
            warmed(crew, batch, size.warm_runs)
            visit = Visit(0, batch, "amortised")
            block = measured(crew, visit, size.scan_s, size.scan_runs, nullcontext(BlockObservation()))
            precision = crew.facts.compute_precision
            found.append(Scanned(one, batch, block.window.throughput, cosine, precision, crew.facts.threads))
    finally:
        crew.close()
    return found


def _place(work: Path, options: Options, size: Size) -> Place:
    source = small_model(work) if options.quick else NETWORK
    precisions = dict.fromkeys(["fp32", *("int8" for some in size.precisions.values() if "int8" in some)])
    photos = QUICK_PHOTOS if options.quick else PHOTOS
    stage = set_up(source, list(precisions), work, photos, max(size.batches))
    weights = work / "weights.npz"
    if options.torch is not None:
        tensors = onnx.load(stage.models["fp32"].path).graph.initializer
        np.savez(weights, **{one.name: numpy_helper.to_array(one) for one in tensors})  # type: ignore[arg-type]
    return Place(stage, weights, options.torch)
