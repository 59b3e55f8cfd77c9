"""Normalise: from tables of raw text to results with canonical names and units, or to rejected
rows.
"""

from dataclasses import replace

from ipu_results.record.normalise.by_source import normalise_rows
from ipu_results.record.normalise.join import (
    NormalisedDocument,
    join_rows,
    list_passthrough,
    parse_setup,
)
from ipu_results.record.normalise.passthrough import type_passthrough_rows
from ipu_results.record.normalise.rows import RejectedRow
from ipu_results.record.read.document import ParsedDocument
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema.vocabulary import KINDS, Vocabulary

__all__ = [
    "NormalisedDocument",
    "RejectedRow",
    "list_passthrough",
    "normalise",
]


def normalise(
    document: Document, parsed: ParsedDocument, vocabulary: Vocabulary
) -> NormalisedDocument:
    """Return the results, passthrough rows and rejected rows of one document; every source row is
    in one of them.
    """
    joined = NormalisedDocument(document)
    if KINDS[document.reader].results is not None:
        setup = parse_setup(document, parsed.metadata, vocabulary)
        joined = join_rows(document, normalise_rows(document, parsed, vocabulary), setup)
    unread = [
        RejectedRow(
            problem.table_name,
            problem.row_number,
            problem.locator,
            problem.reason,
            problem.message,
            list(problem.raw),
        )
        for problem in parsed.problems
        if problem.row_number is not None
    ]
    return replace(
        joined,
        parsed=parsed,
        rejected=[*joined.rejected, *unread],
        passthrough=type_passthrough_rows(document, parsed),
    )
