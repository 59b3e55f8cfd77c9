"""Parse the facts that a document states once about its set-up and that hold for each of its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise.fields import CellContext, convert_cell
from ipu_results.normalise.rows import Cell
from ipu_results.normalise.values import UnreadableCellError
from ipu_results.read.document import MetadataItem
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

HALF = "half of the batch size"


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
