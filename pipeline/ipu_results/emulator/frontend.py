"""Read the program of an ONNX model: its operators, each with its sizes at one batch.

Free dimensions of the inputs are fixed before: `NAME=1,3,224,224`, or `sequence=128` for a named
dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx

from ipu_results.emulator import graph as reader
from ipu_results.emulator.lowering import SEVERAL_OUTPUTS, SUPPORTED, find_activations, lower_node
from ipu_results.emulator.networks.builder import DATA_INPUTS
from ipu_results.emulator.operators import Elementwise, Operator, Program, Tensor
from ipu_results.emulator.products import attach_types
from ipu_results.errors import (
    InconsistentModelError,
    ModelError,
    UnknownShapeError,
    UnsupportedOperatorError,
)

FREE = frozenset({"N", "?", "*", "-1"})  # sizes that stay free; the batch is set by the batch size
Shape = tuple[int | None, ...]


def parse_shapes(pairs: Iterable[str]) -> dict[str, Shape]:
    """Read NAME=SIZE,… texts. Raises UnknownShapeError for a text of another form."""
    shapes: dict[str, Shape] = {}
    for pair in pairs:
        name, _, sizes = (part.strip() for part in pair.rpartition("="))
        texts = [size.strip() for size in sizes.split(",")]
        if not name or not all(
            size in FREE or (size.isascii() and size.isdigit() and int(size)) for size in texts
        ):
            raise UnknownShapeError(
                "is not NAME=SIZES, for example input=1,3,224,224", document=pair
            )
        shapes[name] = tuple(None if size in FREE else int(size) for size in texts)
    return shapes


def fix_shapes(inputs: Iterable[onnx.ValueInfoProto], shapes: Mapping[str, Shape]) -> int | None:
    """Set the sizes in the inputs themselves and return the batch that they name, None if they name
    none.

    The first dimension of the inputs is the batch if it is free. It stays free, and 1 there names
    no batch. If inputs begin with different dimensions, those with a size are not the batch.
    """
    values = {value.name: value for value in inputs}
    firsts = {
        name: dims[0]
        for name, value in values.items()
        if (dims := _get_dims(value)) and _is_free(dims[0])
    }
    symbols = {axis.dim_param for value in values.values() for axis in _get_dims(value)} - {""}
    batch_symbols = {axis.dim_param for axis in firsts.values()}
    if len(batch_symbols - {""}) > 1:
        sized = {
            firsts[name].dim_param for name, shape in shapes.items() if shape[0] and name in firsts
        }
        batch_symbols -= sized | set(shapes)
    sizes: dict[str, int] = {}
    batches: set[int] = set()
    for name, shape in shapes.items():
        if name in values:
            _read_sizes(values[name], shape, batch_symbols, sizes, batches)
        elif name in symbols and len(shape) == 1 and shape[0]:
            if name in batch_symbols:
                batches.add(shape[0])
            else:
                _add_size(sizes, name, shape[0])
        else:
            known = (
                f"the inputs {', '.join(values)} and the free dimensions"
                f" {', '.join(sorted(symbols)) or 'none'}"
            )
            raise UnknownShapeError(f"{name} is not an input: the model has {known}")
    for value in values.values():
        for axis in _get_dims(value):
            if axis.dim_param in sizes:
                axis.dim_value = sizes[axis.dim_param]
    batches -= {1}
    if len(batches) > 1:
        raise InconsistentModelError(
            f"the shapes name different batches, {' and '.join(map(str, sorted(batches)))}"
        )
    return min(batches, default=None)


def _read_sizes(
    value: onnx.ValueInfoProto,
    shape: Shape,
    batch_symbols: set[str],
    sizes: dict[str, int],
    batches: set[int],
) -> None:
    dims = _get_dims(value)
    if len(dims) != len(shape):
        raise InconsistentModelError(
            f"input {value.name} has {len(dims)} dimensions, not {len(shape)}"
        )
    for number, (axis, size) in enumerate(zip(dims, shape, strict=True)):
        if size is None:
            continue
        if not _is_free(axis):
            if axis.dim_value != size:
                message = (
                    f"input {value.name}: dimension {number} is fixed at {axis.dim_value}, not"
                    f" {size}"
                )
                raise InconsistentModelError(message)
        elif number == 0 and axis.dim_param in batch_symbols:
            batches.add(size)
        elif axis.dim_param:
            _add_size(sizes, axis.dim_param, size)
        else:
            axis.dim_value = size


def _add_size(sizes: dict[str, int], symbol: str, size: int) -> None:
    if sizes.setdefault(symbol, size) != size:
        raise InconsistentModelError(f"dimension {symbol} cannot be {sizes[symbol]} and {size}")


def _is_free(axis: onnx.TensorShapeProto.Dimension) -> bool:
    return not axis.HasField("dim_value")


def _get_dims(value: onnx.ValueInfoProto) -> list[onnx.TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)


def read_program(model: onnx.ModelProto, batch: int | None = None) -> Program:
    """Read what a run of the network computes at `batch`, the first dimension of every input.

    Without `batch` the model must fix it. What depends on constants alone is left out, and so are
    nodes that no output needs. Raises `ModelError` in one line that names the graph and the node.
    """
    try:
        return _read_program(reader.prepare_model(model), batch)
    except ModelError as error:
        document = error.document or " ".join(str(model.graph.name).split())
        raise type(error)(error.message, document=document, place=error.place) from error


def _read_program(model: onnx.ModelProto, batch: int | None) -> Program:
    nodes = reader.sort_nodes(model.graph)
    opset = reader.read_opset(model)
    inputs = select_data_inputs(model)
    tensors = reader.collect_initial_tensors(model.graph, _size_inputs(inputs, batch))
    for node in nodes:
        if node.kind not in SUPPORTED and not reader.is_constant(node, tensors):
            raise UnsupportedOperatorError(f"{node.kind} is not supported", place=node.place)
        reader.infer_outputs(node, tensors, opset)
    return _Assembly(model.graph, nodes, tensors, inputs).assemble()


def select_data_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs of every run: not those filled by initializers or, in our own graphs, the
    parameters.
    """
    filled = {tensor.name for tensor in model.graph.initializer}
    named = {
        name
        for entry in model.metadata_props
        if entry.key == DATA_INPUTS
        for name in entry.value.split()
    }
    return [
        value
        for value in model.graph.input
        if value.name not in filled and (not named or value.name in named)
    ]


def _size_inputs(
    inputs: Sequence[onnx.ValueInfoProto], batch: int | None
) -> dict[str, tuple[int, ...]]:
    if batch is not None and batch < 1:
        raise UnknownShapeError(f"batch must be at least 1, not {batch}")
    # Exporters call the batch N, batch_size, …: it is whatever the inputs begin with.
    firsts = [each.type.tensor_type.shape.dim[0] for each in inputs if _count_dimensions(each)]
    symbols = sorted({axis.dim_param for axis in firsts} - {""})
    if len(symbols) > 1:
        raise UnknownShapeError(
            f"inputs begin with different dimensions, {' and '.join(symbols)}: which is the batch?"
        )
    symbol = symbols[0] if symbols else None
    return {each.name: _size_input(each, batch, symbol) for each in inputs}


def _count_dimensions(value: onnx.ValueInfoProto) -> int:
    if (
        not value.type.HasField("tensor_type")
        or value.type.tensor_type.elem_type not in reader.list_element_types()
    ):
        raise UnsupportedOperatorError(f"input {value.name} has an unsupported element type")
    if not value.type.tensor_type.HasField("shape"):
        raise UnknownShapeError(f"input {value.name} has no shape")
    return len(value.type.tensor_type.shape.dim)


def _size_input(
    value: onnx.ValueInfoProto, batch: int | None, symbol: str | None
) -> tuple[int, ...]:
    shape = []
    for number, axis in enumerate(value.type.tensor_type.shape.dim):
        size = axis.dim_value if axis.HasField("dim_value") else None
        is_batch = axis.dim_param == symbol if axis.dim_param else number == 0
        if size is None and is_batch:
            size = batch
        if size is None or size < 1:
            name = f" ({axis.dim_param})" if axis.dim_param else ""
            raise UnknownShapeError(f"input {value.name}: dimension {number}{name} has no size")
        shape.append(size)
    if batch is not None and shape and shape[0] != batch:
        raise InconsistentModelError(
            f"input {value.name} is fixed at a batch of {shape[0]}, not {batch}"
        )
    return tuple(shape)


class _Assembly:
    """Turns nodes into operators and remembers which operator or input each tensor is."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        nodes: Sequence[reader.Node],
        tensors: reader.TensorInfos,
        inputs: Sequence[onnx.ValueInfoProto],
    ) -> None:
        self._graph = graph
        self._nodes = nodes
        self._tensors = tensors
        self._inputs = inputs
        self._origin = {value.name: -1 - number for number, value in enumerate(inputs)}
        self._operators: list[Operator] = []
        self._sources: list[tuple[int, ...]] = []
        self._parameters: set[str] = set()

    def assemble(self) -> Program:
        results = [value.name for value in self._graph.output]
        active = [node for node in self._nodes if not self._tensors[node.outputs[0]].constant]
        fused = {
            activation.last.name: activation
            for activation in find_activations(active, self._tensors, results)
        }
        inside = {part.name for activation in fused.values() for part in activation.parts} - set(
            fused
        )
        read = {tensor for node in active for tensor in node.inputs} | set(results)
        # A fused activation stands where its last node does; its other nodes vanish.
        for node in active:
            if node.name in fused:
                last = node.outputs[0]
                source = fused[node.name].source
                operator = Elementwise(
                    node.name, fused[node.name].kind, self._tensors[last].elements
                )
                self._append([operator], (source,), node.outputs)
            elif node.name not in inside:
                self._add(node, read)
        for name in results:
            if name not in self._origin:
                raise InconsistentModelError(f"output {name} does not depend on any input")
        return Program(
            self._graph.name,
            tuple(self._operators),
            tuple(self._sources),
            tuple(self._describe(value.name) for value in self._inputs),
            tuple(self._describe(name) for name in results),
            tuple(self._origin[name] for name in results),
            sum(self._tensors[name].elements for name in self._parameters),
        )

    def _add(self, node: reader.Node, read: set[str]) -> None:
        extra = [name for name in node.outputs[1:] if name in read]
        if extra and node.kind not in SEVERAL_OUTPUTS:
            raise UnsupportedOperatorError(
                f"reading its further output {extra[0]} is not supported", place=node.place
            )
        operators = lower_node(attach_types(node, self._tensors))
        if operators:
            self._append(operators, node.inputs, node.outputs)
        # A view makes no operator: its tensor is the source's.
        elif (source := self._origin.get(node.inputs[0])) is not None:
            self._origin[node.outputs[0]] = source
        else:
            raise UnsupportedOperatorError(
                "a computed view of a constant is not supported", place=node.place
            )

    def _append(
        self, operators: Sequence[Operator], inputs: Iterable[str], outputs: Iterable[str]
    ) -> None:
        """Add the operators of one node.

        The last of several reads the others, which read the inputs.
        """
        first = len(self._operators)
        at = len(self._operators) + len(operators) - 1
        origins = {name: self._origin.get(name) for name in inputs}
        read = tuple(dict.fromkeys(source for source in origins.values() if source is not None))
        self._operators += operators
        self._sources += [*[read] * (len(operators) - 1), tuple(range(first, at)) or read]
        self._parameters |= {
            name
            for name, source in origins.items()
            if source is None and self._tensors[name].element_type in reader.FLOATS
        }
        self._origin |= dict.fromkeys(outputs, at)

    def _describe(self, name: str) -> Tensor:
        tensor = self._tensors[name]
        return Tensor(name, tensor.shape, reader.get_element_bits(tensor.element_type))
