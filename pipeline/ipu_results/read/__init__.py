"""Read: from the bytes of a document to tables of raw text. Pure; nothing here opens a file."""

from ipu_results.read.dispatch import read_document
from ipu_results.read.document import MetadataItem, ParsedDocument, ReadProblem, SourceRow, SourceTable

__all__ = ["MetadataItem", "ParsedDocument", "ReadProblem", "SourceRow", "SourceTable", "read_document"]
