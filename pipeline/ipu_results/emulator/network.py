"""A network by built-in name, file or ONNX model, and its programs at each micro-batch, read once in a process."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from functools import cache
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from ipu_results.emulator.frontend import read_program
from ipu_results.emulator.operators import Program
from ipu_results.errors import ModelError, UnrecognisedModelError
from ipu_results.networks import NAMES, build

KEPT = 128  # programs, of some 100 kB each

_programs: OrderedDict[tuple[str, int], Program] = OrderedDict()


class Network:
    """`network(micro_batch)` is its program; `name` is how records and messages call it.

    `built_in` networks are without weights, `folder` is where the external data of a file lie.
    """

    def __init__(
        self, name: str, model: onnx.ModelProto, data: bytes, *, built_in: bool = False, folder: Path | None = None
    ) -> None:
        self.name, self.model, self.built_in, self.folder = name, model, built_in, folder
        self.digest = hashlib.sha256(data).hexdigest()

    def __call__(self, batch: int) -> Program:
        """Raises ModelError naming the network and the node."""
        key = (self.digest, batch)
        found = _programs.get(key) or self._read(batch)
        _programs[key] = found
        _programs.move_to_end(key)
        while len(_programs) > KEPT:
            _programs.popitem(last=False)
        return found

    def _read(self, batch: int) -> Program:
        try:
            return read_program(self.model, batch)
        except ModelError as error:
            raise type(error)(error.message, document=self.name, place=error.place) from error


def network(source: Network | onnx.ModelProto | Path | str) -> Network:
    """A built-in name goes before a file of that name. Raises UnrecognisedModelError."""
    if isinstance(source, Network):
        return source
    if isinstance(source, onnx.ModelProto):
        return Network(source.graph.name or "model", source, source.SerializeToString(deterministic=True))
    return _built_in(source) if isinstance(source, str) and source in NAMES else _of_file(Path(source))


@cache
def _built_in(name: str) -> Network:
    """By shape alone: kilobytes."""
    model = build(name)
    return Network(name, model, model.SerializeToString(deterministic=True), built_in=True)


def _of_file(path: Path) -> Network:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        known = ", ".join(NAMES)
        raise UnrecognisedModelError(
            f"is no file and no built-in network: one of {known}", document=str(path)
        ) from error
    except OSError as error:
        raise UnrecognisedModelError(f"cannot be read: {error.strerror or error}", document=str(path)) from error
    try:
        return Network(str(path), onnx.load_model_from_string(data), data, folder=path.parent)
    except DecodeError as error:
        raise UnrecognisedModelError("is no ONNX model", document=str(path)) from error
