"""Compiling a model for a device and running it there."""

# ruff: noqa: ARG002, N802, N803 (names and signatures are PopART's)

import hashlib
import math
import os
import pathlib

import numpy as np
import onnxruntime

from popart._devices import TensorInfo, popart_exception
from popart._model import NAMES, checked, parsed

MEMORY = int(os.environ.get("POPART_FAKE_MEMORY", str(304 << 20)))
CACHED = []  # for each compilation, whether its engine was in the cache
OPTIONS = {"partialsType", "availableMemoryProportion"}


class OutOfMemoryException(popart_exception):
    pass


class SessionOptions:
    def __init__(self):
        self.convolutionOptions = {}
        self.enableEngineCaching = False
        self.cachePath = "session_cache"


class AnchorReturnType:
    def __init__(self, anchorReturnTypeString, returnPeriod=0):
        if anchorReturnTypeString != "ALL" or returnPeriod:
            raise popart_exception(
                f"Invalid anchor return type ID supplied: {anchorReturnTypeString}"
            )


class DataFlow:
    def __init__(self, batchesPerStep, anchorTensors):
        if not all(isinstance(kind, AnchorReturnType) for kind in anchorTensors.values()):
            raise TypeError("incompatible constructor arguments: anchorTensors")
        self.batchesPerStep = batchesPerStep
        self.anchors = list(anchorTensors)


class PyStepIO:
    def __init__(self, inputs, outputs):
        self.inputs = dict(inputs)
        self.outputs = dict(outputs)


class InferenceSession:
    def __init__(
        self,
        fnModel,
        dataFlow,
        deviceInfo,
        inputShapeInfo=None,
        patterns=None,
        userOptions=None,
        name="inference",
    ):
        options = userOptions or SessionOptions()
        if not isinstance(dataFlow, DataFlow) or not isinstance(options, SessionOptions):
            raise TypeError("incompatible constructor arguments")
        if not deviceInfo.isAttached:
            raise popart_exception("failed to attach to device")
        _check_options(options.convolutionOptions)
        self._model = checked(parsed(fnModel))
        self._flow = dataFlow
        self._device = deviceInfo
        ends = [*self._model.graph.input, *self._model.graph.output]
        self._infos = {value.name: _info(value) for value in ends}
        self._engine = None
        self._cache = options.cachePath if options.enableEngineCaching else None

    def prepareDevice(self, loadEngine=True):
        if self._cache:
            # PopART's key has the operators and not the values of weights
            graph = type(self._model)()
            graph.CopyFrom(self._model)
            for tensor in graph.graph.initializer:
                tensor.ClearField("raw_data")
            key = hashlib.sha256(
                graph.SerializeToString() + bytes([self._flow.batchesPerStep])
            ).hexdigest()
            file = pathlib.Path(self._cache) / f"{key}.popef"
            CACHED.append(file.exists())
            file.touch()
        weights = sum(len(tensor.raw_data) for tensor in self._model.graph.initializer)
        images = sum(self._bytes(value.name) for value in self._model.graph.input)
        if weights + images > MEMORY:
            raise OutOfMemoryException("Out of memory on all tiles")
        self._engine = onnxruntime.InferenceSession(
            self._model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        self._load()

    def initAnchorArrays(self):
        arrays = {}
        for name in self._flow.anchors:
            shape = self._infos[name].shape()
            if self._flow.batchesPerStep > 1:
                shape = [self._flow.batchesPerStep, *shape]
            arrays[name] = np.empty(shape, self._infos[name].data_type_lcase())
        return arrays

    def weightsFromHost(self):
        self._need_engine()
        self._load()
        self._device.weights = self

    def getInfo(self, id):
        return self._infos[id]

    def run(self, stepio, debugName=""):
        self._need_engine()
        self._load()
        if self._device.weights is not self:
            raise popart_exception(
                "fake: the weights of this session are not on the device: weightsFromHost"
            )
        for name, array in stepio.inputs.items():
            self._check(name, array)
        steps = self._flow.batchesPerStep
        for name in self._flow.anchors:
            if name not in stepio.outputs:
                raise popart_exception(f"No tensor {name} provided in PyStepIO's outputs")
        for step in range(steps):
            feed = {}
            for name, array in stepio.inputs.items():
                feed[name] = array.reshape(steps, *self._infos[name].shape())[step]
            outputs = self._engine.run(self._flow.anchors, feed)
            for name, output in zip(self._flow.anchors, outputs, strict=True):
                stepio.outputs[name].reshape(steps, *output.shape)[step] = output

    def _need_engine(self):
        if self._engine is None:
            raise popart_exception(
                "Trying to load an engine but no compiled engine: prepareDevice()"
            )
        if not self._device.isAttached:
            raise popart_exception("failed to attach to device")

    def _load(self):
        if self._device.loaded is not self:
            self._device.loaded = self
            self._device.weights = None

    def _check(self, name, array):
        if name not in self._infos:
            raise popart_exception(
                f"The tensor '{name}' is not registered as one of the inputs to the model"
            )
        info = self._infos[name]
        expected = math.prod(info.shape()) * self._flow.batchesPerStep
        if array.size != expected:
            raise popart_exception(
                f"Unexpected number of input elements for Tensor {name}. Expected {expected}"
            )
        if str(array.dtype) != info.data_type_lcase():
            raise popart_exception(
                f"Type discrepancy for tensor {name}. User provided : {array.dtype}"
            )
        if not array.flags.c_contiguous:
            raise popart_exception("fake: the array is not contiguous")

    def _bytes(self, name):
        info = self._infos[name]
        return math.prod(info.shape()) * np.dtype(info.data_type_lcase()).itemsize


def _info(value):
    dims = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
    if not dims or min(dims) < 1:
        raise popart_exception(f"the shape of {value.name} is not static")
    return TensorInfo(NAMES[value.type.tensor_type.elem_type], dims)


def _check_options(options):
    for key, value in options.items():
        if key not in OPTIONS or not isinstance(value, str):
            raise popart_exception(
                f"convolutionOptions takes text of {sorted(OPTIONS)}, not {key}={value!r}"
            )
    if not 0 < float(options.get("availableMemoryProportion", "0.6")) <= 1:
        raise popart_exception("availableMemoryProportion must be in (0,1]")
