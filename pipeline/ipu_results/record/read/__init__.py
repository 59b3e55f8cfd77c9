"""Read: from the bytes of a document to tables of raw text. Pure; nothing here opens a file.

`dispatch.read_document` reads any kind. It is not imported here: it needs packages that a query
does not.
"""

from ipu_results.record.read.document import (
    MetadataItem,
    ParsedDocument,
    ReadProblem,
    SourceRow,
    SourceTable,
)

__all__ = ["MetadataItem", "ParsedDocument", "ReadProblem", "SourceRow", "SourceTable"]
