"""Fix the free dimensions of a model's inputs: `NAME=1,3,224,224`, or `sequence=128` for a named dimension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from ipu_results.errors import InconsistentModelError, UnknownShapeError

FREE = frozenset({"N", "?", "*", "-1"})  # sizes that stay free; the batch is set by the batch size
Shape = tuple[int | None, ...]


def parse_shapes(pairs: Iterable[str]) -> dict[str, Shape]:
    """Read NAME=SIZE,… texts. Raises UnknownShapeError for a text of another form."""
    return dict(_parse_shape(pair) for pair in pairs)


def _parse_shape(pair: str) -> tuple[str, Shape]:
    name, _, sizes = (part.strip() for part in pair.rpartition("="))
    texts = [size.strip() for size in sizes.split(",")]
    if not name or not all(size in FREE or (size.isascii() and size.isdigit() and int(size)) for size in texts):
        raise UnknownShapeError("is not NAME=SIZES, for example input=1,3,224,224", document=pair)
    return name, tuple(None if size in FREE else int(size) for size in texts)


def fix_shapes(inputs: Iterable[onnx.ValueInfoProto], shapes: Mapping[str, Shape]) -> int | None:
    """Set the sizes in the inputs themselves and return the batch that they name, None if they name none.

    The first dimension of the inputs is the batch if it is free. It stays free, and 1 there names no batch. If inputs
    begin with different dimensions, those with a size are not the batch.
    """
    values = {value.name: value for value in inputs}
    firsts = {name: dims[0] for name, value in values.items() if (dims := _get_dims(value)) and _is_free(dims[0])}
    symbols = {axis.dim_param for value in values.values() for axis in _get_dims(value)} - {""}
    batch_symbols = {axis.dim_param for axis in firsts.values()}
    if len(batch_symbols - {""}) > 1:
        sized = {firsts[name].dim_param for name, shape in shapes.items() if shape[0] and name in firsts}
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
            known = f"the inputs {', '.join(values)} and the free dimensions {', '.join(sorted(symbols)) or 'none'}"
            raise UnknownShapeError(f"{name} is not an input: the model has {known}")
    for value in values.values():
        for axis in _get_dims(value):
            if axis.dim_param in sizes:
                axis.dim_value = sizes[axis.dim_param]
    batches -= {1}
    if len(batches) > 1:
        raise InconsistentModelError(f"the shapes name different batches, {' and '.join(map(str, sorted(batches)))}")
    return min(batches, default=None)


def _read_sizes(
    value: onnx.ValueInfoProto, shape: Shape, batch_symbols: set[str], sizes: dict[str, int], batches: set[int]
) -> None:
    dims = _get_dims(value)
    if len(dims) != len(shape):
        raise InconsistentModelError(f"input {value.name} has {len(dims)} dimensions, not {len(shape)}")
    for number, (axis, size) in enumerate(zip(dims, shape, strict=True)):
        if size is None:
            continue
        if not _is_free(axis):
            if axis.dim_value != size:
                message = f"input {value.name}: dimension {number} is fixed at {axis.dim_value}, not {size}"
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
