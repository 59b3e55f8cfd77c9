"""Cite results, and the rows of a query: where a figure is from, in words that may be printed."""

from ipu_results.doors.cite.citation import cite
from ipu_results.doors.cite.footnotes import cite_rows

__all__ = ["cite", "cite_rows"]
