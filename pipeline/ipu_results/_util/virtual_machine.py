"""Name the virtual machine of a local run: it sees virtual processors, not a chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ipu_results._util.text import format_count


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """The virtual machine of local runs: its processors, what their host calls itself, and the run that says so."""

    processor: str
    virtual_cpus: int
    evidence: str
    run_id: str

    @property
    def name(self) -> str:
        """The platform, such as `2 virtual CPUs (AMD EPYC host)`."""
        return f"{format_count(self.virtual_cpus, 'virtual CPU')} ({self.processor} host)"

    def describe(self) -> dict[str, Any]:
        """Return its row of `platforms`; chip and count stay null, since it has a share of some."""
        return {
            "platform": self.name,
            "form": "virtual machine",
            "nodes": 1,
            "host_processor": self.processor,
            "virtual_cpus": self.virtual_cpus,
            "source": f"environment of the run {self.run_id}: {self.evidence}",
        }


def parse_machine(run_id: str, environment: Mapping[str, Any]) -> LocalMachine | None:
    """Return the virtual machine that the environment of a run describes, None for another or an incomplete one."""
    processor, count, evidence = (environment.get(key) for key in ("cpu", "logical_cores", "virtual_machine"))
    if isinstance(processor, str) and processor and isinstance(count, int) and count > 0 and evidence:
        return LocalMachine(processor, count, str(evidence), run_id)
    return None
