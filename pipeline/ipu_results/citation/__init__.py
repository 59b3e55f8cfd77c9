"""Cite figures of the record, and make tables with one footnote per source."""

from ipu_results.citation.cite import cite
from ipu_results.citation.table import format_cited_table

__all__ = ["cite", "format_cited_table"]
