"""Read the program of an ONNX model: its operators, each with its sizes at one batch.

Free dimensions of the inputs are fixed before: `NAME=1,3,224,224`, or `sequence=128` for a named
dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import onnx
from onnx import ValueInfoProto

from ipu_results.emulator import graph as reader
from ipu_results.emulator.graph import Node, TensorInfos
from ipu_results.emulator.lowering import (
    SEVERAL_OUTPUTS,
    SUPPORTED,
    FusedActivation,
    find_activations,
    lower_node,
)
from ipu_results.emulator.networks.builder import DATA_INPUTS
from ipu_results.emulator.operators import Elementwise, Operator, Program, Tensor
from ipu_results.emulator.products import TypedNode
from ipu_results.errors import (
    InconsistentModelError,
    ModelError,
    UnknownShapeError,
    UnsupportedOperatorError,
)

FREE = ("N", "?", "*", "-1")  # sizes that stay free; the batch is set by the batch size
Axis = onnx.TensorShapeProto.Dimension
Shape = tuple[int | None, ...]


def parse_shapes(pairs: Iterable[str]) -> dict[str, Shape]:
    """Read NAME=SIZE,… texts. Raises UnknownShapeError for a text of another form."""
    shapes: dict[str, Shape] = {}
    for pair in pairs:
        name, _, texts = pair.rpartition("=")
        name = name.strip()
        sizes = [text.strip() for text in texts.split(",")]
        if not name or not all(map(_is_size, sizes)):
            message = "is not NAME=SIZES, for example input=1,3,224,224"
            raise UnknownShapeError(message, document=pair)
        shape: list[int | None] = []
        for size in sizes:
            shape.append(None if size in FREE else int(size))
        shapes[name] = tuple(shape)
    return shapes


def _is_size(text: str) -> bool:
    if text in FREE:
        return True
    return text.isascii() and text.isdigit() and int(text) > 0


@dataclass(frozen=True)
class _Sizes:
    """What the shapes of a command line say: sizes of named dimensions, and batches."""

    batch_symbols: set[str]
    sizes: dict[str, int] = field(default_factory=dict)
    batches: set[int] = field(default_factory=set)

    def read_input(self, value: ValueInfoProto, shape: Shape) -> None:
        axes = _get_dims(value)
        if len(axes) != len(shape):
            raise InconsistentModelError(
                f"input {value.name} has {len(axes)} dimensions, not {len(shape)}"
            )
        for number, size in enumerate(shape):
            axis = axes[number]
            if size is None or axis.dim_value == size:
                continue
            if not _is_free(axis):
                fixed = f"dimension {number} is fixed at {axis.dim_value}"
                raise InconsistentModelError(f"input {value.name}: {fixed}, not {size}")
            if number == 0 and axis.dim_param in self.batch_symbols:
                self.batches.add(size)
            elif axis.dim_param:
                self.add(axis.dim_param, size)
            else:
                axis.dim_value = size

    def add(self, symbol: str, size: int) -> None:
        known = self.sizes.setdefault(symbol, size)
        if known != size:
            raise InconsistentModelError(f"dimension {symbol} cannot be {known} and {size}")


def fix_shapes(inputs: Iterable[ValueInfoProto], shapes: Mapping[str, Shape]) -> int | None:
    """Set the sizes in the inputs themselves and return the batch that they name, None if they name
    none.

    The first dimension of the inputs is the batch if it is free. It stays free, and 1 there names
    no batch. If inputs begin with different dimensions, those with a size are not the batch.
    """
    values = {value.name: value for value in inputs}
    axes: list[Axis] = []
    for value in values.values():
        axes += _get_dims(value)
    symbols = {axis.dim_param for axis in axes} - {""}
    read = _Sizes(_select_batch_symbols(values, shapes))
    for name, shape in shapes.items():
        size = shape[0]
        if name in values:
            read.read_input(values[name], shape)
        elif name not in symbols or len(shape) > 1 or size is None:
            free = ", ".join(sorted(symbols)) or "none"
            known = f"the inputs {', '.join(values)} and the free dimensions {free}"
            raise UnknownShapeError(f"{name} is not an input: the model has {known}")
        elif name in read.batch_symbols:
            read.batches.add(size)
        else:
            read.add(name, size)
    for axis in axes:
        if axis.dim_param in read.sizes:
            axis.dim_value = read.sizes[axis.dim_param]
    batches = sorted(read.batches - {1})
    if len(batches) > 1:
        named = " and ".join(map(str, batches))
        raise InconsistentModelError(f"the shapes name different batches, {named}")
    return batches[0] if batches else None


def _select_batch_symbols(
    values: Mapping[str, ValueInfoProto], shapes: Mapping[str, Shape]
) -> set[str]:
    """Return the names of the batch, which may be empty."""
    firsts = set()  # names of free first dimensions
    sized = set(shapes)  # names that have a size
    for name, value in values.items():
        axes = _get_dims(value)
        if not axes or not _is_free(axes[0]):
            continue
        symbol = axes[0].dim_param
        firsts.add(symbol)
        if name in shapes and shapes[name][0]:
            sized.add(symbol)
    if len(firsts - {""}) > 1:
        return firsts - sized
    return firsts


def _is_free(axis: Axis) -> bool:
    return not axis.HasField("dim_value")


def _get_dims(value: ValueInfoProto) -> list[Axis]:
    return list(value.type.tensor_type.shape.dim)


def read_program(model: onnx.ModelProto, batch: int | None = None) -> Program:
    """Read what a run of the network computes at `batch`, the first dimension of every input.

    Without `batch` the model must fix it. What depends on constants alone is left out, and so are
    nodes that no output needs. Raises `ModelError` in one line that names the graph and the node.
    """
    with name_document(" ".join(str(model.graph.name).split())):
        return _read_program(reader.prepare_model(model), batch)


@contextmanager
def name_document(name: str) -> Iterator[None]:
    """Name the document in errors of the block."""
    try:
        yield
    except ModelError as error:
        raise type(error)(error.message, document=name, place=error.place) from error


def _read_program(model: onnx.ModelProto, batch: int | None) -> Program:
    nodes = reader.select_nodes(model.graph)
    opset = reader.read_opset(model)
    inputs = select_data_inputs(model)
    tensors = reader.collect_initial_tensors(model.graph, _size_inputs(inputs, batch))
    for node in nodes:
        if node.kind not in SUPPORTED and not reader.is_constant(node, tensors):
            raise node.unsupported(node.kind)
        reader.infer_outputs(node, tensors, opset)
    active = [node for node in nodes if not tensors[node.outputs[0]].constant]
    return _assemble(
        model.graph.name,
        active,
        tensors,
        inputs=[value.name for value in inputs],
        results=[value.name for value in model.graph.output],
    )


def select_data_inputs(model: onnx.ModelProto) -> list[ValueInfoProto]:
    """Return the inputs of every run: not those filled by initializers or, in our own graphs, the
    parameters.
    """
    inputs = {value.name: value for value in model.graph.input}
    named: list[str] = []
    for entry in model.metadata_props:
        if entry.key == DATA_INPUTS:
            named += entry.value.split()
    filled = {tensor.name for tensor in model.graph.initializer}
    if named:
        filled |= inputs.keys() - named
    return [value for name, value in inputs.items() if name not in filled]


def _size_inputs(inputs: Sequence[ValueInfoProto], batch: int | None) -> dict[str, tuple[int, ...]]:
    if batch is not None and batch < 1:
        raise UnknownShapeError(f"batch must be at least 1, not {batch}")
    # Exporters call the batch N, batch_size, …: it is whatever the inputs begin with.
    symbols = set()
    for value in inputs:
        _check_input(value)
        for axis in _get_dims(value)[:1]:
            symbols.add(axis.dim_param)
    symbols.discard("")
    if len(symbols) > 1:
        firsts = " and ".join(sorted(symbols))
        raise UnknownShapeError(
            f"inputs begin with different dimensions, {firsts}: which is the batch?"
        )
    return {value.name: _size_input(value, batch, symbols) for value in inputs}


def _check_input(value: ValueInfoProto) -> None:
    tensor = value.type.tensor_type
    known = tensor.elem_type in reader.list_element_types()
    if not value.type.HasField("tensor_type") or not known:
        raise UnsupportedOperatorError(f"input {value.name} has an unsupported element type")
    if not tensor.HasField("shape"):
        raise UnknownShapeError(f"input {value.name} has no shape")


def _size_input(value: ValueInfoProto, batch: int | None, symbols: set[str]) -> tuple[int, ...]:
    shape = []
    for number, axis in enumerate(_get_dims(value)):
        size: int | None = axis.dim_value
        symbol = axis.dim_param
        if _is_free(axis):
            is_batch = symbol in symbols or (number == 0 and not symbol)
            size = batch if is_batch else None
        if size is None or size < 1:
            name = f" ({symbol})" if symbol else ""
            raise UnknownShapeError(f"input {value.name}: dimension {number}{name} has no size")
        shape.append(size)
    if batch is not None and shape and shape[0] != batch:
        raise InconsistentModelError(
            f"input {value.name} is fixed at a batch of {shape[0]}, not {batch}"
        )
    return tuple(shape)


def _assemble(
    name: str, nodes: list[Node], tensors: TensorInfos, inputs: list[str], results: list[str]
) -> Program:
    """Turn nodes into operators."""
    assembly = _Assembly(tensors)
    for number, source in enumerate(inputs):
        assembly.origin[source] = -1 - number
    fused: dict[str, FusedActivation] = {}
    inside: set[str] = set()
    for activation in find_activations(nodes, tensors, results):
        fused[activation.last.name] = activation
        inside.update(part.name for part in activation.parts)
    read = set(results)
    for node in nodes:
        read.update(node.inputs)
    for node in nodes:
        # A fused activation stands where its last node does; its other nodes vanish.
        if node.name in fused:
            assembly.add_activation(fused[node.name])
        elif node.name not in inside:
            assembly.add(node, read)
    for result in results:
        if result not in assembly.origin:
            raise InconsistentModelError(f"output {result} does not depend on any input")
    return Program(
        name,
        operators=tuple(assembly.operators),
        sources=tuple(assembly.sources),
        inputs=tuple(assembly.describe(each) for each in inputs),
        outputs=tuple(assembly.describe(each) for each in results),
        results=tuple(assembly.origin[each] for each in results),
        parameters=sum(tensors[each].elements for each in assembly.parameters),
    )


@dataclass(frozen=True)
class _Assembly:
    """Operators, and which of them or which input each tensor is."""

    tensors: TensorInfos
    origin: dict[str, int] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    sources: list[tuple[int, ...]] = field(default_factory=list)
    parameters: set[str] = field(default_factory=set)

    def add_activation(self, activation: FusedActivation) -> None:
        node = activation.last
        elements = self.tensors[node.outputs[0]].elements
        operator = Elementwise(node.name, activation.kind, elements)
        self.append([operator], (activation.source,), node.outputs)

    def add(self, node: Node, read: set[str]) -> None:
        """Add a node. `read` are all tensors that are read."""
        extra = read.intersection(node.outputs[1:])
        if extra and node.kind not in SEVERAL_OUTPUTS:
            first = min(extra, key=node.outputs.index)
            raise node.unsupported(f"reading its further output {first}")
        operators = lower_node(TypedNode.build(node, self.tensors))
        if operators:
            self.append(operators, node.inputs, node.outputs)
            return
        # A view makes no operator: its tensor is the source's.
        source = node.inputs[0]
        if source not in self.origin:
            raise node.unsupported("a computed view of a constant")
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
        sources = tuple(dict.fromkeys(read))
        first = len(self.operators)
        self.operators.extend(operators)
        last = len(self.operators) - 1
        others = tuple(range(first, last))
        for _ in others:
            self.sources.append(sources)
        self.sources.append(others or sources)
        self.origin.update(dict.fromkeys(outputs, last))

    def describe(self, name: str) -> Tensor:
        tensor = self.tensors[name]
        return Tensor(name, tensor.shape, reader.get_element_bits(tensor.element_type))
