"""PopTorch on an IPU, or on Poplar's model of one.

It has not yet run on an IPU, only against the fake of its tests.

Names, arguments and errors are those of PopTorch's public source, SDK 3. It brings PopART, so it
must precede onnx. The network of the ONNX file is built again as a PyTorch module, one call for
each operator.
"""

# ruff: noqa: ARG005 (all operators have the same arguments)

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipu_results.errors import BackendError
from ipu_results.runner.backends import Device, Session, SessionSpec, popart
from ipu_results.runner.backends.popart import IPU, MODEL, wrap_errors

NAME, TITLE = "poptorch", "PopTorch"
API = ("Options", "inferenceModel", "ipuHardwareIsAvailable", "ipuHardwareVersion")
TRAITS = popart.TRAITS
CHIPS = {1: "GC2", 2: "GC200"}  # by PopTorch's hardware version; 21 is that of several chips
BUSY = "Failed to acquire"  # is in PopTorch's message where all IPUs are in use


def probe() -> list[Device]:
    """List an IPU and the model of one, which is selected by name only."""
    reason: str | None = None
    try:
        with wrap_errors("PopTorch cannot list the IPUs"):
            available = popart.load_library(NAME, TITLE, API).ipuHardwareIsAvailable()
    except BackendError as error:
        available, reason = False, error.message
    ipu = Device(NAME, IPU, "ipu", "IPU", None if available else reason or popart.NO_IPU)
    return [ipu, Device(NAME, MODEL, "simulated", popart.MODEL_DESCRIPTION, reason)]


def open(spec: SessionSpec) -> Session:
    """Open one IPU and compile the smallest micro-batch for it, with the options that the backend
    popart has.

    Raises BackendError: no PopTorch, no IPU or none free, a model with another operator, or one
    that does not fit.
    """
    popart.check_spec(spec, TITLE)
    poptorch = popart.load_library(NAME, TITLE, API)
    if spec.device == IPU and not poptorch.ipuHardwareIsAvailable():
        raise BackendError(popart.NO_IPU)
    return PopTorchSession(poptorch, None, spec)


@dataclass(frozen=True)
class PopTorchProgram:
    """The executor of one micro-batch and number of batches a step.

    It holds the IPU while it is attached.
    """

    executor: Any
    from_numpy: Any
    shape: tuple[int, ...]
    load_s: float
    compile_s: float

    def load(self) -> None:
        """Take the IPU and write the weights."""
        if not self.executor.isAttachedToDevice():
            self.executor.attachToDevice()

    def unload(self) -> None:
        """Leave the IPU, so that another program can take it."""
        if self.executor.isAttachedToDevice():
            self.executor.detachFromDevice()

    def run(self, images: Any, steps: int) -> Any:  # noqa: ARG002 (PopTorch splits the batches of a step itself)
        """Return the outputs of a step, on the host."""
        return self.executor(self.from_numpy(images)).numpy()


class PopTorchSession(popart.PopartSession):
    """One IPU through PopTorch."""

    def _compile(self, micro_batch: int, steps: int) -> PopTorchProgram:
        import numpy as np  # noqa: PLC0415 (names of backends are needed without it)
        import torch  # noqa: PLC0415 (PopTorch brings it)

        poptorch, start = self._library, time.perf_counter()
        with wrap_errors(f"PopTorch does not accept the model of micro-batch {micro_batch}"):
            file = self._get_file(micro_batch)
            model, shape = build_module(torch, file)
            if shape[:1] != (micro_batch,):
                raise BackendError(
                    f"the model of micro-batch {micro_batch} has the shape {shape}: it must be"
                    " static"
                )
            if self._precision == "fp16":
                model.half()
            options = (
                poptorch.Options().deviceIterations(steps).useIpuModel(self._spec.device == MODEL)
            )
            options.setAvailableMemoryProportion(
                {"IPU0": popart.choose_proportion(self._spec, micro_batch)}
            )
            key = Path(file).read_bytes() + self._precision.encode()
            if cache := popart.choose_cache(self._spec, key, steps):
                options.enableExecutableCaching(cache)
            executor = poptorch.inferenceModel(model.eval(), options)
            images = torch.from_numpy(np.zeros((steps * micro_batch, *shape[1:]), self.dtype))
        loaded = time.perf_counter()
        with wrap_errors(f"PopTorch cannot compile the model for micro-batch {micro_batch}"):
            popart.wait_for_ipu(
                lambda: executor.compile(images) or executor,
                self._spec,
                lambda error: BUSY in str(error),
            )
            compiled = time.perf_counter()
            dtype = str(executor(images).dtype)
        if dtype != f"torch.{self.dtype}":
            executor.destroy()
            raise BackendError(
                f"the compiled model returns {dtype}, so it does not compute in {self._precision}"
            )
        self.facts.compute_precision = self._precision
        return PopTorchProgram(executor, torch.from_numpy, shape, loaded - start, compiled - loaded)

    def _identify(self) -> tuple[str, dict[str, str], str | None, int, str]:
        import torch  # noqa: PLC0415

        generation = self._library.ipuHardwareVersion() if self._spec.device == IPU else 0
        versions = {"poptorch": str(self._library.__version__), "torch": str(torch.__version__)}
        unknown = f"PopTorch does not tell which chip has the hardware version {generation}"
        return (
            "PyTorch",
            versions,
            CHIPS.get(generation),
            1,
            unknown,
        )  # the framework as the vendor's tables name it


def build_module(torch: Any, file: str) -> tuple[Any, tuple[int, ...]]:
    """Return the network of an ONNX file as a PyTorch module, and the shape of its input.

    Raises BackendError for an operator or a setting that no network of this project has.
    """
    import onnx  # noqa: PLC0415 (PopTorch must precede it)
    from onnx import helper, numpy_helper  # noqa: PLC0415

    graph = onnx.load(file).graph
    steps = [
        (
            n.op_type,
            list(n.input),
            n.output[0],
            {a.name: helper.get_attribute_value(a) for a in n.attribute},
        )
        for n in graph.node
    ]
    for kind, _, _, settings in steps:
        pads = settings.get("pads", [])
        is_read = all(
            name in READ.get(kind, ()) or FIXED.get(name) == value
            for name, value in settings.items()
        )
        is_square = pads[: len(pads) // 2] == pads[len(pads) // 2 :]
        if (
            kind not in OPERATORS
            or not (is_read and is_square)
            or (kind == "Gemm" and not settings.get("transB"))
        ):
            raise BackendError(
                f"PopTorch runs no {kind} with these settings here: choose --backend popart"
            )
    weights = {tensor.name: numpy_helper.to_array(tensor).copy() for tensor in graph.initializer}
    [source] = [value for value in graph.input if value.name not in weights]
    slots = {
        name: f"weight{number}" for number, name in enumerate(weights)
    }  # a parameter's name has no dots

    class OnnxModule(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for name, array in weights.items():
                self.register_parameter(
                    slots[name], torch.nn.Parameter(torch.from_numpy(array), requires_grad=False)
                )

        def forward(self, images: Any) -> Any:
            values = {
                source.name: images,
                **{name: getattr(self, slot) for name, slot in slots.items()},
            }
            for kind, names, target, settings in steps:
                values[target] = OPERATORS[kind](
                    torch.nn.functional, settings, *(values[name] for name in names)
                )
            return values[graph.output[0].name]

    return OnnxModule(), tuple(axis.dim_value for axis in source.type.tensor_type.shape.dim)


def _pad(settings: Any) -> tuple[int, ...]:
    return tuple(settings.get("pads", [0, 0, 0, 0])[:2])


READ = {  # settings that OPERATORS reads
    "Conv": {"strides", "pads", "dilations", "group", "kernel_shape"},
    "BatchNormalization": {"epsilon", "momentum"},
    "MaxPool": {"strides", "pads", "kernel_shape"},
}
FIXED = {  # settings that OPERATORS does not read, with the one value that it computes
    "alpha": 1.0,
    "beta": 1.0,
    "transA": 0,
    "transB": 1,
    "axis": 1,
    "ceil_mode": 0,
    "training_mode": 0,
}
OPERATORS: dict[str, Any] = {
    "Conv": lambda f, s, x, w, b=None: f.conv2d(
        x, w, b, s["strides"], _pad(s), s["dilations"], s["group"]
    ),
    "BatchNormalization": lambda f, s, x, scale, bias, mean, variance: f.batch_norm(
        x, mean, variance, scale, bias, False, 0.0, s["epsilon"]
    ),
    "Relu": lambda f, s, x: f.relu(x),
    "Sigmoid": lambda f, s, x: x.sigmoid(),
    "Add": lambda f, s, x, y: x + y,
    "Mul": lambda f, s, x, y: x * y,
    "MaxPool": lambda f, s, x: f.max_pool2d(x, s["kernel_shape"], s["strides"], _pad(s)),
    "GlobalAveragePool": lambda f, s, x: x.mean((2, 3), keepdim=True),
    "Flatten": lambda f, s, x: x.flatten(1),
    "Gemm": lambda f, s, x, w, b: f.linear(x, w, b),
}
