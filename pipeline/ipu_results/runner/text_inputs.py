"""Sequences of a file as a text model takes them: arrays by input name.

Runs in the sessions' processes: Python 3.8 with numpy only.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from ipu_results.errors import RunnerError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class SequenceStream:
    """The sequences of one session without end: the `first`, then every `step`th, and round again.

    Like `ImageStream`. Float inputs are converted to `dtype`.
    """

    def __init__(
        self,
        file: Path | str,
        inputs: Sequence[str],
        dtype: str = "float32",
        micro_batch: int = 1,
        first: int = 0,
        step: int = 1,
    ) -> None:
        with np.load(file) as arrays:
            read = {name: arrays[str(number)] for number, name in enumerate(inputs)}
        self._arrays = {name: x.astype(dtype) if x.dtype.kind == "f" else x for name, x in read.items()}
        self._count = len(next(iter(self._arrays.values())))
        self.micro_batch = micro_batch
        self.step = step
        self._next = first

    def load(self) -> list[int]:
        """Return the numbers of the next sequences, which are in memory."""
        places = range(self._next, self._next + self.micro_batch * self.step, self.step)
        self._next = places.stop
        return [place % self._count for place in places]

    def prepare(self, data: Sequence[int]) -> dict[str, Any]:
        """Return what `load` chose as the session takes it, by input: (micro-batch, …), C-contiguous."""
        return {name: x[data] for name, x in self._arrays.items()}


def save_sequences(file: Path, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Write arrays of one length; return the arguments of their `SequenceStream`."""
    np.savez(file, **{str(number): x for number, x in enumerate(arrays.values())})
    return {"file": str(file), "inputs": list(arrays)}


Array = npt.NDArray[Any]

INTEGERS: dict[int, str] = {TensorProto.INT64: "int64", TensorProto.INT32: "int32", TensorProto.BOOL: "bool"}
FLOATS: dict[int, str] = {TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16"}
ROLES = {"mask": "mask", "position": "positions", "type|segment": "types"}  # by a part of the name; else tokens
RESHAPING = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
MAX_SEQUENCE = 65_536  # tokens
STATE_IT = "state how many tokens a sequence has, with --sequence-length"


@dataclass(frozen=True, slots=True)
class TextInput:
    """One input of a text model: `shape` has no batch; `limit` counts the rows of the table of its tokens."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    limit: int = 0


def is_text(inputs: Sequence[onnx.ValueInfoProto]) -> bool:
    """Report whether a model takes sequences of integers: (batch, sequence) in one of its inputs at least."""
    return any(value.type.tensor_type.elem_type in INTEGERS and len(_get_axes(value)) == 2 for value in inputs)


def fix_text_inputs(
    model: onnx.ModelProto, inputs: Sequence[onnx.ValueInfoProto], sequence_length: int | None, source: str
) -> tuple[tuple[TextInput, ...], int, bool]:
    """Give every free dimension but the batch the length of a sequence; return the inputs, the length, what changed.

    Raises RunnerError for a length that is not stated or not the model's own, and for an input that cannot be filled.
    """
    length = _choose_length(inputs, sequence_length, source)
    symbols, changed = set(), False
    for value in inputs:
        for axis in _get_axes(value)[1:]:
            if not axis.HasField("dim_value"):
                symbols.add(axis.dim_param)
                axis.dim_value, changed = length, True
    for value in model.graph.output if changed else ():
        for axis in _get_axes(value)[1:]:
            if axis.dim_param and axis.dim_param in symbols:
                axis.dim_value = length
    if changed:
        del model.graph.value_info[:]  # it may hold the free dimensions
    return tuple(_describe_input(model.graph, value, source) for value in inputs), length, changed


def generate_sequences(inputs: Sequence[TextInput], count: int, seed: int) -> dict[str, Array]:
    """Return `count` full sequences: tokens drawn evenly from the table, no padding, one segment.

    The same on every machine and with every numpy, which fixes PCG64's raw draws.
    """
    return {own.name: _fill_input(own, count, seed + number) for number, own in enumerate(inputs)}


def hash_sequences(arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of names, types, shapes and bytes in the order of the names."""
    total = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape}\n".encode() + array.tobytes())
    return total.hexdigest()


def _choose_length(inputs: Sequence[onnx.ValueInfoProto], stated: int | None, source: str) -> int:
    axes = [_get_axes(value) for value in inputs if value.type.tensor_type.elem_type in INTEGERS]
    lengths = {own[1].dim_value for own in axes if len(own) == 2 and own[1].HasField("dim_value")}
    if len(lengths) > 1:
        printed = " and ".join(map(str, sorted(lengths)))
        raise RunnerError(f"its inputs have sequences of {printed} tokens: expected one length", document=source)
    length = next(iter(lengths), stated)
    if length is None:
        raise RunnerError(f"takes sequences of any length; {STATE_IT}", document=source)
    if stated not in (None, length):
        raise RunnerError(f"takes sequences of {length} tokens, not {stated}", document=source)
    if not 1 <= length <= MAX_SEQUENCE:
        raise RunnerError(f"a sequence has 1 to {MAX_SEQUENCE:,} tokens, not {length}", document=source)
    return int(length)


def _describe_input(graph: onnx.GraphProto, value: onnx.ValueInfoProto, source: str) -> TextInput:
    kind = value.type.tensor_type.elem_type
    shape = tuple(axis.dim_value for axis in _get_axes(value)[1:])
    role = next((role for pattern, role in ROLES.items() if re.search(pattern, value.name, re.I)), "tokens")
    dtype = INTEGERS.get(kind) or FLOATS.get(kind)
    fits = shape and (len(shape) == 1 or role == "mask") and (kind in INTEGERS or role == "mask")
    if dtype is None or not fits:
        printed = f"{TensorProto.DataType.Name(kind).lower()} ({', '.join(map(str, ('batch', *shape)))})"
        expected = "tokens, types, positions or a mask, integers of shape (batch, sequence)"
        raise RunnerError(f"input '{value.name}' is {printed}: expected {expected}", document=source)
    limit = _count_table_rows(graph, value.name) if role == "tokens" else 0
    if role == "tokens" and not limit:
        message = f"input '{value.name}' leads to no table of words: the tokens to draw are not known"
        raise RunnerError(message, document=source)
    return TextInput(value.name, dtype, shape, role, limit)


def _count_table_rows(graph: onnx.GraphProto, name: str) -> int:
    """Return the rows of the first table that an input's values are looked up in, 0 without one."""
    rows = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    reached = {name}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in rows:
            rows[node.output[0]] = rows[node.input[0]]
        if node.op_type == "Gather" and node.input[1] in reached and node.input[0] in rows:
            return int(rows[node.input[0]])
        if node.op_type in RESHAPING and node.input[0] in reached:
            reached.update(node.output)
    return 0


def _fill_input(own: TextInput, count: int, seed: int) -> Array:
    shape = (count, *own.shape)
    if own.role == "tokens":
        draws = np.random.PCG64(seed).random_raw(math.prod(shape)) % np.uint64(own.limit)
        return draws.reshape(shape).astype(own.dtype)
    if own.role == "positions":
        return np.ascontiguousarray(np.broadcast_to(np.arange(own.shape[-1]), shape).astype(own.dtype))
    # A float mask is added to the scores: zeros hide nothing. An integer one says which tokens count.
    value = own.role == "mask" and not own.dtype.startswith("float")
    return np.full(shape, value, dtype=own.dtype)


def _get_axes(value: onnx.ValueInfoProto) -> list[Any]:
    return list(value.type.tensor_type.shape.dim)
