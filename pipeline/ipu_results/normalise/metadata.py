"""Setup facts that a document states once and that hold for each of its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise.fields import Source, convert
from ipu_results.normalise.rows import Cell
from ipu_results.normalise.values import Unreadable
from ipu_results.read.document import MetadataItem
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

HALF = "half of the batch size"


@dataclass(frozen=True, slots=True)
class Setup:
    values: dict[str, Any]
    cells: tuple[Cell, ...]
    halved_batch: bool

    def micro_batch_size(self, batch_size: int | None) -> int | None:
        """Items per chip, where the source gives them as half of the (even) batch."""
        if not self.halved_batch or batch_size is None or batch_size % 2:
            return None
        return batch_size // 2


def setup_of(document: Document, facts: Iterable[MetadataItem], vocabulary: Vocabulary) -> Setup:
    """The facts of a document with known labels, and the cells that cite them.

    Raises DamagedDocumentError for one that cannot be read, since it would hold for every result.
    """
    values: dict[str, Any] = {}
    cells: list[Cell] = []
    halved = False
    for fact in facts:
        field = vocabulary.facts.get(document.reader, {}).get(fact.label)
        if field is None:
            continue
        try:
            converted = convert(field, fact.text, Source(vocabulary, None, False))
        except Unreadable as error:
            message = f"{fact.label}: {error}"
            raise DamagedDocumentError(message, document=document.document_id, place=fact.locator) from error
        values.update(converted.values)
        cells.append(Cell(field, fact.label, fact.text, *converted[1:], None, fact.locator))
        halved |= field == "batch_per_chip" and fact.text == HALF
    return Setup(values, tuple(cells), halved)
