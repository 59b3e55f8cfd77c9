"""Sessions as one writes them without the runner: ONNX Runtime with default options, and torch
eager.

Each is served in a process of its own like any other session of a sweep, by an interpreter that has
the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ipu_results.runner import worker
from ipu_results.runner.backends import (
    BackendTraits,
    Session,
    SessionFacts,
    SessionSpec,
    register_backend,
)
from ipu_results.runner.sessions import SessionPool, Subprocess

TORCH, ONNXRUNTIME = "torch", "onnxruntime"


class PlainProcess(Subprocess):
    """A worker that knows the plain backends only."""

    MODULE = "benchmarks.runner.plain_sessions"


class PlainSession(Session):
    """ONNX Runtime on the CPU with default options."""

    def __init__(self, spec: SessionSpec) -> None:
        import onnxruntime  # noqa: PLC0415  (the interpreter with torch does not have it)

        self.facts = SessionFacts("", "", ONNXRUNTIME, onnxruntime.__version__, "fp32")
        self._session = onnxruntime.InferenceSession(spec.model, providers=["CPUExecutionProvider"])
        self._name = self._session.get_inputs()[0].name

    def run(self, images: Any) -> Any:
        return self._session.run(None, {self._name: images})[0]


def open_plain_session(
    backend: str, file: Path, images: Mapping[str, Any], *, overlap: bool, python: str
) -> SessionPool:
    """Open one session: a model in ONNX Runtime, or a file of weights in torch."""
    transport = PlainProcess(0, python)
    try:
        spec = asdict(SessionSpec("cpu", str(file)))
        transport.send("open", backend=backend, spec=spec, images={**images, "first": 0, "step": 1})
        facts = SessionFacts(**transport.recv()["facts"])
    except BaseException:
        transport.close()
        raise
    return SessionPool([transport], facts, virtual=False, overlap=overlap)


def open_torch(spec: SessionSpec) -> Session:
    from benchmarks.runner.torch_resnext import TorchSession  # noqa: PLC0415

    return TorchSession(spec)


if __name__ == "__main__":
    register_backend(ONNXRUNTIME, SimpleNamespace(TRAITS=BackendTraits(), open=PlainSession))
    register_backend(TORCH, SimpleNamespace(TRAITS=BackendTraits(), open=open_torch))
    worker.main()
