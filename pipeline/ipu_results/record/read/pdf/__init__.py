"""Read the tables of PDFs: plain constructs only, and the rest is told."""

from ipu_results.record.read.pdf.drafts import find_pdf_headers
from ipu_results.record.read.pdf.reader import read_pdf

__all__ = ["find_pdf_headers", "read_pdf"]
