"""Run a network on an emulated IPU: outputs by onnxruntime in fp16, time by the model of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import onnx

from ipu_results.emulator.cache import open_plan_cache
from ipu_results.emulator.codelets import FloatArray, open_session, round_to_fp16
from ipu_results.emulator.network import Network, load_network
from ipu_results.emulator.prediction import Prediction, predict
from ipu_results.emulator.protocol import Protocol
from ipu_results.emulator.target import Target, load_target
from ipu_results.errors import InconsistentModelError


class EmulatedRun(NamedTuple):
    """Outputs of a whole batch by name, and the predicted timing. Never a measurement: see `origin`."""

    outputs: dict[str, FloatArray]
    timing: Prediction

    @property
    def origin(self) -> Literal["emulated"]:
        return self.timing.origin

    @property
    def calibration_id(self) -> str:
        return self.timing.calibration_id


class Emulator:
    """An IPU machine that is emulated: it predicts the time of a network and computes its outputs.

        run = Emulator("c2").compile("resnext101-32x4d", batch_size=4).run(images)
        run.outputs["classes"]     # float32, (4, 1000), every value an fp16 one
        run.timing.latency_ms      # milliseconds of the batch, with latency_ms_low and latency_ms_high
        run.timing.throughput      # images per second; power_w in watts, c2 only

    `target` is "c2" (2 chips), "m2000" or "bow-2000" (4 chips), or a Target with other constants. `protocol` is the
    host path: "paper", "tensorflow", "pytorch", "lowest-latency" or "io-tiles", by default the target's usual one.

    `compile` accepts a built-in network by name, the path of an ONNX file, or a ModelProto, and the batch size over all
    chips, which must be a multiple of their number. `run` accepts one array, or arrays by input name, whose first
    dimension is the batch: images are (batch, 3, 224, 224) in float32 for ResNet-50 and ResNeXt101.

    Errors are subclasses of ModelError, in one line that names the model and the node: UnrecognisedModelError (not a
    model, target or protocol), UnsupportedOperatorError, UnknownShapeError, InconsistentModelError (a batch that the
    chips cannot share evenly, inputs of another shape, or a network without weights in `run`).
    """

    def __init__(self, target: Target | str = "c2", protocol: Protocol | str | None = None) -> None:
        self.target = target if isinstance(target, Target) else load_target(target)
        self.protocol = protocol

    def compile(self, model: Network | onnx.ModelProto | Path | str, batch_size: int) -> CompiledNetwork:
        """Predict the network at a batch size of the whole machine. A built-in network has seeded weights when run."""
        network = load_network(model)
        with open_plan_cache() as planner:
            (prediction,) = predict(network, self.target, [batch_size], self.protocol, planner=planner)
        return CompiledNetwork(network, prediction)


@dataclass(frozen=True)
class CompiledNetwork:
    """A network on a machine at one batch size, timed and ready to run."""

    network: Network
    timing: Prediction

    def run(self, x: FloatArray | Mapping[str, FloatArray]) -> EmulatedRun:
        """Compute a whole batch, each chip its micro-batch. Weights and activations are rounded to fp16.

        Raises InconsistentModelError for inputs that the network does not have and for a network without weights.
        """
        arrays = self._check_inputs(x, self.timing.batch_size)
        micro = self.timing.micro_batch_size
        chips = [
            self._compute({name: array[start : start + micro] for name, array in arrays.items()})
            for start in range(0, self.timing.batch_size, micro)
        ]
        return EmulatedRun({name: np.concatenate([chip[name] for chip in chips]) for name in chips[0]}, self.timing)

    def run_chip(self, x: FloatArray | Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Compute the outputs of one chip for its micro-batch, by name. Otherwise as `run`."""
        return self._compute(self._check_inputs(x, self.timing.micro_batch_size))

    def _compute(self, arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        session = open_session(self.network, tuple(arrays))
        feeds = {source.name: _to_input(arrays[source.name], source.type) for source in session.get_inputs()}
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, feeds), strict=True))

    def _check_inputs(self, x: FloatArray | Mapping[str, FloatArray], batch: int) -> dict[str, FloatArray]:
        """Return the inputs by name. Raises InconsistentModelError for other names or shapes."""
        program = self.network(self.timing.micro_batch_size)
        shapes = {tensor.name: (batch, *tensor.shape[1:]) for tensor in program.inputs}
        arrays = dict(x) if isinstance(x, Mapping) else {program.inputs[0].name: x}
        if set(arrays) != set(shapes):
            raise self._error(f"has the inputs {', '.join(shapes)}, not {', '.join(arrays) or 'none'}")
        for name, shape in shapes.items():
            if np.shape(arrays[name]) != shape:
                raise self._error(
                    f"input {name} must be {_format_shape(shape)}, not {_format_shape(np.shape(arrays[name]))}"
                )
        for tensor in program.outputs:
            if tensor.shape[:1] != (self.timing.micro_batch_size,):
                raise self._error(f"output {tensor.name} does not begin with the batch: chips cannot be concatenated")
        return arrays

    def _error(self, message: str) -> InconsistentModelError:
        return InconsistentModelError(message, document=self.network.name)


def _to_input(array: FloatArray, kind: str) -> FloatArray:
    return round_to_fp16(np.asarray(array, dtype=np.float32)) if kind == "tensor(float)" else np.asarray(array)


def _format_shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a number"
