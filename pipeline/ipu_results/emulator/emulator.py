"""An IPU one can run without having one: results by onnxruntime, time by the model of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx

from ipu_results.emulator.cache import saved
from ipu_results.emulator.halves import in_halves, rounded
from ipu_results.emulator.network import Network, network
from ipu_results.emulator.prediction import Prediction, predict
from ipu_results.emulator.protocol import Protocol
from ipu_results.emulator.target import Target, load_target
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError
from ipu_results.networks import build

Array = npt.NDArray[Any]


class Run(NamedTuple):
    """Outputs of the whole batch by name, and the predicted timing. Never a measurement: see `origin`."""

    outputs: dict[str, Array]
    timing: Prediction

    @property
    def origin(self) -> Literal["emulated"]:
        return self.timing.origin

    @property
    def calibration_id(self) -> str:
        return self.timing.calibration_id


class Emulator:
    """One machine; `protocol` is its host path, the target's usual one by default."""

    def __init__(self, target: Target | str = "c2", protocol: Protocol | str | None = None) -> None:
        self.target = target if isinstance(target, Target) else load_target(target)
        self.protocol = protocol

    def compile(self, model: Network | onnx.ModelProto | Path | str, batch_size: int) -> Compiled:
        """`batch_size` is that of the whole machine. A built-in network by name gets seeded weights when it is run.

        Raises ModelError for a model that cannot be read or a batch that the chips cannot share evenly.
        """
        source = network(model)
        with saved() as planner:
            (found,) = predict(source, self.target, [batch_size], self.protocol, planner=planner)
        return Compiled(source, found)


@dataclass(frozen=True)
class Compiled:
    """A network on a machine at one batch size, timed and ready to be run."""

    network: Network
    timing: Prediction

    def run(self, x: Array | Mapping[str, Array]) -> Run:
        """Compute a batch: one array, or arrays by input name, the first dimension of each the batch size.

        Weights and activations are rounded to fp16 (see `halves`). Raises InconsistentModelError for inputs that the
        network does not take, and for a network by shape alone.
        """
        given = self._checked(x, self.timing.batch_size)
        found = [self._computed({name: array[part] for name, array in given.items()}) for part in self._parts]
        return Run({name: np.concatenate([one[name] for one in found]) for name in found[0]}, self.timing)

    def run_chip(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Outputs of one chip for its micro-batch, by name; otherwise as `run`."""
        return self._computed(self._checked(x, self.timing.micro_batch_size))

    def _computed(self, given: Mapping[str, Array]) -> dict[str, Array]:
        session = _session(self.network, tuple(given))
        fed = {one.name: _as_fed(given[one.name], one.type) for one in session.get_inputs()}
        names = [one.name for one in session.get_outputs()]
        return dict(zip(names, session.run(names, fed), strict=True))

    @property
    def _parts(self) -> list[slice]:
        """What each chip computes."""
        micro = self.timing.micro_batch_size
        return [slice(start, start + micro) for start in range(0, self.timing.batch_size, micro)]

    def _checked(self, x: Array | Mapping[str, Array], batch: int) -> dict[str, Array]:
        program = self.network(self.timing.micro_batch_size)
        shapes = {one.name: (batch, *one.shape[1:]) for one in program.inputs}
        given = dict(x) if isinstance(x, Mapping) else {program.inputs[0].name: x}
        if set(given) != set(shapes):
            raise self._error(f"takes the inputs {', '.join(shapes)}, not {', '.join(given) or 'none'}")
        for name, shape in shapes.items():
            if np.shape(given[name]) != shape:
                raise self._error(f"input {name} must be {_size(shape)}, not {_size(np.shape(given[name]))}")
        for one in program.outputs:
            if one.shape[:1] != (self.timing.micro_batch_size,):
                raise self._error(f"output {one.name} does not begin with the batch: it cannot be put together")
        return given

    def _error(self, message: str) -> InconsistentModelError:
        return InconsistentModelError(message, document=self.network.name)


@lru_cache(maxsize=2)
def _session(known: Network, data_inputs: tuple[str, ...]) -> Any:
    """Kept, for it takes seconds to make and is the same for every batch. Raises InconsistentModelError without weights."""
    import onnxruntime  # noqa: PLC0415 (slow to import, and only needed to run)

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # no cast may be lost
    options.log_severity_level = 4
    data = in_halves(_weighted(known, data_inputs)).SerializeToString()
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        told = " ".join(str(error).split())[:300]
        raise UnrecognisedModelError(f"onnxruntime cannot run it: {told}", document=known.name) from error


def _weighted(known: Network, data_inputs: tuple[str, ...]) -> onnx.ModelProto:
    if known.built_in:
        return build(known.name, weights=True)
    model = onnx.ModelProto()
    model.CopyFrom(known.model)
    if known.folder is not None:
        onnx.load_external_data_for_model(model, str(known.folder))
    filled = {one.name for one in model.graph.initializer}
    if missing := [one.name for one in model.graph.input if one.name not in filled.union(data_inputs)]:
        message = f"has no weights, {missing[0]} for one: it can be timed and not run"
        raise InconsistentModelError(message, document=known.name)
    return model


def _as_fed(array: Array, kind: str) -> Array:
    return rounded(np.asarray(array, dtype=np.float32)) if kind == "tensor(float)" else np.asarray(array)


def _size(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a number"
