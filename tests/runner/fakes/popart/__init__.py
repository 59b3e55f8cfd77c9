"""A fake of PopART, after its public source: same names, orders of calls and errors; outputs by
onnxruntime.

POPART_FAKE_SDK is the release: "2.2" (raises when all IPUs are busy) or "3.0", which has
tryAcquireAvailableDevice, too, that returns None then. POPART_FAKE_IPUS are attached (1), of
POPART_FAKE_TILES each; POPART_FAKE_BUSY is how often all are in use; POPART_FAKE_MEMORY the bytes
of weights and images that fit. Where PopART computes nonsense in silence (weights not on the
device, an array that is not contiguous) this one raises.
"""

# ruff: noqa: F401, N802 (names and signatures are PopART's)

import sys

if "onnx" in sys.modules:
    raise ImportError("onnx has already been imported: popart must be imported before onnx")

from popart._devices import SDK, DeviceManager, TensorInfo, attached, popart_exception
from popart._model import Builder, GraphTransformer
from popart._session import (
    AnchorReturnType,
    DataFlow,
    InferenceSession,
    OutOfMemoryException,
    PyStepIO,
    SessionOptions,
)


def versionString():
    return SDK + ".0"
