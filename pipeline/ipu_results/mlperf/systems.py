"""The system of an entry, from its `systems/<system>.json`; the log's own `submission_*` lines are never a source."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ipu_results.mlperf.rules import Rules

WHOLE = re.compile(r"\s*([0-9]{1,9})(?:\.0*)?\s*")


@dataclass(frozen=True, slots=True)
class System:
    """Texts as they stand in the file; `division` and `availability` in the words of the rules. None is unknown."""

    name: str | None = None
    division: str | None = None
    availability: str | None = None
    status: str | None = None
    accelerator: str | None = None
    accelerators: int | None = None
    nodes: int | None = None
    framework: str | None = None
    sha256: str | None = None
    findings: tuple[str, ...] = ()


def read_system(data: bytes | None, rules: Rules) -> System:
    """What the file says; where it is missing or is no JSON, an unknown system and a finding."""
    if data is None:
        return System(findings=("is missing: the system is unknown",))
    digest = hashlib.sha256(data).hexdigest()
    try:
        facts = json.loads(_text(data))
    except (ValueError, RecursionError) as error:
        return System(sha256=digest, findings=(f"is not JSON, the system is unknown: {error}",))
    if not isinstance(facts, dict):
        return System(sha256=digest, findings=("is not a JSON object: the system is unknown",))
    return replace(_system(facts, rules), sha256=digest)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _system(facts: Mapping[str, Any], rules: Rules) -> System:
    told = {name: _word(facts.get(name)) for name in ("division", "status")}
    division = rules.divisions.get((told["division"] or "").lower())
    availability = rules.availabilities.get((told["status"] or "").lower())
    per_node, nodes = _whole(facts.get("accelerators_per_node")), _whole(facts.get("number_of_nodes"))
    return System(
        name=_word(facts.get("system_name")),
        division=division,
        availability=availability,
        status=told["status"],
        accelerator=_word(facts.get("accelerator_model_name")),
        accelerators=None if per_node is None or nodes is None else per_node * nodes,
        nodes=nodes,
        framework=_word(facts.get("framework")),
        findings=tuple(_findings(facts, told, division, availability)),
    )


def _findings(
    facts: Mapping[str, Any], told: Mapping[str, str | None], division: str | None, availability: str | None
) -> Iterable[str]:
    if division is None:
        yield f"names no division that the rules know: {told['division']!r}"
    if availability is None:
        yield f"names no availability that the rules know: {told['status']!r}"
    for name in ("accelerators_per_node", "number_of_nodes"):
        if _whole(facts.get(name)) is None:
            yield f"{name} is no whole number: {facts.get(name)!r}"


def _word(value: Any) -> str | None:
    """A text without surrounding blanks; None for a blank one and for what is no text."""
    return (value.strip() or None) if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    """A whole number of any of the forms that the files use: 8, 8.0 and "8"."""
    if isinstance(value, bool):
        return None
    found = WHOLE.fullmatch(str(value)) if isinstance(value, (int, float, str)) else None
    return int(found.group(1)) if found else None
