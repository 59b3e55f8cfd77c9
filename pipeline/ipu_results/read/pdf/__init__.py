"""Read the tables of a paper from a PDF: bytes to words, words to lines, lines to tables and captions."""

from ipu_results.read.pdf.reader import read_pdf

__all__ = ["read_pdf"]
