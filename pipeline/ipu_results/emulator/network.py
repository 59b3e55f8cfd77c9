"""Load a network by built-in name, file or ONNX model, and read its program at each micro-batch once a process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from ipu_results.emulator.frontend import Shape, fix_shapes, read_program, select_data_inputs
from ipu_results.emulator.operators import Program
from ipu_results.errors import ModelError, UnrecognisedModelError
from ipu_results.networks import ALL_NAMES, build

MAX_PROGRAMS = 128  # kept in memory, about 100 kB each


@dataclass(frozen=True)
class Network:
    """A network that programs are read from: `network(micro_batch)` is its Program.

    `name` is that of records and messages. `built_in` networks are without weights. `folder` holds the external data of
    a file. `batch` is the batch size that its given shapes name.
    """

    name: str
    model: onnx.ModelProto = field(compare=False, repr=False)
    digest: str
    built_in: bool = False
    folder: Path | None = None
    batch: int | None = None

    def __call__(self, batch: int) -> Program:
        """Read the program at a micro-batch. Raises ModelError naming the network and the node."""
        return _read(self, batch)


@lru_cache(maxsize=MAX_PROGRAMS)
def _read(network: Network, batch: int) -> Program:
    try:
        return read_program(network.model, batch)
    except ModelError as error:
        raise type(error)(error.message, document=network.name, place=error.place) from error


def load_network(source: Network | onnx.ModelProto | Path | str) -> Network:
    """Load a network. A built-in name goes before a file of that name. Raises UnrecognisedModelError."""
    if isinstance(source, Network):
        return source
    if isinstance(source, onnx.ModelProto):
        return Network(source.graph.name or "model", source, _hash(source))
    return _load_built_in(source) if isinstance(source, str) and source in ALL_NAMES else _load_file(Path(source))


def load_shaped_network(source: Network | onnx.ModelProto | Path | str, shapes: Mapping[str, Shape]) -> Network:
    """Load a network with sizes for its free dimensions, see `fix_shapes`. Raises ModelError that names the input."""
    network = load_network(source)
    if not shapes:
        return network
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    try:
        batch = fix_shapes(select_data_inputs(model), shapes)
    except ModelError as error:
        raise type(error)(error.message, document=network.name, place=error.place) from error
    sizes = repr(sorted(shapes.items())).encode()
    digest = hashlib.sha256(network.digest.encode() + sizes).hexdigest()
    return replace(network, model=model, digest=digest, batch=batch, built_in=False)


@cache
def _load_built_in(name: str) -> Network:
    """Build the graph by shapes alone: kilobytes."""
    model = build(name)
    return Network(name, model, _hash(model), built_in=True)


def _hash(model: onnx.ModelProto) -> str:
    return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()


def _load_file(path: Path) -> Network:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        message = f"is not a file and not a built-in network: choose one of {', '.join(ALL_NAMES)}"
        raise UnrecognisedModelError(message, document=str(path)) from error
    except OSError as error:
        raise UnrecognisedModelError(f"cannot be read: {error.strerror or error}", document=str(path)) from error
    try:
        model = onnx.load_model_from_string(data)
        return Network(str(path), model, hashlib.sha256(data).hexdigest(), folder=path.parent)
    except DecodeError as error:
        raise UnrecognisedModelError("is not an ONNX model", document=str(path)) from error
