"""A session as one writes it without the runner, told what to do as a worker is, and the transport to it.

`python -m benchmarks.runner_plain JSON` with the kind, the file and the images; the interpreter has what it needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipu_results.runner.backends import Session, SessionFacts
from ipu_results.runner.sessions import SessionPool
from ipu_results.runner.worker import WorkerServer, serve_request

ROOT = Path(__file__).resolve().parent.parent
TORCH, ONNXRUNTIME = "torch", "onnxruntime"
ERROR_LINES = 3


class Plain(Session):
    """ONNX Runtime on the CPU, no option given."""

    def __init__(self, model: str) -> None:
        import onnxruntime  # noqa: PLC0415

        self._session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        self._name = self._session.get_inputs()[0].name

    def run(self, images: Any) -> Any:
        return self._session.run(None, {self._name: images})[0]


class PlainTransport:
    """A plain session in a process of its own, where a worker would sit. Raises RuntimeError where it ends."""

    def __init__(self, python: str, kind: str, file: Path, images: Mapping[str, Any]) -> None:
        told = json.dumps({"kind": kind, "file": str(file), "images": {**images, "first": 0, "step": 1}})
        command = [python, "-m", "benchmarks.runner_plain", told]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True)

    def send(self, method: str, **params: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"method": method, "params": params}) + "\n")
        self._process.stdin.flush()

    def recv(self, timeout_s: float = 0.0) -> dict[str, Any]:  # noqa: ARG002
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        told: dict[str, Any] = json.loads(line) if line else {"message": f"ended with {self._process.wait()}"}
        if "message" in told:
            raise RuntimeError(f"plain session: {told['message']}")
        return told

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdin, self._process.stdout:
            self._process.kill()
            self._process.wait()


def plain_crew(python: str, kind: str, file: Path, images: Mapping[str, Any], overlap: bool) -> SessionPool:
    """One session; `overlap` is whether images are made ahead by a thread of their own."""
    transport = PlainTransport(python, kind, file, images)
    try:
        versions = transport.recv()["versions"]
    except BaseException:
        transport.close()
        raise
    return SessionPool([transport], SessionFacts("", "", kind, versions, "fp32"), virtual=False, overlap=overlap)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    told = json.loads(sys.argv[1])
    host = WorkerServer()
    host.images = told["images"]
    if told["kind"] == TORCH:
        import torch  # noqa: PLC0415

        from benchmarks.runner_torch import TorchSession  # noqa: PLC0415

        host.session, version = TorchSession(told["file"]), torch.__version__
    else:
        import onnxruntime  # noqa: PLC0415

        host.session, version = Plain(told["file"]), onnxruntime.__version__
    answers.write(json.dumps({"versions": version}) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(serve_request(host, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
