"""Name the machines of local runs for what they are: a virtual machine sees virtual processors, not
a chip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ipu_results.kit.text import format_count


@dataclass(frozen=True, slots=True)
class LocalMachine:
    """The virtual machine of a local run, and what says that it is one."""

    platform: str
    """Its name, such as `2 virtual CPUs (AMD EPYC host)`."""
    processor: str
    """What its host calls itself."""
    virtual_cpus: int
    evidence: str


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
    platform = f"{format_count(count, 'virtual CPU')} ({processor} host)"
    return LocalMachine(platform, processor, count, str(evidence))
