"""Read the system of an entry from its `systems/<system>.json`.

The `submission_*` lines of a log are never a source.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ipu_results.mlperf.rules import Rules

WHOLE_NUMBER = re.compile(r"\s*([0-9]{1,9})(?:\.0*)?\s*")  # the files have 8, 8.0 and "8"


@dataclass(frozen=True, slots=True)
class System:
    """Texts as printed; `division` and `availability` in the words of the rules. None is unknown."""

    name: str | None = None
    division: str | None = None
    availability: str | None = None
    status: str | None = None
    accelerator: str | None = None
    accelerators: int | None = None
    nodes: int | None = None
    framework: str | None = None
    submitter: str | None = None
    host_processor: str | None = None
    host_processors_per_node: int | None = None
    operating_system: str | None = None
    other_software: str | None = None
    sha256: str | None = None
    findings: tuple[str, ...] = ()


def read_system(data: bytes | None, rules: Rules) -> System:
    """Read a description; one that is missing or is not JSON makes an unknown system with a finding."""
    if data is None:
        return System(findings=("is missing; the system is unknown",))
    digest = hashlib.sha256(data).hexdigest()
    try:
        fields = json.loads(_decode(data))
    except (ValueError, RecursionError) as error:
        return System(sha256=digest, findings=(f"is not JSON; the system is unknown: {error}",))
    if not isinstance(fields, dict):
        return System(sha256=digest, findings=("is not a JSON object; the system is unknown",))
    return replace(_parse_system(fields, rules), sha256=digest)


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _parse_system(fields: Mapping[str, Any], rules: Rules) -> System:
    status, printed_division = _parse_text(fields.get("status")), _parse_text(fields.get("division"))
    division = rules.divisions.get((printed_division or "").lower())
    availability = rules.availabilities.get((status or "").lower())
    per_node = _parse_whole(fields.get("accelerators_per_node"))
    nodes = _parse_whole(fields.get("number_of_nodes"))
    findings = []
    if division is None:
        findings.append(f"division is not closed or open: {printed_division!r}")
    if availability is None:
        findings.append(f"status is not a known availability: {status!r}")
    for name, value in (("accelerators_per_node", per_node), ("number_of_nodes", nodes)):
        if value is None:
            findings.append(f"{name} is not a whole number: {fields.get(name)!r}")
    return System(
        name=_parse_text(fields.get("system_name")),
        division=division,
        availability=availability,
        status=status,
        accelerator=_parse_text(fields.get("accelerator_model_name")),
        accelerators=None if per_node is None or nodes is None else per_node * nodes,
        nodes=nodes,
        framework=_parse_text(fields.get("framework")),
        submitter=_parse_text(fields.get("submitter")),
        host_processor=_parse_text(fields.get("host_processor_model_name")),
        host_processors_per_node=_parse_whole(fields.get("host_processors_per_node")),
        operating_system=_parse_text(fields.get("operating_system")),
        other_software=_format_stack(fields.get("other_software_stack")),
        findings=tuple(findings),
    )


def _parse_text(value: Any) -> str | None:
    return (value.strip() or None) if isinstance(value, str) else None


def _format_stack(value: Any) -> str | None:
    """Return the software stack as text: names and versions where the file has an object or a list."""
    if isinstance(value, dict):
        value = [f"{name} {version}" if version else name for name, version in value.items()]
    if isinstance(value, list):
        value = ", ".join(" ".join(str(item).split()) for item in value)
    return " ".join(value.split()) or None if isinstance(value, str) else None


def _parse_whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    match = WHOLE_NUMBER.fullmatch(str(value))
    return int(match[1]) if match else None
