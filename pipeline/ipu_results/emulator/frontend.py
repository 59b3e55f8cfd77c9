"""Read the program of an ONNX model: its operators, each with its sizes at one batch.

Free dimensions of the inputs have a size by their shapes: `NAME=1,3,224,224`, or `sequence=128` for
a named dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import onnx
from onnx import ValueInfoProto, helper

from ipu_results.emulator import graph as reader
from ipu_results.emulator.graph import Node, TensorInfo, TensorInfos
from ipu_results.emulator.lowering import (
    SEVERAL_OUTPUTS,
    SUPPORTED,
    find_activations,
    lower_node,
)
from ipu_results.emulator.networks.builder import DATA_INPUTS
from ipu_results.emulator.operators import Operator, Program, Tensor
from ipu_results.errors import (
    InconsistentModelError,
    ModelError,
    UnknownShapeError,
    UnsupportedOperatorError,
)

# A size, or a mark that leaves it free; the batch is set by the batch size.
SIZE = r"\s*(?:0*[1-9][0-9]*|N|-1|\?|\*)\s*"
SIZES = re.compile(rf"{SIZE}(?:,{SIZE})*")
Shape = tuple[int | None, ...]
Axis = int | str  # a size, or the name of a free dimension
BATCH = ""  # the name of a first dimension that has none in the file


def parse_shapes(pairs: Iterable[str]) -> dict[str, Shape]:
    """Read NAME=SIZE,… texts. Raises UnknownShapeError for a text of another form."""
    shapes: dict[str, Shape] = {}
    for pair in pairs:
        name, _, sizes = pair.rpartition("=")
        if not name.strip() or not SIZES.fullmatch(sizes):
            message = "is not NAME=SIZES, for example input=1,3,224,224"
            raise UnknownShapeError(message, document=pair)
        shapes[name.strip()] = tuple(map(_read_size, sizes.split(",")))
    return shapes


def _read_size(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def read_program(
    model: onnx.ModelProto, batch: int | None = None, shapes: Mapping[str, Shape] | None = None
) -> Program:
    """Read what a run of the network computes at `batch`, the first dimension of every input.

    Without `batch` the model must fix it. `shapes` are sizes of free dimensions, by the names of
    inputs or of dimensions. What depends on constants alone is left out, and so are nodes that no
    output needs. Raises `ModelError` in one line that names the graph and the node.
    """
    with name_document(" ".join(str(model.graph.name).split())):
        model = reader.prepare_model(model)
        graph = model.graph
        opset = reader.read_opset(model)
        tensors = size_inputs(select_data_inputs(model), batch, shapes or {})
        inputs = list(tensors)
        tensors |= reader.collect_constants(graph, tensors)
        nodes = reader.select_nodes(graph, tensors)
        for node in nodes:
            _check_inputs(node)
            reader.infer_outputs(node, opset)
        assembly = _Assembly(tensors)
        for number, name in enumerate(inputs):
            assembly.origin[name] = -1 - number
        results = [value.name for value in graph.output]
        assembly.add_nodes([node for node in nodes if not node.constant], results)
        for result in results:
            if result not in assembly.origin:
                raise InconsistentModelError(f"output {result} does not depend on any input")
        return Program(
            graph.name,
            operators=tuple(assembly.operators),
            sources=tuple(assembly.sources),
            inputs=tuple(map(assembly.describe, inputs)),
            outputs=tuple(map(assembly.describe, results)),
            results=tuple(assembly.origin[name] for name in results),
            parameters=sum(tensors[name].elements for name in assembly.parameters),
        )


@contextmanager
def name_document(name: str) -> Iterator[None]:
    """Name the document in errors of the block."""
    try:
        yield
    except ModelError as error:
        raise type(error)(error.message, document=name, place=error.place) from error


def _check_inputs(node: Node) -> None:
    for name in node.inputs:
        if name not in node.tensors:
            raise node.inconsistent(
                f"{name} is not an input, an initializer or an output of an earlier node"
            )
    if node.kind not in SUPPORTED and not node.constant:
        raise node.unsupported(node.kind)


def select_data_inputs(model: onnx.ModelProto) -> list[ValueInfoProto]:
    """Return the inputs of every run: not those filled by initializers or, in our own graphs, the
    parameters.
    """
    for entry in model.metadata_props:
        if entry.key == DATA_INPUTS:
            names = entry.value.split()
            return [value for value in model.graph.input if value.name in names]
    filled = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in filled]


def size_inputs(
    inputs: Sequence[ValueInfoProto], batch: int | None, shapes: Mapping[str, Shape]
) -> TensorInfos:
    """Return the inputs at a batch, and where else they are free, at the sizes of `shapes`.

    The batch is the dimension that all inputs begin with, whatever exporters call it. If inputs
    begin with different ones, those that get a size are not the batch. No size but 1 may be given
    for it.

    Raises ModelError that names the input.
    """
    if batch is not None and batch < 1:
        raise UnknownShapeError(f"batch must be at least 1, not {batch}")
    axes = {value.name: _read_axes(value) for value in inputs}
    sizes = _collect_sizes(axes, shapes)
    firsts = {shape[0] for shape in axes.values() if shape and isinstance(shape[0], str)}
    named = firsts - {BATCH}
    if len(named) > 1:
        named -= sizes.keys()
    if len(named) > 1:
        both = " and ".join(sorted(named))
        raise UnknownShapeError(
            f"inputs begin with different dimensions, {both}: which is the batch?"
        )
    for name in (BATCH, *named):
        stated = sizes.pop(name, 1)
        if stated != 1:
            message = f"the batch is that of the batch sizes: write N for it, not {stated}"
            raise InconsistentModelError(message)
        if batch is not None:
            sizes[name] = batch
    tensors = {}
    for value in inputs:
        shape = [sizes.get(axis, axis) for axis in axes[value.name]]
        tensors[value.name] = _size_input(value, shape, batch)
    return tensors


def _read_axes(value: ValueInfoProto) -> list[Axis]:
    """Return the dimensions of an input: sizes and names."""
    tensor = value.type.tensor_type
    if tensor.elem_type not in helper.get_all_tensor_dtypes():
        raise UnsupportedOperatorError(f"input {value.name} has an unsupported element type")
    if not tensor.HasField("shape"):
        raise UnknownShapeError(f"input {value.name} has no shape")
    axes: list[Axis] = []
    for number, axis in enumerate(tensor.shape.dim):
        if axis.HasField("dim_value"):
            axes.append(axis.dim_value)
        elif axis.dim_param or number == 0:
            axes.append(axis.dim_param)
        else:
            axes.append(f"{value.name}[{number}]")
    return axes


def _collect_sizes(
    axes: Mapping[str, Sequence[Axis]], shapes: Mapping[str, Shape]
) -> dict[Axis, int]:
    """Return the sizes of free dimensions that `shapes` give."""
    symbols: set[str] = set()
    for dimensions in axes.values():
        symbols.update(axis for axis in dimensions if isinstance(axis, str))
    sizes: dict[Axis, int] = {}
    for name, shape in shapes.items():
        stated: Sequence[Axis] = axes.get(name, [name])
        if name not in axes and name not in symbols:
            free = ", ".join(sorted(symbols - {BATCH})) or "none"
            known = f"the inputs {', '.join(axes)} and the free dimensions {free}"
            raise UnknownShapeError(f"{name} is not an input: the model has {known}")
        if len(stated) != len(shape):
            what = f"input {name} has {len(stated)} dimensions"
            if name not in axes:
                what = f"dimension {name} is one size"
            raise InconsistentModelError(f"{what}, not {len(shape)}")
        for number, size in enumerate(shape):
            axis = stated[number]
            if size is None or size == axis:
                continue
            if isinstance(axis, int):
                fixed = f"dimension {number} is fixed at {axis}"
                raise InconsistentModelError(f"input {name}: {fixed}, not {size}")
            before = sizes.setdefault(axis, size)
            if before != size:
                raise InconsistentModelError(f"dimension {axis} cannot be {before} and {size}")
    return sizes


def _size_input(value: ValueInfoProto, axes: Sequence[Axis], batch: int | None) -> TensorInfo:
    shape = []
    for number, size in enumerate(axes):
        if isinstance(size, str) or size < 1:
            symbol = value.type.tensor_type.shape.dim[number].dim_param
            name = f" ({symbol})" if symbol else ""
            raise UnknownShapeError(f"input {value.name}: dimension {number}{name} has no size")
        shape.append(size)
    if batch is not None and shape and shape[0] != batch:
        raise InconsistentModelError(
            f"input {value.name} is fixed at a batch of {shape[0]}, not {batch}"
        )
    return TensorInfo(tuple(shape), value.type.tensor_type.elem_type)


@dataclass(frozen=True)
class _Assembly:
    """Operators, and which of them or which input each tensor is."""

    tensors: TensorInfos
    origin: dict[str, int] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    sources: list[tuple[int, ...]] = field(default_factory=list)
    parameters: set[str] = field(default_factory=set)

    def add_nodes(self, nodes: Sequence[Node], results: Sequence[str]) -> None:
        """Add nodes, of whose tensors `results` are the network's."""
        fused = find_activations(nodes, results)
        read = set(results)
        for node in nodes:
            read.update(node.inputs)
        for node in nodes:
            if node.name not in fused:
                self.add(node, read)
                continue
            activation = fused[node.name]
            if activation:
                self.append([activation.operator], [activation.source], node.outputs)

    def add(self, node: Node, read: set[str]) -> None:
        """Add a node. `read` are all tensors that are read."""
        extra = read.intersection(node.outputs[1:])
        if extra and node.kind not in SEVERAL_OUTPUTS:
            first = min(extra, key=node.outputs.index)
            raise node.unsupported(f"reading its further output {first}")
        operators = lower_node(node)
        if operators:
            self.append(operators, node.inputs, node.outputs)
            return
        # A view makes no operator: its tensor is the source's.
        source = node.inputs[0]
        if source in self.origin:
            self.origin[node.outputs[0]] = self.origin[source]

    def append(
        self, operators: Sequence[Operator], inputs: Iterable[str], outputs: Iterable[str]
    ) -> None:
        """Add the operators of one node.

        The last of several reads the others, which read the inputs.
        """
        read = []
        for name in inputs:
            if name in self.origin:
                read.append(self.origin[name])
            elif self.tensors[name].element_type in reader.FLOATS:
                self.parameters.add(name)
        distinct = tuple(dict.fromkeys(read))
        first = len(self.operators)
        last = first + len(operators) - 1
        others = tuple(range(first, last))  # all but the last
        self.operators.extend(operators)
        self.sources.extend(distinct for _ in others)
        self.sources.append(others or distinct)
        self.origin.update(dict.fromkeys(outputs, last))

    def describe(self, name: str) -> Tensor:
        tensor = self.tensors[name]
        return Tensor(name, tensor.shape, reader.get_element_bits(tensor.element_type))
