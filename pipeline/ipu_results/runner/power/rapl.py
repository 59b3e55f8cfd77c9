"""Power of the CPU packages by their RAPL energy counters, as Linux shows them below /sys/class/powercap."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from ipu_results.errors import RunnerError
from ipu_results.runner.power.meter import Poller, reading, too_short

POWERCAP = Path("/sys/class/powercap")
# The smallest range in use, 65 kJ, lasts for 10 s at any power below 6.5 kW a package.
POLL_S = 10.0
MIN_WINDOW_S = 1.0


def packages(powercap: Path) -> list[Path]:
    """The domains of whole packages, without their parts (`core`, `dram`) and `psys`, which overlap with them."""
    return [path for path in sorted(powercap.glob("intel-rapl:*")) if _text(path / "name").startswith("package")]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def counter(path: Path) -> int:
    """A counter in microjoules. Raises RunnerError when it cannot be read."""
    try:
        return int(path.read_text(encoding="ascii"))
    except PermissionError as error:
        raise RunnerError(f"permission denied on RAPL's {path.name}") from error
    except (OSError, ValueError) as error:
        raise RunnerError(f"RAPL's {path.name} cannot be read") from error


def spent(earlier: int, later: int, span: int) -> int:
    """Microjoules between two readings of a counter that starts again from 0 at `span`, at most once in between."""
    if later >= earlier:
        return later - earlier
    if not 0 <= later < earlier <= span:
        raise RunnerError(f"a RAPL counter went back from {earlier} to {later} µJ, and its range is {span} µJ")
    return later + span - earlier


class Rapl:
    """The sum over the packages. A thread reads along, so that no counter starts again twice between two readings.

    Raises RunnerError when there is no package counter or one cannot be read.
    """

    scope = "package"
    min_window_s = MIN_WINDOW_S

    def __init__(
        self, powercap: Path = POWERCAP, *, poll_s: float = POLL_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._domains, self._poll_s, self._clock = packages(powercap), poll_s, clock
        if not self._domains:
            raise RunnerError("no RAPL counter")
        self._spans = [counter(path / "max_energy_range_uj") for path in self._domains]
        self._last = self._read()
        self._lock = threading.Lock()
        self._poller: Poller | None = None
        self._spent, self._started = 0, 0.0
        self.reason: str | None = None
        self.name = f"RAPL, {len(self._domains)} package{'s' if len(self._domains) > 1 else ''}"

    def _read(self) -> list[int]:
        return [counter(path / "energy_uj") for path in self._domains]

    def start(self) -> None:
        self.close()
        self.reason, self._spent = None, 0
        try:
            self._last = self._read()
        except RunnerError as error:
            self.reason = error.message
        self._started = self._clock()
        self._poller = Poller(self.advance, self._poll_s, self._poll_s)

    def advance(self) -> None:
        """Add what was spent since the last reading; after a failure the window stays void."""
        with self._lock:
            try:
                now = self._read()
                self._spent += sum(map(spent, self._last, now, self._spans))
                self._last = now
            except RunnerError as error:
                self.reason = error.message

    def stop(self) -> float | None:
        """Mean watts since `start`, or None with `reason` set."""
        self.advance()
        elapsed = self._clock() - self._started
        self.close()
        self.reason = self.reason or too_short(elapsed, self.min_window_s)
        if self.reason:
            return None
        watts, self.reason = reading(self._spent / 1e6 / elapsed, "RAPL")
        return watts

    def close(self) -> None:
        if self._poller:
            self._poller.stop()
        self._poller = None
