"""Reading and changing an ONNX model. onnx is imported here, after popart."""

# ruff: noqa: ARG002, N802, N803 (names and signatures are PopART's)

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from popart._devices import popart_exception

NEWEST_IR, NEWEST_OPSET = 6, 11
NAMES = {TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16"}


def parsed(modelProtoOrFilename):
    if isinstance(modelProtoOrFilename, bytes):
        return onnx.load_from_string(modelProtoOrFilename)
    try:
        return onnx.load(modelProtoOrFilename)
    except OSError as error:
        raise popart_exception(
            f"Failed to load a ModelProto from {modelProtoOrFilename}"
        ) from error


def checked(model):
    """Return the model.

    Raises popart_exception for a version that PopART's own onnx does not know.
    """
    if model.ir_version > NEWEST_IR:
        raise popart_exception(
            f"Your model ir_version {model.ir_version} is higher than the checker's {NEWEST_IR}"
        )
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version > NEWEST_OPSET:
            raise popart_exception(f"opset {opset.version} is newer than {NEWEST_OPSET}")
    return model


class GraphTransformer:
    def __init__(self, modelProtoOrFilename):
        self._model = checked(parsed(modelProtoOrFilename))

    def getModelProto(self):
        return self._model.SerializeToString()

    def convertFloatsToHalfs(self):
        graph = self._model.graph
        for tensor in graph.initializer:
            convert_to_fp16(tensor)
        for node in graph.node:
            for attribute in node.attribute:
                convert_to_fp16(attribute.t)
        for value in [*graph.input, *graph.output, *graph.value_info]:
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = TensorProto.FLOAT16


def convert_to_fp16(tensor):
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(
            numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name)
        )


class Builder:
    def __init__(self, modelProtoOrFilename=None, opsets=None, builderCore=None):
        self._model = checked(parsed(modelProtoOrFilename))

    def isInitializer(self, id):
        return id in {tensor.name for tensor in self._model.graph.initializer}

    def getInputTensorIds(self):
        return [value.name for value in self._model.graph.input]

    def getOutputTensorIds(self):
        return [value.name for value in self._model.graph.output]

    def getTensorShape(self, id):
        values = [*self._model.graph.input, *self._model.graph.output]
        value = next(value for value in values if value.name == id)
        # 0 where it is symbolic
        return [axis.dim_value for axis in value.type.tensor_type.shape.dim]
