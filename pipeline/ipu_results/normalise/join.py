"""Parse the facts that a document states once about its set-up and that hold for each of its results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise.fields import CellContext, convert_cell
from ipu_results.normalise.rows import FIGURE_FIELDS, Cell, PassthroughRow, RejectedRow, RowFragment
from ipu_results.normalise.values import UnreadableCellError
from ipu_results.read.document import ColumnTable, MetadataItem
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

HALF = "half of the batch size"  # how the paper on two chips states the items of each


@dataclass(frozen=True, slots=True)
class DocumentSetup:
    """Values of `results` that hold for the whole document, and the cells that state them."""

    values: dict[str, Any]
    cells: tuple[Cell, ...]
    halved_batch: bool

    def get_micro_batch_size(self, batch_size: int | None) -> int | None:
        """Return the items per chip if the document gives them as half of the batch, which must be even."""
        if not self.halved_batch or batch_size is None or batch_size % 2:
            return None
        return batch_size // 2


def parse_setup(document: Document, items: Iterable[MetadataItem], vocabulary: Vocabulary) -> DocumentSetup:
    """Convert the items with known labels.

    Raises DamagedDocumentError for an item that cannot be read, since it would hold for every result.
    """
    values: dict[str, Any] = {}
    cells: list[Cell] = []
    halved = False
    for item in items:
        field = vocabulary.metadata.get(document.reader, {}).get(item.label)
        if field is None:
            continue
        try:
            converted = convert_cell(field, item.text, CellContext(vocabulary, None, False))
        except UnreadableCellError as error:
            message = f"{item.label}: {error}"
            raise DamagedDocumentError(message, document=document.document_id, place=item.locator) from error
        values.update(converted.values)
        cells.append(Cell(field, item.label, item.text, *converted[1:], None, item.locator))
        halved |= field == "batch_per_chip" and item.text == HALF
    return DocumentSetup(values, tuple(cells), halved)


Identity = tuple[tuple[str, str], ...]
RATE_FIELDS = ("throughput", "efficiency")  # their units count items, such as images


@dataclass(frozen=True, slots=True)
class Result:
    """One row of `results` before it is checked.

    `accepted` and `duplicates` are the source rows that make it up or repeat it. `setup_cells` are cells of its
    document that hold for every result. `cited` are cells of other documents that add to it, each with its document.
    """

    result_id: str
    values: Mapping[str, Any]
    accepted: Sequence[RowFragment]
    duplicates: Sequence[RowFragment] = ()
    setup_cells: Sequence[Cell] = ()
    cited: Sequence[tuple[str, Cell]] = ()

    @property
    def fragments(self) -> Iterator[RowFragment]:
        """Its source rows, accepted ones first."""
        yield from self.accepted
        yield from self.duplicates


@dataclass(frozen=True)
class NormalisedDocument:
    """What one document's rows became; `passthrough` rows have a table of their own, with or without a result.

    All rows of `columnar` tables do, and none makes a result.
    """

    document: Document
    results: Sequence[Result] = ()
    rejected: Sequence[RejectedRow] = ()
    passthrough: Sequence[PassthroughRow] = ()
    columnar: Sequence[ColumnTable] = ()

    @cached_property
    def passthrough_only(self) -> list[PassthroughRow]:
        """Passthrough rows that neither make a result nor were rejected."""
        used = {fragment.place[:2] for result in self.results for fragment in result.fragments}
        used |= {(row.table_name, row.row_number) for row in self.rejected}
        return [row for row in self.passthrough if (row.table_name, row.row_number) not in used]


def join_rows(
    document: Document, outcomes: Iterable[RowFragment | RejectedRow], setup: DocumentSetup
) -> tuple[list[Result], list[RejectedRow]]:
    """Group the fragments by identity; rows of one identity with different figures are all rejected."""
    groups: dict[tuple[str, Identity], list[RowFragment]] = {}
    rejected: list[RejectedRow] = []
    for outcome in outcomes:
        if isinstance(outcome, RejectedRow):
            rejected.append(outcome)
        elif message := _find_item_contradiction(outcome, setup):
            rejected.append(outcome.reject("item-contradicts-model", message))
        else:
            groups.setdefault((outcome.result_table, outcome.identity), []).append(outcome)
    results = []
    for fragments in groups.values():
        accepted, duplicates = [fragments[0]], []
        for fragment in fragments[1:]:
            if any(fragment.table is other.table and fragment.row.cells == other.row.cells for other in accepted):
                duplicates.append(fragment)
            elif conflict := next((other for other in accepted if _conflict(other, fragment)), None):
                pair = (f"{part.table.name} row {part.row.number}" for part in (conflict, fragment))
                message = f"{' and '.join(pair)} have one configuration and different figures"
                rejected += [part.reject("conflicting-rows", message) for part in fragments]
                break
            else:
                accepted.append(fragment)
        else:
            results.append(_build_result(document, accepted, duplicates, setup))
    return results, rejected


def _find_item_contradiction(fragment: RowFragment, setup: DocumentSetup) -> str | None:
    """Explain how the unit of a rate counts other items than the row's model, or the document's, has; None if not."""
    implied = {field: _get_item(fragment, field) for field in ("model", *RATE_FIELDS) if field in fragment.fields}
    item = implied.pop("model", None) or setup.values.get("item")
    field = next((field for field, counted in implied.items() if item and counted and counted != item), None)
    if field is None:
        return None
    model = fragment.values.get("model") or setup.values.get("model")
    return f"the unit of {field} counts {implied[field]}, but an item of {model} is {item}"


def _get_item(fragment: RowFragment, field: str) -> str | None:
    return next(
        (value for name, value in fragment.converted[fragment.fields.index(field)].values if name == "item"), None
    )


def _conflict(first: RowFragment, second: RowFragment) -> bool:
    return not second.joins or bool(FIGURE_FIELDS & first.values.keys() & second.values.keys())


def _build_result(
    document: Document, accepted: list[RowFragment], duplicates: list[RowFragment], setup: DocumentSetup
) -> Result:
    first = accepted[0]
    values: dict[str, Any] = {}
    for fragment in reversed(accepted):
        values.update((name, value) for name, value in fragment.values.items() if value is not None)
    values |= {name: value for name, value in setup.values.items() if values.get(name) is None}
    result_id = compute_result_id(document.document_id, first.result_table, first.identity)
    values |= {"result_id": result_id, "row_number": first.row.number}
    if (micro := setup.get_micro_batch_size(values.get("batch_size"))) is not None:
        values["micro_batch_size"] = micro
    return Result(result_id, values, accepted, duplicates, setup.cells)


def compute_result_id(document_id: str, table: str, identity: Iterable[tuple[str, str]]) -> str:
    """Return 16 hex digits that depend on the printed configuration, not on figures or position."""
    key = json.dumps([document_id, table, sorted(identity)], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(key.encode()).hexdigest()[:16]  # 64 bits: a few thousand results never share an id
