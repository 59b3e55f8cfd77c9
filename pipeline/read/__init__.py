"""Read: from the bytes of a document to tables of raw text. Pure; nothing here opens a file."""

from pipeline.read.dispatch import read
from pipeline.read.reading import Fact, Problem, Reading, Row, Table

__all__ = ["Fact", "Problem", "Reading", "Row", "Table", "read"]
