"""Load a network by built-in name, file or ONNX model, predict it on an emulated IPU, and run it
there.

A program is read at each micro-batch once a process. Outputs are computed by onnxruntime in fp16:
every weight and result is rounded. Time is from the model of the machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from ipu_results.emulator.frontend import (
    Shape,
    name_document,
    read_program,
    select_data_inputs,
)
from ipu_results.emulator.networks import ALL_NAMES, TEXTS, build
from ipu_results.emulator.operators import Program
from ipu_results.emulator.prediction import Prediction, predict
from ipu_results.emulator.settings import Protocol
from ipu_results.emulator.target import Target, load_target
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError

MAX_PROGRAMS = 128  # kept in memory, about 100 kB each


@dataclass(frozen=True)
class Network:
    """A network that programs are read from: `network(micro_batch)` is its Program.

    `name` is that of records and messages. `built_in` networks are without weights. `folder` holds
    the external data of a file. `shapes` are sizes of free dimensions. Networks that are equal but
    for the model, of which `digest` tells, share programs and sessions.
    """

    name: str
    model: onnx.ModelProto = field(compare=False, repr=False)
    digest: str
    built_in: bool = False
    folder: Path | None = None
    shapes: tuple[tuple[str, Shape], ...] = ()

    def __call__(self, batch: int) -> Program:
        """Read the program at a micro-batch. Raises ModelError naming the network and the node."""
        return _read(self, batch)


@lru_cache(maxsize=MAX_PROGRAMS)
def _read(network: Network, batch: int) -> Program:
    with name_document(network.name):
        return read_program(network.model, batch, dict(network.shapes))


Source = Network | onnx.ModelProto | Path | str


def load_network(source: Source) -> Network:
    """Load a network.

    A built-in name goes before a file of that name. Raises UnrecognisedModelError.
    """
    if isinstance(source, Network):
        return source
    if isinstance(source, onnx.ModelProto):
        return Network(source.graph.name or "model", source, _hash(source))
    if isinstance(source, str) and source in ALL_NAMES:
        return _load_built_in(source)
    return _load_file(Path(source))


@cache
def _load_built_in(name: str) -> Network:
    """Build the graph by shapes alone: kilobytes."""
    model = build(name)
    return Network(name, model, _hash(model), built_in=True)


def _hash(model: onnx.ModelProto) -> str:
    return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()


@cache
def load_sized_network(name: str, sequence: int) -> Network:
    """Load a built-in network at a length of sequences, where it has one."""
    if name in TEXTS:
        return load_network(build(name, sequence=sequence))
    return load_network(name)


def load_shaped_network(source: Source, shapes: Mapping[str, Shape]) -> Network:
    """Load a network with sizes for its free dimensions, see `read_program`."""
    return replace(load_network(source), shapes=tuple(shapes.items()))


def _load_file(path: Path) -> Network:
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        if isinstance(error, FileNotFoundError):
            names = ", ".join(ALL_NAMES)
            message = f"is not a file and not a built-in network: choose one of {names}"
        raise UnrecognisedModelError(message, document=str(path)) from error
    try:
        model = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise UnrecognisedModelError("is not an ONNX model", document=str(path)) from error
    digest = hashlib.sha256(data).hexdigest()
    return Network(str(path), model, digest, folder=path.parent)


FloatArray = npt.NDArray[Any]
Inputs = FloatArray | Mapping[str, FloatArray]  # one array, or arrays by name
MAX_MESSAGE = 300  # characters of onnxruntime's own message


@lru_cache(maxsize=2)
def open_session(network: Network) -> Any:
    """Open an onnxruntime session in fp16, kept for the next batch because it takes seconds.

    Raises InconsistentModelError for a network without weights.
    """
    import onnxruntime  # noqa: PLC0415 (slow to import, and only needed to run)

    options = onnxruntime.SessionOptions()
    # keeps every cast
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4  # nothing but fatal errors
    model = insert_fp16_casts(_load_weights(network))
    data = model.SerializeToString()
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        message = " ".join(str(error).split())[:MAX_MESSAGE]
        raise UnrecognisedModelError(
            f"onnxruntime cannot run it: {message}", document=network.name
        ) from error


def round_to_fp16(values: FloatArray) -> FloatArray:
    """Return the nearest fp16 values as float32, infinite beyond 65504."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def insert_fp16_casts(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy whose float weights are fp16 values and whose float results pass through fp16
    after each node.

    Each node computes in float32 and its result is rounded once, which is what accumulating in
    float32 and storing in fp16 gives. Partial sums that a machine keeps in fp16 are not rounded,
    and nothing inside a node is.
    """
    typed = onnx.shape_inference.infer_shapes(model).graph
    wide = set()
    for value in (*typed.value_info, *typed.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            wide.add(value.name)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            rounded = round_to_fp16(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(rounded, tensor.name))
    del copy.graph.node[:]
    for node in model.graph.node:
        copy.graph.node.extend(_add_casts(node, wide))
    return copy


def _add_casts(node: onnx.NodeProto, wide: set[str]) -> list[onnx.NodeProto]:
    """Rename the node's float outputs, and cast them to fp16 and back under their own names."""
    renamed = onnx.NodeProto()
    renamed.CopyFrom(node)
    nodes = [renamed]
    for at, name in enumerate(node.output):
        if name in wide:
            full = f"{name}/wide"
            half = f"{name}/half"
            renamed.output[at] = full
            nodes.append(helper.make_node("Cast", [full], [half], to=TensorProto.FLOAT16))
            nodes.append(helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT))
    return nodes


def _load_weights(network: Network) -> onnx.ModelProto:
    if network.built_in:
        return build(network.name, weights=True)
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    if network.folder is not None:
        onnx.load_external_data_for_model(model, str(network.folder))
    known = {tensor.name for tensor in model.graph.initializer}
    known.update(value.name for value in select_data_inputs(model))
    for value in model.graph.input:
        if value.name not in known:
            message = f"has no weights (for example {value.name}): it can be timed but not run"
            raise InconsistentModelError(message, document=network.name)
    return model


class EmulatedRun(NamedTuple):
    """Outputs of a whole batch by name, and the predicted timing.

    Never a measurement: see `timing.origin`.
    """

    outputs: dict[str, FloatArray]
    timing: Prediction


class Emulator:
    """An IPU machine that is emulated: it predicts the time of a network and computes its outputs.

        run = Emulator("c2").compile("resnext101-32x4d", batch_size=4).run(images)
        run.outputs["classes"]     # float32, (4, 1000), every value an fp16 one
        run.timing.latency_ms      # milliseconds of the batch, with latency_ms_low and latency_ms_high
        run.timing.throughput      # images per second; power_w in watts, c2 only

    `target` is "c2" (2 chips), "m2000" or "bow-2000" (4 chips), or a Target with other constants.
    `protocol` is the host path: "paper", "tensorflow", "pytorch", "lowest-latency" or "io-tiles",
    by default the target's usual one.

    `compile` accepts a built-in network by name, the path of an ONNX file, or a ModelProto, and the
    batch size over all chips, which must be a multiple of their number. `run` accepts one array, or
    arrays by input name, whose first dimension is the batch: images are (batch, 3, 224, 224) in
    float32 for ResNet-50 and ResNeXt101.

    Errors are subclasses of ModelError, in one line that names the model and the node:
    UnrecognisedModelError (not a model, target or protocol), UnsupportedOperatorError,
    UnknownShapeError, InconsistentModelError (a batch that the chips cannot share evenly, inputs of
    another shape, or a network without weights in `run`).
    """

    def __init__(self, target: Target | str = "c2", protocol: Protocol | str | None = None) -> None:
        self.target = target if isinstance(target, Target) else load_target(target)
        self.protocol = protocol

    def compile(
        self, model: Network | onnx.ModelProto | Path | str, batch_size: int
    ) -> CompiledNetwork:
        """Predict the network at a batch size of the whole machine.

        A built-in network has seeded weights when run.
        """
        network = load_network(model)
        predictions = predict(network, self.target, [batch_size], self.protocol)
        return CompiledNetwork(network, predictions[0])


@dataclass(frozen=True)
class CompiledNetwork:
    """A network on a machine at one batch size, timed and ready to run."""

    network: Network
    timing: Prediction

    def run(self, x: Inputs) -> EmulatedRun:
        """Compute a whole batch, each chip its micro-batch.

        Weights and activations are rounded to fp16.

        Raises InconsistentModelError for inputs that the network does not have and for a network
        without weights.
        """
        return EmulatedRun(self._compute(x, self.timing.batch_size), self.timing)

    def run_chip(self, x: Inputs) -> dict[str, FloatArray]:
        """Compute the outputs of one chip for its micro-batch, by name. Otherwise as `run`."""
        return self._compute(x, self.timing.micro_batch_size)

    def _compute(self, x: Inputs, batch: int) -> dict[str, FloatArray]:
        arrays = self._check_inputs(x, batch)
        session = open_session(self.network)
        feeds = {}
        for source in session.get_inputs():
            array = np.asarray(arrays[source.name])
            if source.type == "tensor(float)":
                array = round_to_fp16(array.astype(np.float32))
            feeds[source.name] = array
        names = [output.name for output in session.get_outputs()]
        micro = self.timing.micro_batch_size
        chips = []
        for start in range(0, batch, micro):
            part = slice(start, start + micro)
            share = {name: array[part] for name, array in feeds.items()}
            chips.append(session.run(names, share))
        outputs = map(np.concatenate, zip(*chips, strict=True))
        return dict(zip(names, outputs, strict=True))

    def _check_inputs(self, x: Inputs, batch: int) -> dict[str, FloatArray]:
        """Return the inputs by name. Raises InconsistentModelError for other names or shapes."""
        program = self.network(self.timing.micro_batch_size)
        names = [tensor.name for tensor in program.inputs]
        arrays = dict(x) if isinstance(x, Mapping) else {names[0]: x}
        if set(arrays) != set(names):
            named = ", ".join(arrays) or "none"
            raise self._error(f"has the inputs {', '.join(names)}, not {named}")
        for tensor in program.inputs:
            shape = (batch, *tensor.shape[1:])
            given = np.shape(arrays[tensor.name])
            if given != shape:
                raise self._error(f"input {tensor.name} must be {shape}, not {given}")
        for tensor in program.outputs:
            if tensor.shape[:1] != (self.timing.micro_batch_size,):
                message = "does not begin with the batch: chips cannot be concatenated"
                raise self._error(f"output {tensor.name} {message}")
        return arrays

    def _error(self, message: str) -> InconsistentModelError:
        return InconsistentModelError(message, document=self.network.name)
