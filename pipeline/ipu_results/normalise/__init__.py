"""Normalise: from tables of raw text to results in canonical names and units, or to rejected rows."""

from ipu_results.normalise.by_source import partials
from ipu_results.normalise.join import NormalisedDocument, Result, join
from ipu_results.normalise.metadata import setup_of
from ipu_results.normalise.passthrough import PassthroughRow, carried_rows
from ipu_results.normalise.rows import Cell, RejectedRow
from ipu_results.read.document import ParsedDocument
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document
from ipu_results.sources.kinds import CARRIED

__all__ = ["Cell", "NormalisedDocument", "PassthroughRow", "RejectedRow", "Result", "normalise"]


def normalise(document: Document, reading: ParsedDocument, vocabulary: Vocabulary) -> NormalisedDocument:
    """Results, carried and rejected rows of one document; every source row is in one of them."""
    if document.reader in CARRIED:
        normalised = NormalisedDocument(document)
    else:
        setup = setup_of(document, reading.metadata, vocabulary)
        normalised = join(document, partials(document, reading, vocabulary), setup)
    normalised.carried += carried_rows(document, reading)
    normalised.extend_with_problems(reading)
    return normalised
