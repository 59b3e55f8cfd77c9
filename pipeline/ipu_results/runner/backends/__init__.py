"""What a backend is, and what the sessions of ONNX Runtime and OpenVINO share.

One backend a file in this package.

This file, `popart`, `inputs` and `worker` keep to Python 3.8, the newest version that PopART's
wheels support.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypedDict, cast

from ipu_results.errors import BackendError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    Batch = np.ndarray | dict[str, np.ndarray]
    """Images (n, 3, height, width), or the inputs of a text model by name."""

NAMES = ("popart", "onnxruntime", "openvino", "emulator")
PRECISIONS = ("fp32", "fp16", "bf16", "int8")
# of a block: batches in a stream, or nothing else in flight
Kind = Literal["amortised", "isolated"]
NAP_NS = 1_000_000  # the last part of a wait is spent without sleeping, which would overshoot

FLOATS = ("float32", "float16")
INTEGERS = ("int64", "int32", "bool")  # of a text model
MAX_MESSAGE = 500  # characters: some libraries print their whole graph


@dataclass(frozen=True)
class Device:
    """One device of a backend.

    `name` selects it on the command line, `reason` says why it cannot be used here.
    """

    backend: str
    name: str
    kind: str
    description: str
    reason: str | None = None

    @property
    def usable(self) -> bool:
        return self.reason is None


@dataclass(frozen=True)
class SessionSpec:
    """One session to open: number `session` of `sessions`, each with `threads` threads (None: the
    backend's choice).

    `model` is the path of an ONNX file with one image input, or with the inputs of a text model.
    `precision` None is the backend's default. `options` are the backend's own.
    """

    device: str
    model: str
    precision: str | None = None
    micro_batches: tuple[int, ...] = (1,)
    threads: int | None = None
    sessions: int = 1
    session: int = 0
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class SessionFacts:
    """What an open session reports of itself.

    Times in seconds; `compute_precision` is read from the compiled model.
    """

    platform: str
    provider: str
    framework: str
    backend_version: str
    compute_precision: str
    chip: str | None = None
    chip_count: int | None = None
    sdk_version: str | None = None
    threads: int | None = None
    load_s: float | None = None
    compile_s: float | None = None
    calibration_id: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class PredictedPoint(TypedDict, total=False):
    """Columns of a point that are predicted; empty for a real device."""

    latency_ms_low: float
    latency_ms_high: float
    power_w: float | None
    power_scope: str | None
    power_reason: str
    suspect: list[str]


class Session:
    """Base of every session.

    `dtype` is that of the images that `run` accepts, C-contiguous, (micro-batch, 3, height, width),
    or of the float inputs of a text model, which it accepts by name.
    """

    facts: SessionFacts
    virtual = False
    dtype = "float32"
    batches_per_step = 1
    """Batches that one `run` takes at once, one after the other in its array, as `prepare` set it.
    """

    clock: Callable[[], int] = staticmethod(time.perf_counter_ns)
    """Nanoseconds of a clock that every session of a sweep shares."""

    def wait_until(self, moment: int) -> None:
        """Return at this moment of the clock, or at once where it has passed."""
        while (left := moment - self.clock()) > 0:
            if left > NAP_NS:
                time.sleep((left - NAP_NS) / 1e9)

    def prepare(self, micro_batch: int, kind: str) -> None:
        """Make ready for batches of this size, measured as `amortised` or `isolated`."""

    def run(self, batch: Batch | None) -> np.ndarray | None:
        """Return the first output of one batch, an array (micro-batch, outputs) on the host."""
        raise NotImplementedError

    def predict_point(self) -> PredictedPoint:
        """Return what is predicted for the prepared batch."""
        return {}

    def close(self) -> None:
        """Release the device."""


class VirtualSession(Session):
    """A session whose time is calculated: it has a clock of its own, and `run(None)` computes no
    outputs.
    """

    virtual = True
    now = 0

    def clock(self) -> int:
        return self.now

    def wait_until(self, moment: int) -> None:
        self.now = max(self.now, moment)

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


@dataclass(frozen=True)
class BackendTraits:
    """How the runner must treat a backend."""

    precisions: tuple[str, ...] = PRECISIONS
    """What it computes in, of PRECISIONS."""
    virtual: bool = False
    """Its time is calculated, not measured."""
    computes: bool = True
    """Its sessions compute the outputs of their inputs."""
    converts: bool = False
    """It accepts an fp32 model and converts it to the requested precision itself."""
    images_only: bool = False
    """It does not take the sequences of a text model."""
    static: bool = False
    """It compiles fixed shapes: the option `static_models` holds a file for each micro-batch."""
    apart: bool = False
    """It cannot be imported in a process that has onnx, so an interpreter of its own probes it."""


class Backend(Protocol):
    """What runs a model: a module of this package, or one that `register_backend` adds."""

    NAME: str
    """What the command line calls it."""
    TRAITS: BackendTraits
    """How the runner must treat it."""

    def probe(self) -> Sequence[Device]:
        """List its devices, with a reason for each that cannot be used here. Raises nothing."""

    def open(self, spec: SessionSpec) -> Session:
        """Open a session, its model compiled.

        Raises BackendError for what the device does not accept.
        """


_registered: dict[str, Backend] = {}


def register_backend(name: str, module: Backend) -> None:
    """Add a backend that the command line does not offer, such as a simulated device for tests and
    benchmarks.
    """
    _registered[name] = module


def load_backend(name: str) -> Backend:
    """Return the module of a backend. Imports nothing of other backends."""
    return _registered.get(name) or cast("Backend", import_module(f"{__name__}.{name}"))


def format_error(error: Exception) -> str:
    """Return the text of a library's error as one line."""
    return " ".join(str(error).split())[:MAX_MESSAGE]


class InputShape(NamedTuple):
    """Type and shape of one input; None is a length that is not fixed."""

    dtype: str
    lengths: tuple[int | None, ...]

    def fits(self, array: np.ndarray) -> bool:
        if array.dtype != self.dtype or array.ndim != len(self.lengths):
            return False
        pairs = zip(array.shape, self.lengths)  # noqa: B905 (Python 3.8)
        return all(expected in (None, length) for length, expected in pairs)


class LibrarySession(Session):
    """A model that a library runs: `infer` takes arrays by name and returns the first output."""

    def __init__(
        self,
        place: str,
        inputs: Mapping[str, InputShape],
        infer: Callable[[dict[str, np.ndarray]], np.ndarray],
    ) -> None:
        self._place = place
        self._inputs = inputs
        self._infer: Callable[[dict[str, np.ndarray]], np.ndarray] | None = infer
        self._checked: list[tuple[str, Any, tuple[int, ...]]] = []
        floats = []
        for shape in inputs.values():
            if shape.dtype in FLOATS:
                floats.append(shape.dtype)
            elif shape.dtype not in INTEGERS:
                raise BackendError(
                    f"the model takes {shape.dtype}, not float images or integer tokens",
                    place=place,
                )
        if floats:
            self.dtype = floats[0]

    def run(self, batch: Batch | None) -> np.ndarray:
        import numpy as np  # noqa: PLC0415 (names of backends are needed without it)

        assert batch is not None
        feed = batch if isinstance(batch, dict) else {next(iter(self._inputs)): batch}
        shapes = [(name, array.dtype, array.shape) for name, array in feed.items()]
        if shapes != self._checked:  # once for each batch size, not in each timed run
            self._check_inputs(feed, images=not isinstance(batch, dict))
            self._checked = shapes
        if self._infer is None:
            raise BackendError("is closed", place=self._place)
        try:
            outputs = self._infer(feed)
        except Exception as error:  # the classes of these libraries share no other base
            raise BackendError(format_error(error), place=self._place) from error
        return np.asarray(outputs, dtype="float32").reshape(len(outputs), -1)

    def _check_inputs(self, feed: Mapping[str, np.ndarray], images: bool) -> None:
        """Raise BackendError where the inputs have other names, types or shapes."""
        if set(feed) != set(self._inputs):
            expected = ", ".join(self._inputs)
            raise BackendError(
                f"takes the inputs {expected}, not {', '.join(feed)}", place=self._place
            )
        for name, shape in self._inputs.items():
            array = feed[name]
            if not shape.fits(array):
                what = f"input {name} is {shape.dtype} {shape.lengths}"
                if images:
                    what = f"takes {shape.dtype} images of shape {shape.lengths}"
                raise BackendError(f"{what}, not {array.dtype} {array.shape}", place=self._place)

    def close(self) -> None:
        self._infer = None


def find_majority(counts: Counter[str]) -> tuple[str, list[str]]:
    """Return the precision of most convolutions or products, and a note where some have another
    one.
    """
    precision, count = counts.most_common(1)[0]
    if len(counts) == 1:
        return precision, []
    return precision, [f"{count} of {counts.total()} convolutions or products are {precision}"]
