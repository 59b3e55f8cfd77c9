"""From partial results to results: source rows about one thing are joined, repeated ones told apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ipu_results.normalise.metadata import Setup
from ipu_results.normalise.passthrough import PassthroughRow
from ipu_results.normalise.rows import FIGURE_FIELDS, Cell, RejectedRow, RowFragment
from ipu_results.read.document import ParsedDocument
from ipu_results.sources.catalogue import Document

Place = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Result:
    """One row of `results` in the making.

    `accepted` and `repeated` are its source rows (table, number, locator), `raws` their texts in that order. `cited`
    are cells of other documents that tell something of it, each with its document.
    """

    result_id: str
    values: dict[str, Any]
    cells: list[Cell]
    accepted: list[Place]
    repeated: list[Place]
    raws: list[Any]
    cited: list[tuple[str, Cell]] = field(default_factory=list)


@dataclass(slots=True)
class NormalisedDocument:
    """All that one document gives; `carried` rows make a table of their own, beside a result or without one."""

    document: Document
    results: list[Result] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)
    carried: list[PassthroughRow] = field(default_factory=list)

    @property
    def alone(self) -> list[PassthroughRow]:
        """Carried rows that neither make a result nor were rejected."""
        told = {place[:2] for result in self.results for place in [*result.accepted, *result.repeated]}
        told |= {(row.table_name, row.row_number) for row in self.rejected}
        return [row for row in self.carried if (row.table_name, row.row_number) not in told]

    def extend_with_problems(self, reading: ParsedDocument) -> None:
        self.rejected += [
            RejectedRow(p.table_name, p.row_number, p.locator, p.reason, p.message, list(p.raw))
            for p in reading.problems
            if p.row_number is not None
        ]


def join(document: Document, outcomes: Iterable[RowFragment | RejectedRow], setup: Setup) -> NormalisedDocument:
    """Group what the rows say by identity; rows of one identity and different figures are rejected together."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[RowFragment]] = {}
    normalised = NormalisedDocument(document)
    for outcome in outcomes:
        if isinstance(outcome, RejectedRow):
            normalised.rejected.append(outcome)
        else:
            groups.setdefault((outcome.result_table, outcome.identity), []).append(outcome)
    for group in groups.values():
        first, *more = group
        _take(normalised, first, more, setup)
    return normalised


def _take(normalised: NormalisedDocument, first: RowFragment, more: list[RowFragment], setup: Setup) -> None:
    accepted, repeated = [first], []
    for partial in more:
        if any(partial.table_name == one.table_name and partial.raw == one.raw for one in accepted):
            repeated.append(partial)
        elif clash := next((one for one in accepted if _clash(one, partial)), None):
            _reject_all(normalised, [first, *more], clash, partial)
            return
        else:
            accepted.append(partial)
    normalised.results.append(_result(normalised.document, accepted, repeated, setup))


def _clash(one: RowFragment, other: RowFragment) -> bool:
    return not other.joins or not _figures(one).keys().isdisjoint(_figures(other))


def _reject_all(normalised: NormalisedDocument, group: list[RowFragment], one: RowFragment, other: RowFragment) -> None:
    places = " and ".join(f"{partial.table_name} row {partial.row_number}" for partial in (one, other))
    message = f"{places} have one configuration and different figures"
    normalised.rejected += [partial.reject("conflicting-rows", message) for partial in group]


def _figures(partial: RowFragment) -> dict[str, Any]:
    return {name: value for name, value in partial.values.items() if name in FIGURE_FIELDS}


def _result(document: Document, accepted: list[RowFragment], repeated: list[RowFragment], setup: Setup) -> Result:
    first = accepted[0]
    values: dict[str, Any] = {}
    for partial in reversed(accepted):
        values.update((name, value) for name, value in partial.values.items() if value is not None)
    values |= {name: value for name, value in setup.values.items() if values.get(name) is None}
    result_id = result_key(document.document_id, first.result_table, first.identity)
    values |= {"result_id": result_id, "row_number": first.row_number}
    if (micro := setup.micro_batch_size(values.get("batch_size"))) is not None:
        values["micro_batch_size"] = micro
    return Result(
        result_id,
        values,
        [cell for partial in accepted for cell in partial.cells] + list(setup.cells),
        [_place(partial) for partial in accepted],
        [_place(partial) for partial in repeated],
        [partial.raw for partial in [*accepted, *repeated]],
    )


def _place(partial: RowFragment) -> Place:
    return partial.table_name, partial.row_number, partial.locator


def result_key(document_id: str, table: str, identity: Iterable[tuple[str, str]]) -> str:
    """16 hex digits that depend on the printed configuration alone, not on figures or position."""
    told = json.dumps([document_id, table, sorted(identity)], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(told.encode()).hexdigest()[:16]
