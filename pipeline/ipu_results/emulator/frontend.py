"""Read the program of an ONNX model: its operators, each with its sizes at one batch.

Free dimensions of the inputs are fixed before: `NAME=1,3,224,224`, or `sequence=128` for a named
dimension.
"""

from __future__ import annotations

import re
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
    TypedNode,
    find_activations,
    lower_node,
)
from ipu_results.emulator.networks.builder import DATA_INPUTS
from ipu_results.emulator.operators import Elementwise, Operator, Program, Tensor
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
Axis = onnx.TensorShapeProto.Dimension


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


def fix_shapes(inputs: Sequence[ValueInfoProto], shapes: Mapping[str, Shape]) -> None:
    """Set the sizes in the inputs themselves.

    The first dimension of the inputs is the batch if it is free. It stays free, and no size but 1
    may be given for it. If inputs begin with different dimensions, those that get a size are not
    the batch.

    Raises ModelError that names the input.
    """
    values = {value.name: value for value in inputs}
    axes: list[Axis] = []
    for value in inputs:
        axes += _get_dims(value)
    symbols = {axis.dim_param for axis in axes} - {""}
    firsts = _list_first_symbols(inputs)
    batch_symbols: set[str] = set()
    if len(firsts) < 2:
        # A batch may have no name.
        batch_symbols = firsts | {""}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        size = shape[0]
        if name in values:
            named = _size_axes(values[name], shape, batch_symbols)
        elif name in symbols and len(shape) == 1 and size is not None:
            named = [(name, size)]
        else:
            free = ", ".join(sorted(symbols)) or "none"
            known = f"the inputs {', '.join(values)} and the free dimensions {free}"
            raise UnknownShapeError(f"{name} is not an input: the model has {known}")
        for symbol, stated in named:
            if symbol in batch_symbols and stated != 1:
                message = f"the batch is that of the batch sizes: write N for it, not {stated}"
                raise InconsistentModelError(message)
            before = sizes.setdefault(symbol, stated)
            if before != stated:
                message = f"dimension {symbol} cannot be {before} and {stated}"
                raise InconsistentModelError(message)
    # the batch stays free
    fixed = sizes.keys() - batch_symbols
    for axis in axes:
        if axis.dim_param in fixed:
            axis.dim_value = sizes[axis.dim_param]


def _size_axes(
    value: ValueInfoProto, shape: Shape, batch_symbols: set[str]
) -> list[tuple[str, int]]:
    """Return the sizes of an input's named dimensions and of its batch, which may have the name "".
    Set the others.
    """
    axes = _get_dims(value)
    if len(axes) != len(shape):
        raise InconsistentModelError(
            f"input {value.name} has {len(axes)} dimensions, not {len(shape)}"
        )
    named = []
    for number, size in enumerate(shape):
        axis = axes[number]
        symbol = axis.dim_param
        is_batch = number == 0 and symbol in batch_symbols
        if size is None or axis.dim_value == size:
            continue
        if axis.HasField("dim_value"):
            fixed = f"dimension {number} is fixed at {axis.dim_value}"
            raise InconsistentModelError(f"input {value.name}: {fixed}, not {size}")
        if symbol or is_batch:
            named.append((symbol, size))
        else:
            axis.dim_value = size
    return named


def _list_first_symbols(inputs: Iterable[ValueInfoProto]) -> set[str]:
    """Return the names of the dimensions that inputs begin with. Exporters call the batch N,
    batch_size, …: it is whatever the inputs begin with.
    """
    symbols = set()
    for value in inputs:
        for axis in _get_dims(value)[:1]:
            symbols.add(axis.dim_param)
    return symbols - {""}


def _get_dims(value: ValueInfoProto) -> list[Axis]:
    return list(value.type.tensor_type.shape.dim)


def read_program(model: onnx.ModelProto, batch: int | None = None) -> Program:
    """Read what a run of the network computes at `batch`, the first dimension of every input.

    Without `batch` the model must fix it. What depends on constants alone is left out, and so are
    nodes that no output needs. Raises `ModelError` in one line that names the graph and the node.
    """
    with name_document(" ".join(str(model.graph.name).split())):
        model = reader.prepare_model(model)
        graph = model.graph
        nodes = reader.select_nodes(graph)
        opset = reader.read_opset(model)
        inputs = select_data_inputs(model)
        tensors = reader.collect_initial_tensors(graph, _size_inputs(inputs, batch))
        for node in nodes:
            if node.kind not in SUPPORTED and not reader.is_constant(node, tensors):
                raise node.unsupported(node.kind)
            reader.infer_outputs(node, tensors, opset)
        assembly = _Assembly(tensors)
        for number, value in enumerate(inputs):
            assembly.origin[value.name] = -1 - number
        results = [value.name for value in graph.output]
        active = [node for node in nodes if not tensors[node.outputs[0]].constant]
        assembly.add_nodes(active, results)
        for result in results:
            if result not in assembly.origin:
                raise InconsistentModelError(f"output {result} does not depend on any input")
        return Program(
            graph.name,
            operators=tuple(assembly.operators),
            sources=tuple(assembly.sources),
            inputs=tuple(assembly.describe(value.name) for value in inputs),
            outputs=tuple(assembly.describe(each) for each in results),
            results=tuple(assembly.origin[each] for each in results),
            parameters=sum(tensors[each].elements for each in assembly.parameters),
        )


@contextmanager
def name_document(name: str) -> Iterator[None]:
    """Name the document in errors of the block."""
    try:
        yield
    except ModelError as error:
        raise type(error)(error.message, document=name, place=error.place) from error


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


def _size_inputs(inputs: Sequence[ValueInfoProto], batch: int | None) -> dict[str, tuple[int, ...]]:
    if batch is not None and batch < 1:
        raise UnknownShapeError(f"batch must be at least 1, not {batch}")
    for value in inputs:
        _check_input(value)
    symbols = _list_first_symbols(inputs)
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
        symbol = axis.dim_param
        size: int | None = None
        if axis.HasField("dim_value"):
            size = axis.dim_value
        elif symbol in symbols or (number == 0 and not symbol):
            size = batch
        if size is None or size < 1:
            name = f" ({symbol})" if symbol else ""
            raise UnknownShapeError(f"input {value.name}: dimension {number}{name} has no size")
        shape.append(size)
    if batch is not None and shape and shape[0] != batch:
        raise InconsistentModelError(
            f"input {value.name} is fixed at a batch of {shape[0]}, not {batch}"
        )
    return tuple(shape)


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
        fused = find_activations(nodes, self.tensors, results)
        inside: set[str] = set()
        for activation in fused.values():
            inside.update(part.name for part in activation.parts)
        read = set(results)
        for node in nodes:
            read.update(node.inputs)
        for node in nodes:
            # A fused activation stands where its last node does; its other nodes vanish.
            if node.name in fused:
                self.add_activation(node, fused[node.name])
            elif node.name not in inside:
                self.add(node, read)

    def add_activation(self, last: Node, activation: FusedActivation) -> None:
        elements = self.tensors[last.outputs[0]].elements
        operator = Elementwise(last.name, activation.kind, elements)
        self.append([operator], (activation.source,), last.outputs)

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
