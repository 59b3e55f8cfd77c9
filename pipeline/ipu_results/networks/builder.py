"""Collects the nodes and parameters of one ONNX graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ipu_results.networks.values import Array, Values

OPSET, IR = 11, 6  # the latest that PopART takes
BATCH = "batch"
DATA_INPUTS = "ipu-results.data-inputs"
LINEAR, RELU, SWISH = 1.0, 2.0, 2.81  # gain on the weights' variance that makes up for the activation before
SPREAD = 0.1  # standard deviation of batch-norm shifts and means

Dimension = int | str


@dataclass(frozen=True, slots=True)
class Norm:
    """An inference batch-norm: `scale` is its gamma; its shift and mean are drawn, its variance is 1."""

    epsilon: float = 1e-5
    scale: float = 1.0


class Builder:
    """Without `values` parameters are graph inputs known by shape alone, so a graph weighs kilobytes.

    Every node's output has the node's name, and parameters are named after their node.
    """

    def __init__(self, values: Values | None, *, batch: int | None = None, folded: bool = False) -> None:
        self.batch: Dimension = BATCH if batch is None else batch
        self._values, self._folded = values, folded
        self._nodes: list[onnx.NodeProto] = []
        self._data: list[onnx.ValueInfoProto] = []
        self._shapes: list[onnx.ValueInfoProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def data(self, name: str, shape: Sequence[Dimension], kind: int = TensorProto.FLOAT) -> str:
        """An input of the graph that is fed on every run; its batch dimension is put first."""
        self._data.append(helper.make_tensor_value_info(name, kind, [self.batch, *shape]))
        return name

    def node(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def integers(self, name: str, *values: int) -> str:
        self._tensors.append(numpy_helper.from_array(np.array(values, dtype=np.int64), name))
        return name

    def scalar(self, name: str, value: float) -> str:
        self._tensors.append(numpy_helper.from_array(np.array(value, dtype=np.float32), name))
        return name

    def drawn(self, name: str, shape: tuple[int, ...], sigma: float) -> str:
        return self._parameter(name, shape, self._draw(shape, sigma))

    def filled(self, name: str, shape: tuple[int, ...], value: float) -> str:
        return self._parameter(name, shape, self._fill(shape, value))

    def conv(
        self,
        name: str,
        x: str,
        channels: tuple[int, int],
        kernel: int = 1,
        *,
        stride: int = 1,
        groups: int = 1,
        gain: float = RELU,
        norm: Norm | None = None,
    ) -> str:
        """A square convolution padded by half its kernel, with a batch-norm after it or else a bias of its own."""
        shape = (channels[1], channels[0] // groups, kernel, kernel)
        weights = self._draw(shape, math.sqrt(gain / math.prod(shape[1:])))
        if norm is None:
            return self._conv(name, x, shape, weights, self._fill(shape[:1], 0.0), stride, groups)
        shift, mean = (self._draw(shape[:1], SPREAD) for _ in range(2))
        if self._folded:
            ratio = np.float32(norm.scale / math.sqrt(1 + norm.epsilon))
            weights = None if weights is None else weights * ratio
            bias = None if shift is None or mean is None else shift - mean * ratio
            return self._conv(name, x, shape, weights, bias, stride, groups)
        y = self._conv(name, x, shape, weights, None, stride, groups, biased=False)
        return self._norm(f"{name}.norm", y, shape[:1], norm, shift, mean)

    def dense(self, name: str, x: str, channels: tuple[int, int], *, gain: float = LINEAR) -> str:
        """A Gemm with bias, its weights as (out, in)."""
        weights = self.drawn(f"{name}.weight", channels[::-1], math.sqrt(gain / channels[0]))
        return self.node("Gemm", name, x, weights, self.filled(f"{name}.bias", channels[1:], 0.0), transB=1)

    def model(
        self, name: str, output: str, shape: Sequence[Dimension], opset: int = OPSET, ir: int = IR
    ) -> onnx.ModelProto:
        """The graph with one output; the metadata tell its data inputs from parameters known by shape alone."""
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, [self.batch, *shape])
        graph = helper.make_graph(self._nodes, name, [*self._data, *self._shapes], [result])
        for tensor in self._tensors:
            graph.initializer.append(tensor)
        model = helper.make_model(
            graph, producer_name="ipu-results", ir_version=ir, opset_imports=[helper.make_opsetid("", opset)]
        )
        model.metadata_props.add(key=DATA_INPUTS, value=" ".join(one.name for one in self._data))
        return model

    def _conv(
        self,
        name: str,
        x: str,
        shape: tuple[int, ...],
        weights: Array | None,
        bias: Array | None,
        stride: int,
        groups: int,
        *,
        biased: bool = True,
    ) -> str:
        inputs = [x, self._parameter(f"{name}.weight", shape, weights)]
        if biased:
            inputs.append(self._parameter(f"{name}.bias", shape[:1], bias))
        kernel = shape[2]
        window = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4, "strides": [stride] * 2}
        return self.node("Conv", name, *inputs, group=groups, dilations=[1, 1], **window)

    def _norm(
        self, name: str, x: str, shape: tuple[int, ...], norm: Norm, shift: Array | None, mean: Array | None
    ) -> str:
        scale = self.filled(f"{name}.scale", shape, norm.scale)
        drawn = [self._parameter(f"{name}.{role}", shape, one) for role, one in (("shift", shift), ("mean", mean))]
        variance = self.filled(f"{name}.variance", shape, 1.0)
        return self.node("BatchNormalization", name, x, scale, *drawn, variance, epsilon=norm.epsilon)

    def _draw(self, shape: tuple[int, ...], sigma: float) -> Array | None:
        return None if self._values is None else self._values.draw(shape, sigma)

    def _fill(self, shape: tuple[int, ...], value: float) -> Array | None:
        return None if self._values is None else np.full(shape, value, dtype=np.float32)

    def _parameter(self, name: str, shape: tuple[int, ...], values: Array | None) -> str:
        if values is None:
            self._shapes.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)))
        else:
            self._tensors.append(numpy_helper.from_array(values, name))
        return name
