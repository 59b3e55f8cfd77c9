"""What a backend is: a module with `probe()` and `open(spec)`, whose session has `prepare`, `run` and `close`."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PRECISIONS = ("fp32", "fp16", "bf16", "int8")
NAP = 1_000_000  # nanoseconds before a moment from which on it is waited for without sleeping
KINDS = ("ipu", "gpu", "cpu", "emulated", "simulated")


@dataclass(frozen=True)
class Device:
    """One device of a backend. `name` is how it is asked for, `reason` why it cannot be used here."""

    backend: str
    name: str
    kind: str
    description: str
    reason: str | None = None

    @property
    def usable(self) -> bool:
        return self.reason is None


@dataclass(frozen=True)
class Spec:
    """One session to open: the `session`th of `sessions`, each with `threads` of the host (None: the backend's choice).

    `model` is the path of an ONNX file with one image input and one output per image; `precision` the one asked for,
    None for the backend's default. `options` are the backend's own.
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
class Facts:
    """What the opened session says of itself. Times in seconds; `compute_precision` is asked of the compiled model."""

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


class Session:
    """Base of every session. `virtual` ones keep a clock of their own and compute nothing in `run(None)`.

    `dtype` is that of the images which `run` takes, C-contiguous and of shape (micro-batch, 3, height, width).
    """

    facts: Facts
    virtual = False
    dtype = "float32"

    clock: Callable[[], int] = staticmethod(time.perf_counter_ns)
    """Nanoseconds of a clock that every session of a sweep shares."""

    def wait_until(self, moment: int) -> None:
        """Return at this moment of the clock, or at once where it has passed."""
        while (left := moment - self.clock()) > 0:
            if left > NAP:
                time.sleep((left - NAP) / 1e9)

    def prepare(self, micro_batch: int, kind: str) -> None:
        """Make ready for batches of this size, measured as `amortised` or `isolated`."""

    def run(self, images: Any) -> Any:
        """The outputs of one batch, an array (micro-batch, outputs) on the host."""
        raise NotImplementedError

    def told(self) -> dict[str, Any]:
        """Columns of a point that are predicted for the prepared batch and not measured; none for real devices."""
        return {}

    def close(self) -> None:
        """Give the device back."""


class VirtualSession(Session):
    """A session whose time is calculated: `now` moves on by what `advance` is told."""

    virtual = True
    now = 0

    def clock(self) -> int:
        return self.now

    def wait_until(self, moment: int) -> None:
        self.now = max(self.now, moment)

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


def fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether an array has the wanted shape; None stands for any length."""
    return len(shape) == len(wanted) and all(n in (None, found) for n, found in zip(wanted, shape))  # noqa: B905


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]
