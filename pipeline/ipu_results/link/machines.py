"""Name the machines of local runs for what they are: a virtual machine sees virtual processors, not
a chip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ipu_results.ground.text import format_count


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """The virtual machine of a local run: its processors, what their host calls itself, and what
    says so.
    """

    run_id: str
    processor: str
    virtual_cpus: int
    evidence: str

    @property
    def name(self) -> str:
        """The platform, such as `2 virtual CPUs (AMD EPYC host)`."""
        return f"{format_count(self.virtual_cpus, 'virtual CPU')} ({self.processor} host)"


def parse_machine(run_id: str, environment: Mapping[str, Any]) -> LocalMachine | None:
    """Return the virtual machine that the environment of a run describes, None for another or an
    incomplete one.
    """
    processor = environment.get("cpu")
    count = environment.get("logical_cores")
    evidence = environment.get("virtual_machine")
    is_named = isinstance(processor, str) and processor != ""
    is_counted = isinstance(count, int) and count > 0
    if not (is_named and is_counted and evidence):
        return None
    return LocalMachine(run_id, processor, count, str(evidence))
