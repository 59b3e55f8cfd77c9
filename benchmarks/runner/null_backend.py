"""A simulated device whose speed, noise and slow spells are options, so that the measurement itself
can be tested.

For tests and benchmarks: `register_backend(NAME, null_backend)` makes it known to the runner.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from ipu_results.runner.backends import (
    BackendTraits,
    Device,
    SessionFacts,
    SessionSpec,
    VirtualSession,
)

if TYPE_CHECKING:
    from ipu_results.runner.backends import Batch

NAME = "null"
TRAITS = BackendTraits(virtual=True, computes=False)
VERSION = "1"  # of the rules below: another number stands for other times from the same options
PROBE_MS = 5.0
# streams of random numbers from one seed
REGIMES = 0
SERVICES = 1
PROBES = 2
SHORTEST = 1e-3  # seconds of a regime: shorter ones only cost time


@dataclass(frozen=True)
class NullOptions:
    """A simulated machine.

    A micro-batch of n takes `base_ms` + n × `per_item_ms`, times 1 + `drift` × seconds, times a
    lognormal of median 1 and this `noise`. `outliers` are (share of the iterations, how many times
    as long they take), `regimes` (how many times as long, mean seconds slow, mean seconds quiet).
    `probe_noise` is that of the probe alone.
    """

    base_ms: float = 5.0
    per_item_ms: float = 45.0
    noise: float = 0.0
    drift: float = 0.0
    regimes: tuple[float, float, float] | None = None
    outliers: tuple[float, float] | None = None
    probe_noise: float = 0.0
    seed: int = 0


class Regimes:
    """The machine's slow and quiet times, the same for every session: they follow from the seed
    alone.
    """

    def __init__(self, machine: NullOptions) -> None:
        factor, slow, quiet = machine.regimes or (1.0, 1.0, 1.0)
        self._factor = factor
        self._random = _open_stream(machine.seed, REGIMES)
        self._first_slow = bool(self._random.random() < slow / (slow + quiet))
        self._means = (slow, quiet) if self._first_slow else (quiet, slow)
        self._switches: list[float] = []

    def finish_time(self, second: float, work: float) -> float:
        """Return when `work`, seconds of a quiet machine, is done that begins at this second."""
        if self._factor == 1.0:
            return second + work
        while True:
            segment = self._find_segment(second)
            is_slow = (segment % 2 == 0) == self._first_slow
            factor = self._factor if is_slow else 1.0
            end = self._switches[segment]
            if second + work * factor <= end:
                return second + work * factor
            work -= (end - second) / factor
            second = end

    def _find_segment(self, second: float) -> int:
        while not self._switches or self._switches[-1] <= second:
            mean = self._means[len(self._switches) % 2]
            begin = self._switches[-1] if self._switches else 0.0
            self._switches.append(begin + max(SHORTEST, self._random.exponential(mean)))
        return bisect_right(self._switches, second)


class NullSession(VirtualSession):
    """`run` advances the clock and computes nothing."""

    def __init__(self, spec: SessionSpec) -> None:
        self.machine = NullOptions(**spec.options)
        self.regimes = Regimes(self.machine)
        self._micro = 0
        self._random = _open_stream(self.machine.seed, SERVICES, spec.session)
        self.facts = SessionFacts(
            platform=NAME,
            provider=NAME,
            framework=NAME,
            backend_version=VERSION,
            compute_precision="none",
            load_s=0.0,
            compile_s=0.0,
            versions={"numpy": np.__version__},
            notes=["nothing was computed: every time is simulated"],
        )

    def prepare(self, micro_batch: int, kind: str) -> None:  # noqa: ARG002
        self._micro = micro_batch

    def run(self, batch: Batch | None) -> None:  # noqa: ARG002
        second = self.now / 1e9
        self.advance(self.regimes.finish_time(second, self._draw_work()) - second)

    def probe_ms(self, now: int) -> float:
        """Return the time of a probe at this moment of the clock, in ns; it depends on seed and
        moment only.
        """
        draw = _open_stream(self.machine.seed, PROBES, now)
        noise = float(np.exp(draw.normal(0.0, self.machine.probe_noise)))
        second = now / 1e9
        return 1e3 * (self.regimes.finish_time(second, PROBE_MS / 1e3 * noise) - second)

    def _draw_work(self) -> float:
        machine = self.machine
        work = (machine.base_ms + self._micro * machine.per_item_ms) / 1e3
        work *= max(0.0, 1 + machine.drift * self.now / 1e9)
        if machine.noise:
            work *= float(np.exp(self._random.normal(0.0, machine.noise)))
        if machine.outliers and self._random.random() < machine.outliers[0]:
            work *= machine.outliers[1]
        return work


def probe() -> list[Device]:
    """List the one device, which every machine has."""
    return [
        Device(NAME, NAME, "simulated", "a device whose times are simulated; it computes nothing")
    ]


def open(spec: SessionSpec) -> NullSession:
    return NullSession(spec)


def _open_stream(*key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(key)))
