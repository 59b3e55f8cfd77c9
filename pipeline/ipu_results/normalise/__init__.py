"""Normalise: from tables of raw text to results in canonical names and units, or to rejected rows."""

from ipu_results.normalise.by_source import partials
from ipu_results.normalise.join import Normalised, Result, join
from ipu_results.normalise.metadata import setup_of
from ipu_results.normalise.passthrough import CarriedRow, carried_rows
from ipu_results.normalise.rows import Cell, Rejected
from ipu_results.read.reading import Reading
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document
from ipu_results.sources.kinds import CARRIED

__all__ = ["CarriedRow", "Cell", "Normalised", "Rejected", "Result", "normalise"]


def normalise(document: Document, reading: Reading, vocabulary: Vocabulary) -> Normalised:
    """Results, carried and rejected rows of one document; every source row is in one of them."""
    if document.reader in CARRIED:
        normalised = Normalised(document)
    else:
        setup = setup_of(document, reading.facts, vocabulary)
        normalised = join(document, partials(document, reading, vocabulary), setup)
    normalised.carried += carried_rows(document, reading)
    normalised.extend_with_problems(reading)
    return normalised
