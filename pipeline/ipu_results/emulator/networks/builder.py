"""Build one ONNX graph: its nodes, its inputs and its parameters, drawn from a seed or known by
shape alone.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.float32]
Dimension = int | str

# the latest that PopART accepts
OPSET = 11
IR = 6
BATCH = "batch"
DATA_INPUTS = "ipu-results.data-inputs"
# gain on the weights' variance that makes up for the activation before
LINEAR = 1.0
RELU = 2.0
SWISH = 2.81
SPREAD = 0.1  # standard deviation of batch-norm shifts and means
PER_DRAW = 4  # 16-bit values in a 64-bit draw
SIGMA = (2**16 - 1) / math.sqrt(12)  # standard deviation of a uniform 16-bit integer


@cache
def read_sizes() -> dict[str, Any]:
    text = files("ipu_results.emulator").joinpath("data", "networks.toml").read_text("utf-8")
    return tomllib.loads(text)


def size_networks(name: str, kind: Callable[..., Any]) -> dict[str, Any]:
    """Return the networks of one kind by name, with the sizes that networks.toml has."""
    return {network: kind(**sizes) for network, sizes in read_sizes()[name].items()}


@dataclass(frozen=True, slots=True)
class BatchNorm:
    """A batch-norm at inference: `scale` is its gamma, its shift and mean are drawn, its variance
    is 1.
    """

    epsilon: float = 1e-5
    scale: float = 1.0


class GraphBuilder:
    """Collects the nodes and parameters of a graph.

    Without a `seed`, parameters are graph inputs known by shape alone, so a graph takes kilobytes.
    Every node's output has the node's name, and parameters are named after their node. Each `add_`
    method returns that name.
    """

    def __init__(
        self, seed: int | None = None, *, batch: int | None = None, folded: bool = False
    ) -> None:
        self.batch: Dimension = BATCH if batch is None else batch
        self._draws = None if seed is None else np.random.PCG64(seed)
        self._folded = folded
        self._nodes: list[onnx.NodeProto] = []
        self._data: list[onnx.ValueInfoProto] = []
        self._shapes: list[onnx.ValueInfoProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def add_input(
        self, name: str, shape: Sequence[Dimension], kind: int = TensorProto.FLOAT
    ) -> str:
        """Add an input of every run. The batch dimension is put first."""
        self._data.append(helper.make_tensor_value_info(name, kind, [self.batch, *shape]))
        return name

    def add_node(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def add_split(self, name: str, x: str, parts: Sequence[str]) -> list[str]:
        """Split the last dimension into equal parts, named `<name>.<part>`."""
        names = [f"{name}.{part}" for part in parts]
        self._nodes.append(helper.make_node("Split", [x], names, names[0], axis=-1))
        return names

    def add_slice(self, name: str, x: str, **bounds: Sequence[int]) -> str:
        """Add a part of a tensor; each bound is an input of that name."""
        inputs = [x]
        for bound, values in bounds.items():
            inputs.append(self.add_integers(f"{name}.{bound}", *values))
        return self.add_node("Slice", name, *inputs)

    def add_integers(self, name: str, *values: int) -> str:
        return self._add_tensor(name, np.array(values, dtype=np.int64))

    def add_scalar(self, name: str, value: float) -> str:
        return self._add_tensor(name, np.array(value, dtype=np.float32))

    def add_drawn(self, name: str, shape: tuple[int, ...], sigma: float) -> str:
        return self._add_parameter(name, self._draw(shape, sigma))

    def add_filled(self, name: str, shape: tuple[int, ...], value: float) -> str:
        return self._add_parameter(name, _fill(shape, value))

    def add_convolution(
        self,
        name: str,
        x: str,
        channels: tuple[int, int],
        kernel: int = 1,
        *,
        stride: int = 1,
        groups: int = 1,
        gain: float = RELU,
        norm: BatchNorm | None = None,
        padded: bool = True,
    ) -> str:
        """Add a square convolution padded by half its kernel, with a batch-norm after it or else
        its own bias.
        """
        ins, outs = channels
        fan_in = ins // groups * kernel * kernel
        weights = self._draw((outs, ins // groups, kernel, kernel), math.sqrt(gain / fan_in))
        pad = kernel // 2 if padded else 0
        window = {
            "kernel_shape": [kernel] * 2,
            "pads": [pad] * 4,
            "strides": [stride] * 2,
            "group": groups,
            "dilations": [1, 1],
        }
        size = (outs,)
        if norm is None:
            return self._add_layer("Conv", name, x, window, weight=weights, bias=_fill(size, 0.0))
        shift = self._draw(size, SPREAD)
        mean = self._draw(size, SPREAD)
        if self._folded:
            ratio = np.float32(norm.scale / math.sqrt(1 + norm.epsilon))
            bias = shift - mean * ratio
            return self._add_layer("Conv", name, x, window, weight=weights * ratio, bias=bias)
        return self._add_layer(
            "BatchNormalization",
            f"{name}.norm",
            self._add_layer("Conv", name, x, window, weight=weights),
            {"epsilon": norm.epsilon},
            scale=_fill(size, norm.scale),
            shift=shift,
            mean=mean,
            variance=_fill(size, 1.0),
        )

    def add_dense(self, name: str, x: str, channels: tuple[int, int]) -> str:
        """Add a Gemm with bias, its weights as (out, in)."""
        ins, outs = channels
        weights = self._draw((outs, ins), math.sqrt(LINEAR / ins))
        bias = _fill((outs,), 0.0)
        return self._add_layer("Gemm", name, x, {"transB": 1}, weight=weights, bias=bias)

    def _add_layer(
        self, kind: str, name: str, x: str, attributes: Mapping[str, Any], **parameters: Array
    ) -> str:
        """Add a node and its parameters, by their role."""
        inputs = [x]
        for role, values in parameters.items():
            inputs.append(self._add_parameter(f"{name}.{role}", values))
        return self.add_node(kind, name, *inputs, **attributes)

    def build_model(
        self, name: str, output: str, shape: Sequence[Dimension], opset: int = OPSET, ir: int = IR
    ) -> onnx.ModelProto:
        """Return the graph with one output.

        Its metadata name the data inputs: the other inputs are parameters.
        """
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, [self.batch, *shape])
        graph = helper.make_graph(
            self._nodes,
            name,
            inputs=self._data + self._shapes,
            outputs=[result],
            initializer=self._tensors,
        )
        model = helper.make_model(
            graph,
            producer_name="ipu-results",
            ir_version=ir,
            opset_imports=[helper.make_opsetid("", opset)],
        )
        names = " ".join(value.name for value in self._data)
        model.metadata_props.add(key=DATA_INPUTS, value=names)
        return model

    def _draw(self, shape: tuple[int, ...], sigma: float) -> Array:
        """Draw float32 of mean 0 and standard deviation `sigma`, none further out than 1.74 sigma,
        or return zeros that take no memory where the graph has no weights.

        They are uniform, from PCG64's raw draws, the same bytes on every machine and with every
        numpy: its policy fixes that stream, but not its normal distribution.
        """
        if self._draws is None:
            return np.broadcast_to(np.float32(0.0), shape)
        count = math.prod(shape)
        draws = math.ceil(count / PER_DRAW)
        raw = self._draws.random_raw(draws).astype("<u8", copy=False)
        integers = raw.view("<i2")[:count]
        values = integers.reshape(shape).astype(np.float32)
        values += np.float32(0.5)  # from -32768 to 32767 the mean is -0.5
        values *= np.float32(sigma / SIGMA)
        return values

    def _add_parameter(self, name: str, values: Array) -> str:
        if self._draws is not None:
            return self._add_tensor(name, values)
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, list(values.shape))
        self._shapes.append(value)
        return name

    def _add_tensor(self, name: str, values: npt.NDArray[Any]) -> str:
        self._tensors.append(numpy_helper.from_array(values, name))
        return name


def _fill(shape: tuple[int, ...], value: float) -> Array:
    return np.full(shape, value, dtype=np.float32)


@dataclass(slots=True)
class Flow:
    """A way through a graph: each node reads the tensor `x` that the one before made.

    Names of nodes begin with `prefix`. `channels` are those of `x`.
    """

    graph: GraphBuilder
    x: str
    channels: int
    prefix: str = ""

    def branch(self, prefix: str = "") -> Flow:
        """Return a way that begins here."""
        return replace(self, prefix=self.prefix + prefix)

    def add(self, kind: str, name: str, *others: str, **attributes: Any) -> Flow:
        inputs = (self.x, *others)
        self.x = self.graph.add_node(kind, self.prefix + name, *inputs, **attributes)
        return self

    def convolve(self, name: str, channels: int, kernel: int = 1, **options: Any) -> Flow:
        """Add a convolution, see `GraphBuilder.add_convolution`."""
        self.x = self.graph.add_convolution(
            self.prefix + name,
            self.x,
            (self.channels, channels),
            kernel,
            **options,
        )
        self.channels = channels
        return self

    def swish(self, name: str) -> Flow:
        gate = self.branch().add("Sigmoid", f"{name}.sigmoid")
        return self.add("Mul", name, gate.x)
