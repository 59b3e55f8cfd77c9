"""Normalise: from tables of raw text to results in canonical names and units, or to rejected rows."""

from pipeline.accepted import CARRIED
from pipeline.catalogue import Document
from pipeline.normalise.carried import CarriedRow, carried_rows
from pipeline.normalise.facts import setup_of
from pipeline.normalise.join import Normalised, Result, join
from pipeline.normalise.partial import Cell, Rejected
from pipeline.normalise.sources import partials
from pipeline.read.reading import Reading
from pipeline.vocabulary import Vocabulary

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
