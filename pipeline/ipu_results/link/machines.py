"""Name the machines of local runs for what they are: a virtual machine sees virtual processors, not a chip."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ipu_results._util.virtual_machine import LocalMachine, parse_machine
from ipu_results.normalise import NormalisedDocument, Result
from ipu_results.normalise.by_source import get_run_id


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
