"""The parts of PyTorch that the PopTorch backend calls, by onnx's reference evaluator, where it is
not installed.
"""

# ruff: noqa: ARG001, ARG002, ARG005 (names and signatures are PyTorch's)

import types

import numpy as np

__version__ = "0.fake"


class Tensor:
    def __init__(self, array):
        self.array = array
        self.shape = array.shape
        self.dtype = f"torch.{array.dtype}"

    def numpy(self):
        return self.array

    def narrow(self, dim, start, length):
        return Tensor(self.array[start : start + length])

    def half(self):
        return Tensor(self.array.astype("float16"))

    def __add__(self, other):
        return _run("Add", self, other)

    def __mul__(self, other):
        return _run("Mul", self, other)

    def sigmoid(self):
        return _run("Sigmoid", self)

    def mean(self, dims, keepdim):
        assert (dims, keepdim) == ((2, 3), True)
        return _run("GlobalAveragePool", self)

    def flatten(self, start):
        return _run("Flatten", self, axis=start)


def _run(kind, *tensors, **settings):
    from onnx import helper  # noqa: PLC0415 (after the fake poptorch)
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    feed = {f"x{number}": tensor.array.astype("float32") for number, tensor in enumerate(tensors)}
    node = helper.make_node(kind, list(feed), ["y"], **settings)
    return Tensor(ReferenceEvaluator(node).run(None, feed)[0].astype(tensors[0].array.dtype))


def _conv2d(x, w, b, stride, padding, dilation, groups):
    window = {
        "strides": stride,
        "pads": [*padding, *padding],
        "dilations": dilation,
        "group": groups,
    }
    return _run("Conv", *(part for part in (x, w, b) if part is not None), **window)


def _batch_norm(x, mean, variance, weight, bias, training, momentum, eps):
    assert not training
    return _run("BatchNormalization", x, weight, bias, mean, variance, epsilon=eps)


functional = types.SimpleNamespace(
    conv2d=_conv2d,
    batch_norm=_batch_norm,
    relu=lambda x: _run("Relu", x),
    max_pool2d=lambda x, size, stride, pad: _run(
        "MaxPool", x, kernel_shape=size, strides=stride, pads=[*pad, *pad]
    ),
    linear=lambda x, w, b: _run("Gemm", x, w, b, transB=1),
)


class Module:
    def register_parameter(self, name, parameter):
        assert "." not in name
        setattr(self, name, parameter)

    def half(self):
        for name, value in vars(self).items():
            setattr(self, name, value.half())

    def eval(self):
        return self

    def __call__(self, x):
        return self.forward(x)


nn = types.SimpleNamespace(
    Module=Module, Parameter=lambda tensor, requires_grad: tensor, functional=functional
)
from_numpy = Tensor
concatenate = lambda tensors: Tensor(np.concatenate([tensor.array for tensor in tensors]))  # noqa: E731
