"""What is observed around a block: a speed probe before and after, CPU load, power, other sweeps on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ipu_results.runner.concurrent_sweeps import ConcurrentSweeps
from ipu_results.runner.cpu_load import compute_load, read_usage, run_probe
from ipu_results.runner.power import Sensor


@dataclass(slots=True)
class BlockObservation:
    """The observed fields of a `Block`; the defaults are those of time that is calculated."""

    probe_ms: tuple[float, float] | None = None
    foreign_cpu: float | None = None
    steal: float | None = None
    power_w: float | None = None
    power_reason: str | None = None
    others: int = 0


@dataclass(slots=True)
class Observer:
    """Observes the machine while blocks run. `warn` is called once for each other sweep on it."""

    concurrent: ConcurrentSweeps
    sensor: Sensor | None
    sensor_reason: str
    warn: Callable[[str], None]
    probe: Callable[[], float] = run_probe
    _known: set[str] = field(default_factory=set)

    def choose_window_s(self, block_s: float) -> float:
        """Return the seconds of a block: `block_s`, or what the power sensor needs."""
        return max(block_s, self.sensor.min_window_s) if self.sensor else block_s

    @contextmanager
    def observe(self) -> Iterator[BlockObservation]:
        """Observe the block that runs in the `with`; the observation is complete when it ends."""
        observation, before = BlockObservation(power_reason=self.sensor_reason), self._run_probe()
        usage = read_usage()
        if self.sensor:
            self.sensor.start()
        try:
            yield observation
        finally:
            if self.sensor:
                observation.power_w = self.sensor.stop()
                observation.power_reason = self.sensor.reason
        observation.foreign_cpu, observation.steal = compute_load(usage, read_usage())
        observation.probe_ms = before, self._run_probe()
        observation.others = self._count_others()

    def _run_probe(self) -> float:
        """Return the better of two runs: the first after a wait meets cold caches and a low clock."""
        return min(self.probe(), self.probe())

    def _count_others(self) -> int:
        others = self.concurrent.list_others()
        for run_id in sorted(set(others) - self._known):
            self._known.add(run_id)
            self.warn(f"another sweep runs on this machine: {run_id}; blocks measured meanwhile are marked as suspect")
        return len(others)

    def close(self) -> None:
        if self.sensor:
            self.sensor.close()
