"""What is looked at around a block: a probe before and after, other processes, power, other sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ipu_results.runner.companions import Companions
from ipu_results.runner.load import LoadWatch, Probe
from ipu_results.runner.power import Sensor


@dataclass(slots=True)
class Seen:
    probe_ms: tuple[float, float] | None = None
    foreign_cpu: float | None = None
    steal: float | None = None
    power_w: float | None = None
    power_reason: str | None = None
    others: int = 0


@dataclass(slots=True)
class Observer:
    """`warn` is told once of each other sweep on this machine."""

    companions: Companions
    sensor: Sensor | None
    sensor_reason: str
    warn: Callable[[str], None]
    probe: Probe = field(default_factory=Probe)
    _known: set[str] = field(default_factory=set)

    def least_window_s(self, asked: float) -> float:
        """Seconds of a block: what was asked for, or what the power sensor needs."""
        return max(asked, self.sensor.min_window_s) if self.sensor else asked

    @contextmanager
    def around(self) -> Iterator[Seen]:
        """What was seen while the block in the `with` ran, filled in when it ends."""
        seen, watch = Seen(power_reason=self.sensor_reason), LoadWatch()
        before = self._probed()
        watch.start()
        if self.sensor:
            self.sensor.start()
        try:
            yield seen
        finally:
            if self.sensor:
                seen.power_w = self.sensor.stop()
                seen.power_reason = self.sensor.reason
        load = watch.stop()
        seen.foreign_cpu, seen.steal = load.foreign_cpu, load.steal
        seen.probe_ms = before, self._probed()
        seen.others = self._others()

    def _probed(self) -> float:
        """The lesser of two: the first after a wait finds caches and clock cold."""
        return min(self.probe.run(), self.probe.run())

    def _others(self) -> int:
        found = self.companions.others()
        for run_id in sorted(set(found) - self._known):
            self._known.add(run_id)
            self.warn(f"another sweep runs on this machine: {run_id}; what is measured meanwhile is marked as suspect")
        return len(found)

    def close(self) -> None:
        if self.sensor:
            self.sensor.close()


@contextmanager
def unobserved() -> Iterator[Any]:
    """For time that is calculated there is nothing to look at."""
    yield Seen()
