"""Name the machines of local runs for what they are: a virtual machine sees virtual processors, not a chip."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipu_results.normalise import NormalisedDocument, Result
from ipu_results.normalise.by_source import get_run_id


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
        plural = "" if self.virtual_cpus == 1 else "s"
        return f"{self.virtual_cpus} virtual CPU{plural} ({self.processor} host)"

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


def collect_machines(documents: Sequence[NormalisedDocument]) -> dict[str, LocalMachine]:
    """Return the virtual machines of the runs by run id; of two runs of one machine, each names its own."""
    machines = {}
    for document in documents:
        if document.document.reader == "sweep-record":
            run_id = get_run_id(document.document)
            for row in document.passthrough:
                machine = parse_machine(run_id, json.loads(row.values["environment"]))
                if machine is not None:
                    machines[run_id] = machine
    return machines


def link_machine(
    document: NormalisedDocument, results: Iterable[Result], machines: Mapping[str, LocalMachine]
) -> Sequence[Result]:
    """Name the machine of each point whose platform is the processor of a virtual machine.

    The cells keep the text of the run, and the result ids are those of the printed text.
    """
    kept = list(results)
    if document.document.reader != "sweep-points" or not kept:
        return kept
    machine = machines.get(get_run_id(document.document))
    if machine is None:
        return kept
    return [
        replace(result, values={**result.values, "platform": machine.name})
        if result.values.get("platform") == machine.processor
        else result
        for result in kept
    ]
