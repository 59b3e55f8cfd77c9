"""Normalise: from tables of raw text to results with canonical names and units, or to rejected
rows.
"""

from ipu_results.normalise.by_source import normalise_rows
from ipu_results.normalise.join import NormalisedDocument, Result, Results, join_rows, parse_setup
from ipu_results.normalise.rows import Cell, PassthroughRow, RejectedRow, parse_passthrough_rows
from ipu_results.read.document import ParsedDocument
from ipu_results.schema.vocabulary import KINDS, Vocabulary
from ipu_results.sources.catalogue import Document

__all__ = [
    "Cell",
    "NormalisedDocument",
    "PassthroughRow",
    "RejectedRow",
    "Result",
    "Results",
    "normalise",
]


def normalise(
    document: Document, parsed: ParsedDocument, vocabulary: Vocabulary
) -> NormalisedDocument:
    """Return the results, passthrough rows and rejected rows of one document; every source row is
    in one of them.
    """
    results = Results()
    rejected: list[RejectedRow] = []
    if KINDS[document.reader].results is not None:
        setup = parse_setup(document, parsed.metadata, vocabulary)
        results, rejected = join_rows(document, normalise_rows(document, parsed, vocabulary), setup)
    rejected += [
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
    passthrough = list(parse_passthrough_rows(document, parsed))
    return NormalisedDocument(document, results, rejected, passthrough, parsed.columnar)
