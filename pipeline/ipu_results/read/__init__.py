"""Read: from the bytes of a document to tables of raw text. Pure; nothing here opens a file."""

from ipu_results.read.dispatch import read
from ipu_results.read.reading import Fact, Problem, Reading, Row, Table

__all__ = ["Fact", "Problem", "Reading", "Row", "Table", "read"]
