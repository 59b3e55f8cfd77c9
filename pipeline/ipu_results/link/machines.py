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
    """The virtual machine of a local run: what its host calls itself, its processors, and what says
    so.
    """

    processor: str
    virtual_cpus: int
    evidence: str

    @property
    def name(self) -> str:
        """The platform, such as `2 virtual CPUs (AMD EPYC host)`."""
        return f"{format_count(self.virtual_cpus, 'virtual CPU')} ({self.processor} host)"


def parse_machine(environment: Mapping[str, Any]) -> LocalMachine | None:
    """Return the virtual machine that the environment of a run describes, None for another or an
    incomplete one.
    """
    processor = environment.get("cpu")
    count = environment.get("logical_cores")
    evidence = environment.get("virtual_machine")
    if not isinstance(processor, str) or not isinstance(count, int):
        return None
    if not processor or count < 1 or not evidence:
        return None
    return LocalMachine(processor, count, str(evidence))
