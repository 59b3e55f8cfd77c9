"""ONNX → operators: the one module of the front end that others import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import onnx

from ipu_results.emulator import fusion
from ipu_results.emulator.lowering import ELEMENTWISE_KINDS, SUPPORTED, lower, step
from ipu_results.emulator.model import Node, load, opset, ordered
from ipu_results.emulator.operators import Elementwise, Operator, Program, Tensor
from ipu_results.emulator.shapes import FLOATS, Value, Values, bits, element_types, infer, initial, is_constant
from ipu_results.errors import InconsistentModelError, ModelError, UnknownShapeError, UnsupportedOperatorError
from ipu_results.networks.builder import DATA_INPUTS

__all__ = ["ELEMENTWISE_KINDS", "SUPPORTED", "read_operators", "read_program"]


def read_operators(
    model: onnx.ModelProto | Path | str,
    batch: int | None = None,
    *,
    dimensions: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Operator, ...]:
    """The operators alone; see `read_program`."""
    return read_program(model, batch, dimensions=dimensions).operators


def read_program(
    model: onnx.ModelProto | Path | str,
    batch: int | None = None,
    *,
    dimensions: Mapping[str, int] = MappingProxyType({}),
) -> Program:
    """What one run of the network computes at `batch`, the size of the first dimension of every input.

    `dimensions` are sizes of other symbolic dimensions by name. Without `batch` the model must fix it. What depends on
    constants alone is left out, as are nodes that no output needs. Raises `ModelError` in one line that names the file
    or graph and the node.
    """
    try:
        loaded = load(model)
        return _program(loaded, batch, dimensions)
    except ModelError as error:
        document = " ".join(str(model.graph.name).split()) if isinstance(model, onnx.ModelProto) else str(model)
        raise type(error)(error.message, document=error.document or document, place=error.place) from error


def _program(model: onnx.ModelProto, batch: int | None, dimensions: Mapping[str, int]) -> Program:
    nodes = ordered(model.graph)
    fed = _data_inputs(model)
    values = initial(model.graph, _input_shapes(fed, batch, dimensions))
    for node in nodes:
        if node.kind not in SUPPORTED and not is_constant(node, values):
            raise UnsupportedOperatorError(f"{node.kind} is not supported", place=node.place)
        infer(node, values, opset(model))
    return _Assembly(model.graph, nodes, values, fed).program()


def _data_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Inputs fed on every run: not those that initializers fill or, as our own graphs tell, parameters without data."""
    filled = {one.name for one in model.graph.initializer}
    named = {name for one in model.metadata_props if one.key == DATA_INPUTS for name in one.value.split()}
    return [one for one in model.graph.input if one.name not in filled and (not named or one.name in named)]


def _input_shapes(
    inputs: Sequence[onnx.ValueInfoProto], batch: int | None, dimensions: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    for name, size in [("batch", 1 if batch is None else batch), *dimensions.items()]:
        if size < 1:
            raise UnknownShapeError(f"{name} must be at least 1, not {size}")
    symbol = _batch_symbol(inputs, dimensions)
    sizes = {**dimensions, **({symbol: batch} if batch is not None and symbol else {})}
    return {one.name: _input_shape(one, batch, sizes) for one in inputs}


def _batch_symbol(inputs: Iterable[onnx.ValueInfoProto], dimensions: Mapping[str, int]) -> str | None:
    firsts = {one.name: one.type.tensor_type.shape.dim[0].dim_param for one in inputs if _rank(one)}
    symbols = sorted({symbol for symbol in firsts.values() if symbol and symbol not in dimensions})
    if len(symbols) > 1:
        raise UnknownShapeError(f"inputs begin with different dimensions, {' and '.join(symbols)}: which is the batch?")
    return symbols[0] if symbols else None


def _rank(one: onnx.ValueInfoProto) -> int:
    if not one.type.HasField("tensor_type") or one.type.tensor_type.elem_type not in element_types():
        raise UnsupportedOperatorError(f"input {one.name} is no tensor of a type that there is")
    if not one.type.tensor_type.HasField("shape"):
        raise UnknownShapeError(f"input {one.name} has no shape")
    return len(one.type.tensor_type.shape.dim)


def _input_shape(one: onnx.ValueInfoProto, batch: int | None, sizes: Mapping[str, int]) -> tuple[int, ...]:
    shape = []
    for number, axis in enumerate(one.type.tensor_type.shape.dim):
        size = axis.dim_value if axis.HasField("dim_value") else sizes.get(axis.dim_param)
        if size is None and number == 0 and not axis.dim_param:
            size = batch
        if size is None or size < 1:
            named = f" ({axis.dim_param})" if axis.dim_param else ""
            raise UnknownShapeError(f"input {one.name}: dimension {number}{named} has no size")
        shape.append(size)
    if batch is not None and shape and shape[0] != batch:
        raise InconsistentModelError(f"input {one.name} is fixed at a batch of {shape[0]}, not {batch}")
    return tuple(shape)


class _Assembly:
    """Turns nodes into operators and remembers which operator or input each tensor is."""

    def __init__(
        self, graph: onnx.GraphProto, nodes: Sequence[Node], values: Values, fed: Sequence[onnx.ValueInfoProto]
    ) -> None:
        self._graph, self._nodes, self._values, self._fed = graph, nodes, values, fed
        self._origin = {one.name: -1 - number for number, one in enumerate(fed)}
        self._operators: list[Operator] = []
        self._sources: list[tuple[int, ...]] = []
        self._parameters: set[str] = set()

    def program(self) -> Program:
        results = [one.name for one in self._graph.output]
        active = [node for node in self._nodes if not self._values[node.outputs[0]].constant]
        fused = fusion.find(active, self._values, results)
        last = {one.last.name: one for one in fused}
        inside = {part.name for one in fused for part in one.parts} - set(last)
        read = {tensor for node in active for tensor in node.inputs} | set(results)
        for node in active:
            if node.name in last:
                self._add_fused(last[node.name])
            elif node.name not in inside:
                self._add(node, read)
        return Program(
            self._graph.name,
            tuple(self._operators),
            tuple(self._sources),
            tuple(self._tensor(one.name) for one in self._fed),
            tuple(self._tensor(name) for name in results),
            tuple(self._result(name) for name in results),
            sum(self._values[name].elements for name in self._parameters),
        )

    def _add(self, node: Node, read: set[str]) -> None:
        extra = [name for name in node.outputs[1:] if name in read]
        if extra and node.kind != "Split":
            raise UnsupportedOperatorError(f"its further output {extra[0]} is read: not supported", place=node.place)
        operator = lower(step(node, self._values))
        if operator is None:
            self._alias(node)
        else:
            self._append(operator, node.inputs, node.outputs)

    def _alias(self, node: Node) -> None:
        source = self._origin.get(node.inputs[0])
        if source is None:
            raise UnsupportedOperatorError("a constant seen in a computed way is not supported", place=node.place)
        self._origin[node.outputs[0]] = source

    def _add_fused(self, one: fusion.Fused) -> None:
        output = one.last.outputs[0]
        operator = Elementwise(one.last.name, one.kind, self._values[output].elements)
        self._append(operator, (one.source,), one.last.outputs)

    def _append(self, operator: Operator, inputs: Iterable[str], outputs: Iterable[str]) -> None:
        at = len(self._operators)
        self._operators.append(operator)
        known = {name: self._origin.get(name) for name in inputs}
        self._sources.append(tuple(dict.fromkeys(source for source in known.values() if source is not None)))
        self._parameters |= {
            name for name, source in known.items() if source is None and self._values[name].element in FLOATS
        }
        self._origin |= dict.fromkeys(outputs, at)

    def _tensor(self, name: str) -> Tensor:
        value: Value = self._values[name]
        return Tensor(name, value.shape, bits(value.element))

    def _result(self, name: str) -> int:
        if name not in self._origin:
            raise InconsistentModelError(f"output {name} does not depend on any input")
        return self._origin[name]
