"""Build one ONNX graph: its nodes, its inputs and its parameters, drawn from a seed or known by
shape alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.float32]
Dimension = int | str

OPSET, IR = 11, 6  # the latest that PopART accepts
BATCH = "batch"
DATA_INPUTS = "ipu-results.data-inputs"
# gain on the weights' variance that makes up for the activation before
LINEAR, RELU, SWISH = 1.0, 2.0, 2.81
SPREAD = 0.1  # standard deviation of batch-norm shifts and means
PER_DRAW = 4  # 16-bit values in a 64-bit draw
SIGMA = (2**16 - 1) / math.sqrt(12)  # standard deviation of a uniform 16-bit integer


class WeightGenerator:
    """Seeded values, the same bytes on every machine and with every numpy.

    They are uniform, from PCG64's raw draws: numpy's policy fixes that stream, but not its normal
    distribution.
    """

    def __init__(self, seed: int) -> None:
        self._draws = np.random.PCG64(seed)

    def draw(self, shape: tuple[int, ...], sigma: float) -> Array:
        """Return float32 of mean 0 and standard deviation `sigma`, none further out than 1.74
        sigma.
        """
        count = math.prod(shape)
        raw = self._draws.random_raw(-(-count // PER_DRAW)).astype("<u8", copy=False)
        whole = raw.view("<i2")[:count].reshape(shape).astype(np.float32)
        whole += np.float32(0.5)
        whole *= np.float32(sigma / SIGMA)
        return whole


@dataclass(frozen=True, slots=True)
class BatchNorm:
    """A batch-norm at inference: `scale` is its gamma, its shift and mean are drawn, its variance
    is 1.
    """

    epsilon: float = 1e-5
    scale: float = 1.0


class GraphBuilder:
    """Collects the nodes and parameters of a graph.

    Without `weights`, parameters are graph inputs known by shape alone, so a graph takes kilobytes.
    Every node's output has the node's name, and parameters are named after their node. Each `add_`
    method returns that name.
    """

    def __init__(
        self, weights: WeightGenerator | None, *, batch: int | None = None, folded: bool = False
    ) -> None:
        self.batch: Dimension = BATCH if batch is None else batch
        self._weights = weights
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
        return self.add_node(
            "Slice",
            name,
            x,
            *(self.add_integers(f"{name}.{end}", *at) for end, at in bounds.items()),
        )

    def add_integers(self, name: str, *values: int) -> str:
        self._tensors.append(numpy_helper.from_array(np.array(values, dtype=np.int64), name))
        return name

    def add_scalar(self, name: str, value: float) -> str:
        self._tensors.append(numpy_helper.from_array(np.array(value, dtype=np.float32), name))
        return name

    def add_drawn(self, name: str, shape: tuple[int, ...], sigma: float) -> str:
        return self._add_parameter(name, shape, self._draw(shape, sigma))

    def add_filled(self, name: str, shape: tuple[int, ...], value: float) -> str:
        return self._add_parameter(name, shape, self._fill(shape, value))

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
    ) -> str:
        """Add a square convolution padded by half its kernel, with a batch-norm after it or else
        its own bias.
        """
        shape = (channels[1], channels[0] // groups, kernel, kernel)
        weights = self._draw(shape, math.sqrt(gain / math.prod(shape[1:])))
        bias = self._fill(shape[:1], 0.0)
        shift, mean = (None if norm is None else self._draw(shape[:1], SPREAD) for _ in range(2))
        if norm is not None and self._folded:
            ratio = np.float32(norm.scale / math.sqrt(1 + norm.epsilon))
            weights = None if weights is None else weights * ratio
            bias = None if shift is None or mean is None else shift - mean * ratio
        inputs = [x, self._add_parameter(f"{name}.weight", shape, weights)]
        if norm is None or self._folded:
            inputs.append(self._add_parameter(f"{name}.bias", shape[:1], bias))
        window = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4, "strides": [stride] * 2}
        y = self.add_node("Conv", name, *inputs, group=groups, dilations=[1, 1], **window)
        if norm is None or self._folded:
            return y
        return self._add_norm(f"{name}.norm", y, shape[:1], norm, shift, mean)

    def add_dense(
        self, name: str, x: str, channels: tuple[int, int], *, gain: float = LINEAR
    ) -> str:
        """Add a Gemm with bias, its weights as (out, in)."""
        weights = self.add_drawn(f"{name}.weight", channels[::-1], math.sqrt(gain / channels[0]))
        return self.add_node(
            "Gemm", name, x, weights, self.add_filled(f"{name}.bias", channels[1:], 0.0), transB=1
        )

    def build_model(
        self, name: str, output: str, shape: Sequence[Dimension], opset: int = OPSET, ir: int = IR
    ) -> onnx.ModelProto:
        """Return the graph with one output.

        Its metadata name the data inputs: the other inputs are parameters.
        """
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, [self.batch, *shape])
        graph = helper.make_graph(self._nodes, name, [*self._data, *self._shapes], [result])
        for tensor in self._tensors:
            graph.initializer.append(tensor)
        model = helper.make_model(
            graph,
            producer_name="ipu-results",
            ir_version=ir,
            opset_imports=[helper.make_opsetid("", opset)],
        )
        model.metadata_props.add(
            key=DATA_INPUTS, value=" ".join(value.name for value in self._data)
        )
        return model

    def _add_norm(
        self,
        name: str,
        x: str,
        shape: tuple[int, ...],
        norm: BatchNorm,
        shift: Array | None,
        mean: Array | None,
    ) -> str:
        scale = self.add_filled(f"{name}.scale", shape, norm.scale)
        drawn = [
            self._add_parameter(f"{name}.{role}", shape, own)
            for role, own in (("shift", shift), ("mean", mean))
        ]
        variance = self.add_filled(f"{name}.variance", shape, 1.0)
        return self.add_node(
            "BatchNormalization", name, x, scale, *drawn, variance, epsilon=norm.epsilon
        )

    def _draw(self, shape: tuple[int, ...], sigma: float) -> Array | None:
        return None if self._weights is None else self._weights.draw(shape, sigma)

    def _fill(self, shape: tuple[int, ...], value: float) -> Array | None:
        return None if self._weights is None else np.full(shape, value, dtype=np.float32)

    def _add_parameter(self, name: str, shape: tuple[int, ...], values: Array | None) -> str:
        if values is None:
            self._shapes.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        else:
            self._tensors.append(numpy_helper.from_array(values, name))
        return name
