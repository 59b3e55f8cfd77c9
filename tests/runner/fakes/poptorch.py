"""A fake of PopTorch, after its public source of SDK 3: same names, orders of calls and errors;
outputs by the module.

POPART_FAKE_IPUS are attached (1), of hardware version POPTORCH_FAKE_VERSION (2); POPART_FAKE_BUSY
is how often all are in use. An executor holds an IPU from its compilation on, until it is detached
or destroyed.
"""

# ruff: noqa: N802 (names and signatures are PopTorch's)

import os
import sys

if "onnx" in sys.modules:
    raise ImportError("onnx has already been imported: popart must be imported before onnx")

import torch

__version__ = "3.3.0-fake"
IPUS = int(os.environ.get("POPART_FAKE_IPUS", "1"))
BUSY = [int(os.environ.get("POPART_FAKE_BUSY", "0"))]
HELD = []  # executors that hold an IPU
CACHES = []


class Error(Exception):
    pass


class Options:
    def __init__(self):
        self.device_iterations, self.use_model = 1, False

    def deviceIterations(self, device_iterations):
        self.device_iterations = device_iterations
        return self

    def useIpuModel(self, use_model):
        self.use_model = use_model
        return self

    def setAvailableMemoryProportion(self, available_memory_proportion):
        assert all(key.startswith("IPU") for key in available_memory_proportion)
        return self

    def enableExecutableCaching(self, path):
        CACHES.append(path)
        return self


def ipuHardwareIsAvailable(num_ipus=1):
    return num_ipus <= IPUS


def ipuHardwareVersion():
    assert IPUS, "No IPU hardware available on this system"
    return int(os.environ.get("POPTORCH_FAKE_VERSION", "2"))


def inferenceModel(model, options=None):
    return PoplarExecutor(model, options or Options())


class PoplarExecutor:
    def __init__(self, model, options):
        self._model, self._options, self._shape = model, options, None

    def compile(self, x):
        assert x.shape[0] % self._options.device_iterations == 0, "Invalid batch dimension"
        self._acquire()
        self._shape = x.shape

    def isAttachedToDevice(self):
        return self in HELD

    def attachToDevice(self):
        if self in HELD:
            raise Error("Device is already attached")
        self._acquire()

    def detachFromDevice(self):
        if self not in HELD:
            raise Error("Device is not attached")
        HELD.remove(self)

    def destroy(self):
        self._shape = None
        if self in HELD:
            HELD.remove(self)

    def __call__(self, x):
        if self not in HELD or x.shape != self._shape:
            raise Error(f"not attached, or compiled for {self._shape} and not for {x.shape}")
        size = x.shape[0] // self._options.device_iterations
        parts = [self._model(x.narrow(0, start, size)) for start in range(0, x.shape[0], size)]
        return torch.concatenate(parts)  # the default output mode of inference: all batches

    def _acquire(self):
        held = sum(not other._options.use_model for other in HELD)
        if not self._options.use_model and (BUSY[0] or held >= IPUS):
            BUSY[0] = max(0, BUSY[0] - 1)
            raise Error("In poptorch/popart_compiler: Failed to acquire 1 IPU(s)")
        HELD.append(self)
