"""What differs between a measurement and a row of the record, and what one side does not state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ipu_results.comparison.measurement import Measurement
from ipu_results.runner.reference_rows import BITS, EMULATED, SETUPS, ReferenceRow, is_same, pair_conditions
from ipu_results.schema.vocabulary import load_vocabulary, normalise_name

NAMES = {"SDK": "SDK version", "compute precision": "precision"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One condition. `known` is false where either side does not state it: then it may be the same or not."""

    what: str
    ours: str | None
    theirs: str | None
    known: bool


def list_differences(ours: Measurement, row: Mapping[str, Any]) -> list[Difference]:
    """List the conditions that differ, those that both sides state first."""
    pairs = [pair for pair in _list_pairs(ours, row) if not is_same(pair[1], pair[2]) and pair[1:] != (None, None)]
    differences = [
        Difference(what, _to_text(own), _to_text(theirs), own is not None and theirs is not None)
        for what, own, theirs in pairs
    ]
    return sorted(differences, key=lambda difference: not difference.known)


def _list_pairs(ours: Measurement, row: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    point = {
        "platform": ours.platform,
        "chip_count": ours.chips,
        "model": ours.network,
        "compute_precision": _name_precision(ours.precision),
        "latency_kind": ours.latency_kind or ours.latency_basis,
        "framework": ours.framework,
        "sdk_version": ours.sdk_version,
        "power_w": ours.power_w,
        "power_scope": ours.power_scope,
        **ours.setup,
    }
    known = {
        field.name: row[field.name] for field in fields(ReferenceRow) if field.name in row and field.name != "errors"
    }
    known |= {
        "chip_count": row["chips"],
        "model": row["network"],
        "latency_kind": row["latency_kind"] or row["latency_basis"],
        "compute_precision": _name_precision(row["effective_precision"]),
    }
    reference = ReferenceRow(**known, errors=row["errors"], setup=SETUPS.get(row["table_name"], {}))
    yield "figures", _name_origin(ours.origin), _name_origin(row["origin"])
    yield "batch size", ours.batch_size, row["batch_size"]
    yield "variant", ours.variant, row["variant"]
    yield "conditions", ours.conditions, row["conditions"]
    yield "dataset", ours.dataset, row["dataset"]
    for what, own, theirs in pair_conditions(point, reference):
        yield NAMES.get(what, what), own or None, theirs or None


def _name_precision(precision: str | None) -> str | None:
    """Return a precision under the name that all its spellings share: 16.16 is FP16, as in the distance of a row."""
    name = BITS.get(precision or "", precision)
    return name and load_vocabulary().precision_names.get(normalise_name(name), name)


def _name_origin(origin: str) -> str:
    return EMULATED if origin == "emulated" else "measured"


def _to_text(value: Any) -> str | None:
    return None if value is None else str(value)
