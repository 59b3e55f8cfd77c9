"""PopART on an IPU, or on Poplar's model of one.

It has not yet run on an IPU, only against the fake of its tests.

Names, orders of arguments and errors are those of PopART's public source, SDK 2 and 3. It must be
imported before onnx, so nothing here imports that; each micro-batch has a file of its own: static
shape, opset 11 and IR 6 at most.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from ipu_results.errors import BackendError
from ipu_results.runner.backends import BackendTraits, Device, Session, SessionFacts, SessionSpec

if TYPE_CHECKING:
    import numpy as np

    from ipu_results.runner.backends import Batch

PopartObject = Any  # PopART has no types
NAME = "popart"
IPU = "ipu"
# kept: of the command line and the record
MODEL = "ipu-model"
API = (
    "Builder",
    "DataFlow",
    "DeviceManager",
    "GraphTransformer",
    "InferenceSession",
    "PyStepIO",
    "SessionOptions",
)
DTYPES = {"fp16": "float16", "fp32": "float32"}
TRAITS = BackendTraits(
    precisions=tuple(DTYPES),
    converts=True,
    images_only=True,
    static=True,
    apart=True,
)
CHIPS = {1216: "GC2"}  # by tiles; 1472 are those of GC200 and of Bow
# by default newer SDKs give it 4 tiles
MODEL_OPTIONS = {"numIPUs": 1, "tilesPerIPU": 1216, "ipuVersion": "ipu1"}
BATCHES_PER_STEP = 16  # of a stream; one alone is a step of its own
PROPORTION = 0.3  # of memory for a convolution, as the paper's program had it
PROPORTION_AT = {5: 0.26}  # by micro-batch, likewise
# IPUs are shared: another job may end any moment
WAIT_S = 60.0
POLL_S = 1.0
SDK = re.compile(r"poplar_sdk-\w+-(\d+\.\d+\.\d+)")

NOT_INSTALLED = (
    "PopART is not installed: it comes with Graphcore's Poplar SDK, not from a package index"
)
MODEL_DESCRIPTION = "Poplar's model of an IPU, on the host: outputs, no times"
NO_IPU = "no IPU is attached to this machine"
MODEL_NOTE = (
    "the IPU model computes on the host: its wall time is not a result of an IPU and must never be"
    " published"
)


def probe() -> list[Device]:
    """List an IPU and the model of one, which is selected by name only."""
    reason = None
    try:
        ipu = _describe_ipu(load_popart())
    except BackendError as error:
        reason = error.message
        ipu = Device(NAME, IPU, "ipu", "IPU", reason)
    return [ipu, Device(NAME, MODEL, "simulated", MODEL_DESCRIPTION, reason)]


def open(spec: SessionSpec) -> PopartSession:
    """Open one IPU and compile the smallest micro-batch for it.

    `spec.options`: `static_models`, the ONNX file of each micro-batch (its number as text);
    `wait_s`, how long to wait for an IPU (60 s); `available_memory_proportion`, 0 to 1, instead of
    the paper's; `platform`, the machine's name; `batches_per_step` of a stream (16);
    `engine_cache`, the folder of compiled engines, "" for none. Raises BackendError: no PopART, no
    IPU or none free, a model that it does not accept, compile or fit in memory.
    """
    _check_spec(spec)
    popart = load_popart()
    device = _acquire_device(popart, spec)
    try:
        return PopartSession(popart, device, spec)
    except BaseException:
        device.detach()
        raise


def _check_spec(spec: SessionSpec) -> None:
    """Raise BackendError for another device, precision or option."""
    if spec.device not in (IPU, MODEL):
        raise BackendError(f"is not a device of PopART: {IPU} or {MODEL}", place=spec.device)
    if spec.precision not in (None, *DTYPES):
        raise BackendError(
            f"PopART computes in {' or '.join(DTYPES)}, not in {spec.precision}", place=spec.device
        )
    _count_batches(spec)
    _find_cache(spec)


@dataclass(frozen=True)
class PopartProgram:
    """The program of one micro-batch and number of batches a step.

    Every run writes its outputs to `anchors`.
    """

    session: PopartObject
    source: str
    target: str
    shape: tuple[int, ...]
    anchors: Mapping[str, np.ndarray]
    make_io: PopartObject
    load_s: float
    compile_s: float

    def run(self, images: np.ndarray, batches: int) -> np.ndarray:
        """Return the outputs of a step, in the array that the next run overwrites."""
        if batches > 1:
            images = images.reshape(batches, *self.shape)
        self.session.run(self.make_io({self.source: images}, self.anchors))
        return self.anchors[self.target]


class PopartSession(Session):
    """One IPU, and the programs prepared so far by micro-batch and batches a step: the IPU holds
    one at a time.
    """

    def __init__(self, library: PopartObject, device: PopartObject, spec: SessionSpec) -> None:
        self._library = library
        self._device = device
        self._spec = spec
        self._precision = spec.precision or "fp16"
        self.dtype = DTYPES[self._precision]
        self._programs: dict[tuple[int, int], PopartProgram] = {}
        self._current: PopartProgram | None = None
        self.facts = self._build_facts()
        self.prepare(min(spec.micro_batches), "amortised")

    def prepare(self, micro_batch: int, kind: str) -> None:
        """Compile this micro-batch, which takes minutes, or put its program back on the IPU.

        In a stream a step has several batches, so that the way to the host and back is not paid by
        each.
        """
        batches = _count_batches(self._spec) if kind == "amortised" else 1
        if (micro_batch, batches) not in self._programs:
            self._current = None
            self._programs[micro_batch, batches] = self._compile(micro_batch, batches)
        program = self._programs[micro_batch, batches]
        if program is not self._current:
            self._current = None
            # writes the program too, where another one has taken its place
            with wrap_errors("the weights cannot be written to the IPU"):
                program.session.weightsFromHost()
            self._current = program
        self.batches_per_step = batches
        self.facts.load_s = program.load_s
        self.facts.compile_s = program.compile_s

    def run(self, batch: Batch | None) -> np.ndarray:
        """Return the outputs of a step's batches in float32, copied: the next run overwrites
        PopART's own.

        PopART checks the count of values and their type, in older releases not the order in memory.
        """
        program = self._current
        if program is None:
            raise BackendError("no micro-batch is prepared")
        images = cast("np.ndarray", batch)  # it takes no text
        shape = (self.batches_per_step * program.shape[0], *program.shape[1:])
        if images.shape != shape or images.dtype != self.dtype or not images.flags.c_contiguous:
            order = "contiguous" if images.flags.c_contiguous else "not contiguous"
            expected = f"{self.dtype} {shape}, contiguous"
            raise BackendError(
                f"takes images as {expected}, not {images.dtype} {images.shape}, {order}"
            )
        with wrap_errors("the IPU did not run the batch"):
            outputs = program.run(images, self.batches_per_step)
        return outputs.reshape(len(images), -1).astype("float32")

    def close(self) -> None:
        self._programs.clear()
        self._current = None
        device = self._device
        self._device = None
        if device is not None:
            device.detach()

    def _compile(self, micro_batch: int, batches: int) -> PopartProgram:
        popart = self._library
        start = time.perf_counter()
        with wrap_errors(f"PopART does not accept the model of micro-batch {micro_batch}"):
            proto = self._read_model(micro_batch)
            source, target, shape = _find_ends(popart.Builder(proto), micro_batch)
            flow = popart.DataFlow(batches, {target: popart.AnchorReturnType("ALL")})
            settings = popart.SessionOptions()
            settings.convolutionOptions = {
                "availableMemoryProportion": str(_choose_proportion(self._spec, micro_batch))
            }
            cache = _choose_cache(self._spec, proto, batches)
            if cache:
                settings.enableEngineCaching = True
                settings.cachePath = cache
            session = popart.InferenceSession(proto, flow, self._device, userOptions=settings)
        loaded = time.perf_counter()
        with wrap_errors(f"PopART cannot compile the model for micro-batch {micro_batch}"):
            try:
                session.prepareDevice()
            except popart.OutOfMemoryException as error:
                raise BackendError(
                    f"the model does not fit in the memory of one IPU at micro-batch {micro_batch}"
                ) from error
            # reading types and making arrays is no part of it
            compiled = time.perf_counter()
            dtype = session.getInfo(target).data_type_lcase()
            anchors = session.initAnchorArrays()
        if dtype != self.dtype:
            raise BackendError(
                f"the compiled model returns {dtype}, so it does not compute in {self._precision}"
            )
        self.facts.compute_precision = self._precision
        return PopartProgram(
            session,
            source,
            target,
            shape,
            anchors,
            popart.PyStepIO,
            load_s=loaded - start,
            compile_s=compiled - loaded,
        )

    def _read_model(self, micro_batch: int) -> bytes:
        """Return the model's bytes, with weights, input and output in fp16 unless fp32 is
        requested.
        """
        transformer = self._library.GraphTransformer(self._get_file(micro_batch))
        if self._precision == "fp16":
            transformer.convertFloatsToHalfs()
        return bytes(transformer.getModelProto())

    def _get_file(self, micro_batch: int) -> str:
        file = self._spec.options.get("static_models", {}).get(str(micro_batch))
        if file is None:
            raise BackendError(
                f"micro-batch {micro_batch} has no model file of its own size, which an IPU needs"
            )
        return str(file)

    def _build_facts(self) -> SessionFacts:
        """Return what is known before anything is compiled."""
        spec = self._spec
        device = self._device
        version = "unknown"
        if hasattr(self._library, "versionString"):
            version = str(self._library.versionString())
        facts = SessionFacts(
            platform=str(spec.options.get("platform") or "IPU model"),
            provider="IPUModel",
            framework="PopART",
            backend_version=version,
            compute_precision="unknown",
            versions={"popart": version},
            notes=_list_notes(spec),
        )
        sdk = SDK.search(os.environ.get("POPLAR_SDK_ENABLED", ""))
        if sdk:
            facts.sdk_version = sdk.group(1)
        if spec.device == IPU:
            tiles = int(device.tilesPerIPU)
            facts.chip = CHIPS.get(tiles)
            facts.chip_count = device.numIpus * spec.sessions
            facts.provider = "Poplar"
            facts.versions["ipu-driver"] = str(device.version)
            name = f"{facts.chip} IPU" if facts.chip else "IPU"
            facts.platform = str(spec.options.get("platform") or name)
            if facts.chip is None:
                facts.notes.append(f"PopART does not tell which chip has these {tiles} tiles")
        return facts


def load_popart() -> PopartObject:
    """Import PopART. Raises BackendError with the reason where that fails."""
    if NAME not in sys.modules:
        if find_spec(NAME) is None:
            raise BackendError(NOT_INSTALLED)
        if "onnx" in sys.modules:
            raise BackendError(
                "onnx was imported before PopART, which must come first in a process"
            )
    with wrap_errors("PopART cannot be imported"):
        library = import_module(NAME)
    missing = [part for part in API if not hasattr(library, part)]
    if missing:
        raise BackendError(
            f"the package named {NAME} here is not Graphcore's: it has no {', '.join(missing)}"
        )
    return library


def _describe_ipu(popart: PopartObject) -> Device:
    try:
        ipus = popart.DeviceManager().enumerateDevices()
    except Exception as error:
        return Device(NAME, IPU, "ipu", "IPU", f"PopART cannot list the IPUs: {error}")
    if not ipus:
        return Device(NAME, IPU, "ipu", "IPU", NO_IPU)
    return Device(NAME, IPU, "ipu", f"{len(ipus)} x IPU of {ipus[0].tilesPerIPU} tiles")


def _acquire_device(popart: PopartObject, spec: SessionSpec) -> PopartObject:
    """Attach the model of an IPU, or a free IPU.

    Where all are busy, some releases return None and some raise.
    """
    with wrap_errors("PopART has no device"):
        manager = popart.DeviceManager()
        if spec.device == MODEL:
            return manager.createIpuModelDevice(dict(MODEL_OPTIONS))
        if not manager.enumerateDevices():
            raise BackendError(NO_IPU)
    acquire = getattr(manager, "tryAcquireAvailableDevice", None) or manager.acquireAvailableDevice
    wait_s = float(spec.options.get("wait_s", WAIT_S))
    limit = time.monotonic() + wait_s
    while True:
        try:
            acquired = acquire(1)
            detail = ""
        except Exception as error:
            acquired = None
            detail = f" ({error})"
        if acquired is not None:
            return acquired
        if time.monotonic() >= limit:
            raise BackendError(f"no IPU came free in {wait_s:g} s: all are busy{detail}")
        time.sleep(min(POLL_S, wait_s))


def _find_ends(builder: PopartObject, micro_batch: int) -> tuple[str, str, tuple[int, ...]]:
    """Return the names of the input and of the output, and the shape of the input."""
    sources = [name for name in builder.getInputTensorIds() if not builder.isInitializer(name)]
    targets = builder.getOutputTensorIds()
    if len(sources) != 1 or len(targets) != 1:
        raise BackendError(
            f"the model has {len(sources)} inputs and {len(targets)} outputs, not one of each"
        )
    shape = tuple(builder.getTensorShape(sources[0]))
    if shape[:1] != (micro_batch,) or min(shape) < 1:
        raise BackendError(
            f"the model of micro-batch {micro_batch} has the shape {shape}: it must be static"
        )
    return sources[0], targets[0], shape


def _choose_proportion(spec: SessionSpec, micro_batch: int) -> float:
    return float(
        spec.options.get("available_memory_proportion")
        or PROPORTION_AT.get(micro_batch, PROPORTION)
    )


def _count_batches(spec: SessionSpec) -> int:
    batches = spec.options.get("batches_per_step", BATCHES_PER_STEP)
    if type(batches) is not int or batches < 1:
        raise BackendError(
            f"batches_per_step is a whole number from 1, not {batches!r}", place=spec.device
        )
    return batches


def _find_cache(spec: SessionSpec) -> str:
    """Return the folder of compiled engines, "" for none."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = spec.options.get("engine_cache", os.path.join(home, "ipu-results", "popart"))
    if not isinstance(cache, str):
        raise BackendError(
            f'engine_cache is a folder, or "" for none, not {cache!r}', place=spec.device
        )
    return os.path.expanduser(cache)


def _choose_cache(spec: SessionSpec, model: bytes, batches: int) -> str:
    """Make and return the folder of the engine of one model, "" for none.

    PopART's own key leaves weights out, and older releases write one file for each path.
    """
    cache = _find_cache(spec)
    if not cache:
        return ""
    key = hashlib.sha256(model + f"{batches} {spec.session}".encode()).hexdigest()
    folder = os.path.join(cache, key[:16])
    os.makedirs(folder, exist_ok=True)
    return folder


def _list_notes(spec: SessionSpec) -> list[str]:
    """List what a row of an IPU says of its settings."""
    shares = []
    for size in sorted(spec.micro_batches):
        shares.append(f"{_choose_proportion(spec, size):g} at micro-batch {size}")
    cache = _find_cache(spec)
    engines = "engines are not cached"
    if cache:
        engines = f"engines are cached: compile_s is short where one was found in {cache}"
    notes = [
        "compute precision: the type of the compiled session's output; partial sums have the"
        " library's default type",
        f"available memory proportion of every convolution: {', '.join(shares)}",
        f"batches per step: {_count_batches(spec)} in a stream, 1 alone; no overlapped input and"
        " output",
        engines,
    ]
    if spec.device == MODEL:
        notes.insert(0, MODEL_NOTE)
    return notes


@contextmanager
def wrap_errors(what: str) -> Iterator[None]:
    """Turn any other error into a BackendError that begins with these words."""
    try:
        yield
    except BackendError:
        raise
    except Exception as error:
        raise BackendError(f"{what}: {error}") from error
