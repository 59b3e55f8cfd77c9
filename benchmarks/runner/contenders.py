"""The configurations that are compared, and how their sessions are opened."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from ipu_results.runner.backends import SessionSpec
from ipu_results.runner.sessions import SessionPool, open_sessions
from ipu_results.runner.workload import Workload
from onnx import numpy_helper

from benchmarks.report import Options
from benchmarks.runner.common import (
    IMAGES,
    NETWORK,
    QUICK_IMAGES,
    prepare_workloads,
    write_small_model,
)
from benchmarks.runner.plain_sessions import ONNXRUNTIME, TORCH, open_plain_session

DEVICES = {"onnxruntime": "cpu", "openvino": "CPU"}


@dataclass(frozen=True, slots=True)
class Contender:
    """A configuration.

    `plain` is one session with a library's defaults; `threads` are those of each session.

    With `overlap` a thread prepares the next images while the network runs.
    """

    backend: str
    precision: str
    sessions: int
    threads: int | None
    plain: bool = False
    overlap: bool = True

    @property
    def name(self) -> str:
        which = f"{self.backend} {'plain' if self.plain else self.precision}"
        return (
            f"{which}, {self.sessions} ×"
            f" {self.threads or 'all'}{'' if self.overlap else ', serial'}"
        )


def list_contenders(
    precisions: Mapping[str, Sequence[str]], sessions: Sequence[int], cores: int, torch: bool
) -> list[Contender]:
    """List the configurations whose sessions share all cores, or all but one, evenly; and the plain
    libraries.
    """
    tuned = [
        Contender(backend, precision, count, threads)
        for backend, some in precisions.items()
        for precision in some
        for count in sessions
        for threads in dict.fromkeys(max(1, (cores - spare) // count) for spare in (0, 1))
    ]
    libraries = (ONNXRUNTIME, TORCH) if torch else (ONNXRUNTIME,)
    plain = [
        Contender(library, "fp32", 1, None, True, overlap)
        for library in libraries
        for overlap in (True, False)
    ]
    return [*tuned, *plain]


@dataclass(frozen=True, slots=True)
class ContenderFactory:
    """Opens contenders: the workload by precision, the weights for torch, and the interpreter that
    has torch.
    """

    workloads: Mapping[str, Workload]
    weights: Path
    torch: Path | None

    def open_pool(self, contender: Contender, batches: Sequence[int]) -> SessionPool:
        """Open sessions.

        Raises BackendError where a backend is missing or does not compute in the precision.
        """
        fp32, count = self.workloads["fp32"], contender.sessions
        if contender.plain:
            is_torch = contender.backend == TORCH
            file, python = (
                (self.weights, str(self.torch)) if is_torch else (fp32.model.path, sys.executable)
            )
            backend = TORCH if is_torch else ONNXRUNTIME
            return open_plain_session(
                backend, file, fp32.images, overlap=contender.overlap, python=python
            )
        model = str(self.workloads["int8" if contender.precision == "int8" else "fp32"].model.path)
        micro = tuple(batch // count for batch in batches)
        device = DEVICES[contender.backend]
        specs = [
            SessionSpec(
                device, model, contender.precision, micro, contender.threads, count, session
            )
            for session in range(count)
        ]
        return open_sessions(contender.backend, specs, fp32.images, overlap=contender.overlap)


def prepare_factory(
    work: Path, options: Options, precisions: Sequence[str], batch: int
) -> ContenderFactory:
    """Write the model, images for the largest batch and, where torch is configured, the weights."""
    source, images = (write_small_model(work), QUICK_IMAGES) if options.quick else (NETWORK, IMAGES)
    workloads = prepare_workloads(source, precisions, work, images, batch)
    weights = work / "weights.npz"
    if options.torch is not None:
        tensors = onnx.load(workloads["fp32"].model.path).graph.initializer
        np.savez(weights, **{tensor.name: numpy_helper.to_array(tensor) for tensor in tensors})  # type: ignore[arg-type]
    return ContenderFactory(workloads, weights, options.torch)
